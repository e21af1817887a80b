"""Schedules that symmetry repeats: what is sent of node 0's chunks, and the permutations that carry it to all others.

Let the *generators*, permutations of the nodes, generate a group G that commutes and maps node 0 to every node. Such a
group is regular: for every node v exactly one g in G has g(0) = v (if g(0) = h(0), then for any node x = k(0) we have
g(x) = g(k(0)) = k(g(0)) = k(h(0)) = h(x)). G moves links, too: the i-th of the parallel links u -> w of one bandwidth
and latency, in the order of their ids, goes to the i-th of those g(u) -> g(w). The whole schedule sends chunk (v, c)
over g(e) in step t wherever the stored part sends chunk (0, c) over e in step t, g being the one with g(0) = v.

``within`` names the links that the group moves: all of them, or those of a part of the network with more symmetry than
the whole (a cycle through all nodes of a mesh). Nothing here is trusted before
:func:`synth.schedule.replay_quotient.replay_quotient` has verified it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth.errors import InputError
from synth.graph.symmetry import arc_images
from synth.network import Network
from synth.schedule.schedule import Schedule

LISTED = 20_000_000  # transfers that are listed one by one for somebody who wants them all


@dataclass(frozen=True)
class QuotientSchedule:
    """``part`` holds the transfers of node 0's chunks, numbered 0..C-1; ``generators`` has shape (generators, nodes),
    entry ``[i, v]`` being where the i-th moves v; ``within`` has shape (links moved,), None for all links."""

    part: Schedule
    generators: IntArray
    within: IntArray | None = None

    @property
    def steps(self) -> int:
        """The last timestep used."""
        return self.part.steps

    def transfers(self, nodes: int) -> int:
        """Transfers of the whole schedule."""
        return len(self.part) * nodes


def link_moves(network: Network, generators: IntArray, within: IntArray) -> IntArray | None:
    """Where each generator moves the links ``within``, shape (generators, links within), entries being positions in
    ``within``; None if one of them does not map these links onto themselves, with bandwidth and latency."""
    by_id = np.argsort(within, kind="stable")  # parallel links go to parallel links in the order of their ids
    links = within[by_id]
    kinds = network.bandwidth[links], network.latency[links]
    moves = np.empty((len(generators), len(within)), dtype=np.int64)
    for move, image in zip(moves, generators, strict=True):
        found = arc_images(image, network.src[links], network.dst[links], kinds)
        if found is None:
            return None
        move[by_id] = by_id[found]
    return moves


def node_parts(network: Network, schedule: QuotientSchedule) -> Iterator[tuple[int, IntArray]]:
    """``(v, links)`` for every node v: over which links its chunks go, in the order of ``schedule.part``.

    Raises :class:`InputError` where the generators do not reach all nodes or are no symmetries.
    """
    within = np.arange(network.links) if schedule.within is None else schedule.within
    moves = link_moves(network, schedule.generators, within)
    if moves is None:
        raise InputError("a generator does not map the links onto themselves")
    if not np.isin(schedule.part.link, within).all():
        raise InputError("a link is used that the symmetries do not move")
    place = np.full(network.links, -1, dtype=np.int64)
    place[within] = np.arange(len(within))
    seen = np.zeros(network.nodes, dtype=bool)
    seen[0] = True
    moves = moves.astype(np.int32)
    waiting = deque([(0, place[schedule.part.link].astype(np.int32))])  # first in, first out: fewest wait at once
    reached = 0
    while waiting:
        v, places = waiting.popleft()
        reached += 1
        yield v, within[places]
        for image, move in zip(schedule.generators, moves, strict=True):
            w = int(image[v])
            if not seen[w]:
                seen[w] = True
                waiting.append((w, move[places]))
    if reached < network.nodes:
        raise InputError("the generators do not carry node 0 to every node")


def listed(network: Network, schedule: Schedule | QuotientSchedule, most: int = LISTED) -> Schedule:
    """Every transfer of the schedule. Raises :class:`InputError` beyond ``most``, and where what is stored is no
    symmetry."""
    if isinstance(schedule, Schedule):
        return schedule
    part, count = schedule.part, schedule.transfers(network.nodes)
    if count > most:
        raise InputError(
            f"the schedule has {count} transfers, more than the {most} that are listed; the record holds those of node "
            f"0's chunks ({len(part)}) and the symmetries that carry them to all others"
        )
    links = np.empty((len(part), network.nodes), dtype=np.int32)
    for v, own in node_parts(network, schedule):
        links[:, v] = own
    chunks = int(part.chunk.max(initial=0)) + 1
    owner = np.arange(network.nodes, dtype=np.int32)
    return Schedule.of(
        np.repeat(part.step, network.nodes),
        links.reshape(-1),
        (owner[None, :] * chunks + part.chunk[:, None]).reshape(-1),
        np.repeat(part.adds, network.nodes),
    )
