"""Solve CP-SAT models; the one place that maps its statuses."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from synth.clock.deadline import shielded
from synth.clock.start_up_costs import uncounted
from synth.method import load
from synth.options import RunOptions
from synth.solvers import model_file
from synth.solvers.catalogue import require, takes
from synth.solvers.names import Names
from synth.solvers.rows import Row
from synth.solvers.solver import Solver
from synth.solvers.status import SolverResult, SolverTermination

SOLVER = Solver(
    "cpsat",
    "OR-Tools CP-SAT",
    module="ortools",
    package="ortools",
    takes=frozenset({"cp"}),
    target="synth.solvers.cpsat:solve",
    licence="free (Apache 2)",
    install="pip install ortools",
    warm_start=True,
    imports=("ortools.sat.python.cp_model",),
    library="ortools.sat.python.cp_model",
)

# one worker goes in turns through the strategies that several would run side by side: it repeats by seed and proves
# what one strategy alone gets stuck on
IN_TURNS: Mapping[str, Any] = {"interleave_search": True}
CUT = 0.9  # of the limit: who ends before ended by itself
UNREPEATABLE = "CP-SAT with more than one thread is not repeatable by seed"


def with_caveat(message: str | None, options: RunOptions) -> str | None:
    """The message of a run of CP-SAT, which says so when its threads race each other."""
    return "; ".join(filter(None, (message, UNREPEATABLE if options.threads > 1 else None))) or None


def solve(
    model: Any, options: RunOptions, *, track: float | None = None, alone: Mapping[str, Any] | None = None,
    names: Names | None = None,
) -> tuple[SolverResult, Any]:  # fmt: skip
    """Solve a ``CpModel``; return the result and the ``CpSolver`` to read values from (only if ``has_point``).

    There are as many workers as ``options.threads``: one alone repeats by seed (but for when the time limit cuts it
    off), several race each other. ``alone`` are CP-SAT's parameters for a worker that is alone, ``IN_TURNS`` say.
    ``names`` makes the names of variables and constraints where the model is written instead.

    ``track`` states that the model's objective times this number is the instance's, so that incumbents and bounds
    go into ``options.progress``. CP-SAT's UNKNOWN reports objective 0 and bound 0; here it has neither. A run by
    another solver that takes such models goes to that one.
    """
    if options.solver not in (None, "cpsat") and takes(options.solver, "cp"):
        found: tuple[SolverResult, Any] = load(require(options.solver).target)(model, options, track=track)
        return found
    require("cpsat")
    with uncounted():
        from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    model_file.offer("cpsat", model, names)
    started = time.monotonic()
    limit = options.remaining()
    if options.out_of_time():
        return SolverResult("limit", False, None, None, 0.0, message="no time left"), solver
    _set_parameters(solver.parameters, options, limit, alone or {})
    callback = None
    if track is not None and model.has_objective():
        factor = track
        callback = _note_incumbents(options, factor)
        solver.best_bound_callback = lambda bound: options.progress.note(bound=bound * factor)
    with shielded():
        status = solver.solve(model, callback)
    wall = time.monotonic() - started
    if status == cp_model.MODEL_INVALID:
        return SolverResult("error", False, None, None, wall, message=model.validate()), solver
    ended: dict[Any, SolverTermination] = {cp_model.OPTIMAL: "optimal", cp_model.INFEASIBLE: "infeasible"}
    termination = ended.get(status, "limit")
    options.clock.cut |= limit is not None and termination == "limit" and wall >= CUT * limit
    has_point = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    if not (has_point and model.has_objective()):
        return SolverResult(termination, has_point, None, None, wall), solver
    objective, bound = float(solver.objective_value), float(solver.best_objective_bound)
    return SolverResult(termination, has_point, objective, bound, wall), solver


def _set_parameters(parameters: Any, options: RunOptions, limit: float | None, alone: Mapping[str, Any]) -> None:
    """The run's options as CP-SAT's parameters; ``alone`` counts where there is one worker."""
    if limit is not None:
        parameters.max_time_in_seconds = limit
    parameters.num_workers = options.threads
    if options.threads == 1:
        for name, value in alone.items():
            setattr(parameters, name, value)
    parameters.random_seed = options.seed % 2**31
    parameters.relative_gap_limit = options.relative_gap


def _note_incumbents(options: RunOptions, factor: float) -> Any:
    from ortools.sat.python import cp_model

    class Incumbents(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        def on_solution_callback(self) -> None:
            options.progress.note(self.objective_value * factor, self.best_objective_bound * factor)

    return Incumbents()


def add_rows(model: Any, rows: Iterable[Row]) -> None:
    """Put rows with whole coefficients (:data:`synth.solvers.rows.Row`) into a ``CpModel``."""
    from ortools.sat.python import cp_model

    for terms, sense, right in rows:
        factors, variables = zip(*terms, strict=True)
        body, least = cp_model.LinearExpr.weighted_sum(variables, factors), int(right)
        model.add(body == least if sense == "==" else body <= least if sense == "<=" else body >= least)
