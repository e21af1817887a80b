"""Reduce-scatter and allreduce out of a method for allgather, on any network.

A reduce-scatter is an allgather on the reversed network played backwards: where the allgather's tree hands a chunk
from parent to child, the reduce-scatter hands the child's partial sum to the parent, later arrivals first. On an
EquiMesh the reversed network is the EquiMesh with every ring turned round, which is what MirrorXTree (algorithm 3)
builds its reduce-scatter on.
"""

from __future__ import annotations

from collections.abc import Callable

from synth.network import Network
from synth.schedule import Schedule
from synth_models.xtree.instance import XTreeInstance

Allgather = Callable[[Network, int], Schedule]
"""``(network, chunks per node) -> allgather schedule``."""


def by_allgather(instance: XTreeInstance, allgather: Allgather) -> Schedule:
    """The instance's collective by ``allgather``: directly, reversed, or reversed then directly (allreduce)."""
    network = instance.topology
    if instance.collective == "allgather":
        return allgather(network, instance.chunks)
    scatter = allgather(network.reversed(), instance.chunks).reversed_in_time(adds=True)
    if instance.collective == "reduce_scatter":
        return scatter
    return scatter.then(allgather(network, instance.chunks))
