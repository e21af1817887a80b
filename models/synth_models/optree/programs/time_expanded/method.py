"""Method ``time_expanded`` (program): the fewest steps of any schedule (CP-SAT, ``programs/time_expanded/model.py``).

Horizons are tried from the lower bound (method ``bound``) upwards to what ``relay`` needs. Each is first sought among
schedules that repeat themselves under a rotation of the ring by ``g`` nodes, for the divisors ``g`` of N in ascending
order (on a grid: under all rotations of its rings): what is found there is a schedule like any other. Only the model
without rotations (``g = N``) proves a horizon infeasible. Sizes up to ``MOST_BINARIES`` binaries in ``send``.

One thread seeks rotating schedules by the strategy that finds them soonest and proves by all of CP-SAT's strategies in
turns (one alone gets stuck), which repeats by seed; several threads race each other and do not.
"""

from __future__ import annotations

import time

from synth.errors import SizeLimitError, UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers import cpsat
from synth.solvers.horizon import Decision, HorizonProgram, Incumbent, Proven, fewest
from synth_models.optree.bounds.steps import lower_bound
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import refuse_unmeetable
from synth_models.optree.programs.time_expanded.model import binaries, build
from synth_models.optree.references.relay import relay

MOST_BINARIES = 300_000
WITHOUT_LP = {"linearization_level": 0}


def solve(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``time_expanded``."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    horizon = options.method.get("horizon")
    if (size := binaries(instance, horizon or 1)) > MOST_BINARIES:
        raise UnsupportedError(_too_large(instance, horizon or 1, size))
    known = relay(instance, options) if horizon is None and options.method.get("warm_start", True) else None
    steps, words, certificate = lower_bound(instance, options)
    undecided = False

    def decided(steps: int) -> Decision:
        nonlocal undecided
        parts = 1
        if known is not None:  # keep some of the time for the horizons between this one and relay's
            parts = known.steps - steps if undecided else min(2, known.steps - steps)
        decision = decide(instance, _share(options, max(1, parts)), steps)
        undecided = undecided or decision.answer == "limit"
        return decision

    outcome = fewest(
        HorizonProgram(decided, "CP-SAT", "steps", size=lambda found: found.steps, hold=lambda found: found),
        Proven(steps, words, certificate),
        options,
        Incumbent(known, "relay"),
        horizon=horizon,
        seek=True,
    )
    outcome.message = cpsat.with_caveat(outcome.message, options)
    return outcome


def _share(options: RunOptions, parts: int) -> RunOptions:
    """The options with a ``parts``-th of the time that is left."""
    return options if parts == 1 else options.part(1 / parts)


def _too_large(instance: OpTreeInstance, horizon: int, size: int) -> str:
    return (
        f"the time-expanded program takes up to {MOST_BINARIES} binaries; {horizon} steps on {instance.nodes} "
        f"nodes need {size}; use relay and bound"
    )


def periods(instance: OpTreeInstance) -> list[int]:
    """The classes of schedules to seek in, the most restricted first (see the model)."""
    nodes = instance.nodes
    if instance.grid is None:
        return [g for g in range(1, nodes + 1) if nodes % g == 0]
    return [1, nodes] if any(dimension.ring for dimension in instance.dimensions) else [nodes]


def decide(instance: OpTreeInstance, options: RunOptions, horizon: int) -> Decision:
    """A schedule of ``horizon`` steps, or proven infeasible, or neither in time. Raises :class:`SizeLimitError`."""
    nodes = instance.nodes
    if (size := binaries(instance, horizon)) > MOST_BINARIES:
        raise SizeLimitError(_too_large(instance, horizon, size))
    decision = Decision("limit")
    for period in periods(instance):
        started = time.monotonic()
        program = build(instance, horizon, period)
        decision.build_s += time.monotonic() - started
        share = options
        if period < nodes:  # half of the time for the class in which most is found
            share = _share(options, 2 if period == 1 else 8)
        result, solver = cpsat.solve(program.model, share, alone=cpsat.IN_TURNS if period == nodes else WITHOUT_LP)
        decision.solve_s += result.solve_s
        if result.has_point:
            decision.answer, decision.solution = "feasible", program.circuits(solver.boolean_value)
            if period < nodes:
                grid = instance.grid is not None
                every = "under all rotations of the rings" if grid else f"every {period} nodes"
                decision.message = f"found among schedules that repeat {every}"
        elif result.termination == "error":
            decision.answer, decision.message = "error", result.message
        elif result.termination == "infeasible" and period == nodes:
            decision.answer = "infeasible"
        if decision.answer != "limit":
            break
    return decision
