"""Weights of a butterfly's dimensions, for methods (the check of bounds derives its own)."""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.arrays import AnyIntArray, IntArray
from synth_models.bine.instance import BineInstance


def dimension_weights(instance: BineInstance, ranks: int) -> list[int]:
    """Blocks one message carries along every dimension, heaviest first: p/2, p/4, … of reduce-scatter or
    allgather, twice that for a large allreduce, one for a small one, p/2 each for alltoall."""
    bits = ranks.bit_length() - 1
    if instance.collective == "alltoall":
        return [ranks // 2] * bits
    if instance.collective == "allreduce" and instance.vector == "small":
        return [1] * bits
    twice = 2 if instance.collective == "allreduce" else 1
    return [twice * 2**b for b in reversed(range(bits))]


def most_inside(weights: Any, most: int) -> IntArray:
    """f(k) = sum_{i<k} sum_{bits b of i} w_b for k = 0..most, shape (most+1,).

    Built up by f(k + 2^b) = f(k) + f(2^b) + k w_b."""
    f = np.zeros(most + 1, dtype=np.int64)
    for b, w in enumerate(weights):
        width = 1 << b
        k = np.arange(1, min(width, most - width) + 1)
        f[width + k] = f[width] + f[k] + k * int(w)
    return f


def receive_bytes(instance: BineInstance) -> float:
    """The receive bound of ``bounds/global_bytes.py``: bytes wanted in a group and not there at the beginning."""
    return instance.bytes_of(
        (len(groups), receive_cost(instance, job)) for job, groups in enumerate(instance.allocations)
    )


def receive_cost(instance: BineInstance, job: int) -> int:
    """The same of one job in blocks, each level's count times its weight."""
    return sum(weight * receive_blocks(instance, part) for weight, part in instance.partitions(job))


def receive_blocks(instance: BineInstance, groups: AnyIntArray) -> int:
    """Blocks that must enter the parts of a partition of one job's ranks."""
    ranks, count = len(groups), int(groups.max()) + 1
    if instance.collective in ("scatter", "gather"):
        return int(np.sum(groups != groups[instance.root]))
    if instance.collective == "alltoall":
        return ranks * ranks - sum(int(np.sum(groups == g)) ** 2 for g in range(count))
    return (count - 1) * instance.blocks(ranks) * (2 if instance.collective == "allreduce" else 1)


def isoperimetric_bytes(instance: BineInstance) -> float:
    """The isoperimetric bound of ``bounds/global_bytes.py``."""
    return instance.bytes_of(
        (len(groups), 2 * isoperimetric_cut(instance, job, dimension_weights(instance, len(groups))))
        for job, groups in enumerate(instance.allocations)
    )


def isoperimetric_cut(instance: BineInstance, job: int, weights: list[int]) -> int:
    """The same of one job in blocks each way, each level's count times its weight."""
    parts = instance.partitions(job)
    held = most_inside(weights, len(instance.allocations[job]))
    return sum(times * int(held[-1] - held[np.bincount(part)].sum()) for times, part in parts)
