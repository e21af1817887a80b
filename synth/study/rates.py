"""The best schedules in the columns that nccl-tests prints."""

from __future__ import annotations

from collections.abc import Sequence

from synth.records.record import Record
from synth.study.chart import natural

HEAD = ("size", "time", "algbw", "busbw", "gap", "instance")
UNITS = ("(B)", "(us)", "(GB/s)", "(GB/s)", "(%)", "")
FACTS = ("algbw_bytes_per_s", "busbw_bytes_per_s")


def as_nccl_tests(best: Sequence[tuple[Record, float | None]]) -> str:
    """A text of aligned columns, a line a schedule: bytes, microseconds, and the two bandwidths in GB/s as nccl-tests
    counts them, from the check's facts, and the gap that stands beside the record. Empty where the family's check
    states no bandwidths."""
    lines = []
    for record, left in sorted(best, key=lambda one: natural(one[0]["instance"])):
        facts = record["verified"]["facts"]
        value, alg, bus = record.value, *(facts.get(name) for name in FACTS)
        if value is None or not all(isinstance(rate, int | float) for rate in (alg, bus)):
            continue
        gap = "-" if left is None else f"{100 * left:.2f}"
        cells = (f"{alg * value:.0f}", f"{value * 1e6:.2f}", f"{alg / 1e9:.2f}", f"{bus / 1e9:.2f}", gap)
        lines.append((*cells, record["instance"]))
    if not lines:
        return ""
    rows = [HEAD, UNITS, *lines]
    wide = [max(len(row[column]) for row in rows) for column in range(len(HEAD) - 1)]
    texts = [
        "  ".join([*(f"{cell:>{w}}" for cell, w in zip(row, wide, strict=False)), row[-1]]).rstrip() for row in rows
    ]
    return "\n".join(["# " + texts[0], "# " + texts[1], *("  " + text for text in texts[2:])])
