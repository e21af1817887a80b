"""Method ``dp_k``: Harvest's Algorithm 1 (Rahman et al.) over the candidate topologies.

===============  =========================  ================================================  =======
paper            code                       meaning                                           unit
===============  =========================  ================================================  =======
t_c(a, b) (6)    ``interval_times``         steps a … b on the one topology best for them     s
k                index of ``Front.time``    reconfigurations                                  –
DP[a][t] (7)     ``table[t, a]``            steps a … s with t of them, without their delays  s
next[a][t]       ``following[t, a]``        step before which the first of them is            –
topo[a][t]       ``topology[a, b]``         topology of steps a … b                           –
alpha_r          ``reconfiguration_delay``  time of one reconfiguration                       s
===============  =========================  ================================================  =======

Deviations: CompletionTime is over a set of candidates; steps are counted from 0 and intervals end before ``b``.
Intervals that follow each other may have the same topology, as in the paper.

Theorem 1 adds ``k * alpha_r`` after the table is filled, which takes that every reconfiguration costs the same. Where
they do not (overlap, delays that depend on what changes), the delays are part of the table, and where they depend on
the topologies on both sides, so is the topology: :func:`front_with_delays`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.method import Outcome
from synth.options import RunOptions
from synth.text.quantities import SECONDS, shown
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.delays import Delays, Paid
from synth_models.harvest.parts.ratings import Ratings
from synth_models.harvest.parts.shortest_path import cheapest_change


def solve(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """Algorithm 1 over the candidates: the least time for every number of reconfigurations, and the best.

    The message lists the Pareto front as ``k: seconds without the reconfigurations``, or with them where they are not
    all alike. Complexity: O(steps^2 * candidates + steps^3) per pass, then O(steps^2 * candidates), or * candidates^2.
    The value is that of ``candidates``.
    """
    ratings = Ratings(instance, options)
    alike = not instance.delay_varies and not instance.overlap[1:].any()
    delays = Delays(instance, ratings.topologies)
    wanted = options.method.get("reconfigurations")

    def filled(cost: FloatArray) -> tuple[Front, int]:
        table = front(cost) if alike else front_with_delays(cost, delays.before)
        least = table.best(instance.reconfiguration_delay if alike else 0.0)
        return table, least if wanted is None else min(int(wanted), len(table.time) - 1)

    def this_k_alone(cost: FloatArray) -> tuple[IntArray, Iterable[tuple[int, int]]]:
        table, k = filled(cost)
        return table.topology[k], enumerate(table.topology[k].tolist())

    first = ratings.settle(this_k_alone)
    told = f"{'best k' if wanted is None else 'k as asked'}; other k were not settled in time"
    options.held.offer(lambda: ratings.schedule(first), 0.0, told)
    found, k = ratings.settle(lambda cost: ((table := filled(cost)), table[0].used()))
    points = ", ".join(f"{j}: {shown(float(found.time[j]), SECONDS)}" for j in found.pareto())
    word = "best k" if wanted is None else "k as asked"
    kind = "without their delays" if alike else "with what is paid for them"
    message = f"{word} = {k}; Pareto front (reconfigurations: time {kind}) {points}"
    return Outcome("finished", ratings.schedule(found.topology[k]), message=f"{message}; {ratings.tried()}")


@dataclass(frozen=True)
class Front:
    """The table of Algorithm 1: for k = 0, 1, … changes, ``time[k]`` without their delays (of
    :func:`front_with_delays`: with them), and ``topology[k]``, the topology of every step, shape (k values, steps)."""

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
    """(5), (6): ``time[a, b]`` of steps a … b-1 on the topology best for them, ``topology[a, b]``; infinite for b <= a.

    O(steps^2 * topologies); the paper's CompletionTime.
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
    """(7), Harvest's Algorithm 1 for k = 0 … ``most`` (default: a change before every step); O(most * steps^2) after
    :func:`interval_times`."""
    steps = len(cost)
    most = steps - 1 if most is None else min(most, steps - 1)
    time, topology = interval_times(cost)
    table, following = np.full((most + 1, steps + 1), np.inf), np.full((most + 1, steps + 1), steps, dtype=np.int64)
    table[0, :steps] = time[:steps, steps]
    for t in range(1, most + 1):  # (7), Lemma 1; the next interval is not empty
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


def front_with_delays(cost: FloatArray, paid: Callable[[int], Paid]) -> Front:
    """As :func:`front`, ``time`` including what ``paid(i)`` says for a change before step i: a shortest path over
    (step, topology) for every number of changes. O(steps^2 * topologies), with costs by topologies * topologies^2."""
    steps, topologies = cost.shape
    total = np.full((steps, topologies), np.inf)  # after k changes on the topology
    total[0] = cost[0]
    came_from = np.zeros((steps, steps, topologies), dtype=np.int64)  # step, changes, topology: itself, if none
    stay = np.arange(topologies)
    for i in range(1, steps):
        before = paid(i)
        moved = total.copy()
        came_from[i] = stay
        for k in range(1, steps):
            before_k, least = cheapest_change(total[k - 1], before)
            better = least < total[k]
            moved[k] = np.where(better, least, total[k])
            came_from[i, k] = np.where(better, -1 - before_k, stay)  # negative: one change less
        total = moved + cost[i]
    chosen = np.zeros((steps, steps), dtype=np.int64)
    for most in range(steps):
        left, now = most, int(total[most].argmin())
        for i in range(steps - 1, 0, -1):
            chosen[most, i] = now
            origin = int(came_from[i, left, now])
            left, now = (left - 1, -1 - origin) if origin < 0 else (left, origin)
        chosen[most, 0] = now
    time = np.minimum.accumulate(total.min(axis=1))
    for k in range(1, steps):
        if time[k] == time[k - 1]:
            chosen[k] = chosen[k - 1]
    return Front(time, chosen)
