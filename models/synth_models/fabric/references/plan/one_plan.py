"""One fixed plan for a set of demands: that of the largest bytes of every pair, of which each demand leaves some out.

A transfer that has fewer bytes holds its links for less long and arrives no later. With the same routes, and the same
order on every link, the times of the plan still meet all that transfers wait for, and the earliest times that do are
no later. So the plan serves every demand that asks for no more from any pair, in no more time: each in the set, and
every average of them. The order on a link is that in which transfers enter it, a latency after they start: it differs
from link to link, and two transfers may each wait for the other on some link. So times are found by repetition.

**Near a demand.** Of all demands between two, ``less <= D <= more`` in every number, none takes longer under the plan
than ``more``, and none can take less than the bound of ``less``: its schedule would serve ``less``, too.
**Averages** of the set's demands take no longer than the plan itself, and a mixture of cuts and prices bounds them from
below (:mod:`synth_models.fabric.bounds.many_demands`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth.method import Verdict
from synth_models.fabric.plans.demands.balanced_plan import Plan
from synth_models.fabric.plans.demands.layout import RouteTable
from synth_models.fabric.plans.demands.timeline import Pieces, Placed
from synth_models.fabric.solution import Schedule


@dataclass(frozen=True, eq=False)
class Corner:
    """A demand of the set under the fixed plan, and all that are near it: the most ``seconds`` that any of them takes,
    by the replay of the largest; a certified lower ``bound`` of what any plan of their own takes, by the certificate of
    the least; what the replay and the certificate's check found."""

    schedule: Schedule
    seconds: float
    bound: float
    verdict: Verdict

    @property
    def regret(self) -> float:
        """By what part of its bound a demand takes longer than that, at most."""
        return _regret(self.seconds, self.bound)


@dataclass(frozen=True, eq=False)
class OnePlan:
    """The plan that serves them all: ``seconds`` is the most that any demand takes that asks for no more of any pair
    than one in the set; a ``corner`` each; what every average of the set takes at least, ``average_bound`` (0: not
    known); what the check found of the plan and of the arguments for that bound."""

    seconds: float
    schedule: Schedule
    corners: tuple[Corner, ...]
    average_bound: float
    verdict: Verdict

    @property
    def worst_regret(self) -> float:
        """The largest regret of the corners."""
        return max((corner.regret for corner in self.corners), default=0.0)

    @property
    def average_regret(self) -> float:
        """The regret of every average of the set's demands, at most."""
        return _regret(self.seconds, self.average_bound)


def _regret(seconds: float, bound: float) -> float:
    return seconds / bound - 1 if bound else math.inf if seconds else 0.0


def left_of(plan: Plan, wanted: IntArray) -> Plan:
    """What is left of a plan of which every pair of ranks has only ``wanted`` bytes, shape (ranks, ranks), the first to
    arrive: the same routes, and the same order on every link, at the earliest times."""
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
    moved = _moved_up(transfers, size, plan.routes)
    number = np.cumsum(size > 0) - 1
    moved = moved._replace(piece=number[moved.piece])
    kept = Pieces(*(column[size > 0] for column in pieces._replace(bytes=size)))
    return Plan(kept, moved, plan.routes, int(moved.end.max(initial=0)), plan.ticks_per_s)


def _moved_up(transfers: Placed, size: IntArray, routes: RouteTable) -> Placed:
    """The transfers of pieces that have any bytes, in the order of their entry on every link, as early as can be."""
    kept = np.flatnonzero(size[transfers.piece] > 0)
    kept = kept[np.argsort(transfers.start[kept], kind="stable")]
    piece, route, start = transfers.piece[kept], transfers.route[kept], transfers.start[kept]
    later, earlier, pause = _waits(piece, route, start, transfers.end[kept], size, routes)
    order = np.argsort(later, kind="stable")
    row = np.searchsorted(later[order], np.arange(len(kept) + 1))
    begins = _earliest(row.astype(np.int64), earlier[order], pause[order])
    return Placed(piece, route, begins, begins + routes.latency[route] + routes.slowest[route] * size[piece])


def _waits(
    piece: IntArray, route: IntArray, start: IntArray, end: IntArray, size: IntArray, routes: RouteTable
) -> tuple[IntArray, IntArray, IntArray]:
    """What waits for what, three equal columns: the start of transfer ``later`` is that of ``earlier`` and ``pause``
    ticks at the earliest, because it enters a link next, or takes the same piece on."""
    used = np.diff(routes.used)[route]
    owner = np.repeat(np.arange(len(route)), used)
    entry = np.arange(len(owner)) - np.repeat(np.cumsum(used) - used - routes.used[route], used)
    resource, offset = routes.resource[entry], routes.offset[entry]
    held = routes.per_byte[entry] * size[piece[owner]]
    order = np.lexsort((held, start[owner] + offset, resource))
    first, second = order[:-1], order[1:]
    same = (resource[first] == resource[second]) & (owner[first] != owner[second])
    first, second = first[same], second[same]
    on_link = offset[first] + held[first] - offset[second]
    chain = np.lexsort((end, start, piece))
    again = piece[chain[:-1]] == piece[chain[1:]]
    hop, following = chain[:-1][again], chain[1:][again]
    on_the_way = routes.latency[route[hop]] + routes.slowest[route[hop]] * size[piece[hop]]
    later = np.concatenate([owner[second], following])
    return later, np.concatenate([owner[first], hop]), np.concatenate([on_link, on_the_way])


@jit
def _earliest(row: IntArray, earlier: IntArray, pause: IntArray) -> IntArray:
    """The least starts from 0 on that keep all waits; those of transfer t are ``row[t]:row[t + 1]``. It ends, because
    some starts keep them all."""
    start = np.zeros(len(row) - 1, np.int64)
    moved = True
    while moved:
        moved = False
        for t in range(len(start)):
            begin = start[t]
            for k in range(row[t], row[t + 1]):
                begin = max(begin, start[earlier[k]] + pause[k])
            if begin > start[t]:
                start[t] = begin
                moved = True
    return start
