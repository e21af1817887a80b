"""Least-crossing trees as an integer flow over (group, depth, round): a program file, it solves nothing.

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
    (3) crossing    sum_g o[g,l,t] = sum_g i[g,l+1,t];  nothing enters level 0 or leaves the last one
    (4) no return   i[g,l+1,t] <= sum_{h not g} o[h,l,t]           (a message across goes to *another* group)
    (5) all reached sum_l x[g,l,K] = n[g]

minimising the crossings sum i[g,l,t] (broadcast, reduce) or the depths sum l x[g,l,K] (scatter, gather).

(3) and (4) are Hall's condition for matching departures to arrivals of other groups, so every integer point is a tree.
Broadcast needs no depths: one level stands for all (``levels = 1``, arrivals at the level they left from).
"""

from __future__ import annotations

from typing import Any

from synth.solvers.algebra import pyo
from synth.solvers.rows import Row, Term, add_rows, linear, ones

Cell = tuple[int, int, int]
"""Group, depth, round."""


def build(sizes: list[int], root: int, rounds: int, depth_limit: int | None) -> pyo.ConcreteModel:
    """The model for group ``sizes`` with the root in group ``root``; scatter and gather give a ``depth_limit``."""
    levels = 1 if depth_limit is None else depth_limit + 1
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
    cells = [(g, depth, t) for g in groups for depth in depths for t in times]
    beginning(model, root)
    add_rows(model, "growth", [growth(model, cell) for cell in cells])
    add_rows(model, "one_port", [one_port(model, cell) for cell in cells])
    step = 1 if levels > 1 else 0  # one level stands for all: arrivals are at the level they left from
    if step:
        ends_of_the_levels(model)
    crossings = [(depth, t) for depth in range(levels - step) for t in times]
    add_rows(model, "crossing", [crossing(model, depth, depth + step, t) for depth, t in crossings])
    returns = [(g, depth, t) for g in groups for depth, t in crossings]
    add_rows(model, "no_return", [no_return(model, cell, cell[1] + step) for cell in returns])
    add_rows(model, "all_reached", [all_reached(model, g) for g in groups])
    cost = ones(model.entering.values()) if depth_limit is None else depths_of_all(model)
    model.objective = pyo.Objective(expr=linear(cost))
    return model


def depths_of_all(model: Any) -> list[Term]:
    """The objective of scatter and gather: every rank's block pays for its depth."""
    groups, depths = range(len(model.sizes)), range(1, model.levels)
    return [(depth, model.informed[g, depth, model.rounds]) for g in groups for depth in depths]


def beginning(model: Any, root: int) -> None:
    """(1) in round 0: only the root is informed."""
    for g in range(len(model.sizes)):
        for depth in range(model.levels):
            model.informed[g, depth, 0].fix(1 if (g, depth) == (root, 0) else 0)


def growth(model: Any, cell: Cell) -> Row:
    """(1): informed ranks are those of the round before and the newly reached."""
    g, depth, t = cell
    new = (model.informed[g, depth, t - 1], model.inside[cell], model.entering[cell])
    return [(1, model.informed[cell]), *ones(new, -1)], "==", 0


def one_port(model: Any, cell: Cell) -> Row:
    """(2): every informed rank sends at most one message a round."""
    g, depth, t = cell
    return [(1, model.inside[cell]), (1, model.leaving[cell]), (-1, model.informed[g, depth, t - 1])], "<=", 0


def crossing(model: Any, depth: int, below: int, t: int) -> Row:
    """(3): departures from a level are arrivals at the next one."""
    groups = range(len(model.sizes))
    arrivals = ones((model.entering[g, below, t] for g in groups), -1)
    return [*ones(model.leaving[g, depth, t] for g in groups), *arrivals], "==", 0


def ends_of_the_levels(model: Any) -> None:
    """(3) at the ends: nothing crosses into the first level or out of the last."""
    for g in range(len(model.sizes)):
        for t in range(1, model.rounds + 1):
            model.entering[g, 0, t].fix(0)
            model.leaving[g, model.levels - 1, t].fix(0)


def no_return(model: Any, cell: Cell, below: int) -> Row:
    """(4): what enters a group has left another one."""
    g, depth, t = cell
    others = (model.leaving[h, depth, t] for h in range(len(model.sizes)) if h != g)
    return [(1, model.entering[g, below, t]), *ones(others, -1)], "<=", 0


def all_reached(model: Any, g: int) -> Row:
    """(5): after the last round every rank is informed."""
    informed = (model.informed[g, depth, model.rounds] for depth in range(model.levels))
    return ones(informed), "==", model.sizes[g]
