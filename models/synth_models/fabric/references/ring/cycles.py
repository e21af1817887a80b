"""Good cycles through ranks: what a library's ring search is for.

A cycle's bandwidth is that of its slowest hop; several cycles at once share links. What sets there are does not depend
on the size of a message; whoever asks chooses among them for it.

Tori, hypercubes, circulants and their like fall into cycles that use every link (``disjoint_cycles``). Elsewhere the
search is ours: from a few natural orders (as numbered, a comb on a grid, a Gray code, nearest neighbours) a local
search moves and turns segments, and further cycles are looked for on what the earlier ones left of every link. Where
there are boxes, cycles are made of them too (``box_cycles``), a path in every box for one after the other. All cycles
found may also carry unequal shares (``cycle_shares``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from synth.arrays import SAME, FloatArray, IntArray
from synth.graph.max_flow import MaximumFlow
from synth.kernels import jit
from synth.network import Network
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.references.ring.box_cycles import Stay, stays
from synth_models.fabric.references.ring.cycle_shares import links_of, shared, slowest
from synth_models.fabric.references.ring.disjoint_cycles import disjoint_rings
from synth_models.fabric.references.ring.tuned import (
    LONG,
    MIDDLE,
    MOST_BESIDE,
    MOST_CYCLES,
    MOST_IMPROVED,
    MOST_OFFERED,
    MOST_RINGS,
    MOST_SEVERAL,
    PATIENCE,
    SHORT,
    STEEP,
    TRIES,
)
from synth_models.fabric.routes.search import Route, Routes

Cycle = tuple[int, ...]
Hops = tuple[tuple[Route, ...], ...]  # from each rank of a cycle to the next: direct routes one after the other

WIDEST = 2**42  # the bandwidth of the fastest link, as a whole number for maximum flows


@dataclass(frozen=True)
class Cycles:
    """Cycles used at once, with the routes of their hops, and the bytes/s at which data flow around all of them
    together if every link serves those that cross it in turn. ``shares``: the parts of the data that they carry, None
    for equal ones."""

    cycles: tuple[Cycle, ...]
    hops: tuple[Hops, ...]
    bandwidth: Fraction
    shares: tuple[int, ...] | None = None


def single(instance: FabricInstance, size: int) -> Cycle:
    """The best cycle found for pieces of ``size`` bytes: least bottleneck, then least sum of hop times."""
    matrix = _matrix(instance, instance.machine, size)
    starts = _natural(instance, matrix)
    found = [_improved(matrix, order) for order in starts]
    best = min(found, key=lambda order: _worth(matrix, order))
    return tuple(instance.members[k] for k in best)


def several(instance: FabricInstance, seed: int) -> Iterator[Cycles]:
    """Sets of cycles: the single best ones, each alone and with its reverse; and sets found that have more bandwidth
    than those of fewer cycles. Those of many ranks are searched when they are asked for, else all before, and those of
    most bandwidth come first. Of a set only the bandwidth is known here, not what it costs in latency."""
    found = _sets(instance, seed)
    if len(instance.members) <= MOST_OFFERED:
        found = iter(sorted(found, key=lambda one: -one.bandwidth))
    return found


def _sets(instance: FabricInstance, seed: int) -> Iterator[Cycles]:
    disjoint, net = _disjoint(instance, seed), instance.machine.network
    few = len(instance.members) <= MOST_OFFERED
    if disjoint is not None and not np.ptp(net.bandwidth) and not np.ptp(net.latency):
        if few:  # else all rings alone, of which a large schedule is made: it is as good for few bytes
            yield equal(instance.machine, disjoint.cycles[:1], disjoint.hops[:1])
        if len(instance.members) <= MOST_BESIDE and disjoint.bandwidth < len(disjoint.cycles) * exact(net.bandwidth[0]):
            yield from _looked_for(instance, single(instance, LONG), seed)  # fewer rings, each of whole links
    else:
        first = dict.fromkeys(single(instance, size) for size in (LONG, MIDDLE, SHORT))
        for cycle in first:
            yield rate(instance, (cycle,), LONG)
            yield rate(instance, (cycle, _reversed(cycle)), LONG)
        if disjoint is None or disjoint.bandwidth < _most(instance):
            yield from _searched(instance, next(iter(first)), disjoint, seed)
    if disjoint is not None:
        count = 2
        while count < len(disjoint.cycles) and few:
            yield equal(instance.machine, disjoint.cycles[:count], disjoint.hops[:count])
            count *= 2
        yield disjoint


def _disjoint(instance: FabricInstance, seed: int) -> Cycles | None:
    """The cycles that use every link between ranks, or of slower ones as much as a few equal rings can."""
    found = disjoint_rings(instance, MOST_RINGS, seed)
    if found is None:
        return None
    hops = tuple(tuple(((e,),) for e in links) for links in found.links)
    return equal(instance.machine, found.cycles, hops)


def _searched(instance: FabricInstance, first: Cycle, known: Cycles | None, seed: int) -> list[Cycles]:
    """The sets with the highest bandwidth that a search finds, one per number of cycles that raises it, and all cycles
    that it finds, or that are ``known``, with shares of their own."""
    both = rate(instance, (first, _reversed(first)), LONG)
    pool = list(_looked_for(instance, first, seed))
    sets, top = list[Cycles](), both.bandwidth
    for found in sorted(pool, key=lambda one: (len(one.cycles), -one.bandwidth)):
        if found.bandwidth > top:
            top = found.bandwidth
            sets.append(found)
    if len(first) > MOST_OFFERED:
        sets = sets[-2:]
    pool += [both] if known is None else [both, known]
    weighted = shared(instance.machine, {c: h for one in pool for c, h in zip(one.cycles, one.hops, strict=True)})
    if weighted is not None and weighted.bandwidth > top:
        sets.append(Cycles(weighted.cycles, weighted.hops, weighted.bandwidth, weighted.shares))
    return sets


def _looked_for(instance: FabricInstance, first: Cycle, seed: int) -> Iterator[Cycles]:
    """Sets of cycles: through all boxes, and one cycle after the other, as long as a set may have more bandwidth."""
    rng, top = np.random.default_rng(seed), Fraction(0)
    for cycles in _through_boxes(instance, LONG, rng):
        top = max(top, cycles.bandwidth)
        yield cycles
    if 3 <= len(first) <= MOST_SEVERAL:
        most = _most(instance)
        for attempt in range(2 * (TRIES if len(first) <= 32 else 2)):
            if top >= most:
                break
            for cycles in _packed(instance, LONG, first if attempt < 2 else None, attempt % 2 == 0, rng):
                top = max(top, cycles.bandwidth)
                yield cycles


def rate(instance: FabricInstance, cycles: tuple[Cycle, ...], size: int) -> Cycles:
    """The bandwidth of cycles that are used at once, equal shares each, over routes for ``size`` bytes."""
    routes = Routes.of(instance, size)
    return equal(instance.machine, cycles, tuple(_hops(routes, cycle) for cycle in cycles))


def equal(machine: Machine, cycles: tuple[Cycle, ...], hops: tuple[Hops, ...]) -> Cycles:
    """Cycles that carry equal shares."""
    uses = np.zeros(machine.links)
    for one in hops:
        np.add.at(uses, links_of(one), 1)
    return Cycles(cycles, hops, len(cycles) / slowest(machine, uses))


def _most(instance: FabricInstance) -> Fraction:
    """No more goes around than can enter the member with the least bandwidth, or a box: every cycle visits both."""
    net = instance.machine.network
    total = dict.fromkeys(instance.members, Fraction(0))
    for v, bandwidth in zip(net.dst.tolist(), net.bandwidth.tolist(), strict=True):
        if v in total:
            total[v] += exact(bandwidth)
    boxes = instance.boxes if max(map(len, instance.boxes)) > 1 else []
    into = [_entering(instance, box) for box in boxes] if len(boxes) > 1 else []
    return min([*total.values(), *into])


def _entering(instance: FabricInstance, box: Sequence[int]) -> Fraction:
    """Bytes/s from all other members into those of a box, at most, by a maximum flow; of bandwidths that are no whole
    numbers, rounded up."""
    net, n = instance.machine.network, instance.machine.nodes
    inside = set(box)
    others = [rank for rank in instance.members if rank not in inside]
    tail = np.concatenate([net.src, np.full(len(others), n), box]).astype(np.int64)
    head = np.concatenate([net.dst, others, np.full(len(box), n + 1)]).astype(np.int64)
    unit = max(1.0, float(net.bandwidth.max()) / WIDEST)
    whole = np.ceil(net.bandwidth / unit)
    plenty = np.full(len(instance.members), whole.sum())
    flow = MaximumFlow(n + 2, tail, head, np.concatenate([whole, plenty]).astype(np.int64), n, n + 1)
    return Fraction(flow.value) * exact(unit)


def _through_boxes(instance: FabricInstance, size: int, rng: np.random.Generator) -> Iterator[Cycles]:
    """The cycles through all boxes in turn, as one set; none where there are none."""
    machine = instance.machine
    uses, cycles = np.zeros(machine.links), []
    for stay in stays(instance, size, MOST_CYCLES, rng):
        left = _slowed(machine, uses)
        routes = Routes(left, size, instance.switching.mode == "store_and_forward")
        cycle = tuple(rank for one in stay for rank in _through(routes, instance.boxes[one.box], one))
        cycles.append(cycle)
        np.add.at(uses, links_of(_hops(routes, cycle)), 1)
    if cycles:
        yield rate(instance, tuple(cycles), size)


def _through(routes: Routes, box: Sequence[int], stay: Stay) -> list[int]:
    """A Hamiltonian path in a box, as if it were a cycle whose last hop leads back to the beginning for nothing."""
    if len(box) <= 2:
        return list(dict.fromkeys((stay.enters, stay.leaves)))
    first = box.index(stay.enters)
    ahead = [rank for rank in (*box[first:], *box[:first]) if rank not in (stay.enters, stay.leaves)]
    members = [stay.enters, *ahead, stay.leaves]  # cycles that enter one after the other keep so: none is in the way
    matrix = np.array([routes.direct_seconds(rank)[members] for rank in members])
    np.fill_diagonal(matrix, np.inf)
    finite = matrix[np.isfinite(matrix)]
    matrix = np.where(np.isfinite(matrix), matrix, 1e3 * finite.max(initial=1.0))
    if len(finite) and np.ptp(finite) > SAME * finite.max():
        matrix[-1, :] = matrix[:, 0] = 1e3 * matrix.max()
        matrix[-1, 0] = finite.min()
        order = _improved(matrix, np.arange(len(members)))
        members = [members[k] for k in np.roll(order, -int(np.flatnonzero(order == 0)[0]))]
    return members


def _hops(routes: Routes, cycle: Cycle) -> Hops:
    """The routes from each rank to the next, noted in ``routes``."""
    found = []
    for u, v in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
        hop = tuple(routes.hops(u, v)) if u != v else ()
        for route in hop:
            routes.take(route)
        found.append(hop)
    return tuple(found)


def _reversed(cycle: Cycle) -> Cycle:
    return (cycle[0], *cycle[:0:-1])


def _packed(
    instance: FabricInstance, size: int, first: Cycle | None, both: bool, rng: np.random.Generator
) -> list[Cycles]:
    """Cycles one after the other, each on links as slow as those before have made them: all beginnings of the list,
    until :data:`PATIENCE` in a row do not raise the bandwidth."""
    machine, members = instance.machine, instance.members
    uses = np.zeros(machine.links)
    cycles: list[Cycle] = []
    hops: list[Hops] = []
    found: list[Cycles] = []
    top, worse = Fraction(0), 0
    while len(cycles) < MOST_CYCLES and worse < PATIENCE:
        left = _slowed(machine, uses)
        if first is not None and not cycles:
            cycle = first
        else:
            matrix = _matrix(instance, left, size) * (1 + 0.02 * rng.random((len(members), len(members))))
            starts = [_nearest(matrix, int(rng.integers(len(members)))), rng.permutation(len(members))]
            improved = [_improved(matrix, order) for order in starts]
            cycle = tuple(members[k] for k in min(improved, key=lambda order: _worth(matrix, order)))
        routes = Routes(left, size, instance.switching.mode == "store_and_forward")
        for one in (cycle, _reversed(cycle)) if both else (cycle,):
            cycles.append(one)
            hops.append(_hops(routes, one))
            np.add.at(uses, links_of(hops[-1]), 1)
        found.append(Cycles(tuple(cycles), tuple(hops), len(cycles) / slowest(machine, uses)))
        worse = 0 if found[-1].bandwidth > top else worse + 1
        top = max(top, found[-1].bandwidth)
    return found


def _slowed(machine: Machine, uses: FloatArray) -> Machine:
    """Every link with the bandwidth that is left to one more, a group's uses counted for all its links."""
    total = uses.copy()
    grouped = machine.group >= 0
    if grouped.any():
        sums = np.bincount(machine.group[grouped], uses[grouped], minlength=len(machine.group_names))
        total[grouped] = sums[machine.group[grouped]]
    net = machine.network
    slower = Network(net.nodes, np.stack([net.src, net.dst], axis=1), net.bandwidth / (1 + total), net.latency)
    return replace(machine, network=slower, kept=None)


