"""One horizon of an allreduce: the joint program through Pyomo or CP-SAT."""

from __future__ import annotations

import time

import numpy as np

from synth.arrays import BoolArray
from synth.errors import SizeLimitError
from synth.options import RunOptions
from synth.solvers import cpsat as cpsat_solver
from synth.solvers import mathprog
from synth.solvers.horizon import Decision
from synth.solvers.program import Program
from synth.solvers.status import SolverResult
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.programs.joint.model import JointModel

LARGEST = 400_000  # variables of the joint program

Point = BoolArray | None


def decide(instance: XTreeInstance, options: RunOptions, horizon: int, by: str) -> Decision:
    """Build and solve the joint program for one horizon; ``by`` names the solver. Rooted infeasibility counts as
    infeasibility only where it is that of all schedules (no transfer to spare). Raises :class:`SizeLimitError`."""
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
    result, point = (_by_cpsat if by == "CP-SAT" else _by_pyomo)(model.program, options)
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


def _by_pyomo(program: Program, options: RunOptions) -> tuple[SolverResult, Point]:
    with mathprog.building():
        model, x = program.pyomo()
    result = mathprog.solve(model, options, bounded=True)
    return result, np.array([variable.value > 0.5 for variable in x]) if result.has_point else None


def _by_cpsat(program: Program, options: RunOptions) -> tuple[SolverResult, Point]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x = [model.new_bool_var("") for _ in program.most]
    for terms, sense, right in program.rows:
        coefficients, variables = zip(*terms, strict=True)
        least = right if sense == "==" else -sum(map(abs, coefficients))  # no row of the model is >=
        total = cp_model.LinearExpr.weighted_sum([x[i] for i in variables], coefficients)
        model.add_linear_constraint(total, least, right)
    result, solver = cpsat_solver.solve(model, options, names=program.all_names)
    return result, np.array([solver.boolean_value(v) for v in x]) if result.has_point else None
