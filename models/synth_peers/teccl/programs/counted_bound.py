"""The fewest epochs that counting can prove: distances, and cuts with what comes before, between and after them.

**Cuts, copied.** Look at the V chunks that begin at some origins U in a node set S and are wanted by members outside.
Link e out of S can first send one in epoch ``head_e``, the least distance from U, and begins at most
``quota_e * ceil(L / window_e)`` of them in L epochs. If until epoch k - 1 all links together cannot have begun more
than V - n, the last n chunks leave S in epoch k or later. With a larger set S', each of them leaves S' over a link f,
no sooner than ``k + head_f``, where ``head_f`` is the least way from a link out of S; for n of them the links out of S'
need until epoch l; and the last then takes to member w at least ``min over f of lag_f + distance(head of f, w)``.

**Cut, fluid.** V shares go from some origins U in S to some goals W outside. Link e sends them in epochs ``head_e`` …
``K - lag_e - left_e``, with ``left_e`` the least distance from its head to W, at most ``capacity_e`` of a chunk in
each; all links together must fit V.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.graph.max_flow import MaximumFlow
from synth_peers.teccl.programs.grid import UNREACHABLE_EPOCHS, Grid

MOST_PAIRS = 400  # of ranks between which least cuts are looked for
MOST_OUTER = 24  # cuts, the strongest alone, that are tried with others around them


@dataclass(frozen=True)
class Counted:
    """``epochs`` are needed. ``cut``: the nodes of S, empty where a distance says it; ``origins`` U; fluid: ``goals``
    W; copied: ``around`` the nodes of S' and ``last`` the number n of chunks that are looked at between S and S'. Where
    prices say it (:mod:`synth_peers.teccl.programs.priced`): ``price`` of a chunk on every link, for blocks
    that go at least ``away`` epochs."""

    epochs: int
    words: str
    cut: tuple[int, ...] = ()
    origins: tuple[int, ...] = ()
    around: tuple[int, ...] = ()
    last: int = 1
    goals: tuple[int, ...] = ()
    price: tuple[int, ...] = ()
    away: int = 0


def counted(grid: Grid, more: Iterable[BoolArray] = ()) -> Counted:
    """The best bound by counting over the cuts that are tried, those around the nodes of ``more`` among them."""
    best, cuts = furthest(grid), list(_cuts(grid, more))
    if grid.rule == "fluid":
        return max([best, *(found for inside in cuts for found in _fluid(grid, inside))], key=lambda f: f.epochs)
    tried = sorted((found for inside in cuts for found in _alone(grid, inside)), key=lambda found: -found.epochs)
    best = max([best, *tried[:1]], key=lambda found: found.epochs)
    for outer in _distinct(tried)[:MOST_OUTER]:
        for inside in cuts:
            best = max(best, _around(grid, outer, inside), key=lambda found: found.epochs)
    return best


def furthest(grid: Grid) -> Counted:
    """What the distances prove: no program is asked below."""
    distance, blocks = grid.distance, grid.instance.blocks
    if grid.rule == "copied":
        far = int(np.where(grid.wanted, distance[grid.origin], 0).max())
    else:
        far = int(distance[blocks.origin, blocks.goal].max())
    return Counted(far, "the longest of the shortest ways, in epochs")


def _alone(grid: Grid, inside: BoolArray) -> Iterator[Counted]:
    """What the cut proves for all origins in it, and for those that are at least as far from it as another."""
    out = np.flatnonzero(inside[grid.src] & ~inside[grid.dst])
    if not len(out):
        return
    away = grid.distance[:, grid.src[out]].min(axis=1)
    chunks = np.flatnonzero(inside[grid.origin] & np.any(grid.wanted & ~inside, axis=1))
    for far in np.unique(away[grid.origin[chunks]]).tolist():
        some = chunks[away[grid.origin[chunks]] >= far]
        crossing = _begin(
            grid, out, grid.distance[np.unique(grid.origin[some])][:, grid.src[out]].min(axis=0), len(some)
        )
        nodes, origins = _nodes(inside), tuple(np.unique(grid.origin[some]).tolist())
        epochs = crossing + _tail(grid, out, some, inside)
        words = f"cut around {len(nodes)} nodes for {len(some)} chunks, with first and last arrivals"
        yield Counted(epochs, words, nodes, origins, nodes, 1)


def _around(grid: Grid, outer: Counted, inside: BoolArray) -> Counted:
    """What the cut of ``outer`` proves with ``inside`` around it, for the best number of last chunks."""
    nodes = np.arange(grid.instance.machine.nodes)
    within = np.isin(nodes, outer.cut)
    if np.any(within & ~inside) or np.array_equal(within, inside):
        return Counted(0, "")
    first, then = (np.flatnonzero(side[grid.src] & ~side[grid.dst]) for side in (within, inside))
    some = np.flatnonzero(np.isin(grid.origin, outer.origins) & np.any(grid.wanted & ~inside, axis=1))
    if not len(some) or not len(then):
        return Counted(0, "")
    head = grid.distance[np.unique(grid.origin[some])][:, grid.src[first]].min(axis=0)
    way = grid.lag[first, None] + grid.distance[grid.dst[first]][:, grid.src[then]]
    way[first[:, None] == then[None, :]] = 0
    later, tail = way.min(axis=0), _tail(grid, then, some, inside)
    best, n = Counted(0, ""), len(some)
    while n > 0:  # for every epoch in which some leave, all that leave then or later
        k = _begin(grid, first, head, len(some) - n + 1)
        epochs = k + _begin(grid, then, later, n) + tail
        if epochs > best.epochs:
            words = f"the last {n} of {len(some)} chunks out of {len(outer.cut)} nodes, then out of {int(inside.sum())}"
            best = Counted(epochs, words, outer.cut, outer.origins, _nodes(inside), n)
        n = len(some) - _begun(grid, first, head, k, len(some))
    return best


def _tail(grid: Grid, out: IntArray, chunks: IntArray, inside: BoolArray) -> int:
    """Epochs from the send of any of the chunks over any of the links to the furthest member that wants them all."""
    common = np.flatnonzero(grid.wanted[chunks].all(axis=0) & ~inside)
    left = (grid.lag[out, None] + grid.distance[grid.dst[out]]).min(axis=0)
    return int(left[common].max()) if len(common) else int(grid.lag[out].min())


def _begin(grid: Grid, out: IntArray, head: IntArray, volume: int) -> int:
    """The least epoch by which the links can have begun so many chunks."""
    low, high = int(head.min()), UNREACHABLE_EPOCHS
    while low < high:
        k = (low + high) // 2
        if _begun(grid, out, head, k, volume) >= volume:
            high = k
        else:
            low = k + 1
    return low


def _begun(grid: Grid, out: IntArray, head: IntArray, last: int, most: int) -> int:
    """The chunks that the links can begin in epochs up to ``last``, counted up to ``most`` a link."""
    turns = np.minimum(-(-np.maximum(last - head + 1, 0) // grid.window[out]), most)
    return int(np.minimum(np.minimum(grid.quota[out], most) * turns, most).sum())


def _fluid(grid: Grid, inside: BoolArray) -> Iterator[Counted]:
    """What the cut proves for all it parts, and for origins and goals at least as far from it as others."""
    blocks = grid.instance.blocks
    out = np.flatnonzero(inside[grid.src] & ~inside[grid.dst])
    crossing = np.flatnonzero(inside[blocks.origin] & ~inside[blocks.goal])
    if not len(out) or not len(crossing):
        return
    before = grid.distance[:, grid.src[out]].min(axis=1)[blocks.origin]
    after = (grid.lag[out, None] + grid.distance[grid.dst[out]]).min(axis=0)[blocks.goal]
    for early in np.unique(before[crossing]).tolist():
        for late in np.unique(after[crossing]).tolist():
            some = crossing[(before[crossing] >= early) & (after[crossing] >= late)]
            if len(some):
                yield _fluid_of(grid, inside, out, some)


def _fluid_of(grid: Grid, inside: BoolArray, out: IntArray, some: IntArray) -> Counted:
    """What the cut proves for the blocks ``some``."""
    origins, goals = (np.unique(row[some]) for row in (grid.instance.blocks.origin, grid.instance.blocks.goal))
    head = grid.distance[origins][:, grid.src[out]].min(axis=0)
    left = grid.distance[grid.dst[out]][:, goals].min(axis=1)
    lost = (head + left + grid.lag[out] - 1).tolist()
    capacity = [grid.capacity[e] * grid.unit for e in out.tolist()]
    volume = sum(map(int, grid.demand[some]))
    nodes = _nodes(inside)
    words = f"cut around {len(nodes)} nodes from {len(origins)} to {len(goals)} ranks, with first and last arrivals"
    epochs = _time_to_carry(capacity, lost, volume)
    return Counted(epochs, words, nodes, tuple(origins.tolist()), goals=tuple(goals.tolist()))


def _time_to_carry(capacity: list[Fraction], lost: list[int], volume: int) -> int:
    """The least K with ``sum of capacity * max(0, K - lost) >= volume``: between two losses it is a line."""
    slope = level = Fraction(0)  # carried until K is slope * K - level
    pairs = sorted(zip(lost, capacity, strict=True))
    for i, (gone, rate) in enumerate(pairs):
        slope, level = slope + rate, level + rate * gone
        until = -(-(volume + level) // slope)
        if i + 1 == len(pairs) or until <= pairs[i + 1][0]:
            return int(until)
    return 0


def _distinct(tried: list[Counted]) -> list[Counted]:
    """The strongest of those that say the same of as many nodes and origins."""
    found: dict[tuple[int, int, int], Counted] = {}
    for one in tried:
        found.setdefault((one.epochs, len(one.cut), len(one.origins)), one)
    return list(found.values())


def _nodes(inside: BoolArray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(inside).tolist())


def _cuts(grid: Grid, more: Iterable[BoolArray]) -> Iterator[BoolArray]:
    """Single nodes, boxes, least cuts between pairs, and ``more``; each set with its complement."""
    members = np.array(grid.instance.members)
    seen: set[bytes] = set()
    for inside in chain(_candidates(grid, members), more):
        for side in (inside, ~inside):
            key = side.tobytes()
            if key not in seen and side[members].any() and not side[members].all():
                seen.add(key)
                yield side


def _candidates(grid: Grid, members: IntArray) -> Iterable[BoolArray]:
    nodes = np.arange(grid.instance.machine.nodes)
    for v in members.tolist():
        yield nodes == v
    for box in grid.instance.boxes:
        yield np.isin(nodes, box)
    pairs = [(int(u), int(v)) for u in members for v in members if u != v]
    for u, v in pairs[:: max(1, len(pairs) // MOST_PAIRS)]:
        yield from _least_cuts(grid, u, v)


def _least_cuts(grid: Grid, source: int, sink: int) -> Iterable[BoolArray]:
    """The least cut nearest to the source, and the one nearest to the sink."""
    nodes = grid.instance.machine.nodes
    scale = 10**6 / float(max(grid.capacity))
    weight = np.array([max(1, round(float(c) * scale)) for c in grid.capacity], dtype=np.int64)
    flow = MaximumFlow(nodes, grid.src, grid.dst, weight, source, sink)
    yield flow.source_side
    yield ~flow.sink_side
