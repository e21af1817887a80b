"""Dynamic programs over the steps: the shortest path over (step, topology), and Harvest's Algorithm 1 with its table of
exactly k reconfigurations. Both take the seconds of every step on every topology, shape (steps, topologies)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_models.harvest.solution import FloatArray, IntArray


def shortest_schedule(cost: FloatArray, reconfiguration_delay: float) -> tuple[float, IntArray]:
    """Least total time and the topology of every step, shape (steps,); O(steps * topologies).

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


@dataclass(frozen=True)
class Front:
    """The table of Algorithm 1: for k = 0, 1, … changes, ``time[k]`` without their delays, and ``topology[k]``, the
    topology of every step, shape (k values, steps)."""

    time: FloatArray
    topology: IntArray

    def best(self, reconfiguration_delay: float) -> int:
        """The k of least total time, the smallest of those that tie."""
        return int((self.time + reconfiguration_delay * np.arange(len(self.time))).argmin())

    def used(self) -> set[tuple[int, int]]:
        """Every (step, topology) of the table."""
        return {(step, int(number)) for row in self.topology for step, number in enumerate(row)}

    def pareto(self) -> list[int]:
        """The k whose time is below that of every smaller k."""
        least = np.minimum.accumulate(np.concatenate([[np.inf], self.time[:-1]]))
        return np.flatnonzero(self.time < least * (1 - 1e-12)).tolist()


def interval_times(cost: FloatArray) -> tuple[FloatArray, IntArray]:
    """``time[a, b]`` of steps a … b-1 on one topology, the best one (``topology[a, b]``); infinite for b <= a.

    O(steps^2 * topologies); the CompletionTime of Algorithm 1 over a set of candidates.
    """
    steps, topologies = cost.shape
    time, topology = np.full((steps + 1, steps + 1), np.inf), np.zeros((steps + 1, steps + 1), dtype=np.int64)
    for a in range(steps):
        total = np.zeros(topologies)
        for b in range(a + 1, steps + 1):
            total = total + cost[b - 1]
            topology[a, b] = total.argmin()
            time[a, b] = total[topology[a, b]]
    return time, topology


def front(cost: FloatArray, most: int | None = None) -> Front:
    """Harvest's Algorithm 1 for k = 0 … ``most`` (default: a change before every step); O(most * steps^2) after
    :func:`interval_times`. Intervals that follow each other may have the same topology, as in the paper."""
    steps = len(cost)
    most = steps - 1 if most is None else min(most, steps - 1)
    time, topology = interval_times(cost)
    table, following = np.full((most + 1, steps + 1), np.inf), np.full((most + 1, steps + 1), steps, dtype=np.int64)
    table[0, :steps] = time[:steps, steps]
    for t in range(1, most + 1):  # Lemma 1; the next interval is not empty
        totals = time + table[t - 1][None, :]
        following[t] = totals.argmin(axis=1)
        table[t] = totals.min(axis=1)
    chosen = np.zeros((most + 1, steps), dtype=np.int64)
    for k in range(most + 1):
        a = 0
        for t in range(k, -1, -1):
            b = int(following[t, a]) if t else steps
            chosen[k, a:b] = topology[a, b]
            a = b
    return Front(table[:, 0], chosen)
