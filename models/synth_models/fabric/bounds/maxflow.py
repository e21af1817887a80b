"""Maximum flow and minimum cut in 64-bit whole numbers (Dinic 1970), with links of a group as nodes of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synth.kernels import jit
from synth_models.fabric.bounds.arrays import BoolArray, IntArray, Links

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
    start: IntArray
    arc: IntArray
    head: IntArray
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
    both_tail = np.stack([tail, head], axis=1).reshape(-1).astype(np.int64)
    both_head = np.stack([head, tail], axis=1).reshape(-1).astype(np.int64)
    order = np.argsort(both_tail, kind="stable").astype(np.int64)
    start = np.concatenate([[0], np.cumsum(np.bincount(both_tail, minlength=nodes + 1))]).astype(np.int64)
    return Arcs(
        nodes + 1,
        start,
        order,
        both_head,
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
    room = np.zeros(2 * (arcs.head.shape[0] // 2), dtype=np.int64)
    room[arcs.link_arc] = capacity[arcs.link_of]
    if len(arcs.level_arc):
        below = np.where(arcs.level_below >= 0, capacity[arcs.level_below], 0)
        room[arcs.level_arc] = np.maximum(capacity[arcs.level_link] - below, 0)
        room[arcs.fixed] = UNLIMITED
    room = np.minimum(room, total)
    room[arcs.node_arc] = supply
    value, reached = _max_flow(arcs.start, arcs.arc, arcs.head, room, arcs.source, sink)
    return total - int(value), reached[: links.nodes]


@jit
def _max_flow(start: IntArray, arc: IntArray, head: IntArray, room: IntArray, source: int, sink: int) -> Any:
    """Dinic's algorithm; ``room`` is used up. Also the nodes still reached from the source."""
    nodes = len(start) - 1
    level = np.empty(nodes, dtype=np.int64)
    queue = np.empty(nodes, dtype=np.int64)
    at = np.empty(nodes, dtype=np.int64)
    path = np.empty(nodes + 1, dtype=np.int64)
    value = np.int64(0)
    while True:
        level[:] = -1
        level[sink] = 0
        queue[0] = sink
        first, last = 0, 1
        while first < last:  # distances to the sink, so that the search below meets no dead ends at first
            v = queue[first]
            first += 1
            for k in range(start[v], start[v + 1]):
                a = arc[k]
                u = head[a]
                if level[u] < 0 and room[a ^ 1] > 0:
                    level[u] = level[v] + 1
                    queue[last] = u
                    last += 1
        if level[source] < 0:
            break
        at[:] = start[:-1]
        depth, v = 0, source
        while True:
            if v == sink:
                least = room[path[0]]
                for i in range(1, depth):
                    least = min(least, room[path[i]])
                value += least
                back = 0
                for i in range(depth - 1, -1, -1):
                    room[path[i]] -= least
                    room[path[i] ^ 1] += least
                    if room[path[i]] == 0:
                        back = i
                v = head[path[back] ^ 1]
                depth = back
                continue
            moved = False
            while at[v] < start[v + 1]:
                a = arc[at[v]]
                if room[a] > 0 and level[head[a]] == level[v] - 1:
                    path[depth] = a
                    depth += 1
                    v = head[a]
                    moved = True
                    break
                at[v] += 1
            if moved:
                continue
            if depth == 0:
                break
            level[v] = -2
            depth -= 1
            v = head[path[depth] ^ 1]
            at[v] += 1
    reached = np.zeros(nodes, dtype=np.bool_)
    reached[source] = True
    queue[0] = source
    first, last = 0, 1
    while first < last:
        v = queue[first]
        first += 1
        for k in range(start[v], start[v + 1]):
            a = arc[k]
            if room[a] > 0 and not reached[head[a]]:
                reached[head[a]] = True
                queue[last] = head[a]
                last += 1
    return value, reached
