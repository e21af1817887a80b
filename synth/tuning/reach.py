"""What NCCL or RCCL should reach on the rows' machines, by their own cost models
(:mod:`synth.exchange.selection.nccl_reach`, :mod:`synth.exchange.selection.rccl_reach`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from synth import api
from synth.exchange.selection import nccl_reach, rccl_reach
from synth.exchange.selection.machine_rates import of_one_domain, rates
from synth.exchange.selection.nccl_reach import ROUNDS, Boxes, Reach
from synth.instance import Instance
from synth.tuning.question import Question
from synth.tuning.rows import Row

LARGE = 2**38  # bytes, of which no latency is seen
RUN_S = 60.0


def gpus() -> list[str]:
    """The kinds of GPUs that are known."""
    return [*nccl_reach.data()["gpu"], *rccl_reach.data()["gpu"]]


def library(gpu: str) -> str:
    """What such GPUs run."""
    return "NCCL" if gpu in nccl_reach.data()["gpu"] else "RCCL"


def in_switches(rows: Iterable[Row], question: Question) -> str | None:
    """The GPUs that the costs are of, where the machine's switches add, which the library itself has them do, and its
    own cost model is known."""
    gpu = "" if question.costs is None else question.costs.gpu
    return gpu if gpu in gpus() and any(_adds(row.instance) for row in rows) else None


def _adds(instance: Instance) -> bool:
    abilities = getattr(getattr(instance, "machine", None), "abilities", None)
    return abilities is not None and bool(abilities.adds.any())


def put_in(rows: Iterable[Row], question: Question, gpu: str | None) -> None:
    """Put into the rows what the library of such GPUs should reach (None: nothing is asked); rows of other collectives
    stay as they are. Nothing is said to be quicker than the row's bound."""
    machines: dict[str, Boxes | None] = {}
    for row in rows if gpu is not None else ():
        if row.collective not in machines:
            machines[row.collective] = _boxes(row, question)
        asked = machines[row.collective]
        if asked is not None and gpu is not None:
            row.reach, row.library = _within_bound(asked, gpu, row), library(gpu)


def _within_bound(asked: Boxes, gpu: str, row: Row) -> Reach | None:
    model = nccl_reach if library(gpu) == "NCCL" else rccl_reach
    found: Reach | None = model.reach(asked, gpu, row.instance_bytes)
    if found is not None and row.bound is not None and found.seconds < row.bound:
        return found._replace(seconds=row.bound)
    return found


def _boxes(row: Row, question: Question) -> Boxes | None:
    """What the library looks at; None where the row is of another collective or there are no rings."""
    if row.collective not in ROUNDS or row.bus_factor is None:
        return None
    return boxes_on(question.make(row.collective, LARGE), row.bus_factor)


def boxes_on(large: Any, factor: float) -> Boxes | None:
    """What the library looks at on the machine of an instance of :data:`LARGE` bytes, whose busbw / algbw is
    ``factor``; None where there are no rings. Ranks joined directly, or all of one box, carry what a ring over them
    does."""
    ranks, collective = len(large.members), large.collective
    boxes = [list(box) for box in getattr(large, "boxes", ())] or [list(large.members)]
    sums = bool(getattr(large.machine, "abilities", None) and large.machine.abilities.any)
    inside, ways = rates(large.machine.network, boxes)
    if whole := of_one_domain(inside, ways, boxes, ranks):
        return Boxes(collective, ranks, 1, whole, sums=sums)
    if len(boxes) > 1 and ways:
        return Boxes(collective, ranks, len(boxes), inside, len(ways), min(ways.values()), sums)
    seconds = api.solve(large, "ring", time_limit=RUN_S).value
    if not seconds:
        return None
    rate = large.bytes * factor / seconds
    if len(boxes) > 1:
        return Boxes(collective, ranks, len(boxes), 0.0, ranks // len(boxes), rate)
    return Boxes(collective, ranks, 1, rate, sums=sums)
