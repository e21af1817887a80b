"""Method ``symmetric`` (ours): one node's schedule, carried to all others by the network's translations.

On a network whose translations act on the nodes (tori, rings, hypercubes) every link is the image of a link out of
node 0; the images of link j out of node 0 form class j. If node 0's chunks use every class at most once per timestep,
then the schedules of all nodes together, each translated, use every link at most once: chunk ``(r, c)`` passes from
``r + x`` to ``r + y`` when ``(0, c)`` passes from x to y, so the users of one link are told apart by r. It remains to
deliver C * (N - 1) pairs (chunk, node) from node 0 with one delivery per class and timestep, for which
ceil(C * (N - 1) / classes) timesteps are needed and usually enough.

Each timestep matches the classes to missing pairs by a maximum bipartite matching that prefers the pairs farthest
from node 0, then chunks with few holders (ties random); restarts as in ``pull``.

Complexity: O(T * N * C * classes) for the one schedule, O(transfers) to carry it over. No guarantee but completion.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from synth.errors import UnsupportedError
from synth.family import Outcome
from synth.kernels import jit
from synth.network import Network
from synth.network.symmetry import translations
from synth.options import RunOptions
from synth.schedule import Schedule
from synth_models.xtree.bounds.counting import lower_bound
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references.from_allgather import by_allgather
from synth_models.xtree.references.matching import MAX_SLOTS, augment

RESTARTS = 200


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``symmetric``; unsupported on networks without translations."""
    seeds = np.random.SeedSequence(options.seed)
    bound, proof, certificate = lower_bound(instance)
    half = -(-bound // 2) if instance.collective == "allreduce" else bound
    schedule = by_allgather(instance, lambda network, chunks: allgather(network, chunks, seeds.spawn(1)[0], half))
    return Outcome("finished", schedule, float(bound), proof, certificate)


def allgather(network: Network, chunks: int, seed: np.random.SeedSequence, bound: int) -> Schedule:
    """The shortest of up to ``RESTARTS`` symmetric schedules, stopping at ``bound`` timesteps.

    Raises :class:`UnsupportedError` when the network has no translations or more than 62 links out of a node.
    """
    move = translations(network)
    if move is None:
        raise UnsupportedError(
            "symmetric needs a network that its translations map onto itself (torus, ring, hypercube)"
        )
    link_of = _link_classes(network, move)
    if len(link_of) > MAX_SLOTS:
        raise UnsupportedError(f"symmetric takes at most {MAX_SLOTS} links out of a node")
    heads = network.dst[link_of[:, 0]]
    # source[j, y]: the node from which class j leads to y, the translation of node 0 that maps heads[j] to y
    source = np.empty((len(link_of), network.nodes), dtype=np.int64)
    for j, head in enumerate(heads):
        source[j, move[:, head]] = np.arange(network.nodes)
    best: Any = None
    for state in seed.generate_state(RESTARTS):
        found = _one_node(network.nodes, chunks, source, network.distances[0], int(state))
        if best is None or found[0][-1] < best[0][-1]:
            best = found
        if best[0][-1] <= bound:
            break
    step, kind, pair = best
    chunk, target = np.divmod(pair, network.nodes)
    tail = source[kind, target]
    # node r's copy: class kind's link out of r + tail, which is the translation of tail by r
    links = link_of[kind[None, :], move[:, tail]]
    owners = np.arange(network.nodes)[:, None]
    return Schedule.of(
        np.broadcast_to(step, links.shape).reshape(-1), links.reshape(-1), (owners * chunks + chunk).reshape(-1)
    )


def _link_classes(network: Network, move: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """``link_of[j, v]``: the image of the j-th link out of node 0 at node v; parallel links are told apart."""
    pointer, links = network.out_links
    own = links[pointer[0] : pointer[1]]
    order = np.lexsort((links, network.dst[links], network.src[links]))
    ranked = links[order]
    key = network.src[ranked].astype(np.int64) * network.nodes + network.dst[ranked]
    classes = []
    for head in np.unique(network.dst[own]):
        wanted = np.arange(network.nodes) * network.nodes + move[:, head]
        first = np.searchsorted(key, wanted)
        copies = int(np.sum(network.dst[own] == head))
        classes += [ranked[first + copy] for copy in range(copies)]
    return np.stack(classes).astype(np.int64)


@jit
def _one_node(nodes: int, chunks: int, source: Any, distance: Any, seed: int) -> Any:
    """Deliver pairs ``chunk * nodes + node``, one per class and timestep; returns (step, class, pair) arrays."""
    np.random.seed(seed)
    classes = len(source)
    total = chunks * nodes
    held = np.zeros(total, np.bool_)
    holders = np.ones(chunks, np.int64)
    for c in range(chunks):
        held[c * nodes] = True
    goal = chunks * (nodes - 1)
    out_step, out_class, out_pair = np.empty(goal, np.int64), np.empty(goal, np.int64), np.empty(goal, np.int64)
    taken, masks = np.empty(classes, np.int64), np.zeros(classes, np.int64)
    parent, queue = np.empty(classes, np.int64), np.empty(classes, np.int64)
    done = step = 0
    while done < goal:
        step += 1
        key = np.empty(total)
        for p in range(total):
            key[p] = -2.0 * nodes * distance[p % nodes] + holders[p // nodes] + np.random.random()
        taken[:] = -1
        matched = 0
        for p in np.argsort(key):
            if held[p]:
                continue
            base = p - p % nodes
            offers = np.int64(0)
            for j in range(classes):
                if held[base + source[j, p % nodes]]:
                    offers |= np.int64(1) << j
            if offers and augment(p, offers, taken, masks, parent, queue, classes):
                matched += 1
                if matched == classes:
                    break
        for j in range(classes):
            if taken[j] >= 0:
                out_step[done], out_class[done], out_pair[done] = step, j, taken[j]
                done += 1
        for i in range(done - 1, -1, -1):
            if out_step[i] != step:
                break
            held[out_pair[i]] = True
            holders[out_pair[i] // nodes] += 1
    return out_step, out_class, out_pair
