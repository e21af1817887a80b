"""Integer program of placements, solved by CP-SAT, and bounds on the largest load.

| symbol | code | index | meaning |
|---|---|---|---|
| $y_{ek}$ | ``has`` | expert, number | expert e has k copies |
| $x_{ekr}$ | ``put`` | expert, number, rank | so many of its k copies are on rank r |
| $z_{gb}$ | ``home`` | group, box | group g is in box b |

$\\min T$ with (1) $\\sum_k y_{ek} = 1$, (2) $\\sum_r x_{ekr} = k y_{ek}$, (3) $\\sum_{ek} x_{ekr} = $ slots,
(4) $\\sum_{ek} (w_e / k) x_{ekr} \\le T$, (5) $\\sum_b z_{gb} = 1$, (6) $\\sum_g z_{gb} = $ groups a box,
(7) $\\sum_r x_{ekr} \\le k z_{gb}$ over the ranks of box b. Loads are rounded down to whole units, so that the solver's
bound holds; a placement's own load is exact.
"""

from __future__ import annotations

import heapq
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.options import RunOptions
from synth.placement.question import Question, loads
from synth.placement.rule import rule
from synth.placement.search import improved
from synth.solvers.cpsat import IN_TURNS, solve

SEARCHED = 0.5  # of the time limit: how long the search may take
MOST_VARIABLES = 2_000  # of a program that is tried
UNITS = 2**40  # of all loads, where the least load of a copy is no whole part of a token


class Placed(NamedTuple):
    """``bound``: no placement has a smaller largest load. ``proof``: volume, copy, boxes or cpsat."""

    placement: IntArray
    value: Fraction
    bound: Fraction
    proof: str


def simple_bound(question: Question) -> tuple[Fraction, str]:
    """The mean load, or the least that the largest copy can be: only one more copy of its expert makes it less."""
    total = int(question.load.sum())
    volume = Fraction(total, question.ranks)
    heap = [(Fraction(-tokens), tokens, 1) for tokens in question.load.tolist()]
    heapq.heapify(heap)
    for _ in range(question.ranks * question.slots - len(heap)):
        _, tokens, k = heap[0]
        heapq.heapreplace(heap, (Fraction(-tokens, k + 1), tokens, k + 1))
    copy = -heap[0][0]
    return (volume, "volume") if volume >= copy else (copy, "copy")


def solved(question: Question, start: IntArray, options: RunOptions) -> Placed:
    """The best of the start and what CP-SAT finds from there, with the best bound. Larger programs than
    ``MOST_VARIABLES`` are not tried: then groups alone are bounded, box by box."""
    value = max(loads(question.load, start))
    bound, proof = simple_bound(question)
    per_home = len(question.load) // question.homes
    most = question.ranks * question.slots // question.homes - per_home + 1
    if value > bound and len(question.load) * most * question.ranks <= MOST_VARIABLES:
        found = _solved(question, start, options, most)
        if found is not None:
            placement, proven = found
            own = max(loads(question.load, placement))
            start, value = (placement, own) if own < value else (start, value)
            bound, proof = (proven, "cpsat") if proven > bound else (bound, proof)
    elif value > bound and question.homes > 1:
        proven = _boxes_bound(question, options)
        bound, proof = (proven, "boxes") if proven > bound else (bound, proof)
    return Placed(start, value, bound, proof)


def placed(question: Question, options: RunOptions) -> tuple[Placed, Fraction]:
    """The best placement of rule, search (within half of the time) and program, and the largest load of the rule's."""
    start, part = rule(question), options.part(SEARCHED)
    other = improved(question, start, options.seed, lambda: not part.out_of_time())
    by_rule = max(loads(question.load, start))
    best = other if max(loads(question.load, other)) < by_rule else start
    return solved(question, best, options), by_rule


def _unit(question: Question, most: int = 1) -> Fraction:
    """Tokens of a unit of the program: every share of up to ``most`` copies is whole units where numbers stay small."""
    total, parts = max(int(question.load.sum()), 1), math.lcm(*range(1, most + 1))
    return Fraction(1, parts) if total * parts <= UNITS else Fraction(total, UNITS)


