"""Orbits: variables that symmetries map onto each other and that a folded program keeps one of.

A symmetry moves items and places at once: the pair of item i and place p goes to ``(items[i], places[p])``. Restricting
a whole-number program to folded points only finds symmetric ones; folding its linear relaxation loses nothing, since
averaging a point over the group gives a symmetric one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from synth.arrays import AnyIntArray, BoolArray, FloatArray, IntArray
from synth.graph.rows import rows_by
from synth.graph.symmetry import Permutation, orbits


class FoldedTerm(NamedTuple):
    """A pair that is kept, and how many of its images a sum is over."""

    images: int
    item: int
    place: int


@dataclass(frozen=True, eq=False)
class PairOrbits:
    """``least[i, p]``: the least image of item i at place p as ``item * places + place``, shape (items, places)."""

    least: IntArray

    @property
    def items(self) -> int:
        """Number of items."""
        return len(self.least)

    @property
    def places(self) -> int:
        """Number of places."""
        return int(self.least.shape[1])

    @cached_property
    def kept(self) -> BoolArray:
        """The pairs that stand for all their images, shape (items, places)."""
        found: BoolArray = self.least == np.arange(self.least.size).reshape(self.least.shape)
        return found

    @cached_property
    def _rows(self) -> list[list[tuple[int, int]]]:
        """The pair that stands for each, by item and place, in plain Python: programs are built one index at a time."""
        item, place = np.divmod(self.least, self.places)
        return [list(zip(i, p, strict=True)) for i, p in zip(item.tolist(), place.tolist(), strict=True)]

    def stands_for(self, item: int, place: int) -> tuple[int, int]:
        """Return the pair that stands for this one."""
        return self._rows[item][place]

    def kept_pairs(self) -> list[tuple[int, int]]:
        """Return the pairs that stand for all their images, items first."""
        item, place = np.nonzero(self.kept)
        return list(zip(item.tolist(), place.tolist(), strict=True))

    def of_place(self, place: int) -> list[FoldedTerm]:
        """Return the pairs that stand for all items at a place, in the items' order."""
        return _folded(row[place] for row in self._rows)

    def of_item(self, item: int, places: Iterable[int]) -> list[FoldedTerm]:
        """Return the pairs that stand for one item at these places, in the places' order."""
        row = self._rows[item]
        return _folded(row[place] for place in places)

    def images(self, item: AnyIntArray, place: AnyIntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return item, place and number of all images of points at kept pairs: items first, then places, then points.

        ``item``, ``place``: shape (points,); the number says of which point it is an image. Shapes (images,).
        """
        start, order = rows_by(item * self.places + place, self.least.size)
        flat = self.least.ravel()
        count = (start[1:] - start[:-1])[flat]
        pair = np.repeat(np.arange(flat.size), count)
        which = np.arange(len(pair)) + np.repeat(start[flat] - (np.cumsum(count) - count), count)
        image_item, image_place = np.divmod(pair, self.places)
        return image_item, image_place, order[which]

    def spread(self, values: FloatArray) -> FloatArray:
        """Divide the value of each pair that stands for others equally among all, shape (items, places, …) each."""
        flat = self.least.ravel()
        images = np.bincount(flat, minlength=flat.size)
        each = values.reshape(flat.size, -1) / np.maximum(images, 1)[:, None]
        found: FloatArray = each[flat].reshape(values.shape)
        return found


def _folded(pairs: Iterable[tuple[int, int]]) -> list[FoldedTerm]:
    return [FoldedTerm(images, *pair) for pair, images in Counter(pairs).items()]


def unfolded(items: int, places: int) -> PairOrbits:
    """Return the orbits where no symmetry is used: every pair stands for itself."""
    return PairOrbits(np.arange(items * places, dtype=np.int64).reshape(items, places))


def generated_orbits(items: Sequence[Permutation], places: Sequence[Permutation]) -> PairOrbits:
    """Return the orbits under the group that symmetries generate: what each does to the items and to the places.

    Raises ``ValueError`` for no symmetry at all, which leaves their number open.
    """
    if not len(items):
        raise ValueError("no symmetries: take unfolded()")
    shape = len(items[0]), len(places[0])
    number = np.arange(shape[0] * shape[1]).reshape(shape)
    images = [number[np.ix_(i, p)].ravel() for i, p in zip(items, places, strict=True)]
    return PairOrbits(orbits(number.size, images).reshape(shape))


def group_orbits(items: IntArray, places: IntArray) -> PairOrbits:
    """Return the orbits under all elements of a group: their images of the items and places, shape (elements, …)."""
    count = places.shape[1]
    least: IntArray = np.arange(items.shape[1])[:, None] * count + np.arange(count)
    for item, place in zip(items, places, strict=True):
        np.minimum(least, item[:, None] * count + place, out=least)
    return PairOrbits(least)


def item_images(origin: AnyIntArray, image: Permutation) -> Permutation | None:
    """Return the item to which each goes when the nodes move, shape (items,): the j-th of a node to the j-th of its
    image; None where a node's image is the origin of more or fewer.

    ``origin``: the node at which each item begins, shape (items,).
    """
    moved = image[origin]
    here, there = np.argsort(moved, kind="stable"), np.argsort(origin, kind="stable")
    if not np.array_equal(moved[here], origin[there]):
        return None
    # items of one origin have one image, so both orders have them as they were numbered
    found = np.empty(len(origin), dtype=np.int64)
    found[here] = there
    return found
