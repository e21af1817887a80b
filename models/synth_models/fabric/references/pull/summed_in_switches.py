"""Sums of a search over switches that store and add, which the search takes for such that only store."""

from __future__ import annotations

import numpy as np

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.renumbered import waits_of
from synth_models.fabric.scheduling.switch_sums import meet_in_switches
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule


def summed_up_again(instance: FabricInstance, schedule: Schedule) -> Schedule:
    """The schedule; where its sums pass switches that store and add, timed again as in-trees, in the order of its
    starts."""
    if not meet_in_switches(instance, schedule):
        return schedule
    waited = waits_of(instance, schedule)
    assert waited is not None
    start, before = waited
    waiting = np.repeat(np.arange(schedule.transfers), np.diff(start))
    copied = np.zeros(schedule.transfers, dtype=bool)
    copied[waiting[~schedule.adds[before]]] = True
    kept = ~schedule.adds[waiting] & ~(copied[waiting] & schedule.adds[before])
    lengths = np.bincount(waiting[kept], minlength=schedule.transfers)
    order = np.empty(schedule.transfers, dtype=np.int64)
    order[np.argsort(schedule.start, kind="stable")] = np.arange(schedule.transfers)
    return timed(instance, Transfers.of_schedule(schedule, (starts(lengths), before[kept]), order))
