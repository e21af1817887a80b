"""Bounds recomputed from the instance alone; the proofs stand in :mod:`synth_models.bine.bound`. Imports no method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from synth_models.bine.instance import BineInstance
from synth_models.bine.rules import volumes_by_round


def check_bound(instance: BineInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """Faults of a bound whose certificate names its argument (``binding``)."""
    match certificate.get("binding"):
        case "receive":
            proven = receive(instance)
        case "isoperimetric" if instance.problem == "butterfly":
            proven = isoperimetric(instance)
        case other:
            return [f"unknown kind of bound {other!r} for the problem {instance.problem}"]
    if bound > proven * (1 + 1e-12):
        return [f"the {certificate['binding']} argument proves {proven:g} bytes, not {bound:g}"]
    return []


def receive(instance: BineInstance) -> float:
    """Bytes that must enter groups, over all jobs."""
    total = 0.0
    for groups in instance.allocations:
        sizes, ranks = np.bincount(groups), len(groups)
        match instance.collective:
            case "scatter" | "gather":
                total += (ranks - sizes[groups[instance.root]]) * instance.block_bytes(ranks)
            case "alltoall":
                total += float(np.sum(sizes * (ranks - sizes))) * instance.block_bytes(ranks)
            case "allreduce":
                total += 2 * (len(sizes) - 1) * instance.bytes
            case _:
                total += (len(sizes) - 1) * instance.bytes
    return float(total)


def isoperimetric(instance: BineInstance) -> float:
    """Bytes that every hypercube butterfly sends between groups of these sizes, over all jobs."""
    total = 0.0
    for groups in instance.allocations:
        ranks = len(groups)
        weights = np.array(dimension_weights(instance, ranks))
        held = internal_weights(weights, ranks)
        blocks = weights.sum() * ranks / 2 - held[np.bincount(groups)].sum()
        total += 2 * float(blocks) * instance.block_bytes(ranks)
    return total


def dimension_weights(instance: BineInstance, ranks: int) -> list[int]:
    """Blocks that one message carries along every dimension of the hypercube, summed over rounds, falling."""
    bits = ranks.bit_length() - 1
    volumes = volumes_by_round(instance, ranks)
    halves = [volumes[i] + (volumes[len(volumes) - 1 - i] if len(volumes) > bits else 0) for i in range(bits)]
    return sorted(halves, reverse=True)


def internal_weights(weights: Any, most: int) -> Any:
    """f(k) for k = 0..most, shape (most+1,)."""
    i = np.arange(most)
    bits = (i[:, None] >> np.arange(len(weights))[None, :]) & 1
    return np.concatenate([[0], np.cumsum(bits @ np.asarray(weights))])
