"""Solve Pyomo models with HiGHS, Gurobi or SCIP; the one place that maps their statuses."""

from __future__ import annotations

import gc
import io
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from synth.errors import SizeLimitError
from synth.options import RunOptions
from synth.solvers.catalogue import require
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
    model: Any, options: RunOptions, *, bounded: bool, quadratic: bool = False, track: float | None = None
) -> SolverResult:
    """Solve a Pyomo model with ``options.solver`` and load its point, if there is one, into the variables.

    ``bounded`` states that the model cannot be unbounded (say, all variables have bounds), so that a presolve's
    "infeasible or unbounded" means infeasible. ``track`` states that the model's objective times this number is the
    instance's, so that incumbents and bounds of the solver's log go into ``options.progress``.
    Raises :class:`SolverMissingError` and :class:`SizeLimitError`.
    """
    import pyomo.environ  # noqa: F401  (registers the solver interfaces)
    from pyomo.common.errors import ApplicationError
    from pyomo.contrib.solver.common.factory import SolverFactory

    info = require(options.solver or "highs")
    if info.interface is None:
        raise ValueError(f"{info.title} does not take Pyomo models")
    interface = "gurobi_direct_minlp" if quadratic and info.name == "gurobi" else info.interface
    solver = SolverFactory(interface)
    started = time.monotonic()
    log = io.StringIO()
    gurobi_log = track is not None and info.name == "gurobi"
    limit = options.remaining()
    if limit == 0.0:
        return SolverResult("limit", False, None, None, 0.0, message="no time left")
    with building():
        try:
            results = solver.solve(
                model,
                load_solutions=False,
                raise_exception_on_nonoptimal_result=False,
                time_limit=limit,
                threads=options.threads,
                rel_gap=options.relative_gap,
                solver_options=_native_options(info.name, options) | ({"OutputFlag": 1} if gurobi_log else {}),
                **({"tee": [log]} if track is not None else {}),
            )
        except Exception as error:
            if "size-limited license" in str(error):
                raise SizeLimitError(
                    "Gurobi: the model is larger than the pip licence allows (2000 variables, 2000 constraints, "
                    "200 variables once anything is quadratic); use --solver highs"
                ) from None
            if isinstance(error, ApplicationError) or type(error).__name__ == "GurobiError":
                return SolverResult("error", False, None, None, time.monotonic() - started, message=str(error))
            raise
    result = _mapped(results, bounded, time.monotonic() - started)
    if track is not None:
        began = time.monotonic() - options.progress.started - result.solve_s
        options.progress.note_log(info.name, log.getvalue(), max(0.0, began), track)
        options.progress.note(*(None if v is None else v * track for v in (result.objective, result.bound)))
    if result.has_point:
        results.solution_loader.load_vars()
    return result


def solve_lp(model: Any, options: RunOptions, rows: Sequence[Any]) -> tuple[SolverResult, list[list[float]]]:
    """Solve a linear program with HiGHS; also return the duals of each of the named indexed constraints, in order
    (Pyomo's sign: <= 0 on a ``<=`` row of a minimisation). No duals unless the LP is solved to optimality."""
    import pyomo.environ  # noqa: F401
    from pyomo.contrib.solver.common.factory import SolverFactory

    require("highs")
    started = time.monotonic()
    limit = options.remaining()
    if limit == 0.0:
        return SolverResult("limit", False, None, None, 0.0, message="no time left"), []
    with building():
        results = SolverFactory("highs").solve(
            model,
            load_solutions=False,
            raise_exception_on_nonoptimal_result=False,
            time_limit=limit,
            threads=options.threads,
        )
    result = _mapped(results, bounded=False, wall=time.monotonic() - started)
    if result.termination != "optimal":
        return result, []
    dual = results.solution_loader.get_duals()
    return result, [[dual[row] for row in block.values()] for block in rows]


def _native_options(name: str, options: RunOptions) -> dict[str, Any]:
    if name == "highs":
        return {"random_seed": options.seed % 2**31}
    if name == "gurobi":
        return {"Seed": options.seed % 2_000_000_000, "OutputFlag": 0}
    return {"randomization/randomseedshift": options.seed % 2**31}


def _mapped(results: Any, bounded: bool, wall: float) -> SolverResult:
    from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition

    condition = results.termination_condition
    has_point = results.solution_status in (SolutionStatus.feasible, SolutionStatus.optimal)
    termination: SolverTermination
    if condition == TerminationCondition.convergenceCriteriaSatisfied:
        termination = "optimal"
    elif condition == TerminationCondition.provenInfeasible or (
        bounded and condition == TerminationCondition.infeasibleOrUnbounded
    ):
        termination, has_point = "infeasible", False
    elif condition in (TerminationCondition.unbounded, TerminationCondition.infeasibleOrUnbounded):
        termination = "unbounded"
    elif condition in (
        TerminationCondition.maxTimeLimit, TerminationCondition.iterationLimit, TerminationCondition.objectiveLimit,
        TerminationCondition.interrupted,
    ):  # fmt: skip
        termination = "limit"
    else:
        termination = "error"
    own = getattr(results.timing_info, "highs_time", None) or getattr(results.timing_info, "gurobi_time", None)
    solve_s = float(own) if own is not None else wall
    return SolverResult(
        termination,
        has_point,
        _finite(results.incumbent_objective) if has_point else None,
        None if termination in ("infeasible", "unbounded", "error") else _finite(results.objective_bound),
        solve_s,
        max(0.0, wall - solve_s),
        None if termination in ("optimal", "infeasible", "limit") else f"solver ended with {condition.name}",
    )


def _finite(value: Any) -> float | None:
    """A number of reasonable size, or None: solvers write 1e20 or inf where they know nothing."""
    return float(value) if value is not None and math.isfinite(value) and abs(value) < 1e19 else None
