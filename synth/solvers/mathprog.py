"""Solve Pyomo models with HiGHS, Gurobi or SCIP; the one place that maps their statuses."""

from __future__ import annotations

import gc
import io
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from synth.compiling import uncounted
from synth.errors import SizeLimitError
from synth.options import RunOptions
from synth.solvers import writing
from synth.solvers.catalogue import require
from synth.solvers.logs import note_log
from synth.solvers.status import SolverResult, SolverTermination


@contextmanager
def building() -> Iterator[None]:
    """Pause the cyclic garbage collector: while a model grows, it walks all its objects again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def solve(
    model: Any,
    options: RunOptions,
    *,
    bounded: bool,
    quadratic: bool = False,
    track: float | None = None,
    interior: bool = False,
) -> SolverResult:
    """Solve a Pyomo model with ``options.solver`` and load its point, if there is one, into the variables.

    ``bounded`` states that the model cannot be unbounded (say, all variables have bounds), so that a presolve's
    "infeasible or unbounded" means infeasible; otherwise the model is solved again without its objective to tell.
    ``track`` states that the model's objective times this number is the instance's, so that incumbents and bounds of
    the solver's log go into ``options.progress``. ``interior`` has HiGHS begin with an interior-point method, for
    models on whose first relaxation its simplex may stall; it changes no answer. A failure of the solver, or a model it
    would not take as it is (a number that is not finite, say), comes back as ``error``. Raises
    :class:`SolverMissingError`, :class:`SizeLimitError`, and whatever Pyomo raises on a model that is not of the
    solver's kind.
    """
    info = require(options.solver or "highs")
    if info.interface is None:
        raise ValueError(f"{info.title} does not take Pyomo models")
    interface = "gurobi_direct_minlp" if quadratic and info.name == "gurobi" else info.interface
    log = io.StringIO()
    native = _native_options(info.name, options)
    if track is not None and info.name == "gurobi":
        native["OutputFlag"] = 1
    if interior and info.name == "highs":
        native["mip_lp_solver"] = "ipm"
    words: dict[str, Any] = {"rel_gap": options.relative_gap, "solver_options": native}
    if track is not None:
        words["tee"] = [log]
    result, results = _call(interface, model, options, words)
    if result.termination == "unbounded" and _undecided(results):
        result = _infeasible(result) if bounded else _told_apart(interface, model, options, words, result)
    if track is not None:
        began = time.monotonic() - options.progress.started - result.solve_s
        note_log(options.progress, info.name, log.getvalue(), max(0.0, began), track, result.objective, result.bound)
        options.progress.note(*(None if v is None else v * track for v in (result.objective, result.bound)))
    if result.has_point:
        results.solution_loader.load_vars()
    return result


def solve_lp(
    model: Any, options: RunOptions, rows: Sequence[Any], *, interior: bool = False
) -> tuple[SolverResult, list[list[float]]]:
    """Solve a linear program with HiGHS; also return the duals of each of the named indexed constraints, in order
    (Pyomo's sign: <= 0 on a ``<=`` row of a minimisation). No duals unless the LP is solved to optimality. ``interior``
    takes an interior point instead of a vertex (no crossover), for large LPs on which the simplex method may stall."""
    require("highs")
    words = {"solver_options": {"solver": "ipm", "run_crossover": "off"}} if interior else {}
    result, results = _call("highs", model, options, words)
    if result.termination == "unbounded" and _undecided(results):
        result = _told_apart("highs", model, options, {}, result)
    if result.termination != "optimal":
        return result, []
    dual = results.solution_loader.get_duals()
    return result, [[dual[row] for row in block.values()] for block in rows]


def _call(interface: str, model: Any, options: RunOptions, words: dict[str, Any]) -> tuple[SolverResult, Any]:
    """One call of a solver; its result and Pyomo's, from which a point can be loaded."""
    with uncounted():
        from pyomo.common.errors import ApplicationError

        from synth.solvers import algebra  # noqa: F401  (Pyomo registers the solver interfaces)
        from synth.solvers.guarded import INTERFACES, ModelError

    writing.offer("pyomo", model)
    started = time.monotonic()
    limit = options.remaining()
    if options.out_of_time():
        return SolverResult("limit", False, None, None, 0.0, message="no time left"), None
    solver = INTERFACES[interface]()
    with building():
        try:
            results = solver.solve(
                model, load_solutions=False, raise_exception_on_nonoptimal_result=False, time_limit=limit,
                threads=options.threads, **words,
            )  # fmt: skip
        except Exception as error:
            if "size-limited license" in str(error):
                raise SizeLimitError(
                    "Gurobi: the model is larger than the pip licence allows (2000 variables, 2000 constraints, "
                    "200 variables once anything is quadratic); use --solver highs"
                ) from None
            own = isinstance(error, ApplicationError | ModelError) or type(error).__name__ == "GurobiError"
            if own or str(error).startswith("SCIP:") or "invalid non-finite" in str(error):
                return SolverResult("error", False, None, None, time.monotonic() - started, message=str(error)), None
            raise
    result = _mapped(results, time.monotonic() - started)
    options.clock.cut |= result.termination == "limit"
    return result, results


def _undecided(results: Any) -> bool:
    from pyomo.contrib.solver.common.results import TerminationCondition

    return bool(results.termination_condition == TerminationCondition.infeasibleOrUnbounded)


def _infeasible(result: SolverResult) -> SolverResult:
    return replace(result, termination="infeasible", message=None)


def _told_apart(
    interface: str, model: Any, options: RunOptions, words: dict[str, Any], result: SolverResult
) -> SolverResult:
    """``infeasible or unbounded`` decided: without its objective the model is either infeasible or has a point."""
    from pyomo.environ import Objective

    objectives = list(model.component_data_objects(Objective, active=True))
    for objective in objectives:
        objective.deactivate()
    try:
        plain, _ = _call(interface, model, options, words)
    finally:
        for objective in objectives:
            objective.activate()
    plain = replace(plain, solve_s=plain.solve_s + result.solve_s, transfer_s=plain.transfer_s + result.transfer_s)
    if plain.termination == "optimal":
        return replace(plain, termination="unbounded", has_point=False, message=result.message)
    return replace(plain, has_point=False)


def _native_options(name: str, options: RunOptions) -> dict[str, Any]:
    if name == "highs":
        return {"random_seed": options.seed % 2**31}
    if name == "gurobi":
        return {"Seed": options.seed % 2_000_000_000, "OutputFlag": 0}
    return {"randomization/randomseedshift": options.seed % 2**31}


def _mapped(results: Any, wall: float) -> SolverResult:
    from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition

    condition = results.termination_condition
    has_point = results.solution_status in (SolutionStatus.feasible, SolutionStatus.optimal)
    termination: SolverTermination
    if condition == TerminationCondition.convergenceCriteriaSatisfied:
        termination = "optimal"
    elif condition == TerminationCondition.provenInfeasible:
        termination = "infeasible"
    elif condition in (TerminationCondition.unbounded, TerminationCondition.infeasibleOrUnbounded):
        termination = "unbounded"
    elif condition in (
        TerminationCondition.maxTimeLimit, TerminationCondition.iterationLimit, TerminationCondition.objectiveLimit,
        TerminationCondition.interrupted,
    ):  # fmt: skip
        termination = "limit"
    else:
        termination = "error"
    if termination in ("infeasible", "unbounded"):  # SCIP hands out a ray of 1e20, others any point
        has_point = False
    times = (getattr(results.timing_info, name, None) for name in ("highs_time", "gurobi_time", "scip_time"))
    solve_s = next((float(own) for own in times if own is not None), wall)
    return SolverResult(
        termination,
        has_point,
        _finite(results.incumbent_objective) if has_point else None,
        _finite(results.objective_bound) if termination in ("optimal", "limit") else None,
        solve_s,
        max(0.0, wall - solve_s),
        None if termination in ("optimal", "infeasible", "limit") else f"solver ended with {condition.name}",
    )


def _finite(value: Any) -> float | None:
    """A number of reasonable size, or None: solvers write 1e20 or inf where they know nothing."""
    return float(value) if value is not None and math.isfinite(value) and abs(value) < 1e19 else None
