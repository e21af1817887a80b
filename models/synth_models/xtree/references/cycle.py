"""Method ``cycle`` (ours): both ways round a cycle through all nodes.

A grid of two sides of at least 2, one of them even, has a cycle through all nodes: along row 0 and back, row by row,
over the columns but the first, which leads home. Every node's chunks travel both ways round it, half the other nodes
each way: ceil(C * (N - 1) / 2) timesteps. That is the optimum of an allgather and of a reduce-scatter on every such
mesh, since C * (N - 1) chunks must pass the two links of a corner; on other networks the other links idle.

The cycle is mapped onto itself by a step along it, whatever the network around it is. So one node's part, that step
and the cycle's links say it all (:mod:`synth.schedule.quotient`), at any size.

Complexity: O(C * N). Unsupported where there is no such cycle. No published source: the ring allgather is folklore.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.network import Network
from synth.options import RunOptions
from synth.schedule import Schedule
from synth.schedule.quotient import QuotientSchedule
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references.from_allgather import by_quotient


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``cycle``; unsupported where the grid has no cycle through all nodes."""
    bound, proof, certificate = lower_bound(instance)
    schedule = by_quotient(instance, around)
    return Outcome("finished", schedule, float(bound), proof, certificate)


def around(network: Network, chunks: int) -> QuotientSchedule:
    """The allgather round the cycle. Raises :class:`UnsupportedError`."""
    order = cycle(network)
    up, down = _links(network, order, np.roll(order, -1)), _links(network, order, np.roll(order, 1))
    ahead = np.array([(network.nodes - c % 2) // 2 for c in range(chunks)])  # nodes that chunk c reaches upwards
    parts = []
    for count, links in ((ahead, up), (network.nodes - 1 - ahead, np.roll(down[::-1], 1))):
        chunk = np.repeat(np.arange(chunks), count)
        hop = np.arange(len(chunk)) - np.repeat(np.cumsum(count) - count, count)
        parts.append(Schedule.of(np.arange(1, len(chunk) + 1), links[hop], chunk))
    whole = Schedule.of(*(np.concatenate([getattr(part, key) for part in parts]) for key in ("step", "link", "chunk")))
    step = np.empty(network.nodes, dtype=np.int64)
    step[order] = np.roll(order, -1)
    return QuotientSchedule(whole, step[None, :], np.sort(np.concatenate([up, down])))


def cycle(network: Network) -> IntArray:
    """The nodes of a cycle through all of them, from node 0 on. Raises :class:`UnsupportedError`."""
    sides = network.grid
    if sides is not None and len(sides) == 1 and sides[0] > 2:
        return np.arange(network.nodes)
    if sides is None or len(sides) != 2 or min(sides) < 2 or network.nodes % 2:
        raise UnsupportedError("cycle needs a ring, or a grid of two sides of which one is even")
    ids = np.arange(network.nodes).reshape(sides)
    ids = ids if sides[0] % 2 == 0 else ids.T
    rest = ids[:, 1:].copy()
    rest[1::2] = rest[1::2, ::-1]
    return np.concatenate([ids[0, :1], rest.ravel(), ids[:0:-1, 0]])


def _links(network: Network, tail: IntArray, head: IntArray) -> IntArray:
    """The first link from each tail to its head."""
    order = np.lexsort((np.arange(network.links), network.dst, network.src))
    key = network.src[order].astype(np.int64) * network.nodes + network.dst[order]
    wanted = tail * network.nodes + head
    place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    if not np.array_equal(key[place], wanted):
        raise UnsupportedError("cycle needs links both ways between neighbours of the grid, and round a ring")
    found: IntArray = order[place]
    return found
