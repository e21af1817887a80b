"""The fewest timesteps with any decision procedure for one horizon; shared by ``ilp`` and ``cpsat``."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from synth.errors import SizeLimitError, UnsupportedError
from synth.family import Outcome
from synth.network import Network
from synth.options import RunOptions
from synth.schedule import Schedule
from synth.solvers.horizon import Decision, Proven, fewest
from synth.solvers.status import SolverResult
from synth_models.xtree.bounds import relaxation
from synth_models.xtree.bounds.counting import lower_bound
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references import pull, symmetric, xtree
from synth_models.xtree.references.from_allgather import check_listed
from synth_models.xtree.references.multitree import hold_first

Decide = Callable[[Network, int, int, RunOptions], Decision]
"""``(network, chunks per node, horizon, options)`` decides an allgather."""

LARGEST = 3_000_000  # (chunk, arc, timestep) triples; beyond it building alone would take minutes


def fewest_timesteps(instance: XTreeInstance, options: RunOptions, decide: Decide, by: str) -> Outcome:
    """Least number of timesteps of an allgather or reduce-scatter (as an allgather on the reversed network).

    Each horizon is first attacked by the LP relaxation (unless switched off), whose refutation has a certificate, then
    decided by ``decide``. ``by`` names the solver in proofs.
    """
    network = instance.topology if instance.collective == "allgather" else instance.topology.reversed()

    def attack(horizon: int) -> Decision:
        if not options.method["relaxation"]:
            return decide(network, instance.chunks, horizon, options)
        found = relaxation.refute(network, instance.chunks, horizon, options, relaxation.QUICK)
        if found.certificate is not None:
            decided = Decision("infeasible", certificate=found.certificate, proof=found.words)
        else:
            decided = decide(network, instance.chunks, horizon, options)
        decided.build_s += found.build_s
        decided.solve_s += found.solve_s
        return decided

    def orient(found: Schedule | None) -> Schedule | None:
        return _orient(instance, found)

    outcome = upwards(
        instance,
        options,
        by,
        attack,
        lambda bound: _incumbent(network, instance.chunks, options, bound, orient),
        orient,
    )
    outcome.solution = orient(outcome.solution)
    return outcome


def upwards(
    instance: XTreeInstance,
    options: RunOptions,
    by: str,
    decide: Callable[[int], Decision],
    incumbent: Callable[[int], tuple[Schedule, str]],
    hold: Callable[[Schedule], Schedule | None] = lambda found: found,
) -> Outcome:
    """Try horizons upwards from the proven lower bound (:func:`synth.solvers.horizon.fewest`).

    The search ends at the first horizon with a schedule, which is optimal, or at the ``incumbent`` of the references
    (bound -> schedule, and whose it is), which counts as solving. With the parameter ``horizon`` only that horizon is
    decided; without ``counting`` the search starts at the diameter, so that the program refutes what counting would.
    """
    check_listed(instance)
    proven = Proven(*lower_bound(instance))
    if not options.method["counting"]:
        proven = Proven(instance.topology.diameter, f"diameter {instance.topology.diameter}")
    horizon, known, origin, started = options.method["horizon"], None, "", time.monotonic()
    if horizon is None:
        hold_first(instance, options)
    if horizon is None and options.method["warm_start"]:
        known, origin = incumbent(proven.steps)
    seconds = time.monotonic() - started
    outcome = fewest(
        decide,
        proven,
        options,
        by=by,
        unit="timesteps",
        size=lambda found: found.steps,
        incumbent=known,
        origin=origin,
        horizon=horizon,
        hold=hold,
    )
    outcome.solve_s += seconds
    return outcome


def check_size(network: Network, chunks: int, horizon: int) -> None:
    """Raise :class:`SizeLimitError` when the program would have more than ``LARGEST`` send variables."""
    triples = chunks * len(network.arcs[0]) * horizon
    if triples > LARGEST:
        raise SizeLimitError(
            f"the program would have about {triples} variables, more than {LARGEST}; use pull or symmetric"
        )


def decision(
    result: SolverResult,
    horizon: int,
    folded: bool,
    seconds: tuple[float, float],
    schedule: Callable[[], Schedule],
) -> Decision:
    """What the solver's result says of the horizon; ``schedule`` reads its point, ``seconds`` went into building and
    solving. That the folded program has no point excludes no other schedule."""
    found = Decision("limit", message=result.message, build_s=seconds[0], solve_s=seconds[1])
    if result.termination == "infeasible" and folded:
        found.answer = "restricted"
        found.message = (
            f"no schedule of {horizon} timesteps is invariant under the network's symmetries; others are not excluded"
        )
    elif result.termination == "infeasible":
        found.answer, found.message = "infeasible", None
    elif result.has_point:
        found.answer, found.solution = "feasible", schedule()
    elif result.termination == "error":
        found.answer = "error"
    return found


def _incumbent(
    network: Network, chunks: int, options: RunOptions, bound: int, hold: Callable[[Schedule], Schedule | None]
) -> tuple[Schedule, str]:
    """The shortest allgather of the references, and which one it was; stops at the bound. ``hold`` makes the run's own
    schedule of one."""
    seeds = np.random.SeedSequence(options.seed)
    candidates: list[tuple[str, Callable[[], Schedule]]] = []
    for restart in range(10):
        child = np.random.SeedSequence([options.seed, restart]).spawn(1)[0]
        candidates.append(("pull", partial(pull.allgather, network, chunks, child)))
    candidates.insert(1, ("symmetric", lambda: symmetric.allgather(network, chunks, seeds.spawn(1)[0], bound)))
    candidates.append(("xtree", lambda: xtree.allgather(network, chunks, seeds.spawn(1)[0])))
    best: tuple[Schedule, str] | None = None
    for name, make in candidates:
        try:
            schedule = make()
        except UnsupportedError:
            continue
        if best is None or schedule.steps < best[0].steps:
            best = schedule, name
            if options.method["horizon"] is None:
                options.held.offer(partial(hold, schedule), schedule.steps, f"incumbent {schedule.steps} by {name}")
        if best[0].steps <= bound or options.out_of_time():
            break
    assert best is not None
    return best


def _orient(instance: XTreeInstance, schedule: Schedule | None) -> Schedule | None:
    if schedule is None or instance.collective == "allgather":
        return schedule
    return schedule.reversed_in_time(adds=True)
