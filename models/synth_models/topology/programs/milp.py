"""Method ``milp`` (program, ours): circuits and flow at once, for switches and at most :data:`MOST_NODES` nodes.

The load divides what a node sends to each other node by what it can send at a time: so the rate z of the maximum
concurrent flow is maximised, and the largest load is 1 / z. For the objective ``hops`` the flows are added up instead,
z is 1, and an arc carries what it likes if it is there.

=============  ====================  =============================================  =====
symbol         code                  index set                                      unit
=============  ====================  =============================================  =====
x[w,i,j]       ``model.chosen``      switch, port that sends, port that receives    0, 1
f[s,a]         ``model.flow``        source, arc                                    units
z              ``model.rate``        one number                                     units
c[a]           ``many``              arc of fixed links                             links
r              ``rate``              one number: of a circuit over a fixed link's    links
n              ``instance.nodes``    one number                                     nodes
=============  ====================  =============================================  =====

    (1) permutation   sum_j x[w,i,j] = 1,  sum_i x[w,i,j] = 1
    (2) delivery      sum_{a into v} f[s,a] - sum_{a out of v} f[s,a] = z   for every v but s
    (3) links         sum_s f[s,a] <= c[a]                                  for arcs of fixed links
    (4) circuits      sum_s f[s,a] <= r x[w,i,j]                            for the arcs of a circuit

For hops (3) falls away and (4) reads ``f[s,a] <= (n - 1) x[w,i,j]`` for each source. With two cubes the exchange of
their numbers is a symmetry of every topology. So only nodes of the first cube are sources, and an arc's row adds its
image's flows. z is at most the inverse of the bound by levels and cuts.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.errors import SizeLimitError, UnsupportedError
from synth.method import Outcome, Termination
from synth.options import RunOptions
from synth.records.optimality import meets
from synth.solvers import mathprog
from synth.solvers.algebra import pyo
from synth.solvers.rows import Row, add_rows, linear, ones, variables
from synth_models.topology.bounds.anywhere import strongest
from synth_models.topology.instance import Cubes, TopologyInstance
from synth_models.topology.parts.routing import routed
from synth_models.topology.solution import Topology

MOST_NODES = 16
FIXED = -1
"""Instead of the number of a switch: the arc of a fixed link."""

Arc = tuple[int, int, int, int, int]
"""Tail, head, switch, sending port, receiving port; of a fixed link :data:`FIXED` and 0, 0."""


def solve(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """Method ``milp``; the routing of the circuits that it finds is made once more, in whole
    numbers. Where that ends above the solver's bound by more than the gap asked for, the run is not called optimal."""
    if instance.degree is not None:
        raise UnsupportedError("milp takes circuit switches, not degrees")
    if instance.objective == "mix":
        raise UnsupportedError("milp knows loads and hops, no mix")
    if instance.nodes > MOST_NODES:
        raise SizeLimitError(f"{instance.nodes} nodes: milp takes {MOST_NODES} at most")
    least, words, certificate = strongest(instance)
    model = build(instance, float(least))
    result = mathprog.solve(model, options, bounded=True)
    bound = result.bound
    if bound is not None and instance.objective == "load":
        bound = -1 / bound if bound < 0 else None
    proof: str | None = f"branch and bound, {options.solver or 'highs'}"
    certified = bound is None or bound <= float(least) or meets(float(least), bound)
    if certified:
        bound, proof = float(least), words
    found = routed(instance, circuits_of(model), options) if result.has_point else None
    kept = dict(certificate) if certified else None
    return Outcome(_ended(result.termination, found, bound, options), found and found[1], bound, proof, kept)


def _ended(
    solver: str, found: tuple[Fraction, Topology] | None, bound: float | None, options: RunOptions
) -> Termination:
    """How the run ended where the solver ended so, with this load (of hops 0: they follow from the circuits)."""
    if found is None:
        return "infeasible" if solver == "infeasible" else "time_limit"
    near = bound is None or float(found[0]) <= bound * (1 + options.relative_gap)
    return "optimal" if solver == "optimal" and near else "time_limit"


