"""Windows: the times in which an item can be of use at a place, and the variables that a program needs for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from synth.arrays import AnyIntArray, BoolArray, IntArray

TimedIndex = tuple[int, int, int]
"""Item, place, time."""


@dataclass(frozen=True, eq=False)
class Windows:
    """The times ``first`` … ``last`` of every item at every place, shape (items, places) each; none where the last
    comes before the first. Times are whole numbers in the program's own unit."""

    first: IntArray
    last: IntArray

    @cached_property
    def length(self) -> IntArray:
        """How many times each window has, shape (items, places)."""
        found: IntArray = np.maximum(self.last - self.first + 1, 0)
        return found

    @property
    def count(self) -> int:
        """How many variables a program with these windows has."""
        return int(self.length.sum())

    def only(self, kept: BoolArray) -> Windows:
        """Return these windows where ``kept`` says so, shape (items, places), and none elsewhere."""
        return Windows(self.first, np.where(kept, self.last, self.first - 1))

    def of_item(self, item: int) -> list[tuple[int, range]]:
        """Return the places where an item has a window, with its times."""
        place = np.flatnonzero(self.length[item])
        ends = zip(self.first[item, place].tolist(), self.last[item, place].tolist(), strict=True)
        return [(p, range(first, last + 1)) for p, (first, last) in zip(place.tolist(), ends, strict=True)]

    def pairs(self) -> list[tuple[int, int, range]]:
        """Return every item and place that have a window, items first, with its times."""
        return [(item, place, times) for item in range(len(self.first)) for place, times in self.of_item(item)]

    def indices(self) -> list[TimedIndex]:
        """Return the index of every variable, items first, then places, then times."""
        length = self.length.ravel()
        pair = np.repeat(np.arange(length.size), length)
        begin = np.repeat(self.first.ravel() - (np.cumsum(length) - length), length)
        item, place = np.divmod(pair, self.first.shape[1])
        return list(zip(item.tolist(), place.tolist(), (np.arange(pair.size) + begin).tolist(), strict=True))


def on_arcs(
    ready: AnyIntArray, due: AnyIntArray, tail: AnyIntArray, head: AnyIntArray, lag: AnyIntArray | int = 1
) -> Windows:
    """Return the windows in which an item can enter each arc, from distances between nodes.

    ``ready``: from when on a node can send the item; ``due``: until when its arrival at a node can be of use; shape
    (items, nodes) each. Arcs lead from ``tail`` to ``head``, shape (arcs,) each; what enters one at time t arrives at
    ``t + lag``, shape (arcs,) or one number for all.
    """
    return Windows(ready[:, tail].astype(np.int64), (due[:, head] - lag).astype(np.int64))


def at_nodes(ready: AnyIntArray, last: int) -> Windows:
    """Return the windows in which a node can hold each item: from ``ready``, shape (items, nodes), until ``last``."""
    return Windows(ready.astype(np.int64), np.full(ready.shape, last, dtype=np.int64))
