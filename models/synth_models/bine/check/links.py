"""Bytes per global link: on a dragonfly, on a fat-tree with tapered uplinks, on a torus. Imports no method.

Each direction of a link counts apart. Traffic of a group pair spreads uniformly over the links between them; without a
``fabric`` there is one link between any two groups. Where a given dragonfly has no link between two groups, it takes
a shortest route over other groups (ties to the lower group number). On a torus it takes dimension order, the shorter
way round, ties upwards.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth_models.bine.instance import BineInstance, Dragonfly, FatTree


def pair_bytes(instance: BineInstance, job: int, src: IntArray, dst: IntArray, size: Any) -> Any:
    """Bytes from every group to every group, shape (groups, groups), zero diagonal."""
    groups = instance.allocations[job]
    count = int(groups.max()) + 1
    matrix = np.bincount(groups[src] * np.int64(count) + groups[dst], weights=size, minlength=count * count)
    matrix = matrix.reshape(count, count)
    np.fill_diagonal(matrix, 0.0)
    return matrix


def link_loads(instance: BineInstance, job: int, src: IntArray, dst: IntArray, size: Any) -> dict[str, float]:
    """``worst_group_pair_bytes`` (not on a torus) and ``worst_link_bytes`` of one job."""
    if instance.torus is not None:
        return {"worst_link_bytes": float(torus_links(instance.torus, src, dst, size).max(initial=0.0))}
    matrix = pair_bytes(instance, job, src, dst, size)
    facts = {"worst_group_pair_bytes": float(matrix.max(initial=0.0))}
    fabric = instance.fabric or Dragonfly()
    if isinstance(fabric, FatTree):
        load = max(matrix.sum(axis=1).max(), matrix.sum(axis=0).max()) / fabric.uplinks
    elif fabric.pairs is None:
        load = matrix.max(initial=0.0) / fabric.links_per_pair
    else:
        load = _routed(matrix, fabric.pairs)
    return facts | {"worst_link_bytes": float(load)}


def _routed(matrix: Any, pairs: list[tuple[int, int, int]]) -> float:
    """Bytes on the worst link when every group pair takes a shortest route; infinite if there is none."""
    links: dict[tuple[int, int], int] = {}
    for a, b, n in pairs:
        for pair in ((a, b), (b, a)):
            links[pair] = links.get(pair, 0) + n
    near: dict[int, list[int]] = {}
    for a, b in sorted(links):
        near.setdefault(a, []).append(b)
    load = dict.fromkeys(links, 0.0)
    for a in range(len(matrix)):
        before = {a: a}
        queue = deque([a])
        while queue:
            g = queue.popleft()
            for h in near.get(g, []):
                if h not in before:
                    before[h] = g
                    queue.append(h)
        for b in np.flatnonzero(matrix[a]).tolist():
            if b not in before:
                return float("inf")
            at = b
            while at != a:
                load[before[at], at] += matrix[a, b]
                at = before[at]
    return max((load[pair] / links[pair] for pair in links), default=0.0)


def torus_links(torus: list[int], src: IntArray, dst: IntArray, size: Any) -> Any:
    """Bytes on every directed link, shape (dimensions, 2, ranks): from each rank upwards and downwards."""
    ranks = int(np.prod(torus))
    load = np.zeros((len(torus), 2, ranks))
    here = np.array(np.unravel_index(src, torus)).reshape(len(torus), -1)
    goal = np.array(np.unravel_index(dst, torus)).reshape(len(torus), -1)
    for d, side in enumerate(torus):
        up = (goal[d] - here[d]) % side
        upwards = up <= side - up
        hops = np.where(upwards, up, side - up)
        for _ in range(int(hops.max(initial=0))):
            moving = hops > 0
            at = np.ravel_multi_index(tuple(here[:, moving]), tuple(torus))
            np.add.at(load[d], (np.where(upwards, 0, 1)[moving], at), np.asarray(size)[moving])
            here[d] = np.where(moving, (here[d] + np.where(upwards, 1, -1)) % side, here[d])
            hops = hops - moving
    return load
