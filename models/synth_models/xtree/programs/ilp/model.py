"""The time-expanded link allocation as a Pyomo model (a program file: it builds and solves nothing).

Cui et al. (XTree) state link allocation in words and solve it greedily; this is the exact program for a fixed horizon,
in the usual time-expanded form (TE-CCL, SCCL). Deviations: parallel links are merged into arcs with a capacity, and
variables that no schedule can use are left out (see ``programs/time_expansion.py``).

====================  =================  ==============================================  =====
symbol                code               index set                                       unit
====================  =================  ==============================================  =====
x[k,a,t]              ``model.send``     chunk, arc, timestep; windows by distance       0/1
h[k,v,t]              ``model.held``     chunk, node, timestep; windows by distance      0/1
c[a]                  ``capacity``       arc (number of parallel links)                  chunks/timestep
T                     ``horizon``        one number                                      timesteps
====================  =================  ==============================================  =====

    (1) link capacity   sum_k x[k,a,t] <= c[a]
    (2) conservation    h[k,v,t-1] + sum_{a into v} x[k,a,t] = h[k,v,t],  h[k,v,T] = 1
    (3) causality       x[k,(u,v),t] <= h[k,u,t-1]

(2) makes every node receive every chunk exactly once, which loses no schedule: a second copy is useless.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression, MonomialTermExpression
from pyomo.core.expr.relational_expr import EqualityExpression, InequalityExpression

from synth_models.xtree.programs.time_expansion import TimeExpansion


def build(expansion: TimeExpansion, integer: bool = True) -> pyo.ConcreteModel:
    """The model for the expansion's horizon: a pure feasibility problem. ``integer=False`` gives its LP relaxation."""
    model = pyo.ConcreteModel()
    kind: dict[str, Any] = {"domain": pyo.Binary} if integer else {"bounds": (0, 1)}
    model.send = pyo.Var(range(len(expansion.send)), **kind)
    model.held = pyo.Var(range(len(expansion.held)), **kind)
    send, held = list(model.send.values()), list(model.held.values())
    link_capacity(model, expansion, send)
    conservation(model, expansion, send, held)
    causality(model, expansion, send, held)
    model.objective = pyo.Objective(expr=0)
    return model


def linear(coefficients: list[int], variables: list[Any]) -> Any:
    """A linear expression made directly; sums of products would be walked term by term."""
    return LinearExpression(
        [v if c == 1 else MonomialTermExpression((c, v)) for c, v in zip(coefficients, variables, strict=True)]
    )


def link_capacity(model: Any, expansion: TimeExpansion, send: list[Any]) -> None:
    """(1): an arc carries at most as many chunks per timestep as it has links."""
    rows = expansion.capacity_rows()

    def at_most_its_links(_: Any, i: int) -> Any:
        arcs, _, variables, coefficients = rows[i]
        load = linear(coefficients, [send[j] for j in variables])
        return InequalityExpression((load, expansion.capacity[arcs[0]]), strict=False)

    model.link_capacity = pyo.Constraint(range(len(rows)), rule=at_most_its_links)


def conservation(model: Any, expansion: TimeExpansion, send: list[Any], held: list[Any]) -> None:
    """(2): what a node holds after a timestep is what it held before and what arrives; at the end it holds all."""
    rows = expansion.arrival_rows()

    def before_and_arrivals(_: Any, i: int) -> Any:
        _, arriving, coefficients, before, after = rows[i]
        variables, signs, right = [send[j] for j in arriving], list(coefficients), 1
        if before is not None:
            variables.append(held[before])
            signs.append(1)
        if after is not None:
            variables.append(held[after])
            signs.append(-1)
            right = 0
        return EqualityExpression((linear(signs, variables), right))

    model.conservation = pyo.Constraint(range(len(rows)), rule=before_and_arrivals)


def causality(model: Any, expansion: TimeExpansion, send: list[Any], held: list[Any]) -> None:
    """(3): a chunk leaves a node only in a later timestep than it arrived."""
    rows = expansion.departure_rows()

    def held_before_sent(_: Any, i: int) -> Any:
        sent, before = rows[i]
        return InequalityExpression((send[sent], held[before]), strict=False)

    model.causality = pyo.Constraint(range(len(rows)), rule=held_before_sent)


def order_chunks(model: Any, expansion: TimeExpansion) -> None:
    """Symmetry breaking among the chunks of a node, see :meth:`TimeExpansion.chunk_order_rows`."""
    held = model.held
    rows = [(None, linear([1, -1], [held[later], held[earlier]]), 0) for later, earlier in expansion.chunk_order_rows()]
    model.chunk_order = pyo.Constraint(range(len(rows)), rule=lambda _, i: rows[i])


def order_rotations(model: Any, expansion: TimeExpansion, group: list[Any]) -> None:
    """Symmetry breaking among rotations and reflections, see :meth:`TimeExpansion.rotation_order_rows`."""
    rows = [
        (None, linear([1] * len(mine) + [-1] * len(theirs), [model.held[i] for i in (*mine, *theirs)]), 0)
        for mine, theirs in expansion.rotation_order_rows(group)
    ]
    model.rotation_order = pyo.Constraint(range(len(rows)), rule=lambda _, i: rows[i])
