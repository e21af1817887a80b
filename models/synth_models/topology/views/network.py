"""The network that a topology is: its links with their rates and latencies, one direction each."""

from __future__ import annotations

from synth.network.links_table import LinksTable
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.parts.links import links_of
from synth_models.topology.solution import Topology


def network(instance: TopologyInstance, topology: Topology) -> LinksTable:
    """All links that lead from one node to another: the fixed ones, then the circuits."""
    return links_of(instance, topology.circuits)
