"""Processor time that kernels have taken as plain Python in earlier processes, kept beside numba's cache on disk.

Without it, a command that is repeated would run the same seconds of plain Python for ever, as each process stays below
what compiling costs. Only what is long is kept: :data:`LONG_S` in one process, and half of what compiling the kernel
costs, so that compiling it is repaid by two more of them. Small questions write no file and never add up to a
compilation. A ledger that cannot be read or written counts as empty: it decides when to compile, and never what comes
out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from synth.text.files import write_atomically

LONG_S = 0.5
LONG_SHARE = 0.5
_LINE = re.compile(rb"(\d{1,6}\.\d{3})\n")


def is_long(seconds: float, compiling_s: float) -> bool:
    """Whether what a kernel has taken in one process is worth keeping."""
    return seconds >= max(LONG_S, LONG_SHARE * compiling_s)


def read(places: Iterable[Path]) -> float:
    """Seconds of earlier processes, from the first of the files that is there; 0 if it is no ledger."""
    for path in places:
        try:
            with path.open("rb") as stream:
                line = _LINE.fullmatch(stream.read(64))
        except OSError:
            continue
        return float(line[1]) if line else 0.0
    return 0.0


def write(places: Iterable[Path], seconds: float) -> None:
    """Write the first of the files that can be written. Of two processes that write at once, one is forgotten."""
    for path in places:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, f"{min(seconds, 1e5):.3f}\n".encode())
        except OSError:
            continue
        return
