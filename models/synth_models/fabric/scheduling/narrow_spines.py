"""Over all switches between two others in turn, where a link to one of them is slower than the ranks' own links.

A route from rank to rank takes one spine switch. Where a leaf switch has many spines, each behind a slow link, whatever
a rank sends to one other is as slow as that link. Piece after piece over the next spine, it is as fast as the ranks.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.problem.machine import Machine


def over_all_in_turn(machine: Machine, route_start: IntArray, link: IntArray, priority: IntArray) -> IntArray:
    """``link`` of routes as :class:`~synth_models.fabric.scheduling.list_scheduling.Transfers` has them, with other
    switches in the middle, in turn by ``priority``; the same where no link between switches slows a route down."""
    net = machine.network
    source, target, switch = net.src.astype(np.int64), net.dst.astype(np.int64), machine.is_switch
    rate = net.bandwidth[link]
    ends = np.minimum(rate[route_start[:-1]], rate[route_start[1:] - 1])
    route = np.repeat(np.arange(len(priority)), np.diff(route_start))
    into, out = link[:-1], link[1:]
    between = (route[:-1] == route[1:]) & (target[into] == source[out]) & switch[source[into]] & switch[target[out]]
    at = np.flatnonzero(between & (np.maximum(rate[:-1], rate[1:]) < ends[route[:-1]]))
    if not len(at):
        return link
    pair = source[link[at]] * machine.nodes + target[link[at + 1]]
    order = np.lexsort((priority[route[at]], pair))
    at, pair = at[order], pair[order]
    found = link.copy()
    begins = np.flatnonzero(np.diff(pair, prepend=-1))
    for first, last in zip(begins, [*begins[1:], len(at)], strict=True):
        here = at[first:last]
        ways = _ways(machine, int(link[here[0]]), int(link[here[0] + 1]))
        turn = np.arange(len(here)) % len(ways)
        found[here], found[here + 1] = ways[turn, 0], ways[turn, 1]
    return found


def _ways(machine: Machine, into: int, out: int) -> IntArray:
    """All pairs of links as fast as these two that lead from where the first begins to where the second ends, shape
    (ways, 2)."""
    net = machine.network
    first, second = (
        np.flatnonzero((end == end[e]) & (net.bandwidth == net.bandwidth[e]) & (net.latency == net.latency[e]))
        for e, end in ((into, net.src), (out, net.dst))
    )
    middle = [node for node in np.unique(net.dst[first]) if machine.is_switch[node] and node in net.src[second]]
    return np.array(
        [(first[net.dst[first] == node][0], second[net.src[second] == node][0]) for node in middle], dtype=np.int64
    )
