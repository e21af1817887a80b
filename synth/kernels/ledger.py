"""What kernels have taken as plain Python in earlier processes, kept beside numba's cache on disk.

Without it, a command that is repeated would run the same seconds of plain Python for ever, as each process stays below
what compiling costs. Only calls of :data:`LONG_S` are kept. So questions of microseconds write no file and never add up
to a compilation. A ledger that cannot be read or written counts as empty: it decides when to compile, and never what
comes out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from synth.text.files import write_atomically

LONG_S = 0.5
"""Processor time of a call from which on it is kept."""
_LINE = re.compile(rb"(\d{1,6}\.\d{3}) s (\d{1,12}) entries\n")


@dataclass(frozen=True)
class LongCalls:
    """``seconds``: processor time of all long calls together. ``entries``: in the arrays of the smallest of them."""

    seconds: float = 0.0
    entries: int | None = None

    def and_one(self, seconds: float, entries: int) -> LongCalls:
        """These and one more."""
        return LongCalls(self.seconds + seconds, entries if self.entries is None else min(entries, self.entries))

    def expect(self, entries: int) -> bool:
        """Whether a call with so many entries in its arrays is likely to be long."""
        return self.entries is not None and entries >= self.entries


def read(places: Iterable[Path]) -> LongCalls:
    """What stands in the first of the files that is there; nothing if it is no ledger."""
    for path in places:
        try:
            with path.open("rb") as stream:
                line = _LINE.fullmatch(stream.read(64))
        except OSError:
            continue
        return LongCalls(float(line[1]), int(line[2])) if line else LongCalls()
    return LongCalls()


def write(places: Iterable[Path], calls: LongCalls) -> None:
    """Write the first of the files that can be written. Of two processes that write at once, one is forgotten."""
    for path in places:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, f"{min(calls.seconds, 1e5):.3f} s {calls.entries} entries\n".encode())
        except OSError:
            continue
        return
