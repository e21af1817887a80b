"""Sums of a search over switches that store and add, which the search takes for such that only store."""

from __future__ import annotations

import numpy as np

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.scheduling.list_scheduling import Transfers, timed
from synth_models.fabric.scheduling.renumbered import waits_of
from synth_models.fabric.scheduling.switch_sums import meet_in_switches
from synth_models.fabric.solution import Schedule


def summed_up_again(instance: FabricInstance, schedule: Schedule) -> Schedule:
    """The schedule; where its sums pass switches that store and add, timed again as in-trees, in the order of its
    starts."""
    if not meet_in_switches(instance, schedule):
        return schedule
    start, before = waits_of(instance, schedule)
    assert start is not None
    waiting = np.repeat(np.arange(schedule.transfers), np.diff(start))
    copied = np.zeros(schedule.transfers, dtype=bool)
    copied[waiting[~schedule.adds[before]]] = True
    kept = ~schedule.adds[waiting] & ~(copied[waiting] & schedule.adds[before])
    lengths = np.bincount(waiting[kept], minlength=schedule.transfers)
    order = np.empty(schedule.transfers, dtype=np.int64)
    order[np.argsort(schedule.start, kind="stable")] = np.arange(schedule.transfers)
    moves = Transfers(
        schedule.piece_block, schedule.piece_bytes, schedule.piece, schedule.adds, order, schedule.route_start,
        schedule.link, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), before[kept],
    )  # fmt: skip
    return timed(instance, moves)
