"""Method ``columns``: column routes counted and packed (``model.py``) in as many phases as the bound asks for, or in
the next multiples of m, whose programs are smaller."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint

from synth.arrays import IntArray
from synth.errors import SizeLimitError, UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers import cpsat
from synth.solvers.names import name_variables
from synth.solvers.whole_point import whole_point
from synth_models.mlfm.bounds.machine import machine_bound
from synth_models.mlfm.instance import Block, Failed, MLFMInstance
from synth_models.mlfm.programs.columns.model import (
    ColumnProblem,
    Left,
    column_links,
    column_problem,
    demand,
    detours,
    gain,
    links_now,
    most,
    receivers,
    senders,
)
from synth_models.mlfm.programs.columns.route_expansion import Pattern, named_flows

MAX_RANKS = 20_000  # servers: their pairs are replayed
COUNTING, PACKING = 0.4, 0.6  # shares of the time left that may go to one number of phases
PATTERN_SECONDS, PATTERN_GAP = 5.0, 0.02
COUNT_GAP = 0.05  # few two-spine flows are a wish
ATTEMPTS = 12


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``columns``; spines of failed cables are left out, so that layers are alike, and the bound stays that of
    the machine as it is. Raises :class:`UnsupportedError` for other jobs and :class:`SizeLimitError`."""
    block = _block(instance)
    bound, reason = machine_bound(instance)
    if bound is None:
        return Outcome("infeasible", message=reason)
    held: dict[str, Any] = {"bound": float(bound.phases), "bound_proof": bound.words, "certificate": bound.certificate}
    alike = _alike(instance)
    least = bound if alike is instance else machine_bound(alike)[0]
    if least is None:
        words = "without the spines of the failed cables, which columns leaves out, some pair of leaves has no route"
        return Outcome("finished", message=words, **held)
    for phases in _numbers(least.phases, block.servers):
        length = math.gcd(phases, block.servers)
        problem, groups = column_problem(alike, block, length), phases // length
        counts = flows_per_route(problem, groups, _share(options, COUNTING))
        patterns = None if counts is None else packed(problem, counts, groups, _share(options, PACKING))
        if patterns is not None:
            words = f"{groups} groups of {length} phases in {len(patterns)} patterns"
            ended: Any = "optimal" if phases == bound.phases else "finished"
            return Outcome(ended, named_flows(alike, problem, patterns, groups), message=words, **held)
        if options.out_of_time():
            break
    return Outcome("time_limit", message="no packing found in time", **held)


def _numbers(least: int, servers: int) -> Iterator[int]:
    """Numbers of phases to try."""
    if least % servers:
        yield least
    groups = -(-least // servers)
    for attempt in range(ATTEMPTS):
        yield groups * servers
        groups += 1 << max(0, attempt - 1)  # 1, 1, 2, 4, … more


def _share(options: RunOptions, part: float) -> RunOptions:
    """The same options with a part of the time that is left."""
    left, limit = options.remaining(), options.time_limit_s
    return options if left is None or limit is None else replace(options, time_limit_s=limit - (1 - part) * left)


def _block(instance: MLFMInstance) -> Block:
    """The job's block. Raises :class:`UnsupportedError` where layers may differ."""
    block, failed = instance.block, instance.failed
    if block is None or instance.demand is not None:
        raise UnsupportedError("columns needs a block of servers that all send to all")
    if failed.leaves or failed.servers:
        raise UnsupportedError("columns needs layers that are alike: nothing but spines and cables may have failed")
    if instance.ranks > MAX_RANKS:
        raise SizeLimitError(f"more than {MAX_RANKS} servers to replay")
    return block


def _alike(instance: MLFMInstance) -> MLFMInstance:
    """The job on a machine that lacks the spines of failed cables too."""
    failed = instance.failed
    if not failed.links:
        return instance
    gone = {(min(pair), max(pair)) for pair in (*failed.spines, *(link.spine for link in failed.links))}
    return instance.model_copy(update={"failed": Failed(spines=tuple(sorted(gone)))})


def flows_per_route(problem: ColumnProblem, groups: int, options: RunOptions) -> IntArray | None:
    """Flows of every column route in so many groups by (1) and (2), or None where none are found."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    most = problem.needed[problem.source * problem.block.columns + problem.target]
    counts = [model.new_int_var(0, int(needed), "") for needed in most]
    name_variables(model, "counts", "r", dict(enumerate(counts)))
    cpsat.add_rows(model, demand(problem, counts).values())
    cpsat.add_rows(model, column_links(problem, counts, groups).values())
    model.minimize(cp_model.LinearExpr.sum([count for _, count in detours(problem, counts)]))
    result, solver = cpsat.solve(model, replace(options, relative_gap=COUNT_GAP))
    return np.array([solver.value(count) for count in counts], dtype=np.int64) if result.has_point else None


def packed(problem: ColumnProblem, counts: IntArray, groups: int, options: RunOptions) -> list[Pattern] | None:
    """Patterns that together have all flows, or None when packing gets stuck or time runs out."""
    left = Left(counts, np.full(problem.block.columns, problem.block.servers * problem.runs), groups)
    patterns: list[Pattern] = []
    times = groups
    while not left.nothing:
        found = _next_pattern(problem, left, times, options)
        if found is None:
            return None
        patterns.append(found)
        times, left = found[0], left.after(*found)
    return patterns


def _next_pattern(problem: ColumnProblem, left: Left, limit: int, options: RunOptions) -> Pattern | None:
    """A pattern for as many groups as possible, a power of two up to ``limit``; None when there is none for one."""
    largest = min(limit, left.groups, int(max(left.counts.max(initial=0), left.stay.max(initial=0))))
    for times in (1 << k for k in reversed(range(largest.bit_length()))):
        if options.out_of_time():
            return None
        rows = [LinearConstraint(*equation(problem, left, times)) for equation in (links_now, senders, receivers)]
        cost, upper = -gain(problem, left), most(left, times)
        point = whole_point(cost, upper, rows, options, seconds=PATTERN_SECONDS, gap=PATTERN_GAP)
        if point is not None:
            now, stay = np.split(point, [len(left.counts)])
            return times, now, stay
    return None
