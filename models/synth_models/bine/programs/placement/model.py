"""Hypercube placement as a quadratic assignment, linearised, for Pyomo and CP-SAT: a program file, it solves nothing.

Ranks of one unit are interchangeable, so units are assigned to positions (ours; no counterpart in De Sensi et al.).
Units are groups, or nodes where bytes between nodes of a group count (:mod:`synth_models.bine.parts.units`).

====================  =================  =======================  ======
symbol                code               index set                unit
====================  =================  =======================  ======
a[v,g]                ``at[v, g]``       position, unit           0/1
s[e,g]                ``same[e, g]``     edge (v, bit b), unit    0/1
S[e,G]                ``together``       edge (v, bit b), group   0/1
w[b]                  ``weights``        dimension                blocks
n[g]                  ``units.sizes``    unit                     ranks
f(n)                  ``held``           number of ranks          blocks
c0, c1, c2            ``units``          inside, near, far        cost of a byte
====================  =================  =======================  ======

    minimise sum w[b] (c2 - (c2 - c1) S[e] - (c1 - c0) s[e])  with s[e], S[e] summed over units, groups
    (1) one unit        sum_g a[v,g] = 1
    (2) unit size       sum_v a[v,g] = n[g]
    (3) both ends       s[(u,v),g] <= a[u,g],  s[(u,v),g] <= a[v,g],  S[(u,v),G] <= sum of a[u,g], a[v,g] over g in G
    (4) isoperimetric   sum_e w s[e,g] <= f(n[g]), same for S (strengthening, proven in ``bounds/global_bytes.py``)
    (5) origin          a[0,largest unit] = 1             (symmetry: translations of the hypercube)

(5) loses nothing: ``v -> v xor u`` maps edges to edges of the same dimension, so any position can be moved to 0.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from synth.solvers import cpsat
from synth.solvers.names import name_variables
from synth.solvers.rows import Row, Term, add_rows, linear, ones, variables
from synth_models.bine.parts.units import Units

# variables by index: a Pyomo variable or a dictionary of CP-SAT's
Variables = Any
Parts = list[list[int]]


def edges(ranks: int) -> list[tuple[int, int, int]]:
    """(u, v, bit) of every edge of the hypercube, u < v."""
    return [(u, u | (1 << b), b) for b in range(ranks.bit_length() - 1) for u in range(ranks) if not u >> b & 1]


def one_unit(at: Variables, sizes: list[int]) -> dict[int, Row]:
    """(1): every position is taken by a rank of one unit."""
    return {v: (ones(at[v, g] for g in range(len(sizes))), "==", 1) for v in range(sum(sizes))}


def unit_size(at: Variables, sizes: list[int]) -> dict[int, Row]:
    """(2): every unit takes as many positions as it has ranks."""
    return {g: (ones(at[v, g] for v in range(sum(sizes))), "==", size) for g, size in enumerate(sizes)}


def both_ends(at: Variables, same: Variables, parts: Parts, ranks: int) -> dict[tuple[int, int, int], Row]:
    """(3): an edge lies in a part only if each of its ends is taken by a unit of the part."""
    rows: dict[tuple[int, int, int], Row] = {}
    for e, (u, v, _) in enumerate(edges(ranks)):
        for end in (u, v):
            for part, inside in enumerate(parts):
                rows[e, end, part] = [(1, same[e, part]), *ones((at[end, g] for g in inside), -1)], "<=", 0
    return rows


def isoperimetric(same: Variables, parts: Parts, sizes: list[int], weights: list[int], held: Any) -> dict[int, Row]:
    """(4): no part keeps more weight inside than any set of its size can."""
    most = [int(held[sum(sizes[g] for g in inside)]) for inside in parts]
    return {part: (kept(same, sum(sizes), weights, part), "<=", most[part]) for part in range(len(parts))}


def kept(same: Variables, ranks: int, weights: list[int], part: int) -> list[Term]:
    """The weight of the edges inside a part."""
    return [(weights[b], same[e, part]) for e, (_, _, b) in enumerate(edges(ranks))]


def origin(sizes: list[int]) -> tuple[int, int]:
    """(5): the index of the variable that is 1."""
    return 0, int(np.argmax(sizes))


def levels(units: Units) -> list[tuple[int, Parts]]:
    """What an edge inside a part saves, and the parts as lists of units: the units alone, and groups of several."""
    alone = [[g] for g in range(len(units.group))]
    if not units.nested:
        return [(units.far - units.inside, alone)]
    groups = [np.flatnonzero(units.group == g).tolist() for g in range(int(units.group.max()) + 1)]
    return [(units.near - units.inside, alone), (units.far - units.near, groups)]


def farthest(units: Units, weights: list[int]) -> int:
    """The objective where every edge lies between groups."""
    return units.far * sum(weights) * len(units.of_rank) // 2


def build(units: Units, weights: list[int], held: Any) -> Any:
    """The model for Pyomo; ``held[n]`` is f(n)."""
    from synth.solvers.algebra import pyo

    sizes, ranks = units.sizes.tolist(), len(units.of_rank)
    model = pyo.ConcreteModel()
    model.at = variables("v g", product(range(ranks), range(len(sizes))), domain=pyo.Binary)
    add_rows(model, "one_unit", one_unit(model.at, sizes), "v")
    add_rows(model, "unit_size", unit_size(model.at, sizes), "g")
    saved: list[Term] = []
    for name, (saves, parts) in zip(("same", "together"), levels(units), strict=False):
        same = variables("e g", product(range(len(edges(ranks))), range(len(parts))), bounds=(0, 1))
        model.add_component(name, same)
        add_rows(model, f"both_ends_{name}", both_ends(model.at, same, parts, ranks), "e v g")
        add_rows(model, f"isoperimetric_{name}", isoperimetric(same, parts, sizes, weights, held), "g")
        inside = [kept(same, ranks, weights, part) for part in range(len(parts))]
        saved += [(-saves * weight, variable) for terms in inside for weight, variable in terms]
    model.at[origin(sizes)].fix(1)
    model.objective = pyo.Objective(expr=farthest(units, weights) + linear(saved))
    return model


def build_cpsat(units: Units, weights: list[int], held: Any, hint: Any) -> tuple[Any, dict[Any, Any]]:
    """The same for CP-SAT with the greedy placement as its hint; (model, variables a[v,g])."""
    from ortools.sat.python import cp_model

    sizes, ranks = units.sizes.tolist(), len(units.of_rank)
    model = cp_model.CpModel()
    at = {(v, g): model.new_bool_var("") for v in range(ranks) for g in range(len(sizes))}
    name_variables(model, "at", "v g", at)
    for terms, _, _ in one_unit(at, sizes).values():
        model.add_exactly_one(variable for _, variable in terms)
    for (v, g), variable in at.items():
        model.add_hint(variable, int(hint[v] == g))
    cpsat.add_rows(model, unit_size(at, sizes).values())
    model.add(at[origin(sizes)] == 1)
    saved = []
    for name, (saves, parts) in zip(("same", "together"), levels(units), strict=False):
        same = {(e, part): model.new_bool_var("") for part in range(len(parts)) for e in range(len(edges(ranks)))}
        name_variables(model, name, "e g", same)
        for ((_, less), *more), _, _ in both_ends(at, same, parts, ranks).values():
            model.add_bool_or([less.negated(), *(variable for _, variable in more)])
        cpsat.add_rows(model, isoperimetric(same, parts, sizes, weights, held).values())
        saved += [saves * w * x for part in range(len(parts)) for w, x in kept(same, ranks, weights, part)]
    model.minimize(farthest(units, weights) - sum(saved))
    return model, at
