"""An order of nodes in which none comes before what it comes after, and what has none."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def ordered(before: Sequence[Sequence[int]], rank: Sequence[float]) -> list[int]:
    """All nodes that are behind no cycle, each after those in its row of ``before``; of several that could be next the
    one of the least ``rank``, then of the least number. O((nodes + rows) log nodes)."""
    open_ = [len(row) for row in before]
    behind = followers(before)
    heap = [(rank[node], node) for node, many in enumerate(open_) if not many]
    heapq.heapify(heap)
    found = []
    while heap:
        _, node = heapq.heappop(heap)
        found.append(node)
        for other in behind[node]:
            open_[other] -= 1
            if not open_[other]:
                heapq.heappush(heap, (rank[other], other))
    return found


def followers(before: Sequence[Sequence[int]]) -> list[list[int]]:
    """Of every node those that come after it."""
    behind: list[list[int]] = [[] for _ in before]
    for node, row in enumerate(before):
        for other in row:
            behind[other].append(node)
    return behind


def cycles(before: Sequence[Sequence[int]]) -> list[list[int]]:
    """One cycle of nodes that wait for each other, for every part of the graph that has any; disjoint ones."""
    done = set(ordered(before, [0.0] * len(before)))
    seen: dict[int, int] = {}
    found = []
    for start in range(len(before)):
        if start in done or start in seen:
            continue
        way, node = [], start
        while node not in seen:
            seen[node] = start
            way.append(node)
            node = next(other for other in before[node] if other not in done)
        if seen[node] == start:
            found.append(sorted(way[way.index(node) :]))
    return found
