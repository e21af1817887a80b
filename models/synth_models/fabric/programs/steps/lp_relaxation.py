"""The program without its whole numbers: the most chunks that fit S steps and R rounds in parts, and the dual prices.

A block's chunks may be cut as finely as one likes; a part of a chunk that is spread to all crosses a lane at most once
for all goals (a flow to every goal, none above what the lane carries of the block). This is the linear relaxation of
:mod:`synth_models.fabric.programs.steps.trees` and :mod:`synth_models.fabric.programs.steps.flows`; its dual prices
lanes by step, and is the certificate ``timed`` of :mod:`synth_models.fabric.check.counting`.

| symbol | here | index | unit |
|---|---|---|---|
| C | column 0 | – | chunks of a block |
| r_s | columns 1 … S | steps | rounds |
| f | ``flow[w, e, s]`` | way (block b, origin u, goal v), lane, step | chunks |
| y | ``carried[b, e, s]`` | block, lane, step; only where blocks are spread to all (else y is the sum of f) | chunks |

    maximise C
    (1) arrivals       sum_{e into v, s} f[w,e,s] = C
    (2) limits         sum_{e out of x, t <= s} f[w,e,t] - sum_{e into x, t < s} f[w,e,t] <= C if x = u, else 0
    (3) capacity rows  sum_b y[b,e,s] <= capacity[e] r_s
    (4) all rounds     sum_s r_s = R
    (5) shares         f[w,e,s] <= y[b,e,s]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from synth.solvers.rows import Term, ones
from synth.time_expanded.rows import by_place_and_time, over, sparse_rows
from synth.time_expanded.windows import TimedIndex, Windows, on_arcs
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.programs.steps.lanes import FAR, Lanes

LARGEST = 150_000  # variables: beyond, the linear program takes longer than what it saves
FINENESS = (1, 2, 3, 4, 6, 12, 60, 2520, 10**6)  # prices are rounded to these parts of the largest

Way = tuple[int, int, int]
"""Block, origin, goal."""


def ways_of(instance: FabricInstance) -> list[Way]:
    """Who has to get something of whom, block after block."""
    everyone = list(instance.members)
    blocks = instance.blocks
    return [
        (b, u, v)
        for b, (origin, goal) in enumerate(zip(blocks.origin.tolist(), blocks.goal.tolist(), strict=True))
        for u in (everyone if origin == EVERYONE else [origin])
        for v in (everyone if goal == EVERYONE else [goal])
        if u != v
    ]


@dataclass(frozen=True)
class Relaxed:
    """``most`` chunks a block (a float, for orientation); ``prices`` by way, lane and step, shape (ways, lanes, steps),
    or with one row for all ways where blocks go from rank to rank."""

    most: float
    prices: np.ndarray[Any, Any]


def certificates(found: Sequence[Relaxed], instance: FabricInstance, lanes: Lanes) -> Iterator[Mapping[str, Any]]:
    """The prices in whole numbers, coarse ones first; whether they prove anything is for the check to say. Of one
    relaxation the argument ``timed``, of one for every row of :func:`lengths_of` the argument ``lengths``."""
    ways = len(ways_of(instance))
    of_link = np.zeros(instance.machine.links, dtype=np.int64)
    for e, links in enumerate(lanes.links):
        of_link[[link for link, _ in links]] = e
    tables = len(found[0].prices)
    which = np.arange(ways, dtype=np.int64) if tables == ways else np.zeros(ways, dtype=np.int64)
    tops = [float(one.prices.max(initial=0.0)) for one in found]
    if min(tops) <= 0:
        return
    for parts in FINENESS:
        whole = [np.round(one.prices / top * parts).astype(np.int64) for one, top in zip(found, tops, strict=True)]
        argument = "timed" if len(found) == 1 else "lengths"
        yield {"argument": argument, "price": np.concatenate(whole)[:, of_link, :], "of": which}


def lengths_of(steps: int, rounds: int) -> Iterator[tuple[int, ...]]:
    """All rounds that the steps can have, in lexicographic order of the round after which each begins."""
    for cuts in combinations(range(1, rounds), steps - 1):
        yield tuple(b - a for a, b in pairwise((0, *cuts, rounds)))


def relaxed(
    instance: FabricInstance, lanes: Lanes, steps: int, rounds: int, lengths: tuple[int, ...] | None = None
) -> Relaxed | None:
    """The relaxation's optimum, for steps of these ``lengths`` or of the best (not whole) ones; None where it is too
    large, not solved, or says nothing (allreduce)."""
    ways = ways_of(instance)
    shared = bool(np.any((instance.blocks.origin == EVERYONE) | (instance.blocks.goal == EVERYONE)))
    if instance.collective == "allreduce" or len(ways) * lanes.count * steps > LARGEST:
        return None
    return _Relaxation(lanes, ways, steps, rounds, shared).solved(lengths)


class _Relaxation:
    """One linear program. Columns: the chunks, the rounds of every step, flows, and what lanes carry of every block."""

    def __init__(self, lanes: Lanes, ways: Sequence[Way], steps: int, rounds: int, shared: bool) -> None:
        self.lanes, self.ways, self.steps, self.rounds, self.shared = lanes, ways, steps, rounds, shared
        self.flow: dict[TimedIndex, int] = {}
        self.count = 1 + steps
        for w, e, times in self.sending().pairs():
            self.flow.update({(w, e, s): self.column() for s in times})
        self.carried: dict[TimedIndex, int] = {}
        if shared:
            for w, e, s in self.flow:
                if (ways[w][0], e, s) not in self.carried:
                    self.carried[ways[w][0], e, s] = self.column()

    def sending(self) -> Windows:
        """The steps in which a flow can be of use on every lane, those out of its goal and into its origin excepted."""
        lanes, (_, origin, goal) = self.lanes, np.array(self.ways, dtype=np.int64).reshape(-1, 3).T
        ready, left = lanes.hops[origin], lanes.hops[:, goal].T
        there = (ready[:, lanes.tail] < FAR) & (left[:, lanes.head] < FAR)
        within = (lanes.head != origin[:, None]) & (lanes.tail != goal[:, None])
        return on_arcs(ready, self.steps - left, lanes.tail, lanes.head).only(there & within)

    def column(self) -> int:
        self.count += 1
        return self.count - 1

    def solved(self, lengths: tuple[int, ...] | None) -> Relaxed | None:
        from synth.solvers.lp import linprog

        limits = list(self.limits())
        shares = list(self.shares()) if self.shared else []
        capacity = self.capacity_rows()
        upper = [row for row, _ in capacity] + [row for row, _ in shares] + limits
        equal = [*self.arrivals(), self.all_rounds()]
        goal = np.zeros(self.count)
        goal[0] = -1
        rounds: list[Any] = [(1, None)] * self.steps if lengths is None else [(n, n) for n in lengths]
        bounds: Any = [(0, None), *rounds, *[(0, None)] * (self.count - 1 - self.steps)]
        right = np.zeros(len(equal))
        right[-1] = self.rounds
        found: Any = linprog(
            goal, sparse_rows(upper, self.count), np.zeros(len(upper)), sparse_rows(equal, self.count), right,
            bounds=bounds, method="highs",
        )  # fmt: skip
        if found.status != 0:
            return None
        dual = -found.ineqlin.marginals
        keys = [key for _, key in (shares if self.shared else capacity)]
        first = len(capacity) if self.shared else 0
        prices = np.zeros((len(self.ways) if self.shared else 1, self.lanes.count, self.steps))
        for k, (w, e, s) in enumerate(keys):
            prices[w, e, s] = max(0.0, dual[first + k])
        return Relaxed(-float(found.fun), prices)

    def capacity_rows(self) -> list[tuple[list[Term], TimedIndex]]:
        """(3): what lanes carry in a step is at most capacity times rounds."""
        load = by_place_and_time(self.carried if self.shared else self.flow)
        capacity = self.lanes.capacity.tolist()
        return [([*ones(row), (-capacity[e], 1 + s)], (0, e, s)) for (e, s), row in load.items()]

    def shares(self) -> Iterator[tuple[list[Term], TimedIndex]]:
        """(5): a flow to a goal is at most what the lane carries of its block."""
        for (w, e, s), x in self.flow.items():
            yield [(1, x), (-1, self.carried[self.ways[w][0], e, s])], (w, e, s)

    def limits(self) -> Iterator[list[Term]]:
        """(2): no more leaves a rank than came there in earlier steps."""
        for w, (_, origin, goal) in enumerate(self.ways):
            for u in range(self.lanes.nodes):
                if u == goal:
                    continue
                for s in range(self.steps):
                    out = over(self.flow, w, self.lanes.out_of[u], range(s + 1))
                    if out:
                        got = over(self.flow, w, self.lanes.into[u], range(s))
                        yield [*ones(out), *ones(got, -1), *ones([0] if u == origin else [], -1)]

    def arrivals(self) -> Iterator[list[Term]]:
        """(1): all chunks come to every goal."""
        for w, (_, _, goal) in enumerate(self.ways):
            yield [*ones(over(self.flow, w, self.lanes.into[goal], range(self.steps))), (-1, 0)]

    def all_rounds(self) -> list[Term]:
        """(4): the steps' rounds make up R."""
        return ones(range(1, 1 + self.steps))
