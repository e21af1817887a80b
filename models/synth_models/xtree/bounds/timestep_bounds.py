"""Lower bounds on the number of timesteps that hold for every schedule (method ``bound``).

Every argument counts chunks against link capacity; all are proven here and re-verified by the check from the
certificate that comes with them.

* **cut** (XTree's per-node receive bound is the cut around one node). Allgather: every chunk that starts outside a
  node set S must enter S, at most ``capacity(into S)`` do per timestep, so ``T >= C * |outside| / capacity(into S)``.
  Reduce-scatter is an allgather on the reversed network played backwards. Allreduce: contributions to every chunk
  exist on both sides and the sum is wanted on both, so at least one transfer of each of the ``N*C`` chunks crosses
  in each direction. The strongest cut is found by max-flow: for a horizon T give every node a source arc of C and
  every link capacity T; T timesteps pass all cuts around v iff the flow into v is ``N*C``; a min cut that is short
  raises T to what it proves, until all nodes agree.
* **late arrivals**: what comes from j hops away enters v only from timestep j on. If m chunks must enter v from nodes
  at least j hops away, they need distinct link slots in the timesteps j..T, so ``T >= j - 1 + m / in-degree(v)``.
  Allgather: m is C times the number of such nodes. Allreduce: m = N*C as long as some node is that far away, because
  every chunk's sum at v contains that node's contribution, which some transfer of the chunk brings into v in
  timestep j or later. On the reversed network the same holds for what leaves v (reduce-scatter, allreduce).
* **diameter**: a chunk (or contribution) moves one link per timestep.
* **volume**: a schedule uses at most ``links`` transfers per timestep. Allgather and reduce-scatter need N-1
  transfers per chunk. Allreduce needs 2(N-1): until some node first has a complete sum, N-1 transfers of that chunk
  have been made (they connect all nodes), and each of the other N-1 nodes becomes complete by a later transfer into
  it (the one-way gossip argument: Harary & Schwenk 1974). This joint count of both halves is what an allreduce
  that overlaps them can reach, not twice the allgather's bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.graph.hops import breadth_first
from synth.graph.max_flow import MaximumFlow
from synth.graph.symmetry import orbits_of_group
from synth.kernels import jit
from synth.method import Outcome
from synth.network import Network
from synth.network.symmetry import point_symmetries, unit_translations
from synth.options import RunOptions
from synth_models.xtree.instance import XTreeInstance

FLOW_WORK = 1_000_000  # links times max-flows; on larger networks only the nodes of lowest in-degree are tried


def lower_bound(instance: XTreeInstance) -> tuple[int, str, dict[str, Any]]:
    """The strongest bound in timesteps, its proof in words and its certificate."""
    network, collective = instance.topology, instance.collective
    total = instance.total_chunks
    if network.nodes == 1:
        return 0, "a single node has nothing to send", {"binding": "volume"}
    some = representatives(network)
    away = _hops(network, some, instance)[0]
    longest, far = int(away.max()), int(some[away.argmax()])
    pair = [int(network.hops_to(far).argmax()), far]
    found: list[tuple[int, str, dict[str, Any]]] = [  # on a tie the first one below is named; cuts go in front
        (
            longest,
            f"diameter: node {pair[1]} is {longest} hops from node {pair[0]}",
            {"binding": "diameter", "pair": pair},
        )
    ]
    phases = 2 if collective == "allreduce" else 1
    transfers = phases * (network.nodes - 1) * total
    volume = -(-transfers // network.links)
    found.append((volume, f"volume: {transfers} transfers over {network.links} links", {"binding": "volume"}))
    sides = [(network, "into")] if collective == "allgather" else [(network.reversed(), "out of")]
    if collective == "allreduce":
        sides = [(network, "into"), (network.reversed(), "out of")]
    for side, word in sides:
        found.insert(0, _late_arrivals(instance, side, word, some))
    for side, word in sides:
        found.insert(0, _strongest_cut(instance, side, word, some))
    return max(found, key=lambda item: item[0])


def representatives(network: Network) -> IntArray:
    """One node of each orbit of the known symmetries, the least, ascending. They are automorphisms of the reversed
    network too."""
    if unit_translations(network):
        return np.zeros(1, dtype=np.int64)
    least = orbits_of_group(np.stack(point_symmetries(network)))
    return np.flatnonzero(least == np.arange(network.nodes))


def _late_arrivals(
    instance: XTreeInstance, network: Network, word: str, some: IntArray
) -> tuple[int, str, dict[str, Any]]:
    """The node (of the representatives ``some``) and distance that prove most on this orientation of the links."""
    _, needed, hops, crossings = _hops(network, some, instance)
    i = int(needed.argmax())
    v, away = int(some[i]), int(hops[i])
    words = f"late arrivals: {crossings[i]} chunks pass the {network.in_degree[v]} links {word} node {v}, "
    certificate = {"binding": "late arrivals", "node": v, "hops": away, "side": "in" if word == "into" else "out"}
    return (
        int(needed[i]),
        words + f"none of them within {away - 1} timesteps of the {'start' if word == 'into' else 'end'}",
        certificate,
    )


def _hops(network: Network, some: IntArray, instance: XTreeInstance) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Of each of these nodes, shape (nodes named,): how far away the farthest node starts, the timesteps that late
    arrivals prove, from how many hops away on, and how many chunks these are."""
    by_head = network.in_links
    every = instance.total_chunks if instance.collective == "allreduce" else 0
    return _late(some, by_head.pointer, network.src[by_head.links], network.nodes, instance.chunks, every)


