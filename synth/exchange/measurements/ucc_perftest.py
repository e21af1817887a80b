"""Output of UCC's ``ucc_perftest`` (github openucx/ucc @8263de47, tools/perf): count, size, and time in us.

The size is that of a rank's source buffer: an allgather's is each rank's part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from synth.exchange.measurements.lines import Line, Sample, Samples, fail, one_test, positive, samples, whole

NAMES = {
    "allreduce": "allreduce", "allgather": "allgather", "reduce_scatter": "reduce_scatter", "bcast": "broadcast",
    "reduce": "reduce",
}  # fmt: skip
_NAME = re.compile(r"^Collective:\s+(\w+)")
_HEADER = re.compile(r"^\s*Count\s+Size\s+Time, us\b")


def looks_like(lines: Sequence[Line]) -> bool:
    """Whether the table's header is there."""
    return any(_HEADER.match(line.text) for line in lines)


def read(lines: Sequence[Line], test: str | None, ranks: int | None) -> Samples:
    """All samples of the log's one collective. Raises :class:`InputError` naming the line."""
    named = [(line.number, match.group(1).lower()) for line in lines if (match := _NAME.match(line.text))]
    for number, name in named:
        if name not in NAMES:
            raise fail(number, "", f"must be one of {', '.join(NAMES)}", name)
    chosen = one_test([(number, NAMES[name]) for number, name in named], test, tuple(NAMES.values()))
    start = next(k for k, line in enumerate(lines) if _HEADER.match(line.text))
    if ranks is None:
        raise fail(lines[start].number, "", "the output does not say how many ranks took part; give --ranks")
    found = []
    for line in lines[start + 1 :]:
        cells = line.text.split()
        if cells and cells[0].isdigit():
            if len(cells) < 3:
                raise fail(line.number, "", "has no time")
            size = whole(line.number, "size", cells[1])
            if size:
                times = ranks if chosen == "allgather" else 1
                found.append(Sample(size * times, positive(line.number, "avg", cells[2], 1e-6), line.number))
    return samples(chosen, ranks, found)
