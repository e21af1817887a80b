"""Shortest paths in whole numbers, and what they load."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from synth.kernels import jit
from synth_models.fabric.bounds.arrays import BoolArray, IntArray, Links

FAR = 2**62


@jit
def shortest(
    out_start: IntArray,
    out: IntArray,
    dst: IntArray,
    length: IntArray,
    first: IntArray,
    through: BoolArray,
    came: IntArray,
    order: IntArray,
) -> IntArray:
    """Distances from all nodes with ``first`` < ``FAR`` (their distance at the beginning), shape (nodes,).

    Nodes that are not ``through`` end a path unless it begins there. ``came``: the last link of the path to every
    node, -1 at its beginning; ``order``: nodes as they are settled, -1 behind the last; both are filled in.
    """
    distance = first.copy()
    came[:] = -1
    order[:] = -1
    done = np.zeros(len(first), dtype=np.bool_)
    heap: Any = [(np.int64(0), np.int64(0)) for _ in range(0)]
    for v in range(len(first)):
        if first[v] < FAR:
            heapq.heappush(heap, (first[v], np.int64(v)))
    count = 0
    while len(heap):
        top: Any = heapq.heappop(heap)
        d, v = top[0], top[1]
        if done[v]:
            continue
        done[v] = True
        order[count] = v
        count += 1
        if not through[v] and came[v] >= 0:
            continue
        for k in range(out_start[v], out_start[v + 1]):
            e = out[k]
            w = dst[e]
            if d + length[e] < distance[w]:
                distance[w] = d + length[e]
                came[w] = e
                heapq.heappush(heap, (distance[w], np.int64(w)))
    return distance


@jit
def into_ranks(dst: IntArray, src: IntArray, length: IntArray, distance: IntArray, last: IntArray) -> IntArray:
    """For every node the least ``distance[tail] + length`` over the links that enter it; ``last`` gets that link."""
    found = np.full(len(distance), FAR, dtype=np.int64)
    last[:] = -1
    for e in range(len(src)):
        if distance[src[e]] < FAR and distance[src[e]] + length[e] < found[dst[e]]:
            found[dst[e]] = distance[src[e]] + length[e]
            last[dst[e]] = e
    return found


@jit
def loads(came: IntArray, order: IntArray, src: IntArray, wanted: IntArray, load: IntArray) -> None:
    """Add to ``load`` what ``wanted`` at every node puts on the links of the paths to them."""
    rest = wanted.copy()
    for i in range(len(order) - 1, -1, -1):
        v = order[i]
        if v < 0 or came[v] < 0 or rest[v] == 0:
            continue
        load[came[v]] += rest[v]
        rest[src[came[v]]] += rest[v]


def distances(links: Links, length: IntArray, sources: Any, through: BoolArray | None = None) -> IntArray:
    """Distances from the nearest of the sources, shape (nodes,); :data:`FAR` where there is no path."""
    first = np.full(links.nodes, FAR, dtype=np.int64)
    first[sources] = 0
    came, order = np.empty(links.nodes, dtype=np.int64), np.empty(links.nodes, dtype=np.int64)
    anywhere = np.ones(links.nodes, dtype=bool) if through is None else through
    return shortest(*links.out, links.dst, length, first, anywhere, came, order)
