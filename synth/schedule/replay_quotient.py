"""The check of a schedule that symmetry repeats, from node 0's part and the generators alone, exactly.

**Why it is exact.** Verified first: every generator is a permutation of the nodes that maps the links it moves onto
themselves; any two commute; together they carry node 0 to every node. Then the group is regular
(:mod:`synth.schedule.quotient`): to every node v belongs exactly one g with g(0) = v, and a link is fixed by the
identity alone, since its tail is. So

* chunk (v, c) goes its way on the network that g makes of itself: it is sent only where it is held, and it arrives (is
  summed up) everywhere, iff (0, c) is and does, which a replay of node 0's part shows;
* the links that the group makes of one link e are as many as the nodes, one for each g. In step t a link f among them
  carries a transfer for every (e, t) of node 0's part with f = g(e) for some g, so one for each: no link carries two
  in a step iff no two transfers of node 0's part in one step use links of one orbit.

What is checked is a condition that is necessary, too, so nothing that is right is refused. The cost is that of one
node's part and of the generators. This module shares no code with the methods, nor with what lists such a schedule: the
symmetries are verified here again, from the arrays.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from synth.arrays import IntArray
from synth.network import Network
from synth.schedule.collective import Collective
from synth.schedule.quotient import QuotientSchedule
from synth.schedule.replay import Replay, replay
from synth.schedule.schedule import Schedule

MOST_GENERATORS = 64


def replay_quotient(network: Network, collective: Collective, schedule: QuotientSchedule, limit: int = 20) -> Replay:
    """Check the whole schedule by its quotient: the same rules as :func:`synth.schedule.replay.replay`, whose faults of
    node 0's part are named as they are. Counts (``transfers``, ``redundant``) are those of the whole schedule."""
    part = schedule.part
    result = Replay(steps=part.steps, transfers=len(part) * network.nodes)
    faults, orbit = _orbits(network, collective, schedule)
    if not faults:
        own = replay(network, of_node_0(collective), part, limit)
        result.redundant, result.faults = own.redundant * network.nodes, own.faults
        result.fault_count = own.fault_count
        if own.fault_count == 0:
            faults = _link_capacity(part, orbit, limit)
    result.faults += faults
    result.fault_count += len(faults)
    return result


def of_node_0(collective: Collective) -> Collective:
    """The same collective with node 0's chunks only: those with the least numbers."""
    own = int(np.sum(collective.owner == 0))
    owner = collective.owner[:own]
    return replace(collective, owner=owner, target=None if collective.target is None else owner)


def orbits(network: Network, collective: Collective, schedule: QuotientSchedule) -> IntArray:
    """The orbit of every link, shape (links,), -1 for links that the group does not move. Raises ``ValueError``."""
    faults, orbit = _orbits(network, collective, schedule)
    if faults:
        raise ValueError(faults[0])
    return orbit


def _orbits(network: Network, collective: Collective, schedule: QuotientSchedule) -> tuple[list[str], IntArray]:
    """What is wrong with the symmetries, and the orbit of every link where nothing is."""
    nothing = np.empty(0, dtype=np.int64)
    if fault := _unlike_nodes(network, collective):
        return [fault], nothing
    moved = np.arange(network.links) if schedule.within is None else np.asarray(schedule.within, dtype=np.int64)
    if moved.ndim != 1 or len(np.unique(moved)) != len(moved):
        return ["the links that the symmetries move are not told apart"], nothing
    if len(moved) and (moved.min() < 0 or moved.max() >= network.links):
        return [f"the symmetries move a link that does not exist (0..{network.links - 1})"], nothing
    generators = np.asarray(schedule.generators, dtype=np.int64)
    if fault := _no_regular_group(network.nodes, generators):
        return [fault], nothing
    orbit = np.full(network.links, -1, dtype=np.int64)
    there: list[IntArray] = []
    for i, image in enumerate(generators):
        move = _moved_links(network, image, moved)
        if move is None:
            return [f"generator {i} does not map the links onto links of the same bandwidth and latency"], nothing
        there.append(move)
    orbit[moved] = _components(there, len(moved))
    used = schedule.part.link
    inside = (used >= 0) & (used < network.links)
    if np.any(orbit[used[inside]] < 0):
        e = int(used[inside][np.flatnonzero(orbit[used[inside]] < 0)[0]])
        return [f"link {e} is used, but the symmetries do not move it"], nothing
    return [], orbit


