"""How long a plan takes in each of several scenarios (:mod:`synth_models.fabric.problem.scenarios`)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from synth.errors import UnsupportedError
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.ready import in_ticks
from synth_models.fabric.problem.scenarios import refused
from synth_models.fabric.problem.several import with_ready
from synth_models.fabric.scheduling.gates import Waiting, started
from synth_models.fabric.scheduling.hop_times import hop_times
from synth_models.fabric.scheduling.late_start import first_ticks, waits_of_leaving
from synth_models.fabric.scheduling.list_scheduling import occupied
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule


def worst_seconds(instance: FabricInstance, schedule: Schedule) -> Fraction:
    """The end of the worst scenario of the plan that a schedule is. Raises as
    :func:`synth_models.fabric.scheduling.gates.started`."""
    moves, ticks, plain = Transfers.of_schedule(schedule), schedule.ticks_per_s, instance.on_time
    times, uses, resources = occupied(plain, moves, ticks, False)
    followers = waits_of_leaving(plain, moves, hop_times(plain.machine, moves, ticks, False), schedule.start)
    missing = np.bincount(followers.transfer, minlength=len(moves.piece)).astype(np.int64)
    waiting = Waiting(uses, resources, followers, missing)
    order = np.empty(len(moves.piece), dtype=np.int64)
    order[np.argsort(schedule.start, kind="stable")] = np.arange(len(order))
    count, sums = np.diff(schedule.route_start), instance.blocks.goal[instance.blocks.origin == EVERYONE]
    wanting = list(instance.members) if np.any(sums == EVERYONE) else sums
    worst = 0
    for row in instance.scenarios or ():
        first = first_ticks(with_ready(plain, row), moves, times, ticks)
        start = started(waiting, order, first, in_order=True)
        own = in_ticks(row, plain.machine.nodes, ticks)[wanting]
        worst = max(worst, int((np.repeat(start, count) + times.arrival).max(initial=0)), int(own.max(initial=0)))
    return Fraction(worst, ticks)


def must_be_replayed(instance: FabricInstance) -> None:
    """Raises :class:`UnsupportedError` where several scenarios are not replayed on the machine."""
    words = None if instance.scenarios is None else refused(instance)
    if words is not None:
        raise UnsupportedError(words)


def plans(instance: FabricInstance, schedule: Schedule) -> Iterator[tuple[str, Schedule]]:
    """In words, a schedule for ranks that are all ready at once as the plan of all scenarios. Raises
    :class:`UnsupportedError` where its transfers are no paths."""
    net, is_rank = instance.machine.network, ~instance.machine.is_switch
    for ends in (net.src, net.dst):
        if np.any(np.add.reduceat(is_rank[ends[schedule.link]].astype(np.int64), schedule.route_start[:-1]) != 1):
            raise UnsupportedError("one plan is of paths from rank to rank, which its transfers are not")
    yield "as one plan", schedule
