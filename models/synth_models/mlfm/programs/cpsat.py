"""Program ``cpsat``: phases, destinations and routes with every link free of congestion, in the fewest phases.

Reproduced: the problem of the paper (section 2) for any set of servers. Beyond it: failed links, spines, leaves and
servers
(its future work), routes through a third column, the proof of optimality.

The problem: choose for every ordered pair of servers a phase and an allowed route, so that in a phase every server
sends and receives at most once and every link carries at most one flow. ``programs/colouring.py`` proves that it may be
stated between leaves, and that for one-spine routes only the number of flows per route matters:

===========  ==================  ==========================================  ======
symbol       code                index set                                   unit
===========  ==================  ==========================================  ======
w_r          ``flow[r]``         allowed routes r between leaves             flows
D_qr         ``problem.demand``  ordered pairs of leaves: size(q) * size(r)  flows
P            ``phases``          number of phases                            phases
y_rp         ``use[p][r]``       routes and phases (``decompose=off``)       flows
s_qp         ``stay[p][q]``      leaves and phases (``decompose=off``)       flows
===========  ==================  ==========================================  ======

``decompose=on``: the least P with whole ``w`` such that all routes of a pair carry D and no link more than P, then
phases by colouring (exact) or packing. A congested phase counts as the congestion-free ones it splits into
(``check/replay.py``), so that what is refuted of these is refuted for every schedule. ``decompose=off``: one model per
P with ``y`` and ``s``, from the bound upwards; for the tests and for doubters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.family import Outcome
from synth.options import RunOptions
from synth.solvers import cpsat
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_problem import LeafProblem, routes_by_link
from synth_models.mlfm.programs.decomposition import Flows, fewest_phases, refuted
from synth_models.mlfm.programs.whole import Decided, whole_phases

DETOUR_SECONDS = 5.0  # for having few two-spine flows, which is a wish, not a need


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``cpsat``. Infeasible when the failures cut off a pair, or fewer phases than possible are asked for."""
    if options.method.get("decompose", True):
        return fewest_phases(instance, options, count_flows, "CP-SAT")
    return whole_phases(instance, options, decide_whole, "CP-SAT")


def build_flows(problem: LeafProblem, phases: int) -> tuple[Any, dict[int, Any]]:
    """The model of flows per route for ``phases``, and its variables ``flow`` by route. Calls no solver."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    demand = problem.demand[problem.pair]
    flow = {r: model.new_int_var(0, min(int(demand[r]), phases), "") for r in range(problem.routes)}
    meet_demand(model, problem, flow)
    link_capacity(model, problem, flow, phases)
    if not problem.one_spine:
        room_for_packing(model, problem, flow, phases)
    return model, flow


def meet_demand(model: Any, problem: LeafProblem, flow: dict[int, Any]) -> None:
    """The routes of every pair of leaves carry all its transfers."""
    for pair in np.flatnonzero(np.diff(problem.start)).tolist():
        routes = range(int(problem.start[pair]), int(problem.start[pair + 1]))
        model.add(sum(flow[r] for r in routes) == int(problem.demand[pair]))


def link_capacity(model: Any, problem: LeafProblem, flow: dict[int, Any], phases: int) -> None:
    """A link carries at most one flow a phase."""
    for routes in routes_by_link(problem).values():
        model.add(sum(flow[r] for r in routes) <= phases)


def room_for_packing(model: Any, problem: LeafProblem, flow: dict[int, Any], phases: int) -> None:
    """A wish that makes packing easier: few two-spine flows and, second, few flows in the last tenth of any link."""
    full = phases - -(-phases // 10)
    excess = []
    for routes in routes_by_link(problem).values():
        over = model.new_int_var(0, phases, "")
        model.add(sum(flow[r] for r in routes) - over <= full)
        excess.append(over)
    model.minimize(4 * sum(var for r, var in flow.items() if problem.middle[r] >= 0) + sum(excess))


def count_flows(problem: LeafProblem, phases: int, options: RunOptions) -> Flows:
    """Whole flows per route for ``phases`` with few two-spine ones, or the proof that there are none.

    Raises ``RuntimeError`` when the solver fails."""
    if not problem.routes:
        return Flows("found", np.zeros(0, dtype=np.int64))
    model, flow = build_flows(problem, phases)
    left = options.remaining()
    limit = left if problem.one_spine else min(DETOUR_SECONDS, np.inf if left is None else left / 3)
    run = RunOptions(limit, 0.05, options.threads, options.seed)
    result, solver = cpsat.solve(model, run)
    if not result.has_point and result.termination == "limit" and not problem.one_spine:
        model.clear_objective()
        result, solver = cpsat.solve(model, options)
    if result.has_point:
        return Flows("found", np.array([solver.value(flow[r]) for r in range(problem.routes)], dtype=np.int64))
    return Flows("impossible" if refuted(result) else "limit")


def build_whole(problem: LeafProblem, phases: int) -> tuple[Any, list[list[Any]], list[list[Any]]]:
    """The model of all phases at once; ``use[p][r]`` and ``stay[p][q]``. Calls no solver."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    use = [[model.new_bool_var("") for _ in range(problem.routes)] for _ in range(phases)]
    stay = [[model.new_int_var(0, int(n), "") for n in problem.size] for _ in range(phases)]
    count, through = problem.leaves, routes_by_link(problem)
    for pair in np.flatnonzero(np.diff(problem.start)).tolist():  # every pair of servers exactly once
        own = range(int(problem.start[pair]), int(problem.start[pair + 1]))
        model.add(sum(use[p][r] for p in range(phases) for r in own) == int(problem.demand[pair]))
    for q in range(count):
        model.add(sum(stay[p][q] for p in range(phases)) == int(problem.size[q]) ** 2)
    sender, receiver = np.divmod(problem.pair, count)
    for p in range(phases):
        for routes in through.values():  # no congestion
            model.add_at_most_one(use[p][r] for r in routes)
        for q in range(count):  # a server sends and receives at most once
            size = int(problem.size[q])
            model.add(sum(use[p][r] for r in np.flatnonzero(sender == q)) + stay[p][q] <= size)
            model.add(sum(use[p][r] for r in np.flatnonzero(receiver == q)) + stay[p][q] <= size)
    return model, use, stay


def decide_whole(problem: LeafProblem, phases: int, options: RunOptions) -> Decided:
    """``found`` with phases between leaves, ``impossible`` (proven) or ``limit``. Raises ``RuntimeError``."""
    model, use, stay = build_whole(problem, phases)
    result, solver = cpsat.solve(model, options)
    if result.has_point:
        used = np.array([[solver.value(v) for v in row] for row in use], dtype=np.int64).reshape(phases, problem.routes)
        inside = np.array([[solver.value(v) for v in row] for row in stay], dtype=np.int64)
        return "found", (used, inside)
    return ("impossible" if refuted(result) else "limit"), None
