"""Program ``cpsat``: phases, destinations and routes with every link free of congestion, in the fewest phases.

The equations, their symbols and where they come from stand in ``programs/equations.py``; this is their form for CP-SAT
and the method. ``decompose=on`` counts flows per route and then spreads them (``programs/decomposition.py``), off: one
model of all phases (``programs/whole.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers import cpsat
from synth.solvers.names import name_variables
from synth.solvers.rows import Row
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_problem import LeafProblem, routes_by_link
from synth_models.mlfm.programs import equations
from synth_models.mlfm.programs.decomposition import Decided, Flows, fewest_phases, refuted, wish_options
from synth_models.mlfm.programs.whole import whole_phases

DETOUR_SECONDS = 5.0  # for having few two-spine flows, which is a wish, not a need


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``cpsat``. Infeasible when the failures cut off a pair, or fewer phases than possible are asked for."""
    if options.method.get("decompose", True):
        return fewest_phases(instance, options, count_flows, decide_whole, "CP-SAT")
    return whole_phases(instance, options, decide_whole, "CP-SAT")


def build_flows(problem: LeafProblem, phases: int) -> tuple[Any, dict[int, Any]]:
    """The model of flows per route for ``phases``, and its variables ``flow`` by route. Calls no solver."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    most = np.minimum(problem.demand[problem.pair], phases).tolist()
    flow = {r: model.new_int_var(0, most[r], "") for r in range(problem.routes)}
    name_variables(model, "flow", "r", flow)
    cpsat.add_rows(model, equations.demand(problem, flow).values())
    cpsat.add_rows(model, equations.link_capacity(problem, flow, phases).values())
    if not problem.one_spine:
        room_for_packing(model, problem, flow, phases)
    return model, flow


def room_for_packing(model: Any, problem: LeafProblem, flow: dict[int, Any], phases: int) -> None:
    """Equation (3) and its objective; strengthens nothing, the model may be solved without."""
    over = {e: model.new_int_var(0, phases, "") for e in routes_by_link(problem)}
    name_variables(model, "over", "e", over)
    cpsat.add_rows(model, equations.last_tenth(problem, flow, over, phases).values())
    model.minimize(sum(factor * variable for factor, variable in equations.wish(problem, flow, over)))


def count_flows(problem: LeafProblem, phases: int, options: RunOptions) -> Flows:
    """Whole flows per route for ``phases`` with few two-spine ones, or the proof that there are none.

    Raises ``RuntimeError`` when the solver fails."""
    if not problem.routes:
        return Flows("found", np.zeros(0, dtype=np.int64))
    model, flow = build_flows(problem, phases)
    result, solver = cpsat.solve(model, wish_options(problem, options, DETOUR_SECONDS))
    if not result.has_point and result.termination == "limit" and not problem.one_spine:
        model.clear_objective()
        result, solver = cpsat.solve(model, options)
    if result.has_point:
        return Flows("found", np.array([solver.value(flow[r]) for r in range(problem.routes)], dtype=np.int64))
    return Flows("impossible" if refuted(result) else "limit")


def build_whole(problem: LeafProblem, phases: int) -> tuple[Any, dict[Any, Any], dict[Any, Any]]:
    """The model of all phases at once; ``use[p, r]`` and ``stay[p, q]``. Calls no solver."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    use = {(p, r): model.new_bool_var("") for p in range(phases) for r in range(problem.routes)}
    most = problem.size.tolist()
    stay = {(p, q): model.new_int_var(0, most[q], "") for p in range(phases) for q in range(problem.leaves)}
    name_variables(model, "use", "p r", use)
    name_variables(model, "stay", "p x", stay)
    cpsat.add_rows(model, equations.every_pair(problem, use, phases).values())
    cpsat.add_rows(model, equations.own_leaf(problem, stay, phases).values())
    at_most_one(model, equations.no_congestion(problem, use, phases).values())
    cpsat.add_rows(model, equations.senders(problem, use, stay, phases).values())
    cpsat.add_rows(model, equations.receivers(problem, use, stay, phases).values())
    return model, use, stay


def at_most_one(model: Any, rows: Iterable[Row]) -> None:
    """Equation (6) as CP-SAT likes it: of these variables one at most."""
    for terms, _, _ in rows:
        model.add_at_most_one(variable for _, variable in terms)


def decide_whole(problem: LeafProblem, phases: int, options: RunOptions) -> Decided:
    """``found`` with phases between leaves, ``impossible`` (proven) or ``limit``. Raises ``RuntimeError``."""
    model, use, stay = build_whole(problem, phases)
    result, solver = cpsat.solve(model, options)
    if result.has_point:
        used = np.array([solver.value(v) for v in use.values()], dtype=np.int64).reshape(phases, problem.routes)
        inside = np.array([solver.value(v) for v in stay.values()], dtype=np.int64).reshape(phases, problem.leaves)
        return "found", (used, inside)
    return ("impossible" if refuted(result) else "limit"), None
