"""Translations that map both a pattern and a topology onto themselves; one pair of each orbit then stands for all.

GPUs are read as row-major coordinates of a ring, of the most even 2-D and of the most even 3-D torus; along every
dimension the smallest shift that leaves pattern and topology unchanged generates a cyclic group, and the largest of
these product groups is taken. A maximum concurrent flow may be averaged over the group, so symmetric flows suffice.
"""

from __future__ import annotations

from math import prod

import numpy as np

from synth.arrays import IntArray
from synth.graph.symmetry import arc_images, orbits_of_group, row_images
from synth_models.harvest.parts.topologies import torus_sides


def translations(pairs: IntArray, links: IntArray, gpus: int) -> IntArray:
    """Permutations of the GPUs, shape (group, gpus), the identity first. They move every GPU (except the identity)."""
    best: tuple[int, tuple[int, ...], list[int]] = (1, (gpus,), [gpus])
    for sides in ((gpus,), torus_sides(gpus, 2), torus_sides(gpus, 3)):
        if sides is None:
            continue
        ids = np.arange(gpus, dtype=np.int64).reshape(sides)
        periods = []
        for axis, side in enumerate(sides):
            for period in (p for p in range(1, side + 1) if side % p == 0):
                moved = np.roll(ids, -period, axis).ravel()
                if period == side or (_keeps(moved, pairs) and _keeps(moved, links)):
                    periods.append(period)
                    break
        order = prod(side // period for side, period in zip(sides, periods, strict=True))
        if order > best[0]:
            best = (order, sides, periods)
    _, sides, periods = best
    ids = np.arange(gpus, dtype=np.int64).reshape(sides)
    ranges = [range(0, side, period) for side, period in zip(sides, periods, strict=True)]
    shifts = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, len(sides))
    axes = tuple(range(len(sides)))
    return np.array([np.roll(ids, tuple(-shift), axes).ravel() for shift in shifts], dtype=np.int64)


def orbits(rows: IntArray, group: IntArray) -> IntArray:
    """Smallest index of a row in the orbit of each row, shape (rows,); rows start with two GPUs and are closed under
    the group."""
    return orbits_of_group(np.array(row_images(group, rows[:, :2]), dtype=np.int64))


def _keeps(moved: IntArray, rows: IntArray) -> bool:
    """Whether the rows, two GPUs and what stands beside them, stay the same."""
    return arc_images(moved, rows[:, 0], rows[:, 1], tuple(rows[:, 2:].T)) is not None
