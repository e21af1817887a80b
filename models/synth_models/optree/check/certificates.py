"""Verify lower bounds on the number of steps from their certificates. Imports nothing from the methods.

The theorems are stated and proven in ``bounds/steps.py``; here they are recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth.text.untrusted import whole_numbers
from synth_models.optree.check.grid_certificates import check_grid_bound
from synth_models.optree.instance import OpTreeInstance

MOST_WEIGHT = 10**9
MOST_NODES = 8192


def check_bound(instance: OpTreeInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """The faults of a bound. ``binding`` is ``receive`` or ``leaps`` (nothing else needed), or ``reach`` with
    ``weights``, one whole number >= 0 per step of the horizon that is refuted; on a grid see ``grid_certificates``."""
    if instance.grid is not None:
        return check_grid_bound(instance, bound, certificate)
    nodes, capacity = instance.nodes, 2 * instance.wavelengths
    binding = certificate.get("binding")
    if not isinstance(binding, str) or binding not in ("receive", "leaps", "reach"):
        return [f"unknown kind of bound {binding!r}"]
    if binding == "receive":
        proven = -(-(nodes - 1) // capacity)
    elif binding == "leaps":
        proven = -(-2 * (nodes - 1) // (capacity + 2))
    else:
        try:
            array = whole_numbers(certificate, "weights", 0, MOST_WEIGHT)
        except ValueError as error:
            return [f"the certificate has no weights, whole numbers from 0 to {MOST_WEIGHT}: {error}"]
        weights = array.tolist()
        if not weights or not any(weights):
            return ["the certificate has no weights that are not all 0"]
        if len(weights) >= nodes:
            return [f"{len(weights)} steps are enough for the ring algorithm, no weights refute them"]
        if nodes > MOST_NODES:
            return [f"reach certificates are verified up to {MOST_NODES} nodes"]
        least = int(_least_cost(nodes, array, instance.max_hops))
        allowed = capacity * sum(weights)
        if least <= allowed:
            return [
                f"the weights refute nothing: one item costs {least} wavelength-hops at least, "
                f"{allowed} are there in {len(weights)} steps"
            ]
        proven = len(weights) + 1
    return [] if proven >= bound else [f"the {binding} argument proves {proven} steps, not {bound:g}"]


@jit
def _least_cost(nodes: int, weights: IntArray, max_hops: int) -> int:
    """Least weighted wavelength-hops with which one item reaches the whole ring in ``len(weights)`` steps.

    Exact: N-1 circuits of at most N-1 hops at ``MOST_WEIGHT`` are less than 2^57 at ``MOST_NODES``.
    ``rest[g]`` is the cost of filling a gap of ``g`` links between two holders in the steps still to come. ``one[x]``
    extends from one end until the last new holder stands ``x`` links away, ``two[s]`` from both ends, ``s`` in sum.
    """
    infinite = np.int64(4 * 10**18)
    rest = np.full(nodes + 1, infinite)
    rest[0] = rest[1] = 0
    one, two = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    reach = min(nodes - 1, max_hops)
    for weight in weights[::-1]:
        one[:] = infinite
        one[0] = 0
        for x in range(1, reach + 1):
            least = infinite
            for before in range(x):
                if one[before] < infinite and rest[x - before] < infinite:
                    least = min(least, one[before] + rest[x - before])
            if least < infinite:
                one[x] = least + weight * x
        two[:] = infinite
        for a in range(reach + 1):
            if one[a] < infinite:
                for b in range(a, min(reach, nodes - 1 - a) + 1):
                    if one[b] < infinite:
                        two[a + b] = min(two[a + b], one[a] + one[b])
        filled = np.full(nodes + 1, infinite)
        filled[0] = filled[1] = 0
        for gap in range(2, nodes + 1):
            least = infinite
            for s in range(gap):
                if two[s] < infinite and rest[gap - s] < infinite:
                    least = min(least, two[s] + rest[gap - s])
            filled[gap] = least
        rest = filled
    found: int = rest[nodes]
    return found
