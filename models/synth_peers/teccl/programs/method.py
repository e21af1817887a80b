"""``epochs``: the fewest epochs of a fixed length (TE-CCL), and the schedule in seconds made of them."""

from __future__ import annotations

import time
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers.catalogue import require
from synth.solvers.horizon import NO_INCUMBENT, HorizonProgram, Incumbent, Proven, fewest
from synth.text.quantities import SECONDS, shown
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.first_schedule import hold_first
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.scheduling.chunks import seconds
from synth_models.fabric.scheduling.reversal import reversed_instance
from synth_models.fabric.solution import Schedule
from synth_peers.teccl.check.infeasibility_proof import EPOCHS
from synth_peers.teccl.check.plan import MOST_COUNTED
from synth_peers.teccl.programs.claims import claims, infeasible
from synth_peers.teccl.programs.counted_bound import Counted, counted
from synth_peers.teccl.programs.fluid_insertion import Streams
from synth_peers.teccl.programs.grid import epoch_seconds, grid_of
from synth_peers.teccl.programs.one_horizon import Decider
from synth_peers.teccl.programs.priced import likely_cut, priced
from synth_peers.teccl.programs.sends import Sends
from synth_peers.teccl.programs.timetable import schedule_of

BOUND_SHARE = 0.2  # of the time limit goes into the bound in seconds
PROOF_SHARE = 0.5  # of it has gone when no stronger bound on the epochs is looked for
Plan = Sends | Streams


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Schedule made of a plan of the fewest epochs, with the plan beside it.

    Solutions: :class:`synth_models.fabric.solution.Schedule` with a plan of kind ``epochs``
    (:mod:`synth_peers.teccl.check.plan`). The bound is one of seconds; what is proven of epochs is in the plan.
    Raises :class:`synth.errors.SizeLimitError` where the program is too large and nothing else finds a plan.
    """
    if instance.collective == "allreduce":
        words = "epochs has no program for allreduce: take reduce_scatter and allgather one after the other"
        return Outcome("unsupported", message=words)
    if instance.special_switches:
        return Outcome("unsupported", message="epochs knows switches that are all alike and add nothing")
    if not len(instance.blocks):
        return Outcome("unsupported", message="nothing has to move, so there are no epochs to count")
    begun = time.monotonic()
    if options.method["horizon"] is None:
        hold_first(instance, options, "the search for a plan", 0)
    backwards = bool(np.any(instance.blocks.origin == EVERYONE))
    there = _backwards(instance) if backwards else instance
    chunks = options.method["chunks"]
    grid = grid_of(there, epoch_seconds(there, options.method["tau"], chunks), chunks)
    search, early = _quiet(options), partial(_early, options)
    decider = Decider(grid, counted(grid, likely_cut(grid, early)), search)
    if decider.start is None or decider.epochs(decider.start) > decider.least.epochs:
        decider.least = priced(grid, decider.least, early)
    least = decider.least
    by = require(options.solver or "highs").title
    found = fewest(
        HorizonProgram(decider.decide, by, "epochs", decider.epochs),
        Proven(least.epochs, least.words) if options.method["counting"] else Proven(0, "nothing"),
        search,
        Incumbent(decider.start, decider.origin) if options.method["horizon"] is None else NO_INCUMBENT,
        horizon=options.method["horizon"],
        most=decider.most,
        seek=True,
    )
    return _outcome(instance, decider, found, least, options, time.monotonic() - begun)


def _early(options: RunOptions) -> bool:
    """Whether a bound on the epochs may still be looked for."""
    limit, left = options.time_limit_s, options.remaining()
    late = limit is not None and left is not None and left <= (1 - PROOF_SHARE) * limit
    options.clock.cut |= late
    return not late


def _backwards(instance: FabricInstance) -> FabricInstance:
    """The spreading that the reduction is when played backwards; no switch adds, so none may copy there."""
    there = copy(reversed_instance(instance))
    there.__dict__["switching"] = instance.switching.model_copy(update={"copies": False, "multicast": False})
    return there


def _quiet(options: RunOptions) -> RunOptions:
    """The same options for the search, whose epochs are no values of the objective; the bound in seconds needs the rest
    of the time."""
    limit = None if options.time_limit_s is None else (1 - BOUND_SHARE) * options.time_limit_s
    return replace(options, progress=type(options.progress)(), held=type(options.held)(), time_limit_s=limit)


def _outcome(
    instance: FabricInstance, decider: Decider, found: Outcome, least: Counted, options: RunOptions, spent: float
) -> Outcome:
    """The search's outcome with a schedule in seconds, a bound in seconds, and the epochs in words."""
    grid, proven = decider.grid, int(found.bound or 0)
    words = f"epochs of {shown(float(grid.tau), SECONDS)}"
    bound = strongest(instance, options.part())
    outcome = Outcome(
        "finished" if found.termination == "optimal" else found.termination,
        None,
        float_below(bound.seconds),
        str(bound),
        {**bound.certificate(), **_refuted(decider, found, least, options)},
        found.message,
        found.build_s,
        max(found.solve_s, spent - found.build_s),
    )
    if found.solution is None:
        outcome.message = f"{words}: {found.message or found.bound_proof or 'no plan found'}"
        return outcome
    made = schedule_of(instance, grid, found.solution, options)
    if made is None:
        outcome.message = f"{words}: the plan moves nothing"
        return outcome
    epochs = decider.epochs(found.solution)
    outcome.solution = replace(made[0], plan=claims(grid, found.solution, epochs, least, proven))
    outcome.message = f"{epochs} {words}, {_proof(epochs, proven, found)}; {_told(instance, made, epochs * grid.tau)}"
    if found.message:
        outcome.message += f" ({found.message})"
    return outcome


def _refuted(decider: Decider, found: Outcome, least: Counted, options: RunOptions) -> dict[str, Any]:
    """Why there is no plan of the number that was asked for, under the certificate's key; empty where a solver says
    it, or nobody."""
    horizon, grid = options.method["horizon"], decider.grid
    known = least if options.method["counting"] else decider.far
    if found.termination != "infeasible" or horizon >= known.epochs or grid.instance.machine.nodes > MOST_COUNTED:
        return {}
    return {EPOCHS: infeasible(grid, known, options.method["tau"], horizon)}


def _proof(epochs: int, proven: int, found: Outcome) -> str:
    if proven >= epochs:
        return f"the fewest ({found.bound_proof})"
    return f"at least {proven} ({found.bound_proof})"


def _told(instance: FabricInstance, made: tuple[Schedule, int], planned: Fraction) -> str:
    took = seconds(instance, made[0])
    pieces = f"{made[1]} piece{'s' if made[1] > 1 else ''} a chunk"
    if took <= planned:
        return f"{shown(float(took), SECONDS)} with {pieces}"
    more = float(took / planned - 1)
    return (
        f"{shown(float(took), SECONDS)} with {pieces}, {100 * more:.2g} % more than the epochs' "
        f"{shown(float(planned), SECONDS)}, which leave out latencies and what crossing a switch takes"
    )
