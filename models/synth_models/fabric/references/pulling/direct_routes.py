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


@jit
def direct_routes(
    graph: WeightedLinks, sources: IntArray, rounds: int, most: int, seed: int
) -> tuple[IntArray, IntArray]:
    """Routes as rows ``(row_start, links)``, those of a source together.

    ``sources``, shape (ranks,); ``most``: targets a source at most, the nearest first, half of them random beyond that.
    Complexity: rounds * ranks searches of O(links log nodes).
    """
    np.random.seed(seed)
    start, out, src, dst, is_switch, weight = graph
    nodes, links = len(start) - 1, len(src)
    row_start = np.zeros(1024, dtype=np.int64)
    flat = np.zeros(4096, dtype=np.int64)
    rows, top = 0, 0
    distance = np.empty(nodes)
    via = np.empty((rounds, nodes), dtype=np.int64)
    use = np.zeros(links)
    far = np.empty(nodes)
    path = np.empty(nodes, dtype=np.int64)
    fast = weight.min() if links else 1.0
    for s in range(len(sources)):
        u = sources[s]
        reached = 0
        cutoff = np.inf
        for k in range(rounds):
            distance[:] = np.inf
            via[k, :] = -1
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
                    if k > 0 and use[e] > 0 and is_switch[v] and is_switch[node]:
                        w += weight[e] * use[e] * np.random.random()
                    if at + w < distance[v]:
                        distance[v] = at + w
                        via[k, v] = e
                        heapq.heappush(heap, (distance[v], np.int64(v)))
            if k == 0:
                use[:] = 0.0
                far[:] = np.inf
                for v in range(nodes):
                    if v != u and not is_switch[v] and distance[v] < np.inf:
                        far[reached] = distance[v]
                        reached += 1
                if reached > most:
                    far[:reached].sort()
                    cutoff = far[most // 2]
                far[:] = distance
            for v in range(nodes):
                if v == u or is_switch[v] or via[k, v] < 0:
                    continue
                if far[v] > cutoff and (k > 0 or np.random.random() * (reached - most // 2) > most - most // 2):
                    continue
                length, node = 0, np.int64(v)
                while node != u:
                    e = via[k, node]
                    path[length] = e
                    length += 1
                    node = src[e]
                known = False
                for before in range(k):  # the same route as in an earlier round
                    node, same = np.int64(v), True
                    for i in range(length):
                        if via[before, node] != path[i]:
                            same = False
                            break
                        node = src[path[i]]
                    if same:
                        known = True
                        break
                for i in range(length):
                    use[path[i]] += 0.5 + fast
                if known:
                    continue
                if rows + 2 > len(row_start):
                    row_start = np.concatenate((row_start, np.zeros(len(row_start), dtype=np.int64)))
                while top + length > len(flat):
                    flat = np.concatenate((flat, np.zeros(len(flat), dtype=np.int64)))
                for i in range(length):
                    flat[top + i] = path[length - 1 - i]
                top += length
                rows += 1
                row_start[rows] = top
    return row_start[: rows + 1].copy(), flat[:top].copy()
