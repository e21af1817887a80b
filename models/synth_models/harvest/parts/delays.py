"""What is paid for a change of topology before every step, for all pairs of topologies at once.

A circuit is kept when both topologies have it, parallel links numbered 1, 2, … from either end; what a change sets up
is the rest of the later one's. A port is kept with a kept circuit, or when it is idle in both. So both numbers follow
from how many of such marks two topologies have in common: one sparse product for all pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy import sparse

from synth.arrays import FloatArray, IntArray
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.topologies import Topology

Paid = float | FloatArray  # the same for every change, or from (row) and to (column) every topology


class Delays:
    """``before(i)`` is what a change of topology before step i costs, in seconds: one number where all changes cost the
    same, else an array (topologies, topologies), from row to column, 0 on the diagonal."""

    def __init__(self, instance: HarvestInstance, topologies: Sequence[Topology]) -> None:
        self.instance = instance
        self.seconds: Paid = instance.reconfiguration_delay
        if instance.delay_varies:
            circuits, ports = changed_between([one.links for one in topologies], instance.gpus, instance.ports)
            self.seconds = change_seconds(instance, circuits, ports)

    def before(self, step: int) -> Paid:
        """Seconds paid for a change before that step: what its overlap leaves."""
        hidden = float(self.instance.overlap[step])
        if isinstance(self.seconds, float):
            return max(0.0, self.seconds - hidden)
        return np.maximum(self.seconds - hidden, 0.0)

    def change(self, step: int, old: int, new: int) -> float:
        """What changing from topology ``old`` to ``new`` before the step costs."""
        paid = self.before(step)
        if isinstance(paid, float):
            return paid if old != new else 0.0
        return float(paid[old, new])


def changed_between(topologies: Sequence[IntArray], gpus: int, ports: int) -> tuple[IntArray, IntArray]:
    """Circuits set up, and ports changed (inputs and outputs), from every topology (row) to every other (column)."""
    circuit_marks, idle_marks = [], []
    for links in topologies:
        circuit_marks.append(_numbered(links[:, 0] * gpus + links[:, 1], links[:, 2], ports))
        idle = []
        for side in (0, 1):
            used = np.bincount(links[:, side], links[:, 2], gpus).astype(np.int64)
            idle.append(_numbered(np.arange(gpus, dtype=np.int64) + side * gpus, ports - used, ports))
        idle_marks.append(np.concatenate(idle))
    kept = _common(circuit_marks)
    total = kept.diagonal()
    return total[None, :] - kept, 2 * gpus * ports - 2 * kept - _common(idle_marks)


def _numbered(keys: IntArray, counts: IntArray, ports: int) -> IntArray:
    """``key * ports + j`` for j below its count."""
    first = np.cumsum(counts) - counts
    return np.repeat(keys * ports - first, counts) + np.arange(int(counts.sum()), dtype=np.int64)


def _common(marks: Sequence[IntArray]) -> IntArray:
    """How many marks every two lists share, shape (lists, lists)."""
    names, column = np.unique(np.concatenate(marks), return_inverse=True)
    row = np.repeat(np.arange(len(marks)), [len(own) for own in marks])
    has = sparse.csr_array((np.ones(len(row), dtype=np.int64), (row, column)), shape=(len(marks), max(1, len(names))))
    common: IntArray = (has @ has.T).toarray()
    return common


def change_seconds(instance: HarvestInstance, circuits: IntArray, ports: IntArray) -> FloatArray:
    """Seconds of changes that set up that many circuits and change that many ports, nothing hidden; 0 for no port."""
    per_circuit = instance.delay_per_circuit or 0.0
    with np.errstate(over="ignore"):  # beyond a float's range is infinite: never worth it
        seconds = instance.reconfiguration_delay + per_circuit * circuits + table_seconds(instance, ports)
    return np.where(ports > 0, seconds, 0.0)


def table_seconds(instance: HarvestInstance, ports: IntArray) -> FloatArray:
    """What the table says for that many ports each (at least 1); 0 without a table."""
    if instance.delay_by_ports is None:
        return np.zeros(ports.shape)
    most, seconds = (np.array(column) for column in zip(*instance.delay_by_ports, strict=True))
    found: FloatArray = seconds[np.searchsorted(most, ports)]
    return found


def least_change(instance: HarvestInstance) -> Fraction:
    """Seconds below which no change is, in schedules that need not be beaten, nothing hidden.

    Two ports change at least. Where the number of ports is free of charge, a change that sets up no circuit gains
    nothing: the topology before has all the links, so it is no slower and leaves no more to set up later.
    """
    least = Fraction(instance.reconfiguration_delay) + Fraction(float(table_seconds(instance, np.array(2))))
    return least if instance.delay_by_ports is not None else least + Fraction(instance.delay_per_circuit or 0.0)


def least_paid(instance: HarvestInstance) -> list[Fraction]:
    """What is paid at least for a change before every step, exactly; 0 for the first step, whose topology is free."""
    least = least_change(instance)
    paid = [max(Fraction(0), least - Fraction(float(hidden))) for hidden in instance.overlap]
    return [Fraction(0), *paid[1:]]