@jit
def _late(
    some: IntArray, pointer: Int32Array, tail: Int32Array, nodes: int, chunks: int, every: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Breadth-first search backwards from each of the nodes ``some``; ``every`` > 0: one late node stands for all."""
    farthest, needed = np.zeros(len(some), np.int64), np.zeros(len(some), np.int64)
    hops, crossings = np.zeros(len(some), np.int64), np.zeros(len(some), np.int64)
    distance, order = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    for i in range(len(some)):
        v = some[i]
        degree = pointer[v + 1] - pointer[v]
        breadth_first(pointer, tail, v, distance, order)
        for begin in range(1, nodes):
            level = distance[order[begin]]
            if order[begin] < 0:
                break
            if level == farthest[i]:
                continue
            farthest[i] = level
            crossing = every if every else (nodes - begin) * chunks  # of the nodes level hops away or more
            timesteps = level - 1 + (crossing + degree - 1) // degree
            if timesteps > needed[i]:
                needed[i], hops[i], crossings[i] = timesteps, level, crossing
    return farthest, needed, hops, crossings


def _strongest_cut(
    instance: XTreeInstance, network: Network, word: str, some: IntArray
) -> tuple[int, str, dict[str, Any]]:
    """The cut that proves most on this orientation of the links, as (timesteps, words, certificate)."""
    chunks, total = instance.chunks, instance.total_chunks
    joint = instance.collective == "allreduce"

    def proves(nodes: BoolArray) -> tuple[int, int, int]:
        crossings = total if joint else int(np.sum(~nodes)) * chunks
        capacity = int(np.sum(~nodes[network.src] & nodes[network.dst]))
        return -(-crossings // capacity), crossings, capacity

    into_one = total if joint else total - chunks
    inside = np.arange(network.nodes) == int((-(-into_one // network.in_degree.astype(np.int64))).argmax())
    best = proves(inside)[0]
    if not joint:  # in an allreduce the crossings are the same for every cut: the narrowest one is sought below
        for v in _flow_targets(network, some):
            while (cut := _violated_cut(network, v, best, chunks)) is not None:
                best, inside = proves(cut)[0], cut
    else:
        cut = _narrowest_cut(network)
        if proves(cut)[0] > best:
            best, inside = proves(cut)[0], cut
    timesteps, crossings, capacity = proves(inside)
    nodes = np.flatnonzero(inside).tolist()
    shown = f"node {nodes[0]}" if len(nodes) == 1 else f"a set of {len(nodes)} nodes"
    words = f"cut: {crossings} chunks must pass the {capacity} links {word} {shown}"
    return timesteps, words, {"binding": "cut", "inside": nodes, "crossings": crossings, "capacity": capacity}


def _flow_targets(network: Network, some: IntArray) -> Iterable[int]:
    """The representatives, lowest in-degree first, as many as ``FLOW_WORK`` allows."""
    ordered = some[np.argsort(network.in_degree[some], kind="stable")]
    return [int(v) for v in ordered[: max(1, FLOW_WORK // network.links)]]


def _violated_cut(network: Network, target: int, horizon: int, chunks: int) -> BoolArray | None:
    """A node set around ``target`` that more chunks must enter than fit in ``horizon`` timesteps, or None."""
    tail, head, capacity, _ = network.arcs
    n = network.nodes
    rows = np.concatenate([tail, np.full(n, n)])
    cols = np.concatenate([head, np.arange(n)])
    limits = np.concatenate([capacity.astype(np.int64) * horizon, np.full(n, chunks)])
    flow = MaximumFlow(n + 1, rows, cols, np.minimum(limits, n * chunks), n, target)
    return None if flow.value >= n * chunks else ~flow.source_side[:n]


def _narrowest_cut(network: Network) -> BoolArray:
    """A proper node set with the fewest links into it (global directed minimum cut by max-flows from and to node 0)."""
    tail, head, capacity, _ = network.arcs
    best: tuple[int, BoolArray] | None = None
    targets = sorted(range(1, network.nodes), key=lambda v: int(min(network.in_degree[v], network.out_degree[v])))
    for v in targets[: max(1, FLOW_WORK // network.links)]:
        for source, sink in ((0, v), (v, 0)):
            flow = MaximumFlow(network.nodes, tail, head, capacity, source, sink)
            if best is None or flow.value < best[0]:
                best = flow.value, ~flow.source_side
    assert best is not None
    return best[1]


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``bound``: prove, solve nothing."""
    timesteps, words, certificate = lower_bound(instance)
    return Outcome("finished", bound=float(timesteps), bound_proof=words, certificate=certificate)
