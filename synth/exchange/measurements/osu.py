"""Output of the OSU micro-benchmarks (mvapich.cse.ohio-state.edu/benchmarks): ``# OSU MPI… Test``, then size and value.

Sizes of osu_allgather are each rank's part and of osu_alltoall what goes to each rank: times the ranks, which the
output does not state. ``osu_bw`` streams messages: its times give a bandwidth, no latency. ``osu_bibw`` counts the
bytes of both directions, ``osu_mbw_mr`` those of all pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from synth.exchange.measurements.lines import Line, Sample, Samples, fail, one_test, positive, samples, whole
from synth.exchange.measurements.series import BANDWIDTH, LATENCY, MOST_RANKS, PAIRS

_BOTH_WAYS = "both ways"
_TITLES = {
    "latency": LATENCY, "multi latency": LATENCY, "multi-threaded latency": LATENCY, "bandwidth": BANDWIDTH,
    "bi-directional bandwidth": _BOTH_WAYS, "multiple bandwidth / message rate": BANDWIDTH, "allreduce latency":
    "allreduce", "allgather latency": "allgather", "allgatherv latency": "allgather", "reduce_scatter latency":
    "reduce_scatter", "reduce_scatter_block latency": "reduce_scatter", "broadcast latency": "broadcast",
    "reduce latency": "reduce", "all-to-all personalized exchange latency": "alltoall",
    "all-to-allv personalized exchange latency": "alltoall",
}  # fmt: skip
TESTS = tuple(dict.fromkeys(name for name in _TITLES.values() if name != _BOTH_WAYS))
_TITLE = re.compile(r"^#\s*OSU (?:(?:MPI|[NR]CCL|XCCL)(?:-[A-Z]+)*\s+)?(.{1,80}?)\s+Test\b", re.IGNORECASE)
_PAIRS = re.compile(r"^#\s*\[ pairs: (\d{1,6}) \]")
_HEADER = re.compile(r"^#\s*Size\s+(.*)$")
US, MB = 1e-6, 1e6


def looks_like(lines: Sequence[Line]) -> bool:
    """Whether the benchmark's title is there."""
    return any(_TITLE.match(line.text) for line in lines)


def read(lines: Sequence[Line], test: str | None, ranks: int | None) -> Samples:
    """All samples of the log's one test. Raises :class:`InputError` naming the line."""
    chosen, line = _test(lines, test)
    count = 2 if chosen in (*PAIRS, _BOTH_WAYS) else ranks
    if count is None:
        raise fail(line, "", "the output does not say how many ranks took part; give --ranks")
    factor = count if chosen in ("allgather", "alltoall") else 1
    rate = chosen in (BANDWIDTH, _BOTH_WAYS)
    ways = 2 if chosen == _BOTH_WAYS else next((int(m.group(1)) for row in lines if (m := _PAIRS.match(row.text))), 1)
    found = [sample for row in _rows(lines) for sample in _row(row, row.text.split(), factor, rate, ways)]
    return samples(BANDWIDTH if rate else chosen, min(count, MOST_RANKS + 1), found)


def _test(lines: Sequence[Line], test: str | None) -> tuple[str, int]:
    """The log's one test, and the line that names it."""
    titles = [(line.number, match.group(1)) for line in lines if (match := _TITLE.match(line.text))]
    for number, title in titles:
        if title.lower() not in _TITLES:
            raise fail(number, "", f"tests of this title are not read; known: {', '.join(_TITLES)}", title)
    chosen = one_test([(number, _TITLES[title.lower()]) for number, title in titles], None, TESTS)
    first, title = titles[0]
    if test is not None and chosen not in (test, _BOTH_WAYS):
        raise fail(first, "", f"--test says {test}", title)
    return chosen, first


def _rows(lines: Sequence[Line]) -> Iterator[Line]:
    """The lines below a header that begin with a size, up to one that is neither a comment nor a row."""
    inside = False
    for line in lines:
        first = line.text.split()[:1]
        if _HEADER.match(line.text):
            inside = True
        elif inside and first and first[0].isdigit():
            yield line
        elif first and not line.text.startswith("#"):
            inside = False


def _row(line: Line, cells: Sequence[str], factor: int, rate: bool, ways: int) -> list[Sample]:
    """The sample of a row: the first value behind the size, an average."""
    if len(cells) < 2:
        raise fail(line.number, "", "has a size and no value")
    size = whole(line.number, "size", cells[0])
    if size == 0:
        return []
    if not rate:
        return [Sample(size * factor, positive(line.number, "latency", cells[1], US), line.number)]
    return [Sample(size, ways * size / positive(line.number, "bandwidth", cells[1], MB, True), line.number)]
