"""Which chunks (or origins), links and nodes are each other's images under the instance's symmetries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from synth_models.fabric.programs.epochs.grid import Grid
from synth_models.fabric.programs.flow.symmetry import identity, symmetries

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Folding:
    """A group: images of the ``item`` s (chunks, or origins), ``node`` s and ``link`` s, shape (elements, …) each."""

    item: IntArray
    node: IntArray
    link: IntArray

    def __len__(self) -> int:
        return len(self.item)

    @cached_property
    def item_link(self) -> IntArray:
        """The least image of every pair of item and link, as ``item * links + link``; shape (items, links)."""
        return _least(self.item, self.link)

    @cached_property
    def item_node(self) -> IntArray:
        """The least image of every pair of item and node, as ``item * nodes + node``; shape (items, nodes)."""
        return _least(self.item, self.node)

    @cached_property
    def one_link(self) -> IntArray:
        """The least image of every link, shape (links,)."""
        found: IntArray = self.link.min(axis=0)
        return found


def folding(grid: Grid, wanted: bool) -> Folding:
    """The group of the grid's instance; of the identity alone if not ``wanted``, or if it moves no item whole."""
    items = grid.origin if grid.rule == "copied" else np.unique(grid.instance.blocks.origin)
    group = symmetries(grid.instance) if wanted else identity(grid.instance.machine)
    rank = np.arange(len(items)) % (grid.chunks if grid.rule == "copied" else 1)
    place = {(int(v), int(j)): i for i, (v, j) in enumerate(zip(items, rank, strict=True))}
    images = []
    for node in group.node:
        image = [place.get((int(node[v]), int(j)), -1) for v, j in zip(items, rank, strict=True)]
        if min(image) < 0:
            return folding(grid, False)
        images.append(image)
    return Folding(np.array(images, dtype=np.int64), group.node, group.link)


def _least(item: IntArray, other: IntArray) -> IntArray:
    count = other.shape[1]
    best: IntArray = np.arange(item.shape[1])[:, None] * count + np.arange(count)[None, :]
    own = best.copy()
    for one, two in zip(item, other, strict=True):
        np.minimum.at(best, (one[:, None], two[None, :]), own)
    return best  # the group is closed, so every pair has met all its images
