"""Renumberings of the GPUs that map every pattern of an instance onto itself.

A topology may be replaced by the average of its images under them wherever a bound is linear, so that one number per
orbit is enough. Tried: shifts of 1-D, 2-D and 3-D numberings, reflections ``u -> c - u`` and exclusive or with a bit.
Of numberings with any sides also shifts, reflections of one axis and exchanges of two axes, where they join orbits that
the others leave apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array, eye_array

from synth.arrays import IntArray
from synth.graph.symmetry import arc_images, orbits, row_images
from synth_models.harvest.parts.demands import volumes
from synth_models.harvest.parts.topologies import torus_sides

REFLECTIONS_UP_TO = 1024  # GPUs
MOST_NEAR = 10_000_000  # pairs of two pairs, of all patterns


def generators(patterns: Sequence[IntArray], gpus: int) -> list[IntArray]:
    """Permutations of the GPUs, shape (gpus,) each, under which all patterns (pairs, 3) are invariant."""

    def keeps(moved: IntArray) -> bool:
        return all(arc_images(moved, pairs[:, 0], pairs[:, 1], (volumes(pairs),)) is not None for pairs in patterns)

    found = [moved for family in _families(gpus) for moved in _first(family, keeps)]
    pairs = _near(np.concatenate(patterns), gpus)
    orbit = row_orbits(pairs, found)
    for moved in (moved for family in _more_families(gpus) for moved in _first(family, keeps)):
        if np.any(orbit[row_images([moved], pairs)[0]] != orbit):
            found.append(moved)
            orbit = row_orbits(pairs, found)
    return found


def _near(pairs: IntArray, gpus: int) -> IntArray:
    """Pairs of GPUs, shape (pairs, 2), each with itself or a pair of a pattern or, unless these are many, of two."""
    joined = csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(gpus, gpus)) + eye_array(gpus)
    if len(pairs) ** 2 <= MOST_NEAR * gpus:
        joined = joined @ joined
    return np.stack(joined.nonzero(), axis=1).astype(np.int64)


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


def _more_families(gpus: int) -> Iterator[Iterator[IntArray]]:
    """The same of numberings with any sides, with reflections of an axis and exchanges of two equal ones."""
    for sides in _sides(gpus):
        ids = np.arange(gpus, dtype=np.int64).reshape(sides)
        for axis, side in enumerate(sides):
            yield (np.roll(ids, -by, axis).ravel() for by in range(1, side) if side % by == 0)
            yield iter([np.flip(ids, axis).ravel()])
        for one, other in combinations(range(len(sides)), 2):
            if sides[one] == sides[other]:
                yield iter([ids.swapaxes(one, other).ravel()])


def _sides(gpus: int) -> list[tuple[int, ...]]:
    """The sides of all 2-D and 3-D numberings, each 2 or more."""
    two = [(side, gpus // side) for side in range(2, gpus) if gpus % side == 0]
    return [*two, *((side, *rest) for side, behind in two for rest in _sides(behind) if len(rest) == 2)]
