"""The least time of every interval of steps where every GPU has one port and there are few GPUs: no schedule is better.

A topology of one port is part of a permutation of the GPUs; on all of them distances are counted, and the load of the
link that leaves a GPU w is the volume of the pairs (u, v) with w nearer to u than v is. Where a change costs the same
whatever changes, the cheapest partition into intervals is the optimum. Complexity: n! n^2 a pattern.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np

from synth.arrays import IntArray
from synth_models.harvest.instance import HarvestInstance

MOST_GPUS = 8
UNREACHABLE = 100


def applies(instance: HarvestInstance) -> bool:
    """Whether all permutations are few enough."""
    return instance.ports == 1 and instance.gpus <= MOST_GPUS


def intervals(instance: HarvestInstance) -> dict[tuple[int, int], Fraction]:
    """Seconds of steps first..last (both included) on the permutation that is best for them."""
    away = _distances(instance.gpus)
    patterns = [_of_pattern(rows, away) for rows in instance.demands]
    delay, found = Fraction(instance.hop_delay), dict[tuple[int, int], Fraction]()
    seconds = [Fraction(float(m)) / Fraction(instance.port_bandwidth) for m in instance.bytes_per_pair]
    for first in range(len(patterns)):
        for last in range(first, len(patterns)):
            hops, loads = np.stack(patterns[first : last + 1], axis=2)
            rows = np.unique(np.column_stack([hops, loads])[(hops < UNREACHABLE).all(axis=1)], axis=0)
            size = last - first + 1
            least = min(
                sum(row[:size]) * delay + sum(load * s for load, s in zip(row[size:], seconds[first:], strict=False))
                for row in rows.tolist()
            )
            found[first, last] = size * Fraction(instance.alpha) + least
    return found


def _distances(gpus: int) -> IntArray:
    """Links from u to v on every permutation, shape (permutations, u, v)."""
    step = np.array(list(permutations(range(gpus))))
    away = np.full((len(step), gpus, gpus), UNREACHABLE)
    every, at = np.arange(len(step))[:, None], np.tile(np.arange(gpus), (len(step), 1))
    source = at.copy()
    for hop in range(gpus):
        away[every, source, at] = np.minimum(away[every, source, at], hop)
        at = step[every, at]
    return away


def _of_pattern(rows: IntArray, away: IntArray) -> IntArray:
    """Longest route and greatest load on every permutation, shape (2, permutations)."""
    load = np.zeros(away.shape[:2], dtype=np.int64)
    for source, target, volume in rows.tolist():
        load += volume * (away[:, source, :] < away[:, source, target, None])
    hops = np.max([away[:, source, target] for source, target, _ in rows.tolist()], axis=0)
    return np.stack([hops, load.max(axis=1)])
