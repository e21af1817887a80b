"""The plan of small messages between equal boxes: a block hops inside a box before its rail or behind it.

A rail first carries blocks that hop behind it, which can begin at once, and last those that hop before it, which end
at once. So every block takes the way that leaves its links most room for what comes as far, for what goes as far, and
for all; blocks of busy ranks may hop on both sides. Each piece has a moment at which it would cross its rail if that
carried one kind after the other, its blocks to one box after the other, without a pause: until the end, where the
busier of the piece's two ends has less to carry, or each as long as it takes. In that order pieces are placed as early
as all links are free: all hops before rails, and then all on rails and behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.demands.layout import Layout, RouteTable, timed_routes
from synth_models.fabric.plans.demands.timeline import Pieces, Placed, placed_along
from synth_models.fabric.references.plan.straight_plan import StraightRoutes, cut_blocks

BOTH, BEHIND, BEFORE, ALONE, INSIDE = range(5)  # the sides of the rail on which a piece hops, in the order of placing
KINDS = 5
FULL = 0.95  # of the time that a link has, from which on pieces may hop on both sides
LEAST = 1e-4  # of the target, that is left for bytes whatever the latency: who comes later pays for it
ENOUGH = Fraction(1, 25)  # a gap with which nothing else is tried
MUCH = Fraction(1, 12)  # and one from which on smaller pieces are tried
WIDE = Fraction(1, 8)  # and one from which on anything else is tried
MANY = 128  # between more ranks than these


class Try(NamedTuple):
    """No piece is longer than one of so many ``cells`` of the time on the rails of the busiest box; the time that is
    aimed at is the bound ``above`` times; ``stretched`` as in :func:`_moments`; a gap of which is ``enough``."""

    cells: int
    above: float
    stretched: bool
    enough: Fraction


TRIES = (
    Try(48, 1.03, True, ENOUGH),
    Try(48, 1.03, False, MUCH),
    Try(96, 1.1, True, MUCH),
    Try(192, 1.03, True, MUCH),
)
TRIES_OF_MANY = (Try(48, 1.03, True, WIDE), Try(96, 1.1, True, WIDE))


@dataclass(frozen=True, eq=False)
class RelayedRoutes:
    """Direct routes between ranks of equal boxes: ``route[i, j]`` of the table, -1 where there is none."""

    boxes: int
    size: int
    route: IntArray
    routes: RouteTable
    resources: int
    ticks_per_s: int

    @classmethod
    def of(cls, instance: FabricInstance, layout: Layout, straight: StraightRoutes | None) -> RelayedRoutes:
        """Those of a layout, and those that blocks take straight across boxes."""
        boxes, size, ranks = layout.boxes, layout.size, layout.ranks
        route = np.full((ranks, ranks), -1, dtype=np.int64)
        box, place = np.divmod(np.arange(ranks), size)
        for g in range(size):
            mine = np.flatnonzero(place == g)
            route[np.ix_(mine, mine)] = (box[mine][:, None] * boxes + box[mine]) * size + g
        same = box[:, None] == box
        inside = layout.inside + np.arange(ranks)[:, None] * size + place
        route[same] = inside[same]
        np.fill_diagonal(route, -1)
        start, link = layout.routes.row, layout.routes.link
        if straight is not None:
            alone = (np.diff(straight.row) == 1).reshape(ranks, ranks) & (route < 0)
            route[alone] = len(start) - 1 + straight.route[straight.row[:-1].reshape(ranks, ranks)[alone]]
            link = np.concatenate([link, straight.routes.link])
            start = np.concatenate([start, start[-1] + straight.routes.row[1:]])
        table = timed_routes(instance, start, link, layout.ticks_per_s)
        return cls(boxes, size, route, table, layout.resources, layout.ticks_per_s)

    @property
    def per_byte(self) -> tuple[int, int]:
        """Ticks that a byte takes on a rail, and between ranks of a box."""
        inside = int(self.routes.slowest[self.route[0, 1]]) if self.size > 1 else 1
        return int(self.routes.slowest[self.route[0, self.size]]), inside

    def ticks_of(self, demand: IntArray) -> tuple[int, int]:
        """Ticks for which the rails of the busiest box are occupied if they share what it sends or receives, or the
        busiest rank by what stays in its box; and those of a rail's latency."""
        between, within = _busiest(demand, self.size)
        rail, inside = self.per_byte
        return max(between * rail, within * inside), int(self.routes.latency[self.route[0, self.size]])


