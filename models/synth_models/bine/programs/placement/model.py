"""Hypercube placement as a quadratic assignment, linearised, for Pyomo and CP-SAT: a program file, it solves nothing.

Ranks of one group are interchangeable, so groups are assigned to positions (ours; no counterpart in De Sensi et al.).

====================  =================  =======================  ======
symbol                code               index set                unit
====================  =================  =======================  ======
a[v,g]                ``at[v, g]``       position, group          0/1
s[e,g]                ``same[e, g]``     edge (v, bit b), group   0/1
w[b]                  ``weights``        dimension                blocks
n[g]                  ``sizes``          group                    ranks
f(n[g])               ``most``           group                    blocks
====================  =================  =======================  ======

    maximise sum w[b] s[e,g]  (the objective minimises the cut: total weight minus that)
    (1) one group       sum_g a[v,g] = 1
    (2) group size      sum_v a[v,g] = n[g]
    (3) both ends       s[(u,v),g] <= a[u,g],  s[(u,v),g] <= a[v,g]
    (4) isoperimetric   sum_e w s[e,g] <= f(n[g])         (strengthening, proven in ``bounds/counting.py``)
    (5) origin          a[0,largest group] = 1            (symmetry: translations of the hypercube)

(5) loses nothing: ``v -> v xor u`` maps edges to edges of the same dimension, so any position can be moved to 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from synth.solvers import cpsat
from synth.solvers.rows import Row, Term, add_rows, linear, ones

# variables by index: a Pyomo variable or a dictionary of CP-SAT's
Variables = Any


def edges(ranks: int) -> list[tuple[int, int, int]]:
    """(u, v, bit) of every edge of the hypercube, u < v."""
    return [(u, u | (1 << b), b) for b in range(ranks.bit_length() - 1) for u in range(ranks) if not u >> b & 1]


def one_group(at: Variables, sizes: list[int]) -> list[Row]:
    """(1): every position is taken by a rank of one group."""
    return [(ones(at[v, g] for g in range(len(sizes))), "==", 1) for v in range(sum(sizes))]


def group_size(at: Variables, sizes: list[int]) -> list[Row]:
    """(2): every group takes as many positions as it has ranks."""
    return [(ones(at[v, g] for v in range(sum(sizes))), "==", size) for g, size in enumerate(sizes)]


def both_ends(at: Variables, same: Variables, sizes: list[int]) -> Iterator[tuple[Any, Any]]:
    """(3): pairs of variables of which the first is at most the second."""
    for e, (u, v, _) in enumerate(edges(sum(sizes))):
        for end in (u, v):
            for g in range(len(sizes)):
                yield same[e, g], at[end, g]


def isoperimetric(same: Variables, sizes: list[int], weights: list[int], most: list[int]) -> list[Row]:
    """(4): no group keeps more weight inside than any set of its size can."""
    return [(kept(same, sizes, weights, g), "<=", most[g]) for g in range(len(sizes))]


def kept(same: Variables, sizes: list[int], weights: list[int], g: int) -> list[Term]:
    """The weight of the edges inside a group."""
    return [(weights[b], same[e, g]) for e, (_, _, b) in enumerate(edges(sum(sizes)))]


def origin(sizes: list[int]) -> tuple[int, int]:
    """(5): the index of the variable that is 1."""
    return 0, int(np.argmax(sizes))


def build(sizes: list[int], weights: list[int], most: list[int]) -> Any:
    """The model for Pyomo; ``most[g]`` is f(n[g])."""
    import pyomo.environ as pyo

    ranks, groups = sum(sizes), range(len(sizes))
    model = pyo.ConcreteModel()
    model.at = pyo.Var(range(ranks), groups, domain=pyo.Binary)
    model.same = pyo.Var(range(len(edges(ranks))), groups, bounds=(0, 1))
    add_rows(model, "one_group", one_group(model.at, sizes))
    add_rows(model, "group_size", group_size(model.at, sizes))
    pairs = both_ends(model.at, model.same, sizes)
    add_rows(model, "both_ends", [([(1, less), (-1, more)], "<=", 0) for less, more in pairs])
    add_rows(model, "isoperimetric", isoperimetric(model.same, sizes, weights, most))
    model.at[origin(sizes)].fix(1)
    inside = [(-weight, same) for g in groups for weight, same in kept(model.same, sizes, weights, g)]
    model.objective = pyo.Objective(expr=sum(weights) * ranks // 2 + linear(inside))
    return model


def build_cpsat(sizes: list[int], weights: list[int], most: list[int], hint: Any) -> tuple[Any, dict[Any, Any]]:
    """The same for CP-SAT with the greedy placement as its hint; (model, variables a[v,g])."""
    from ortools.sat.python import cp_model

    ranks, groups = sum(sizes), range(len(sizes))
    model = cp_model.CpModel()
    at = {(v, g): model.new_bool_var("") for v in range(ranks) for g in groups}
    same = {(e, g): model.new_bool_var("") for g in groups for e in range(len(edges(ranks)))}
    for terms, _, _ in one_group(at, sizes):
        model.add_exactly_one(variable for _, variable in terms)
    for (v, g), variable in at.items():
        model.add_hint(variable, int(hint[v] == g))
    cpsat.add_rows(model, group_size(at, sizes))
    model.add(at[origin(sizes)] == 1)
    for less, more in both_ends(at, same, sizes):
        model.add_implication(less, more)
    cpsat.add_rows(model, isoperimetric(same, sizes, weights, most))
    inside = [weight * variable for g in groups for weight, variable in kept(same, sizes, weights, g)]
    model.minimize(sum(weights) * ranks // 2 - sum(inside))
    return model, at
