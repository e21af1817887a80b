"""Least-crossing trees as an integer flow over (group, depth, round): a program file, it builds and solves nothing.

De Sensi et al. compare fixed trees; this is the program for the best one. Ranks of a group are interchangeable, so only
their numbers count. A rank's *depth* is how many times its message has crossed between groups: broadcast and reduce pay
for every crossing, scatter and gather pay for every rank's block once per crossing on its way, that is its depth.
Reduce and gather are broadcast and scatter backwards.

====================  ==================  ==================================  ========
symbol                code                index set                           unit
====================  ==================  ==================================  ========
x[g,l,t]              ``model.informed``  group, depth, round 0..K            ranks
z[g,l,t]              ``model.inside``    group, depth, round 1..K            messages
o[g,l,t]              ``model.leaving``   group, depth, round 1..K            messages
i[g,l,t]              ``model.entering``  group, depth, round 1..K            messages
n[g]                  ``sizes``           group                               ranks
K                     ``rounds``          one number                          rounds
====================  ==================  ==================================  ========

    (1) growth      x[g,l,t] = x[g,l,t-1] + z[g,l,t] + i[g,l,t];  x[root's group,0,0] = 1, all others 0 in round 0
    (2) one port    z[g,l,t] + o[g,l,t] <= x[g,l,t-1]
    (3) crossing    sum_g o[g,l,t] = sum_g i[g,l+1,t]
    (4) no return   o[g,l,t] + i[g,l+1,t] <= sum_h o[h,l,t]        (a message across goes to *another* group)
    (5) all reached sum_l x[g,l,K] = n[g]

(3) and (4) are Hall's condition for matching departures to arrivals of other groups, so every integer point is a tree.
Broadcast needs no depths: one level stands for all (``levels = 1``, arrivals at the level they left from).
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression, MonomialTermExpression


def build(sizes: list[int], root: int, rounds: int, depth_limit: int | None) -> pyo.ConcreteModel:
    """The model for group ``sizes`` with the root in group ``root``; scatter and gather give a ``depth_limit``."""
    volumes = depth_limit is not None
    levels = depth_limit + 1 if depth_limit is not None else 1
    model = pyo.ConcreteModel()
    groups, depths, times = range(len(sizes)), range(levels), range(1, rounds + 1)
    model.sizes, model.levels, model.rounds = sizes, levels, rounds
    kind: Any = pyo.NonNegativeIntegers

    def up_to_size(_: Any, g: int, *__: int) -> tuple[int, int]:
        return 0, sizes[g]

    model.informed = pyo.Var(groups, depths, range(rounds + 1), domain=kind, bounds=up_to_size)
    model.inside = pyo.Var(groups, depths, times, domain=kind, bounds=up_to_size)
    model.leaving = pyo.Var(groups, depths, times, domain=kind, bounds=up_to_size)
    model.entering = pyo.Var(groups, depths, times, domain=kind, bounds=up_to_size)
    for g in groups:
        for depth in depths:
            model.informed[g, depth, 0].fix(1 if (g, depth) == (root, 0) else 0)
    growth(model)
    one_port(model)
    crossing(model)
    all_reached(model)
    if volumes:
        cost = [(depth, model.informed[g, depth, rounds]) for g in groups for depth in depths if depth]
    else:
        cost = [(1, v) for v in model.entering.values()]
    model.objective = pyo.Objective(expr=_linear(cost))
    return model


def _linear(terms: list[tuple[int, Any]]) -> Any:
    return LinearExpression([v if c == 1 else MonomialTermExpression((c, v)) for c, v in terms])


def _cells(model: Any) -> list[tuple[int, int, int]]:
    return list(model.inside.keys())


def growth(model: Any) -> None:
    """(1): informed ranks are those of the round before and the newly reached."""

    def rule(m: Any, g: int, depth: int, t: int) -> Any:
        terms = [(1, m.informed[g, depth, t]), (-1, m.informed[g, depth, t - 1])]
        return _linear([*terms, (-1, m.inside[g, depth, t]), (-1, m.entering[g, depth, t])]) == 0

    model.growth = pyo.Constraint(_cells(model), rule=rule)


def one_port(model: Any) -> None:
    """(2): every informed rank sends at most one message a round."""

    def rule(m: Any, g: int, depth: int, t: int) -> Any:
        return (
            _linear([(1, m.inside[g, depth, t]), (1, m.leaving[g, depth, t]), (-1, m.informed[g, depth, t - 1])]) <= 0
        )

    model.one_port = pyo.Constraint(_cells(model), rule=rule)


def crossing(model: Any) -> None:
    """(3) and (4): departures from a level are arrivals at the next one, in other groups."""
    groups, levels, rounds = range(len(model.sizes)), model.levels, model.rounds
    step = 1 if levels > 1 else 0
    pairs = [(depth, t) for depth in range(levels - step) for t in range(1, rounds + 1)]

    def balance(m: Any, depth: int, t: int) -> Any:
        terms = [(1, m.leaving[g, depth, t]) for g in groups] + [(-1, m.entering[g, depth + step, t]) for g in groups]
        return _linear(terms) == 0

    def elsewhere(m: Any, g: int, depth: int, t: int) -> Any:
        others = [(-1, m.leaving[h, depth, t]) for h in groups if h != g]
        return _linear([(1, m.entering[g, depth + step, t]), *others]) <= 0

    model.balance = pyo.Constraint(pairs, rule=balance)
    model.elsewhere = pyo.Constraint([(g, *pair) for g in groups for pair in pairs], rule=elsewhere)
    if step:
        for g in groups:
            for t in range(1, rounds + 1):
                model.entering[g, 0, t].fix(0)
                model.leaving[g, levels - 1, t].fix(0)


def all_reached(model: Any) -> None:
    """(5): after the last round every rank is informed."""

    def rule(m: Any, g: int) -> Any:
        return _linear([(1, m.informed[g, depth, m.rounds]) for depth in range(m.levels)]) == m.sizes[g]

    model.all_reached = pyo.Constraint(range(len(model.sizes)), rule=rule)
