"""A list scheduler for given trees.

The baselines ``mesh2d_rings``, ``tto`` and ``tidalmesh`` fix for every chunk the tree it travels on; when each transfer
takes place is left to one scheduler. It goes timestep by timestep and gives every link the most urgent of the chunks
that wait for it: a chunk waits for a link once it has arrived at the link's tail (from the next timestep on), a
partial sum once everything from its subtree has arrived, a copy of a sum once the sum is complete at the root. Most
urgent is the lowest group of chunks (all one group unless the caller says otherwise), then the longest path still to
go, then a copy before a sum, then the lowest chunk id; nothing is random.

Complexity: O(T * links + M log M) for M transfers, memory O(M) and 40 bytes per (tree, node).
Guarantee: every chunk gets wherever its tree goes, and no link idles while a chunk waits for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.kernels import jit
from synth.network import Network
from synth.schedule import Schedule


class _Copying(NamedTuple):
    """Copies down the trees, shape (trees, nodes) each, (0, nodes) for none: the ``link`` over which a node gets one,
    its ``first`` child, its next ``sibling`` (-1: none), and the hops still to go from its parent (``rank``)."""

    link: Int32Array
    first: Int32Array
    sibling: Int32Array
    rank: Int32Array


class _Summing(NamedTuple):
    """Sums up the trees, shape (trees, nodes) each, (0, nodes) for none: the ``link`` over which a node sends its own,
    how many ``children`` it waits for, and the hops still to go (``rank``)."""

    link: Int32Array
    children: Int32Array
    rank: Int32Array


def list_schedule(
    network: Network,
    tree_of: Int32Array,
    down: Int32Array | None = None,
    up: Int32Array | None = None,
    group: Int32Array | None = None,
) -> Schedule:
    """Schedule every chunk over its tree.

    ``tree_of``, shape (chunks,), is the tree of each chunk. ``down``, shape (trees, nodes), holds the link over which
    a node receives a copy, -1 at nodes that hold the chunk before (roots) or never get it; ``up``, same shape, the link
    over which a node sends its partial sum, -1 at the root. With both, the copies leave the root, which is the same in
    both, once the sum is complete there. ``group``, shape (chunks,), whole numbers from 0: lower ones are more urgent.
    Raises ``ValueError`` when links of a tree close a cycle or do not end at the node they stand for.
    """
    if down is None and up is None:
        raise ValueError("copies, sums or both need trees")
    kinds = [trees for trees in (down, up) if trees is not None]
    trees, nodes = kinds[0].shape
    down_parent = _parents(network, down, network.dst, network.src)
    up_parent = _parents(network, up, network.src, network.dst)
    if down is not None and up is not None and np.any((down < 0) != (up < 0)):
        raise ValueError("copies leave the node at which the sum is formed")
    depth, height = np.zeros((trees, nodes), np.int32), np.zeros((trees, nodes), np.int32)
    waiting = np.zeros((trees, nodes), np.int32)
    first, sibling = np.zeros((0, nodes), np.int32), np.zeros((0, nodes), np.int32)
    if up is not None:
        depth, _, waiting, _, _ = _shape_of(up_parent)
    if down is not None:
        _, height, _, first, sibling = _shape_of(down_parent)
    below = height[down < 0].max() if down is not None and up is not None else 0
    # hops still to go: down to the farthest leaf, or up to the root and then down to the farthest leaf
    copy_rank, sum_rank = height + 1, depth + below
    groups = np.zeros(len(tree_of), np.int64) if group is None else np.ascontiguousarray(group, np.int64)
    uses = np.bincount(tree_of, minlength=trees)
    counts = np.zeros(network.links, np.int64)
    for links in kinds:
        there = links >= 0
        weights = np.broadcast_to(uses[:, None], links.shape)[there]
        counts += np.bincount(links[there], weights, network.links).astype(np.int64)
    none = np.zeros((0, nodes), np.int32)
    copying = _Copying(none if down is None else down, first, sibling, copy_rank)
    summing = _Summing(none if up is None else up, waiting, sum_rank)
    begin = np.concatenate(([0], np.cumsum(counts)))
    tree_of = np.ascontiguousarray(tree_of, np.int32)
    step, link, chunk, adds = _list_schedule(network.src, network.dst, tree_of, groups, copying, summing, begin)
    return Schedule.of(step, link, chunk, adds)


def _parents(network: Network, links: Int32Array | None, near: Int32Array, far: Int32Array) -> Int32Array:
    """The node at the other end of every link, -1 where there is none."""
    if links is None:
        return np.zeros((0, network.nodes), np.int32)
    there = links >= 0
    if np.any(near[links[there]] != np.nonzero(there)[1]):
        raise ValueError("a tree's link does not end at the node it stands for")
    parent = np.full(links.shape, -1, np.int32)
    parent[there] = far[links[there]]
    return parent


def _shape_of(parent: Int32Array) -> tuple[Int32Array, Int32Array, Int32Array, Int32Array, Int32Array]:
    """Per (tree, node): depth, height, number of children, first child, next sibling (-1: none)."""
    cycle, depth, height, children, first, sibling = _measure(parent)
    if cycle >= 0:
        raise ValueError(f"tree {cycle} has a cycle")
    return depth, height, children, first, sibling


@jit
def _measure(parent: Int32Array) -> tuple[int, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array]:
    trees, nodes = parent.shape
    depth, height = np.zeros((trees, nodes), np.int32), np.zeros((trees, nodes), np.int32)
    children = np.zeros((trees, nodes), np.int32)
    first, sibling = np.full((trees, nodes), -1, np.int32), np.full((trees, nodes), -1, np.int32)
    order, open_children = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    cycle = -1
    for t in range(trees):
        for v in range(nodes - 1, -1, -1):
            p = parent[t, v]
            if p >= 0:
                children[t, p] += 1
                sibling[t, v], first[t, p] = first[t, p], v
        open_children[:] = children[t]
        found = 0
        for v in range(nodes):
            if open_children[v] == 0:
                order[found] = v
                found += 1
        head = 0
        while head < found:  # leaves first
            v = order[head]
            p = parent[t, v]
            head += 1
            if p >= 0:
                height[t, p] = max(height[t, p], height[t, v] + 1)
                open_children[p] -= 1
                if open_children[p] == 0:
                    order[found] = p
                    found += 1
        if found < nodes:
            cycle = t
            break
        for i in range(nodes - 1, -1, -1):  # roots first
            v = order[i]
            if parent[t, v] >= 0:
                depth[t, v] = depth[t, parent[t, v]] + 1
    return cycle, depth, height, children, first, sibling


@jit
def _push(key: int, e: int, heap: IntArray, begin: IntArray, size: IntArray) -> None:
    """Add ``key`` to the binary heap of link ``e`` (least key on top), which starts at ``heap[begin[e]]``."""
    base, i = begin[e], size[e]
    size[e] += 1
    while i > 0:
        above = (i - 1) // 2
        if heap[base + above] <= key:
            break
        heap[base + i] = heap[base + above]
        i = above
    heap[base + i] = key


@jit
def _pop(e: int, heap: IntArray, begin: IntArray, size: IntArray) -> int:
    """Take the least key off the heap of link ``e``."""
    base = begin[e]
    top: int = heap[base]
    size[e] -= 1
    count = size[e]
    key, i = heap[base + count], 0
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and heap[base + child + 1] < heap[base + child]:
            child += 1
        if key <= heap[base + child]:
            break
        heap[base + i] = heap[base + child]
        i = child
    heap[base + i] = key
    return top


@jit
def _list_schedule(
    src: Int32Array,
    dst: Int32Array,
    tree_of: Int32Array,
    group: IntArray,
    copying: _Copying,
    summing: _Summing,
    begin: IntArray,
) -> tuple[Int32Array, Int32Array, Int32Array, BoolArray]:
    down, first, sibling, copy_rank = copying.link, copying.first, copying.sibling, copying.rank
    up, children, sum_rank = summing.link, summing.children, summing.rank
    chunks, nodes, links = len(tree_of), copy_rank.shape[1], len(src)
    copies, sums = len(down) > 0, len(up) > 0
    longest = max(copy_rank.max(), sum_rank.max())
    goal = begin[links]
    heap, size = np.empty(goal, np.int64), np.zeros(links, np.int64)
    out_step, out_link, out_chunk = np.empty(goal, np.int32), np.empty(goal, np.int32), np.empty(goal, np.int32)
    out_adds = np.empty(goal, np.bool_)
    waiting = np.empty((chunks if sums else 0, nodes), np.int32)  # partial sums still to come in from children
    # arrivals are handed to the loop below as (chunk, node, adds); at the start these are what nodes hold
    at_chunk, at_node = np.empty(chunks * nodes, np.int32), np.empty(chunks * nodes, np.int32)
    at_sum = np.empty(chunks * nodes, np.bool_)
    arrivals = 0
    for k in range(chunks):
        t = tree_of[k]
        for v in range(nodes):
            if sums:
                waiting[k, v] = children[t, v] + 1  # the node's own contribution arrives below
            if sums or down[t, v] < 0:
                at_chunk[arrivals], at_node[arrivals], at_sum[arrivals] = k, v, sums
                arrivals += 1
    done = step = 0
    while True:
        for i in range(arrivals):
            k, v = at_chunk[i], at_node[i]
            t = tree_of[k]
            if at_sum[i]:
                waiting[k, v] -= 1
                if waiting[k, v] > 0:
                    continue
                if up[t, v] >= 0:
                    rank = group[k] * (longest + 1) + longest - sum_rank[t, v]
                    _push((rank * 2 + 1) * chunks + k, up[t, v], heap, begin, size)
                    continue
                if not copies:
                    continue
            w = first[t, v]
            while w >= 0:
                rank = group[k] * (longest + 1) + longest - copy_rank[t, w]
                _push(rank * 2 * chunks + k, down[t, w], heap, begin, size)
                w = sibling[t, w]
        if done == goal:
            break
        step += 1
        arrivals = 0
        for e in range(links):
            if size[e] == 0:
                continue
            key = _pop(e, heap, begin, size)
            k, adds = key % chunks, (key // chunks) % 2 == 1
            out_step[done], out_link[done], out_chunk[done], out_adds[done] = step, e, k, adds
            done += 1
            at_chunk[arrivals], at_node[arrivals], at_sum[arrivals] = k, dst[e], adds
            arrivals += 1
    return out_step, out_link, out_chunk, out_adds
