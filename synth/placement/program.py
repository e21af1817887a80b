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
    """The best placement of rule, search and program, and the largest load of the rule's own."""
    start = rule(question)
    other = improved(question, start, options.seed)
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


def _solved(question: Question, start: IntArray, options: RunOptions, most: int) -> tuple[IntArray, Fraction] | None:
    """CP-SAT's placement and bound; None where it has neither."""
    from ortools.sat.python import cp_model

    model, unit = cp_model.CpModel(), _unit(question, most)
    experts, ranks = range(len(question.load)), range(question.ranks)
    numbers = range(1, most + 1)
    has = {(e, k): model.new_bool_var(f"y{e},{k}") for e in experts for k in numbers}
    put = {(e, k, r): model.new_int_var(0, min(k, question.slots), f"x{e},{k},{r}")
           for e in experts for k in numbers for r in ranks}  # fmt: skip
    home = _homes_of_groups(model, question) if question.homes > 1 else []
    size, each = question.ranks // question.homes, len(question.load) // question.groups
    for e in experts:
        model.add_exactly_one([has[e, k] for k in numbers])
        for k in numbers:
            model.add(sum(put[e, k, r] for r in ranks) == k * has[e, k])
            for b, place in enumerate(home[e // each] if home else ()):
                model.add(sum(put[e, k, r] for r in range(b * size, (b + 1) * size)) <= k * place)
    top = model.new_int_var(0, UNITS, "T")
    share = {(e, k): int(Fraction(int(question.load[e]), k) / unit) for e in experts for k in numbers}
    for r in ranks:
        model.add(sum(put[e, k, r] for e in experts for k in numbers) == question.slots)
        model.add(sum(share[e, k] * put[e, k, r] for e in experts for k in numbers) <= top)
    model.minimize(top)
    count = np.bincount(start.ravel(), minlength=len(question.load))
    for (e, k, r), variable in put.items():
        model.add_hint(variable, int((start[r] == e).sum()) if count[e] == k else 0)
    result, solver = solve(model, options, alone=IN_TURNS)
    if not result.has_point or result.bound is None:
        return None
    rows = [[e for e in experts for k in numbers for _ in range(solver.value(put[e, k, r]))] for r in ranks]
    return np.array(rows, dtype=np.int64), Fraction(int(np.ceil(result.bound - 1e-6))) * unit