def build(instance: TopologyInstance, least: float) -> pyo.ConcreteModel:
    """The model; ``least`` bounds the load or the hops from below."""
    model, n = pyo.ConcreteModel(), instance.nodes
    load = instance.objective == "load"
    ports = [
        (w, i, j)
        for w, switch in enumerate(instance.switches)
        for i in range(len(switch.sends))
        for j in range(len(switch.receives))
    ]
    arcs = list(arcs_of(instance))
    folded = isinstance(instance.plant, Cubes) and instance.plant.cubes == 2
    model.arcs, model.nodes = arcs, n
    model.sources = range(n // 2 if folded else n)
    model.image = exchanged(instance, arcs) if folded else None
    model.chosen = variables("w i j", ports, domain=pyo.Binary)
    model.flow = variables(
        "s a", ((s, a) for s in model.sources for a in range(len(arcs))), bounds=(0, None if load else n)
    )
    model.rate = pyo.Var(bounds=(0, 1 / least) if load else (1, 1))
    add_rows(model, "permutation", permutation(model, instance), "w side port")
    add_rows(model, "delivery", delivery(model), "s v")
    if load:
        add_rows(model, "links", links(model, instance), "a")
    add_rows(
        model, "circuits", circuits(model, load, instance.weights[1] / instance.weights[0]), "a" if load else "s a"
    )
    cost = [(-1, model.rate)] if load else ones(model.flow.values(), 2 if folded else 1)
    model.objective = pyo.Objective(expr=linear(cost))
    return model


def arcs_of(instance: TopologyInstance) -> Iterator[Arc]:
    """The arcs of all fixed links, parallel ones once, and of all circuits that may be."""
    ways = (1,) if instance.one_way else (1, -1)
    for u, v in sorted({tuple(link[::way]) for link in instance.fixed.tolist() for way in ways}):
        yield u, v, FIXED, 0, 0
    for w, switch in enumerate(instance.switches):
        for i, u in enumerate(switch.sends.tolist()):
            for j, v in enumerate(switch.receives.tolist()):
                for tail, head in ((u, v), (v, u))[: len(ways)]:
                    yield tail, head, w, i, j


def exchanged(instance: TopologyInstance, arcs: list[Arc]) -> list[int]:
    """The arc to which each goes when the two cubes change their numbers."""
    half, place = instance.nodes // 2, {arc: a for a, arc in enumerate(arcs)}
    n = instance.nodes
    return [
        place[(u + half) % n, (v + half) % n, w, 1 - i if w >= 0 else 0, 1 - j if w >= 0 else 0]
        for u, v, w, i, j in arcs
    ]


def permutation(model: Any, instance: TopologyInstance) -> dict[tuple[int, int, int], Row]:
    """(1): every port of a switch has one circuit."""
    rows: dict[tuple[int, int, int], Row] = {}
    for w, switch in enumerate(instance.switches):
        sends, receives = range(len(switch.sends)), range(len(switch.receives))
        rows |= {(w, 0, i): (ones(model.chosen[w, i, j] for j in receives), "==", 1) for i in sends}
        rows |= {(w, 1, j): (ones(model.chosen[w, i, j] for i in sends), "==", 1) for j in receives}
    return rows


def delivery(model: Any) -> dict[tuple[int, int], Row]:
    """(2): every node keeps z of what a source sends."""
    into: list[list[int]] = [[] for _ in range(model.nodes)]
    out: list[list[int]] = [[] for _ in range(model.nodes)]
    for a, (tail, head, *_) in enumerate(model.arcs):
        into[head].append(a)
        out[tail].append(a)
    return {
        (s, v): (
            [*ones(model.flow[s, a] for a in into[v]), *ones((model.flow[s, a] for a in out[v]), -1), (-1, model.rate)],
            "==",
            0,
        )
        for s in model.sources
        for v in range(model.nodes)
        if v != s
    }


def links(model: Any, instance: TopologyInstance) -> dict[int, Row]:
    """(3): an arc of fixed links carries no more than these."""
    many: dict[tuple[int, int], int] = {}
    for u, v in instance.fixed.tolist():
        for ends in ((u, v), (v, u))[: 1 if instance.one_way else 2]:
            many[ends] = many.get(ends, 0) + 1
    return {
        a: (carried(model, a), "<=", many[tail, head])
        for a, (tail, head, w, _, _) in enumerate(model.arcs)
        if w == FIXED
    }


def circuits(model: Any, load: bool, rate: float) -> dict[Any, Row]:
    """(4): the arcs of a circuit carry something only if it is chosen."""
    rows: dict[Any, Row] = {}
    for a, (_, _, w, i, j) in enumerate(model.arcs):
        if w != FIXED and load:
            rows[a] = [*carried(model, a), (-rate, model.chosen[w, i, j])], "<=", 0
        elif w != FIXED:
            for s in model.sources:
                rows[s, a] = [(1, model.flow[s, a]), (1 - model.nodes, model.chosen[w, i, j])], "<=", 0
    return rows


def carried(model: Any, a: int) -> list[tuple[float, Any]]:
    """What all sources send over an arc: those that are variables, and the others' as their images."""
    images = [a] if model.image is None else [a, model.image[a]]
    return ones(model.flow[s, b] for b in images for s in model.sources)


def circuits_of(model: Any) -> IntArray:
    """The circuits of the solver's point, shape (circuits, 3)."""
    return np.array([key for key, x in model.chosen.items() if x.value > 0.5], dtype=np.int64).reshape(-1, 3)
