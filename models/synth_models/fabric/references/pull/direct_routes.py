"""Direct routes of every pair of ranks: paths of links whose inner nodes are switches, a few per pair.

One shortest-path search a source and round, by latency plus time on the link; later rounds shift the weights at random
and make links dear that earlier rounds used, so that parallel paths (spines of a fat tree, rails) are all found.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.kernels import jit


class WeightedLinks(NamedTuple):
    """Links from ``src`` to ``dst`` and their ``weight`` (s), shape (links,); ``is_switch``, shape (nodes,). The links
    that leave node v are ``out[start[v]:start[v + 1]]``."""

    start: IntArray
    out: IntArray
    src: IntArray
    dst: IntArray
    is_switch: BoolArray
    weight: FloatArray


class Rows(NamedTuple):
    """Routes as rows: route r is ``links[start[r]:start[r + 1]]``; ``made``: how many there are, shape (1,)."""

    start: IntArray
    links: IntArray
    made: IntArray


@jit
def direct_routes(
    graph: WeightedLinks, sources: IntArray, rounds: int, most: int, seed: int
) -> tuple[IntArray, IntArray]:
    """Routes as rows ``(row_start, links)``, those of a source together.

    ``sources``, shape (ranks,); ``most``: targets a source at most, the nearest first, half of them random beyond that.
    Complexity: rounds * ranks searches of O(links log nodes).
    """
    np.random.seed(seed)
    is_switch, nodes = graph.is_switch, len(graph.is_switch)
    found = Rows(np.zeros(1024, dtype=np.int64), np.zeros(4096, dtype=np.int64), np.zeros(1, dtype=np.int64))
    distance, nearest = np.empty(nodes), np.empty(nodes)
    via = np.empty((rounds, nodes), dtype=np.int64)
    use = np.zeros(len(graph.src))
    path = np.empty(nodes, dtype=np.int64)
    fast = graph.weight.min() if len(graph.src) else 1.0
    for u in sources:
        reached, cutoff = 0, np.inf
        for k in range(rounds):
            _search(graph, u, use, k > 0, distance, via[k])
            if k == 0:
                use[:] = 0.0
                nearest[:] = np.inf
                for v in range(nodes):
                    if v != u and not is_switch[v] and distance[v] < np.inf:
                        nearest[reached] = distance[v]
                        reached += 1
                if reached > most:
                    nearest[:reached].sort()
                    cutoff = nearest[most // 2]
                nearest[:] = distance
            for v in range(nodes):
                if v == u or is_switch[v] or via[k, v] < 0:
                    continue
                if nearest[v] > cutoff and (k > 0 or np.random.random() * (reached - most // 2) > most - most // 2):
                    continue
                length, node = 0, np.int64(v)
                while node != u:
                    path[length] = via[k, node]
                    node = graph.src[path[length]]
                    length += 1
                for i in range(length):
                    use[path[i]] += 0.5 + fast
                if not _is_known(graph.src, via[:k], v, path[:length]):
                    found = _added(found, path[:length])
    rows = found.made[0]
    return found.start[: rows + 1].copy(), found.links[: found.start[rows]].copy()


@jit
def _search(graph: WeightedLinks, u: int, use: FloatArray, avoiding: bool, distance: FloatArray, via: IntArray) -> None:
    """Write the distance of every node from u over switches (s), and the link by which it is reached (-1: none).
    ``avoiding``: links between switches cost more, at random, the more they were used before."""
    start, out, _, dst, is_switch, weight = graph
    distance[:] = np.inf
    via[:] = -1
    distance[u] = 0.0
    heap = [(0.0, np.int64(u))]
    while len(heap):
        at, node = heapq.heappop(heap)
        if at > distance[node] or (node != u and not is_switch[node]):
            continue
        for j in range(start[node], start[node + 1]):
            e = out[j]
            v = dst[e]
            w = weight[e] * (1.0 + 1e-6 * np.random.random())
            if avoiding and use[e] > 0 and is_switch[v] and is_switch[node]:
                w += weight[e] * use[e] * np.random.random()
            if at + w < distance[v]:
                distance[v] = at + w
                via[v] = e
                heapq.heappush(heap, (distance[v], np.int64(v)))


@jit
def _is_known(src: IntArray, via: IntArray, v: int, path: IntArray) -> bool:
    """Whether an earlier round, a row of ``via``, has led to v by this path, which is given from its end."""
    for k in range(len(via)):
        node, i = np.int64(v), 0
        while i < len(path) and via[k, node] == path[i]:
            node = src[path[i]]
            i += 1
        if i == len(path):
            return True
    return False


@jit
def _added(found: Rows, path: IntArray) -> Rows:
    """The routes and one more, whose links are given from its end."""
    start, links, made = found
    row = made[0]
    top, length = start[row], len(path)
    if row + 2 > len(start):
        start = np.concatenate((start, np.zeros(len(start), dtype=np.int64)))
    while top + length > len(links):
        links = np.concatenate((links, np.zeros(len(links), dtype=np.int64)))
    for i in range(length):
        links[top + i] = path[length - 1 - i]
    start[row + 1] = top + length
    made[0] += 1
    return Rows(start, links, made)
