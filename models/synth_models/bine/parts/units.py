"""What of a job's ranks is interchangeable: the units among which trees and placements choose, and what a byte costs.

Where only bytes between groups count, ranks of a group are alike; where bytes between nodes do too, ranks of a node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth_models.bine.instance import BineInstance


@dataclass(frozen=True)
class Units:
    """``of_rank``: the unit of every rank, shape (p,); ``group``: the group of every unit, shape (units,); a byte costs
    ``inside`` between ranks of a unit, ``near`` between units of a group, ``far`` between groups."""

    of_rank: IntArray
    group: IntArray
    inside: int
    near: int
    far: int

    @property
    def sizes(self) -> IntArray:
        """Ranks of every unit, shape (units,)."""
        return np.bincount(self.of_rank).astype(np.int64)

    @property
    def nested(self) -> bool:
        """Whether some group has several units."""
        return len(np.unique(self.group)) < len(self.group)

    @property
    def key(self) -> tuple[int, ...]:
        """The same for jobs with the same answer: sizes, groups and costs."""
        return (*self.sizes.tolist(), -1, *self.group.tolist(), -1, self.inside, self.near, self.far)

    def cost(self, a: IntArray, b: IntArray) -> IntArray:
        """What a byte costs between ranks of units ``a`` and ``b``."""
        between: IntArray = np.where(self.group[a] == self.group[b], self.near, self.far)
        return np.where(a == b, self.inside, between)


def units_of(instance: BineInstance, job: int) -> Units:
    """The units of one job: nodes where a byte costs more between nodes than inside one, else groups."""
    inside, near, far = instance.level_costs
    groups = instance.allocations[job].astype(np.int64)
    if near == inside:
        return Units(groups, np.arange(int(groups.max()) + 1, dtype=np.int64), inside, near, far)
    nodes = instance.nodes[job].astype(np.int64)
    group = np.zeros(int(nodes.max()) + 1, dtype=np.int64)
    group[nodes] = groups
    return Units(nodes, group, inside, near, far)
