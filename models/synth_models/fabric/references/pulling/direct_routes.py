"""Direct routes of every pair of ranks: paths of links whose inner nodes are switches, a few per pair.

One shortest-path search a source and round, by latency plus time on the link; later rounds shift the weights at random
and make links dear that earlier rounds used, so that parallel paths (spines of a fat tree, rails) are all found.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from synth.kernels import jit


@jit
def direct_routes(
    sources: Any,
    start: Any,
    out: Any,
    src: Any,
    dst: Any,
    is_switch: Any,
    weight: Any,
    rounds: Any,
    most: Any,
    seed: Any,
) -> Any:
    """Routes as rows ``(row_start, links)``, those of a source together.

    ``sources``, shape (ranks,); ``start``, ``out``: the links that leave each node, as rows; ``weight``, shape
    (links,): seconds; ``most``: targets a source at most, the nearest first, half of them random beyond that.
    Complexity: rounds * ranks searches of O(links log nodes).
    """
    np.random.seed(seed)
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
