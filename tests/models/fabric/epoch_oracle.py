"""The fewest epochs by brute force, from the rules of TE-CCL's epochs alone; for machines of a few nodes.

Copied: a breadth-first search over everything that can be sent, epoch by epoch. Fluid: a linear program with a variable
for every path through time.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
from scipy.optimize import linprog

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.parts.exact import exact

MOST_STATES = 2_000
State = tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int, int]], tuple[tuple[int, ...], ...]]


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
    """The fewest epochs, None where the search grows too large. State: who holds what, what is on the way (epochs until
    it is there), and how long ago each link began a chunk, if that still counts."""
    rules = Rules(instance, tau, chunks)
    origin = [int(v) for v in instance.blocks.origin for _ in range(chunks)]
    goal = {(c, v) for c in range(len(origin)) for v in instance.members}
    states = {
        (frozenset((c, v) for c, v in enumerate(origin)), frozenset[tuple[int, int, int]](), ((),) * len(rules.src))
    }
    for epoch in range(most + 1):
        if any(goal <= held for held, _, _ in states):
            return epoch
        states = {after for state in states for after in _successors(rules, len(origin), state)}
        if len(states) > MOST_STATES:
            return None
    return None


def _successors(rules: Rules, chunks: int, state: State) -> set[State]:
    held, coming, ages = state
    there = held | {(c, v) for c, v, _ in coming}  # nobody needs a chunk that is on its way twice
    options = []
    for e, (u, v) in enumerate(zip(rules.src, rules.dst, strict=True)):
        room = math.floor((rules.b[e] + 1) * rules.cap[e]) - len(ages[e])
        useful = [
            c
            for c in range(chunks)
            if ((c, u) in held or not rules.keeps[u]) and not (rules.keeps[v] and (c, v) in there)
        ]
        options.append([set(some) for n in range(min(room, len(useful)) + 1) for some in combinations(useful, n)])
    return {after for choice in product(*options) if (after := _after(rules, held, coming, ages, choice)) is not None}


def _after(
    rules: Rules, held: frozenset[tuple[int, int]], coming: frozenset[tuple[int, int, int]],
    ages: tuple[tuple[int, ...], ...], choice: tuple[set[int], ...],
) -> State | None:  # fmt: skip
    """The state an epoch later, or None where a switch sends what it does not get in this epoch."""
    moving = set(coming)
    for e, sent in enumerate(choice):
        v = rules.dst[e]
        moving |= {(c, v, rules.a[e] if rules.switch[v] else rules.a[e] + rules.b[e] + 1) for c in sent}
    now = {(c, v) for c, v, left in moving if left == 0}
    for e, sent in enumerate(choice):
        u = rules.src[e]
        if not rules.keeps[u] and any((c, u) not in now for c in sent):
            return None
        if rules.keeps[u] and any((c, u) not in held for c in sent):
            return None
    if not rules.copies:
        outs = [(c, rules.src[e]) for e, sent in enumerate(choice) for c in sent if rules.switch[rules.src[e]]]
        if len(outs) != len(set(outs)):
            return None
    arrived = {(c, v) for c, v, left in moving if left == 1 and rules.keeps[v]}
    later = frozenset((c, v, left - 1) for c, v, left in moving if left > (1 if rules.keeps[v] else 0))
    aged = tuple(
        tuple(age + 1 for age in (*ages[e], *([0] * len(sent))) if age + 1 <= rules.b[e])
        for e, sent in enumerate(choice)
    )
    return held | arrived, later, aged


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
