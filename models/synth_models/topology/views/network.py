"""The network that a topology is: its links with their rates and latencies, one direction each."""

from __future__ import annotations

from synth.network.links_table import LinksTable, TableLink
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.solution import Topology, joined


def network(instance: TopologyInstance, topology: Topology) -> LinksTable:
    """All links that lead from one node to another: the fixed ones, then the circuits."""
    found: list[TableLink] = []
    for word, ends, latency in (
        ("link", instance.fixed, instance.latency),
        ("circuit", joined(instance, topology.circuits), instance.circuit_latency),
    ):
        for row, (u, v) in enumerate(ends.tolist()):
            for tail, head in ((u, v), (v, u))[: 1 if instance.one_way else 2]:
                if tail != head:
                    found.append(TableLink(f"{word} {row}", tail, head, instance.bandwidth, latency, kind=word))
    return LinksTable(tuple(map(str, range(instance.nodes))), tuple(found))
