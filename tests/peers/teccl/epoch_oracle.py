"""The fewest epochs by brute force, from the rules of TE-CCL's epochs alone; for machines of a few nodes.

Copied: a breadth-first search over everything that can be sent, send by send. Fluid: a linear program with a variable
for every path through time.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linprog

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact

MOST_STATES, MOST_WITHIN = 3_000, 20_000
FAR = 10**6
Vector = tuple[int, ...]


class Rules:
    """a, b and capacity of every link for epochs of ``tau`` seconds and ``chunks`` chunks a block."""

    def __init__(self, instance: FabricInstance, tau: Fraction, chunks: int = 1) -> None:
        net, self.instance = instance.machine.network, instance
        chunk = Fraction(int(instance.blocks.bytes.max()), chunks)
        self.cap = [exact(float(b)) * tau / chunk for b in net.bandwidth]
        over = [exact(float(alpha)) / tau for alpha in net.latency]
        self.a = [math.ceil(x) if x > Fraction(1, 10) else 0 for x in over]
        self.b = [math.ceil(1 / c) - 1 for c in self.cap]
        self.src, self.dst = net.src.tolist(), net.dst.tolist()
        self.switch = instance.machine.is_switch.tolist()
        stores = instance.switching.mode == "store_and_forward"
        self.copies = instance.switching.copies if stores else instance.switching.multicast
        self.keeps = [not s or (stores and instance.switching.buffer) for s in self.switch]


def fewest_copied(instance: FabricInstance, tau: Fraction, chunks: int = 1, most: int = 30) -> int | None:
    """The fewest epochs, None where the search grows too large. Reductions are played backwards.

    Within an epoch sends are made one after another, each of what its node has at that moment, as long as the links
    take them: so a chunk may go over a link as often as the link takes it, and nothing comes from nowhere where
    switches pass on at once. What stays in a switch without buffer at an epoch's end is lost. Of states of which one
    has all that the other has, no later, the other is left out.
    """
    search = _Copied(instance, tau, chunks)
    level = {search.begin()}
    for epoch in range(most + 1):
        if any(search.done(state) for state in level):
            return epoch
        after: set[Vector] = set()
        for state in level:
            ends = search.within(state)
            if ends is None:
                return None
            after |= {search.later(end) for end in ends}
        if len(after) > MOST_STATES:
            return None
        level = _best(after)
    return None


def _best(states: set[Vector]) -> set[Vector]:
    """Those that no other state beats: in every component, more is better."""
    rows = np.array(sorted(states, key=lambda state: -sum(state)))
    kept: list[int] = []
    for i, row in enumerate(rows):
        if not kept or not bool((rows[kept] >= row).all(axis=1).any()):
            kept.append(i)
    return {tuple(rows[i].tolist()) for i in kept}


class _Copied:
    """States are vectors: for every chunk and keeping node minus the epochs until it is there; for every chunk, other
    switch and epoch ahead what arrives; for every link and age, and every group and age, minus what was begun since."""

    def __init__(self, instance: FabricInstance, tau: Fraction, chunks: int) -> None:
        back = instance.collective in ("reduce", "reduce_scatter")
        rules = Rules(instance, tau, chunks)
        self.src, self.dst = (rules.dst, rules.src) if back else (rules.src, rules.dst)
        self.copies = rules.copies and not back
        blocks = instance.blocks
        starts = (blocks.goal if back else blocks.origin).tolist()
        self.home = [int(v) for v in starts for _ in range(chunks)]
        self.members = instance.members
        self.lag = [rules.a[e] + (0 if rules.switch[v] else rules.b[e] + 1) for e, v in enumerate(self.dst)]
        self.window = [b + 1 for b in rules.b]
        self.quota = [math.floor(w * c) for w, c in zip(self.window, rules.cap, strict=True)]
        names = instance.machine.group.tolist()
        self.groups = [[e for e, other in enumerate(names) if other == g] for g in sorted({g for g in names if g >= 0})]
        self.span = [max(self.window[e] for e in links) for links in self.groups]
        self.unit = math.lcm(*(rules.cap[e].numerator for links in self.groups for e in links))
        self.part = [int(self.unit / c) for c in rules.cap]  # of a group's epoch, in units
        self.place: dict[tuple[Any, ...], int] = {}
        self._places(rules)

    def _places(self, rules: Rules) -> None:
        count, ahead = len(self.home), max(self.lag) + 1
        names: list[tuple[Any, ...]] = []
        for c, v in product(range(count), range(len(rules.keeps))):
            names += [("at", c, v)] if rules.keeps[v] else [("in", c, v, j) for j in range(ahead)]
        names += [("link", e, j) for e, w in enumerate(self.window) for j in range(w)]
        names += [("group", g, j) for g, span in enumerate(self.span) for j in range(span)]
        self.place = {name: i for i, name in enumerate(names)}
        self.ahead = ahead

    def begin(self) -> Vector:
        return tuple(-FAR if name[0] == "at" and self.home[name[1]] != name[2] else 0 for name in self.place)

    def done(self, state: Vector) -> bool:
        return all(state[self.place["at", c, v]] == 0 for c in range(len(self.home)) for v in self.members)

    def within(self, state: Vector) -> set[Vector] | None:
        """All that can be reached by sends of one epoch; None if that is too much."""
        seen, stack = {state}, [state]
        while stack:
            now = stack.pop()
            for e, c in product(range(len(self.src)), range(len(self.home))):
                after = self._sent(now, e, c)
                if after is not None and after not in seen:
                    seen.add(after)
                    stack.append(after)
            if len(seen) > MOST_WITHIN:
                return None
        return seen

    def _sent(self, state: Vector, e: int, c: int) -> Vector | None:
        u, v, lag = self.src[e], self.dst[e], self.lag[e]
        new = list(state)
        if ("at", c, u) in self.place:
            if state[self.place["at", c, u]] < 0:
                return None
        else:
            here = self.place["in", c, u, 0]
            if not state[here]:
                return None
            new[here] -= not self.copies
        for j in range(self.window[e]):  # begun in the last j + 1 epochs, this one among them
            at = self.place["link", e, j]
            new[at] -= 1
        if -new[at] > self.quota[e]:
            return None
        for g, links in enumerate(self.groups):
            if e in links:
                for j in range(self.span[g]):
                    at = self.place["group", g, j]
                    new[at] -= self.part[e]
                if -new[at] > self.unit * self.span[g]:
                    return None
        if ("at", c, v) in self.place:
            at = self.place["at", c, v]
            if state[at] >= -lag:
                return None  # nobody needs what is there already
            new[at] = -lag
        else:
            at = self.place["in", c, v, lag]
            if self.copies and state[at]:
                return None
            new[at] += 1
        return tuple(new)

    def later(self, state: Vector) -> Vector:
        """The same one epoch later."""
        new = []
        for name, value in zip(self.place, state, strict=True):
            match name:
                case ("at", _, _):
                    new.append(value if value == -FAR else min(0, value + 1))
                case ("in", c, v, j):
                    new.append(state[self.place["in", c, v, j + 1]] if j + 1 < self.ahead else 0)
                case (kind, i, j):
                    new.append(state[self.place[kind, i, j - 1]] if j else 0)
        return tuple(new)


def fewest_fluid(instance: FabricInstance, tau: Fraction, most: int = 40) -> int | None:
    """The fewest epochs of a fluid plan; None above ``most``."""
    return next((k for k in range(1, most + 1) if _fluid_fits(instance, tau, k)), None)


def _fluid_fits(instance: FabricInstance, tau: Fraction, epochs: int) -> bool:
    rules = Rules(instance, tau)
    blocks = instance.blocks
    pairs: dict[tuple[int, int], float] = {}
    for u, v, size in zip(blocks.origin.tolist(), blocks.goal.tolist(), blocks.bytes.tolist(), strict=True):
        pairs[u, v] = pairs.get((u, v), 0.0) + size / int(blocks.bytes.max())
    rows: dict[tuple[int, int], list[int]] = {}
    owners: list[int] = []
    for number, (u, v) in enumerate(pairs):
        for path in _paths(rules, u, v, epochs):
            for hop in path:
                rows.setdefault(hop, []).append(len(owners))
            owners.append(number)
    if not owners:
        return False
    equal = np.zeros((len(pairs), len(owners)))
    equal[owners, range(len(owners))] = 1
    below = np.zeros((len(rows), len(owners)))
    for i, columns in enumerate(rows.values()):
        np.add.at(below[i], columns, 1)
    limit = [float(rules.cap[e]) for e, _ in rows]
    found = linprog(np.zeros(len(owners)), below, limit, equal, list(pairs.values()), method="highs")
    return bool(found.status == 0)


def _paths(rules: Rules, u: int, v: int, epochs: int) -> list[tuple[tuple[int, int], ...]]:
    """All ways through time from u to v, no node twice: (link, epoch) a hop."""
    found: list[tuple[tuple[int, int], ...]] = []
    stack: list[tuple[int, int, tuple[int, ...], tuple[tuple[int, int], ...]]] = [(u, 0, (u,), ())]
    while stack:
        node, now, seen, path = stack.pop()
        if node == v:
            found.append(path)
            continue
        for e in (e for e, tail in enumerate(rules.src) if tail == node and rules.dst[e] not in seen):
            for k in range(now, epochs) if rules.keeps[node] else (now,):
                if k + rules.a[e] + 1 <= epochs:
                    stack.append((rules.dst[e], k + rules.a[e] + 1, (*seen, rules.dst[e]), (*path, (e, k))))
    return found
