"""A plan: what is sent in which step, and the schedule in continuous time that it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.scheduling.chunks import cut, seconds
from synth_models.fabric.scheduling.list_scheduling import most_seconds, timed
from synth_models.fabric.scheduling.moves import pieces_of
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule
from synth_peers.sccl.programs.rank_arcs import RankArcs

Row = tuple[int, int, int, bool]
"""Step, chunk (a piece, block after block), arc, whether it adds to a sum."""


@dataclass(frozen=True)
class Plan:
    """``rounds`` of every step, ``chunks`` as SCCL counts them, ``copies`` of every block, ``sends`` by step."""

    rounds: tuple[int, ...]
    chunks: int
    copies: int
    sends: tuple[Row, ...]

    @property
    def question(self) -> tuple[int, int, int]:
        """Steps, rounds, chunks."""
        return len(self.rounds), sum(self.rounds), self.chunks


def reversed_in_time(sends: Sequence[tuple[int, int, int]], steps: int) -> list[Row]:
    """What spreads chunks on the reversed machine, played backwards: sums on the machine itself."""
    return sorted((steps - 1 - s, i, e, True) for s, i, e in sends)


def stretched(arcs: RankArcs, plan: Plan, steps: int, rounds: int) -> Plan:
    """The plan in more steps and rounds: long steps in two, idle ones at the end. Not for sums that grow in place."""
    length, sends = list(plan.rounds), list(plan.sends)
    while len(length) < steps:
        long = next((s for s, r in enumerate(length) if r > 1), None)
        if sum(length) < rounds or long is None:
            length.append(1)
            continue
        used: dict[int, int] = {}
        moved = []
        for s, i, e, adds in sends:
            if s == long:
                used[e] = used.get(e, 0) + 1
            later = s > long or (s == long and used[e] > int(arcs.capacity[e]))
            moved.append((s + later, i, e, adds))
        sends = sorted(moved)
        length[long : long + 1] = [1, length[long] - 1]
    length[-1] += rounds - sum(length)
    return replace(plan, rounds=tuple(length), sends=tuple(sends))


def dealt(arcs: RankArcs, plan: Plan) -> list[int]:
    """The link of every send: the links of an arc share what it carries in a step by their capacities."""
    used: dict[tuple[int, int], int] = {}
    found = []
    for s, _, e, _ in plan.sends:
        link, room = min(arcs.links[e], key=lambda row: Fraction(used.get((s, row[0]), 0) + 1, row[1]))
        used[s, link] = used.get((s, link), 0) + 1
        found.append(link)
        assert used[s, link] <= room * plan.rounds[s], "an arc carries more than its links"
    return found


def packed(arcs: RankArcs, plan: Plan) -> dict[str, Any]:
    """The plan as :mod:`synth_peers.sccl.check.plan` reads it."""
    found = {
        "rounds": np.array(plan.rounds, dtype=np.int64),
        "chunks": plan.chunks,
        "step": np.array([s for s, _, _, _ in plan.sends], dtype=np.int64),
        "piece": np.array([i for _, i, _, _ in plan.sends], dtype=np.int64),
        "link": np.array(dealt(arcs, plan), dtype=np.int64),
    }
    if any(adds for _, _, _, adds in plan.sends):
        found["adds"] = np.array([adds for _, _, _, adds in plan.sends], dtype=np.int8)
    return found


def synchronous_seconds(instance: FabricInstance, arcs: RankArcs, plan: Plan) -> Fraction:
    """The plan's time if every step waits for the one before: its rounds and the longest latency of the machine."""
    sizes = _pieces(instance, plan)[1]
    largest = int(sizes.max()) if len(sizes) else 0
    slowest = max((exact(float(value)) for value in np.unique(instance.machine.network.latency)), default=Fraction(0))
    return Fraction(largest) / arcs.unit * sum(plan.rounds) + slowest * len(plan.rounds)


