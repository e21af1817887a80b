"""Moments before which transfers do not start: each is a transfer on a resource of its own, which others wait for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.clock.deadline import SLACK_S, OutOfTime, left
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.scheduling.followers import Followers
from synth_models.fabric.scheduling.list_scheduling import list_scheduled, placed_in_gaps
from synth_models.fabric.scheduling.reservations import Uses


class Waiting(NamedTuple):
    """What transfers occupy on so many ``resources``, who waits for which, and for how many each waits (``missing``,
    shape (transfers,))."""

    uses: Uses
    resources: int
    followers: Followers
    missing: IntArray


def started(waiting: Waiting, priority: IntArray, first: IntArray, in_gaps: bool) -> IntArray:
    """Start ticks of the transfers in this order of priority, none before its tick in ``first``; shape (transfers,).

    ``in_gaps`` as in :func:`synth_models.fabric.scheduling.list_scheduling.timed`. Raises ``ValueError`` where some
    wait for each other, :class:`OutOfTime` where that would take longer than the time limit in force.
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
    kernel = placed_in_gaps if in_gaps else list_scheduled
    start, in_time = kernel(uses, resources + extra, followers, priority, missing, left() + SLACK_S)
    if not in_time:
        raise OutOfTime
    if np.any(start < 0):
        raise ValueError("some transfers wait for each other")
    found: IntArray = start[:count]
    return found
