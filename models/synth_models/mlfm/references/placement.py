"""Placing flows (a server, a leaf) in groups of phases so that nobody meets: first where it is free, else by moving.

In a group a server sends one flow, a leaf receives at most as many as it has servers, a link carries one. A flow that
finds no free place takes one, of some tried by chance, where it meets as few placed flows as possible, preferring those
moved least so far, and they are placed again: a walk like min-conflicts (Minton et al. 1992) with ages as memory. It
ends when all have a place, or gives up after ``PATIENCE`` moves without clearly fewer flows waiting, which
proves nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth.options import RunOptions
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_problem import working

STEPS = 2_000  # between looks at the clock
GAIN, PATIENCE = 50, 30_000  # so many flows fewer (towards the end one) must wait after so many moves
TRIED = 40  # groups looked at for a place where others must move
MOST_SHUNNED = 0.99  # how often a leaf without room is passed over as the one between, where others must move
SCARCE = 0.25  # links that a leaf must have to spare, on average over the groups, to be used freely in between
FEW = 0.2  # share of such leaves up to which it does not matter
INSIDE, ONE_SPINE, TWO_SPINES = 0, 1, 2  # kinds of routes


class Placement:
    """Flows of one job and where they are; :meth:`settle` finds places for those that wait.

    ``flows`` (F, 3): rank that sends, its leaf, leaf that receives. ``at`` (F, 3): group (-1 while it waits), the
    column whose spine is crossed or the leaf between two spines, kind of route.
    """

    def __init__(
        self, instance: MLFMInstance, flows: IntArray, at: IntArray, lost: Any, urgent: IntArray, seed: int
    ) -> None:
        self.instance, self.flows, self.at = instance, flows, at
        self.usable = working(instance)
        self.random = np.random.default_rng(seed)
        self.origin = at.copy()
        self.at[lost, 0] = -1
        self.age = np.zeros(len(flows), dtype=np.int64)
        waiting = np.flatnonzero(lost)
        self.waiting: IntArray = waiting[np.argsort(urgent[waiting], kind="stable")]  # the last is placed first
        self.groups = 0
        self.state: Any = None

    def settle(self, groups: int, options: RunOptions) -> bool:
        """Whether all flows have a place in this many groups; False when the walk gives up or time runs out. What has a
        place keeps it for a second call with more groups."""
        self._enlarge(groups)
        slots, shunned = int(np.bincount(self.instance.server_leaf).max()), self._shunned(groups)
        queue = np.full(len(self.flows), -1, dtype=np.int64)
        queue[: len(self.waiting)] = self.waiting
        count = best = len(self.waiting)
        idle = 0
        while count and idle < PATIENCE and not options.out_of_time():
            seed = int(self.random.integers(2**31))
            machine = (self.usable, slots, shunned)
            count = _walk(queue, count, self.flows, self.at, self.age, self.state, machine, STEPS, seed)
            gained = count <= best - max(1, min(GAIN, best // 100)) or count == 0
            idle, best = (0, count) if gained else (idle + STEPS, best)
        self.waiting = queue[:count].copy()
        return bool(count == 0)

    def _shunned(self, groups: int) -> Any:
        """How often every leaf is passed over as the one between two spines: always where its own flows leave little
        room on its up-links and more than a few are so, else never."""
        across = self.flows[:, 1] != self.flows[:, 2]
        own = np.bincount(self.flows[across, 1], minlength=self.instance.leaves)
        room = np.maximum(0, self.usable.sum(axis=1) * groups - own)
        scarce = room < SCARCE * groups
        return scarce.astype(float) * (scarce.mean() > FEW)

    def _enlarge(self, groups: int) -> None:
        leaves = self.instance.leaves
        fresh = [np.full((groups, size), -1, dtype=np.int32) for size in (self.instance.ranks, 2 * self.usable.size)]
        fresh += [np.zeros((groups, size), dtype=np.int32) for size in (leaves, 2 * leaves)]
        if self.state is None:
            _put_all(self.flows, self.at, tuple(fresh), self.usable.shape[1], self.usable.size)
        for new, old in zip(fresh, self.state or (), strict=False):
            new[: self.groups] = old
        self.state, self.groups = tuple(fresh), groups

    def moved_at(self) -> IntArray:
        """The flows that are not where they were at first."""
        return np.flatnonzero((self.at != self.origin).any(axis=1))

    def routes(self) -> tuple[IntArray, ...]:
        """Of every flow: group, rank, receiving leaf, spine, leaf between, second spine (-1 where there is none)."""
        number, columns = self.instance.spine_number, self.instance.columns
        source, x, y = self.flows.T
        group, between, kind = self.at.T
        c = np.where(kind == TWO_SPINES, between % columns, between)
        spine = np.where(kind == INSIDE, -1, number[x % columns, c])
        middle = np.where(kind == TWO_SPINES, between, -1)
        second = np.where(kind == TWO_SPINES, number[c, y % columns], -1)
        return group, source, y, spine, middle, second


@jit
def _put_all(flows: Any, at: Any, state: Any, columns: int, half: int) -> None:
    links = np.empty(4, np.int64)
    for f in range(len(flows)):
        if at[f, 0] >= 0:
            _put(f, flows, at, state, links, columns, half)


@jit
def _put(f: int, flows: Any, at: Any, state: Any, links: Any, columns: int, half: int) -> None:
    """Enter a flow where ``at`` says."""
    sends, carries, receives, busy = state
    g = at[f, 0]
    sends[g, flows[f, 0]] = f
    receives[g, flows[f, 2]] += 1
    for i in range(_links_of(links, flows[f, 1], flows[f, 2], at[f, 1], at[f, 2], columns, half)):
        carries[g, links[i]] = f
        busy[g, links[i] // columns] += 1


@jit
def _walk(
    queue: Any, waiting: int, flows: Any, at: Any, age: Any, state: Any, machine: Any, steps: int, seed: int
) -> int:
    """Place flows from the end of ``queue`` for so many steps; the number that still waits."""
    sends, carries, receives, busy = state
    usable, slots, shunned = machine
    groups, columns, half = len(sends), usable.shape[1], usable.size
    width = usable.sum(axis=1)
    less = np.minimum(shunned, MOST_SHUNNED)
    np.random.seed(seed)
    links, best = np.empty(4, np.int64), np.empty(4, np.int64)
    for _ in range(steps):
        if waiting == 0:
            return 0
        waiting -= 1
        f = queue[waiting]
        source, x, y = flows[f]
        down = half // columns + y
        best[0], best[1] = 1, -1
        first = np.random.randint(groups)
        for turn in range(groups):  # free places only
            g = (first + turn) % groups
            room = x == y or (busy[g, x] < width[x] and busy[g, down] < width[y])
            if room and sends[g, source] < 0 and receives[g, y] < slots:
                _cheapest(g, f, flows, age, carries, usable, shunned, 0, best)
                if best[0] == 0:
                    break
        if best[1] < 0:
            best[0] = np.int64(1) << 60
        for _ in range(0 if best[0] == 0 else TRIED):
            g = np.random.randint(groups)
            sender = sends[g, source]
            if receives[g, y] >= slots and (sender < 0 or flows[sender, 2] != y):
                continue
            _cheapest(g, f, flows, age, carries, usable, less, 0 if sender < 0 else 1000 + age[sender], best)
        if best[1] < 0:  # the leaf is full everywhere it looked: something else first
            other = np.random.randint(waiting + 1)
            queue[waiting] = queue[other]
            queue[other] = f
            waiting += 1
            continue
        g = best[1]
        at[f, 0], at[f, 1], at[f, 2] = g, best[2], best[3]
        waiting = _remove(queue, waiting, sends[g, source], flows, at, age, state, columns, half)
        for i in range(_links_of(links, x, y, best[2], best[3], columns, half)):
            waiting = _remove(queue, waiting, carries[g, links[i]], flows, at, age, state, columns, half)
        _put(f, flows, at, state, links, columns, half)
    return waiting


@jit
def _price(f: int, age: Any) -> int:
    """What it costs to move a flow; nothing where there is none."""
    return 0 if f < 0 else 1000 + age[f]


@jit
def _cheapest(
    g: int, f: int, flows: Any, age: Any, carries: Any, usable: Any, shunned: Any, cost: int, best: Any
) -> None:
    """The cheapest route of a flow in a group; ``best``: cost, group, between, kind, replaced by what costs less."""
    x, y, columns, half = flows[f, 1], flows[f, 2], usable.shape[1], usable.size
    a, b, layers = x % columns, y % columns, usable.shape[0] // columns
    if cost >= best[0]:
        return
    if x == y:
        best[0], best[1], best[2], best[3] = cost, g, -1, INSIDE
        return
    shift, turned = np.random.randint(columns), np.random.randint(layers)
    for step in range(columns):
        c = (step + shift) % columns  # of the spine at x; the one at y is to a on a direct route, else to c
        direct = a == b or c == b
        there = a if c == b else c
        if c == a or not usable[x, c] or not usable[y, there]:
            continue
        price = cost + _price(carries[g, x * columns + c], age)
        price += _price(carries[g, half + y * columns + there], age)
        if price >= best[0]:
            continue
        if direct:
            best[0], best[1], best[2], best[3] = price, g, c, ONE_SPINE
        for h in range(0 if direct else layers):
            z = ((h + turned) % layers) * columns + c
            if usable[z, a] and usable[z, b] and np.random.random() >= shunned[z]:
                total = price + _price(carries[g, half + z * columns + a], age)
                total += _price(carries[g, z * columns + b], age)
                if total < best[0]:
                    best[0], best[1], best[2], best[3] = total, g, z, TWO_SPINES
        if best[0] == 0:
            return


@jit
def _links_of(links: Any, x: int, y: int, between: int, kind: int, columns: int, half: int) -> int:
    """Write the links of a route into ``links``; how many they are."""
    a, b = x % columns, y % columns
    if kind == ONE_SPINE:
        links[0], links[1] = x * columns + between, half + y * columns + (a if between == b else between)
        return 2
    if kind == TWO_SPINES:
        c = between % columns
        links[0], links[1] = x * columns + c, half + between * columns + a
        links[2], links[3] = between * columns + b, half + y * columns + c
        return 4
    return 0


@jit
def _remove(
    queue: Any, waiting: int, f: int, flows: Any, at: Any, age: Any, state: Any, columns: int, half: int
) -> int:
    """Take a flow out of its group (-1: there is none) and let it wait; the number that waits."""
    if f < 0:
        return waiting
    sends, carries, receives, busy = state
    g, links = at[f, 0], np.empty(4, np.int64)
    for i in range(_links_of(links, flows[f, 1], flows[f, 2], at[f, 1], at[f, 2], columns, half)):
        carries[g, links[i]] = -1
        busy[g, links[i] // columns] -= 1
    sends[g, flows[f, 0]] = -1
    receives[g, flows[f, 2]] -= 1
    at[f, 0] = -1
    age[f] += 1
    queue[waiting] = f
    return waiting + 1
