"""The program without its whole numbers: the most chunks that fit S steps and R rounds in parts, and the dual prices.

A block's chunks may be cut as finely as one likes; a part of a chunk that is spread to all crosses an arc at most once
for all goals (a flow to every goal, none above what the arc carries of the block). This is the linear relaxation of
:mod:`synth_peers.sccl.programs.trees` and :mod:`synth_peers.sccl.programs.flows`; its dual prices
arcs by step, and is the certificate ``timed`` of :mod:`synth_peers.sccl.check.counted_steps`.

| symbol | here | index | unit |
|---|---|---|---|
| C | column 0 | – | chunks of a block |
| r_s | columns 1 … S | steps | rounds |
| f | ``flow`` of ``delivery``, ``arc``, ``step`` | delivery w (block b, origin u, goal v), arc e, step s | chunks |
| y | ``carried`` of the same | block, arc, step; where blocks are spread to all (else the sum of f) | chunks |

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
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.time_expanded.windows import Windows, on_arcs
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_peers.sccl.programs.rank_arcs import UNREACHABLE, RankArcs

LARGEST = 150_000  # variables: beyond, the linear program takes longer than what it saves
FINENESS = (1, 2, 3, 4, 6, 12, 60, 2520, 10**6)  # prices are rounded to these parts of the largest

Delivery = tuple[int, int, int]
"""Block, origin, goal."""


def deliveries_of(instance: FabricInstance) -> list[Delivery]:
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
    """``most`` chunks a block (a float, for orientation); ``prices`` by delivery, arc and step, shape (deliveries,
    arcs, steps), or with one row for all deliveries where blocks go from rank to rank."""

    most: float
    prices: np.ndarray[Any, Any]


def certificates(found: Sequence[Relaxed], instance: FabricInstance, arcs: RankArcs) -> Iterator[Mapping[str, Any]]:
    """The prices in whole numbers, coarse ones first; whether they prove anything is for the check to say. Of one
    relaxation the argument ``timed``, of one for every row of :func:`lengths_of` the argument ``lengths``."""
    deliveries = len(deliveries_of(instance))
    of_link = np.zeros(instance.machine.links, dtype=np.int64)
    for e, links in enumerate(arcs.links):
        of_link[[link for link, _ in links]] = e
    tables = len(found[0].prices)
    which = np.arange(deliveries, dtype=np.int64) if tables == deliveries else np.zeros(deliveries, dtype=np.int64)
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
    instance: FabricInstance, arcs: RankArcs, steps: int, rounds: int, lengths: tuple[int, ...] | None = None
) -> Relaxed | None:
    """The relaxation's optimum, for steps of these ``lengths`` or of the best (not whole) ones; None where it is too
    large, not solved, or says nothing (allreduce)."""
    deliveries = deliveries_of(instance)
    shared = bool(np.any((instance.blocks.origin == EVERYONE) | (instance.blocks.goal == EVERYONE)))
    if instance.collective == "allreduce" or len(deliveries) * arcs.count * steps > LARGEST:
        return None
    return _Relaxation(arcs, deliveries, steps, rounds, shared).solved(lengths)


class _Rows(NamedTuple):
    """Rows of the program in parts: entries' rows, columns and factors, shape (entries,) each, and how many rows."""

    parts: list[tuple[IntArray, IntArray, Any]]
    total: int

    def matrix(self, columns: int) -> Any:
        """Return them as a sparse matrix, shape (total, columns), each row's columns ascending."""
        from scipy.sparse import csr_array

        row, column = (np.concatenate([part[k] for part in self.parts]) for k in (0, 1))
        factor = np.concatenate([np.broadcast_to(np.float64(f), r.shape) for r, _, f in self.parts])
        matrix = csr_array((factor, (row, column)), shape=(self.total, columns))
        matrix.sum_duplicates()
        return matrix


def _stacked(parts: Sequence[_Rows]) -> _Rows:
    """Rows below each other."""
    first = np.cumsum([0, *(rows.total for rows in parts)]).tolist()
    entries = [
        (row + at, column, factor) for rows, at in zip(parts, first, strict=False) for row, column, factor in rows.parts
    ]
    return _Rows(entries, first[-1])


def _numbered(key: IntArray) -> tuple[IntArray, IntArray]:
    """The number of each key among the distinct ones, in the order in which they come, and where each comes first."""
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    return number[which.reshape(-1)], first[order].astype(np.int64)


