"""Find the least horizon with any decision procedure for one horizon; shared by ``ilp`` and ``cpsat``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from synth.errors import UnsupportedError
from synth.family import Outcome
from synth.network import Network
from synth.options import RunOptions
from synth.schedule import Schedule
from synth_models.xtree import pull, relaxation, symmetric, xtree
from synth_models.xtree.bound import lower_bound
from synth_models.xtree.instance import XTreeInstance

Answer = Literal["feasible", "infeasible", "limit"]


@dataclass
class Decision:
    """Whether a schedule of the horizon exists; ``schedule`` when feasible. Times in seconds."""

    answer: Answer
    schedule: Schedule | None = None
    build_s: float = 0.0
    solve_s: float = 0.0
    message: str | None = None


Decide = Callable[[Network, int, int, RunOptions], Decision]
"""``(network, chunks per node, horizon, options)`` decides an allgather."""


def fewest_timesteps(instance: XTreeInstance, options: RunOptions, decide: Decide, by: str) -> Outcome:
    """Least number of timesteps of an allgather or reduce-scatter (as an allgather on the reversed network).

    Horizons are tried upwards from the proven lower bound. Each is first attacked by the LP relaxation (unless
    switched off), then decided by ``decide``; the search ends at the first horizon with a schedule, which is optimal,
    or at the incumbent of the references. ``by`` names the solver in proofs. With the parameter ``horizon`` only
    that horizon is decided.
    """
    network = instance.topology if instance.collective == "allgather" else instance.topology.reversed()
    if options.method["horizon"] is not None:
        return _one_horizon(instance, network, options, decide, by)
    bound, proof, _ = lower_bound(instance)
    outcome = Outcome("time_limit", bound_proof=proof)
    incumbent, origin = None, ""
    if options.method["warm_start"]:
        started = time.monotonic()
        incumbent, origin = _incumbent(network, instance.chunks, options, bound)
        outcome.solve_s = time.monotonic() - started
    horizon = bound
    notes = [f"incumbent {incumbent.steps} by {origin}"] if incumbent is not None else []
    while incumbent is None or incumbent.steps > horizon:
        options.progress.note(incumbent.steps if incumbent is not None else None, horizon)
        if options.method["relaxation"]:
            found = relaxation.refute(network, instance.chunks, horizon, options, relaxation.QUICK)
            outcome.build_s += found.build_s
            outcome.solve_s += found.solve_s
            if found.certificate is not None:
                outcome.bound_proof, horizon = found.words, horizon + 1
                continue
        decision = decide(network, instance.chunks, horizon, options)
        outcome.build_s += decision.build_s
        outcome.solve_s += decision.solve_s
        if decision.message:
            notes.append(decision.message)
        if decision.answer == "feasible":
            assert decision.schedule is not None
            incumbent = decision.schedule
            notes = [f"schedule of {incumbent.steps} timesteps by {by}"]
        elif decision.answer == "infeasible":
            outcome.bound_proof, horizon = f"{by} proves {horizon} timesteps infeasible", horizon + 1
        else:
            notes.append(f"{horizon} timesteps undecided within the limit")
            break
    if incumbent is not None and incumbent.steps <= horizon:
        outcome.termination = "optimal"
    outcome.bound = float(horizon)
    outcome.solution = _orient(instance, incumbent)
    outcome.message = "; ".join(notes) or None
    return outcome


def _one_horizon(instance: XTreeInstance, network: Network, options: RunOptions, decide: Decide, by: str) -> Outcome:
    horizon = int(options.method["horizon"])
    if horizon < network.diameter:
        proof = f"{horizon} timesteps are fewer than the diameter, {network.diameter}"
        return Outcome("infeasible", bound=float(network.diameter), bound_proof=proof, message=proof)
    decision = decide(network, instance.chunks, horizon, options)
    outcome = Outcome("time_limit", build_s=decision.build_s, solve_s=decision.solve_s, message=decision.message)
    if decision.answer == "infeasible":
        outcome.termination, outcome.bound = "infeasible", float(horizon + 1)
        outcome.bound_proof = outcome.message = f"{by} proves {horizon} timesteps infeasible"
    elif decision.answer == "feasible":
        outcome.solution = _orient(instance, decision.schedule)
        bound, proof, _ = lower_bound(instance)
        outcome.bound, outcome.bound_proof = float(bound), proof
        assert decision.schedule is not None
        outcome.termination = "optimal" if decision.schedule.steps <= bound else "finished"
    return outcome


def _incumbent(network: Network, chunks: int, options: RunOptions, bound: int) -> tuple[Schedule, str]:
    """The shortest allgather of the references, and which one it was; stops at the bound."""
    seeds = np.random.SeedSequence(options.seed)
    candidates: list[tuple[str, Callable[[], Schedule]]] = []
    for restart in range(10):
        child = np.random.SeedSequence([options.seed, restart]).spawn(1)[0]
        candidates.append(("pull", lambda child=child: pull.allgather(network, chunks, child)))  # type: ignore[misc]
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
        if best[0].steps <= bound or options.out_of_time():
            break
    assert best is not None
    return best


def _orient(instance: XTreeInstance, schedule: Schedule | None) -> Schedule | None:
    if schedule is None or instance.collective == "allgather":
        return schedule
    return schedule.reversed_in_time(adds=True)
