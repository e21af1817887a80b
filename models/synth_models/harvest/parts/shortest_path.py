"""The least total time over the topologies of all steps: a shortest path over (step, topology)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth_models.harvest.parts.delays import Paid


def shortest_schedule(cost: FloatArray, paid: float | Callable[[int], Paid]) -> tuple[float, IntArray]:
    """Least total time and the topology of every step, shape (steps,); ``cost`` holds the seconds of every step on
    every topology, shape (steps, topologies), ``paid`` what a change costs: one number, or what it is before a step
    (one number, or by topologies). O(steps * topologies), with costs by topologies O(steps * topologies^2).

    Because a step costs the same on a topology whatever the interval it is in, the program over intervals (their Lemma
    1) is a shortest path, also where changes differ in what they cost. Ties stay on the topology they are on. Infinite,
    with topology 0, if nothing is possible.
    """
    steps, topologies = cost.shape
    came_from = np.zeros((steps, topologies), dtype=np.int64)
    total = cost[0].copy()
    for i in range(1, steps):
        came_from[i], total = cheapest_change(total, paid(i) if callable(paid) else paid)
        total = total + cost[i]
    chosen = np.zeros(steps, dtype=np.int64)
    chosen[-1] = int(total.argmin())
    for i in range(steps - 1, 0, -1):
        chosen[i - 1] = came_from[i, chosen[i]]
    return float(total[chosen[-1]]), chosen


def cheapest_change(total: FloatArray, paid: Paid) -> tuple[IntArray, FloatArray]:
    """For every topology the one to come from (itself, in a tie) and the least of ``total`` with the change paid."""
    stay = np.arange(len(total))
    if isinstance(paid, np.ndarray):
        through = total[:, None] + paid
        best = through.argmin(axis=0)
        change = through[best, stay]
        return np.where(total <= change, stay, best), np.minimum(total, change)
    first = int(total.argmin())
    change = total[first] + paid
    return np.where(total <= change, stay, first), np.minimum(total, change)
