"""Spanning out-trees packed into capacities: as many from every root as the cuts allow, no more and no fewer.

Edmonds (1973): there are m_r trees from every root r within the capacities if and only if every node set X without
some roots takes in at least the m_r of those roots. Trees are grown edge by edge (Berczi and Frank, Packing
arborescences, 2009, with multiplicities as in ForestColl, 2024): an edge from u to v may be added to mu copies of a
tree if afterwards every set X still takes in as many as there are trees outside it, which one maximum flow to v tells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth.deadline import OutOfTime, left
from synth.graph.max_flow import augment, of_matrix
from synth.kernel_clock import now
from synth.kernels import jit

SWEEPS = 20


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
    parent, copies, ended = _packed(capacity.astype(np.int64), demand.astype(np.int64), left())
    if not ended:
        raise OutOfTime
    if len(copies) == 0 and demand.sum() > 0:
        raise ValueError("no such trees: a cut takes in too little")
    return Trees(parent, copies)


@jit
def _slack(
    capacity: IntArray,
    waiting: IntArray,
    count: IntArray,
    inside: IntArray,
    stacked: int,
    mine: int,
    u: int,
    v: int,
    most: int,
) -> int:
    """How many copies of tree ``mine`` may take the edge from u to v: by the least cut that takes in v but not u."""
    n = len(waiting)
    others = stacked - 1
    nodes = n + 1 + others
    net = np.zeros((nodes, nodes), dtype=np.int64)
    net[:n, :n] = capacity
    everything = 0
    for r in range(n):
        net[n, r] = waiting[r]
        everything += waiting[r]
    node = n + 1
    for j in range(stacked):
        if j == mine:
            continue
        net[n, node] = count[j]
        everything += count[j]
        for r in range(n):
            if inside[j, r]:
                net[node, r] = count[j]
        node += 1
    net[n, u] += everything + most
    return augment(of_matrix(net), n, v, everything + most) - everything


@jit
def _packed(capacity: IntArray, demand: IntArray, seconds: float) -> tuple[IntArray, IntArray, bool]:
    """Parents, copies, and whether it came to an end within the seconds."""
    end = now() + seconds
    n = len(demand)
    capacity = capacity.copy()
    waiting = demand.copy()
    room = 64
    done_parent = np.empty((room, n), dtype=np.int64)
    done_copies = np.empty(room, dtype=np.int64)
    done = 0
    stack_room = 16
    count = np.zeros(stack_room, dtype=np.int64)
    size = np.zeros(stack_room, dtype=np.int64)
    inside = np.zeros((stack_room, n), dtype=np.int64)
    parent = np.full((stack_room, n), -1, dtype=np.int64)
    order = np.zeros((stack_room, n), dtype=np.int64)
    dead = np.zeros((stack_room, n, n), dtype=np.bool_)
    for root in range(n):
        if demand[root] == 0:
            continue
        waiting[root] = 0
        stacked = 1
        count[0], size[0] = demand[root], 1
        inside[0] = 0
        inside[0, root] = 1
        parent[0] = -1
        order[0, 0] = root
        dead[0] = False
        while stacked:
            if now() > end:
                return np.empty((0, n), dtype=np.int64), np.empty(0, dtype=np.int64), False
            i = stacked - 1
            if size[i] == n:
                if done == room:
                    room *= 2
                    new_parent = np.empty((room, n), dtype=np.int64)
                    new_parent[:done] = done_parent
                    done_parent = new_parent
                    new_copies = np.empty(room, dtype=np.int64)
                    new_copies[:done] = done_copies
                    done_copies = new_copies
                done_parent[done] = parent[i]
                done_copies[done] = count[i]
                done += 1
                stacked -= 1
                continue
            grown = False
            for k in range(size[i]):  # breadth first: the earliest reached come first
                u = order[i, k]
                while True:  # the widest edge first
                    v = -1
                    for w in range(n):
                        if inside[i, w] or dead[i, u, w] or capacity[u, w] == 0:
                            continue
                        if v < 0 or capacity[u, w] > capacity[u, v]:
                            v = w
                    if v < 0:
                        break
                    amount = min(count[i], capacity[u, v])
                    amount = min(amount, _slack(capacity, waiting, count, inside, stacked, i, u, v, amount))
                    if amount > 0:
                        grown = True
                        break
                    dead[i, u, v] = True
                if grown:
                    break
            if not grown:
                return np.empty((0, n), dtype=np.int64), np.empty(0, dtype=np.int64), True
            capacity[u, v] -= amount
            if amount < count[i]:  # the others stay as they were and are grown later
                if stacked == stack_room:
                    more = 2 * stack_room
                    new_count = np.zeros(more, dtype=np.int64)
                    new_count[:stacked] = count
                    count = new_count
                    new_size = np.zeros(more, dtype=np.int64)
                    new_size[:stacked] = size
                    size = new_size
                    new_inside = np.zeros((more, n), dtype=np.int64)
                    new_inside[:stacked] = inside
                    inside = new_inside
                    new_row = np.full((more, n), -1, dtype=np.int64)
                    new_row[:stacked] = parent
                    parent = new_row
                    new_order = np.zeros((more, n), dtype=np.int64)
                    new_order[:stacked] = order
                    order = new_order
                    new_dead = np.zeros((more, n, n), dtype=np.bool_)
                    new_dead[:stacked] = dead
                    dead = new_dead
                    stack_room = more
                count[i + 1], size[i + 1] = amount, size[i]
                inside[i + 1] = inside[i]
                parent[i + 1] = parent[i]
                order[i + 1] = order[i]
                dead[i + 1] = dead[i]
                count[i] -= amount
                i += 1
                stacked += 1
            parent[i, v] = u
            inside[i, v] = 1
            order[i, size[i]] = v
            size[i] += 1
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
