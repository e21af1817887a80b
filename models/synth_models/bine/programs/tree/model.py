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

from collections.abc import Sequence
from itertools import product
from typing import Any

from synth.solvers.algebra import pyo
from synth.solvers.rows import Row, Term, add_rows, linear, ones, variables

Cell = tuple[int, int, int]
"""Group, depth, round."""


def build(sizes: list[int], root: int, rounds: int, depth_limit: int | None) -> pyo.ConcreteModel:
    """The model for group ``sizes`` with the root in group ``root``; scatter and gather give a ``depth_limit``."""
    levels = 1 if depth_limit is None else depth_limit + 1
    model = pyo.ConcreteModel()
    groups, depths, times = range(len(sizes)), range(levels), range(1, rounds + 1)
    model.sizes, model.levels, model.rounds = sizes, levels, rounds
    kind: Any = {"domain": pyo.NonNegativeIntegers, "bounds": lambda _, g, *__: (0, sizes[g])}
    model.informed = variables("g l t", product(groups, depths, range(rounds + 1)), **kind)
    model.inside = variables("g l t", product(groups, depths, times), **kind)
    model.leaving = variables("g l t", product(groups, depths, times), **kind)
    model.entering = variables("g l t", product(groups, depths, times), **kind)
    cells = list(product(groups, depths, times))
    add_rows(model, "growth", growth(model, cells, root), "g l t")
    add_rows(model, "one_port", one_port(model, cells), "g l t")
    add_rows(model, "crossing", crossing(model), "l t")
    add_rows(model, "no_return", no_return(model), "g l t")
    add_rows(model, "all_reached", all_reached(model), "g")
    cost = ones(model.entering.values()) if depth_limit is None else depths_of_all(model)
    model.objective = pyo.Objective(expr=linear(cost))
    return model


def depths_of_all(model: Any) -> list[Term]:
    """The objective of scatter and gather: every rank's block pays for its depth."""
    groups, depths = range(len(model.sizes)), range(1, model.levels)
    return [(depth, model.informed[g, depth, model.rounds]) for g in groups for depth in depths]


def growth(model: Any, cells: Sequence[Cell], root: int) -> dict[Cell, Row]:
    """(1): informed ranks are those of the round before and the newly reached; in round 0 only the root is."""
    rows: dict[Cell, Row] = {}
    for g, depth, t in cells:
        new = (model.informed[g, depth, t - 1], model.inside[g, depth, t], model.entering[g, depth, t])
        rows[g, depth, t] = [(1, model.informed[g, depth, t]), *ones(new, -1)], "==", 0
    for g, depth in product(range(len(model.sizes)), range(model.levels)):
        model.informed[g, depth, 0].fix(int((g, depth) == (root, 0)))
    return rows


def one_port(model: Any, cells: Sequence[Cell]) -> dict[Cell, Row]:
    """(2): every informed rank sends at most one message a round."""
    rows: dict[Cell, Row] = {}
    for g, depth, t in cells:
        sent = (model.inside[g, depth, t], model.leaving[g, depth, t])
        rows[g, depth, t] = [*ones(sent), (-1, model.informed[g, depth, t - 1])], "<=", 0
    return rows


def crossing(model: Any) -> dict[tuple[int, int], Row]:
    """(3): departures from a level are arrivals at the next one; nothing enters the first or leaves the last."""
    groups, rounds, rows = range(len(model.sizes)), range(1, model.rounds + 1), dict[tuple[int, int], Row]()
    for depth, below, t in crossings(model):
        arrivals = ones((model.entering[g, below, t] for g in groups), -1)
        rows[depth, t] = [*ones(model.leaving[g, depth, t] for g in groups), *arrivals], "==", 0
    if model.levels > 1:
        for g, t in product(groups, rounds):
            model.entering[g, 0, t].fix(0)
            model.leaving[g, model.levels - 1, t].fix(0)
    return rows


def no_return(model: Any) -> dict[Cell, Row]:
    """(4): what enters a group has left another one."""
    groups, rows = range(len(model.sizes)), dict[Cell, Row]()
    for g in groups:
        for depth, below, t in crossings(model):
            others = (model.leaving[h, depth, t] for h in groups if h != g)
            rows[g, depth, t] = [(1, model.entering[g, below, t]), *ones(others, -1)], "<=", 0
    return rows


def all_reached(model: Any) -> dict[int, Row]:
    """(5): after the last round every rank is informed."""
    depths = range(model.levels)
    return {
        g: (ones(model.informed[g, depth, model.rounds] for depth in depths), "==", size)
        for g, size in enumerate(model.sizes)
    }


def crossings(model: Any) -> list[Cell]:
    """Depths to leave from, depths to arrive at, and rounds. One level stands for all: arrivals are where they left."""
    step = int(model.levels > 1)
    return [(depth, depth + step, t) for depth in range(model.levels - step) for t in range(1, model.rounds + 1)]
