"""What the references take for a demand at least: quicker than to run them, so that only those run that may be quicker.

``direct`` and ``two_step``: their routes, as they choose them, of ``direct`` also the even ones; for ``two_step``
between equal boxes at first only those that have no equal, with all that goes over them. Whatever the number of chunks,
a link is occupied for all bytes that go over it, or for those of farther ways only, after the latencies of the way
there and before those of the way on.
``fast``: its stages on one rail, each of which waits for the one before; what stays in a box goes over its
ranks' links.
``spread_out``: a chain of transfers that wait for each other, each of which takes the quickest way or longer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from synth.arrays import SAME, FloatArray, IntArray
from synth.kernels import jit
from synth_models.fabric.instance import MOST_BYTES, FabricInstance
from synth_models.fabric.plans.demands.decomposition import Stages, decomposed
from synth_models.fabric.plans.demands.layout import Layout
from synth_models.fabric.plans.even_ways import PARTS, evenly
from synth_models.fabric.plans.pair_edges import by_rail_then_inside, step_after_step, straight_to_goals
from synth_models.fabric.plans.pair_paths import once
from synth_models.fabric.references.plan.load_rows import Carried, heads_and_tails, longest_row, over_own_rails
from synth_models.fabric.routes.quickest_routes import only_routes, quickest
from synth_models.fabric.routes.routes_in_turn import Edges
from synth_models.fabric.routes.search import MOST_THRESHOLDS, Routes
from synth_models.fabric.scheduling.moves import MANY_EDGES
from synth_models.fabric.scheduling.transfers import Transfers

ROUNDED = 1 - 1e-9  # floats here are sums of at most a few million numbers
ROUNDED_OVER_RANKS = 1 - 1e-6  # and of ways that are no slower than the quickest but for so much


@dataclass(frozen=True, eq=False)
class Demand:
    """Blocks from node ``origin`` to node ``goal`` of ``size`` bytes, in the order in which a reference takes them,
    shape (blocks,); the same as a ``matrix`` in the order of the process group, and ``boxed`` in that of the boxes."""

    origin: IntArray
    goal: IntArray
    size: IntArray
    matrix: IntArray
    boxed: IntArray


class ReferenceBounds:
    """Lower bounds, in seconds, of what every reference takes on the machine of an instance. ``layout``: that of the
    machine, None where ``fast`` does not know it."""

    def __init__(self, machine: FabricInstance, layout: Layout | None) -> None:
        self._machine, self._layout = machine, layout
        self.sent: Transfers | None = None  # of the reference that was asked for last, if its routes were looked for
        self.others = False  # whether it has other routes too

    def least(self, name: str, demand: Demand, enough: float) -> float:
        """What a reference takes at least; nothing better is looked for than ``enough``. Raises
        :class:`synth.errors.UnsupportedError` where it has no way."""
        self.sent, self.others = None, False
        if name == "direct":
            return self._of_direct(demand, enough)
        if name == "fast":
            return self._of_fast(demand, enough)
        if name == "spread_out":
            return self._of_spread_out(demand, enough)
        return self._of_two_step(demand, enough)

    def _of_direct(self, demand: Demand, enough: float) -> float:
        """By its routes, whichever of them have least to do."""
        least = self._of_routes(demand, straight_to_goals, enough)
        edges = straight_to_goals(self._machine, demand.origin, demand.goal)
        for parts in PARTS:
            even = evenly(self._machine, demand.size, edges, parts)
            if even is None:
                continue
            self.others = True
            least = min(least, self._of_transfers(even, enough))
        return least

    def _of_two_step(self, demand: Demand, enough: float) -> float:
        """By the sums over routes that have no equal; where these are not enough, by all routes."""
        if self._layout is not None and len(demand.size) >= MANY_EDGES:
            summed = self._of_own_rails(self._layout, demand, enough)
            if summed >= enough:
                return summed
        return self._of_routes(demand, by_rail_then_inside, enough)

    def _of_own_rails(self, layout: Layout, demand: Demand, enough: float) -> float:
        """By what every rank sends each box over its own rail, and what is handed on there."""
        boxes, size, node = layout.boxes, layout.size, layout.node.reshape(layout.boxes, layout.size)
        routes = Routes.of(self._machine, int(demand.size.max()))
        rails = only_routes(routes, np.repeat(node, boxes), np.tile(node.T, (boxes, 1)).reshape(-1))
        hops = only_routes(routes, np.repeat(node, size), np.repeat(node, size, axis=0).reshape(-1))
        if rails is None or hops is None:
            return 0.0
        return self._by_rows(over_own_rails(demand.boxed, *rails, *hops, self._latency, boxes, size), enough)

    def _of_routes(
        self, demand: Demand, edges: Callable[[FabricInstance, IntArray, IntArray], Edges], enough: float
    ) -> float:
        """By the longest row of loads. Raises :class:`synth.errors.UnsupportedError` where there is no way."""
        self.sent = once(self._machine, demand.size, edges(self._machine, demand.origin, demand.goal))
        return self._of_transfers(self.sent, enough)

    def _of_transfers(self, sent: Transfers, enough: float) -> float:
        """By the longest row of loads of these transfers."""
        head, left = heads_and_tails(sent.route_start, sent.link, _after(sent), self._latency)
        return self._by_rows(Carried(sent.piece_bytes[sent.piece], sent.route_start, sent.link, head, left), enough)

    def _by_rows(self, carried: Carried, enough: float) -> float:
        """By the longest row of loads."""
        machine = self._machine.machine
        bandwidth = np.asarray(machine.network.bandwidth, dtype=np.float64)
        groups = len(machine.group_names)
        return ROUNDED * longest_row(carried, bandwidth, self._latency, machine.group, groups, enough / ROUNDED)

    @cached_property
    def _latency(self) -> FloatArray:
        """Seconds of every link."""
        return np.asarray(self._machine.machine.network.latency, dtype=np.float64)

    def _of_fast(self, demand: Demand, enough: float) -> float:
        """By what stays in a box; where that is not enough, by what has to be balanced before the first stage and then
        the fullest rails: those of one box, which take part in one stage after the other, or of all, stage by stage."""
        layout = self._layout
        if layout is None:
            return np.inf
        boxes, size, routes = layout.boxes, layout.size, layout.routes
        amounts = demand.boxed.reshape(boxes, size, boxes, size)
        inside = amounts[np.arange(boxes), :, np.arange(boxes), :]
        own = np.arange(size)
        each = routes.slowest[layout.inside :].reshape(boxes, size, size).astype(np.float64)
        within = inside * each
        within[:, own, own] = 0
        ticks = max(float(within.sum(axis=1).max()), float(within.sum(axis=2).max()))
        if ticks / layout.ticks_per_s * ROUNDED < enough:
            between = amounts.sum(axis=(1, 3))
            np.fill_diagonal(between, 0)
            rail = (np.arange(boxes**2) * size).reshape(boxes, boxes)
            fullest = -(-between // size)
            over = amounts.sum(axis=3) - fullest[:, None, :]  # what the sender's own rail has no room for
            over[np.arange(boxes), :, np.arange(boxes)] = 0
            balanced = float((np.maximum(over, 0).sum(axis=2) * each.min(axis=2)).max())
            alone = np.where(fullest > 0, routes.latency[rail] + routes.slowest[rail].astype(np.float64) * fullest, 0)
            staged = max(float(alone.sum(axis=0).max()), float(alone.sum(axis=1).max()))
            if (balanced + staged) / layout.ticks_per_s * ROUNDED < enough:
                staged = _stage_after_stage(decomposed(fullest), fullest, routes.latency[rail], routes.slowest[rail])
            ticks = max(ticks, balanced + staged)
        return ticks / layout.ticks_per_s * ROUNDED

    def _of_spread_out(self, demand: Demand, enough: float) -> float:
        """By the chains of transfers that wait for what was received in the steps before; where that is not enough, by
        its routes."""
        chain = 0.0
        if self._quickest is not None:
            chain = _longest_chain(demand.matrix, *self._quickest) * ROUNDED_OVER_RANKS
        if chain >= enough:
            return chain
        return max(chain, self._of_routes(demand, step_after_step, enough))

    @cached_property
    def _quickest(self) -> tuple[FloatArray, FloatArray] | None:
        """Seconds without bytes, and seconds a byte, that a block takes at least from rank to rank in the order of the
        group, shape (ranks, ranks): the least time is concave in the bytes, and so above the line between two sizes.
        None where not all bandwidths are looked at."""
        net = self._machine.machine.network
        if len(np.unique(net.bandwidth)) > MOST_THRESHOLDS:
            return None
        few, many = (quickest(Routes.of(self._machine, size)) for size in (1, MOST_BYTES))
        if few is None or many is None:
            return None
        place = np.searchsorted(self._machine.machine.ranks, self._machine.members)
        least, most = few[np.ix_(place, place)], many[np.ix_(place, place)]
        with np.errstate(invalid="ignore"):
            each = np.maximum(most * (1 - SAME * len(place)) - least, 0) / MOST_BYTES
        found = np.maximum(least - each, 0)
        there = np.isfinite(least) & np.isfinite(each)
        return np.where(there, found, 0.0), np.where(there, each, 0.0)


def alike(one: Transfers | None, other: Transfers | None) -> bool:
    """Whether the same is sent over the same routes, in the same order and after the same."""
    if one is None or other is None:
        return False
    return all(np.array_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))


def _after(sent: Transfers) -> IntArray:
    """The transfer that brings the piece of each, -1 for the first."""
    after = np.full(len(sent.piece), -1, dtype=np.int64)
    after[np.diff(sent.before_start) > 0] = sent.before
    return after


@jit
def _stage_after_stage(stages: Stages, fullest: IntArray, latency: IntArray, slowest: IntArray) -> float:
    """Ticks of all stages one after the other on the rail that is fullest for every pair of boxes, each until its last
    bytes have come: a latency, and ``slowest`` ticks a byte; shape (boxes, boxes) each."""
    left, total = fullest.copy(), 0.0
    for k in range(len(stages.length)):
        longest = 0.0
        for b in range(len(left)):
            c = stages.target[k, b]
            amount = min(left[b, c], stages.length[k])
            if amount > 0:
                left[b, c] -= amount
                longest = max(longest, latency[b, c] + float(slowest[b, c]) * amount)
        total += longest
    return total


@jit
def _longest_chain(matrix: IntArray, least: FloatArray, each: FloatArray) -> float:
    """Seconds until everything has arrived where in step k rank i sends to i + k, after what it received last in the
    steps before has come; a block takes ``least`` and ``each`` times its bytes."""
    n = len(matrix)
    received, now = np.zeros(n), np.zeros(n)
    most = 0.0
    for step in range(1, n):
        for i in range(n):
            j = (i + step) % n
            if matrix[i, j] > 0:
                now[j] = received[i] + least[i, j] + each[i, j] * matrix[i, j]
                most = max(most, now[j])
        received[:] = now
    return most