def _unlike_nodes(network: Network, collective: Collective) -> str | None:
    """Why the collective does not ask the same of every node, or None."""
    each = len(collective.owner) // max(1, network.nodes)
    if collective.nodes != network.nodes:
        return f"the collective has {collective.nodes} nodes, the network {network.nodes}"
    if not np.array_equal(collective.owner, np.repeat(np.arange(network.nodes), each)):
        return f"the chunks of {collective.name} do not belong to the nodes in turn"
    if collective.target is not None and not np.array_equal(collective.target, collective.owner):
        return f"the chunks of {collective.name} do not end where they belong"
    return None


def _no_regular_group(nodes: int, generators: IntArray) -> str | None:
    """Why the generators do not generate a commuting group that carries node 0 to every node, or None."""
    if generators.ndim != 2 or generators.shape[1] != nodes:
        return f"the generators have shape {generators.shape}, not (any, {nodes})"
    if len(generators) > MOST_GENERATORS:
        return f"there are {len(generators)} generators, at most {MOST_GENERATORS} are checked"
    for i, image in enumerate(generators):
        if nodes and (image.min() < 0 or image.max() >= nodes or len(np.unique(image)) != nodes):
            return f"generator {i} is no permutation of the nodes"
    for i, one in enumerate(generators):
        for j, other in enumerate(generators[:i]):
            if not np.array_equal(one[other], other[one]):
                return f"generators {j} and {i} do not commute"
    if len(np.unique(_components(list(generators), nodes))) > 1:
        return "the generators do not carry node 0 to every node"
    return None


def _components(maps: list[IntArray], count: int) -> IntArray:
    """The orbit of each of ``count`` things under permutations of them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    here = np.tile(np.arange(count), len(maps))
    there = np.concatenate(maps) if maps else here
    graph = coo_array((np.ones(len(here), dtype=np.int8), (here, there)), shape=(count, count))
    label: IntArray = connected_components(graph.tocsr(), directed=False)[1].astype(np.int64)
    return label


def _moved_links(network: Network, image: IntArray, moved: IntArray) -> IntArray | None:
    """Where a permutation of the nodes moves the links ``moved`` (positions among them): parallel links of one
    bandwidth and latency keep their order. None where it does not map them onto themselves."""
    tail, head = network.src[moved].astype(np.int64), network.dst[moved].astype(np.int64)
    speed, delay = network.bandwidth[moved], network.latency[moved]
    before = np.lexsort((moved, delay, speed, head, tail))
    place = np.empty(len(moved), dtype=np.int64)  # among all; parallel links of a kind stand side by side, in order
    place[before] = np.arange(len(moved))
    after = np.lexsort((place, delay, speed, image[head], image[tail]))
    for key, new in ((tail, image[tail]), (head, image[head]), (speed, speed), (delay, delay)):
        if not np.array_equal(key[before], new[after]):
            return None
    move = np.empty(len(moved), dtype=np.int64)
    move[after] = before
    return move


def _link_capacity(part: Schedule, orbit: IntArray, limit: int) -> list[str]:
    """No two transfers of one step over links of one orbit."""
    order = np.lexsort((orbit[part.link], part.step))
    step, used = part.step[order], orbit[part.link][order]
    again = np.flatnonzero((step[1:] == step[:-1]) & (used[1:] == used[:-1])) + 1
    return [
        f"step {step[i]}: links {part.link[order[i - 1]]} and {part.link[order[i]]} are images of each other, so some "
        "link would carry two chunks"
        for i in again[:limit].tolist()
    ]
