"""Hops from nodes to nodes of a directed graph, without scipy where the graph is small: importing it takes longer."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence

import numpy as np

from synth.arrays import AnyIntArray, Int32Array
from synth.clock.start_up_costs import uncounted
from synth.kernels import jit

SMALL_WORK = 5_000  # nodes and arcs looked at, over all sources, up to which plain Python searches (less than 1 ms)
LOADING_WORK = 2_000_000  # the same where scipy would have to be imported first: that takes longer


def hops(nodes: int, tail: AnyIntArray, head: AnyIntArray, sources: Sequence[int] | AnyIntArray) -> Int32Array:
    """Return the hops from each source to each node, shape (sources, nodes); -1 where there is no path.

    Arcs go from ``tail`` to ``head``, shape (arcs,) each; parallel arcs may occur.
    """
    work = (nodes + len(tail)) * len(sources)
    if work <= (SMALL_WORK if "scipy.sparse.csgraph" in sys.modules else LOADING_WORK):
        return small_hops(nodes, tail, head, sources)
    return large_hops(nodes, tail, head, sources)


def hops_from_nearest(
    nodes: int, tail: AnyIntArray, head: AnyIntArray, sources: Sequence[int] | AnyIntArray
) -> Int32Array:
    """Return the hops from the nearest of the sources to each node, shape (nodes,); -1 where there is no path."""
    joined = np.concatenate([tail, np.full(len(sources), nodes)])  # a node more, from which an arc leads to each source
    found = hops(nodes + 1, joined, np.concatenate([head, np.asarray(sources, dtype=np.int64)]), [nodes])[0, :nodes]
    return np.where(found > 0, found - 1, -1).astype(np.int32)


def small_hops(nodes: int, tail: AnyIntArray, head: AnyIntArray, sources: Sequence[int] | AnyIntArray) -> Int32Array:
    """Return :func:`hops` by breadth-first search in plain Python."""
    successors: list[list[int]] = [[] for _ in range(nodes)]
    for start, end in zip(tail.tolist(), head.tolist(), strict=True):
        successors[start].append(end)
    found = np.empty((len(sources), nodes), np.int32)
    for row, source in zip(found, sources, strict=True):
        away = [-1] * nodes
        away[source] = 0
        waiting = deque([source])
        while waiting:
            node = waiting.popleft()
            for successor in successors[node]:
                if away[successor] < 0:
                    away[successor] = away[node] + 1
                    waiting.append(successor)
        row[:] = away
    return found


def large_hops(nodes: int, tail: AnyIntArray, head: AnyIntArray, sources: Sequence[int] | AnyIntArray) -> Int32Array:
    """Return :func:`hops` by scipy."""
    with uncounted():
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

    graph = csr_array((np.ones(len(tail)), (tail, head)), shape=(nodes, nodes))
    found = dijkstra(graph, indices=np.asarray(sources, dtype=np.int64), unweighted=True)
    return np.where(np.isfinite(found), found, -1).astype(np.int32)


@jit
def breadth_first(
    start: AnyIntArray, head: AnyIntArray, source: int, distance: AnyIntArray, order: AnyIntArray
) -> None:
    """Search from one node, in a kernel: fill ``distance`` (-1: no path) and ``order``, shape (nodes,) each.

    The arcs of node v lead to ``head[start[v]:start[v + 1]]``. ``order``: the nodes as they are reached, -1 behind the
    last. O(nodes + arcs).
    """
    distance[:] = -1
    distance[source] = 0
    order[0], first, last = source, 0, 1
    while first < last:
        at = order[first]
        first += 1
        for place in range(start[at], start[at + 1]):
            to = head[place]
            if distance[to] < 0:
                distance[to] = distance[at] + 1
                order[last] = to
                last += 1
    order[last:] = -1
