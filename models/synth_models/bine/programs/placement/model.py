"""Hypercube placement as a quadratic assignment, linearised: a program file, it builds and solves nothing.

Ranks of one group are interchangeable, so groups are assigned to positions (ours; no counterpart in De Sensi et al.).

====================  =================  =======================  ======
symbol                code               index set                unit
====================  =================  =======================  ======
a[v,g]                ``model.at``       position, group          0/1
s[e,g]                ``model.same``     edge (v, bit b), group   0/1
w[b]                  ``weights``        dimension                blocks
n[g]                  ``sizes``          group                    ranks
====================  =================  =======================  ======

    maximise sum w[b] s[e,g]  (the objective minimises the cut: total weight minus that)
    (1) one group       sum_g a[v,g] = 1
    (2) group size      sum_v a[v,g] = n[g]
    (3) both ends       s[(u,v),g] <= a[u,g],  s[(u,v),g] <= a[v,g]
    (4) isoperimetric   sum_e w s[e,g] <= f(n[g])         (strengthening, proven in :mod:`bound`)
    (5) origin          a[0,largest group] = 1            (symmetry: translations of the hypercube)

(5) loses nothing: ``v -> v xor u`` maps edges to edges of the same dimension, so any position can be moved to 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo


def edges(ranks: int) -> list[tuple[int, int, int]]:
    """(u, v, bit) of every edge of the hypercube, u < v."""
    return [(u, u | (1 << b), b) for b in range(ranks.bit_length() - 1) for u in range(ranks) if not u >> b & 1]


def build(sizes: list[int], weights: list[int], most: list[int]) -> pyo.ConcreteModel:
    """The model; ``most[g]`` is f(n[g])."""
    ranks, groups = sum(sizes), range(len(sizes))
    model = pyo.ConcreteModel()
    pairs = edges(ranks)
    model.at = pyo.Var(range(ranks), groups, domain=pyo.Binary)
    model.same = pyo.Var(range(len(pairs)), groups, bounds=(0, 1))
    at, same = model.at, model.same
    model.one_group = pyo.Constraint(range(ranks), rule=lambda _, v: sum(at[v, g] for g in groups) == 1)
    model.group_size = pyo.Constraint(groups, rule=lambda _, g: sum(at[v, g] for v in range(ranks)) == sizes[g])
    ends = [(e, pairs[e][i], g) for e in range(len(pairs)) for i in (0, 1) for g in groups]
    model.both_ends = pyo.Constraint(
        range(len(ends)), rule=lambda _, i: same[ends[i][0], ends[i][2]] <= at[ends[i][1:]]
    )
    model.isoperimetric = pyo.Constraint(
        groups, rule=lambda _, g: sum(weights[b] * same[e, g] for e, (_, _, b) in enumerate(pairs)) <= most[g]
    )
    model.at[0, int(np.argmax(sizes))].fix(1)
    total = sum(weights) * ranks // 2
    model.objective = pyo.Objective(
        expr=total - sum(weights[b] * same[e, g] for e, (_, _, b) in enumerate(pairs) for g in groups)
    )
    return model


def build_cpsat(sizes: list[int], weights: list[int], most: list[int], hint: Any) -> tuple[Any, Any]:
    """The same as a CP-SAT model with the greedy placement as its hint; (model, variables a[v][g])."""
    from ortools.sat.python import cp_model

    ranks, groups = sum(sizes), range(len(sizes))
    model = cp_model.CpModel()
    at = [[model.new_bool_var("") for _ in groups] for _ in range(ranks)]
    for v in range(ranks):
        model.add_exactly_one(at[v])
        for g in groups:
            model.add_hint(at[v][g], int(hint[v] == g))
    for g in groups:
        model.add(sum(at[v][g] for v in range(ranks)) == sizes[g])
    model.add(at[0][int(np.argmax(sizes))] == 1)
    kept = []
    for g in groups:
        terms = []
        for u, v, b in edges(ranks):
            both = model.new_bool_var("")
            model.add_implication(both, at[u][g])
            model.add_implication(both, at[v][g])
            terms.append(weights[b] * both)
        model.add(sum(terms) <= most[g])
        kept += terms
    model.minimize(sum(weights) * ranks // 2 - sum(kept))
    return model, at
