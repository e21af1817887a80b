"""The least time of steps on one topology where every GPU has one port: all topologies are tried.

With one link out of a GPU and one into it a topology is part of a permutation of the GPUs, and the whole permutation
makes no step slower. Every pair has one route on it, so hops and loads are whole numbers that are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations

import numpy as np

from synth.arrays import IntArray
from synth_models.harvest.instance import HarvestInstance

MOST_GPUS = 8  # 40,320 permutations


class Permutations:
    """All permutations of an instance's GPUs, shape (permutations, GPUs), and what each makes of a step's pairs. Raises
    ``ValueError`` for an instance that has others, or too many."""

    def __init__(self, instance: HarvestInstance) -> None:
        if instance.ports != 1 or instance.gpus > MOST_GPUS:
            raise ValueError(f"all topologies are only tried on one port and at most {MOST_GPUS} GPUs")
        self.instance = instance
        self._next: IntArray = np.array(list(permutations(range(instance.gpus))), dtype=np.int64)
        self._walked: dict[bytes, IntArray] = {}

    def least(self, first: int, last: int) -> Fraction:
        """Seconds that steps first..last take on the permutation that is best for them, exactly."""
        instance, steps = self.instance, range(first, last + 1)
        columns: dict[bytes, int] = {}
        of_step = [columns.setdefault(instance.demands[step].tobytes(), len(columns)) for step in steps]
        walked = [self._walk(instance.demands[first + of_step.index(k)]) for k in range(len(columns))]
        reached = np.logical_and.reduce([one[:, 0] > 0 for one in walked])
        hops = sum(walked[k][:, 0] for k in of_step)
        kinds = np.unique(np.stack([hops, *(one[:, 1] for one in walked)], axis=1)[reached], axis=0)
        seconds = [Fraction(0)] * len(walked)
        for step, k in zip(steps, of_step, strict=True):
            seconds[k] += Fraction(float(instance.bytes_per_pair[step])) / Fraction(instance.port_bandwidth)
        return len(of_step) * Fraction(instance.alpha) + min(self._seconds(row, seconds) for row in kinds.tolist())

    def _seconds(self, row: Sequence[int], seconds: Sequence[Fraction]) -> Fraction:
        """Hops and bytes: the hops of all steps, then the greatest load of every pattern."""
        moved = sum((load * of_one for load, of_one in zip(row[1:], seconds, strict=True)), Fraction(0))
        return row[0] * Fraction(self.instance.hop_delay) + moved

    def _walk(self, demands: IntArray) -> IntArray:
        """Of every permutation the longest route and the greatest load of these pairs, shape (permutations, 2); 0 hops
        where a pair has no route."""
        key = demands.tobytes()
        if key not in self._walked:
            count, gpus = self._next.shape
            every, load = np.arange(count), np.zeros((count, gpus), dtype=np.int64)
            longest, lost = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)
            for source, target, volume in demands.tolist():
                at = np.full(count, source)
                for hop in range(1, gpus):
                    on_way = at != target
                    load[every[on_way], at[on_way]] += volume
                    longest[on_way] = np.maximum(longest[on_way], hop)
                    at[on_way] = self._next[every[on_way], at[on_way]]
                lost |= at != target
            self._walked[key] = np.stack([np.where(lost, 0, longest), load.max(axis=1)], axis=1)
        return self._walked[key]
