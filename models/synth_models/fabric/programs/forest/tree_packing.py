"""Spanning out-trees packed into capacities: as many from every root as the cuts allow, no more and no fewer.

Edmonds (1973): there are m_r trees from every root r within the capacities if and only if every node set X without
some roots takes in at least the m_r of those roots. Trees are grown edge by edge (Berczi and Frank, Packing
arborescences, 2009, with multiplicities as in ForestColl, 2024): an edge from u to v may be added to mu copies of a
tree if afterwards every set X still takes in as many as there are trees outside it, which one maximum flow to v tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.clock.deadline import OutOfTime, left
from synth.graph.max_flow import augment, of_matrix
from synth.kernels import jit
from synth.kernels.clock import now
from synth_models.fabric.programs.forest.tuned import SWEEPS


@dataclass
class Trees:
    """Spanning trees over members 0..n-1. ``parent``: shape (trees, n), -1 at the root; ``copies``: shape (trees,)."""

    parent: IntArray
    copies: IntArray

    @property
    def roots(self) -> IntArray:
        """Root of every tree."""
        found: IntArray = np.argmin(self.parent, axis=1)
        return found

    @property
    def depth(self) -> IntArray:
        """Hops from the root to the farthest member, shape (trees,)."""
        deepest: IntArray = depths(self.parent).max(axis=1)
        return deepest

    def used(self) -> IntArray:
        """Capacity that the trees take between every two members, shape (n, n)."""
        n = self.parent.shape[1]
        amount = np.zeros((n, n), dtype=np.int64)
        for row, copies in zip(self.parent, self.copies, strict=True):
            child = np.flatnonzero(row >= 0)
            amount[row[child], child] += copies
        return amount


@jit
def depths(parent: IntArray) -> IntArray:
    """Hops from the root of every member in every tree, shape (trees, n)."""
    trees, n = parent.shape
    depth = np.full((trees, n), -1, dtype=np.int64)
    for t in range(trees):
        for v in range(n):
            hops, u = 0, v
            while parent[t, u] >= 0 and depth[t, u] < 0:
                hops += 1
                u = parent[t, u]
            if depth[t, u] < 0:
                depth[t, u] = 0
            hops += depth[t, u]
            u = v
            while depth[t, u] < 0:
                depth[t, u] = hops
                hops -= 1
                u = parent[t, u]
    return depth


def pack_trees(capacity: IntArray, demand: IntArray) -> Trees:
    """``demand[r]`` trees rooted at every member r within ``capacity``, shape (n, n). Raises ``ValueError`` where a
    cut forbids it, :class:`OutOfTime` at the time limit."""
    widths = np.ascontiguousarray(capacity, dtype=np.int64)  # one layout, and so one compiled form
    parent, copies, ended = _packed(widths, np.ascontiguousarray(demand, dtype=np.int64), float(left()))
    if not ended:
        raise OutOfTime
    if len(copies) == 0 and demand.sum() > 0:
        raise ValueError("no such trees: a cut takes in too little")
    return Trees(parent, copies)


class Growing(NamedTuple):
    """Trees that still grow, as a stack: the ``copies`` of each, its ``size`` in members, shape (room,); which
    members are ``inside``, their ``parent`` (-1: none), and the members in the ``order`` in which they were reached,
    shape (room, n); edges that are ``dead``, since no copy may take them, shape (room, n, n)."""

    copies: IntArray
    size: IntArray
    inside: BoolArray
    parent: IntArray
    order: IntArray
    dead: BoolArray


class Edge(NamedTuple):
    """An edge from ``tail`` to ``head`` and how many copies may take it; 0: there is none."""

    tail: int
    head: int
    copies: int


@jit
def _growing(room: int, n: int) -> Growing:
    """No tree yet, and room for so many."""
    return Growing(
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.zeros((room, n), dtype=np.bool_),
        np.full((room, n), -1, dtype=np.int64),
        np.zeros((room, n), dtype=np.int64),
        np.zeros((room, n, n), dtype=np.bool_),
    )


@jit
def _with_more_room(trees: Growing) -> Growing:
    """The same trees with twice the room; what stands in the new half is of no meaning."""
    return Growing(
        np.concatenate((trees.copies, trees.copies)),
        np.concatenate((trees.size, trees.size)),
        np.concatenate((trees.inside, trees.inside)),
        np.concatenate((trees.parent, trees.parent)),
        np.concatenate((trees.order, trees.order)),
        np.concatenate((trees.dead, trees.dead)),
    )


@jit
def _slack(capacity: IntArray, waiting: IntArray, count: IntArray, inside: BoolArray, u: int, v: int, most: int) -> int:
    """How many copies of the last tree may take the edge from u to v: by the least cut that takes in v but not u."""
    n, others = len(waiting), len(count) - 1
    net = np.zeros((n + 1 + others, n + 1 + others), dtype=np.int64)
    net[:n, :n] = capacity
    everything = 0
    for r in range(n):
        net[n, r] = waiting[r]
        everything += waiting[r]
    for j in range(others):
        net[n, n + 1 + j] = count[j]
        everything += count[j]
        for r in range(n):
            if inside[j, r]:
                net[n + 1 + j, r] = count[j]
    net[n, u] += everything + most
    return augment(of_matrix(net), n, v, everything + most) - everything


@jit
def _next_edge(capacity: IntArray, waiting: IntArray, trees: Growing, stacked: int) -> Edge:
    """The edge by which the tree on top grows: from the earliest reached that can, the widest."""
    top = stacked - 1
    copies, inside, dead = trees.copies, trees.inside, trees.dead
    for u in trees.order[top, : trees.size[top]]:
        while True:
            v = -1
            for w in range(len(waiting)):
                if inside[top, w] or dead[top, u, w] or capacity[u, w] == 0:
                    continue
                if v < 0 or capacity[u, w] > capacity[u, v]:
                    v = w
            if v < 0:
                break
            amount = min(copies[top], capacity[u, v])
            amount = min(amount, _slack(capacity, waiting, copies[:stacked], inside[:stacked], u, v, amount))
            if amount > 0:
                return Edge(u, v, amount)
            dead[top, u, v] = True
    return Edge(-1, -1, 0)


@jit
def _packed(capacity: IntArray, demand: IntArray, seconds: float) -> tuple[IntArray, IntArray, bool]:
    """Parents, copies, and whether it came to an end within the seconds."""
    end = now() + seconds
    n = len(demand)
    none = np.empty((0, n), dtype=np.int64), np.empty(0, dtype=np.int64)
    capacity = capacity.copy()
    waiting = demand.copy()
    done_parent, done_copies = np.empty((64, n), dtype=np.int64), np.empty(64, dtype=np.int64)
    done = 0
    trees = _growing(16, n)
    for root in range(n):
        if demand[root] == 0:
            continue
        waiting[root] = 0
        stacked = 1
        trees.copies[0], trees.size[0] = demand[root], 1
        trees.inside[0], trees.parent[0], trees.dead[0] = False, -1, False
        trees.inside[0, root], trees.order[0, 0] = True, root
        while stacked:
            if now() > end:
                return *none, False
            i = stacked - 1
            if trees.size[i] == n:
                if done == len(done_copies):
                    done_parent = np.concatenate((done_parent, done_parent))
                    done_copies = np.concatenate((done_copies, done_copies))
                done_parent[done], done_copies[done] = trees.parent[i], trees.copies[i]
                done += 1
                stacked -= 1
                continue
            edge = _next_edge(capacity, waiting, trees, stacked)
            if edge.copies == 0:
                return *none, True
            capacity[edge.tail, edge.head] -= edge.copies
            if edge.copies < trees.copies[i]:  # the others stay as they were and are grown later
                if stacked == len(trees.copies):
                    trees = _with_more_room(trees)
                trees.copies[i] -= edge.copies
                trees.copies[i + 1], trees.size[i + 1] = edge.copies, trees.size[i]
                trees.inside[i + 1], trees.parent[i + 1] = trees.inside[i], trees.parent[i]
                trees.order[i + 1], trees.dead[i + 1] = trees.order[i], trees.dead[i]
                i += 1
                stacked += 1
            trees.parent[i, edge.head], trees.inside[i, edge.head] = edge.tail, True
            trees.order[i, trees.size[i]] = edge.head
            trees.size[i] += 1
    return done_parent[:done].copy(), done_copies[:done].copy(), True


def shallower(trees: Trees, capacity: IntArray, most_trees: int = 4096) -> Trees:
    """The same trees after exchanges that make them less deep: two trees swap the edges by which they enter a member,
    or one takes an edge with capacity to spare. Every capacity is used as little as before."""
    parent, copies = trees.parent, trees.copies
    if copies.sum() <= most_trees:
        parent, copies = np.repeat(parent, copies, axis=0), np.ones(int(copies.sum()), dtype=np.int64)
    parent = parent.copy()
    spare = capacity - Trees(parent, copies).used()
    budget = 4e8
    for _ in range(SWEEPS):
        if not _exchange(parent, copies, spare, left()):
            break
        budget -= float(len(copies)) ** 2 * parent.shape[1]
        if budget < 0:
            break
    distinct, which = np.unique(parent, axis=0, return_inverse=True)
    total = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(total, which.reshape(-1), copies)
    return Trees(distinct, total)


@jit
def _beneath(parent: IntArray, t: int, u: int, v: int) -> bool:
    """Whether u hangs below v (or is v) in tree t."""
    while u >= 0:
        if u == v:
            return True
        u = parent[t, u]
    return False


@jit
def _gain(sizes: IntArray, shift: int, v: int) -> int:
    """What it saves that v and all below it move up by ``shift`` hops: squares of depths count, so that the deepest
    matter most. ``sizes``: number below v, and sum of their depths."""
    return int(sizes[0, v] * shift * -shift + 2 * shift * sizes[1, v])


@jit
def _measure(parent: IntArray, t: int, depth: IntArray, sizes: IntArray) -> None:
    """Depth of every member of tree t; number and depths of all that hang below."""
    n = parent.shape[1]
    deepest = 0
    for v in range(n):
        hops, u = 0, v
        while parent[t, u] >= 0:
            hops += 1
            u = parent[t, u]
        depth[t, v] = hops
        deepest = max(deepest, hops)
        sizes[t, 0, v] = 1
        sizes[t, 1, v] = hops
    for level in range(deepest, 0, -1):
        for v in range(n):
            if depth[t, v] == level:
                sizes[t, 0, parent[t, v]] += sizes[t, 0, v]
                sizes[t, 1, parent[t, v]] += sizes[t, 1, v]


@jit
def _exchange(parent: IntArray, copies: IntArray, spare: IntArray, seconds: float) -> bool:
    """One sweep of exchanges, or what of it the seconds allow; whether anything changed and there is time for more."""
    end = now() + seconds
    trees, n = parent.shape
    depth = np.zeros((trees, n), dtype=np.int64)
    sizes = np.zeros((trees, 2, n), dtype=np.int64)
    for t in range(trees):
        _measure(parent, t, depth, sizes)
    changed = False
    for v in range(n):
        if now() > end:
            return False
        for t in range(trees):
            p = parent[t, v]
            if p < 0:
                continue
            for q in range(n):  # capacity to spare
                if spare[q, v] >= copies[t] and depth[t, q] < depth[t, p] and not _beneath(parent, t, q, v):
                    spare[p, v] += copies[t]
                    spare[q, v] -= copies[t]
                    parent[t, v] = q
                    p = q
                    _measure(parent, t, depth, sizes)
                    changed = True
            for s in range(trees):
                q = parent[s, v]
                if q < 0 or q == p or copies[s] != copies[t] or depth[t, q] >= depth[t, p]:
                    continue
                gain = _gain(sizes[t], depth[t, p] - depth[t, q], v) + _gain(sizes[s], depth[s, q] - depth[s, p], v)
                if gain <= 0 or _beneath(parent, t, q, v) or _beneath(parent, s, p, v):
                    continue
                parent[t, v] = q
                parent[s, v] = p
                p = q
                _measure(parent, t, depth, sizes)
                _measure(parent, s, depth, sizes)
                changed = True
    return changed
