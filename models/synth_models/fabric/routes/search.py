"""Routes from rank to rank: the quickest for a given size, through switches where they lead there, else over ranks.

A *direct* route is what one transfer may take: a path of links whose inner nodes are switches. Cut through, n bytes
take ``sum of latencies + n / least bandwidth``; stored and forwarded, ``sum of (latency + n / bandwidth)``. Where no
direct route exists, or where it is slower, a piece goes over ranks that hold it in between: several transfers, each by
a direct route. Among routes that take equally long, the one whose busiest link has least to do is taken, and what has
been sent over the others is remembered (:meth:`Routes.take`): equal paths share the load.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from synth.arrays import SAME, BoolArray, FloatArray, IntArray
from synth.errors import UnsupportedError
from synth.graph.rows import rows_by
from synth.graph.shortest_paths import search
from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.machine import Machine

Route = tuple[int, ...]

MOST_THRESHOLDS = 16  # bandwidths that are tried as the least of a route; of more, evenly spaced ones
MOST_LINKS = 16  # of a route of many that are looked for together
MOST_EQUAL = 16  # equally quick routes that are compared
MOST_KEPT = 512  # nodes of a machine whose last links are kept for other sizes and calls
Ends = tuple[int, int, int]  # source, the row of its bandwidth, node
Searched = tuple[dict[tuple[int, int], FloatArray], dict[Ends, list[tuple[int, int]]], dict[Ends, list[Route]]]
_SEARCHED: WeakKeyDictionary[Machine, Searched] = WeakKeyDictionary()
_KNOWN: WeakKeyDictionary[Machine, _Known] = WeakKeyDictionary()


class _Known(NamedTuple):
    """What routes of all sizes share on a machine: ends and groups of links, links by the node they leave and enter, of
    every node its place among the ranks, and the bandwidths that are tried as the least of a route."""

    src: IntArray
    dst: IntArray
    group: list[int]
    start: IntArray
    out: IntArray
    in_start: IntArray
    into: IntArray
    place: IntArray
    least: FloatArray


def _of_machine(machine: Machine) -> _Known:
    """What is known of the machine, found once."""
    if machine not in _KNOWN:
        net = machine.network
        src, dst = net.src.astype(np.int64), net.dst.astype(np.int64)
        place = np.full(machine.nodes, -1, dtype=np.int64)
        place[machine.ranks] = np.arange(len(machine.ranks))
        least = np.unique(net.bandwidth)
        if len(least):
            picked = np.unique(np.linspace(0, len(least) - 1, min(len(least), MOST_THRESHOLDS)).astype(int))
            least = least[picked][::-1].copy()
        rows = *rows_by(src, machine.nodes), *rows_by(dst, machine.nodes)
        _KNOWN[machine] = _Known(src, dst, machine.group.tolist(), *rows, place, least)
    return _KNOWN[machine]


class Routes:
    """Quickest routes on ``machine`` for pieces of ``size`` bytes.

    ``hop_by_hop`` for switches that store and forward. Computed as asked for: a source costs one shortest-path search
    a distinct bandwidth, O(links log nodes) each; routes over ranks need all sources once, then O(ranks^2) a source.
    ``avoided``: links that count as longer than any route, shape (links,).
    """

    def __init__(self, machine: Machine, size: int, hop_by_hop: bool = False, avoided: BoolArray | None = None) -> None:
        self.machine = machine
        self.size = max(int(size), 1)
        self.hop_by_hop = hop_by_hop
        net, known = machine.network, _of_machine(machine)
        self._src, self._dst, self._place, self._group = known.src, known.dst, known.place, known.group
        self._start, self._out, self._in_start, self._in = known.start, known.out, known.in_start, known.into
        self._seconds = self.size / net.bandwidth  # per link, of one piece
        if hop_by_hop or not len(known.least):
            self.least = np.zeros(1)
            self.weight = net.latency + self._seconds
        else:
            self.least = known.least
            self.weight = net.latency.astype(float)
        if avoided is not None:
            self.weight = self.weight + avoided * (machine.nodes * self.weight.max(initial=0.0) or 1.0)
        self.by_latency = not hop_by_hop and avoided is None  # distances serve all sizes
        groups = len(machine.group_names)
        self.load = [0.0] * (net.links + groups)  # seconds of use per link, then per group
        self._links = net.links
        self._direct: dict[int, tuple[FloatArray, IntArray]] = {}
        self._distance, self._last, self._only = self._searched() if avoided is None else ({}, {}, {})
        self._times: list[float] = self._seconds.tolist()
        self._matrix: FloatArray | None = None
        self._over: dict[int, FloatArray] = {}

    def _searched(self) -> Searched:
        """What is known of distances, last links and routes that no other equals: by latency alone, it is the same for
        all sizes."""
        if self.hop_by_hop:
            return {}, {}, {}
        distance, last, only = _SEARCHED.setdefault(self.machine, ({}, {}, {}))
        return (distance, last, only) if self.machine.nodes <= MOST_KEPT else (distance, {}, {})

    @classmethod
    def of(cls, instance: FabricInstance, size: int, avoided: BoolArray | None = None) -> Routes:
        """Those of an instance, as its switches forward."""
        return cls(instance.machine, size, instance.switching.mode == "store_and_forward", avoided)

    def direct_seconds(self, source: int) -> FloatArray:
        """Seconds of the quickest direct route from rank ``source`` to every node, inf without one; shape (nodes,)."""
        return self._from(source)[0]

    def widths(self, source: int) -> IntArray:
        """Of which row of ``least`` the quickest direct route to every node is, shape (nodes,)."""
        return self._from(source)[1]

    def seconds(self, source: int) -> FloatArray:
        """Seconds of the quickest way from ``source`` to every rank, over ranks too, in the order of
        ``machine.ranks``; inf for those out of reach."""
        if source not in self._over:
            if self._matrix is None:
                ranks = self.machine.ranks
                self._matrix = np.array([self.direct_seconds(int(u))[ranks] for u in ranks]).reshape(len(ranks), -1)
                np.fill_diagonal(self._matrix, 0.0)
            self._over[source] = _over_ranks(self._matrix, int(self._place[source]), SAME)
        return self._over[source]

    def direct(self, source: int, target: int) -> Route | None:
        """The least used of the quickest direct routes, None if there is none."""
        found = self.equal(source, target)
        return min(found, key=self._busy) if len(found) > 1 else found[0] if found else None

    def equal(self, source: int, target: int) -> list[Route]:
        """Up to :data:`MOST_EQUAL` quickest direct routes, all equally quick; among parallel paths those first that
        are least used."""
        times, row = self._from(source)
        if source == target or not np.isfinite(times[target]):
            return []
        ends = source, int(row[target]), target
        if ends in self._only:
            return self._only[ends]
        found: list[Route] = []
        stack: list[tuple[int, Route, tuple[int, ...]]] = [(target, (), (target,))]
        while stack and len(found) < MOST_EQUAL:
            node, tail, on = stack.pop()
            if node == source:
                found.append(tail)
                continue
            into = [(e, u) for e, u in self._last_links(source, ends[1], node) if u not in on]
            into.sort(key=lambda link: (-self._use(link[0]), -link[0]))  # the least used is on top of the stack
            stack += [(u, (e, *tail), (u, *on)) for e, u in into]
        shortest = min((len(route) for route in found), default=0)
        fewest = [route for route in found if len(route) == shortest]
        if not stack and len(fewest) == 1:
            self._only[ends] = fewest
        return fewest

    def _last_links(self, source: int, row: int, node: int) -> list[tuple[int, int]]:
        """The links into ``node``, each with its tail, by which a quickest route from ``source`` may end there."""
        key = (source, row, node)
        if key not in self._last:
            distance = self.latency_from(source, row)
            into = self._in[self._in_start[node] : self._in_start[node + 1]]
            tail = self._src[into]
            begin = distance[tail]
            fits = np.abs(begin + self.weight[into] - distance[node]) <= SAME * 1e-3 * distance[node]
            fits &= (self.machine.network.bandwidth[into] >= self.least[row]) & (begin < np.inf)
            fits &= self.machine.is_switch[tail] | (tail == source)
            self._last[key] = list(zip(into[fits].tolist(), tail[fits].tolist(), strict=True))
        return self._last[key]

    def of_many(self, pairs: IntArray) -> IntArray | None:
        """A quickest direct route of each pair (source * nodes + target, ascending), -1 behind its last link, shape
        (pairs, longest). None where a pair has none, or one of more than :data:`MOST_LINKS` links, and where bandwidths
        differ. Link by link the least used is taken, which is far quicker than comparing routes (:meth:`direct`)."""
        if len(self.least) > 1 or not len(pairs):
            return None
        nodes, used = self.machine.nodes, np.zeros(self._links, dtype=np.int64)
        sources, begins = np.unique(pairs // nodes, return_index=True)
        table, longest, row = np.empty((len(pairs), MOST_LINKS), dtype=np.int64), 0, 0
        for source, targets in zip(sources.tolist(), np.split(pairs % nodes, begins[1:]), strict=True):
            seconds = self.latency_from(source, 0)
            with np.errstate(invalid="ignore"):
                late = np.abs(seconds[self._src] + self.weight - seconds[self._dst])
                tight = late <= SAME * 1e-3 * seconds[self._dst]
            tight &= self.machine.is_switch[self._src] | (self._src == source)
            mine = table[row : row + len(targets)]
            links = _least_used(self._in_start, self._in, self._src, tight, used, source, targets, mine)
            if links < 0:
                return None
            longest, row = max(longest, links), row + len(targets)
        return table[:, :longest]

    def hops(self, source: int, target: int) -> list[Route]:
        """The quickest way as direct routes one after the other; a single one unless a way over ranks is quicker or
        the only one. Raises :class:`UnsupportedError` where there is no way."""
        times = self.seconds(source)
        ranks, place = self.machine.ranks, self._place
        if not np.isfinite(times[place[target]]):
            raise UnsupportedError(f"rank {target} cannot be reached from rank {source}")
        assert self._matrix is not None
        way: list[Route] = []
        node = target
        while node != source:
            at = place[node]
            last = self._matrix[:, at]
            if last[place[source]] <= times[at] * (1 + SAME):
                before = [source]
            else:
                fits = (times + last <= times[at] * (1 + SAME)) & (last > 0) & (times < times[at])
                before = [int(ranks[k]) for k in np.flatnonzero(fits)]
                if not before:
                    return self._hops_of_no_time(source, target)
            routes = [route for w in before if (route := self.direct(w, node)) is not None]
            best = min(routes, key=self._busy)
            way.append(best)
            node = int(self._src[best[0]])
        return way[::-1]

    def _hops_of_no_time(self, source: int, target: int) -> list[Route]:
        """The quickest way with fewest hops, where one is so short beside the others that no double tells them apart
        (bandwidths may differ by 21 digits)."""
        assert self._matrix is not None
        times, ranks = self.seconds(source), self.machine.ranks
        after = {target: target}
        queue = [target]
        for node in queue:
            at = self._place[node]
            last = self._matrix[:, at]
            fits = (times + last <= times[at] * (1 + SAME)) & (last > 0)
            new = [rank for rank in ranks[fits].tolist() if rank not in after]
            after |= dict.fromkeys(new, node)
            queue += new
        way, node = [], source
        while node != target:
            route = self.direct(node, after[node])
            assert route is not None
            way.append(route)
            node = after[node]
        return way

    def take(self, route: Route, size: int | None = None) -> None:
        """Remember that ``size`` bytes (default: one piece) go over the route."""
        scale = 1.0 if size is None else size / self.size
        for e in route:
            self.load[e] += scale * self._times[e]
            if self._group[e] >= 0:
                self.load[self._links + self._group[e]] += scale * self._times[e]

    @property
    def links_in(self) -> tuple[IntArray, IntArray]:
        """The links into node v, ``into[start[v]:start[v + 1]]``, as ``start`` and ``into``."""
        return self._in_start, self._in

    def _use(self, e: int) -> float:
        g = self._group[e]
        used = self.load[e] if g < 0 else max(self.load[e], self.load[self._links + g])
        return used + self._times[e]

    def _busy(self, route: Route) -> tuple[float, float]:
        uses = [self._use(e) for e in route]
        return max(uses), reduce(add, uses)  # as a kernel adds; ``sum`` is more exact from Python 3.12 on

    def _from(self, source: int) -> tuple[FloatArray, IntArray]:
        if source not in self._direct:
            best, row = np.full(self.machine.nodes, np.inf), np.zeros(self.machine.nodes, dtype=np.int64)
            for k, least in enumerate(self.least):
                times = self.latency_from(source, k) + (self.size / least if least else 0.0)
                quicker = times < best * (1 - SAME)
                best[quicker], row[quicker] = times[quicker], k
            if len(self.least) > 1:
                for k in range(len(self.least)):
                    if not np.any(row == k):
                        self._distance.pop((source, k), None)
            self._direct[source] = best, row
        return self._direct[source]

    def latency_from(self, source: int, row: int) -> FloatArray:
        """Seconds from a rank to every node over links of at least ``least[row]``, but for the time of the bytes; where
        switches store, with it. Shape (nodes,)."""
        key = (source, row)
        if key not in self._distance:
            wide = np.asarray(self.machine.network.bandwidth) >= self.least[row]
            first, scratch = np.full(self.machine.nodes, np.inf), np.empty((2, self.machine.nodes), dtype=np.int64)
            first[source] = 0.0
            self._distance[key] = search(
                self._start, self._out, self._dst, np.where(wide, self.weight, np.inf), first,
                self.machine.is_switch, scratch[0], scratch[1],
            )  # fmt: skip
        return self._distance[key]


@jit
def _over_ranks(matrix: FloatArray, source: int, same: float) -> FloatArray:
    """Dijkstra on the full matrix of direct times; fewer hops where times are the same."""
    n = len(matrix)
    best: FloatArray = matrix[source].copy()
    done = np.zeros(n, dtype=np.bool_)
    done[source] = True
    for _ in range(n):
        u = -1
        for v in range(n):
            if not done[v] and (u < 0 or best[v] < best[u]):
                u = v
        if u < 0 or best[u] == np.inf:
            break
        done[u] = True
        for v in range(n):
            if not done[v] and best[u] + matrix[u, v] < best[v] * (1 - same):
                best[v] = best[u] + matrix[u, v]
    return best


@jit
def _least_used(
    in_start: IntArray, into: IntArray, tail: IntArray, tight: BoolArray, used: IntArray, source: int,
    targets: IntArray, found: IntArray,
) -> int:  # fmt: skip
    """Walk back from every target over the least used ``tight`` links, and count their use; the links of each, first to
    last, in a row of ``found``. Returns the links of the longest route, -1 where one does not come to an end."""
    longest, width = 0, found.shape[1]
    for row in range(len(targets)):
        node, length = targets[row], 0
        while node != source:
            best = -1
            for k in range(in_start[node], in_start[node + 1]):
                e = into[k]
                if tight[e] and (best < 0 or used[e] < used[best]):
                    best = e
            if best < 0 or length == width:
                return -1
            used[best] += 1
            length += 1
            found[row, width - length] = best
            node = tail[best]
        for k in range(length):
            found[row, k] = found[row, width - length + k]
        for k in range(length, width):
            found[row, k] = -1
        longest = max(longest, length)
    return longest


def merged(paths: Iterable[Sequence[int]]) -> list[int]:
    """The links of paths to one place, those into a switch before those out of it."""
    left = {e: len(path) - k for path in paths for k, e in enumerate(path)}
    return sorted(left, key=lambda e: (-left[e], e))


def forked(paths: Iterable[Sequence[int]]) -> list[int]:
    """The links of paths from one place, in the order in which they are reached."""
    passed = {e: k for path in paths for k, e in enumerate(path)}
    return sorted(passed, key=lambda e: (passed[e], e))


def can_branch(machine: Machine, route: Sequence[int], inward: bool) -> bool:
    """Whether the switches where links of a route meet, ``inward``, or part can add or copy there."""
    ends = (machine.network.dst if inward else machine.network.src)[list(route)]
    able = machine.abilities.adds if inward else machine.abilities.copies
    nodes, times = np.unique(ends, return_counts=True)
    return bool(np.all(able[nodes[times > 1]]))


def star(machine: Machine, centre: int, ends: Sequence[int], inward: bool) -> Route | None:
    """The links from ranks over one switch to a rank, ``inward``, or from it to them; of several switches that with the
    widest narrowest link, None without one."""
    into, out = (ends, [centre]) if inward else ([centre], ends)
    net = machine.network
    src, dst = net.src.astype(np.int64), net.dst.astype(np.int64)
    best: tuple[float, Route] | None = None
    for hub in np.unique(dst[(src == into[0]) & machine.is_switch[dst]]).tolist():
        found = [_widest(net.bandwidth, (src == u) & (dst == hub)) for u in into]
        found += [_widest(net.bandwidth, (src == hub) & (dst == v)) for v in out]
        if min(found) >= 0 and (best is None or min(net.bandwidth[found]) > best[0]):
            best = float(min(net.bandwidth[found])), tuple(found)
    return None if best is None else best[1]


def _widest(bandwidth: FloatArray, among: BoolArray) -> int:
    """The first of the widest of these links, -1 of none."""
    rows = np.flatnonzero(among)
    return int(rows[np.argmax(bandwidth[rows])]) if len(rows) else -1
