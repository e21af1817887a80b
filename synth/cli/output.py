"""What the commands share in printing."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from synth.errors import abridged
from synth.text.visible import visible

UNFOLDED = 100_000  # characters; rows are shorter
LONGEST_CELL = 1000  # characters
LAUNCHED = "OMPI_COMM_WORLD_RANK"  # in the environment of what Open MPI's mpirun starts


class PlainConsole(Console):
    """A console on which a text is one line and nothing else: what stands in it is no markup, moves no cursor, changes
    no colour and begins no line (:func:`synth.text.visible.visible`). Several lines are several texts, with
    ``sep="\\n"``."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how, markup=False, highlight=False, emoji=False)

    def print(self, *objects: Any, **how: Any) -> None:
        """Print as rich does. A text is never folded: a line's end in it would be none of ours."""
        if any(isinstance(one, str) for one in objects):
            how = {"soft_wrap": True} | how
        for one in objects:
            if isinstance(one, Table):
                one.title, one.caption = _in_view(one.title), _in_view(one.caption)
        super().print(*map(_in_view, objects), **how)

    def lines(self, text: str, **how: Any) -> None:
        """Print a text of several lines. It was put together by us, or is an error's: of what came out of a file it
        holds only what :func:`visible` returned."""
        self.print(*text.split("\n"), sep="\n", **how)


def _in_view(shown: Any) -> Any:
    return visible(shown) if isinstance(shown, str) else shown


def _is_terminal(stream: Any) -> bool:
    """Whether somebody looks at the stream: not where mpirun collects it, whose pipes call themselves terminals."""
    return bool(stream) and stream.isatty() and LAUNCHED not in os.environ


# A pipe or a file has no width, whatever COLUMNS says of the terminal behind it: a table there is as wide as its widest
# row, nothing folded, so that grep finds whole rows and `less -S` shows them.
console = PlainConsole(
    width=None if _is_terminal(sys.stdout) else UNFOLDED, force_terminal=False if LAUNCHED in os.environ else None
)
errors = PlainConsole(stderr=True, soft_wrap=True, force_terminal=False if LAUNCHED in os.environ else None)


def table(*columns: str, rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> Table:
    """A plain table; columns named in ``right`` are right-aligned."""
    result = Table(title_justify="left", caption_justify="left")
    for column in columns:
        result.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        result.add_row(*(visible(abridged(cell, LONGEST_CELL)) for cell in row))
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
