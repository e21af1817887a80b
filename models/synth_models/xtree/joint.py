"""Solve the joint allreduce program horizon by horizon, through Pyomo or CP-SAT."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from synth.errors import SizeLimitError, UnsupportedError
from synth.family import Outcome
from synth.options import RunOptions
from synth.schedule import Schedule
from synth.solvers import cpsat as cpsat_solver
from synth.solvers import mathprog
from synth.solvers.catalogue import require
from synth.solvers.status import SolverResult
from synth_models.xtree import mesh2d_rings, pull, symmetric, tidalmesh, xtree
from synth_models.xtree.bound import lower_bound
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.joint_model import JointModel

LARGEST = 400_000  # variables of the joint program

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
    bound, proof, _ = lower_bound(instance)
    fixed = options.method["horizon"]
    outcome = Outcome("time_limit", bound=float(bound), bound_proof=proof)
    incumbent: Schedule | None = None
    origin = ""
    if not fixed and options.method["warm_start"]:
        started = time.monotonic()
        incumbent, origin = _incumbent(instance, options, bound)
        outcome.solve_s = time.monotonic() - started
    notes = [f"incumbent {incumbent.steps} by {origin}"] if incumbent is not None else []
    least_transfers = 2 * (instance.topology.nodes - 1) * instance.total_chunks
    horizon = int(fixed or bound)
    while incumbent is None or incumbent.steps > horizon:
        options.progress.note(incumbent.steps if incumbent is not None else None, outcome.bound)
        started = time.monotonic()
        size = instance.total_chunks * horizon * (3 * len(instance.topology.arcs[0]) + 3 * instance.topology.nodes)
        if size > LARGEST:
            if incumbent is None:
                raise SizeLimitError(f"the joint program would have about {size} variables, more than {LARGEST}")
            notes.append(f"the joint program for {horizon} timesteps has about {size} variables, more than {LARGEST}")
            outcome.termination = "size_limit"
            break
        with mathprog.building():
            model = JointModel(instance.topology, instance.total_chunks, horizon)
        outcome.build_s += time.monotonic() - started
        started = time.monotonic()
        result, point = solve(model, options)
        outcome.solve_s += time.monotonic() - started
        if point is not None:
            incumbent = model.schedule(point)
            notes = [f"schedule of {incumbent.steps} timesteps by {by}"]
        elif result.termination == "infeasible":
            exact = instance.topology.links * horizon == least_transfers
            who = "all schedules" if exact else "rooted schedules (others are not excluded)"
            notes.append(f"{by} proves {horizon} timesteps infeasible for {who}")
            if exact:
                outcome.bound, outcome.bound_proof = horizon + 1.0, notes[-1]
            if fixed:
                outcome.termination = "infeasible" if exact else "finished"
                break
            horizon += 1
        else:
            notes.append(f"{horizon} timesteps undecided within the limit")
            break
        if fixed:
            break
    outcome.solution = incumbent
    if incumbent is not None and outcome.bound is not None and incumbent.steps <= outcome.bound:
        outcome.termination = "optimal"
    elif incumbent is not None and outcome.termination == "time_limit" and incumbent.steps <= horizon:
        outcome.termination = "finished"
    outcome.message = "; ".join(notes) or None
    return outcome


def _incumbent(instance: XTreeInstance, options: RunOptions, bound: int) -> tuple[Schedule, str]:
    """The shortest allreduce of the references, and which one it was."""
    bare = RunOptions(options.time_limit_s, seed=options.seed, started=options.started, method={"restarts": 10})
    best: tuple[Schedule, str] | None = None
    for name, method in (
        ("pull", pull.solve), ("symmetric", symmetric.solve), ("mirror_xtree", xtree.solve_mirror),
        ("tidalmesh", tidalmesh.solve), ("mesh2d_rings", mesh2d_rings.solve),
    ):  # fmt: skip
        try:
            schedule = method(instance, bare).solution
        except UnsupportedError:
            continue
        if best is None or schedule.steps < best[0].steps:
            best = schedule, name
        if best[0].steps <= bound:
            break
    assert best is not None
    return best


def _by_pyomo(model: JointModel, options: RunOptions) -> tuple[SolverResult, Point]:
    import pyomo.environ as pyo

    from synth_models.xtree.ilp_model import linear

    with mathprog.building():
        program = pyo.ConcreteModel()
        program.x = pyo.Var(range(model.variables), domain=pyo.Binary)
        x = [program.x[i] for i in range(model.variables)]
        program.rows = pyo.ConstraintList()
        for variables, coefficients, least, most in model.rows:
            program.rows.add((least, linear(coefficients, [x[i] for i in variables]), most))
        program.objective = pyo.Objective(expr=0)
    result = mathprog.solve(program, options, bounded=True)
    return result, np.array([variable.value > 0.5 for variable in x]) if result.has_point else None


def _by_cpsat(model: JointModel, options: RunOptions) -> tuple[SolverResult, Point]:
    from ortools.sat.python import cp_model

    program = cp_model.CpModel()
    x = [program.new_bool_var("") for _ in range(model.variables)]
    for variables, coefficients, least, most in model.rows:
        total = cp_model.LinearExpr.weighted_sum([x[i] for i in variables], coefficients)
        low = least if least is not None else -sum(abs(c) for c in coefficients)
        high = most if most is not None else sum(abs(c) for c in coefficients)
        program.add_linear_constraint(total, low, high)
    result, solver = cpsat_solver.solve(program, options)
    return result, np.array([solver.boolean_value(v) for v in x]) if result.has_point else None
