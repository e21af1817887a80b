"""Solve the joint allreduce program horizon by horizon, through Pyomo or CP-SAT."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from synth.errors import SizeLimitError, UnsupportedError
from synth.family import Outcome
from synth.options import RunOptions
from synth.schedule import Schedule
from synth.solvers import cpsat as cpsat_solver
from synth.solvers import mathprog
from synth.solvers.catalogue import require
from synth.solvers.horizon import Decision
from synth.solvers.rows import add_rows
from synth.solvers.status import SolverResult
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.programs.fewest_timesteps import upwards
from synth_models.xtree.programs.joint.model import JointModel
from synth_models.xtree.references import mesh2d_rings, pull, symmetric, tidalmesh, xtree

LARGEST = 400_000  # variables of the joint program
REFERENCES = {
    "pull": pull.solve,
    "symmetric": symmetric.solve,
    "mirror_xtree": xtree.solve_mirror,
    "tidalmesh": tidalmesh.solve,
    "mesh2d_rings": mesh2d_rings.solve,
}

Point = npt.NDArray[np.bool_] | None
Solve = Callable[[JointModel, RunOptions], tuple[SolverResult, Point]]


def solve_ilp(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """The joint program through Pyomo."""
    return _search(instance, options, _by_pyomo, require(options.solver or "highs").title)


def solve_cpsat(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """The joint program through CP-SAT."""
    return _search(instance, options, _by_cpsat, "CP-SAT")


def _search(instance: XTreeInstance, options: RunOptions, solve: Solve, by: str) -> Outcome:
    """Horizons upwards from the bound to the best reference. Rooted infeasibility raises the bound only where it is
    infeasibility of all schedules (no transfer to spare)."""
    return upwards(
        instance,
        options,
        by,
        lambda timesteps: decide(instance, timesteps, options, solve, by),
        lambda bound: _incumbent(instance, options, bound),
    )


def decide(instance: XTreeInstance, horizon: int, options: RunOptions, solve: Solve, by: str) -> Decision:
    """Build and solve the joint program for one horizon. Raises :class:`SizeLimitError`."""
    network, total = instance.topology, instance.total_chunks
    size = total * horizon * (3 * len(network.arcs[0]) + 3 * network.nodes)
    if size > LARGEST:
        raise SizeLimitError(
            f"the joint program for {horizon} timesteps would have about {size} variables, more than {LARGEST}"
        )
    started = time.monotonic()
    with mathprog.building():
        model = JointModel(network, total, horizon)
    built = time.monotonic()
    result, point = solve(model, options)
    decision = Decision("limit", message=result.message, build_s=built - started, solve_s=time.monotonic() - built)
    if point is not None:
        decision.answer, decision.solution = "feasible", model.schedule(point)
    elif result.termination == "infeasible":
        decision.message = None
        if network.links * horizon <= 2 * (network.nodes - 1) * total:  # no transfer to spare: see the model's module
            decision.answer = "infeasible"
            decision.proof = f"{by} proves {horizon} timesteps infeasible for all schedules (no transfer to spare)"
        else:
            decision.answer = "restricted"
            decision.message = f"no rooted schedule has {horizon} timesteps, says {by}; others are not excluded"
    elif result.termination == "error":
        decision.answer = "error"
    return decision


def _incumbent(instance: XTreeInstance, options: RunOptions, bound: int) -> tuple[Schedule, str]:
    """The shortest allreduce of the references, and which one it was."""
    bare = replace(options, method={"restarts": 10})
    best: tuple[Schedule, str] | None = None
    for name, method in REFERENCES.items():
        try:
            schedule = method(instance, bare).solution
        except UnsupportedError:
            continue
        if best is None or schedule.steps < best[0].steps:
            best = schedule, name
            options.held.offer(partial(copy, schedule), schedule.steps, f"incumbent {schedule.steps} by {name}")
        if best[0].steps <= bound:
            break
    assert best is not None
    return best


def _by_pyomo(model: JointModel, options: RunOptions) -> tuple[SolverResult, Point]:
    from synth.solvers.algebra import pyo

    with mathprog.building():
        program = pyo.ConcreteModel()
        program.x = pyo.Var(range(model.variables), domain=pyo.Binary)
        x = list(program.x.values())
        add_rows(program, "rows", [([(c, x[i]) for c, i in terms], sense, r) for terms, sense, r in model.rows])
        program.objective = pyo.Objective(expr=0)
    result = mathprog.solve(program, options, bounded=True)
    return result, np.array([variable.value > 0.5 for variable in x]) if result.has_point else None


def _by_cpsat(model: JointModel, options: RunOptions) -> tuple[SolverResult, Point]:
    from ortools.sat.python import cp_model

    program = cp_model.CpModel()
    x = [program.new_bool_var("") for _ in range(model.variables)]
    for terms, sense, right in model.rows:
        coefficients, variables = zip(*terms, strict=True)
        least = right if sense == "==" else -sum(map(abs, coefficients))  # no row of the model is >=
        total = cp_model.LinearExpr.weighted_sum([x[i] for i in variables], coefficients)
        program.add_linear_constraint(total, least, right)
    result, solver = cpsat_solver.solve(program, options)
    return result, np.array([solver.boolean_value(v) for v in x]) if result.has_point else None