class _Relaxation:
    """One linear program. Columns: the chunks, the rounds of every step, flows, and what arcs carry of every block.

    ``block``, ``origin``, ``goal`` of the deliveries, shape (deliveries,). Of every flow, shape (flows,): its
    ``delivery``, ``arc`` and ``step``, its column (``flow``), and that of what the arc carries of its block in the step
    (``carried``: the flow's own where nothing is shared).
    """

    def __init__(self, arcs: RankArcs, deliveries: Sequence[Delivery], steps: int, rounds: int, shared: bool) -> None:
        self.arcs, self.deliveries, self.steps, self.rounds, self.shared = arcs, deliveries, steps, rounds, shared
        self.block, self.origin, self.goal = np.array(deliveries, dtype=np.int64).reshape(-1, 3).T
        self.delivery, self.arc, self.step = np.array(self.sending().indices(), dtype=np.int64).reshape(-1, 3).T
        self.flow = 1 + steps + np.arange(len(self.delivery), dtype=np.int64)
        self.carried, self.count = self.flow, 1 + steps + len(self.flow)
        if shared:
            number, first = _numbered((self.block[self.delivery] * arcs.count + self.arc) * steps + self.step)
            self.carried, self.count = self.count + number, self.count + len(first)

    def sending(self) -> Windows:
        """The steps in which a flow can be of use on every arc, those out of its goal and into its origin excepted."""
        arcs, origin, goal = self.arcs, self.origin, self.goal
        ready, left = arcs.hops[origin], arcs.hops[:, goal].T
        there = (ready[:, arcs.tail] < UNREACHABLE) & (left[:, arcs.head] < UNREACHABLE)
        within = (arcs.head != origin[:, None]) & (arcs.tail != goal[:, None])
        return on_arcs(ready, self.steps - left, arcs.tail, arcs.head).only(there & within)

    def solved(self, lengths: tuple[int, ...] | None) -> Relaxed | None:
        from synth.solvers.lp import linprog

        capacity, place = self.capacity_rows()
        upper = _stacked([capacity, *([self.shares()] if self.shared else []), self.limits()])
        equal = _stacked([self.arrivals(), self.all_rounds()])
        goal = np.zeros(self.count)
        goal[0] = -1
        rounds: list[Any] = [(1, None)] * self.steps if lengths is None else [(n, n) for n in lengths]
        bounds: Any = [(0, None), *rounds, *[(0, None)] * (self.count - 1 - self.steps)]
        right = np.zeros(equal.total)
        right[-1] = self.rounds
        found: Any = linprog(
            goal, upper.matrix(self.count), np.zeros(upper.total), equal.matrix(self.count), right, bounds=bounds,
            method="highs",
        )  # fmt: skip
        if found.status != 0:
            return None
        dual = np.maximum(0.0, -found.ineqlin.marginals)
        prices = np.zeros((len(self.deliveries) if self.shared else 1, self.arcs.count, self.steps))
        if self.shared:
            prices[self.delivery, self.arc, self.step] = dual[capacity.total :][: len(self.flow)]
        else:
            prices[0, self.arc[place], self.step[place]] = dual[: capacity.total]
        return Relaxed(-float(found.fun), prices)

    def capacity_rows(self) -> tuple[_Rows, IntArray]:
        """(3): what arcs carry in a step is at most capacity times rounds; and for every row a flow of its arc and
        step."""
        row, first = _numbered(self.arc * self.steps + self.step)
        carried, once = np.unique(self.carried, return_index=True)
        capacity = -self.arcs.capacity[self.arc[first]].astype(np.float64)
        parts = [(row[once], carried, 1.0), (np.arange(len(first)), 1 + self.step[first], capacity)]
        return _Rows(parts, len(first)), first

    def shares(self) -> _Rows:
        """(5): a flow to a goal is at most what the arc carries of its block."""
        row = np.arange(len(self.flow), dtype=np.int64)
        return _Rows([(row, self.flow, 1.0), (row, self.carried, -1.0)], len(row))

    def limits(self) -> _Rows:
        """(2): no more leaves a rank than came there in earlier steps, a row for every delivery, rank and step in which
        something can have left; a delivery's origin has all its chunks."""
        nodes, steps = self.arcs.nodes, self.steps
        at_tail, at_head = (self.delivery * nodes + end[self.arc] for end in (self.arcs.tail, self.arcs.head))
        sent, since = self.in_steps_from(self.step)
        left = at_tail[sent] * steps + since
        rows = np.unique(left)
        came, after = self.in_steps_from(self.step + 1)
        got = at_head[came] * steps + after
        counts = np.isin(got, rows)
        delivery, rank = np.divmod(rows // steps, nodes)
        own = np.flatnonzero(rank == self.origin[delivery])
        parts = [
            (np.searchsorted(rows, left), self.flow[sent], 1.0),
            (np.searchsorted(rows, got[counts]), self.flow[came[counts]], -1.0),
            (own, np.zeros_like(own), -1.0),
        ]
        return _Rows(parts, len(rows))

    def in_steps_from(self, first: IntArray) -> tuple[IntArray, IntArray]:
        """Every flow with each step from its ``first`` on: flows and steps, shape (pairs,) each."""
        length = self.steps - first
        flow = np.repeat(np.arange(len(first)), length)
        return flow, np.arange(len(flow)) - np.repeat(np.cumsum(length) - self.steps, length)

    def arrivals(self) -> _Rows:
        """(1): all chunks come to every goal."""
        arriving = np.flatnonzero(self.arcs.head[self.arc] == self.goal[self.delivery])
        every = np.arange(len(self.deliveries), dtype=np.int64)
        return _Rows(
            [(self.delivery[arriving], self.flow[arriving], 1.0), (every, np.zeros_like(every), -1.0)], len(every)
        )

    def all_rounds(self) -> _Rows:
        """(4): the steps' rounds make up R."""
        column = 1 + np.arange(self.steps, dtype=np.int64)
        return _Rows([(np.zeros_like(column), column, 1.0)], 1)
