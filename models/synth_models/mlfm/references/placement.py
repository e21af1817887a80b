"""Placing flows (a server, a leaf) in groups of phases so that nobody meets: first where it is free, else by moving.

In a group a server sends one flow, a leaf receives at most as many as it has servers, a link carries one. A flow that
finds no free place takes one, of some tried by chance, where it meets as few placed flows as possible, preferring those
moved least so far, and they are placed again: a walk like min-conflicts (Minton et al. 1992) with ages as memory. It
ends when all have a place, or gives up after ``PATIENCE`` moves without clearly fewer flows waiting, which
proves nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, Int32Array, IntArray
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
        self, instance: MLFMInstance, flows: IntArray, at: IntArray, lost: BoolArray, urgent: IntArray, seed: int
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
        self.state: _Groups | None = None

    def settle(self, groups: int, options: RunOptions) -> bool:
        """Whether all flows have a place in this many groups; False when the walk gives up or time runs out. What has a
        place keeps it for a second call with more groups."""
        state, flows = self._enlarge(groups), _Flows(self.flows, self.at, self.age)
        slots = int(np.bincount(self.instance.server_leaf).max())
        machine = _Machine(self.usable, slots, self._shunned(groups))
        queue = np.full(len(self.flows), -1, dtype=np.int64)
        queue[: len(self.waiting)] = self.waiting
        count = best = len(self.waiting)
        idle = 0
        while count and idle < PATIENCE and not options.out_of_time():
            seed = int(self.random.integers(2**31))
            count = _walk(queue, count, flows, state, machine, STEPS, seed)
            gained = count <= best - max(1, min(GAIN, best // 100)) or count == 0
            idle, best = (0, count) if gained else (idle + STEPS, best)
        self.waiting = queue[:count].copy()
        return bool(count == 0)

    def _shunned(self, groups: int) -> FloatArray:
        """How often every leaf is passed over as the one between two spines: always where its own flows leave little
        room on its up-links and more than a few are so, else never."""
        across = self.flows[:, 1] != self.flows[:, 2]
        own = np.bincount(self.flows[across, 1], minlength=self.instance.leaves)
        room = np.maximum(0, self.usable.sum(axis=1) * groups - own)
        scarce = room < SCARCE * groups
        shunned: FloatArray = scarce.astype(float) * (scarce.mean() > FEW)
        return shunned

    def _enlarge(self, groups: int) -> _Groups:
        leaves = self.instance.leaves
        none = [np.full((groups, size), -1, dtype=np.int32) for size in (self.instance.ranks, 2 * self.usable.size)]
        fresh = _Groups(*none, *(np.zeros((groups, size), dtype=np.int32) for size in (leaves, 2 * leaves)))
        if self.state is None:
            _put_all(_Flows(self.flows, self.at, self.age), fresh, self.usable)
        for new, old in zip(fresh, self.state or (), strict=False):
            new[: self.groups] = old
        self.state, self.groups = fresh, groups
        return fresh

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


class _Flows(NamedTuple):
    """``ends`` and ``at`` as of :class:`Placement`, shape (F, 3) each; ``age``: how often each was moved, (F,)."""

    ends: IntArray
    at: IntArray
    age: IntArray


class _Groups(NamedTuple):
    """What groups of phases hold: the flow that every rank ``sends``, shape (groups, ranks), and every link
    ``carries``, shape (groups, links), -1 for none; how many flows every leaf ``receives``, shape (groups, leaves), and
    how many of its up- and then its down-links are ``busy``, shape (groups, 2 * leaves)."""

    sends: Int32Array
    carries: Int32Array
    receives: Int32Array
    busy: Int32Array


class _Machine(NamedTuple):
    """``usable``: whether a link works, shape (leaves, columns); ``slots``: flows that a leaf may receive in a group;
    ``shunned``: how often a leaf is passed over as the one between two spines, 0 to 1, shape (leaves,)."""

    usable: BoolArray
    slots: int
    shunned: FloatArray


COST, GROUP, BETWEEN, KIND = range(4)  # places in what _cheapest has found


@jit
def _put_all(flows: _Flows, groups: _Groups, usable: BoolArray) -> None:
    links = np.empty(4, np.int64)
    for f in range(len(flows.at)):
        if flows.at[f, 0] >= 0:
            _put(f, flows, groups, links, usable)


@jit
def _put(f: int, flows: _Flows, groups: _Groups, links: IntArray, usable: BoolArray) -> None:
    """Enter a flow where ``at`` says."""
    ends, at, columns = flows.ends, flows.at, usable.shape[1]
    g = at[f, 0]
    groups.sends[g, ends[f, 0]] = f
    groups.receives[g, ends[f, 2]] += 1
    for i in range(_links_of(links, ends[f, 1], ends[f, 2], at[f, 1], at[f, 2], columns, usable.size)):
        groups.carries[g, links[i]] = f
        groups.busy[g, links[i] // columns] += 1


@jit
def _walk(
    queue: IntArray, waiting: int, flows: _Flows, groups: _Groups, machine: _Machine, steps: int, seed: int
) -> int:
    """Place flows from the end of ``queue`` for so many steps; the number that still waits."""
    sends, carries, receives, busy = groups
    usable, slots, shunned = machine
    ends, at, age = flows
    columns, half = usable.shape[1], usable.size
    width = usable.sum(axis=1)
    less = np.minimum(shunned, MOST_SHUNNED)
    np.random.seed(seed)
    links, best = np.empty(4, np.int64), np.empty(4, np.int64)
    for _ in range(steps):
        if waiting == 0:
            return 0
        waiting -= 1
        f = queue[waiting]
        source, x, y = ends[f]
        down = half // columns + y
        best[COST], best[GROUP] = 1, -1
        first = np.random.randint(len(sends))
        for turn in range(len(sends)):  # free places only
            g = (first + turn) % len(sends)
            room = x == y or (busy[g, x] < width[x] and busy[g, down] < width[y])
            if room and sends[g, source] < 0 and receives[g, y] < slots:
                _cheapest(g, f, flows, carries, usable, shunned, 0, best)
                if best[COST] == 0:
                    break
        if best[GROUP] < 0:
            best[COST] = np.int64(1) << 60
        for _ in range(0 if best[COST] == 0 else TRIED):
            g = np.random.randint(len(sends))
            sender = sends[g, source]
            if receives[g, y] >= slots and (sender < 0 or ends[sender, 2] != y):
                continue
            _cheapest(g, f, flows, carries, usable, less, 0 if sender < 0 else 1000 + age[sender], best)
        if best[GROUP] < 0:  # the leaf is full everywhere it looked: something else first
            other = np.random.randint(waiting + 1)
            queue[waiting] = queue[other]
            queue[other] = f
            waiting += 1
            continue
        g = best[GROUP]
        at[f, 0], at[f, 1], at[f, 2] = g, best[BETWEEN], best[KIND]
        waiting = _remove(queue, waiting, sends[g, source], flows, groups, usable)
        for i in range(_links_of(links, x, y, best[BETWEEN], best[KIND], columns, half)):
            waiting = _remove(queue, waiting, carries[g, links[i]], flows, groups, usable)
        _put(f, flows, groups, links, usable)
    return waiting


@jit
def _price(f: int, age: IntArray) -> int:
    """What it costs to move a flow; nothing where there is none."""
    return 0 if f < 0 else 1000 + age[f]


@jit
def _offer(best: IntArray, cost: int, group: int, between: int, kind: int) -> None:
    """Let ``best`` be this place if it costs less."""
    if cost < best[COST]:
        best[COST], best[GROUP], best[BETWEEN], best[KIND] = cost, group, between, kind


@jit
def _cheapest(
    g: int,
    f: int,
    flows: _Flows,
    carries: Int32Array,
    usable: BoolArray,
    shunned: FloatArray,
    cost: int,
    best: IntArray,
) -> None:
    """The cheapest route of a flow in a group; ``best``: cost, group, between, kind, replaced by what costs less."""
    age = flows.age
    x, y, columns, half = flows.ends[f, 1], flows.ends[f, 2], usable.shape[1], usable.size
    a, b, layers = x % columns, y % columns, usable.shape[0] // columns
    if cost >= best[COST]:
        return
    if x == y:
        _offer(best, cost, g, -1, INSIDE)
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
        if price >= best[COST]:
            continue
        if direct:
            _offer(best, price, g, c, ONE_SPINE)
        for h in range(0 if direct else layers):
            z = ((h + turned) % layers) * columns + c
            if usable[z, a] and usable[z, b] and np.random.random() >= shunned[z]:
                total = price + _price(carries[g, half + z * columns + a], age)
                total += _price(carries[g, z * columns + b], age)
                _offer(best, total, g, z, TWO_SPINES)
        if best[COST] == 0:
            return


@jit
def _links_of(links: IntArray, x: int, y: int, between: int, kind: int, columns: int, half: int) -> int:
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
def _remove(queue: IntArray, waiting: int, f: int, flows: _Flows, groups: _Groups, usable: BoolArray) -> int:
    """Take a flow out of its group (-1: there is none) and let it wait; the number that waits."""
    if f < 0:
        return waiting
    ends, at, columns = flows.ends, flows.at, usable.shape[1]
    g, links = at[f, 0], np.empty(4, np.int64)
    for i in range(_links_of(links, ends[f, 1], ends[f, 2], at[f, 1], at[f, 2], columns, usable.size)):
        groups.carries[g, links[i]] = -1
        groups.busy[g, links[i] // columns] -= 1
    groups.sends[g, ends[f, 0]] = -1
    groups.receives[g, ends[f, 2]] -= 1
    at[f, 0] = -1
    flows.age[f] += 1
    queue[waiting] = f
    return waiting + 1