def _matrix(instance: FabricInstance, machine: Machine, size: int) -> FloatArray:
    """Seconds from member to member, over ranks where need be, shape (members, members)."""
    routes = Routes(machine, size, instance.switching.mode == "store_and_forward")
    place = np.searchsorted(machine.ranks, np.array(instance.members))
    matrix = np.array([routes.seconds(v)[place] for v in instance.members])
    finite = matrix[np.isfinite(matrix)].max(initial=1.0)
    return np.where(np.isfinite(matrix), matrix, 1e3 * finite)


def _natural(instance: FabricInstance, matrix: FloatArray) -> list[IntArray]:
    n = len(instance.members)
    orders: list[IntArray] = [np.arange(n), _nearest(matrix, 0)]
    if n & (n - 1) == 0:
        orders.append(np.arange(n) ^ (np.arange(n) >> 1))
    grid = instance.machine.network.grid
    if grid is not None and len(grid) == 2 and grid[0] * grid[1] == n and min(grid) > 1:
        cells = np.arange(n).reshape(grid)
        orders += [_comb(cells), _comb(cells.T)]
    return orders


def _comb(cells: IntArray) -> IntArray:
    """Along the first row's start column at last: rows in turn without their first cell, then the first column up."""
    rows = [row[1:][:: 1 if r % 2 == 0 else -1] for r, row in enumerate(cells)]
    return np.concatenate([cells[0, :1], *rows, cells[:0:-1, 0]])


