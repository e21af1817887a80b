"""The time-expanded link allocation for a fixed horizon (a program file: it builds and solves nothing).

Cui et al. (XTree) state link allocation in words and solve it greedily; this is the exact program, in the usual
time-expanded form (TE-CCL, SCCL). Deviations: parallel links are merged into arcs with a capacity, and variables that
no schedule can use are left out (see ``programs/time_expansion.py``).

====================  ======================  ==============================================  ===============
symbol                code                    index set                                       unit
====================  ======================  ==============================================  ===============
x[k,a,t]              ``send[k, a, t]``       chunk, arc, timestep; windows by distance       0/1
h[k,v,t]              ``held[k, v, t]``       chunk, node, timestep; windows by distance      0/1
c[a]                  ``capacity[a]``         arc (number of parallel links)                  chunks/timestep
T                     ``horizon``             one number                                      timesteps
====================  ======================  ==============================================  ===============

    (1) link capacity      sum_k x[k,a,t] <= c[a]
    (2) conservation       h[k,v,t-1] + sum_{a into v} x[k,a,t] = h[k,v,t],  h[k,v,T] = 1
    (3) causality          x[k,(u,v),t] <= h[k,u,t-1]
    (4) order of chunks    h[k+1,w,t] <= h[k,w,t]                                 (symmetry breaking, switchable)
    (5) order of images    sum_{k of r, t} h[k,w,t] <= sum_{k of g(r), t} h[k,g(w),t]       (the same)

(2) makes every node receive every chunk exactly once, which loses no schedule: a second copy is useless. Each function
returns its rows by index; HiGHS, SCIP and Gurobi get them through :func:`build`, CP-SAT in ``programs/cpsat.py``. Where
the expansion is folded, a sum counts a variable as often as it stands for chunks or arcs of the sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from synth.graph.symmetry import Permutation
from synth.solvers.algebra import pyo
from synth.solvers.rows import Row, add_rows, ones, variables
from synth.time_expanded.rows import summed
from synth.time_expanded.windows import TimedIndex
from synth_models.xtree.programs.time_expansion import TimeExpansion

Variables = Mapping[TimedIndex, Any]


def build(expansion: TimeExpansion, order: bool = False, images: Sequence[Permutation] = ()) -> pyo.ConcreteModel:
    """The model for the expansion's horizon, a pure feasibility problem; with (4) if ``order``, (5) for ``images``."""
    model = pyo.ConcreteModel()
    model.send = variables("k a t", expansion.send, domain=pyo.Binary)
    model.held = variables("k v t", expansion.held, domain=pyo.Binary)
    send = dict(zip(expansion.send, model.send.values(), strict=True))
    held = dict(zip(expansion.held, model.held.values(), strict=True))
    add_rows(model, "link_capacity", link_capacity(expansion, send), "a t")
    add_rows(model, "conservation", conservation(expansion, send, held), "k v t")
    add_rows(model, "causality", causality(expansion, send, held), "k a t")
    if order:
        add_rows(model, "order_of_chunks", order_of_chunks(expansion, held), "k t")
    if images:
        add_rows(model, "order_of_images", order_of_images(expansion, held, images), "r v")
    model.objective = pyo.Objective(expr=0)
    return model


def link_capacity(expansion: TimeExpansion, send: Variables) -> dict[tuple[int, int], Row]:
    """(1): an arc carries at most as many chunks per timestep as it has links. Rows that cannot bind are left out."""
    rows: dict[tuple[int, int], Row] = {}
    for a in expansion.equivalent_arcs:
        capacity, chunks = expansion.capacity[a], expansion.crossing(a)
        for t in expansion.timesteps:
            load = summed(chunks, send, t, expansion.weight)
            if sum(count for count, _ in load) > capacity:
                rows[a, t] = load, "<=", capacity
    return rows


def conservation(expansion: TimeExpansion, send: Variables, held: Variables) -> dict[TimedIndex, Row]:
    """(2): what a node holds after a timestep is what it held before and what arrives; at the end it holds all."""
    rows: dict[TimedIndex, Row] = {}
    for k, v, times in expansion.arriving.pairs():
        arcs = expansion.entering(k, v)
        for t in times:
            terms = summed(arcs, send, t)
            if t > times[0]:
                terms.append((1, held[k, v, t - 1]))
            if t < expansion.horizon:
                terms.append((-1, held[k, v, t]))
            rows[k, v, t] = terms, "==", int(t == expansion.horizon)
    return rows


def causality(expansion: TimeExpansion, send: Variables, held: Variables) -> dict[TimedIndex, Row]:
    """(3): a chunk leaves a node only in a later timestep than it arrived."""
    rows: dict[TimedIndex, Row] = {}
    roots = expansion.roots.tolist()
    for k, a, times in expansion.sending.pairs():
        if (u := expansion.tail[a]) != roots[k]:
            j, w = expansion.stands_for(k, u)
            for t in times:
                rows[k, a, t] = [(1, send[k, a, t]), (-1, held[j, w, t - 1])], "<=", 0
    return rows


def order_of_chunks(expansion: TimeExpansion, held: Variables) -> dict[tuple[int, int], Row]:
    """(4): the chunks of one node are interchangeable, so they may be taken to arrive at the node farthest from it in
    the order of their numbers."""
    rows: dict[tuple[int, int], Row] = {}
    distance, roots = expansion.network.distances, expansion.roots.tolist()
    for k in range(len(roots) - 1):
        if roots[k + 1] == roots[k]:
            w = int(distance[roots[k]].argmax())
            later, sooner = expansion.stands_for(k + 1, w), expansion.stands_for(k, w)
            for t in range(int(distance[roots[k], w]), expansion.horizon):
                rows[k, t] = [(1, held[*later, t]), (-1, held[*sooner, t])], "<=", 0
    return rows


def order_of_images(
    expansion: TimeExpansion, held: Variables, images: Sequence[Permutation]
) -> dict[tuple[int, int], Row]:
    """(5): among the images of a schedule under a group some has node r's chunks arrive at node w, in total, no earlier
    than g(r)'s chunks at g(w) for all g: the one that maximises that total. Renumbering the chunks of a node leaves
    totals alone, so this goes with (4). (r, w) is the first pair at the largest distance."""
    r, w = divmod(int(expansion.network.distances.argmax()), expansion.network.nodes)
    pairs = sorted({(int(g[r]), int(g[w])) for g in images} - {(r, w)})
    mine = _time_held(expansion, held, r, w)
    # empty on both sides: all arrive in the last timestep, every image ties
    return {pair: (ones(mine) + ones(_time_held(expansion, held, *pair), -1), "<=", 0) for pair in pairs if mine}


def _time_held(expansion: TimeExpansion, held: Variables, r: int, w: int) -> list[Any]:
    """All variables that say that ``w`` holds a chunk of ``r``."""
    start = int(expansion.network.distances[r, w])
    own = [expansion.stands_for(k, w) for k in np.flatnonzero(expansion.roots == r).tolist()]
    return [held[*pair, t] for pair in own for t in range(start, expansion.horizon)]