def relayed_plan(found: RelayedRoutes, demand: IntArray, bound: int) -> tuple[Pieces, Placed]:
    """Pieces and transfers of a demand, bytes from rank to rank in the order of the layout: the quickest of all that is
    tried. ``bound``: ticks below which no plan is."""
    best: tuple[Pieces, Placed] | None = None
    chosen, known = None, (0, 0.0)
    for tried in TRIES_OF_MANY if len(demand) > MANY else TRIES:
        if chosen is None or known != (tried.cells, tried.above):
            chosen, known = _cut_and_chosen(found, demand, bound, tried), (tried.cells, tried.above)
        made = _in_order(found, bound, tried, chosen)
        if best is None or made[1].end.max(initial=0) < best[1].end.max(initial=0):
            best = made
        if int(best[1].end.max(initial=0)) * (1 - tried.enough) <= bound:
            break
    assert best is not None
    return best


class Chosen(NamedTuple):
    """Pieces, largest first, the kind of each, and the ranks between which its rail is, shape (pieces,)."""

    pieces: Pieces
    kind: IntArray
    first: IntArray
    last: IntArray


def _cut_and_chosen(found: RelayedRoutes, demand: IntArray, bound: int, tried: Try) -> Chosen:
    """The pieces of a demand and the way of each."""
    size, cell = found.size, found.ticks_of(demand)[0] // tried.cells
    pieces = _pieces(demand, size, *(max(cell // each, 1) for each in found.per_byte))
    ends = pieces.origin, pieces.goal, pieces.bytes
    return Chosen(pieces, *_chosen(*ends, found.route, found.routes, size, found.resources, bound * tried.above))


def _in_order(found: RelayedRoutes, bound: int, tried: Try, chosen: Chosen) -> tuple[Pieces, Placed]:
    """The pieces, placed in the order of their moments."""
    window = max(bound * tried.above - int(found.routes.latency[found.route[0, found.size]]), bound * LEAST)
    moments = _moments(found, chosen, window, tried.stretched)
    return chosen.pieces, placed_in_order(found, chosen.pieces, chosen.first, chosen.last, moments)


def placed_in_order(
    found: RelayedRoutes, pieces: Pieces, first: IntArray, last: IntArray, moments: IntArray | FloatArray
) -> Placed:
    """The transfers of pieces whose rails are between the ranks ``first`` and ``last``, placed in the order of their
    moments: first to their rails, then over them and on; shape (pieces,) each."""
    routes = found.routes
    row, way = _ways(pieces.origin, pieces.goal, first, last, found.route)
    begins, order = np.zeros(len(pieces.bytes), dtype=np.int64), np.argsort(moments, kind="stable")
    before = (pieces.origin != first).astype(np.int64)
    return placed_along(order, pieces.bytes, begins, before, row, way, routes, found.resources)


def _moments(found: RelayedRoutes, chosen: Chosen, window: float, stretched: bool) -> FloatArray:
    """When every piece would cross its rail, in ticks, shape (pieces,), within a ``window`` that begins at 0. What hops
    behind comes first, what hops before comes last, what does neither between them; ``stretched``: slower where the
    busier end would be done before the window is."""
    pieces, kind, first, last = chosen
    boxes, ranks, rate = found.boxes, found.boxes * found.size, found.per_byte[0]
    ticks = np.zeros((KINDS, len(pieces.bytes)))
    for k in (BOTH, BEHIND, BEFORE, ALONE):
        sizes = np.where(kind == k, pieces.bytes, 0).astype(np.float64) * rate
        ends = [np.bincount(end, sizes, minlength=ranks) for end in (first, last)]
        ticks[k] = np.maximum(ends[0][first], ends[1][last])
    if stretched:
        sizes = np.where(kind == INSIDE, 0, pieces.bytes).astype(np.float64) * rate
        ends = [np.bincount(end, sizes, minlength=ranks) for end in (first, last)]
        ticks *= window / np.maximum(np.maximum(ends[0][first], ends[1][last]), 1)
    phase = (pieces.goal // found.size - pieces.origin // found.size) % boxes / boxes
    share = (pieces.turn + phase) / _pieces_of_block(pieces, ranks)
    between = np.maximum(window - ticks[BEFORE] - ticks[BEHIND], 0 if stretched else ticks[ALONE])
    begin = [(window - ticks[BOTH]) / 2, 0, window - ticks[BEFORE], ticks[BEHIND], 0]
    length = [ticks[BOTH], ticks[BEHIND], ticks[BEFORE], between, window]
    moment: FloatArray = np.choose(kind, begin) + share * np.choose(kind, length)
    return moment


def _pieces_of_block(pieces: Pieces, ranks: int) -> IntArray:
    """In how many pieces the block of every piece goes, shape (pieces,)."""
    block = pieces.origin * ranks + pieces.goal
    found: IntArray = np.bincount(block, minlength=ranks**2)[block]
    return found


@jit
def _busiest(demand: IntArray, size: int) -> tuple[int, int]:
    """The most bytes that a rank sends to or receives from other boxes, on average over the box's ranks; and those that
    one sends or receives within its box."""
    most, within = np.int64(0), np.int64(0)
    for b in range(0, len(demand), size):
        block = demand[b : b + size, b : b + size]
        own = block.sum()
        most = max(most, (demand[b : b + size].sum() - own) // size, (demand[:, b : b + size].sum() - own) // size)
        for g in range(size):
            within = max(within, block[g].sum() - block[g, g], block[:, g].sum() - block[g, g])
    return int(most), int(within)


def _pieces(demand: IntArray, size: int, across: int, within: int) -> Pieces:
    """As :func:`cut_blocks`, the largest first."""
    found = cut_blocks(demand, size, across, within)
    order = np.argsort(-found.bytes, kind="stable")
    return Pieces(found.origin[order], found.goal[order], found.rail, found.bytes[order], found.turn[order])


@jit
def _chosen(
    origin: IntArray, goal: IntArray, amount: IntArray, route: IntArray, routes: RouteTable, size: int, resources: int,
    target: float,
) -> tuple[IntArray, IntArray, IntArray]:  # fmt: skip
    """The kind of every piece, and the ranks between which its rail is."""
    count = len(origin)
    load = np.zeros((resources, KINDS), np.int64)
    kind, first, last = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    for p in range(count):
        if origin[p] // size == goal[p] // size:
            kind[p], first[p], last[p] = INSIDE, origin[p], goal[p]
            _add(load, routes, route[origin[p], goal[p]], amount[p], INSIDE)
    for p in range(count):
        i, j = origin[p], goal[p]
        if kind[p] == INSIDE:
            continue
        b, c = i // size * size, j // size * size
        best, full = np.inf, np.inf
        if route[i, j] >= 0:
            best, full = _cost(load, routes, route, i, i, j, j, amount[p], ALONE, target)
            kind[p], first[p], last[p] = ALONE, i, j
        r = c + i % size
        if r != j:
            cost, much = _cost(load, routes, route, i, i, r, j, amount[p], BEHIND, target)
            if cost < best:
                best, full, kind[p], first[p], last[p] = cost, much, BEHIND, i, r
        r = b + j % size
        if r != i:
            cost, much = _cost(load, routes, route, i, r, j, j, amount[p], BEFORE, target)
            if cost < best:
                best, full, kind[p], first[p], last[p] = cost, much, BEFORE, r, j
        for turn in range(size if full > FULL else 0):
            r = (j + turn) % size
            if b + r != i and c + r != j:
                cost, much = _cost(load, routes, route, i, b + r, c + r, j, amount[p], BOTH, target)
                if cost < best:
                    best, kind[p], first[p], last[p] = cost, BOTH, b + r, c + r
        if first[p] != i:
            _add(load, routes, route[i, first[p]], amount[p], INSIDE)
        _add(load, routes, route[first[p], last[p]], amount[p], kind[p])
        if last[p] != j:
            _add(load, routes, route[last[p], j], amount[p], INSIDE)
    return kind, first, last


@jit
def _ways(
    origin: IntArray, goal: IntArray, first: IntArray, last: IntArray, route: IntArray
) -> tuple[IntArray, IntArray]:
    """The routes of every piece, ``way[row[p]:row[p + 1]]``."""
    count = len(origin)
    row, way, top = np.zeros(count + 1, np.int64), np.zeros(3 * count, np.int64), 0
    for p in range(count):
        if first[p] != origin[p]:
            way[top] = route[origin[p], first[p]]
            top += 1
        way[top] = route[first[p], last[p]]
        top += 1
        if last[p] != goal[p]:
            way[top] = route[last[p], goal[p]]
            top += 1
        row[p + 1] = top
    return row, way[:top]


@jit(inlined=True)
def _add(load: IntArray, routes: RouteTable, r: int, amount: int, kind: int) -> None:
    """Count the ticks of a piece on all that a route occupies."""
    for e in range(routes.used[r], routes.used[r + 1]):
        load[routes.resource[e], kind] += routes.per_byte[e] * amount


@jit(inlined=True)
def _cost(
    load: IntArray, routes: RouteTable, route: IntArray, i: int, first: int, last: int, j: int, amount: int, kind: int,
    target: float,
) -> tuple[float, float]:  # fmt: skip
    """What a piece costs that hops from i to ``first``, goes on to ``last`` and hops to j: by how much the eighth
    powers of the shares of the time grow for which links are occupied by what comes as far, by what goes as far, by
    both, and by all; and the largest of these shares."""
    rail = route[first, last]
    latency = routes.latency[rail]
    whole = latency
    if first != i:
        whole += routes.latency[route[i, first]]
    if last != j:
        whole += routes.latency[route[last, j]]
    least = target * LEAST
    room, late = max(target - latency, least), max(target - whole, least)
    cost, full = 0.0, 0.0
    for e in range(routes.used[rail], routes.used[rail + 1]):
        x = routes.resource[e]
        both, own = load[x, BOTH], routes.per_byte[e] * amount
        behind, before = both + load[x, BEHIND], both + load[x, BEFORE]
        every = behind + load[x, BEFORE] + load[x, ALONE]
        cost += _power((every + own) / room) - _power(every / room)
        full = max(full, (every + own) / room)
        if kind == BEHIND:
            cost += _power((behind + own) / late) - _power(behind / late)
            full = max(full, (behind + own) / late)
        if kind == BEFORE:
            cost += _power((before + own) / late) - _power(before / late)
            full = max(full, (before + own) / late)
        if kind == BOTH:
            cost += _power((max(before, behind) + own) / late) - _power(max(before, behind) / late)
    if first != i:
        cost += _held(load, routes, route[i, first], amount, late)
    if last != j:
        cost += _held(load, routes, route[last, j], amount, late)
    return cost, full


@jit(inlined=True)
def _power(share: float) -> float:
    """The eighth power."""
    twice = share * share
    fourth = twice * twice
    return fourth * fourth


@jit(inlined=True)
def _held(load: IntArray, routes: RouteTable, r: int, amount: int, late: float) -> float:
    """What a hop inside a box costs."""
    cost = 0.0
    for e in range(routes.used[r], routes.used[r + 1]):
        held, own = load[routes.resource[e], INSIDE], routes.per_byte[e] * amount
        cost += _power((held + own) / late) - _power(held / late)
    return cost
