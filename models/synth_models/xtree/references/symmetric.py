"""Method ``symmetric`` (ours): one node's schedule, carried to all others by the network's translations.

On a network whose translations act on the nodes (tori, rings, hypercubes) every link is the image of a link out of
node 0; the images of link j out of node 0 form class j. If node 0's chunks use every class at most once per timestep,
then the schedules of all nodes together, each translated, use every link at most once: chunk ``(r, c)`` passes from
``r + x`` to ``r + y`` when ``(0, c)`` passes from x to y, so the users of one link are told apart by r. It remains to
deliver C * (N - 1) pairs (chunk, node) from node 0 with one delivery per class and timestep, for which
ceil(C * (N - 1) / classes) timesteps are needed and usually enough.

Each timestep matches the classes to missing pairs by a maximum bipartite matching that prefers the pairs farthest
from node 0, then chunks with few holders (ties random). As many pairs per class as there are classes are enough to
choose from for that; they are drawn from the pairs that the class could deliver, which are kept by their distance.
Restarts as in ``pull``.

Complexity: O(C * N * classes^2) for the one schedule. No guarantee but completion. Beyond 2 million transfers the
result stays node 0's schedule with the translations (:mod:`synth.schedule.quotient`), which the check verifies as such.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.clock.deadline import demand_time, left
from synth.errors import UnsupportedError
from synth.kernels import jit
from synth.kernels.clock import now
from synth.method import Outcome
from synth.network import Network
from synth.network.symmetry import translation, unit_translations
from synth.options import RunOptions
from synth.schedule import Schedule
from synth.schedule.quotient import QuotientSchedule, listed
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references.from_allgather import MOST_LISTED, by_quotient
from synth_models.xtree.references.matching import MAX_SLOTS, augment

RESTARTS = 200


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``symmetric``; unsupported on networks without translations."""
    seeds = np.random.SeedSequence(options.seed)
    bound, proof, certificate = lower_bound(instance)
    half = -(-bound // 2) if instance.collective == "allreduce" else bound
    schedule = by_quotient(instance, lambda network, chunks: one_node(network, chunks, seeds.spawn(1)[0], half))
    return Outcome("finished", schedule, float(bound), proof, certificate)


def allgather(network: Network, chunks: int, seed: np.random.SeedSequence, bound: int) -> Schedule:
    """:func:`one_node`'s schedule carried to all others, every transfer listed."""
    return listed(network, one_node(network, chunks, seed, bound), most=MOST_LISTED)


def one_node(network: Network, chunks: int, seed: np.random.SeedSequence, bound: int) -> QuotientSchedule:
    """The shortest of up to ``RESTARTS`` symmetric schedules, stopping at ``bound`` timesteps.

    Raises :class:`UnsupportedError` when the network has no translations or more than 62 links out of a node.
    """
    units, sides = unit_translations(network), network.grid
    if not units or sides is None:
        raise UnsupportedError(
            "symmetric needs a network that its translations map onto itself (torus, ring, hypercube)"
        )
    own = _link_classes(network)
    if len(own) > MAX_SLOTS:
        raise UnsupportedError(f"symmetric takes at most {MAX_SLOTS} links out of a node")
    # target[j, x]: the node to which class j leads from x, the translation of x that maps node 0 to class j's head
    heads = np.stack(np.unravel_index(network.dst[own], sides), axis=1)
    target = np.stack([translation(sides, tuple(head.tolist())) for head in heads])
    distance = network.hops_from(0).astype(np.int64)
    best: Any = None
    for state in seed.generate_state(RESTARTS):
        found = _one_node(network.nodes, chunks, target, distance, int(state), left())
        demand_time()
        if best is None or found[0][-1] < best[0][-1]:
            best = found
        if best[0][-1] <= bound:
            break
    step, kind, pair = best
    chunk, reached = np.divmod(pair, network.nodes)
    source = np.empty_like(target)
    np.put_along_axis(source, target, np.broadcast_to(np.arange(network.nodes), target.shape), axis=1)
    part = Schedule.of(step, _images(network, own, kind, source[kind, reached]), chunk)
    return QuotientSchedule(part, np.stack(units))


def _link_classes(network: Network) -> IntArray:
    """The links out of node 0, by head, parallel ones by number: class j is the j-th and its images."""
    by_tail = network.out_links
    own = by_tail.links[: by_tail.pointer[1]].astype(np.int64)
    return own[np.lexsort((own, network.dst[own]))]


def _images(network: Network, own: IntArray, kind: IntArray, tail: IntArray) -> IntArray:
    """The image of link ``own[kind[i]]`` at node ``tail[i]``; parallel links are told apart."""
    sides = network.grid
    assert sides is not None
    steps = np.unravel_index(network.dst[own], sides)
    at = np.unravel_index(tail, sides)
    moved = tuple((a + by[kind]) % side for a, by, side in zip(at, steps, sides, strict=True))
    head = np.ravel_multi_index(moved, sides)
    copy = np.arange(len(own)) - np.searchsorted(network.dst[own], network.dst[own])
    order = np.lexsort((np.arange(network.links), network.dst, network.src))
    key = network.src[order].astype(np.int64) * network.nodes + network.dst[order]
    found: IntArray = order[np.searchsorted(key, tail * network.nodes + head) + copy[kind]]
    return found


@jit
def _offer(
    y: int, j: int, pair: int, distance: IntArray, start: IntArray, size: IntArray, top: IntArray, offered: IntArray
) -> None:
    """Class j could deliver ``pair`` = chunk * nodes + y from now on: put it with those at its distance."""
    away = distance[y]
    offered[j, start[away] + size[j, away]] = pair
    size[j, away] += 1
    top[j] = max(top[j], away)


@jit
def _draw(
    j: int,
    most: int,
    held: BoolArray,
    start: IntArray,
    size: IntArray,
    top: IntArray,
    offered: IntArray,
    drawn: IntArray,
) -> int:
    """Up to ``most`` of the farthest missing pairs that class j could deliver, at random among those of one distance,
    into ``drawn``; returns how many. Pairs that are held by now are dropped."""
    count, away = 0, top[j]
    while count < most and away > 0:
        first, last = start[away], start[away] + size[j, away]  # those from last on are drawn already
        while count < most and last > first:
            i = first + np.random.randint(last - first)
            last -= 1
            pair = offered[j, i]
            offered[j, i] = offered[j, last]
            if held[pair]:
                size[j, away] -= 1
                offered[j, last] = offered[j, first + size[j, away]]
            else:
                offered[j, last] = pair
                drawn[count] = pair
                count += 1
        if size[j, away] == 0 and top[j] == away:
            top[j] = away - 1
        away -= 1
    return count


@jit
def _one_node(
    nodes: int, chunks: int, target: IntArray, distance: IntArray, seed: int, seconds: float
) -> tuple[IntArray, IntArray, IntArray]:
    """Deliver pairs ``chunk * nodes + node``, one per class and timestep; returns (step, class, pair) arrays."""
    np.random.seed(seed)
    until = now() + seconds
    classes = len(target)
    reach = distance.max() + 1
    start = np.zeros(reach + 1, np.int64)  # in ``offered``, of the pairs at each distance
    for y in range(nodes):
        start[distance[y] + 1] += chunks
    for away in range(reach):
        start[away + 1] += start[away]
    offered = np.empty((classes, chunks * nodes), np.int64)
    size, top = np.zeros((classes, reach), np.int64), np.zeros(classes, np.int64)
    held, holders = np.zeros(chunks * nodes, np.bool_), np.ones(chunks, np.int64)
    offers = np.zeros(chunks * nodes, np.int64)  # which classes could deliver the pair
    goal = chunks * (nodes - 1)
    out_step, out_class, out_pair = np.empty(goal, np.int64), np.empty(goal, np.int64), np.empty(goal, np.int64)
    taken, masks = np.empty(classes, np.int64), np.zeros(classes, np.int64)
    parent, queue = np.empty(classes, np.int64), np.empty(classes, np.int64)
    drawn, key = np.empty(classes * classes, np.int64), np.empty(classes * classes)
    new = np.empty(chunks + classes, np.int64)  # pairs that are held from the next timestep on
    fresh = chunks
    for c in range(chunks):
        new[c] = c * nodes
    done = step = 0
    while done < goal and now() <= until:
        for i in range(fresh):
            held[new[i]] = True
        for i in range(fresh):
            base = new[i] - new[i] % nodes
            for j in range(classes):
                y = target[j, new[i] % nodes]
                if not held[base + y]:
                    offers[base + y] |= np.int64(1) << j
                    _offer(y, j, base + y, distance, start, size, top, offered)
        step += 1
        taken[:] = -1
        count = 0
        for j in range(classes):
            count += _draw(j, classes, held, start, size, top, offered, drawn[count:])
        for i in range(count):
            p = drawn[i]
            key[i] = -2.0 * nodes * distance[p % nodes] + holders[p // nodes] + np.random.random()
        matched = 0
        for i in np.argsort(key[:count]):
            p = drawn[i]
            known = False
            for j in range(classes):
                known = known or taken[j] == p
            if not known and augment(p, offers[p], taken, masks, parent, queue, classes):
                matched += 1
                if matched == classes:
                    break
        fresh = 0
        for j in range(classes):
            if taken[j] >= 0:
                out_step[done], out_class[done], out_pair[done] = step, j, taken[j]
                new[fresh] = taken[j]
                holders[taken[j] // nodes] += 1
                done += 1
                fresh += 1
    return out_step, out_class, out_pair
