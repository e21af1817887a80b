"""A table of a person's own: CSV with the header ``size,time``, units allowed (``64KiB,12.5us``); bare numbers are
bytes, as nccl-tests count them, and seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from synth.errors import Fault, InputError
from synth.exchange.measurements.lines import LEAST_SECONDS, MOST_SECONDS, Line, Sample, Samples, fail, samples
from synth.exchange.measurements.series import PAIRS
from synth.text import amounts

_HEADER = re.compile(r"^\s*size\s*,\s*time\s*$")
TESTS = (*PAIRS, "allreduce", "allgather", "reduce_scatter", "alltoall", "broadcast", "reduce")


def looks_like(lines: Sequence[Line]) -> bool:
    """Whether the first line that says something is the header."""
    first = next((line.text for line in lines if line.text.strip() and not line.text.startswith("#")), "")
    return _HEADER.match(first) is not None


def read(lines: Sequence[Line], test: str | None, ranks: int | None) -> Samples:
    """All rows. Raises :class:`InputError` naming the line."""
    if test not in TESTS:
        raise InputError([Fault("--test", f"a CSV file names no test; give one of {', '.join(TESTS)}", test, True)])
    if ranks is None and test not in PAIRS:
        raise InputError([Fault("--ranks", "a CSV file does not say how many ranks took part")])
    found = []
    body = [line for line in lines if line.text.strip() and not line.text.startswith("#")][1:]
    for line in body:
        cells = line.text.split(",")
        if len(cells) != 2:
            raise fail(line.number, "", f"has {len(cells)} cells, the header two")
        try:
            size, seconds = amounts.size(cells[0]), amounts.duration(cells[1])
        except ValueError as error:
            raise fail(line.number, "", str(error), line.text) from None
        if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
            raise fail(line.number, "time", f"must be in {LEAST_SECONDS:g}..{MOST_SECONDS:g} s", cells[1])
        found.append(Sample(size, seconds, line.number))
    return samples(test, 2 if ranks is None else ranks, found)
