"""Bounds recomputed from the instance alone; the proofs stand in ``bounds/counting.py``. Imports no method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from synth.untrusted import choice, exact_dot
from synth_models.bine.check.rules import volumes_by_round
from synth_models.bine.instance import BineInstance


def check_bound(instance: BineInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """Faults of a bound whose certificate names its argument (``binding``)."""
    try:
        binding = choice(certificate, "binding", "receive", "isoperimetric")
    except ValueError as error:
        return [f"unknown kind of bound: {error}"]
    if binding == "isoperimetric" and instance.problem != "butterfly":
        return [f"unknown kind of bound {binding!r} for the problem {instance.problem}"]
    proven = receive(instance) if binding == "receive" else isoperimetric(instance)
    if not -math.inf < bound <= proven:
        return [f"the {binding} argument proves {proven:.17g} bytes, not {bound:.17g}"]
    return []


def receive(instance: BineInstance) -> float:
    """Bytes that must enter groups, over all jobs; exact, rounded once."""
    total = Fraction(0)  # vectors of ``bytes`` each
    for groups in instance.allocations:
        sizes, ranks = np.bincount(groups), len(groups)
        match instance.collective:
            case "scatter" | "gather":
                total += Fraction(ranks - int(sizes[groups[instance.root]]), ranks)
            case "alltoall":
                total += Fraction(exact_dot(sizes, ranks - sizes), ranks)
            case "allreduce":
                total += 2 * (len(sizes) - 1)
            case _:
                total += len(sizes) - 1
    return float(total * Fraction(instance.bytes))


def isoperimetric(instance: BineInstance) -> float:
    """Bytes that every hypercube butterfly sends between groups of these sizes, over all jobs; exact, rounded once."""
    rows = []
    for groups in instance.allocations:
        ranks = len(groups)
        weights = np.array(dimension_weights(instance, ranks))
        held = internal_weights(weights, ranks)
        rows.append((ranks, int(weights.sum()) * ranks - 2 * int(held[np.bincount(groups)].sum())))
    return instance.bytes_of(rows)


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
