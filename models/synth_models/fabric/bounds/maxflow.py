"""Least cuts of a machine's links in 64-bit whole numbers, with links of a group as nodes of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.graph.max_flow import Residual, augment, reached, residual
from synth_models.fabric.bounds.arrays import Links

UNLIMITED = 2**60


@dataclass(frozen=True, eq=False)
class Arcs:
    """Arcs of a flow network in pairs: arc 2i and its reverse 2i + 1.

    Every ungrouped link is an arc (``of_link``: its number, -1 for others). A group is a hyperedge ``tails -> heads``
    with two nodes of its own per distinct bandwidth in it, so that it costs the largest bandwidth of its links once;
    where tails and heads are not all joined that is more than the cut really costs, which weakens no cut found.
    ``node_arc[s]``: the arc from the extra source, number ``nodes - 1``, to node s.
    """

    nodes: int
    network: Residual
    link_arc: IntArray
    link_of: IntArray
    level_arc: IntArray
    level_link: IntArray
    level_below: IntArray
    fixed: IntArray
    node_arc: IntArray

    @property
    def source(self) -> int:
        """The extra source."""
        return self.nodes - 1


def arcs_of(links: Links) -> Arcs:
    """The flow network of the links, plus an extra source with an arc to every node."""
    tail: list[int] = []
    head: list[int] = []
    fixed: list[int] = []
    alone = np.flatnonzero(links.group < 0)
    tail += links.src[alone].tolist()
    head += links.dst[alone].tolist()
    nodes = links.nodes
    level_arc, level_link, level_below = [], [], []
    for g in np.unique(links.group[links.group >= 0]).tolist():
        inside = np.flatnonzero(links.group == g)
        inside = inside[np.argsort(links.rate[inside], kind="stable")]
        below = -1
        for k, e in enumerate(inside.tolist()):
            if below >= 0 and links.rate[e] == links.rate[below]:
                continue
            level_arc.append(len(tail))
            level_link.append(e)
            level_below.append(below)
            tail.append(nodes)
            head.append(nodes + 1)
            below = e
            for u in np.unique(links.src[inside[k:]]).tolist():
                fixed.append(len(tail))
                tail.append(u)
                head.append(nodes)
            for v in np.unique(links.dst[inside[k:]]).tolist():
                fixed.append(len(tail))
                tail.append(nodes + 1)
                head.append(v)
            nodes += 2
    node_arc = len(tail) + np.arange(links.nodes)
    tail += [nodes] * links.nodes
    head += list(range(links.nodes))
    return Arcs(
        nodes + 1,
        residual(nodes + 1, np.array(tail), np.array(head), np.zeros(len(tail), dtype=np.int64)),
        2 * np.arange(len(alone), dtype=np.int64),
        alone.astype(np.int64),
        2 * np.array(level_arc, dtype=np.int64),
        np.array(level_link, dtype=np.int64),
        np.array(level_below, dtype=np.int64),
        2 * np.array(fixed, dtype=np.int64),
        2 * node_arc.astype(np.int64),
    )


def cut_off(arcs: Arcs, links: Links, capacity: IntArray, supply: IntArray, sink: int) -> tuple[int, BoolArray]:
    """How much of the supply (shape (nodes,)) cannot reach the sink at these capacities of links, and the nodes on the
    sources' side of a least cut."""
    total = int(supply.sum())
    room = np.zeros_like(arcs.network.room)
    room[arcs.link_arc] = capacity[arcs.link_of]
    if len(arcs.level_arc):
        below = np.where(arcs.level_below >= 0, capacity[arcs.level_below], 0)
        room[arcs.level_arc] = np.maximum(capacity[arcs.level_link] - below, 0)
        room[arcs.fixed] = UNLIMITED
    room = np.minimum(room, total)
    room[arcs.node_arc] = supply
    network = Residual(arcs.network.start, arcs.network.arc, arcs.network.head, room)
    value = augment(network, arcs.source, sink, total)
    return total - value, reached(network, arcs.source)[: links.nodes]
