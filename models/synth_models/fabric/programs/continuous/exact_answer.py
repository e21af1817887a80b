"""The exact answer for given pieces: their quickest schedule, or the proof that none is quicker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from synth.clock.progress import Progress
from synth.options import RunOptions
from synth.solvers import cpsat
from synth_models.fabric.programs.continuous.model import Program
from synth_models.fabric.programs.continuous.problem import Problem, Row


@dataclass(frozen=True)
class Answer:
    """``rows``: a schedule that ends before the horizon, None if none was found. ``least``: no schedule of these pieces
    ends before that many ticks, says the solver; None if it says nothing. ``settled``: both are the same, or there is
    none within the horizon."""

    rows: list[Row] | None
    least: int | None
    settled: bool


def moves(problem: Problem) -> int:
    """How many transfers the model chooses from, at most."""
    return len(problem.size) * len(problem.routes.all) * (2 if problem.sums else 1)


def quickest(
    problem: Problem,
    horizon: int,
    least: int,
    options: RunOptions,
    *,
    allowed: Mapping[int, Sequence[tuple[int, bool]]] | None = None,
    hint: Sequence[Row] = (),
    work: float | None = None,
) -> Answer:
    """The quickest schedule that ends within ``horizon`` ticks. ``least``: ticks that are proven. ``work`` (CP-SAT's
    deterministic time) limits the search beside the run's time limit."""
    unit = problem.unit
    within, known = horizon // unit, -(-least // unit)
    if not problem.size:
        return Answer([], 0, True)
    if not problem.exact:
        known = min(known, within)
    program = Program(problem, within, known, allowed, twins=allowed is None)
    if not program.possible:
        return Answer(None, (within + 1) * unit, True)
    if hint:
        program.hint(hint)
    limited = _own(options)
    alone: dict[str, Any] = dict(cpsat.IN_TURNS) if work is None else {"max_deterministic_time": work}
    result, solver = cpsat.solve(program.model, limited, alone=alone)
    if result.has_point:
        rows = program.rows(solver)
        settled = result.termination == "optimal"
        bound = None if result.bound is None else int(result.bound) * unit
        return Answer(rows, bound, settled)
    return Answer(None, (within + 1) * unit if result.termination == "infeasible" else None,
                  result.termination == "infeasible")  # fmt: skip


def _own(options: RunOptions) -> RunOptions:
    """The options for the time that is left, with a gap of nothing and progress of their own."""
    limit = options.remaining()
    return replace(options, time_limit_s=limit, relative_gap=0.0, progress=Progress()).started_now()
