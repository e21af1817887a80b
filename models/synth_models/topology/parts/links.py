"""The network that a topology is: its links with their rates and latencies, one direction each."""

from __future__ import annotations

from synth.arrays import IntArray
from synth.network.links_table import LinksTable, TableLink
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.solution import joined


def links_of(instance: TopologyInstance, circuits: IntArray) -> LinksTable:
    """All links that lead from one node to another: the fixed ones, then the circuits, shape (circuits, 3)."""
    found: list[TableLink] = []
    own = instance.circuit_bandwidth or instance.bandwidth
    for word, ends, rate, latency in (
        ("link", instance.fixed, instance.bandwidth, instance.latency),
        ("circuit", joined(instance, circuits), own, instance.circuit_latency),
    ):
        for row, (u, v) in enumerate(ends.tolist()):
            for tail, head in ((u, v), (v, u))[: 1 if instance.one_way else 2]:
                if tail != head:
                    found.append(TableLink(f"{word} {row}", tail, head, rate, latency, kind=word))
    return LinksTable(tuple(map(str, range(instance.nodes))), tuple(found))
