"""Program ``ilp``: the problem of ``programs/cpsat.py``, stated through Pyomo for HiGHS, Gurobi and SCIP.

Symbols as there: ``flow[r]`` (w_r) flows on routes, ``use[p, r]`` (y_rp) and ``stay[p, q]`` (s_qp) flows of single
phases on routes and inside leaves (``decompose=off``). Deviation from the paper: none beyond those of
``programs/cpsat.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from synth.family import Outcome
from synth.options import RunOptions
from synth.solvers import mathprog
from synth.solvers.catalogue import SOLVERS
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_problem import LeafProblem, routes_by_link
from synth_models.mlfm.programs.decomposition import Flows, fewest_phases, refuted
from synth_models.mlfm.programs.whole import Decided, whole_phases

DETOUR_SECONDS = 10.0  # for having few two-spine flows, which is a wish, not a need


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``ilp``. Infeasible when the failures cut off a pair, or fewer phases than possible are asked for."""
    if options.method.get("decompose", True):
        return fewest_phases(instance, options, count_flows, title(options))
    return whole_phases(instance, options, decide_whole, title(options))


def title(options: RunOptions) -> str:
    """The solver's name in words."""
    return SOLVERS[options.solver or "highs"].title


def _sum(variables: Iterable[Any], factors: list[int] | None = None) -> Any:
    from pyomo.core.expr import LinearExpression

    listed = list(variables)
    return LinearExpression(constant=0, linear_coefs=factors or [1] * len(listed), linear_vars=listed)


def build_flows(problem: LeafProblem, phases: int) -> Any:
    """The model of flows per route for ``phases``. Calls no solver."""
    import pyomo.environ as pyo

    with mathprog.building():
        model = pyo.ConcreteModel()
        demand = problem.demand[problem.pair]
        model.routes = pyo.RangeSet(0, problem.routes - 1)
        model.flow = pyo.Var(model.routes, domain=pyo.NonNegativeIntegers, bounds=lambda _, r: (0, int(demand[r])))
        meet_demand(model, problem)
        link_capacity(model, problem, phases)
        room_for_packing(model, problem, phases)
    return model


def meet_demand(model: Any, problem: LeafProblem) -> None:
    """The routes of every pair of leaves carry all its transfers."""
    import pyomo.environ as pyo

    model.meet_demand = pyo.ConstraintList()
    for pair in np.flatnonzero(np.diff(problem.start)).tolist():
        routes = range(int(problem.start[pair]), int(problem.start[pair + 1]))
        model.meet_demand.add(_sum(model.flow[r] for r in routes) == int(problem.demand[pair]))


def link_capacity(model: Any, problem: LeafProblem, phases: int) -> None:
    """A link carries at most one flow a phase."""
    import pyomo.environ as pyo

    model.link_capacity = pyo.ConstraintList()
    for routes in routes_by_link(problem).values():
        model.link_capacity.add(_sum(model.flow[r] for r in routes) <= phases)


