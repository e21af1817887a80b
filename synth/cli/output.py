"""What the commands share in printing."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

UNFOLDED = 100_000  # characters; rows are shorter

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # all but line ends and tabs


class PlainConsole(Console):
    """A console on which a text out of a file moves no cursor and changes no colour: control characters are shown as
    ``?``."""

    def print(self, *objects: Any, **how: Any) -> None:
        """Print as rich does."""
        super().print(*(visible(one) if isinstance(one, str) else one for one in objects), **how)


def visible(text: str) -> str:
    """The text with ``?`` in place of every control character but line ends and tabs."""
    return CONTROLS.sub("?", text)


# A pipe or a file has no width, whatever COLUMNS says of the terminal behind it: a table there is as wide as its widest
# row, nothing folded, so that grep finds whole rows and `less -S` shows them.
console = PlainConsole(width=None if sys.stdout and sys.stdout.isatty() else UNFOLDED, highlight=False, emoji=False)
errors = PlainConsole(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def table(*columns: str, rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> Table:
    """A plain table; columns named in ``right`` are right-aligned."""
    result = Table(title_justify="left", caption_justify="left")
    for column in columns:
        result.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        result.add_row(*map(visible, row))
    return result


def command(*words: object) -> str:
    """A command of ours with these words, as one can paste it into a shell."""
    return shlex.join(["synth", *map(str, words)])


def write_examples(commands: Iterable[str], formatter: Any) -> None:
    """Write commands at the end of a help, folded between words as a shell takes them; a line that is broken stays."""
    with formatter.section("Examples"):
        for each in commands:
            for line in each.splitlines():
                formatter.write("".join(f"  {part}\n" for part in folded(line, formatter.width - 2)))


def folded(line: str, width: int) -> list[str]:
    """The command in lines of at most ``width`` characters where its words allow it; all but the last end in ``\\``."""
    if len(line) <= width:
        return [line]
    first, *words = line.split(" ")
    lines = [first]
    for word in words:
        if len(lines[-1]) + len(word) + 3 > width:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {word}"
    return lines


def number(value: float | None, digits: int = 6) -> str:
    """A number for a person; a dash for None."""
    return "–" if value is None else f"{value:.{digits}g}"
