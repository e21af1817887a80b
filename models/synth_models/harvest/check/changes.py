"""What the changes of topology of a schedule cost, counted from its link counts; imports no method.

A change before a step takes the reconfiguration delay, the delay per circuit for every link of which there are more
than before, and the table's time for the number of ports that change. A GPU has as many outputs, and inputs, that
change as it loses links or gains links there, whichever is more: a lost link's port is used for a gained one first, and
the rest fall idle, or were. Nothing where the link counts are the same. Then the step's overlap is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.solution import Schedule


@dataclass(frozen=True)
class Changes:
    """What precedes every step, each of shape (steps,), the first entry 0: whether the link counts ``differ`` from the
    step before, ``circuits`` set up, ``ports`` changed (inputs and outputs), the ``seconds`` of the change and what is
    ``paid`` of them."""

    differ: BoolArray
    circuits: IntArray
    ports: IntArray
    seconds: FloatArray
    paid: FloatArray


def changes_of(instance: HarvestInstance, schedule: Schedule) -> Changes:
    """Count every change of a schedule whose topologies are right."""
    steps = len(schedule.topology_of_step)
    known: dict[tuple[int, int], tuple[int, int]] = {}
    circuits, ports = np.zeros(steps, dtype=np.int64), np.zeros(steps, dtype=np.int64)
    seconds = np.zeros(steps)
    for step, pair in enumerate(pairwise(schedule.topology_of_step.tolist()), start=1):
        if pair not in known:
            before, after = (schedule.topologies[number] for number in pair)
            known[pair] = _difference(before, after, instance.gpus)
        circuits[step], ports[step] = known[pair]
        seconds[step] = _seconds(instance, *known[pair])
    return Changes(ports > 0, circuits, ports, seconds, np.maximum(seconds - instance.overlap, 0.0))


def _difference(before: IntArray, after: IntArray, gpus: int) -> tuple[int, int]:
    """Circuits set up, and outputs and inputs that change."""
    rows = np.concatenate([before, after])
    signed = np.concatenate([-before[:, 2], after[:, 2]])
    ends, at = np.unique(rows[:, 0] * gpus + rows[:, 1], return_inverse=True)
    more = np.bincount(at, signed, len(ends)).astype(np.int64)  # whole numbers below 2^53
    ports = 0
    for gpu in (ends // gpus, ends % gpus):
        gained, lost = (np.bincount(gpu, np.maximum(0, sign * more), gpus) for sign in (1, -1))
        ports += int(np.maximum(gained, lost).sum())
    return int(np.maximum(0, more).sum()), ports


def _seconds(instance: HarvestInstance, circuits: int, ports: int) -> float:
    """Infinite beyond the range of a float."""
    if not ports:
        return 0.0
    exact = Fraction(instance.reconfiguration_delay) + circuits * Fraction(instance.delay_per_circuit or 0.0)
    exact += Fraction(_table(instance, ports))
    try:
        return float(exact)
    except OverflowError:
        return float("inf")


def _table(instance: HarvestInstance, ports: int) -> float:
    """The row for that many ports; 0 without a table."""
    return next((time for most, time in instance.delay_by_ports or () if ports <= most), 0.0)


def least_paid(instance: HarvestInstance, step: int) -> Fraction:
    """Seconds that any change before the step takes at least, in a schedule that need not be beaten.

    Two ports change at least. Without a table some circuit is set up: a topology whose links are all in the one before
    can be replaced by that one, which makes no step slower and sets up no more circuits later.
    """
    seconds = Fraction(instance.reconfiguration_delay) + Fraction(_table(instance, 2))
    if instance.delay_by_ports is None:
        seconds += Fraction(instance.delay_per_circuit or 0.0)
    return max(Fraction(0), seconds - Fraction(float(instance.overlap[step])))


def change_of_permutations(instance: HarvestInstance, circuits: int) -> Fraction:
    """Seconds of a change that sets up that many circuits where every GPU has one link out and one in all the time, so
    that an output and an input change a circuit; nothing hidden, not rounded."""
    seconds = Fraction(instance.reconfiguration_delay) + circuits * Fraction(instance.delay_per_circuit or 0.0)
    return seconds + Fraction(_table(instance, 2 * circuits))
