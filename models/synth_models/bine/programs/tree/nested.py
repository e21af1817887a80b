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

from typing import Any

from synth.solvers.algebra import pyo
from synth.solvers.rows import Row, Term, add_rows, linear, ones
from synth_models.bine.parts.units import Units

NEAR, FAR = 0, 1
KINDS = (NEAR, FAR)
Depth = tuple[int, int]


def build(units: Units, root: int, rounds: int, deepest: int | None) -> Any:
    """The model with the root in unit ``root``; ``deepest`` limits both parts of a depth (scatter, gather), None: the
    depth costs nothing."""
    limit = range(1 if deepest is None else deepest + 1)
    model = pyo.ConcreteModel()
    sizes = units.sizes.tolist()
    model.units, model.rounds, model.costs_depth = units, rounds, deepest is not None
    model.depths = [(near, far) for near in limit for far in limit]
    everyone, times = range(len(sizes)), range(1, rounds + 1)
    kind: Any = pyo.NonNegativeIntegers
    whole = dict(domain=kind)
    model.informed = pyo.Var(everyone, model.depths, range(rounds + 1), **whole, bounds=lambda m, u, *_: (0, sizes[u]))
    model.inside = pyo.Var(everyone, model.depths, times, **whole, bounds=lambda m, u, *_: (0, sizes[u]))
    model.leaving = pyo.Var(KINDS, everyone, model.depths, times, **whole, bounds=lambda m, k, u, *_: (0, sizes[u]))
    model.entering = pyo.Var(KINDS, everyone, model.depths, times, **whole, bounds=lambda m, k, u, *_: (0, sizes[u]))
    cells = [(u, depth, t) for u in everyone for depth in model.depths for t in times]
    beginning(model, root)
    ends_of_the_depths(model)
    add_rows(model, "growth", [growth(model, *cell) for cell in cells])
    add_rows(model, "one_port", [one_port(model, *cell) for cell in cells])
    steps = [(k, depth, t) for k in KINDS for depth in model.depths for t in times if below(model, k, depth)]
    groups = [(units.group == g).nonzero()[0].tolist() for g in range(int(units.group.max()) + 1)]
    add_rows(model, "crossing", [row for step in steps for row in crossing(model, groups, *step)])
    add_rows(model, "no_return", [row for step in steps for row in no_return(model, groups, *step)])
    add_rows(model, "all_reached", [all_reached(model, u) for u in everyone])
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


def beginning(model: Any, root: int) -> None:
    """(1) in round 0: only the root is informed."""
    for u in range(len(model.units.group)):
        for depth in model.depths:
            model.informed[u, depth, 0].fix(1 if (u, depth) == (root, (0, 0)) else 0)


def ends_of_the_depths(model: Any) -> None:
    """(3) at the ends: nothing arrives where nothing can have left, nor leaves where it would be too deep."""
    if not model.costs_depth:
        return
    for kind, u, near, far, t in model.entering:
        if (near, far)[kind] == 0:
            model.entering[kind, u, near, far, t].fix(0)
        if below(model, kind, (near, far)) is None:
            model.leaving[kind, u, near, far, t].fix(0)


def growth(model: Any, u: int, depth: Depth, t: int) -> Row:
    """(1): informed ranks are those of the round before and the newly reached."""
    new = (model.informed[u, depth, t - 1], model.inside[u, depth, t], *(model.entering[k, u, depth, t] for k in KINDS))
    return [(1, model.informed[u, depth, t]), *ones(new, -1)], "==", 0


def one_port(model: Any, u: int, depth: Depth, t: int) -> Row:
    """(2): every informed rank sends at most one message a round."""
    sent = (model.inside[u, depth, t], *(model.leaving[k, u, depth, t] for k in KINDS))
    return [*ones(sent), (-1, model.informed[u, depth, t - 1])], "<=", 0


def crossing(model: Any, groups: list[list[int]], kind: int, depth: Depth, t: int) -> list[Row]:
    """(3): departures are arrivals, near within each group."""
    to = below(model, kind, depth)
    rows: list[Row] = []
    for part in groups if kind == NEAR else [[u for group in groups for u in group]]:
        arrivals = ones((model.entering[kind, u, to, t] for u in part), -1)
        rows.append(([*ones(model.leaving[kind, u, depth, t] for u in part), *arrivals], "==", 0))
    return rows


def no_return(model: Any, groups: list[list[int]], kind: int, depth: Depth, t: int) -> list[Row]:
    """(4): what enters a unit has left another one of its group, or what enters a group another group."""
    to = below(model, kind, depth)
    everyone = [u for group in groups for u in group]
    parties = [([u], [w for w in group if w != u]) for group in groups for u in group]
    if kind == FAR:
        parties = [(group, [w for w in everyone if w not in group]) for group in groups]
    rows: list[Row] = []
    for into, out in parties:
        left = ones((model.leaving[kind, w, depth, t] for w in out), -1)
        rows.append(([*ones(model.entering[kind, u, to, t] for u in into), *left], "<=", 0))
    return rows


def all_reached(model: Any, u: int) -> Row:
    """(5): after the last round every rank is informed."""
    return ones(model.informed[u, depth, model.rounds] for depth in model.depths), "==", int(model.units.sizes[u])
