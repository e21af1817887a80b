"""Least-cost trees where bytes between the nodes of a group count too: the flow of ``model.py`` on two levels.

Units are nodes, which lie in groups. A message goes inside a unit, *near* (to another unit of its group) or *far* (to
another group); a rank's depth is the pair of how often its message has gone near and far.

====================  ==================  ==================================  ========
symbol                code                index set                           unit
====================  ==================  ==================================  ========
x[u,l,t]              ``model.informed``  unit, depth, round 0..K             ranks
z[u,l,t]              ``model.inside``    unit, depth, round 1..K             messages
o[k,u,l,t]            ``model.leaving``   near/far, unit, depth, round 1..K   messages
i[k,u,l,t]            ``model.entering``  near/far, unit, depth, round 1..K   messages
n[u]                  ``units.sizes``     unit                                ranks
c0, c1, c2            ``units``           inside, near, far                   cost of a byte
====================  ==================  ==================================  ========

    (1) growth      x[u,l,t] = x[u,l,t-1] + z[u,l,t] + i[near,u,l,t] + i[far,u,l,t];  only the root's unit in round 0
    (2) one port    z[u,l,t] + o[near,u,l,t] + o[far,u,l,t] <= x[u,l,t-1]
    (3) crossing    near: sum over the units of each group of o[near,u,l,t] = the same of i[near,u,l+near,t];
                    far: sum_u o[far,u,l,t] = sum_u i[far,u,l+far,t]
    (4) no return   i[near,u,l+near,t] <= sum of o[near,w,l,t] over other units w of its group;
                    sum over a group of i[far,u,l+far,t] <= sum of o[far,w,l,t] over units w of other groups
    (5) all reached sum_l x[u,l,K] = n[u]

Broadcast and reduce minimise c0 z + c1 i[near] + c2 i[far] with one depth for all; scatter and gather (c0 = 0) minimise
the sum of (c1, c2) . l over the ranks. (3) and (4) are Hall's condition for matching departures to arrivals, among the
units of a group and among groups, so every integer point is a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from synth.solvers.algebra import pyo
from synth.solvers.rows import Row, Term, add_rows, linear, ones, variables
from synth_models.bine.parts.units import Units

NEAR, FAR = 0, 1
KINDS = (NEAR, FAR)
Depth = tuple[int, int]
Cell = tuple[int, int, int, int]
"""Unit, both parts of the depth, round."""


def build(units: Units, root: int, rounds: int, deepest: int | None) -> Any:
    """The model with the root in unit ``root``; ``deepest`` limits both parts of a depth (scatter, gather), None: the
    depth costs nothing."""
    limit = range(1 if deepest is None else deepest + 1)
    model = pyo.ConcreteModel()
    sizes = units.sizes.tolist()
    model.units, model.rounds, model.costs_depth = units, rounds, deepest is not None
    model.depths = [(near, far) for near in limit for far in limit]
    everyone, times = range(len(sizes)), range(1, rounds + 1)
    kind: Any = {"domain": pyo.NonNegativeIntegers}
    places = [(u, *depth) for u in everyone for depth in model.depths]
    cells = [(*place, t) for place in places for t in times]
    crossed = [(k, *cell) for k in KINDS for cell in cells]
    begun = [(*place, t) for place in places for t in range(rounds + 1)]
    model.informed = variables("u near far t", begun, **kind, bounds=lambda _, u, *__: (0, sizes[u]))
    model.inside = variables("u near far t", cells, **kind, bounds=lambda _, u, *__: (0, sizes[u]))
    model.leaving = variables("kind u near far t", crossed, **kind, bounds=lambda _, __, u, *___: (0, sizes[u]))
    model.entering = variables("kind u near far t", crossed, **kind, bounds=lambda _, __, u, *___: (0, sizes[u]))
    groups = [(units.group == g).nonzero()[0].tolist() for g in range(int(units.group.max()) + 1)]
    add_rows(model, "growth", growth(model, cells, root), "u near far t")
    add_rows(model, "one_port", one_port(model, cells), "u near far t")
    add_rows(model, "crossing", crossing(model, groups), "kind near far t g")
    add_rows(model, "no_return", no_return(model, groups), "kind near far t party")
    add_rows(model, "all_reached", all_reached(model), "u")
    cost = cost_of_depths(model) if model.costs_depth else cost_of_messages(model)
    model.objective = pyo.Objective(expr=linear(cost))
    return model


def below(model: Any, kind: int, depth: Depth) -> Depth | None:
    """The depth of what has left near or far from this depth; None beyond the limit."""
    if not model.costs_depth:
        return depth
    found = (depth[0] + (kind == NEAR), depth[1] + (kind == FAR))
    return found if max(found) <= model.depths[-1][0] else None


def cost_of_messages(model: Any) -> list[Term]:
    """The objective of broadcast and reduce."""
    units = model.units
    crossed = [((units.near, units.far)[index[0]], x) for index, x in model.entering.items()]
    return [*((units.inside, x) for x in model.inside.values() if units.inside), *crossed]


def cost_of_depths(model: Any) -> list[Term]:
    """The objective of scatter and gather."""
    units, last = model.units, model.rounds
    return [
        (units.near * near + units.far * far, model.informed[u, near, far, last])
        for u in range(len(units.group))
        for near, far in model.depths
        if near or far
    ]


def growth(model: Any, cells: Sequence[Cell], root: int) -> dict[Cell, Row]:
    """(1): informed ranks are those of the round before and the newly reached; in round 0 only the root is."""
    rows: dict[Cell, Row] = {}
    for u, near, far, t in cells:
        entering = (model.entering[k, u, near, far, t] for k in KINDS)
        new = (model.informed[u, near, far, t - 1], model.inside[u, near, far, t], *entering)
        rows[u, near, far, t] = [(1, model.informed[u, near, far, t]), *ones(new, -1)], "==", 0
    for u in range(len(model.units.group)):
        for depth in model.depths:
            model.informed[u, depth, 0].fix(int((u, depth) == (root, (0, 0))))
    return rows


def one_port(model: Any, cells: Sequence[Cell]) -> dict[Cell, Row]:
    """(2): every informed rank sends at most one message a round."""
    rows: dict[Cell, Row] = {}
    for u, near, far, t in cells:
        sent = (model.inside[u, near, far, t], *(model.leaving[k, u, near, far, t] for k in KINDS))
        rows[u, near, far, t] = [*ones(sent), (-1, model.informed[u, near, far, t - 1])], "<=", 0
    return rows


def crossing(model: Any, groups: list[list[int]]) -> dict[tuple[int, ...], Row]:
    """(3): departures are arrivals, near within each group; nothing arrives where nothing can have left, nor leaves
    where it would be too deep."""
    rows: dict[tuple[int, ...], Row] = {}
    for kind, depth, to, t in crossings(model):
        for g, part in enumerate(groups if kind == NEAR else [[u for group in groups for u in group]]):
            arrivals = ones((model.entering[kind, u, to, t] for u in part), -1)
            departures = ones(model.leaving[kind, u, depth, t] for u in part)
            rows[kind, *depth, t, g] = [*departures, *arrivals], "==", 0
    if model.costs_depth:
        for kind, u, near, far, t in model.entering:
            if (near, far)[kind] == 0:
                model.entering[kind, u, near, far, t].fix(0)
            if below(model, kind, (near, far)) is None:
                model.leaving[kind, u, near, far, t].fix(0)
    return rows


def no_return(model: Any, groups: list[list[int]]) -> dict[tuple[int, ...], Row]:
    """(4): what enters a unit has left another one of its group, or what enters a group another group."""
    everyone = [u for group in groups for u in group]
    near = [([u], [w for w in group if w != u]) for group in groups for u in group]
    far = [(group, [w for w in everyone if w not in group]) for group in groups]
    rows: dict[tuple[int, ...], Row] = {}
    for kind, depth, to, t in crossings(model):
        for party, (into, out) in enumerate(near if kind == NEAR else far):
            left = ones((model.leaving[kind, w, depth, t] for w in out), -1)
            entered = ones(model.entering[kind, u, to, t] for u in into)
            rows[kind, *depth, t, party] = [*entered, *left], "<=", 0
    return rows


def all_reached(model: Any) -> dict[int, Row]:
    """(5): after the last round every rank is informed."""
    sizes, last = model.units.sizes.tolist(), model.rounds
    return {
        u: (ones(model.informed[u, depth, last] for depth in model.depths), "==", size) for u, size in enumerate(sizes)
    }


def crossings(model: Any) -> list[tuple[int, Depth, Depth, int]]:
    """Near or far, depths to leave from, depths to arrive at, and rounds."""
    return [
        (kind, depth, to, t)
        for kind in KINDS
        for depth in model.depths
        for t in range(1, model.rounds + 1)
        if (to := below(model, kind, depth)) is not None
    ]
