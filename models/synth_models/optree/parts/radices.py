"""The radices of OpTree's stages with the fewest steps, by dynamic program over the sizes of subgroups::

    best[m*s] = min over m >= 2 of best[s] + segment(m, s)        O(N log N) constant-time costs

Method ``optree`` builds circuits for them, method ``stages`` reports them and states the program (its module).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.kernels import jit
from synth_models.optree.parts.stage_layout import ring_wavelengths, segment_wavelengths


def best_radices(nodes: int, wavelengths: int, max_hops: int | None = None) -> tuple[int, ...] | None:
    """The radices of stages 1..k with the fewest steps, by dynamic program; None when ``max_hops`` forbids all.

    Of several optima the one with the smallest ``s_1`` and, at every size, the largest last radix.
    """
    size, choice = _dynamic(nodes, wavelengths, nodes if max_hops is None else max_hops)
    if size == 0:
        return None
    radices = []
    first = -(-nodes // size)
    while size > 1:
        radices.append(int(choice[size]))
        size //= int(choice[size])
    return (first, *radices)


@jit
def _dynamic(nodes: int, wavelengths: int, max_hops: int) -> Any:
    """The best size of stage 1's groups (0: none) and, per group size, the best radix of its stage."""
    far = np.int64(2**62)
    best = np.full(nodes, far)
    choice = np.zeros(nodes, np.int64)
    best[1] = 0
    enough = _uniform_plans(nodes, wavelengths, max_hops)
    for size in range(1, nodes):
        if best[size] >= enough:
            continue
        for radix in range(2, (nodes - 1) // size + 1):
            # half the subgroups hold at least their share of the items (the larger counts come first); this least
            # load of the middle border grows with the radix
            half = radix // 2
            least = ((half * nodes - 1) // radix + 1) * (radix - half)
            least_steps = best[size] + (least - 1) // wavelengths + 1
            if (radix - 1) * size > max_hops or least_steps >= enough:
                break
            if least_steps >= best[radix * size]:
                continue
            steps = best[size] + (segment_wavelengths(nodes, radix, size) - 1) // wavelengths + 1
            if steps < best[radix * size]:
                best[radix * size], choice[radix * size] = steps, radix
    found, fewest = 0, far
    for size in range(1, nodes):
        groups = (nodes - 1) // size + 1
        if best[size] == far or (groups // 2) * size > max_hops:
            continue
        steps = best[size] + (ring_wavelengths(groups, size) - 1) // wavelengths + 1
        if steps < fewest:
            found, fewest = size, steps
    return found, choice


@jit
def _uniform_plans(nodes: int, wavelengths: int, max_hops: int) -> Any:
    """Fewest steps of the plans whose later stages all have radix 2, 3 or 4 (or that have none): stages that alone
    take as many belong to no better plan."""
    fewest = np.int64(2**62)
    for radix in range(2, 5):
        size, steps = 1, np.int64(0)
        while size < nodes:
            groups = (nodes - 1) // size + 1
            if (groups // 2) * size <= max_hops:
                fewest = min(fewest, steps + (ring_wavelengths(groups, size) - 1) // wavelengths + 1)
            if (radix - 1) * size > max_hops:
                break
            steps += (segment_wavelengths(nodes, radix, size) - 1) // wavelengths + 1
            size *= radix
    return fewest
