"""The parts of a balanced dragonfly, found in its links whatever their numbers are.

n + 1 groups of 2 h routers with h hosts and h links to other groups each, n = 2 h h, one link between any two groups
(Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly topology, 2008, section 3.1: a = 2 p = 2 h).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.problem.machine import Machine


@dataclass(frozen=True)
class BalancedDragonfly:
    """Where its parts are: ``group`` and ``place`` of every rank, its router times h and its number there, shape
    (nodes,), -1 for switches; ``port``, shape (groups, groups): the place of the link from one group to another, the
    router times h and its number there."""

    hosts: int
    group: IntArray
    place: IntArray
    port: IntArray

    @classmethod
    def of(cls, machine: Machine) -> BalancedDragonfly | None:
        """None where a machine is no balanced dragonfly, or n no power of two greater than 2."""
        net, switch = machine.network, machine.is_switch
        ranks, routers = np.flatnonzero(~switch), np.flatnonzero(switch)
        hosts = len(ranks) // max(len(routers), 1)
        n = 2 * hosts * hosts
        own = np.flatnonzero(~switch[net.src])
        own = own[np.argsort(net.src[own], kind="stable")]
        if hosts < 2 or n & (n - 1) or len(routers) != (n + 1) * 2 * hosts or not np.array_equal(net.src[own], ranks):
            return None
        number = np.full(machine.nodes, -1, dtype=np.int64)
        number[routers] = np.arange(len(routers))
        router = number[net.dst[own]]
        joined = np.zeros((len(routers), len(routers)), dtype=np.int64)
        between = switch[net.src] & switch[net.dst]
        np.add.at(joined, (number[net.src[between]], number[net.dst[between]]), 1)
        group = _cliques(joined, 2 * hosts)
        port = None if group is None else _ports(joined, group, hosts)
        if group is None or port is None or np.any(np.bincount(router[router >= 0], minlength=len(group)) != hosts):
            return None
        of_rank, place = np.full((2, machine.nodes), -1, dtype=np.int64)
        of_rank[ranks] = group[router]
        place[ranks[np.lexsort((router, group[router]))]] = np.tile(np.arange(n), n + 1)
        return cls(hosts, of_rank, place, port)

    def members(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of every group."""
        return tuple(tuple(np.flatnonzero(self.group == g).tolist()) for g in range(len(self.port)))


def _cliques(joined: IntArray, size: int) -> IntArray | None:
    """The group of every router, shape (routers,): a clique of this ``size`` whose routers have more neighbours in
    common than any of different groups. None where they are not dealt out to such. ``joined``: links from one router
    to another, shape (routers, routers)."""
    alone = np.eye(len(joined), dtype=bool)
    alike = (joined > 0) & ((joined > 0).astype(np.int64) @ (joined > 0) >= size - 2) | alone
    first, group = np.unique(np.argmax(alike, axis=1), return_inverse=True)
    whole = np.array_equal(alike, group[:, None] == group) and len(first) * size == len(joined)
    return group if whole and np.array_equal(joined[alike], ~alone[alike]) else None


def _ports(joined: IntArray, group: IntArray, hosts: int) -> IntArray | None:
    """As :class:`BalancedDragonfly` has them; None unless there is one link each way between any two groups, and
    ``hosts`` at every router."""
    far = joined * (group[:, None] != group)
    u, v = np.nonzero(far)
    groups = int(group.max()) + 1
    pairs = np.unique(group[u] * groups + group[v])
    if far.max() > 1 or np.any(far.sum(axis=1) != hosts) or not np.array_equal(far, far.T) or len(pairs) != len(u):
        return None
    port = np.full((groups, groups), -1, dtype=np.int64)
    order = np.lexsort((group[v], u, group[u]))
    port[group[u[order]], group[v[order]]] = np.tile(np.arange(groups - 1), groups)
    return port
