"""The exact answer for one way to cut: the quickest schedule of these pieces, or the proof that none is quicker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from synth.options import RunOptions
from synth.progress import Progress
from synth.solvers import cpsat
from synth_models.fabric.programs.continuous.model import Program
from synth_models.fabric.programs.continuous.problem import Problem, Row

MOST_MOVES = 6_000  # that a model may have: more take CP-SAT too long to read


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
    return len(problem.size) * len(problem.ways.all) * (2 if problem.sums else 1)


def quickest(
    problem: Problem,
    horizon: int,
    least: int,
    options: RunOptions,
    *,
    allowed: Mapping[int, Sequence[tuple[int, bool]]] | None = None,
    hint: Sequence[Row] = (),
    seconds: float | None = None,
    work: float | None = None,
) -> Answer:
    """The quickest schedule that ends within ``horizon`` ticks. ``least``: ticks that are proven. ``seconds`` and
    ``work`` (CP-SAT's deterministic time) limit the search beside the run's time limit."""
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
    limited = _limited(options, seconds)
    alone: dict[str, Any] = dict(cpsat.IN_TURNS) if work is None else {"max_deterministic_time": work}
    result, solver = cpsat.solve(program.model, limited, alone=alone)
    if result.has_point:
        rows = program.rows(solver)
        settled = result.termination == "optimal"
        bound = None if result.bound is None else int(result.bound) * unit
        return Answer(rows, bound, settled)
    return Answer(None, (within + 1) * unit if result.termination == "infeasible" else None,
                  result.termination == "infeasible")  # fmt: skip


def _limited(options: RunOptions, seconds: float | None) -> RunOptions:
    """The options with at most so many seconds left, a gap of nothing and progress of its own."""
    left = options.remaining()
    if seconds is not None:
        left = seconds if left is None else min(left, seconds)
    return replace(options, time_limit_s=left, relative_gap=0.0, progress=Progress()).started_now()
