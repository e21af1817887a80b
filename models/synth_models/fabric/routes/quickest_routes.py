"""The quickest routes of a machine, compiled: those of :class:`~synth_models.fabric.routes.search.Routes`, to the
bit, of equal ones that whose busiest link has least to do. What depends on the machine alone is kept.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from synth.arrays import SAME, BoolArray, FloatArray, IntArray
from synth.kernels import jit
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.routes.search import MOST_EQUAL, Routes

MOST_DISTANCES = 1 << 25  # of ranks to nodes that are kept for a machine, 256 MiB
MOST_KNOWN = 1 << 21  # links of routes that have no equal, and are kept for a machine
SEVERAL = -1  # instead of a place: there are equal routes
_KNOWN: WeakKeyDictionary[Machine, Known] = WeakKeyDictionary()
_LATEST: WeakKeyDictionary[Machine, _Latest] = WeakKeyDictionary()


class Known(NamedTuple):
    """What is known of a machine whatever the load.

    ``distance[place * bandwidths + k]``: from a rank over links of at least the k-th bandwidth to every node.
    ``place``, shape (ranks * bandwidths, ranks): of the only quickest route to a rank among ``link``, its number of
    links first; 0 where nobody has looked, :data:`SEVERAL`. ``top``: how much of ``link`` is taken, shape (1,).
    """

    distance: FloatArray
    place: IntArray
    link: IntArray
    top: IntArray


class SizedMachine(NamedTuple):
    """What the search of routes knows of a machine, and of pieces of one size.

    ``src``, ``dst``, ``group``, ``weight``, ``bandwidth``, ``times`` (seconds of a piece): shape (links,).
    ``in_start``, ``into``: links into every node. ``through``: shape (nodes,), switches. ``place``: of every node
    among the ranks. ``least``: bandwidths. ``row``: the k of the quickest direct route, shape (ranks, ranks);
    ``direct``: its seconds. ``near``: the ranks ``near[near_start[i]:near_start[i + 1]]`` have a direct route to the
    one at place i, of so many ``seconds``.
    """

    src: IntArray
    dst: IntArray
    group: IntArray
    weight: FloatArray
    bandwidth: FloatArray
    times: FloatArray
    in_start: IntArray
    into: IntArray
    through: BoolArray
    place: IntArray
    ranks: IntArray
    least: FloatArray
    row: IntArray
    direct: FloatArray
    near_start: IntArray
    near: IntArray
    seconds: FloatArray


@dataclass
class _Latest:
    """Of pieces of one size: the ``search``; seconds ``over`` ranks from those ranks that are ``filled`` in."""

    size: int
    search: SizedMachine
    over: FloatArray
    filled: BoolArray


class Scratch(NamedTuple):
    """Where routes are looked for: links to be tried, ``first:last`` of them at each depth of the search, the link
    taken at each depth, the node that it comes from, and whether a node is passed; the best route so far; and the way
    of an edge, its links from the last route to the first, those of route k behind ``begin[k]``."""

    tried: IntArray
    first: IntArray
    last: IntArray
    taken: IntArray
    node: IntArray
    passed: BoolArray
    best: IntArray
    link: IntArray
    begin: IntArray


def only_routes(routes: Routes, source: IntArray, target: IntArray) -> tuple[IntArray, IntArray] | None:
    """``start`` and ``link``: what goes from rank ``source[i]`` to rank ``target[i]`` goes over the links
    ``link[start[i]:start[i + 1]]``, whatever the load; none where there is more than one quickest way, or the quickest
    is over another rank, or both are the same. None for a large machine."""
    known = known_of(routes)
    if known is None:
        return None
    search, over = to_ranks(routes, known.distance, source)
    return _only(search, known, over, source, target, scratch_of(search), SAME)


def quickest(routes: Routes) -> FloatArray | None:
    """Seconds of the quickest way from rank to rank, over ranks too, in the order of ``machine.ranks``: shape (ranks,
    ranks), infinite where there is none. None for a large machine."""
    known = known_of(routes)
    return None if known is None else to_ranks(routes, known.distance, routes.machine.ranks)[1].copy()


def to_ranks(routes: Routes, distance: FloatArray, sources: IntArray) -> tuple[SizedMachine, FloatArray]:
    """What is known of pieces of this size, and the seconds from these ranks, at least, to all, over ranks too: shape
    (ranks, ranks). Kept until another size is asked for."""
    last = _LATEST.get(routes.machine)
    if last is None or last.size != routes.size or not routes.by_latency:
        search = _search(routes, distance)
        last = _Latest(routes.size, search, np.full(search.direct.shape, np.inf), np.zeros(len(search.ranks), bool))
        if routes.by_latency:
            _LATEST[routes.machine] = last
    wanted = np.zeros(len(last.filled), dtype=bool)
    wanted[last.search.place[sources]] = True
    _over_ranks(last.search, np.flatnonzero(wanted & ~last.filled), last.over, SAME)
    last.filled |= wanted
    return last.search, last.over


def _search(routes: Routes, distance: FloatArray) -> SizedMachine:
    machine, net = routes.machine, routes.machine.network
    ranks, least = machine.ranks, routes.least
    direct, row = np.full((len(ranks), len(ranks)), np.inf), np.zeros((len(ranks), len(ranks)), dtype=np.int64)
    for k in range(len(least)):
        seconds = distance[k :: len(least)][:, ranks] + (routes.size / least[k] if least[k] else 0.0)
        quicker = seconds < direct * (1 - SAME)
        direct[quicker], row[quicker] = seconds[quicker], k
    np.fill_diagonal(direct, 0.0)
    there = np.isfinite(direct.T) & (direct.T > 0)
    near_start = starts(there.sum(axis=1))
    place = np.full(machine.nodes, -1, dtype=np.int64)
    place[ranks] = np.arange(len(ranks))
    at, near = np.nonzero(there)
    return SizedMachine(
        net.src.astype(np.int64), net.dst.astype(np.int64), machine.group, routes.weight.astype(np.float64),
        np.asarray(net.bandwidth, dtype=np.float64), routes.size / net.bandwidth, *routes.links_in,
        machine.is_switch, place, ranks, least.astype(np.float64), row, direct, near_start, near.astype(np.int64),
        direct[near, at],
    )  # fmt: skip


def known_of(routes: Routes) -> Known | None:
    """What is known of the machine; by latency alone, it is the same for all sizes. None for a large machine."""
    machine, count, ranks = routes.machine, len(routes.least), len(routes.machine.ranks)
    if ranks * count * machine.nodes > MOST_DISTANCES:
        return None
    if routes.by_latency and machine in _KNOWN:
        return _KNOWN[machine]
    distance = np.array([routes.latency_from(int(u), k) for u in machine.ranks for k in range(count)], dtype=np.float64)
    link = np.zeros(min(8 * ranks**2 * count, MOST_KNOWN), dtype=np.int64)
    place, top = np.zeros((len(distance), ranks), dtype=np.int64), np.ones(1, dtype=np.int64)
    found = Known(distance, place, link, top)
    if routes.by_latency:
        _KNOWN[machine] = found
    return found


def scratch_of(search: SizedMachine) -> Scratch:
    links, nodes = len(search.src), len(search.through)
    tried, first, last, taken, node, best, link, begin = (
        np.zeros(n + 1, dtype=np.int64) for n in (links, nodes, nodes, nodes, nodes, nodes, links, nodes)
    )
    return Scratch(tried, first, last, taken, node, np.zeros(nodes, dtype=bool), best, link, begin)


@jit
def _over_ranks(search: SizedMachine, sources: IntArray, over: FloatArray, same: float) -> None:
    """Fill in rows of ``over``: seconds from these ranks to all, over ranks too, as ``routes._over_ranks`` does."""
    direct, count = search.direct, len(search.direct)
    row_start = np.zeros(count + 1, np.int64)
    for t in range(count):
        for k in range(search.near_start[t], search.near_start[t + 1]):
            row_start[search.near[k] + 1] += 1
    row_start = np.cumsum(row_start)
    filled, target = row_start.copy(), np.zeros(len(search.near), np.int64)
    for t in range(count):
        for k in range(search.near_start[t], search.near_start[t + 1]):
            target[filled[search.near[k]]] = t
            filled[search.near[k]] += 1
    least = np.full(count, np.inf)
    for k in range(len(search.near)):
        least[search.near[k]] = min(least[search.near[k]], search.seconds[k])
    for s in sources:
        best, looked, most = over[s], -np.inf, np.inf
        done = np.zeros(count, np.bool_)
        done[s] = True
        best[s] = direct[s, s]
        heap: Any = [(direct[s, s], np.int64(0)) for _ in range(0)]
        for k in range(row_start[s], row_start[s + 1]):
            best[target[k]] = direct[s, target[k]]
            heapq.heappush(heap, (best[target[k]], target[k]))
        while len(heap):
            top: Any = heapq.heappop(heap)
            u = top[1]
            if done[u]:
                continue
            done[u] = True
            if best[u] > looked:  # what is farthest comes nearer, if at all, from ranks that are this near
                looked, most = best[u], best.max() * (1 - same)
            if best[u] + least[u] >= most:
                continue
            for k in range(row_start[u], row_start[u + 1]):
                v = target[k]
                if not done[v] and best[u] + direct[u, v] < best[v] * (1 - same):
                    best[v] = best[u] + direct[u, v]
                    heapq.heappush(heap, (best[v], v))


@jit(inlined=True)
def _listed(
    search: SizedMachine, distance: FloatArray, use: FloatArray, source: int, least: float, scratch: Scratch,
    depth: int, same: float,
) -> None:  # fmt: skip
    """List the links by which a quickest route from ``source`` may come to the node at this depth, the least used
    first."""
    tried, node = scratch.tried, scratch.node[depth]
    first = scratch.last[depth - 1] if depth else 0
    last = first
    for p in range(search.in_start[node], search.in_start[node + 1]):
        e = search.into[p]
        u = search.src[e]
        begin = distance[u]
        if scratch.passed[u] or not (search.through[u] or u == source) or not begin < np.inf:
            continue
        late = abs(begin + search.weight[e] - distance[node])
        if not late <= same * 1e-3 * distance[node] or search.bandwidth[e] < least:
            continue
        at = last
        while at > first:
            before = tried[at - 1]
            if use[before] < use[e] or (use[before] == use[e] and before < e):
                break
            tried[at] = tried[at - 1]
            at -= 1
        tried[at] = e
        last += 1
    scratch.first[depth], scratch.last[depth] = first, last


@jit
def least_busy(
    search: SizedMachine, known: Known, use: FloatArray, source: int, target: int, scratch: Scratch, same: float
) -> tuple[int, float, float]:
    """The least used of the quickest direct routes into ``scratch.best``: its number of links, the use of its busiest
    link, and of all."""
    k = search.row[search.place[source], search.place[target]]
    distance, least = known.distance[search.place[source] * len(search.least) + k], search.least[k]
    found, shortest, links, most, total = 0, 0, 0, np.inf, np.inf
    scratch.node[0], scratch.passed[target] = target, True
    _listed(search, distance, use, source, least, scratch, 0, same)
    depth = 0
    while depth >= 0 and found < MOST_EQUAL:
        if scratch.first[depth] == scratch.last[depth]:
            scratch.passed[scratch.node[depth]] = False
            depth -= 1
            continue
        e = scratch.tried[scratch.first[depth]]
        scratch.first[depth] += 1
        scratch.taken[depth] = e
        if search.src[e] != source:
            depth += 1
            scratch.node[depth], scratch.passed[search.src[e]] = search.src[e], True
            _listed(search, distance, use, source, least, scratch, depth, same)
            continue
        found += 1
        busiest, uses = -np.inf, 0.0
        for at in range(depth, -1, -1):
            busiest, uses = max(busiest, use[scratch.taken[at]]), uses + use[scratch.taken[at]]
        shorter = links == 0 or depth + 1 < links
        shortest = 1 if shorter else shortest + (depth + 1 == links)
        if shorter or (depth + 1 == links and (busiest < most or (busiest == most and uses < total))):
            links, most, total = depth + 1, busiest, uses
            for at in range(links):
                scratch.best[at] = scratch.taken[depth - at]
    alone = depth < 0 and shortest == 1
    while depth >= 0:
        scratch.passed[scratch.node[depth]] = False
        depth -= 1
    _keep(search, known, source, target, scratch, links if alone else SEVERAL)
    return links, most, total


@jit
def _keep(search: SizedMachine, known: Known, source: int, target: int, scratch: Scratch, links: int) -> None:
    """Keep the route of so many links in ``scratch.best`` as the only quickest one, or that there are several."""
    at, goal = search.place[source], search.place[target]
    row = at * len(search.least) + search.row[at, goal]
    top = known.top[0]
    if links < 0:
        known.place[row, goal] = SEVERAL
    elif top + links < len(known.link):
        known.place[row, goal], known.link[top] = top, links
        for k in range(links):
            known.link[top + 1 + k] = scratch.best[k]
        known.top[0] = top + 1 + links


@jit
def _only(
    search: SizedMachine,
    known: Known,
    over: FloatArray,
    source: IntArray,
    target: IntArray,
    scratch: Scratch,
    same: float,
) -> tuple[IntArray, IntArray]:
    """As :func:`only_routes`."""
    count, bandwidths, top = len(source), len(search.least), 0
    start, link, use = np.zeros(count + 1, np.int64), np.zeros(4 * count, np.int64), np.zeros(len(search.src))
    for n in range(count):
        first, at = search.place[source[n]], search.place[target[n]]
        if first != at and search.direct[first, at] <= over[first, at] * (1 + same) < np.inf:
            row = first * bandwidths + search.row[first, at]
            if known.place[row, at] == 0:
                least_busy(search, known, use, source[n], target[n], scratch, same)
            found = known.place[row, at]
            if found > 0:
                length = known.link[found]
                if top + length > len(link):
                    link = longer(link, top, length)
                link[top : top + length] = known.link[found + 1 : found + 1 + length]
                top += length
        start[n + 1] = top
    return start, link[:top]


@jit
def longer(array: IntArray, used: int, more: int) -> IntArray:
    """The array with twice the room and for so many entries more."""
    found = np.zeros(2 * used + more, np.int64)
    found[:used] = array[:used]
    return found
