"""Which spine switch a route takes: in turn where a link to one is slower than the ranks' own, else the least used.

A route from rank to rank takes one spine switch. Where a leaf switch has many spines, each behind a slow link, whatever
a rank sends to one other is as slow as that link. Piece after piece over the next spine, it is as fast as the ranks.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.graph.hops import hops_from_nearest
from synth.kernels import jit
from synth_models.fabric.problem.balanced_fat_tree import BalancedFatTree
from synth_models.fabric.problem.machine import Machine


def over_all_in_turn(machine: Machine, route_start: IntArray, link: IntArray, priority: IntArray) -> IntArray:
    """``link`` of routes as :class:`~synth_models.fabric.scheduling.transfers.Transfers` has them, with other
    switches in the middle, by ``priority`` that which has been idle for longest; the same where no link between
    switches slows a route down."""
    net = machine.network
    source, target, switch = net.src.astype(np.int64), net.dst.astype(np.int64), machine.is_switch
    rate = net.bandwidth[link]
    ends = np.minimum(rate[route_start[:-1]], rate[route_start[1:] - 1])
    route = np.repeat(np.arange(len(priority)), np.diff(route_start))
    into, out = link[:-1], link[1:]
    between = (route[:-1] == route[1:]) & (target[into] == source[out]) & switch[source[into]] & switch[target[out]]
    at = np.flatnonzero(between & (np.maximum(rate[:-1], rate[1:]) < ends[route[:-1]]))
    if len(at):
        level = hops_from_nearest(machine.nodes, net.src, net.dst, machine.ranks)
        middle = level[target[link[at]]]
        at = at[(middle > level[source[link[at]]]) & (middle > level[target[link[at + 1]]])]
    if not len(at):
        return link
    at = at[np.argsort(priority[route[at]], kind="stable")]
    pair = source[link[at]] * machine.nodes + target[link[at + 1]]
    _, first, row = np.unique(pair, return_index=True, return_inverse=True)
    ways = [_ways(machine, int(link[k]), int(link[k + 1])) for k in at[first]]
    table = np.full((len(ways), max(map(len, ways)), 2), -1, dtype=np.int64)
    for k, own in enumerate(ways):
        table[k, : len(own)] = own
    found = link.copy()
    _least_recent(table, row.ravel().astype(np.int64), at, np.full(net.links, -1, dtype=np.int64), found)
    return found


@jit
def _least_recent(ways: IntArray, row: IntArray, at: IntArray, last: IntArray, link: IntArray) -> None:
    """Give every pair of links, ``link[at[k]]`` and the next, the way of those in its row whose links were ``last``
    used the longest ago."""
    for k in range(len(at)):
        own, best, since = ways[row[k]], 0, len(at)
        for way in range(len(own)):
            if own[way, 0] >= 0:
                used = max(last[own[way, 0]], last[own[way, 1]])
                if used < since:
                    best, since = way, used
        for end in range(2):
            link[at[k] + end] = own[best, end]
            last[own[best, end]] = k


class LeastUsedSpines:
    """A spine for each pair of members of a tree, always the same: when first asked for, the least used one."""

    def __init__(self, tree: BalancedFatTree, machine: Machine) -> None:
        self._tree = tree
        self._spine = np.full((machine.nodes, machine.nodes), -1, dtype=np.int16)
        self._used = np.zeros(machine.links, dtype=np.int64)

    def of(self, source: IntArray, target: IntArray) -> IntArray:
        """Numbers of spines, shape as theirs; any for two members at one leaf switch."""
        tree = self._tree
        fresh = np.flatnonzero((self._spine[source, target] < 0) & tree.across(source, target))
        fresh = fresh[np.unique(source[fresh] * len(self._spine) + target[fresh], return_index=True)[1]]
        one, other = source[fresh], target[fresh]
        up, down = tree.to_spine[tree.group[one], tree.leaf[one]], tree.from_spine[tree.group[other], tree.leaf[other]]
        self._spine[one, other] = _least_used(up, down, self._used)
        return self._spine[source, target].astype(np.int64)


@jit
def _least_used(up: IntArray, down: IntArray, used: IntArray) -> IntArray:
    """The column of two links, one of ``up`` and one of ``down``, that have been ``used`` least, row by row."""
    found = np.zeros(len(up), dtype=np.int64)
    for k in range(len(up)):
        least, total = np.int64(-1), np.int64(0)
        for spine in range(up.shape[1]):
            one, other = used[up[k, spine]], used[down[k, spine]]
            most = max(one, other)
            if least < 0 or most < least or (most == least and one + other < total):
                found[k], least, total = spine, most, one + other
        used[up[k, found[k]]] += 1
        used[down[k, found[k]]] += 1
    return found


def as_one(machine: Machine, slow: BoolArray) -> tuple[IntArray, FloatArray]:
    """Of links between switches that are ``slow``, shape (links,), all as fast from a switch up, or down to one, in the
    place of one link: its number, and the bytes/s of all. Other links stand for themselves."""
    net = machine.network
    level = hops_from_nearest(machine.nodes, net.src, net.dst, machine.ranks)
    between = slow & machine.is_switch[net.src] & machine.is_switch[net.dst]
    number, rate = np.arange(net.links, dtype=np.int64), net.bandwidth.astype(float)
    for end, other in ((net.src, net.dst), (net.dst, net.src)):
        links = np.flatnonzero(between & (level[other] > level[end]))
        alike = np.stack([end[links].astype(float), net.bandwidth[links]])
        _, first, place = np.unique(alike, axis=1, return_index=True, return_inverse=True)
        number[links] = links[first][place.ravel()]
        rate[links] *= np.bincount(place.ravel())[place.ravel()]
    return number, rate


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
