"""Renumberings of the GPUs that map every pattern of an instance onto itself.

A topology may be replaced by the average of its images under them wherever a bound is linear, so that one number per
orbit is enough. Tried: shifts of 1-D, 2-D and 3-D numberings, reflections ``u -> c - u`` and exclusive or with a bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from synth.arrays import IntArray
from synth.graph.symmetry import arc_images, orbits, row_images
from synth_models.harvest.parts.demands import volumes
from synth_models.harvest.parts.topologies import torus_sides

REFLECTIONS_UP_TO = 1024  # GPUs


def generators(patterns: Sequence[IntArray], gpus: int) -> list[IntArray]:
    """Permutations of the GPUs, shape (gpus,) each, under which all patterns (pairs, 3) are invariant."""

    def keeps(moved: IntArray) -> bool:
        return all(arc_images(moved, pairs[:, 0], pairs[:, 1], (volumes(pairs),)) is not None for pairs in patterns)

    return [moved for family in _families(gpus) for moved in _first(family, keeps)]


def row_orbits(rows: IntArray, group: Sequence[IntArray]) -> IntArray:
    """Orbit number of every row, shape (rows,), numbered by first appearance; rows (rows, columns) of GPUs form a set
    that the group maps onto itself."""
    least = orbits(len(rows), row_images(group, rows))
    return np.unique(least, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _first(family: Iterator[IntArray], keeps: object) -> Iterator[IntArray]:
    """The first member that all patterns are invariant under, if any."""
    assert callable(keeps)
    for moved in family:
        if keeps(moved):
            yield moved
            return


def _families(gpus: int) -> Iterator[Iterator[IntArray]]:
    """Families of permutations; in each, the first that fits makes the others redundant."""
    for sides in {(gpus,), torus_sides(gpus, 2), torus_sides(gpus, 3)} - {None}:
        assert sides is not None
        ids = np.arange(gpus, dtype=np.int64).reshape(sides)
        for axis, side in enumerate(sides):
            yield (np.roll(ids, -by, axis).ravel() for by in range(1, side) if side % by == 0)
    if gpus <= REFLECTIONS_UP_TO:
        yield ((c - np.arange(gpus, dtype=np.int64)) % gpus for c in range(gpus))
    if gpus & (gpus - 1) == 0:
        for bit in range(gpus.bit_length() - 1):
            yield iter([np.arange(gpus, dtype=np.int64) ^ (1 << bit)])
