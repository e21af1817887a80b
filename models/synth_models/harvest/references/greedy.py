"""Method ``greedy`` (ours): reconfigure when the step alone gains more than the delay."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.delays import Delays
from synth_models.harvest.parts.ratings import Ratings


def solve(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """Begin on the best candidate for the first step; reconfigure to the best one for a step when that step alone
    gains more than the reconfiguration delay. One pass, no guarantee."""
    ratings = Ratings(instance, options)
    delays = Delays(instance, ratings.topologies)

    def search(cost: FloatArray) -> tuple[IntArray, Iterable[tuple[int, int]]]:
        best = cost.argmin(axis=1)
        chosen, now, used = np.zeros(len(cost), dtype=np.int64), int(best[0]), []
        for i in range(len(cost)):
            used += [(i, now), (i, int(best[i]))]
            if cost[i, now] - cost[i, best[i]] > delays.change(i, now, int(best[i])):
                now = int(best[i])
            chosen[i] = now
        return chosen, used

    chosen = ratings.settle(search)
    return Outcome("finished", ratings.schedule(chosen), message=ratings.tried())