def _homes_of_groups(model: Any, question: Question) -> list[list[Any]]:
    """Equations (5) and (6)."""
    groups, homes = question.groups, question.homes
    home = [[model.new_bool_var(f"z{g},{b}") for b in range(homes)] for g in range(groups)]
    for row in home:
        model.add_exactly_one(row)
    for b in range(homes):
        model.add(sum(row[b] for row in home) == groups // homes)
    return home


def _boxes_bound(question: Question, options: RunOptions) -> Fraction:
    """The least mean load of the ranks of the fullest box, over all ways of groups to boxes."""
    from ortools.sat.python import cp_model

    model, unit = cp_model.CpModel(), _unit(question)
    home = _homes_of_groups(model, question)
    weight = question.load.reshape(question.groups, -1).sum(axis=1).tolist()
    top = model.new_int_var(0, UNITS, "T")
    for b in range(question.homes):
        model.add(sum(int(w / unit) * home[g][b] for g, w in enumerate(weight)) <= top)
    model.minimize(top)
    result, _ = solve(model, options, alone=IN_TURNS)
    ranks = question.ranks // question.homes
    return Fraction(0) if result.bound is None else Fraction(int(np.ceil(result.bound - 1e-6))) * unit / ranks


class _Variables(NamedTuple):
    """The program's variables by their indices, and ``most``: copies of an expert."""

    has: dict[tuple[int, int], Any]
    put: dict[tuple[int, int, int], Any]
    most: int

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All experts and numbers."""
        return list(self.has)


def _variables(model: Any, question: Question, most: int) -> _Variables:
    pairs = [(e, k) for e in range(len(question.load)) for k in range(1, most + 1)]
    ranks = range(question.ranks)
    has = {(e, k): model.new_bool_var(f"y{e},{k}") for e, k in pairs}
    put = {(e, k, r): model.new_int_var(0, min(k, question.slots), f"x{e},{k},{r}") for e, k in pairs for r in ranks}
    return _Variables(has, put, most)


def _numbers_of_copies(model: Any, question: Question, of: _Variables) -> None:
    """Equations (1) and (2)."""
    for e in range(len(question.load)):
        model.add_exactly_one([of.has[e, k] for k in range(1, of.most + 1)])
    for e, k in of.pairs:
        model.add(sum(of.put[e, k, r] for r in range(question.ranks)) == k * of.has[e, k])


def _slots_and_loads(model: Any, question: Question, of: _Variables, unit: Fraction) -> Any:
    """Equations (3) and (4); returns T."""
    top = model.new_int_var(0, UNITS, "T")
    share = {(e, k): int(Fraction(int(question.load[e]), k) / unit) for e, k in of.pairs}
    for r in range(question.ranks):
        model.add(sum(of.put[e, k, r] for e, k in of.pairs) == question.slots)
        model.add(sum(share[e, k] * of.put[e, k, r] for e, k in of.pairs) <= top)
    return top


def _groups_at_home(model: Any, question: Question, of: _Variables) -> None:
    """Equations (5) to (7)."""
    home = _homes_of_groups(model, question)
    size, each = question.ranks // question.homes, len(question.load) // question.groups
    for e, k in of.pairs:
        for b, place in enumerate(home[e // each]):
            model.add(sum(of.put[e, k, r] for r in range(b * size, (b + 1) * size)) <= k * place)


def _solved(question: Question, start: IntArray, options: RunOptions, most: int) -> tuple[IntArray, Fraction] | None:
    """CP-SAT's placement and bound; None where it has neither."""
    from ortools.sat.python import cp_model

    model, unit = cp_model.CpModel(), _unit(question, most)
    of = _variables(model, question, most)
    _numbers_of_copies(model, question, of)
    top = _slots_and_loads(model, question, of, unit)
    if question.homes > 1:
        _groups_at_home(model, question, of)
    model.minimize(top)
    count = np.bincount(start.ravel(), minlength=len(question.load))
    for (e, k, r), variable in of.put.items():
        model.add_hint(variable, int((start[r] == e).sum()) if count[e] == k else 0)
    result, solver = solve(model, options, alone=IN_TURNS)
    if not result.has_point or result.bound is None:
        return None
    rows: list[list[int]] = [[] for _ in range(question.ranks)]
    for (e, _, r), variable in of.put.items():
        rows[r] += [e] * solver.value(variable)
    return np.array(rows, dtype=np.int64), Fraction(int(np.ceil(result.bound - 1e-6))) * unit
