"""The radices of OpTree's stages with the fewest steps, by dynamic program over the sizes of subgroups::

    best[m*s] = min over m >= 2 of best[s] + segment(m, s)        O(N log N) constant-time costs

On a grid the nodes of a ring or line hold ``items`` items each, whose circuits share the wavelengths of a stage: a
stage of ``W`` wavelengths takes ``ceil(items W / w)`` steps (on a ring items count as further places of stage 1, so
that two of them share what an odd number of half circles leaves). On a line stage 1 is one group that need not be full.

Method ``optree`` builds circuits for them, method ``stages`` reports them and states the program (its module).
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth_models.optree.parts.stage_layout import ring_wavelengths, segment_wavelengths


def best_radices(
    nodes: int, wavelengths: int, max_hops: int | None = None, items: int = 1, ring: bool = True
) -> tuple[int, ...] | None:
    """The radices of stages 1..k with the fewest steps, by dynamic program; None when ``max_hops`` forbids all.

    Of several optima the one with the smallest ``s_1`` and, at every size, the largest last radix.
    """
    size, choice = _dynamic(nodes, wavelengths, nodes if max_hops is None else max_hops, items, ring)
    if size == 0:
        return None
    radices = []
    first = -(-nodes // size)
    while size > 1:
        radices.append(int(choice[size]))
        size //= int(choice[size])
    return (first, *radices)


def count_steps(nodes: int, wavelengths: int, radices: tuple[int, ...], items: int = 1, ring: bool = True) -> int:
    """Steps of the stages with these radices."""
    size, steps = 1, 0
    for radix in reversed(radices[1:]):
        steps += -(-segment_wavelengths(nodes, radix, size) * items // wavelengths)
        size *= radix
    return steps + int(_first_steps(nodes, wavelengths, radices[0], size, items, ring))


@jit
def _first_steps(nodes: int, wavelengths: int, groups: int, size: int, items: int, ring: bool) -> int:
    """Steps of stage 1, round the ring or along the line."""
    if ring:
        return (ring_wavelengths(groups, size * items) - 1) // wavelengths + 1
    return (segment_wavelengths(nodes, groups, size) * items - 1) // wavelengths + 1


@jit
def _first_hops(nodes: int, groups: int, size: int, ring: bool) -> int:
    """Hops of the longest circuit of stage 1."""
    return (groups // 2) * size if ring else min(nodes - 1, (groups - 1) * size)


@jit
def _dynamic(nodes: int, wavelengths: int, max_hops: int, items: int, ring: bool) -> tuple[int, IntArray]:
    """The best size of stage 1's groups (0: none) and, per group size, the best radix of its stage."""
    far = np.int64(2**62)
    best = np.full(nodes, far)
    choice = np.zeros(nodes, np.int64)
    best[1] = 0
    enough = _uniform_plans(nodes, wavelengths, max_hops, items, ring)
    for size in range(1, nodes):
        if best[size] >= enough:
            continue
        for radix in range(2, (nodes - 1) // size + 1):
            # half the subgroups hold at least their share of the items (the larger counts come first); this least
            # load of the middle border grows with the radix
            half = radix // 2
            least = ((half * nodes - 1) // radix + 1) * (radix - half) * items
            least_steps = best[size] + (least - 1) // wavelengths + 1
            if (radix - 1) * size > max_hops or least_steps >= enough:
                break
            if least_steps >= best[radix * size]:
                continue
            steps = best[size] + (segment_wavelengths(nodes, radix, size) * items - 1) // wavelengths + 1
            if steps < best[radix * size]:
                best[radix * size], choice[radix * size] = steps, radix
    found, fewest = 0, far
    for size in range(1, nodes):
        groups = (nodes - 1) // size + 1
        if best[size] == far or _first_hops(nodes, groups, size, ring) > max_hops:
            continue
        steps = best[size] + _first_steps(nodes, wavelengths, groups, size, items, ring)
        if steps < fewest:
            found, fewest = size, steps
    return found, choice


@jit
def _uniform_plans(nodes: int, wavelengths: int, max_hops: int, items: int, ring: bool) -> np.int64:
    """Fewest steps of the plans whose later stages all have radix 2, 3 or 4 (or that have none): stages that alone
    take as many belong to no better plan."""
    fewest = np.int64(2**62)
    for radix in range(2, 5):
        size, steps = 1, np.int64(0)
        while size < nodes:
            groups = (nodes - 1) // size + 1
            if _first_hops(nodes, groups, size, ring) <= max_hops:
                fewest = min(fewest, steps + _first_steps(nodes, wavelengths, groups, size, items, ring))
            if (radix - 1) * size > max_hops:
                break
            steps += (segment_wavelengths(nodes, radix, size) * items - 1) // wavelengths + 1
            size *= radix
    return fewest
