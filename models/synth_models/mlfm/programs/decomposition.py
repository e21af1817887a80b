"""Fewest phases in two parts, shared by the programs: count flows per route, then spread them over phases.

Whoever calls brings the first part as a program of its own (``count_flows``); ``programs/colouring.py`` proves when the
second loses nothing. That no whole flows per route fit into P phases is a proof for all schedules, that flows which fit
could not be packed is none.

Of a partial all-to-all servers cannot be named afterwards: a server's transfers need phases of their own on top of the
links', and then loads decide nothing even for one-spine routes (``tests/models/mlfm/test_demand.py`` holds five
transfers with two on every server and link that need three phases). Flows are counted and packed between servers there,
and where packing gets stuck the model of all phases (``programs/whole.py``) decides, if it is small enough.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from synth.arrays import IntArray
from synth.errors import SizeLimitError
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers.horizon import Decision, HorizonProgram, Proven, fewest
from synth.solvers.status import SolverResult
from synth_models.mlfm.bounds.load import lower_bound
from synth_models.mlfm.instance import MAX_TRANSFERS, MLFMInstance
from synth_models.mlfm.parts.leaf_problem import LeafProblem, cut_off, leaf_problem, server_problem
from synth_models.mlfm.programs.colouring import LeafPhases, balanced_phases, name_servers
from synth_models.mlfm.references import greedy
from synth_models.mlfm.solution import PhaseTable

MAX_CELLS = 100_000_000  # phases times routes
PACKING_TRIES = 3
MAX_VARIABLES = 400_000  # of the model of all phases
WHOLE_SECONDS = 60.0  # for it at one number of phases, where packing got stuck
FALLBACK_SHARE = 0.5  # of the time that is left, at most, for a schedule to hold
MAX_FALLBACK = 300  # servers up to which greedy, in a moment, gives a schedule when time runs out
EXTRA_PHASES = 20  # numbers of phases for which packing is tried


@dataclass(frozen=True)
class Flows:
    """What counting ended with: whole flows per route (R,) that fit, a proof that none do, or neither."""

    status: Literal["found", "impossible", "limit"]
    flows: IntArray | None = None


def refuted(result: SolverResult) -> bool:
    """Whether a solver that holds no point has proven that there is none; False when it ran into its limit.

    Raises ``RuntimeError`` when it ended in any other way: an error is no time limit."""
    if result.termination not in ("infeasible", "limit"):
        raise RuntimeError(result.message or f"the solver ended with {result.termination} and no point")
    return result.termination == "infeasible"


def wish_options(problem: LeafProblem, options: RunOptions, most: float) -> RunOptions:
    """For counting with the wish to have few two-spine flows: where there are any, ``most`` seconds at most."""
    left = options.remaining()
    limit = left if problem.one_spine else most if left is None else min(most, left / 3)
    return replace(options.part(most_s=math.inf if limit is None else limit), relative_gap=0.05)


CountFlows = Callable[[LeafProblem, int, RunOptions], Flows]
# ``found`` with phases, ``impossible`` (proven) or ``limit``
Decided = tuple[str, LeafPhases | None]
DecideWhole = Callable[[LeafProblem, int, RunOptions], Decided]


@dataclass
class _Numbers:
    """Decides numbers of phases one after the other; ``stuck``: those whose flows could not be packed."""

    instance: MLFMInstance
    problem: LeafProblem
    options: RunOptions
    count_flows: CountFlows
    decide_whole: DecideWhole
    by: str
    stuck: list[int] = field(default_factory=list)

    def decide(self, phases: int) -> Decision:
        """Count the flows, then pack them into the phases; small jobs also by the model of all phases."""
        counted = self.count_flows(self.problem, phases, self.options)
        if counted.status == "impossible":
            proof = f"no whole numbers of flows per route fit into {phases} phases (exhaustive search by {self.by})"
            return Decision("infeasible", proof=proof)
        if counted.flows is None:
            return Decision("limit")
        solution = spread_flows(self.instance, self.problem, counted.flows, phases, self.options)
        if solution is not None:
            return Decision("feasible", solution)
        self.stuck.append(phases)
        if self.problem.alone and phases * (self.problem.routes + self.problem.leaves) <= MAX_VARIABLES:
            status, found = self.decide_whole(self.problem, phases, _whole_options(self.options))
            if found is not None:
                return Decision("feasible", name_servers(self.instance, self.problem, found))
            if status == "impossible":
                return Decision("infeasible", proof=exhausted(phases, self.by))
        ended = self.options.out_of_time() or len(self.stuck) > EXTRA_PHASES
        return Decision("limit" if ended else "restricted", message=_stuck(self.problem, str(phases)))


def fewest_phases(
    instance: MLFMInstance, options: RunOptions, count_flows: CountFlows, decide_whole: DecideWhole, by: str
) -> Outcome:
    """The decomposed solve; ``by`` names the solver. With ``horizon`` it decides that number of phases only."""
    began = time.monotonic()
    leaves, problem = leaf_problem(instance), sized_problem(instance)
    reason = cut_off(instance, leaves)
    if reason is not None:
        return Outcome("infeasible", message=reason)
    if options.method.get("horizon") is None and instance.transfers <= MAX_FALLBACK**2:
        first = greedy.solve(instance, options.part(FALLBACK_SHARE)).solution
        if first is not None:
            options.held.offer(lambda: first, first.phases, "the schedule is the greedy's")
    bound = lower_bound(instance, leaves, options)
    build_s = time.monotonic() - began
    numbers = _Numbers(instance, problem, options, count_flows, decide_whole, by)
    proven, horizon = Proven(bound.phases, bound.words, bound.certificate), options.method.get("horizon")
    program = HorizonProgram(numbers.decide, by, unit="phases", size=lambda s: int(s.phases), hold=lambda found: found)
    outcome = fewest(program, proven, options, horizon=horizon)
    if outcome.solution is not None and outcome.termination != "optimal" and numbers.stuck:
        outcome.message = f"{outcome.message}; {_stuck(problem, f'fewer than {outcome.solution.phases}')}"
    outcome.build_s += build_s
    return outcome


def exhausted(phases: int, by: str) -> str:
    """What a refutation by the model of all phases proves, in words."""
    return f"{phases} phases proven impossible by exhaustive search ({by})"


def _whole_options(options: RunOptions) -> RunOptions:
    return options.part(most_s=WHOLE_SECONDS)


def _stuck(problem: LeafProblem, phases: str) -> str:
    return (
        f"packing {'flows' if problem.alone else 'two-spine flows'} into {phases} phases failed, which proves nothing"
    )


def sized_problem(instance: MLFMInstance) -> LeafProblem:
    """The problem between leaves, of a partial all-to-all between servers. Raises :class:`SizeLimitError` where storing
    every transfer and phase is too much."""
    if instance.ranks**2 > MAX_TRANSFERS:
        raise SizeLimitError(f"programs store every transfer, at most {MAX_TRANSFERS}; here {instance.ranks**2}")
    problem = leaf_problem(instance) if instance.demand is None else server_problem(instance)
    if instance.busiest * problem.routes > MAX_CELLS:
        raise SizeLimitError(
            f"programs take at most {MAX_CELLS} phases x routes; here {instance.busiest} x {problem.routes}"
        )
    return problem


def spread_flows(
    instance: MLFMInstance, problem: LeafProblem, flows: IntArray, phases: int, options: RunOptions, capacity: int = 1
) -> PhaseTable | None:
    """Phases of transfers from flows per route, at most ``capacity`` on a link; None when packing gets stuck."""
    if (problem.middle[flows > 0] < 0).all() and not problem.alone:
        return name_servers(instance, problem, balanced_phases(problem, flows, phases, capacity))
    from synth_models.mlfm.programs.phase_by_phase import pack_phases

    for attempt in range(PACKING_TRIES):
        tried = replace(options, seed=options.seed + attempt)
        packed = pack_phases(problem, flows, phases, tried, capacity)
        if packed is not None:
            return name_servers(instance, problem, packed)
        if options.out_of_time():
            return None
    return None
