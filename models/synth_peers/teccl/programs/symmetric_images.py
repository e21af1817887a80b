"""Which chunks (or origins), links and nodes are each other's images under the instance's symmetries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from synth.arrays import IntArray
from synth.graph.symmetry import orbits_of_group
from synth.time_expanded.orbits import PairOrbits, group_orbits, item_images
from synth_models.fabric.plans.node_symmetries import identity, symmetries
from synth_peers.teccl.programs.grid import Grid


@dataclass(frozen=True, eq=False)
class Folding:
    """A group: images of the ``item`` s (chunks, or origins), ``node`` s and ``link`` s, shape (elements, …) each."""

    item: IntArray
    node: IntArray
    link: IntArray

    def __len__(self) -> int:
        return len(self.item)

    @cached_property
    def item_link(self) -> PairOrbits:
        """Pairs of item and link."""
        return group_orbits(self.item, self.link)

    @cached_property
    def item_node(self) -> PairOrbits:
        """Pairs of item and node."""
        return group_orbits(self.item, self.node)

    @cached_property
    def kept_links(self) -> list[int]:
        """The links that stand for all their images."""
        least = orbits_of_group(self.link)
        return np.flatnonzero(least == np.arange(len(least))).tolist()


def folding(grid: Grid, wanted: bool) -> Folding:
    """The group of the grid's instance; of the identity alone if not ``wanted``, or if it moves no item whole."""
    origin = grid.origin if grid.rule == "copied" else np.unique(grid.instance.blocks.origin)
    group = symmetries(grid.instance) if wanted else identity(grid.instance.machine)
    images = []
    for node in group.node:
        image = item_images(origin, node)
        if image is None:
            return folding(grid, False)
        images.append(image)
    return Folding(np.array(images, dtype=np.int64), group.node, group.link)
