"""Which spine each pair of boxes behind two leaf switches sends over, so that links to spines carry as much as others.

Routes are found for pairs of boxes that send equal amounts. Of a demand of unequal amounts a pair goes over another
spine, on all rails, where both links of its way then carry less than the fuller one of those that it leaves; unless
NICs take longer than all links to spines, as their order then counts for more.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.demands.balanced_plan import Plan
from synth_models.fabric.plans.demands.layout import Layout, RouteTable, timed_routes
from synth_models.fabric.plans.demands.narrow_leaves import Crossing, crossing, leaf_plan
from synth_models.fabric.plans.demands.rails import on_rails
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import picked

PASSES = 8  # over all pairs at most, while any changes


@dataclass(frozen=True, eq=False)
class Spines:
    """The routes of a ``layout``, and behind these those over every spine: from rank g of box b to that of box c over
    spine k the one of number ``number[b, c, g, k]``, -1 where two boxes are at one leaf switch; ``own[b, c]`` is the
    spine that the layout has. ``up`` and ``down`` number the links of rail 0, shape (boxes, boxes, spines)."""

    layout: Layout
    routes: RouteTable
    number: IntArray
    own: IntArray
    up: IntArray
    down: IntArray

    def balanced(self, demand: IntArray, wide: float) -> Layout:
        """The layout with the spines for a demand, bytes from rank to rank, shape (ranks, ranks), where links to spines
        carry those of so many NICs."""
        boxes, size = self.layout.boxes, self.layout.size
        _, fullest = on_rails(demand, boxes, size)
        spine, before = spread(np.where(self.own >= 0, fullest, 0), self.own, self.up, self.down)
        nics = wide * max(fullest.sum(axis=0).max(), fullest.sum(axis=1).max())
        if before <= nics or np.array_equal(spine, self.own):
            return self.layout
        chosen = np.arange(len(self.layout.routes.latency), dtype=np.int64)
        b, c = np.nonzero(self.own >= 0)
        base = ((b * boxes + c) * size)[:, None] + np.arange(size)
        chosen[base] = self.number[b, c, :, spine[b, c]]
        return replace(self.layout, routes=_picked(self.routes, chosen))


def spines_of(instance: FabricInstance, layout: Layout, over: Crossing) -> Spines | None:
    """All ways from leaf switch to leaf switch over one spine, which is in the middle of a way; None where there is
    one, or where pairs of boxes or rails have unequally many."""
    boxes, size, routes, net = layout.boxes, layout.size, layout.routes, instance.machine.network
    count = boxes * boxes * size
    far = np.flatnonzero(np.repeat(over.up.reshape(-1) >= 0, size))
    hops = routes.row[far + 1] - routes.row[far]
    at = routes.row[far] + hops // 2 - 1
    if np.any(hops % 2 != 0):
        return None
    up, down = routes.link[at], routes.link[at + 1]
    ways = _ways(instance.machine)
    found = [ways[int(net.src[u]), int(net.dst[d])] for u, d in zip(up, down, strict=True)]
    spines = min(map(len, found))
    if spines < 2 or any(len(one) != spines for one in found):
        return None
    pairs = np.array(found, dtype=np.int64)  # of each route and spine the links up and down
    own = np.argmax((pairs[:, :, 0] == up[:, None]) & (pairs[:, :, 1] == down[:, None]), axis=1)
    same = [np.all(of[pairs] == of[np.stack([up, down], axis=1)][:, None]) for of in (net.bandwidth, net.latency)]
    placed = np.full((boxes * boxes, size), -1, dtype=np.int64)
    placed.reshape(-1)[far] = own
    if not all(same) or np.any(placed != placed[:, :1]):
        return None
    start, link = picked((routes.row, routes.link), np.repeat(far, spines))
    first = start[:-1] + np.repeat(at - routes.row[far], spines)
    link[first], link[first + 1] = pairs.reshape(-1, 2).T
    start = np.concatenate([routes.row, routes.row[-1] + start[1:]])
    table = timed_routes(instance, start, np.concatenate([routes.link, link]), layout.ticks_per_s)
    number = np.full((count, spines), -1, dtype=np.int64)
    number[far] = len(routes.latency) + np.arange(len(far) * spines).reshape(-1, spines)
    ends = np.full((2, count, spines), -1, dtype=np.int64)
    ends[:, far] = np.moveaxis(pairs, 2, 0)
    one = ends.reshape(2, boxes, boxes, size, spines)[:, :, :, 0]
    return Spines(layout, table, number.reshape(boxes, boxes, size, spines), placed[:, 0].reshape(boxes, boxes),
                  one[0], one[1])  # fmt: skip


def _ways(machine: Machine) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """The links up and down from every switch to every switch over one other, in the order of these."""
    net, switch = machine.network, machine.is_switch
    out, found = defaultdict(list), defaultdict(list)
    between = np.flatnonzero(switch[net.src] & switch[net.dst]).tolist()
    for d in between:
        out[int(net.src[d])].append(d)
    for u in sorted(between, key=lambda u: (int(net.dst[u]), u)):
        for d in out[int(net.dst[u])]:
            found[int(net.src[u]), int(net.dst[d])].append((u, d))
    return found


@dataclass(frozen=True, eq=False)
class Leaves:
    """A ``layout`` behind leaf switches: pairs of boxes that share links to spines, and their other spines."""

    layout: Layout
    over: Crossing
    spines: Spines | None

    @classmethod
    def of(cls, instance: FabricInstance, layout: Layout) -> Leaves | None:
        """None where boxes are not behind leaf switches."""
        over = crossing(layout)
        return None if over is None else cls(layout, over, spines_of(instance, layout, over))

    def plan(self, demand: IntArray) -> Plan:
        """The plan of a demand, bytes from rank to rank in the order of the layout, shape (ranks, ranks)."""
        layout = self.layout if self.spines is None else self.spines.balanced(demand, self.over.wide)
        over = self.over if layout is self.layout else crossing(layout)
        assert over is not None
        return leaf_plan(layout, demand, over)


@jit
def spread(amount: IntArray, own: IntArray, up: IntArray, down: IntArray) -> tuple[IntArray, int]:
    """The spine of every pair of boxes, shape (boxes, boxes), -1 where it has none: that of its ``own``, or where both
    links have less to carry, the pair with the most bytes first; and what the fullest link carried before."""
    boxes, spines, spine = len(amount), up.shape[2], own.copy()
    load = np.zeros((2, max(up.max(), down.max()) + 1), np.int64)
    for b in range(boxes):
        for c in range(boxes):
            if own[b, c] >= 0:
                load[0, up[b, c, own[b, c]]] += amount[b, c]
                load[1, down[b, c, own[b, c]]] += amount[b, c]
    before = load.max()
    order = np.argsort(-amount.reshape(-1), kind="mergesort")
    for _ in range(PASSES):
        changed = False
        for pair in order:
            b, c = pair // boxes, pair % boxes
            x, k = amount[b, c], spine[b, c]
            if x == 0 or k < 0:
                continue
            best, least = k, max(load[0, up[b, c, k]], load[1, down[b, c, k]])
            for other in range(spines):
                most = max(load[0, up[b, c, other]], load[1, down[b, c, other]]) + x
                if other != k and most < least:
                    best, least = other, most
            if best != k:
                changed = True
                spine[b, c] = best
                for e, ends in enumerate((up, down)):
                    load[e, ends[b, c, k]] -= x
                    load[e, ends[b, c, best]] += x
        if not changed:
            break
    return spine, before


def _picked(routes: RouteTable, chosen: IntArray) -> RouteTable:
    """The routes of these numbers, in this order."""
    row, link = picked((routes.row, routes.link), chosen)
    used, entry = picked((routes.used, np.arange(routes.used[-1])), chosen)
    resource, offset, per_byte = (column[entry] for column in (routes.resource, routes.offset, routes.per_byte))
    return RouteTable(row, link, used, resource, offset, per_byte, routes.latency[chosen], routes.slowest[chosen])
