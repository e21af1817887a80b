"""The named baseline a record's reduction is stated against, counted from the textbook formula. Imports no method.

Trees: the distance-halving binomial tree (rank r, counted from the root, hears from r minus its lowest set bit, and
passes on a subtree of at most that many ranks). Butterflies on a power of two: partner ``r xor 2^s``.
"""

from __future__ import annotations

import numpy as np

from synth_models.bine.instance import TREES, BineInstance


def baseline_bytes(instance: BineInstance) -> tuple[str, float] | None:
    """The baseline's name and bytes on global links over all jobs; None where the formula does not apply (a large
    broadcast or reduce, a butterfly on other than 2^k ranks, a torus)."""
    if instance.torus is not None:
        return None
    tree = instance.collective in TREES
    if tree and instance.blocks(2) != 1 and instance.collective in ("broadcast", "reduce"):
        return None
    total = 0.0
    for job, groups in enumerate(instance.allocations):
        ranks = len(groups)
        if tree:
            total += _tree(instance, job, ranks)
        elif ranks & (ranks - 1):
            return None
        else:
            total += _butterfly(instance, job, ranks)
    return ("binomial_halving" if tree else "recursive"), total


def _tree(instance: BineInstance, job: int, ranks: int) -> float:
    r = np.arange(1, ranks)
    low = r & -r
    crossed = instance.crossings(job, (r + instance.root) % ranks, (r - low + instance.root) % ranks)
    blocks = np.minimum(low, ranks - r) if instance.collective in ("scatter", "gather") else 1
    return float(np.sum(crossed * blocks)) * instance.block_bytes(ranks)


def _butterfly(instance: BineInstance, job: int, ranks: int) -> float:
    r = np.arange(ranks)
    total = 0.0
    for s in range(ranks.bit_length() - 1):
        match instance.collective:
            case "alltoall":
                share = 0.5
            case "allreduce":
                share = 1.0 if instance.vector == "small" else 2 / 2 ** (s + 1)
            case _:
                share = 1 / 2 ** (s + 1)
        total += share * int(instance.crossings(job, r, r ^ (1 << s)).sum())
    return total * instance.bytes
