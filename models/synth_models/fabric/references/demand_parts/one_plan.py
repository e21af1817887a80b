"""One fixed plan for a set of demands: that of the largest bytes of every pair, of which each demand leaves some out.

A transfer that has fewer bytes holds its links for less long and arrives no later. With the same routes, and the same
order on every link, everything starts no later then (by induction over the order). So the plan serves every demand that
asks for no more from any pair, in no more time: each in the set, and every average of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth.family import Verdict
from synth.kernels import jit
from synth_models.fabric.references.demand_parts.balanced_plan import Plan
from synth_models.fabric.references.demand_parts.layout import RouteTable
from synth_models.fabric.references.demand_parts.timeline import Pieces, Placed
from synth_models.fabric.solution import Schedule


@dataclass(frozen=True, eq=False)
class Corner:
    """A demand of the set under the fixed plan: ``seconds`` until its last byte has arrived, by the replay; a certified
    lower ``bound`` of what any plan of its own takes; what the replay and the certificate's check found."""

    schedule: Schedule
    seconds: float
    bound: float
    verdict: Verdict

    @property
    def regret(self) -> float:
        """By what part of its bound the demand takes longer than that, at most."""
        return self.seconds / self.bound - 1 if self.bound else 0.0


@dataclass(frozen=True, eq=False)
class OnePlan:
    """The plan that serves them all: ``seconds`` is the most that any demand takes that asks for no more of any pair
    than one in the set; a ``corner`` each."""

    seconds: float
    schedule: Schedule
    corners: tuple[Corner, ...]

    @property
    def worst_regret(self) -> float:
        """The largest regret of the corners."""
        return max((corner.regret for corner in self.corners), default=0.0)


def left_of(plan: Plan, wanted: IntArray, resources: int) -> Plan:
    """What is left of a plan of which every pair of ranks has only ``wanted`` bytes, shape (ranks, ranks), the first to
    arrive: the same routes, and the same order on every link, without the pauses."""
    pieces, transfers = plan.pieces, plan.transfers
    arrival = np.zeros(len(pieces.bytes), dtype=np.int64)
    np.maximum.at(arrival, transfers.piece, transfers.end)
    order = np.lexsort((arrival, pieces.goal, pieces.origin))
    pair = (pieces.origin * len(wanted) + pieces.goal)[order]
    before = np.cumsum(pieces.bytes[order]) - pieces.bytes[order]
    first = np.append(True, np.diff(pair) > 0)[: len(pair)]
    before -= before[first][np.cumsum(first) - 1]
    size = np.empty(len(pair), dtype=np.int64)
    size[order] = np.clip(wanted.reshape(-1)[pair] - before, 0, pieces.bytes[order])
    in_order = np.argsort(transfers.start, kind="stable")
    moved = _moved_up(transfers, in_order, size, plan.routes, resources)
    number = np.cumsum(size > 0) - 1
    moved = moved._replace(piece=number[moved.piece])
    kept = Pieces(*(column[size > 0] for column in pieces._replace(bytes=size)))
    return Plan(kept, moved, plan.routes, int(moved.end.max(initial=0)), plan.ticks_per_s)


@jit
def _moved_up(transfers: Placed, order: IntArray, size: IntArray, routes: RouteTable, resources: int) -> Placed:
    """The transfers of pieces that have any bytes, in this order on every link, each as early as it can be."""
    count = len(order)
    found = Placed(
        np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    )
    free, ready = np.zeros(resources, dtype=np.int64), np.zeros(len(size), dtype=np.int64)
    top = 0
    for t in order:
        p, r = transfers.piece[t], transfers.route[t]
        if size[p] == 0:
            continue
        start = ready[p]
        for e in range(routes.used[r], routes.used[r + 1]):
            start = max(start, free[routes.resource[e]] - routes.offset[e])
        for e in range(routes.used[r], routes.used[r + 1]):
            free[routes.resource[e]] = start + routes.offset[e] + routes.per_byte[e] * size[p]
        ready[p] = start + routes.latency[r] + routes.slowest[r] * size[p]
        found.piece[top], found.route[top], found.start[top], found.end[top] = p, r, start, ready[p]
        top += 1
    return Placed(found.piece[:top], found.route[:top], found.start[:top], found.end[:top])
