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
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from synth.family import Outcome
from synth.network import Network
from synth.network.symmetry import point_symmetries, translations
from synth.options import RunOptions
from synth_models.xtree.instance import XTreeInstance

FLOW_WORK = 1_000_000  # links times max-flows; on larger networks only the nodes of lowest in-degree are tried


def lower_bound(instance: XTreeInstance) -> tuple[int, str, dict[str, Any]]:
    """The strongest bound in timesteps, its proof in words and its certificate."""
    network, collective = instance.topology, instance.collective
    total = instance.total_chunks
    if network.nodes == 1:
        return 0, "a single node has nothing to send", {"binding": "volume"}
    pair = divmod(int(network.distances.argmax()), network.nodes)
    found: list[tuple[int, str, dict[str, Any]]] = [  # on a tie the first one below is named; cuts go in front
        (
            network.diameter,
            f"diameter: node {pair[1]} is {network.diameter} hops from node {pair[0]}",
            {"binding": "diameter", "pair": list(pair)},
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
        found.insert(0, _late_arrivals(instance, side, word))
    for side, word in sides:
        found.insert(0, _strongest_cut(instance, side, word))
    return max(found, key=lambda item: item[0])


def _late_arrivals(instance: XTreeInstance, network: Network, word: str) -> tuple[int, str, dict[str, Any]]:
    """The node and distance that prove most on this orientation of the links."""
    distance, n = network.distances, network.nodes
    reach = int(distance.max()) + 1
    exactly = np.bincount((distance + np.arange(n) * reach).ravel(), minlength=n * reach).reshape(n, reach)
    at_least = exactly[:, ::-1].cumsum(axis=1)[:, ::-1]  # [v, j]: nodes from which v is j hops away or more
    crossings = at_least * instance.chunks
    if instance.collective == "allreduce":
        crossings = (at_least > 0) * instance.total_chunks
    needed = np.arange(reach) - 1 - (-crossings // network.in_degree[:, None])
    needed[(crossings == 0) | (np.arange(reach) == 0)] = 0
    v, hops = divmod(int(needed.argmax()), reach)
    words = f"late arrivals: {crossings[v, hops]} chunks pass the {network.in_degree[v]} links {word} node {v}, "
    certificate = {"binding": "late arrivals", "node": v, "hops": hops, "side": "in" if word == "into" else "out"}
    return (
        int(needed[v, hops]),
        words + f"none of them within {hops - 1} timesteps of the {'start' if word == 'into' else 'end'}",
        certificate,
    )


def _strongest_cut(instance: XTreeInstance, network: Network, word: str) -> tuple[int, str, dict[str, Any]]:
    """The cut that proves most on this orientation of the links, as (timesteps, words, certificate)."""
    chunks, total = instance.chunks, instance.total_chunks
    joint = instance.collective == "allreduce"
    best = 0
    inside: npt.NDArray[np.bool_] = np.zeros(network.nodes, dtype=bool)

    def proves(nodes: npt.NDArray[np.bool_]) -> tuple[int, int, int]:
        crossings = total if joint else int(np.sum(~nodes)) * chunks
        capacity = int(np.sum(~nodes[network.src] & nodes[network.dst]))
        return -(-crossings // capacity), crossings, capacity

    for v in range(network.nodes):
        single = np.arange(network.nodes) == v
        if proves(single)[0] > best:
            best, inside = proves(single)[0], single
    if not joint:  # in an allreduce the crossings are the same for every cut: the narrowest one is sought below
        for v in _flow_targets(network):
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


def _flow_targets(network: Network) -> Iterable[int]:
    """One node per orbit of the known symmetries, lowest in-degree first, as many as ``FLOW_WORK`` allows."""
    if translations(network) is not None:
        return [0]
    images = np.stack(point_symmetries(network))
    representatives = np.flatnonzero(images.min(axis=0) == np.arange(network.nodes))
    ordered = representatives[np.argsort(network.in_degree[representatives], kind="stable")]
    return [int(v) for v in ordered[: max(1, FLOW_WORK // network.links)]]


def _violated_cut(network: Network, target: int, horizon: int, chunks: int) -> npt.NDArray[np.bool_] | None:
    """A node set around ``target`` that more chunks must enter than fit in ``horizon`` timesteps, or None."""
    tail, head, capacity, _ = network.arcs
    n = network.nodes
    rows = np.concatenate([tail, np.full(n, n)])
    cols = np.concatenate([head, np.arange(n)])
    limits = np.concatenate([capacity.astype(np.int64) * horizon, np.full(n, chunks)])
    graph = csr_array((np.minimum(limits, n * chunks).astype(np.int32), (rows, cols)), shape=(n + 1, n + 1))
    flow = maximum_flow(graph, n, target)
    if flow.flow_value >= n * chunks:
        return None
    residual = csr_array(graph - flow.flow)
    residual.eliminate_zeros()
    reached = breadth_first_order(residual, n, return_predecessors=False)
    inside = np.ones(n + 1, dtype=bool)
    inside[reached] = False
    return inside[:n]


def _narrowest_cut(network: Network) -> npt.NDArray[np.bool_]:
    """A proper node set with the fewest links into it (global directed minimum cut by max-flows from and to node 0)."""
    tail, head, capacity, _ = network.arcs
    graph = csr_array((capacity.astype(np.int32), (tail, head)), shape=(network.nodes, network.nodes))
    best: tuple[int, npt.NDArray[np.bool_]] | None = None
    targets = sorted(range(1, network.nodes), key=lambda v: int(min(network.in_degree[v], network.out_degree[v])))
    for v in targets[: max(1, FLOW_WORK // network.links)]:
        for source, sink in ((0, v), (v, 0)):
            flow = maximum_flow(graph, source, sink)
            if best is None or flow.flow_value < best[0]:
                residual = csr_array(graph - flow.flow)
                residual.eliminate_zeros()
                inside = np.ones(network.nodes, dtype=bool)
                inside[breadth_first_order(residual, source, return_predecessors=False)] = False
                best = (int(flow.flow_value), inside)
    assert best is not None
    return best[1]


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``bound``: prove, solve nothing."""
    timesteps, words, certificate = lower_bound(instance)
    return Outcome("finished", bound=float(timesteps), bound_proof=words, certificate=certificate)
