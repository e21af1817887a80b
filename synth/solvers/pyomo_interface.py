"""Solvers that Pyomo has an interface for: one call of it, and its statuses in our words.

HiGHS refuses a whole batch of rows for one coefficient that is infinite or at least 1e15, and leaves out those up to
1e-9; Pyomo does not look at its answer. SCIP takes NaN for anything and coefficients up to 1e-9 for zero; Gurobi takes
infinite costs and those up to 1e-13 for zero. So each solver's interface looks at the numbers on their way
(:func:`demand_range`): the solver would solve some other program. Pyomo is imported when a model is solved, not before.
"""

from __future__ import annotations

import gc
import io
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from synth.clock.start_up_costs import uncounted
from synth.errors import SizeLimitError
from synth.options import RunOptions
from synth.solvers.logs import LogRow, note_log
from synth.solvers.solver import Call
from synth.solvers.status import SolverResult, SolverTermination

LARGEST = 1e15
IMPORTS = ("synth.solvers.algebra", "pyomo.contrib.solver.common.results")


class ModelError(Exception):
    """The model cannot be handed to the solver as it is."""


def demand_range(name: str, numbers: Any, smallest: float) -> None:
    """Coefficients of a constraint or the objective must be zero or of a size the solver takes: raises
    :class:`ModelError`."""
    import numpy as np

    numbers = np.asarray(numbers, float)
    size = np.abs(numbers)
    bad = ~(size < LARGEST) | ((size <= smallest) & (size > 0))
    if bad.any():
        raise ModelError(f"{name} takes no coefficient such as {numbers[bad][0]:g}: 0, or {smallest:g} to {LARGEST:g}")


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
    interface: Callable[[], Any],
    model: Any,
    options: RunOptions,
    call: Call,
    native: Mapping[str, Any],
    reader: Callable[[str], LogRow | None],
) -> SolverResult:
    """Solve by the class that ``interface`` returns, with the solver's own options ``native``; ``reader`` reads a line
    of its log. The point, if there is one, is loaded into the model."""
    log = io.StringIO()
    words: dict[str, Any] = {"rel_gap": options.relative_gap, "solver_options": dict(native)}
    if call.factor is not None:
        words["tee"] = [log]
    result, results = one_call(interface, model, options, words)
    if call.factor is not None:
        began = time.monotonic() - options.progress.started - result.solve_s
        ends = result.objective, result.bound
        note_log(options.progress, reader, log.getvalue(), max(0.0, began), call.factor, *ends)
    if result.has_point:
        results.solution_loader.load_vars()
    return result


def one_call(
    interface: Callable[[], Any], model: Any, options: RunOptions, words: Mapping[str, Any]
) -> tuple[SolverResult, Any]:
    """One call of a solver; its result and Pyomo's, from which a point can be loaded."""
    with uncounted():
        from pyomo.common.errors import ApplicationError

        from synth.solvers import algebra  # noqa: F401  (Pyomo registers the solver interfaces)

        solver = interface()()
    started = time.monotonic()
    with building():
        try:
            results = solver.solve(
                model, load_solutions=False, raise_exception_on_nonoptimal_result=False,
                time_limit=options.remaining(), threads=options.threads, **words,
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
    return _mapped(results, time.monotonic() - started), results


def _mapped(results: Any, wall: float) -> SolverResult:
    from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition

    condition = results.termination_condition
    has_point = results.solution_status in (SolutionStatus.feasible, SolutionStatus.optimal)
    termination: SolverTermination
    if condition == TerminationCondition.convergenceCriteriaSatisfied:
        termination = "optimal"
    elif condition == TerminationCondition.provenInfeasible:
        termination = "infeasible"
    elif condition == TerminationCondition.unbounded:
        termination = "unbounded"
    elif condition == TerminationCondition.infeasibleOrUnbounded:
        termination = "infeasible_or_unbounded"
    elif condition in (
        TerminationCondition.maxTimeLimit, TerminationCondition.iterationLimit, TerminationCondition.objectiveLimit,
        TerminationCondition.interrupted,
    ):  # fmt: skip
        termination = "limit"
    else:
        termination = "error"
    if termination in ("infeasible", "unbounded", "infeasible_or_unbounded"):
        has_point = False  # SCIP hands out a ray of 1e20, others any point
    times = (getattr(results.timing_info, name, None) for name in ("highs_time", "gurobi_time", "scip_time"))
    solve_s = next((float(own) for own in times if own is not None), wall)
    return SolverResult(
        termination,
        has_point,
        finite(results.incumbent_objective) if has_point else None,
        finite(results.objective_bound) if termination in ("optimal", "limit") else None,
        solve_s,
        max(0.0, wall - solve_s),
        None if termination in ("optimal", "infeasible", "limit") else f"solver ended with {condition.name}",
    )


def finite(value: Any) -> float | None:
    """A number of reasonable size, or None: solvers write 1e20 or inf where they know nothing."""
    return float(value) if value is not None and math.isfinite(value) and abs(value) < 1e19 else None
