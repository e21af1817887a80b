"""The least total time over the topologies of all steps: a shortest path over (step, topology)."""

from __future__ import annotations

import numpy as np

from synth_models.harvest.solution import FloatArray, IntArray


def shortest_schedule(cost: FloatArray, reconfiguration_delay: float) -> tuple[float, IntArray]:
    """Least total time and the topology of every step, shape (steps,); ``cost`` holds the seconds of every step on
    every topology, shape (steps, topologies). O(steps * topologies).

    Because a step costs the same on a topology whatever the interval it is in, the program over intervals (their Lemma
    1) is a shortest path. Ties stay on the topology they are on. Infinite, with topology 0, if nothing is possible.
    """
    steps, topologies = cost.shape
    came_from = np.zeros((steps, topologies), dtype=np.int64)
    stay = np.arange(topologies)
    total = cost[0].copy()
    for i in range(1, steps):
        best = int(total.argmin())
        change = total[best] + reconfiguration_delay
        came_from[i] = np.where(total <= change, stay, best)
        total = np.minimum(total, change) + cost[i]
    chosen = np.zeros(steps, dtype=np.int64)
    chosen[-1] = int(total.argmin())
    for i in range(steps - 1, 0, -1):
        chosen[i - 1] = came_from[i, chosen[i]]
    return float(total[chosen[-1]]), chosen