def schedule_of(instance: FabricInstance, arcs: RankArcs, plan: Plan, more: Mapping[str, Any]) -> Schedule:
    """The plan in continuous time, and itself beside it; ``more`` is what else the plan says.

    Every link serves its chunks in the plan's order as soon as they are there, so it takes no longer than the steps
    would one after the other; list scheduling is taken where it is quicker. Where sums grow in place, a chunk's sends
    of one step must go before what comes in that step, so several orders are tried and replayed. Raises
    :class:`UnsupportedError` for blocks with fewer bytes than chunks."""
    transfers = _transfers(instance, arcs, plan)
    tried = [timed(instance, transfers, in_order=True), timed(instance, transfers)]
    in_place = len(instance.blocks) == 1 and instance.collective == "allreduce"
    if in_place:
        tried = [schedule for schedule in tried if check_schedule(instance, schedule).ok]
        tried.append(_together(instance, transfers, plan))
    best = min(tried, key=lambda schedule: seconds(instance, schedule))
    return replace(best, plan={"kind": "steps"} | packed(arcs, plan) | dict(more))


def _pieces(instance: FabricInstance, plan: Plan) -> tuple[IntArray, IntArray]:
    least = int(instance.blocks.bytes.min()) if len(instance.blocks) else plan.copies
    if least < plan.copies:
        raise UnsupportedError(f"a block of {least} bytes cannot be cut into {plan.copies} chunks")
    return pieces_of(cut(size, plan.copies) for size in instance.blocks.bytes.tolist())


def _transfers(instance: FabricInstance, arcs: RankArcs, plan: Plan) -> Transfers:
    """The sends with what each waits for: all that came to its rank of its chunk in earlier steps. Priority: by step,
    and within one first what others wait for longest."""
    tails, heads = arcs.tail.tolist(), arcs.head.tolist()
    came: dict[tuple[int, int], list[int]] = {}
    before: list[list[int]] = []
    for number, (s, i, e, _) in enumerate(plan.sends):
        before.append([j for j in came.get((i, tails[e]), []) if plan.sends[j][0] < s])
        came.setdefault((i, heads[e]), []).append(number)
    height = [0] * len(before)
    for number in range(len(before) - 1, -1, -1):
        for j in before[number]:
            height[j] = max(height[j], height[number] + 1)
    order = sorted(range(len(before)), key=lambda n: (plan.sends[n][0], -height[n], plan.sends[n][1], n))
    priority = np.empty(len(before), dtype=np.int64)
    priority[order] = np.arange(len(before))
    routes = [[link] for link in dealt(arcs, plan)]
    adds = np.array([adds for _, _, _, adds in plan.sends], dtype=bool)
    block, size = _pieces(instance, plan)
    return Transfers.of(block, size, [i for _, i, _, _ in plan.sends], routes, before, priority, adds)


def _together(instance: FabricInstance, transfers: Transfers, plan: Plan) -> Schedule:
    """Step after step, and within one all sends of a chunk at the same moment: then each carries what its sender held
    when the step began."""
    machine = instance.machine
    ticks = clock.ticks_per_second(machine, most_seconds(instance, transfers))
    latency = clock.latencies(machine, ticks).tolist()
    took = {int(n): clock.durations(machine, ticks, int(n)).tolist() for n in np.unique(transfers.piece_bytes)}
    sizes, links = transfers.piece_bytes.tolist(), transfers.link.tolist()
    start = np.zeros(len(plan.sends), dtype=np.int64)
    begun = 0
    for s in range(len(plan.rounds)):
        rows: dict[int, list[int]] = {}
        for number, (step, piece, _, _) in enumerate(plan.sends):
            if step == s:
                rows.setdefault(piece, []).append(number)
        free: dict[int, int] = {}
        ended = begun
        for piece, numbers in rows.items():
            at = max(free.get(links[n], begun) for n in numbers)
            for n in numbers:
                start[n] = at
                free[links[n]] = at + took[sizes[piece]][links[n]]
                ended = max(ended, free[links[n]] + latency[links[n]])
        begun = ended
    count = len(start)
    return Schedule(
        ticks, transfers.piece_block, transfers.piece_bytes, start, transfers.piece, transfers.adds,
        np.arange(count + 1, dtype=np.int64), transfers.link,
    )  # fmt: skip