def _nearest(matrix: FloatArray, start: int) -> IntArray:
    order = [start]
    left = np.ones(len(matrix), dtype=bool)
    left[start] = False
    while left.any():
        row = np.where(left, matrix[order[-1]], np.inf)
        order.append(int(np.argmin(row)))
        left[order[-1]] = False
    return np.array(order, dtype=np.int64)


def _worth(matrix: FloatArray, order: IntArray) -> tuple[float, float]:
    hops = matrix[order, np.roll(order, -1)]
    return float(hops.max()), float(hops.sum())


def _improved(matrix: FloatArray, start: IntArray) -> IntArray:
    order: IntArray = np.array(start, dtype=np.int64)
    if len(order) < 4 or len(order) > MOST_IMPROVED:
        return order
    positive = matrix[matrix > 0]
    steep = (matrix / (positive.min() if len(positive) else 1.0)) ** STEEP
    _local_search(steep, order, 40 if len(order) <= MOST_SEVERAL else 4)
    return order


@jit
def _local_search(cost: FloatArray, order: IntArray, passes: int) -> None:
    """Moves segments of up to three elsewhere, and turns segments around, as long as the sum of costs falls."""
    n = len(order)
    for _ in range(passes):
        better = False
        for i in range(n):  # a segment of `length` from place i to behind place j
            for length in range(1, 4):
                if n < length + 3:
                    continue
                for shift in range(1, n - length):
                    a, b = order[i - 1], order[i]
                    c, d = order[(i + length - 1) % n], order[(i + length) % n]
                    j = (i + length - 1 + shift) % n
                    e, f = order[j], order[(j + 1) % n]
                    if e == a:
                        continue
                    gain = cost[a, b] + cost[c, d] + cost[e, f] - cost[a, d] - cost[e, b] - cost[c, f]
                    if gain > 1e-9 * cost[a, b]:
                        segment = np.empty(length, np.int64)
                        for k in range(length):
                            segment[k] = order[(i + k) % n]
                        for k in range(shift):
                            order[(i + k) % n] = order[(i + length + k) % n]
                        for k in range(length):
                            order[(i + shift + k) % n] = segment[k]
                        better = True
        for i in range(n - 1):  # turn order[i + 1 .. j] around
            forward = 0.0
            backward = 0.0
            for j in range(i + 2, n):
                forward += cost[order[j - 1], order[j]]
                backward += cost[order[j], order[j - 1]]
                a, b, c, d = order[i], order[i + 1], order[j], order[(j + 1) % n]
                if a == d:
                    continue
                gain = cost[a, b] + forward + cost[c, d] - cost[a, c] - backward - cost[b, d]
                if gain > 1e-9 * cost[a, b]:
                    low, high = i + 1, j
                    while low < high:
                        order[low], order[high] = order[high], order[low]
                        low += 1
                        high -= 1
                    better = True
                    forward, backward = backward, forward
        if not better:
            return
