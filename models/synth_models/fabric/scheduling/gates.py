"""Moments before which transfers do not start: each is a transfer on a resource of its own, which others wait for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.clock.deadline import SLACK_S, OutOfTime, left
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.scheduling.followers import Followers
from synth_models.fabric.scheduling.list_scheduling import list_scheduled, list_scheduled_in_order, placed_in_gaps
from synth_models.fabric.scheduling.reservations import Uses


class Waiting(NamedTuple):
    """What transfers occupy on so many ``resources``, who waits for which, and for how many each waits (``missing``,
    shape (transfers,))."""

    uses: Uses
    resources: int
    followers: Followers
    missing: IntArray


class Stages(NamedTuple):
    """Moments that transfers wait for together: when all ``coming`` transfers of a stage have arrived, ``lag`` ticks
    after their starts, those ``leaving`` may start. ``of_coming``, ``of_leaving``: the stage of each."""

    coming: IntArray
    of_coming: IntArray
    lag: IntArray
    leaving: IntArray
    of_leaving: IntArray


def with_stages(waiting: Waiting, stages: Stages) -> Waiting:
    """The same with a transfer on a resource of its own behind the others for each stage, all numbered without gaps."""
    uses, resources, followers, missing = waiting
    count, extra = len(missing), int(stages.of_coming.max(initial=-1)) + 1
    uses = Uses(
        np.concatenate([uses.row, uses.row[-1] + 1 + np.arange(extra)]),
        np.concatenate([uses.resource, resources + np.arange(extra)]),
        np.concatenate([uses.offset, np.zeros(extra, dtype=np.int64)]),
        np.concatenate([uses.duration, np.ones(extra, dtype=np.int64)]),
    )
    old = np.repeat(np.arange(count), np.diff(followers.row))
    before = np.concatenate([old, stages.coming, count + stages.of_leaving])
    after = np.concatenate([followers.transfer, count + stages.of_coming, stages.leaving])
    lag = np.concatenate([followers.lag, stages.lag, np.zeros(len(stages.leaving), dtype=np.int64)])
    order = np.argsort(before, kind="stable")
    rows = starts(np.bincount(before, minlength=count + extra))
    missing = missing + np.bincount(stages.leaving, minlength=count)
    missing = np.concatenate([missing, np.bincount(stages.of_coming, minlength=extra)])
    return Waiting(uses, resources + extra, Followers(rows, after[order], lag[order]), missing.astype(np.int64))


def started(
    waiting: Waiting, priority: IntArray, first: IntArray, in_gaps: bool = False, in_order: bool = False
) -> IntArray:
    """Start ticks of the transfers in this order of priority, none before its tick in ``first``; shape (transfers,).

    ``in_gaps``, ``in_order`` as in :func:`synth_models.fabric.scheduling.list_scheduling.timed`. Raises ``ValueError``
    where some wait for each other, :class:`OutOfTime` where that would take longer than the time limit in force.
    """
    count, later = len(priority), np.flatnonzero(first > 0)
    moments, gate = np.unique(first[later], return_inverse=True)
    extra, order = len(moments), np.argsort(gate.reshape(-1), kind="stable")
    uses, resources, followers, missing = waiting
    uses = Uses(
        np.concatenate([uses.row, uses.row[-1] + 1 + np.arange(extra)]),
        np.concatenate([uses.resource, resources + np.arange(extra)]),
        np.concatenate([uses.offset, np.zeros(extra, dtype=np.int64)]),
        np.concatenate([uses.duration, np.ones(extra, dtype=np.int64)]),
    )
    gated = np.bincount(gate.reshape(-1), minlength=extra)
    followers = Followers(
        np.concatenate([followers.row, followers.row[-1] + starts(gated)[1:]]),
        np.concatenate([followers.transfer, later[order]]),
        np.concatenate([followers.lag, first[later][order]]),
    )
    missing = np.concatenate([missing, np.zeros(extra, dtype=np.int64)])
    missing[later] += 1
    priority = np.concatenate([priority, np.full(extra, priority.min(initial=0) - 1)])
    kernel = placed_in_gaps if in_gaps else list_scheduled_in_order if in_order else list_scheduled
    order = np.argsort(priority, kind="stable") if in_order else priority
    start, in_time = kernel(uses, resources + extra, followers, order, missing, left() + SLACK_S)
    if not in_time:
        raise OutOfTime
    if np.any(start < 0):
        raise ValueError("some transfers wait for each other")
    found: IntArray = start[:count]
    return found
