"""Shortest paths by non-negative lengths of arcs: a kernel for whole or real lengths, trees by scipy, all pairs.

Of several shortest paths, one kind of search always takes the same: the kernel settles nodes of equal distance in
ascending order, scipy's order is its own. So a method stays with the search that it has.
"""

from __future__ import annotations

import heapq
from typing import Any, TypeVar

import numpy as np

from synth.arrays import AnyIntArray, BoolArray, FloatArray, IntArray
from synth.clock.start_up_costs import uncounted
from synth.graph.rows import rows_by
from synth.kernels import jit

Length = TypeVar("Length", IntArray, FloatArray)
UNREACHABLE = 2**62
"""The distance in whole numbers to a node without a path; real distances are infinite there. An arc at most this long
may be added to a distance below it without leaving 64 bits."""


@jit
def search(
    start: IntArray,
    out: IntArray,
    head: IntArray,
    length: Length,
    first: Length,
    through: BoolArray,
    entered: IntArray,
    settled: IntArray,
) -> Length:
    """Search from all nodes with ``first`` < :data:`UNREACHABLE`, which is their distance at the beginning (Dijkstra).

    Returns the distances, shape (nodes,), whole or real as ``first`` and ``length`` (arcs,) are. The arcs of node v are
    ``out[start[v]:start[v + 1]]`` and lead to ``head`` of these. A path ends at a node that is not ``through`` unless
    one may begin there. Filled in, shape (nodes,) each: ``entered``, the last arc of the path to every node (-1: it
    begins there or there is none); ``settled``, the nodes in the order in which they are settled, -1 behind the last.
    O(arcs log arcs).
    """
    distance = first.copy()
    entered[:] = -1
    settled[:] = -1
    done = np.zeros(len(first), dtype=np.bool_)
    heap: Any = [(first[0], np.int64(0)) for _ in range(0)]
    for v in range(len(first)):
        if first[v] < UNREACHABLE:
            heapq.heappush(heap, (first[v], np.int64(v)))
    count = 0
    while len(heap):
        top: Any = heapq.heappop(heap)
        d, v = top[0], top[1]
        if done[v]:
            continue
        done[v] = True
        settled[count] = v
        count += 1
        if not through[v] and first[v] >= UNREACHABLE:
            continue
        for k in range(start[v], start[v + 1]):
            e = out[k]
            w = head[e]
            if d + length[e] < distance[w]:
                distance[w] = d + length[e]
                entered[w] = e
                heapq.heappush(heap, (distance[w], np.int64(w)))
    return distance


@jit
def add_loads(entered: IntArray, settled: IntArray, tail: IntArray, wanted: IntArray, load: IntArray) -> None:
    """Add to ``load`` (arcs,) what ``wanted`` (nodes,) puts on the arcs of the paths to these nodes."""
    rest = wanted.copy()
    for i in range(len(settled) - 1, -1, -1):
        v = settled[i]
        if v < 0 or entered[v] < 0 or rest[v] == 0:
            continue
        load[entered[v]] += rest[v]
        rest[tail[entered[v]]] += rest[v]


def all_pairs(direct: IntArray) -> IntArray:
    """Return the distances between all nodes, shape (nodes, nodes); :data:`UNREACHABLE` where there is no path.

    ``direct``: the length of the shortest arc from row to column, :data:`UNREACHABLE` where there is none; a node is at
    distance 0 from itself. Floyd and Warshall's algorithm, O(nodes^3).
    """
    found = direct.copy()
    np.fill_diagonal(found, 0)
    for via in range(len(found)):
        into, out = np.flatnonzero(found[:, via] < UNREACHABLE), np.flatnonzero(found[via] < UNREACHABLE)
        at = np.ix_(into, out)
        found[at] = np.minimum(found[at], found[into, via, None] + found[None, via, out])
    return found


class PathTrees:
    """Trees of shortest paths by real lengths, many at once (scipy). Parallel arcs may occur: the shortest is taken,
    of several the first."""

    def __init__(self, nodes: int, tail: AnyIntArray, head: AnyIntArray) -> None:
        self._nodes = nodes
        key = tail.astype(np.int64) * nodes + head
        self._order = np.argsort(key, kind="stable")
        ordered = key[self._order]
        self._begins = np.flatnonzero(np.diff(ordered, prepend=-1) != 0)
        self._keys = ordered[self._begins]
        self._pair = np.repeat(np.arange(len(self._keys)), np.diff(self._begins, append=len(key)))
        self._start = rows_by(self._keys // max(nodes, 1), nodes)[0]
        self._arcs: Any = None  # as scipy reads them, with the lengths asked about last

    def distances(self, length: FloatArray, sources: AnyIntArray) -> FloatArray:
        """Return the distance from each source to each node, shape (sources, nodes), infinite without a path.

        ``length``: not negative, shape (arcs,).
        """
        with uncounted():
            from scipy.sparse.csgraph import dijkstra

        return np.asarray(dijkstra(self._graph(self._shortest(length)[0]), indices=sources))

    def trees(self, length: FloatArray, sources: AnyIntArray) -> tuple[FloatArray, IntArray]:
        """Return :meth:`distances` and the arc by which the tree of each source enters each node, -1 for none."""
        with uncounted():
            from scipy.sparse.csgraph import dijkstra

        least, arc = self._shortest(length)
        distance, before = dijkstra(self._graph(least), indices=sources, return_predecessors=True)
        entered = np.full(before.shape, -1, dtype=np.int64)
        row, node = np.nonzero(before >= 0)
        entered[row, node] = arc[np.searchsorted(self._keys, before[row, node].astype(np.int64) * self._nodes + node)]
        return distance, entered

    def _shortest(self, length: FloatArray) -> tuple[FloatArray, IntArray]:
        """Length and number of the shortest arc of every pair of nodes that arcs join, shape (pairs,) each."""
        ordered = length[self._order]
        if len(self._keys) == len(ordered):
            return ordered, self._order
        least = np.minimum.reduceat(ordered, self._begins)
        shortest = np.flatnonzero(ordered == least[self._pair])
        arc = np.empty(len(least), dtype=np.int64)
        arc[self._pair[shortest[::-1]]] = self._order[shortest[::-1]]  # the first is written last
        return least, arc

    def _graph(self, least: FloatArray) -> Any:
        with uncounted():
            from scipy.sparse import csr_array

        if self._arcs is None:
            self._arcs = csr_array(
                (least, self._keys % max(self._nodes, 1), self._start), shape=(self._nodes, self._nodes)
            )
        self._arcs.data = least
        return self._arcs
