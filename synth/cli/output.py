"""What the commands share in printing."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

UNFOLDED = 100_000  # characters; rows are shorter

# A pipe or a file has no width, whatever COLUMNS says of the terminal behind it: a table there is as wide as its widest
# row, nothing folded, so that grep finds whole rows and `less -S` shows them.
console = Console(width=None if sys.stdout and sys.stdout.isatty() else UNFOLDED, highlight=False, emoji=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def table(*columns: str, rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> Table:
    """A plain table; columns named in ``right`` are right-aligned."""
    result = Table(title_justify="left", caption_justify="left")
    for column in columns:
        result.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        result.add_row(*row)
    return result


def command(*words: object) -> str:
    """A command of ours with these words, as one can paste it into a shell."""
    return shlex.join(["synth", *map(str, words)])


def number(value: float | None, digits: int = 6) -> str:
    """A number for a person; a dash for None."""
    return "–" if value is None else f"{value:.{digits}g}"
