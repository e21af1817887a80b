"""A topology in words: where each switch leads, and how the routing loads the arcs."""

from __future__ import annotations

import numpy as np

from synth.text.quantities import counted
from synth_models.topology.instance import Cubes, TopologyInstance, lines
from synth_models.topology.solution import Topology, joined

MOST_LINES = 64


def describe(instance: TopologyInstance, topology: Topology) -> str:
    """A line a switch with its permutation, or a line a node with those that its circuits join."""
    told = [counted(len(topology.circuits), "circuit")]
    if len(topology.flow):
        sources = counted(len(np.unique(topology.flow[:, 0])), "source")
        told[0] += f"; routing of {sources}, the others by {counted(len(topology.symmetries), 'renumbering')}"
    if instance.degree is not None:
        ends = joined(instance, topology.circuits)
        ends = ends if instance.one_way else np.concatenate([ends, ends[:, ::-1]])
        arrow = " -> " if instance.one_way else " - "
        for node in range(instance.nodes):
            others = sorted(ends[ends[:, 0] == node, 1].tolist())
            told.append(f"  node {node}{arrow}{' '.join(map(str, others)) or 'none'}")
    else:
        names = _names(instance)
        for number in range(len(instance.switches)):
            rows = topology.circuits[topology.circuits[:, 0] == number]
            order = rows[np.argsort(rows[:, 1])]
            told.append(f"  switch {number}{names[number]}: " + " ".join(f"{a}>{b}" for _, a, b in order.tolist()))
    if len(told) > MOST_LINES:
        told = [*told[:MOST_LINES], f"… {len(told) - MOST_LINES} more (--csv prints all)"]
    return "\n".join(told)


def _names(instance: TopologyInstance) -> list[str]:
    """Of cubes the axis of each switch and the node at which its line begins."""
    if not isinstance(instance.plant, Cubes):
        return [""] * len(instance.switches)
    sides = instance.plant.sides
    found = []
    for axis, _, first in lines(sides):
        place = ",".join(str(int(x)) for x in np.unravel_index(first, sides))
        found.append(f" (axis {axis}, line of {place})")
    return found