def room_for_packing(model: Any, problem: LeafProblem, phases: int) -> None:
    """A wish that makes packing easier: few two-spine flows and, second, few flows in the last tenth of any link."""
    import pyomo.environ as pyo

    full, wish = phases - -(-phases // 10), [(4, model.flow[int(r)]) for r in np.flatnonzero(problem.middle >= 0)]
    through = list(routes_by_link(problem).values()) if wish else []
    model.over = pyo.Var(range(len(through)), bounds=(0, phases))
    model.last_tenth = pyo.ConstraintList()
    for number, routes in enumerate(through):
        model.last_tenth.add(_sum(model.flow[r] for r in routes) <= full + model.over[number])
        wish.append((1, model.over[number]))
    model.wish = pyo.Objective(expr=_sum([var for _, var in wish], [factor for factor, _ in wish]))


def count_flows(problem: LeafProblem, phases: int, options: RunOptions) -> Flows:
    """Whole flows per route for ``phases`` with few two-spine ones, or the proof that there are none.

    Raises ``RuntimeError`` when the solver fails."""
    if not problem.routes:
        return Flows("found", np.zeros(0, dtype=np.int64))
    model = build_flows(problem, phases)
    left = options.remaining()
    limit = left if problem.one_spine else min(DETOUR_SECONDS, np.inf if left is None else left / 3)
    run = RunOptions(limit, 0.05, options.threads, options.seed, options.solver)
    result = mathprog.solve(model, run, bounded=True)
    if not result.has_point and result.termination == "limit" and not problem.one_spine:
        model.wish.set_value(0)
        result = mathprog.solve(model, options, bounded=True)
    if result.has_point:
        flows = np.array([round(model.flow[r].value) for r in range(problem.routes)], dtype=np.int64)
        return Flows("found", flows)
    return Flows("impossible" if refuted(result) else "limit")


def build_whole(problem: LeafProblem, phases: int) -> Any:
    """The model of all phases at once. Calls no solver."""
    import pyomo.environ as pyo

    with mathprog.building():
        model = pyo.ConcreteModel()
        model.phases, model.leaves = pyo.RangeSet(0, phases - 1), pyo.RangeSet(0, problem.leaves - 1)
        model.routes = pyo.RangeSet(0, problem.routes - 1)
        model.use = pyo.Var(model.phases, model.routes, domain=pyo.Binary)
        model.stay = pyo.Var(
            model.phases, model.leaves, domain=pyo.NonNegativeIntegers, bounds=lambda _, p, q: (0, int(problem.size[q]))
        )
        every_pair_once(model, problem)
        no_congestion(model, problem)
        one_flow_per_server(model, problem)
        model.nothing = pyo.Objective(expr=0)
    return model


def every_pair_once(model: Any, problem: LeafProblem) -> None:
    """Over all phases the flows between two leaves, and inside each, are the pairs of their servers."""
    import pyomo.environ as pyo

    model.every_pair_once = pyo.ConstraintList()
    for pair in np.flatnonzero(np.diff(problem.start)).tolist():
        routes = range(int(problem.start[pair]), int(problem.start[pair + 1]))
        flows = _sum(model.use[p, r] for p in model.phases for r in routes)
        model.every_pair_once.add(flows == int(problem.demand[pair]))
    for q in model.leaves:
        model.every_pair_once.add(_sum(model.stay[p, q] for p in model.phases) == int(problem.size[q]) ** 2)


def no_congestion(model: Any, problem: LeafProblem) -> None:
    """A link carries at most one flow in a phase."""
    import pyomo.environ as pyo

    model.no_congestion = pyo.ConstraintList()
    for routes in routes_by_link(problem).values():
        for p in model.phases:
            model.no_congestion.add(_sum(model.use[p, r] for r in routes) <= 1)


def one_flow_per_server(model: Any, problem: LeafProblem) -> None:
    """A leaf starts and ends at most one flow per server in a phase."""
    import pyomo.environ as pyo

    model.one_flow_per_server = pyo.ConstraintList()
    for side in np.divmod(problem.pair, problem.leaves):
        for q in model.leaves:
            routes = np.flatnonzero(side == q).tolist()
            for p in model.phases:
                flows = _sum([*(model.use[p, r] for r in routes), model.stay[p, q]])
                model.one_flow_per_server.add(flows <= int(problem.size[q]))


def decide_whole(problem: LeafProblem, phases: int, options: RunOptions) -> Decided:
    """``found`` with phases between leaves, ``impossible`` (proven) or ``limit``. Raises ``RuntimeError``."""
    model = build_whole(problem, phases)
    result = mathprog.solve(model, options, bounded=True)
    if result.has_point:
        used = np.zeros((phases, problem.routes), dtype=np.int64)
        inside = np.zeros((phases, problem.leaves), dtype=np.int64)
        for (p, r), var in model.use.items():
            used[p, r] = round(var.value)
        for (p, q), var in model.stay.items():
            inside[p, q] = round(var.value)
        return "found", (used, inside)
    return ("impossible" if refuted(result) else "limit"), None
