"""Allreduce over given trees, scheduled forwards and backwards in turn until it gets no shorter.

A list scheduler fills the links from the front and leaves holes at the end, where little is left to be done. Played
backwards, an allreduce over trees is an allreduce over the same trees: copies down become sums up. So the schedule is
turned round and scheduled again, whoever came last going first, and so on: justification, as project scheduling knows
it (Wiest 1964; Valls, Ballestin, Quintanilla 2005). Each pass keeps or shortens what the last one found but for the
random tie-breaks, which are added on purpose.

Complexity: a pass takes O(M log M) for M transfers. Guarantee: a valid schedule, no link idle while something waits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import FloatArray, Int32Array, IntArray
from synth.kernels import jit
from synth.schedule import Schedule

NOISE = (0.9, 3.0)  # steps by which priorities are shaken, the larger one in every SHAKEN-th pass
SHAKEN = 7
PER_HOP = 4  # trees by which a hop still to go outweighs a tree's number, in the first pass
COPIES_FIRST = 1e6


class _Trees(NamedTuple):
    """All trees with their nodes numbered through: node v of tree t is ``t * nodes + v``. Of every one its ``parent``,
    ``first`` child and next ``sibling``, -1 for none, and how many ``children`` it has; shape (trees * nodes,) each."""

    parent: Int32Array
    children: Int32Array
    first: Int32Array
    sibling: Int32Array


def allreduce(
    parent: Int32Array,
    up: Int32Array,
    down: Int32Array,
    links: int,
    passes: int,
    least: int,
    random: np.random.Generator,
) -> Schedule:
    """The shortest schedule found in ``passes`` passes, or fewer where ``least`` timesteps are reached.

    ``parent``, ``up``, ``down``: shape (trees, nodes), each node's parent and the links to and from it, -1 at the root;
    tree k carries chunk k.
    """
    trees, nodes = parent.shape
    depth, height, children, first, sibling = _shape(parent)
    before = np.arange(trees, dtype=np.int32)[:, None] * np.int32(nodes)
    numbered = (np.where(part >= 0, part + before, part).ravel() for part in (parent, first, sibling))
    shape = _Trees(next(numbered), children.ravel(), *numbered)
    root = np.argmin(parent, axis=1)
    order = np.arange(trees)[:, None]
    to_go = depth + height[np.arange(trees), root][:, None]
    key_up, key_down = (
        (order - PER_HOP * to_go).astype(np.float64),
        (order - PER_HOP * height - COPIES_FIRST).astype(np.float64),
    )
    forwards, best = True, None
    for number in range(passes + 1):
        ways = (up, down) if forwards else (down, up)
        steps, at = _pass(shape, np.concatenate(ways, axis=None), np.concatenate((key_up, key_down), axis=None), links)
        at_up, at_down = at.reshape(2, trees, nodes)
        if best is None or steps < best[0]:
            best = (steps, *((at_up, at_down) if forwards else (steps + 1 - at_down, steps + 1 - at_up)))
        if best[0] <= least:
            break
        shake = random.random((2, trees, nodes)) * NOISE[number % SHAKEN == 0]
        key_up, key_down = shake[0] - at_down, shake[1] - at_up
        forwards = not forwards
    assert best is not None
    _, at_up, at_down = best
    there = np.nonzero(parent >= 0)
    step = np.concatenate([at_up[there], at_down[there]])
    link = np.concatenate([up[there], down[there]])
    chunk = np.concatenate([there[0], there[0]])
    adds = np.repeat([True, False], len(there[0]))
    return Schedule.of(step, link, chunk, adds)


@jit
def _shape(parent: Int32Array) -> tuple[Int32Array, Int32Array, Int32Array, Int32Array, Int32Array]:
    """Depth, height, number of children, first child and next sibling of every node in every tree."""
    trees, nodes = parent.shape
    depth, height = np.zeros((trees, nodes), np.int32), np.zeros((trees, nodes), np.int32)
    children = np.zeros((trees, nodes), np.int32)
    first, sibling = np.full((trees, nodes), -1, np.int32), np.full((trees, nodes), -1, np.int32)
    queue = np.empty(nodes, np.int32)
    for t in range(trees):
        for v in range(nodes):
            p = parent[t, v]
            if p < 0:
                queue[0] = v
            else:
                children[t, p] += 1
                sibling[t, v], first[t, p] = first[t, p], v
        head, tail = 0, 1
        while head < tail:
            u = queue[head]
            head += 1
            c = first[t, u]
            while c >= 0:
                depth[t, c] = depth[t, u] + 1
                queue[tail] = c
                tail += 1
                c = sibling[t, c]
        for i in range(nodes - 1, 0, -1):
            v = queue[i]
            height[t, parent[t, v]] = max(height[t, parent[t, v]], height[t, v] + 1)
    return depth, height, children, first, sibling


class _Queues(NamedTuple):
    """A heap of waiting transfers at every link, the least key first: ``size[e]`` entries from ``begin[e]`` on, of
    which ``keys`` and ``items`` (the transfers) have shape (transfers,)."""

    begin: IntArray
    size: IntArray
    keys: FloatArray
    items: IntArray


@jit
def _pass(trees: _Trees, link: Int32Array, key: FloatArray, links: int) -> tuple[int, Int32Array]:
    """One pass: timesteps in all, and the timestep of every transfer. A transfer has its node's number where the node's
    sum goes up, that and the number of all nodes where a copy comes down to it; of every one its ``link``, -1 at roots,
    and its ``key``; shape (2 * trees * nodes,)."""
    begin = np.zeros(links + 1, np.int64)
    for e in link:
        if e >= 0:
            begin[e + 1] += 1
    begin = np.cumsum(begin)
    goal = begin[links]
    queues = _Queues(begin, np.zeros(links, np.int64), np.empty(goal), np.empty(goal, np.int64))
    at, waiting = np.zeros(len(link), np.int32), trees.children.copy()
    ready, count = np.empty(goal, np.int64), 0
    for v in range(len(trees.parent)):
        if trees.parent[v] >= 0 and trees.children[v] == 0:
            ready[count] = v
            count += 1
    step = 0
    while count > 0 or np.any(queues.size > 0):
        _enqueue(queues, link, key, ready[:count])
        step += 1
        count = _serve(trees, queues, waiting, step, at, ready)
    return step, at


@jit
def _enqueue(queues: _Queues, link: Int32Array, key: FloatArray, ready: IntArray) -> None:
    """Put what is ready into the queues of its links."""
    begin, size, keys, items = queues
    for item in ready:
        base, j, own = begin[link[item]], size[link[item]], key[item]
        size[link[item]] += 1
        while j > 0 and keys[base + (j - 1) // 2] > own:
            keys[base + j], items[base + j] = keys[base + (j - 1) // 2], items[base + (j - 1) // 2]
            j = (j - 1) // 2
        keys[base + j], items[base + j] = own, item


@jit
def _serve(trees: _Trees, queues: _Queues, waiting: Int32Array, step: int, at: Int32Array, ready: IntArray) -> int:
    """Let every link carry the first of its queue in this timestep; write into ``ready`` what waited for that alone,
    as many as are returned: behind a copy, and behind the last sum at a root, the copies to the children; behind the
    last sum at another node, its own."""
    parent, _, first, sibling = trees
    begin, size, keys, items = queues
    count, nodes = 0, len(parent)
    for e in range(len(size)):
        if size[e] == 0:
            continue
        v = items[begin[e]]
        size[e] -= 1
        at[v] = step
        _close_up(keys, items, begin[e], size[e])
        if v >= nodes:
            v -= nodes
        else:
            v = parent[v]
            waiting[v] -= 1
            if waiting[v] > 0:
                continue
            if parent[v] >= 0:
                ready[count] = v
                count += 1
                continue
        c = first[v]
        while c >= 0:
            ready[count] = nodes + c
            count += 1
            c = sibling[c]
    return count


@jit(inlined=True)
def _close_up(keys: FloatArray, items: IntArray, base: int, size: int) -> None:
    """Make a heap of ``size`` items again, whose first has been taken and whose last is behind it."""
    key, last, j = keys[base + size], items[base + size], 0
    while 2 * j + 1 < size:
        c = 2 * j + 1
        if c + 1 < size and keys[base + c + 1] < keys[base + c]:
            c += 1
        if key <= keys[base + c]:
            break
        keys[base + j], items[base + j] = keys[base + c], items[base + c]
        j = c
    keys[base + j], items[base + j] = key, last
