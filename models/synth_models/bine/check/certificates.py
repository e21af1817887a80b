"""Bounds recomputed from the instance alone; the proofs stand in ``bounds``. Imports no method."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from synth.text.untrusted import choice, exact_dot
from synth_models.bine.check.crossings import priced
from synth_models.bine.check.placements import least_cuts
from synth_models.bine.check.rules import volumes_by_round
from synth_models.bine.instance import BineInstance


def check_bound(instance: BineInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """Faults of a bound whose certificate names its argument (``binding``)."""
    try:
        binding = choice(certificate, "binding", "receive", "isoperimetric", "positions", "prices")
    except ValueError as error:
        return [f"unknown kind of bound: {error}"]
    if binding in ("isoperimetric", "positions") and instance.problem != "butterfly":
        return [f"unknown kind of bound {binding!r} for the problem {instance.problem}"]
    try:
        proven = _PROVEN[binding](instance, certificate)
    except ValueError as error:
        return [f"the {binding} argument: {error}"]
    if not -math.inf < bound <= proven:
        return [f"the {binding} argument proves {proven:.17g} bytes, not {bound:.17g}"]
    return []


_PROVEN: Mapping[str, Callable[[BineInstance, Mapping[str, Any]], float]] = {
    "receive": lambda instance, _: receive(instance),
    "isoperimetric": lambda instance, _: isoperimetric(instance),
    "positions": lambda instance, _: positions(instance),
    "prices": priced,
}


def receive(instance: BineInstance) -> float:
    """Bytes that must enter groups (and nodes, where costs say so), over all jobs; exact, rounded once."""
    total = Fraction(0)  # vectors of ``bytes`` each
    for job in range(len(instance.allocations)):
        for weight, part in instance.partitions(job):
            total += weight * _received(instance, part)
    return float(total * Fraction(instance.bytes))


def _received(instance: BineInstance, part: Any) -> Fraction:
    """Vectors that must enter the parts of a partition of one job's ranks."""
    sizes, ranks = np.bincount(part), len(part)
    match instance.collective:
        case "scatter" | "gather":
            return Fraction(ranks - int(sizes[part[instance.root]]), ranks)
        case "alltoall":
            return Fraction(exact_dot(sizes, ranks - sizes), ranks)
        case "allreduce":
            return Fraction(2 * (len(sizes) - 1))
    return Fraction(len(sizes) - 1)


def isoperimetric(instance: BineInstance) -> float:
    """Bytes that every hypercube butterfly sends between groups of these sizes, over all jobs; exact, rounded once."""
    return instance.bytes_of((len(groups), _counted(instance, job)) for job, groups in enumerate(instance.allocations))


def _counted(instance: BineInstance, job: int) -> int:
    """The isoperimetric count of one job, in blocks times costs."""
    ranks, total = len(instance.allocations[job]), 0
    weights = np.array(dimension_weights(instance, ranks))
    held = internal_weights(weights, ranks)
    for weight, part in instance.partitions(job):
        inside = 2 * int(held[np.bincount(part)].sum())
        total += weight * (int(weights.sum()) * ranks - inside)
    return total


def positions(instance: BineInstance) -> float:
    """Bytes of the best of all placements, of jobs of more than 16 ranks the isoperimetric count; exact, rounded
    once."""
    ranks = {len(groups) for groups in instance.allocations}
    least = least_cuts(instance, {many: dimension_weights(instance, many) for many in ranks})
    return instance.bytes_of(
        (len(groups), 2 * least[job] if job in least else _counted(instance, job))
        for job, groups in enumerate(instance.allocations)
    )


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
