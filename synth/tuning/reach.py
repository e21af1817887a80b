"""What NCCL's ring should reach on the rows' machines (:mod:`synth.exchange.selection.nccl_reach`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from synth import api
from synth.exchange.selection.nccl_reach import STEPS, Ring, reach
from synth.tuning.rows import Row
from synth.tuning.search import Question

LARGE = 2**38  # bytes, of which no latency is seen
RUN_S = 60.0


def put_in(rows: Iterable[Row], question: Question, gpu: str | None) -> None:
    """Put into the rows what NCCL's ring should reach with such GPUs (None: nothing is asked); rows of other
    collectives stay as they are."""
    rings: dict[str, Ring | None] = {}
    for row in rows if gpu is not None else ():
        if row.collective not in rings:
            rings[row.collective] = _ring(row, question)
        ring = rings[row.collective]
        row.reach = None if ring is None or gpu is None else reach(ring, gpu, row.instance_bytes)


def _ring(row: Row, question: Question) -> Ring | None:
    """The ring of a row's collective on its machine; None where there is none."""
    if row.collective not in STEPS or row.bus_factor is None:
        return None
    large: Any = question.make(row.collective, LARGE)
    seconds = api.solve(large, "ring", time_limit=RUN_S).value
    boxes = len(getattr(large, "boxes", ())) or 1
    return Ring(row.collective, row.ranks, boxes, large.bytes * row.bus_factor / seconds) if seconds else None
