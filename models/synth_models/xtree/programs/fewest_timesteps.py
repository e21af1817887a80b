"""The fewest timesteps by a program that decides one horizon: what ``ilp`` and ``cpsat`` share."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from synth.errors import SizeLimitError
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers.horizon import Decision, HorizonProgram, Incumbent, Proven, fewest
from synth.solvers.status import SolverResult
from synth.time_expanded.windows import TimedIndex
from synth_models.xtree.bounds import relaxation
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.programs.incumbent import as_allgather, best_known, of_instance
from synth_models.xtree.programs.time_expansion import TimeExpansion, free_generators
from synth_models.xtree.references.from_allgather import check_listed
from synth_models.xtree.references.multitree import hold_first

LARGEST = 3_000_000  # (chunk, arc, timestep) triples; beyond it building alone would take minutes


Decide = Callable[[XTreeInstance, RunOptions, int], Decision]
"""Decides one horizon of an instance."""


def fewest_timesteps(instance: XTreeInstance, options: RunOptions, decide: Decide, by: str) -> Outcome:
    """Try horizons upwards from the proven lower bound (:func:`synth.solvers.horizon.fewest`); ``by`` names the solver.

    The search ends at the first horizon with a schedule, which is optimal, or at the best reference's, which counts as
    solving. With the parameter ``horizon`` only that horizon is decided; without ``counting`` the search starts at the
    diameter, so that the program refutes what counting would.
    """
    check_listed(instance)
    proven = Proven(*lower_bound(instance))
    if not options.method["counting"]:
        proven = Proven(instance.topology.diameter, f"diameter {instance.topology.diameter}")
    options.held.offer_bound(float(proven.steps), proven.proof, proven.certificate)
    horizon, known, origin, started = options.method["horizon"], None, "", time.monotonic()
    if horizon is None:
        hold_first(instance, options)
    if horizon is None and options.method["warm_start"]:
        known, origin = best_known(instance, options, proven.steps)
    seconds = time.monotonic() - started
    program = HorizonProgram(
        partial(decide, instance, options),
        by,
        unit="timesteps",
        size=lambda found: found.steps,
        hold=lambda found: found,
    )
    outcome = fewest(program, proven, options, Incumbent(known, origin), horizon=horizon)
    outcome.solve_s += seconds
    return outcome


def expansion_of(instance: XTreeInstance, horizon: int, folded: bool) -> TimeExpansion:
    """The program's index sets. Raises :class:`SizeLimitError` beyond ``LARGEST`` send variables."""
    network, chunks = as_allgather(instance), instance.topology.nodes * instance.chunks
    triples = chunks * len(network.arcs[0]) * horizon
    if triples > LARGEST:
        raise SizeLimitError(
            f"the program would have about {triples} variables, more than {LARGEST}; use pull or symmetric"
        )
    roots = np.repeat(np.arange(network.nodes), instance.chunks)
    return TimeExpansion(network, roots, horizon, fold=free_generators(network) if folded else ())


def relaxation_first(decide: Decide, instance: XTreeInstance, options: RunOptions, horizon: int) -> Decision:
    """The horizon refuted by the LP relaxation, which has a certificate, or else decided by ``decide``; by that alone
    where the parameter ``relaxation`` is off."""
    if not options.method["relaxation"]:
        return decide(instance, options, horizon)
    tried = relaxation.refute(as_allgather(instance), instance.chunks, horizon, options, relaxation.QUICK)
    if tried.certificate is not None:
        decided = Decision("infeasible", certificate=tried.certificate, proof=tried.words)
    else:
        decided = decide(instance, options, horizon)
    decided.build_s += tried.build_s
    decided.solve_s += tried.solve_s
    return decided


def decision(
    instance: XTreeInstance,
    result: SolverResult,
    expansion: TimeExpansion,
    sent: Sequence[TimedIndex],
    folded: bool,
    seconds: tuple[float, float],
) -> Decision:
    """What the solver's result says of the horizon; ``sent`` are the indices of its point, ``seconds`` went into
    building and solving. That the folded program has no point excludes no other schedule."""
    found = Decision("limit", message=result.message, build_s=seconds[0], solve_s=seconds[1])
    if result.termination == "infeasible" and folded:
        found.answer = "restricted"
        found.message = (
            f"no schedule of {expansion.horizon} timesteps is invariant under the network's symmetries; "
            "others are not excluded"
        )
    elif result.termination == "infeasible":
        found.answer, found.message = "infeasible", None
    elif result.has_point:
        found.answer, found.solution = "feasible", of_instance(instance, expansion.schedule(sent))
    elif result.termination == "error":
        found.answer = "error"
    return found
