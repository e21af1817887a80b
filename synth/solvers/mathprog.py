"""Solve Pyomo models with any solver that takes them; the one place that every mathematical program goes through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from synth.method import load
from synth.options import RunOptions
from synth.solvers import highs, model_file, pyomo_interface
from synth.solvers.catalogue import require
from synth.solvers.pyomo_interface import building, finite
from synth.solvers.solver import Call, Solver
from synth.solvers.status import SolverResult

__all__ = ["building", "solve", "solve_lp"]


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
    :class:`SolverMissingError`, :class:`SizeLimitError`, and :class:`UnsupportedError` on a model that is not of the
    solver's kind.
    """
    solver = require(options.solver or "highs", "miqcp" if quadratic else "milp")
    call = Call(track, quadratic, interior)
    result = _asked(solver, model, options, call)
    if result.termination == "infeasible_or_unbounded":
        result = _infeasible(result) if bounded else _told_apart(solver, model, options, call, result)
    if track is not None:
        options.progress.note(*(None if v is None else v * track for v in (result.objective, result.bound)))
    return result


def solve_lp(
    model: Any, options: RunOptions, rows: Sequence[Any], *, interior: bool = False
) -> tuple[SolverResult, list[list[float]]]:
    """Solve a linear program with HiGHS; also return the duals of each of the named indexed constraints, in order
    (Pyomo's sign: <= 0 on a ``<=`` row of a minimisation). No duals unless the LP is solved to optimality. ``interior``
    takes an interior point instead of a vertex (no crossover), for large LPs on which the simplex method may stall."""
    solver = require("highs")
    words = {"solver_options": {"solver": "ipm", "run_crossover": "off"}} if interior else {}
    if (early := _early(model, options)) is not None:
        return early, []
    result, results = pyomo_interface.one_call(highs.interface, model, options, words)
    options.clock.cut |= result.termination == "limit"
    if result.termination == "infeasible_or_unbounded":
        result = _told_apart(solver, model, options, Call(), result)
    if result.termination != "optimal":
        return result, []
    dual = results.solution_loader.get_duals()
    return result, [[dual[row] for row in block.values()] for block in rows]


def _asked(solver: Solver, model: Any, options: RunOptions, call: Call) -> SolverResult:
    """The solver's answer. What one that proves nothing says of bounds and of there being no point counts for
    nothing."""
    if (early := _early(model, options)) is not None:
        return early
    result: SolverResult = load(solver.target)(model, options, call)
    if result.termination not in ("optimal", "limit"):
        result = replace(result, has_point=False, objective=None, bound=None)
    result = replace(result, objective=finite(result.objective), bound=finite(result.bound))
    options.clock.cut |= result.termination == "limit"
    if not solver.bound:
        ended = "limit" if result.termination in ("optimal", "infeasible") else result.termination
        result = replace(result, termination=ended, bound=None)
    return result


def _early(model: Any, options: RunOptions) -> SolverResult | None:
    """Offer the model to whoever writes it, or has a point of it; the result where there is one without a solver: that
    point, which proves nothing, or none as no time is left."""
    objective = model_file.offer("pyomo", model)
    if objective is not None:
        return SolverResult("limit", True, objective, None, 0.0, message="a point from outside")
    if options.out_of_time():
        return SolverResult("limit", False, None, None, 0.0, message="no time left")
    return None


def _infeasible(result: SolverResult) -> SolverResult:
    return replace(result, termination="infeasible", message=None)


def _told_apart(solver: Solver, model: Any, options: RunOptions, call: Call, result: SolverResult) -> SolverResult:
    """``infeasible or unbounded`` decided: without its objective the model is either infeasible or has a point."""
    from pyomo.environ import Objective

    objectives = list(model.component_data_objects(Objective, active=True))
    for objective in objectives:
        objective.deactivate()
    try:
        plain = _asked(solver, model, options, replace(call, factor=None))
    finally:
        for objective in objectives:
            objective.activate()
    plain = replace(plain, solve_s=plain.solve_s + result.solve_s, transfer_s=plain.transfer_s + result.transfer_s)
    if plain.termination == "optimal":
        plain = replace(plain, termination="unbounded", message=result.message)
    if plain.termination == "infeasible_or_unbounded":  # there is nothing left to be unbounded
        plain = _infeasible(plain)
    return replace(plain, has_point=False, objective=None, bound=None)
