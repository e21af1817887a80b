"""Program ``ilp``: the equations of ``programs/equations.py`` through Pyomo for HiGHS, Gurobi and SCIP.

Symbols, their sources and deviations stand there; the two ways to solve (``decompose``) are those of ``cpsat``.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers import mathprog
from synth.solvers.algebra import pyo
from synth.solvers.catalogue import require
from synth.solvers.rows import add_rows, linear, variables
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_problem import LeafProblem, routes_by_link
from synth_models.mlfm.programs import equations
from synth_models.mlfm.programs.decomposition import Decided, Flows, fewest_phases, refuted, wish_options
from synth_models.mlfm.programs.whole import whole_phases

DETOUR_SECONDS = 10.0  # for having few two-spine flows, which is a wish, not a need


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``ilp``. Infeasible when the failures cut off a pair, or fewer phases than possible are asked for."""
    title = require(options.solver or "highs").title
    if options.method.get("decompose", True):
        return fewest_phases(instance, options, count_flows, decide_whole, title)
    return whole_phases(instance, options, decide_whole, title)


def build_flows(problem: LeafProblem, phases: int) -> Any:
    """The model of flows per route for ``phases``. Calls no solver."""
    with mathprog.building():
        model = pyo.ConcreteModel()
        most = problem.demand[problem.pair].tolist()
        whole = dict(domain=pyo.NonNegativeIntegers)
        model.flow = variables("r", range(problem.routes), **whole, bounds=lambda _, r: (0, most[r]))
        add_rows(model, "demand", equations.demand(problem, model.flow), "x y")
        add_rows(model, "link_capacity", equations.link_capacity(problem, model.flow, phases), "e")
        model.wish = pyo.Objective(expr=0)
        if not problem.one_spine:
            room_for_packing(model, problem, phases)
    return model


def room_for_packing(model: Any, problem: LeafProblem, phases: int) -> None:
    """Equation (3) and its objective; strengthens nothing, the model may be solved without."""
    model.over = variables("e", routes_by_link(problem), bounds=(0, phases))
    add_rows(model, "last_tenth", equations.last_tenth(problem, model.flow, model.over, phases), "e")
    model.wish.set_value(linear(equations.wish(problem, model.flow, model.over)))


def count_flows(problem: LeafProblem, phases: int, options: RunOptions) -> Flows:
    """Whole flows per route for ``phases`` with few two-spine ones, or the proof that there are none.

    Raises ``RuntimeError`` when the solver fails."""
    if not problem.routes:
        return Flows("found", np.zeros(0, dtype=np.int64))
    model = build_flows(problem, phases)
    result = mathprog.solve(model, wish_options(problem, options, DETOUR_SECONDS), bounded=True)
    if not result.has_point and result.termination == "limit" and not problem.one_spine:
        model.wish.set_value(0)
        result = mathprog.solve(model, options, bounded=True)
    if result.has_point:
        return Flows("found", np.array([round(v.value) for v in model.flow.values()], dtype=np.int64))
    return Flows("impossible" if refuted(result) else "limit")


def build_whole(problem: LeafProblem, phases: int) -> Any:
    """The model of all phases at once. Calls no solver."""
    with mathprog.building():
        model = pyo.ConcreteModel()
        times, most = range(phases), problem.size.tolist()
        model.use = variables("p r", product(times, range(problem.routes)), domain=pyo.Binary)
        whole = dict(domain=pyo.NonNegativeIntegers)
        places = product(times, range(problem.leaves))
        model.stay = variables("p x", places, **whole, bounds=lambda _, p, q: (0, most[q]))
        use, stay = dict(model.use.items()), dict(model.stay.items())
        add_rows(model, "every_pair", equations.every_pair(problem, use, phases), "x y")
        add_rows(model, "own_leaf", equations.own_leaf(problem, stay, phases), "x")
        add_rows(model, "no_congestion", equations.no_congestion(problem, use, phases), "p e")
        add_rows(model, "senders", equations.senders(problem, use, stay, phases), "p x")
        add_rows(model, "receivers", equations.receivers(problem, use, stay, phases), "p x")
        model.nothing = pyo.Objective(expr=0)
    return model


def decide_whole(problem: LeafProblem, phases: int, options: RunOptions) -> Decided:
    """``found`` with phases between leaves, ``impossible`` (proven) or ``limit``. Raises ``RuntimeError``."""
    model = build_whole(problem, phases)
    result = mathprog.solve(model, options, bounded=True)
    if result.has_point:
        used = np.array([round(v.value) for v in model.use.values()], dtype=np.int64)
        inside = np.array([round(v.value) for v in model.stay.values()], dtype=np.int64)
        return "found", (used.reshape(phases, problem.routes), inside.reshape(phases, problem.leaves))
    return ("impossible" if refuted(result) else "limit"), None
