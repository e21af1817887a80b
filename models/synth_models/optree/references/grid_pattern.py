"""One item's way over a torus under a budget of hops per step and direction: the heart of ``relay`` on grids.

All items go the same way, moved, so a step may use at most as many hops of one item in a direction as there are
wavelengths for it. Where the nodes that are left can all be reached within the budgets of one step, that is the last
one. Otherwise new holders are chosen one by one, the one with the best of

    (1 + spread * (hops that it saves others)) / hops ** thrift

first, until nothing fits any more. Hops are those from the nearest node that holds the item before the step; a new
holder saves others on its rings the hops by which it is nearer than what holds the item so far, up to ``SIGHT`` away.
``spread`` and ``thrift`` and a little noise are varied by the caller. O(N^2) time.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.kernels import jit

SIGHT = 5


def find_way(
    sides: IntArray, budgets: IntArray, longest: IntArray, spread: float, thrift: float, most: int, seed: int
) -> IntArray | None:
    """Rows step, node (seen from the item's origin 0), direction, hops, in order of steps; None beyond ``most`` steps.

    ``sides`` of the rings, shape (d,), the last one running fastest in the nodes' numbers; ``budgets``: hops by
    direction (``2 k`` up in dimension ``k``, ``2 k + 1`` down), shape (most, 2 d); ``longest``: hops of the longest
    circuit, by direction, shape (2 d,).
    """
    strides = np.array([int(np.prod(sides[k + 1 :])) for k in range(len(sides))], dtype=np.int64)
    rows, count, done = _way(sides, strides, budgets, longest, spread, thrift, most, seed)
    return rows[:count] if done else None


@jit
def _way(
    sides: IntArray,
    strides: IntArray,
    budgets: IntArray,
    longest: IntArray,
    spread: float,
    thrift: float,
    most: int,
    seed: int,
) -> tuple[IntArray, int, bool]:
    np.random.seed(seed)
    nodes = sides.prod()
    ways = 2 * len(sides)
    holds = np.zeros(nodes, np.bool_)
    holds[0] = True
    rows = np.empty((nodes, 4), np.int64)
    count = 0
    for step in range(1, most + 1):
        hops = _hops_from_holders(holds, sides, strides, longest)
        left = budgets[step - 1].copy()
        last = _all_at_once(holds, hops, left)
        if last[0] != -2:
            for v in range(nodes):
                if not holds[v]:
                    rows[count] = step, v, last[v], hops[v, last[v]]
                    count += 1
            return rows[:count], count, True
        held = holds.copy()
        near = _nearest(held, sides, strides)
        noise = np.random.random(nodes)
        while True:
            best, node, way = -1.0, -1, -1
            for v in range(nodes):
                if held[v]:
                    continue
                cheapest = -1
                for d in range(ways):
                    if 0 < hops[v, d] <= left[d] and (
                        cheapest < 0
                        or hops[v, d] < hops[v, cheapest]
                        or (hops[v, d] == hops[v, cheapest] and left[d] > left[cheapest])
                    ):
                        cheapest = d
                if cheapest < 0:
                    continue
                worth = 1.0 + 0.01 * noise[v]
                if spread > 0.0:
                    worth += spread * _saved(v, held, near, sides, strides)
                worth /= hops[v, cheapest] ** thrift
                if worth > best:
                    best, node, way = worth, v, cheapest
            if node < 0:
                break
            rows[count] = step, node, way, hops[node, way]
            count += 1
            left[way] -= hops[node, way]
            held[node] = True
            _come_near(node, near, sides, strides)
        if not np.any(held & ~holds):
            break
        holds = held
    return rows[:count], count, False


@jit
def _hops_from_holders(holds: BoolArray, sides: IntArray, strides: IntArray, longest: IntArray) -> IntArray:
    """Hops from the nearest holder by direction, shape (nodes, 2 d); 0 where there is none near enough."""
    nodes = len(holds)
    hops = np.zeros((nodes, 2 * len(sides)), np.int64)
    for k in range(len(sides)):
        side, stride = sides[k], strides[k]
        for v in range(nodes):
            place = v // stride % side
            base = v - place * stride
            for h in range(1, side):
                if h <= longest[2 * k] and hops[v, 2 * k] == 0 and holds[base + (place - h) % side * stride]:
                    hops[v, 2 * k] = h
                if h <= longest[2 * k + 1] and hops[v, 2 * k + 1] == 0 and holds[base + (place + h) % side * stride]:
                    hops[v, 2 * k + 1] = h
    return hops


@jit
def _all_at_once(holds: BoolArray, hops: IntArray, budget: IntArray) -> IntArray:
    """A direction for every node that is left, all within the budget (holders: -1); -2 first where none is found.

    Every node takes its shortest way; then those that lose least change to directions that have room.
    """
    nodes, ways = hops.shape
    chosen = np.full(nodes, -1, np.int64)
    failed = np.full(nodes, -2, np.int64)
    left = budget.copy()
    for v in range(nodes):
        if holds[v]:
            continue
        best = -1
        for d in range(ways):
            if hops[v, d] == 0 or budget[d] == 0:
                continue
            if best < 0 or hops[v, d] < hops[v, best] or (hops[v, d] == hops[v, best] and left[d] > left[best]):
                best = d
        if best < 0:
            return failed
        chosen[v] = best
        left[best] -= hops[v, best]
    if left.sum() < 0:
        return failed
    for _ in range(4 * nodes):
        over = np.argmin(left)
        if left[over] >= 0:
            return chosen
        least, node, way = 1e18, -1, -1
        for v in range(nodes):
            if chosen[v] != over:
                continue
            for d in range(ways):
                if hops[v, d] > 0 and hops[v, d] <= left[d]:
                    loss = (hops[v, d] - hops[v, over] + 0.001) / hops[v, over]
                    if loss < least:
                        least, node, way = loss, v, d
        if node < 0:
            return failed
        chosen[node] = way
        left[over] += hops[node, over]
        left[way] -= hops[node, way]
    return failed


@jit
def _nearest(held: BoolArray, sides: IntArray, strides: IntArray) -> IntArray:
    """Hops to the nearest holder on the node's rings, at most ``SIGHT + 1``."""
    near = np.full(len(held), SIGHT + 1, np.int64)
    for v in range(len(held)):
        if held[v]:
            _come_near(v, near, sides, strides)
    return near


@jit
def _come_near(node: int, near: IntArray, sides: IntArray, strides: IntArray) -> None:
    """Take a new holder into account."""
    near[node] = 0
    for k in range(len(sides)):
        side, stride = sides[k], strides[k]
        place = node // stride % side
        base = node - place * stride
        for h in range(1, min(SIGHT, side // 2) + 1):
            for to in ((place + h) % side, (place - h) % side):
                near[base + to * stride] = min(near[base + to * stride], h)


@jit
def _saved(node: int, held: BoolArray, near: IntArray, sides: IntArray, strides: IntArray) -> int:
    """Hops that a new holder would save others."""
    saved = 0
    for k in range(len(sides)):
        side, stride = sides[k], strides[k]
        place = node // stride % side
        base = node - place * stride
        for h in range(1, min(SIGHT, side // 2) + 1):
            for to in ((place + h) % side, (place - h) % side):
                other = base + to * stride
                if not held[other] and near[other] > h:
                    saved += near[other] - h
    return saved
