"""Allreduce over given trees, scheduled forwards and backwards in turn until it gets no shorter.

A list scheduler fills the links from the front and leaves holes at the end, where little is left to be done. Played
backwards, an allreduce over trees is an allreduce over the same trees: copies down become sums up. So the schedule is
turned round and scheduled again, whoever came last going first, and so on: justification, as project scheduling knows
it (Wiest 1964; Valls, Ballestin, Quintanilla 2005). Each pass keeps or shortens what the last one found but for the
random tie-breaks, which are added on purpose.

Complexity: a pass takes O(M log M) for M transfers. Guarantee: a valid schedule, no link idle while something waits.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import FloatArray, Int32Array
from synth.kernels import jit
from synth.schedule import Schedule

NOISE = (0.9, 3.0)  # steps by which priorities are shaken, the larger one in every SHAKEN-th pass
SHAKEN = 7
PER_HOP = 4  # trees by which a hop still to go outweighs a tree's number, in the first pass
COPIES_FIRST = 1e6


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
        steps, at_up, at_down = _pass(parent, children, first, sibling, *ways, key_up, key_down, links)
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


@jit
def _pass(
    parent: Int32Array,
    children: Int32Array,
    first: Int32Array,
    sibling: Int32Array,
    up: Int32Array,
    down: Int32Array,
    key_up: FloatArray,
    key_down: FloatArray,
    links: int,
) -> tuple[int, Int32Array, Int32Array]:
    """One pass: timesteps in all, and the timestep of every sum and copy, shape (trees, nodes); least keys go first."""
    trees, nodes = parent.shape
    at_up, at_down = np.zeros((trees, nodes), np.int32), np.zeros((trees, nodes), np.int32)
    begin = np.zeros(links + 1, np.int64)
    for t in range(trees):
        for v in range(nodes):
            if parent[t, v] >= 0:
                begin[up[t, v] + 1] += 1
                begin[down[t, v] + 1] += 1
    begin = np.cumsum(begin)
    goal = begin[links]
    keys, items, size = np.empty(goal), np.empty(goal, np.int64), np.zeros(links, np.int64)
    waiting = children.copy()
    ready, count = np.empty(goal, np.int64), 0  # (tree * nodes + node) * 2, + 1 for a copy
    for t in range(trees):
        for v in range(nodes):
            if parent[t, v] >= 0 and children[t, v] == 0:
                ready[count] = (t * nodes + v) * 2
                count += 1
    done, step = 0, 0
    while done < goal:
        for i in range(count):
            t, v = (ready[i] >> 1) // nodes, (ready[i] >> 1) % nodes
            copy = ready[i] & 1
            e = down[t, v] if copy else up[t, v]
            key = key_down[t, v] if copy else key_up[t, v]
            base, j = begin[e], size[e]
            size[e] += 1
            while j > 0 and keys[base + (j - 1) // 2] > key:
                keys[base + j], items[base + j] = keys[base + (j - 1) // 2], items[base + (j - 1) // 2]
                j = (j - 1) // 2
            keys[base + j], items[base + j] = key, ready[i]
        count = 0
        step += 1
        for e in range(links):
            if size[e] == 0:
                continue
            base = begin[e]
            item = items[base]
            size[e] -= 1
            key, last, j = keys[base + size[e]], items[base + size[e]], 0
            while 2 * j + 1 < size[e]:
                c = 2 * j + 1
                if c + 1 < size[e] and keys[base + c + 1] < keys[base + c]:
                    c += 1
                if key <= keys[base + c]:
                    break
                keys[base + j], items[base + j] = keys[base + c], items[base + c]
                j = c
            keys[base + j], items[base + j] = key, last
            done += 1
            t, v = (item >> 1) // nodes, (item >> 1) % nodes
            hands_down = v
            if item & 1:
                at_down[t, v] = step
            else:
                at_up[t, v] = step
                p = parent[t, v]
                waiting[t, p] -= 1
                hands_down = -1
                if waiting[t, p] == 0:
                    if parent[t, p] >= 0:
                        ready[count] = (t * nodes + p) * 2
                        count += 1
                    else:
                        hands_down = p
            if hands_down >= 0:
                c = first[t, hands_down]
                while c >= 0:
                    ready[count] = (t * nodes + c) * 2 + 1
                    count += 1
                    c = sibling[t, c]
    return step, at_up, at_down
