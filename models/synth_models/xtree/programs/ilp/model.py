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

from synth.solvers.algebra import pyo
from synth.solvers.rows import Row, add_rows, ones
from synth_models.xtree.programs.time_expansion import TimeExpansion


def build(expansion: TimeExpansion, integer: bool = True) -> pyo.ConcreteModel:
    """The model for the expansion's horizon: a pure feasibility problem. ``integer=False`` gives its LP relaxation."""
    model = pyo.ConcreteModel()
    kind: dict[str, Any] = {"domain": pyo.Binary} if integer else {"bounds": (0, 1)}
    model.send = pyo.Var(range(len(expansion.send)), **kind)
    model.held = pyo.Var(range(len(expansion.held)), **kind)
    link_capacity(model, expansion)
    conservation(model, expansion)
    causality(model, expansion)
    model.objective = pyo.Objective(expr=0)
    return model


def link_capacity(model: Any, expansion: TimeExpansion) -> None:
    """(1): an arc carries at most as many chunks per timestep as it has links."""
    send, rows = list(model.send.values()), list[Row]()
    for arcs, _, variables, coefficients in expansion.capacity_rows():
        load = [(c, send[i]) for c, i in zip(coefficients, variables, strict=True)]
        rows.append((load, "<=", expansion.capacity[arcs[0]]))
    add_rows(model, "link_capacity", rows)


def conservation(model: Any, expansion: TimeExpansion) -> None:
    """(2): what a node holds after a timestep is what it held before and what arrives; at the end it holds all."""
    send, held, rows = list(model.send.values()), list(model.held.values()), list[Row]()
    for _, arriving, coefficients, before, after in expansion.arrival_rows():
        terms = [(c, send[i]) for c, i in zip(coefficients, arriving, strict=True)]
        if before is not None:
            terms.append((1, held[before]))
        if after is not None:
            terms.append((-1, held[after]))
        rows.append((terms, "==", 1 if after is None else 0))
    add_rows(model, "conservation", rows)


def causality(model: Any, expansion: TimeExpansion) -> None:
    """(3): a chunk leaves a node only in a later timestep than it arrived."""
    send, held = list(model.send.values()), list(model.held.values())
    departures = expansion.departure_rows()
    add_rows(model, "causality", [([(1, send[sent]), (-1, held[before])], "<=", 0) for sent, before in departures])


def order_chunks(model: Any, expansion: TimeExpansion) -> None:
    """Symmetry breaking among the chunks of a node, see :meth:`TimeExpansion.chunk_order_rows`."""
    held, pairs = model.held, expansion.chunk_order_rows()
    add_rows(model, "chunk_order", [([(1, held[later]), (-1, held[earlier])], "<=", 0) for later, earlier in pairs])


def order_rotations(model: Any, expansion: TimeExpansion, group: list[Any]) -> None:
    """Symmetry breaking among rotations and reflections, see :meth:`TimeExpansion.rotation_order_rows`."""
    rows: list[Row] = []
    for mine, theirs in expansion.rotation_order_rows(group):
        rows.append((ones(model.held[i] for i in mine) + ones((model.held[i] for i in theirs), -1), "<=", 0))
    add_rows(model, "rotation_order", rows)
