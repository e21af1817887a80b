"""What NCCL or RCCL should reach on the rows' machines, by their own cost models
(:mod:`synth.exchange.selection.nccl_reach`, :mod:`synth.exchange.selection.rccl_reach`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from synth import api
from synth.exchange.selection import nccl_reach, rccl_reach
from synth.exchange.selection.nccl_reach import ROUNDS, Boxes, Reach
from synth.tuning.rows import Row
from synth.tuning.search import Question

LARGE = 2**38  # bytes, of which no latency is seen
RUN_S = 60.0


def gpus() -> list[str]:
    """The kinds of GPUs that are known."""
    return [*nccl_reach.data()["gpu"], *rccl_reach.data()["gpu"]]


def library(gpu: str) -> str:
    """What such GPUs run."""
    return "NCCL" if gpu in nccl_reach.data()["gpu"] else "RCCL"


def put_in(rows: Iterable[Row], question: Question, gpu: str | None) -> None:
    """Put into the rows what the library of such GPUs should reach (None: nothing is asked); rows of other collectives
    stay as they are. Nothing is said to be quicker than the row's bound."""
    machines: dict[str, Boxes | None] = {}
    for row in rows if gpu is not None else ():
        if row.collective not in machines:
            machines[row.collective] = _boxes(row, question)
        asked = machines[row.collective]
        row.reach = None if asked is None or gpu is None else _within_bound(asked, gpu, row)


def _within_bound(asked: Boxes, gpu: str, row: Row) -> Reach | None:
    model = nccl_reach if library(gpu) == "NCCL" else rccl_reach
    found: Reach | None = model.reach(asked, gpu, row.instance_bytes)
    if found is not None and row.bound is not None and found.seconds < row.bound:
        return found._replace(seconds=row.bound)
    return found


def _boxes(row: Row, question: Question) -> Boxes | None:
    """What the library looks at; None where the row is of another collective or there are no rings. Ranks joined
    directly, or all of one box, carry what a ring over them does."""
    if row.collective not in ROUNDS or row.bus_factor is None:
        return None
    large: Any = question.make(row.collective, LARGE)
    boxes = [list(box) for box in getattr(large, "boxes", ())] or [list(large.members)]
    sums = bool(getattr(large.machine, "abilities", None) and large.machine.abilities.any)
    inside, ways = _rates(large.machine.network, boxes)
    own = [rate for node, rate in ways.items() if node in boxes[0]]
    if own and not inside and len(boxes) < row.ranks:  # the boxes of one NVLink domain, which NCCL takes for one
        return Boxes(row.collective, row.ranks, 1, min(own), sums=sums)
    if len(boxes) > 1 and ways:
        return Boxes(row.collective, row.ranks, len(boxes), inside, len(ways), min(ways.values()), sums)
    seconds = api.solve(large, "ring", time_limit=RUN_S).value
    if not seconds:
        return None
    rate = large.bytes * row.bus_factor / seconds
    if len(boxes) > 1:
        return Boxes(row.collective, row.ranks, len(boxes), 0.0, row.ranks // len(boxes), rate)
    return Boxes(row.collective, row.ranks, 1, rate, sums=sums)


def _rates(network: Any, boxes: list[list[int]]) -> tuple[float, dict[int, float]]:
    """Bytes/s that the first box's first GPU sends to its box, and, by the node of the box, those of a link that leads
    out of it: to a node that several boxes come to by equally few hops. None does where boxes are joined directly."""
    links = list(zip(network.src.tolist(), network.dst.tolist(), network.bandwidth.tolist(), strict=True))
    after: dict[int, list[int]] = {}
    for u, v, _ in links:
        after.setdefault(u, []).append(v)
    own = {rank: b for b, box in enumerate(boxes) for rank in box}
    edge = list(own)
    while edge:
        come: dict[int, set[int]] = {}
        for u in edge:
            for v in after.get(u, ()):
                if v not in own and own[u] >= 0:
                    come.setdefault(v, set()).add(own[u])
        own |= {v: next(iter(among)) if len(among) == 1 else -1 for v, among in come.items()}
        edge = list(come)
    ranks = {rank for box in boxes for rank in box}
    if any(u in ranks and v in ranks and own[u] != own[v] for u, v, _ in links):
        return 0.0, {}
    out = {u: rate for u, v, rate in links if own.get(u) == 0 and own.get(v, -1) == -1}
    first = boxes[0][0]
    mates = [(v, rate) for u, v, rate in links if u == first and own.get(v) == 0 and v not in out]
    kept = [rate for v, rate in mates if v in ranks or len({w for w in after[v] if w in ranks}) > 1]
    return sum(kept), out
