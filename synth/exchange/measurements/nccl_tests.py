"""Output of nccl-tests (github NVIDIA/nccl-tests, src/common.cu): ``all_reduce_perf`` and its like.

A table's header names the columns; ``time`` in us stands once for out-of-place and once for in-place. The test's name
is in newer versions' first line and in command lines; ranks are the lines ``Rank n``, or ``busbw / algbw`` of an
allreduce, which is 2 (n − 1) / n.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from synth.exchange.measurements.lines import (
    Line,
    Sample,
    Samples,
    fail,
    one_test,
    positive,
    samples,
    whole,
)
from synth.exchange.measurements.series import IN, OUT

NAMES = {
    "all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reduce_scatter", "alltoall": "alltoall",
    "broadcast": "broadcast", "reduce": "reduce", "sendrecv": "sendrecv",
}  # fmt: skip
_NOT_READ = ("gather", "scatter", "hypercube", "alltoallv")
_NAME = re.compile(r"(?<![a-z_])(" + "|".join((*NAMES, *_NOT_READ)) + r")_perf\b")
_RANK = re.compile(r"^#?\s*Rank\s+(\d+)\s.*\bPid\b")
_HEADER = re.compile(r"^#?\s*size\s+count\s+type\b.*\b(cpu)?time\s+algbw\s+busbw\b")
_ROW = re.compile(r"^\s*\d+\s+\d+\s+[a-z_]\w*\s")
US, GB = 1e-6, 1e9


def looks_like(lines: Sequence[Line]) -> bool:
    """Whether the table's header is there."""
    return any(_HEADER.match(line.text) for line in lines)


def read(lines: Sequence[Line], test: str | None, ranks: int | None) -> Samples:
    """All samples of the log's one test. Raises :class:`InputError` naming the line."""
    named = _named(lines)
    chosen = one_test([one for one in named if one[1] not in _NOT_READ], test, tuple(NAMES.values()))
    header: list[str] = []
    found: list[Sample] = []
    ratios: list[float] = []
    current = dict(named) if chosen in dict(named).values() else {}
    running = None
    for line in lines:
        running = current.get(line.number, running)
        if match := _HEADER.match(line.text):
            if match.group(1):
                raise fail(line.number, "cputime", "is the processor's, not the operation's; run without -C 1")
            header = line.text.lstrip("# ").split()
        elif header and running in (None, chosen) and _ROW.match(line.text):
            found += _row(line, header, ratios)
    seen = {int(match.group(1)[:9]) for line in lines if (match := _RANK.match(line.text))}
    first = found[0].line if found else 1
    return samples(chosen, max(seen, default=-1) + 1 or ranks or ranks_meant(chosen, ratios, first), found)


def _named(lines: Sequence[Line]) -> list[tuple[int, str]]:
    """The tests that lines name. Raises :class:`InputError` where none of them is read."""
    every = [(line.number, name) for line in lines for name in _NAME.findall(line.text)]
    if every and all(name in _NOT_READ for _, name in every):
        raise fail(every[0][0], "", f"this test is not read; known: {', '.join(NAMES)}", f"{every[0][1]}_perf")
    return [(number, NAMES.get(name, name)) for number, name in every]


def _row(line: Line, header: Sequence[str], ratios: list[float]) -> list[Sample]:
    """The samples of a row; ``ratios`` grows by bus over algorithm bandwidth where both have three digits."""
    cells = line.text.split()
    if len(cells) < len(header):
        raise fail(line.number, "", f"has {len(cells)} columns, the header {len(header)}")
    size = whole(line.number, "size", cells[0])
    if size == 0:
        return []
    found = []
    times = [k for k, name in enumerate(header) if name == "time"]
    for place, named in zip(times, (OUT, IN) if len(times) > 1 else ("",), strict=False):
        found.append(Sample(size, positive(line.number, "time", cells[place], US), line.number, named))
        slow, fast = (positive(line.number, "busbw", cell, GB, True) if cell.strip("0.") else 0.0
                      for cell in cells[place + 1 : place + 3])  # fmt: skip
        if slow >= 1.0 * GB:
            ratios.append(fast / slow)
    return found


def ranks_meant(test: str, ratios: Sequence[float], line: int) -> int:
    """The number of ranks that the ratios of bus over algorithm bandwidth mean. Raises :class:`InputError`."""
    if test == "sendrecv":
        return 2
    ratio = sorted(ratios)[len(ratios) // 2] if ratios else 0.0
    top = 2.0 if test == "allreduce" else 1.0
    if test not in ("broadcast", "reduce") and 0.5 * top - 0.01 <= ratio < 0.99 * top:
        return max(round(top / (top - ratio)), 2)
    if ratio and test not in ("broadcast", "reduce"):
        words = (
            f"busbw / algbw is {ratio:.4g}, which no number of ranks gives of {test}; give the right --test or --ranks"
        )
        raise fail(line, "", words)
    raise fail(line, "", "the log does not say how many ranks took part; give --ranks")
