"""Fewest phases in two parts, shared by the programs: count flows per route, then spread them over phases.

Whoever calls brings the first part as a program of its own (``count_flows``); :mod:`.colouring` proves when the second
loses nothing. The bound is proven on both paths: by link weights (:mod:`.bound`) or by a whole routing's infeasibility.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from synth.errors import SizeLimitError
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.mlfm.bound import Bound, lower_bound
from synth_models.mlfm.colouring import balanced_phases, name_servers
from synth_models.mlfm.instance import MAX_TRANSFERS, IntArray, MLFMInstance
from synth_models.mlfm.phases import PhaseTable
from synth_models.mlfm.references import solve_greedy
from synth_models.mlfm.routes import LeafProblem, cut_off, leaf_problem

MAX_CELLS = 100_000_000  # phases times routes
PACKING_TRIES = 3
MAX_FALLBACK = 300  # servers up to which greedy, in a moment, gives a schedule when time runs out
EXTRA_PHASES = 20  # how far above the bound packing is tried


@dataclass(frozen=True)
class Flows:
    """What counting ended with: whole flows per route (R,) that fit, a proof that none do, or neither."""

    status: Literal["found", "impossible", "limit"]
    flows: IntArray | None = None


CountFlows = Callable[[LeafProblem, int, RunOptions], Flows]


def fewest_phases(instance: MLFMInstance, options: RunOptions, count_flows: CountFlows) -> Outcome:
    """The decomposed solve. With ``horizon`` it decides that number of phases only."""
    began = time.monotonic()
    problem = sized_problem(instance)
    reason = cut_off(instance, problem)
    if reason is not None:
        return Outcome("infeasible", message=reason)
    bound = lower_bound(instance, problem, options.remaining())
    build_s = time.monotonic() - began
    horizon = options.method.get("horizon")
    if horizon is not None and horizon < bound.phases:
        message = f"{horizon} phases are too few: {bound.words}"
        return Outcome(
            "infeasible", bound=float(bound.phases), bound_proof=bound.words, message=message, build_s=build_s
        )
    phases = bound.phases if horizon is None else horizon
    while True:
        options.progress.note(bound=bound.phases)
        counted = count_flows(problem, phases, options)
        if counted.status != "impossible":
            break
        proof = f"no whole numbers of flows per route fit into {phases} phases (exhaustive search)"
        bound = Bound(phases + 1, proof, {})
        if horizon is not None:
            return Outcome("infeasible", bound=float(phases + 1), bound_proof=proof, message=proof, build_s=build_s)
        phases += 1
    outcome = _spread(instance, problem, counted, bound, phases, options, count_flows)
    outcome.build_s = build_s
    return outcome


def sized_problem(instance: MLFMInstance) -> LeafProblem:
    """The leaf problem. Raises :class:`SizeLimitError` where storing every transfer and phase is too much."""
    if instance.ranks**2 > MAX_TRANSFERS:
        raise SizeLimitError(f"programs store every transfer, at most {MAX_TRANSFERS}; here {instance.ranks**2}")
    problem = leaf_problem(instance)
    if instance.ranks * problem.routes > MAX_CELLS:
        raise SizeLimitError(
            f"programs take at most {MAX_CELLS} phases x routes; here {instance.ranks} x {problem.routes}"
        )
    return problem


def _spread(
    instance: MLFMInstance, problem: LeafProblem, counted: Flows, bound: Bound, phases: int, options: RunOptions,
    count_flows: CountFlows,
) -> Outcome:  # fmt: skip
    """The second part: one-spine flows always fit, two-spine flows are packed, with more phases when they do not."""
    only = options.method.get("horizon") is not None
    first = phases
    while counted.flows is not None and phases <= first + EXTRA_PHASES:
        solution = spread_flows(instance, problem, counted.flows, phases, options)
        if solution is not None:
            done = phases == bound.phases
            message = (
                None if done or only else f"packing two-spine flows failed below {phases} phases, which proves nothing"
            )
            return Outcome(
                "optimal" if done else "finished", solution=solution, bound=float(bound.phases),
                bound_proof=bound.words, message=message,
            )  # fmt: skip
        if only or options.out_of_time():
            break
        phases += 1
        counted = count_flows(problem, phases, options)
    message = f"{phases} phases neither reached nor refuted within the limit"
    stopped = Outcome("time_limit", bound=float(bound.phases), bound_proof=bound.words, message=message)
    if instance.ranks <= MAX_FALLBACK and not only:
        stopped.solution = solve_greedy(instance, RunOptions(None, seed=options.seed)).solution
        stopped.message = f"{message}; the schedule is the greedy's"
    return stopped


def spread_flows(
    instance: MLFMInstance, problem: LeafProblem, flows: IntArray, phases: int, options: RunOptions, capacity: int = 1
) -> PhaseTable | None:
    """Phases of transfers from flows per route, at most ``capacity`` on a link; None when packing gets stuck."""
    if (problem.middle[np.flatnonzero(flows)] < 0).all():
        return name_servers(instance, problem, balanced_phases(problem, flows, phases, capacity))
    from synth_models.mlfm.packing import pack_phases

    for attempt in range(PACKING_TRIES):
        seed = options.seed + attempt
        tried = RunOptions(options.time_limit_s, options.relative_gap, options.threads, seed, started=options.started)
        packed = pack_phases(problem, flows, phases, tried, capacity)
        if packed is not None:
            return name_servers(instance, problem, packed)
        if options.out_of_time():
            return None
    return None
