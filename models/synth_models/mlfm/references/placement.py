"""Placing flows (a server, a leaf) in groups of phases so that nobody meets: first where it is free, else by moving.

In a group a server sends one flow, a leaf receives at most as many as it has servers, a link carries one. A flow that
finds no free place takes one where it meets as few placed flows as possible (those moved least so far), and they are
placed again; a walk like min-conflicts (Minton et al. 1992) with ages as memory. It ends when all have a place, or gives
up after ``PATIENCE`` moves per flow that was left, which proves nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.kernels import jit
from synth.options import RunOptions
from synth_models.mlfm.instance import IntArray, MLFMInstance
from synth_models.mlfm.parts.leaf_problem import working

STEPS = 2_000  # between looks at the clock
PATIENCE = 60_000  # moves without a new least number of flows left


class Placement:
    """The groups of one job, filled by :meth:`place`; a second call with more groups goes on where the first ended."""

    def __init__(self, instance: MLFMInstance, seed: int) -> None:
        self.instance, self.random = instance, np.random.default_rng(seed)
        self.groups = 0
        self.state: Any = None
        self.left: IntArray = np.zeros(0, dtype=np.int64)

    def place(self, flows: Any, groups: int, options: RunOptions) -> bool:
        """Whether all flows have a place in this many groups; False when the walk gives up or time runs out."""
        instance = self.instance
        leaf, usable = instance.server_leaf, working(instance)
        if self.state is None:
            self.flows = np.stack([flows.source, leaf[flows.source], flows.leaf], axis=1)
            self.at = np.full((len(self.flows), 3), -1, dtype=np.int64)  # group, column or leaf between, kind
            self.moved = np.zeros(len(self.flows), dtype=np.int64)
            self.left = np.arange(len(self.flows))[::-1].copy()  # the last is placed first
        self._enlarge(groups)
        slots = int(np.bincount(leaf).max())
        queue = np.full(len(self.flows) + 1, -1, dtype=np.int64)
        queue[: len(self.left)] = self.left
        waiting, best, idle = len(self.left), len(self.left), 0
        while waiting and idle < PATIENCE and not options.out_of_time():
            seed = int(self.random.integers(2**31))
            waiting = _walk(queue, waiting, self.flows, self.at, self.moved, self.state, usable, slots, STEPS, seed)
            idle = 0 if waiting < best else idle + STEPS
            best = min(best, waiting)
        self.left = queue[:waiting].copy()
        return waiting == 0

    def _enlarge(self, groups: int) -> None:
        usable = working(self.instance)
        wide = (self.instance.ranks, 2 * usable.size, self.instance.leaves)
        fresh = [np.full((groups, size), -1, dtype=np.int32) for size in wide]
        fresh[2][:] = 0
        for new, old in zip(fresh, self.state or (), strict=False):
            new[: self.groups] = old
        self.state, self.groups = tuple(fresh), groups

    def placed(self) -> tuple[IntArray, ...]:
        """Of every flow: group, rank, receiving leaf, spine, leaf between, second spine (-1 where there is none)."""
        number, columns = self.instance.spine_number, self.instance.columns
        source, start, end = self.flows.T
        group, between, kind = self.at.T
        a, b, c = start % columns, end % columns, np.where(kind == 1, between, between % columns)
        spine = np.where(kind == 0, -1, number[a, c])
        middle, second = np.where(kind == 2, between, -1), np.where(kind == 2, number[c, b], -1)
        return group, source, end, spine, middle, second


@jit
def _walk(
    queue: Any,
    waiting: int,
    flows: Any,
    at: Any,
    moved: Any,
    state: Any,
    usable: Any,
    slots: int,
    steps: int,
    seed: int,
) -> int:
    """Place flows from the end of ``queue`` for so many steps; the number that still waits."""
    sends, carries, receives = state
    groups, columns, half = len(sends), usable.shape[1], usable.size
    np.random.seed(seed)
    links = np.empty(4, np.int64)
    for _ in range(steps):
        if waiting == 0:
            return 0
        waiting -= 1
        f = queue[waiting]
        source, x, y = flows[f]
        a, b = x % columns, y % columns
        least, found, ties = np.int64(1) << 60, -1, 0
        between, kind = -1, 0
        first = np.random.randint(groups)
        for turn in range(groups):
            g = (first + turn) % groups
            if receives[g, y] >= slots:
                continue
            cost = np.int64(0)
            if sends[g, source] >= 0:
                cost = 1000 + moved[sends[g, source]]
            if cost > least:
                continue
            if x == y:
                if cost < least:
                    least, found, between, kind, ties = cost, g, -1, 0, 1
                if least == 0:
                    break
                continue
            shift = np.random.randint(columns)
            for step in range(columns):
                c = (step + shift) % columns
                if a == b:
                    if c == a or not usable[x, c] or not usable[y, c]:
                        continue
                elif c == a or c == b or not usable[x, c] or not usable[y, c]:
                    continue
                price = cost
                one, two = carries[g, x * columns + c], carries[g, half + y * columns + c]
                if one >= 0:
                    price += 1000 + moved[one]
                if two >= 0:
                    price += 1000 + moved[two]
                if price > least:
                    continue
                if a == b:
                    if price < least:
                        least, found, between, kind, ties = price, g, c, 1, 1
                    if least == 0:
                        break
                    continue
                layers = usable.shape[0] // columns
                turned = np.random.randint(layers)
                for h in range(layers):
                    z = ((h + turned) % layers) * columns + c
                    if not usable[z, a] or not usable[z, b]:
                        continue
                    sum_ = price
                    into, out = carries[g, half + z * columns + a], carries[g, z * columns + b]
                    if into >= 0:
                        sum_ += 1000 + moved[into]
                    if out >= 0:
                        sum_ += 1000 + moved[out]
                    if sum_ < least:
                        least, found, between, kind, ties = sum_, g, z, 2, 1
                    if least == 0:
                        break
                if least == 0:
                    break
            if least == 0:
                break
        if found < 0:  # every group's leaf is full: it waits at the other end
            for i in range(waiting, 0, -1):
                queue[i] = queue[i - 1]
            queue[0] = f
            waiting += 1
            continue
        count = _links_of(links, x, y, between, kind, columns, half)
        if least > 0:
            waiting = _remove(queue, waiting, sends[found, source], flows, at, moved, state, columns, half)
            for i in range(count):
                waiting = _remove(queue, waiting, carries[found, links[i]], flows, at, moved, state, columns, half)
        at[f, 0], at[f, 1], at[f, 2] = found, between, kind
        sends[found, source] = f
        receives[found, y] += 1
        for i in range(count):
            carries[found, links[i]] = f
    return waiting


@jit
def _links_of(links: Any, x: int, y: int, between: int, kind: int, columns: int, half: int) -> int:
    """Write the links of a route into ``links``; how many they are."""
    if kind == 0:
        return 0
    if kind == 1:
        links[0], links[1] = x * columns + between, half + y * columns + between
        return 2
    c = between % columns
    links[0], links[1] = x * columns + c, half + between * columns + x % columns
    links[2], links[3] = between * columns + y % columns, half + y * columns + c
    return 4


@jit
def _remove(
    queue: Any, waiting: int, f: int, flows: Any, at: Any, moved: Any, state: Any, columns: int, half: int
) -> int:
    """Take a flow out of its group (-1: there is none) and let it wait; the number that waits."""
    if f < 0:
        return waiting
    sends, carries, receives = state
    source, x, y = flows[f]
    g = at[f, 0]
    links = np.empty(4, np.int64)
    count = _links_of(links, x, y, at[f, 1], at[f, 2], columns, half)
    for i in range(count):
        carries[g, links[i]] = -1
    sends[g, source] = -1
    receives[g, y] -= 1
    at[f, 0] = -1
    moved[f] += 1
    queue[waiting] = f
    return waiting + 1
