"""Lines of a log, and the numbers in their cells: checked before anything is reckoned with them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.errors import Fault, InputError

MOST_BYTES = 2**50
LEAST_SECONDS, MOST_SECONDS = 1e-12, 1e6


class Line(NamedTuple):
    """A line of a log without the launcher's prefix; ``number`` 1 for the first."""

    number: int
    text: str


class Samples(NamedTuple):
    """What a reader finds: the test, its ranks, and a sample an entry, shape (samples,) each."""

    test: str
    ranks: int
    size: IntArray
    seconds: FloatArray
    lines: IntArray
    places: tuple[str, ...]


class Sample(NamedTuple):
    """One measured time: size in bytes, seconds, the number of the line, and ``place``: of two buffers or one (of
    nccl-tests: ``out-of-place``, ``in-place``; empty where a benchmark knows no two)."""

    size: int
    seconds: float
    line: int
    place: str = ""


def samples(test: str, ranks: int, found: Iterable[Sample]) -> Samples:
    """The samples as arrays. Raises :class:`InputError` where there is none."""
    rows = list(found)
    if not rows:
        raise InputError([Fault("line 1", "the table has no row of a size above 0")])
    if largest := next((row for row in rows if row.size > MOST_BYTES), None):
        raise fail(largest.line, "size", f"is more than {MOST_BYTES} bytes among {ranks} ranks", str(largest.size))
    size, seconds, lines, places = zip(*rows, strict=True)
    columns = (np.array(size, dtype=np.int64), np.array(seconds), np.array(lines, dtype=np.int64))
    return Samples(test, ranks, *columns, places)


def fail(line: int, column: str, message: str, cell: str | None = None) -> InputError:
    """The error for a cell of a line."""
    place = f"line {line}" + (f", {column}" if column else "")
    return InputError([Fault(place, message, cell, cell is not None)])


def whole(line: int, column: str, cell: str, most: int = MOST_BYTES) -> int:
    """A whole number from 0 on. Raises :class:`InputError` naming the line."""
    if not cell.isascii() or not cell.isdigit() or len(cell) > 20 or int(cell) > most:
        raise fail(line, column, f"must be a whole number, 0 to {most}", cell)
    return int(cell)


def positive(line: int, column: str, cell: str, unit: float, inverse: bool = False) -> float:
    """A number above 0 in units of ``unit``, and within a plausible range once in seconds (or, ``inverse``, in
    bytes/s). Raises :class:`InputError` naming the line."""
    try:
        value = float(cell) * unit
    except ValueError:
        raise fail(line, column, "must be a number", cell) from None
    low, high = (1e-3, 1e18) if inverse else (LEAST_SECONDS, MOST_SECONDS)
    if not math.isfinite(value) or not low <= value <= high:
        raise fail(line, column, f"must be in {low / unit:g}..{high / unit:g}", cell)
    return value


def one_test(lines: Iterable[tuple[int, str]], stated: str | None, known: Iterable[str]) -> str:
    """The one test that the log names at these lines; where it names none or several, the one that was stated. Raises
    :class:`InputError`."""
    found = dict.fromkeys(name for _, name in lines)
    if stated is not None:
        if stated not in known:
            raise InputError([Fault("--test", f"must be one of {', '.join(known)}", stated, True)])
        if len(found) != 1:
            return stated
    if len(found) == 1:
        return next(iter(found))
    names = " and ".join(found) or "no test"
    where = next((number for number, _ in lines), 1)
    raise fail(where, "", f"the log names {names}; say which with --test {'|'.join(known)}")
