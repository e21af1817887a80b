"""Method ``columns``: the fewest groups of phases for which column routes are counted and packed (``model.py``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from synth.errors import SizeLimitError, UnsupportedError
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.mlfm.bounds.machine import machine_bound
from synth_models.mlfm.instance import Block, IntArray, MLFMInstance
from synth_models.mlfm.programs.columns.model import (
    ColumnProblem,
    FloatArray,
    Left,
    Rows,
    column_links,
    column_problem,
    demand,
    gain,
    links_now,
    most,
    receivers,
    senders,
)
from synth_models.mlfm.programs.columns.naming import Pattern, named_flows

MAX_RANKS = 20_000  # servers: their pairs are replayed
COUNT_SECONDS, PATTERN_SECONDS = 8.0, 5.0
LOOSE = 1.0  # relative gap: any counts will do, few two-spine flows are a wish
ATTEMPTS = 12


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``columns``. Raises :class:`UnsupportedError` for other jobs and :class:`SizeLimitError`."""
    block = _block(instance)
    bound, reason = machine_bound(instance)
    if bound is None:
        return Outcome("infeasible", message=reason)
    held: dict[str, Any] = {"bound": float(bound.phases), "bound_proof": bound.words, "certificate": bound.certificate}
    problem = column_problem(instance, block)
    least = groups = -(-bound.phases // block.servers)
    for attempt in range(ATTEMPTS):
        counts = fewest_detours(problem, groups, options)
        patterns = None if counts is None else packed(problem, counts, groups, options)
        if patterns is not None:
            words = f"{groups} groups of {block.servers} phases in {len(patterns)} patterns, the bound asks for {least}"
            met = groups * block.servers == bound.phases
            return Outcome(
                "optimal" if met else "finished",
                named_flows(instance, problem, patterns, groups),
                message=words,
                **held,
            )
        if options.out_of_time():
            break
        groups += 1 << max(0, attempt - 1)  # 1, 1, 2, 4, … more
    return Outcome("time_limit", message="no packing found in time", **held)


def _block(instance: MLFMInstance) -> Block:
    """The job's block. Raises :class:`UnsupportedError` where layers may differ."""
    block, failed = instance.block, instance.failed
    if block is None or instance.demand is not None:
        raise UnsupportedError("columns needs a block of servers that all send to all")
    if failed.links or failed.leaves or failed.servers:
        raise UnsupportedError("columns needs layers that are alike: nothing but spines may have failed")
    if instance.ranks > MAX_RANKS:
        raise SizeLimitError(f"more than {MAX_RANKS} servers to replay")
    return block


def fewest_detours(problem: ColumnProblem, groups: int, options: RunOptions) -> IntArray | None:
    """Flows of every column route in so many groups, (1) and (2), or None where none are found."""
    if not len(problem.source):  # a single leaf
        return np.zeros(0, dtype=np.int64)
    cost = (problem.links_used > 2).astype(float)
    rows = [demand(problem), column_links(problem, groups)]
    return _whole_point(cost, np.full(len(cost), np.inf), rows, COUNT_SECONDS, LOOSE, options)


def packed(problem: ColumnProblem, counts: IntArray, groups: int, options: RunOptions) -> list[Pattern] | None:
    """Patterns that together have all flows, or None when packing gets stuck or time runs out."""
    left = Left(counts, np.full(problem.block.columns, problem.block.servers), groups)
    patterns: list[Pattern] = []
    while not left.nothing:
        found = _next_pattern(problem, left, options)
        if found is None:
            return None
        patterns.append(found)
        left = left.after(*found)
    return patterns


def _next_pattern(problem: ColumnProblem, left: Left, options: RunOptions) -> Pattern | None:
    """A pattern for as many groups as possible, a power of two; None when there is none for a single one."""
    largest = min(left.groups, int(max(left.counts.max(initial=0), left.stay.max(initial=0))))
    for times in (1 << k for k in reversed(range(largest.bit_length()))):
        rows = [equation(problem, left, times) for equation in (links_now, senders, receivers)]
        point = _whole_point(-gain(problem, left), most(left, times), rows, PATTERN_SECONDS, 0.02, options)
        if point is not None:
            now, stay = np.split(point, [len(left.counts)])
            return times, now, stay
    return None


def _whole_point(
    cost: FloatArray, upper: FloatArray, rows: list[Rows], seconds: float, gap: float, options: RunOptions
) -> IntArray | None:
    """A whole point from 0 to ``upper`` by HiGHS, or None: there is none, or none was found in time."""
    left = options.remaining()
    if left is not None:
        seconds = min(seconds, left)
    if seconds <= 0:
        return None
    run: Any = milp
    result = run(
        cost,
        integrality=np.ones(len(cost)),
        bounds=Bounds(0.0, upper),
        constraints=[LinearConstraint(*equation) for equation in rows],
        options={"time_limit": seconds, "mip_rel_gap": gap},
    )
    return None if result.x is None else np.round(result.x).astype(np.int64)
