"""For how long the links of a machine can serve, and what they carry in it: the arithmetic of bounds' certificates.

Everything is exact: bandwidths and times as fractions, latencies in whole ticks (rounded down where they do not fit 64
bits, which only weakens what a certificate proves), prices as whole numbers.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any, Literal

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.ready import moments

UNREACHABLE = 2**62
LONGEST = 2**61  # ticks of latency on any path
MOST_TICKS_PER_S = 10**18
HIGHEST_PRICE = 2**40  # per byte on one link; a path of 65,536 links then costs less than UNREACHABLE

Sharing = Literal["once", "path", "each"]
"""What may count on a group: of every byte of a transfer one crossing (``once``), the links of one path of a transfer
(``path``), or any of its links (``each``)."""


@dataclass(frozen=True, eq=False)
class Fabric:
    """The usable machine of an instance; ``is_reversed`` with every link from its end to its start."""

    instance: FabricInstance
    is_reversed: bool = False

    @property
    def nodes(self) -> int:
        """Ranks and switches."""
        return self.instance.machine.nodes

    @cached_property
    def tail(self) -> IntArray:
        """Where every link begins."""
        net = self.instance.machine.network
        return (net.dst if self.is_reversed else net.src).astype(np.int64)

    @cached_property
    def head(self) -> IntArray:
        """Where every link ends."""
        net = self.instance.machine.network
        return (net.src if self.is_reversed else net.dst).astype(np.int64)

    @cached_property
    def ticks_per_s(self) -> int:
        """Ticks in which every latency, and every moment at which a rank is ready, is whole, if they fit."""
        found = [exact(float(value)) for value in np.unique(self.instance.machine.network.latency)]
        found += sorted(set(moments(self.instance.ready).values()))
        ticks = lcm(*(value.denominator for value in found)) if found else 1
        most = max(found, default=Fraction(0))
        if ticks <= MOST_TICKS_PER_S and most * ticks * self.nodes <= LONGEST:
            return ticks
        return max(1, min(MOST_TICKS_PER_S, int(LONGEST // max(Fraction(1), most * self.nodes))))

    @cached_property
    def delay(self) -> IntArray:
        """Latency of every link in ticks."""
        values, which = np.unique(self.instance.machine.network.latency, return_inverse=True)
        ticks = [min(int(exact(float(value)) * self.ticks_per_s), LONGEST // self.nodes) for value in values]
        return np.array(ticks, dtype=np.int64)[which.reshape(-1)]

    @cached_property
    def is_rank(self) -> BoolArray:
        """Ranks that have not failed, members or not."""
        return ~self.instance.machine.is_switch

    @cached_property
    def members(self) -> IntArray:
        """The process group."""
        return np.array(self.instance.members, dtype=np.int64)

    @cached_property
    def leaving(self) -> tuple[IntArray, IntArray]:
        """Links by the node they leave."""
        by_tail = np.argsort(self.tail, kind="stable").astype(np.int64)
        return np.searchsorted(self.tail[by_tail], np.arange(self.nodes + 1)).astype(np.int64), by_tail

    def mask(self, nodes: Any) -> BoolArray:
        """True for these nodes."""
        found = np.zeros(self.nodes, dtype=bool)
        found[nodes] = True
        return found

    def reach(self, sources: BoolArray, cost: IntArray, only_switches: bool = False) -> IntArray:
        """Least cost of a path from one of the sources to every node, :data:`UNREACHABLE` where there is none; if so
        wanted, of paths that pass switches only."""
        return self.reach_from(np.where(sources, 0, UNREACHABLE), cost, only_switches)

    def reach_from(self, first: IntArray, cost: IntArray, only_switches: bool = False) -> IntArray:
        """The same where paths begin at any node with what it has cost so far (:data:`UNREACHABLE`: at none)."""
        passes = ~self.is_rank if only_switches else np.ones(self.nodes, dtype=bool)
        return _least_costs(*self.leaving, self.head, cost, first, passes)

    @cached_property
    def begins(self) -> IntArray:
        """The tick from which each node has its own part, rounded down, shape (nodes,); with every link turned round
        a rank's own part is what it gets last, which it may get at once."""
        first = np.zeros(self.nodes, dtype=np.int64)
        for rank, seconds in moments(None if self.is_reversed else self.instance.ready).items():
            first[rank] = min(int(seconds * self.ticks_per_s), LONGEST)
        return first

    def windows(self, sources: BoolArray, sinks: BoolArray) -> tuple[IntArray, IntArray]:
        """For every link the earliest tick at which something from a source can begin to cross it, and the ticks that
        it takes from the moment at which it has crossed until it is at a sink; :data:`UNREACHABLE` where never."""
        back = Fabric(self.instance, not self.is_reversed)
        left = back.reach_from(np.where(sinks, back.begins, UNREACHABLE), self.delay)[self.head]
        begin = self.reach_from(np.where(sources, self.begins, UNREACHABLE), self.delay)[self.tail]
        return begin, np.where(left < UNREACHABLE, left + self.delay, UNREACHABLE)


def reach_over(tail: IntArray, head: IntArray, cost: IntArray, first: IntArray) -> IntArray:
    """As :meth:`Fabric.reach_from` over any links."""
    nodes = len(first)
    by_tail = np.argsort(tail, kind="stable").astype(np.int64)
    start = np.searchsorted(tail[by_tail], np.arange(nodes + 1)).astype(np.int64)
    return _least_costs(start, by_tail, head, cost, first, np.ones(nodes, dtype=bool))


@dataclass
class Capacity:
    """The most that priced links can carry until a moment, each within its window: ``rows`` holds (bytes/s times
    price, latency in ticks that it cannot be used for)."""

    ticks_per_s: int
    rows: list[tuple[Fraction, int]]

    def until(self, seconds: Fraction) -> Fraction:
        """Price times bytes until then."""
        ticks = seconds * self.ticks_per_s
        return sum((rate * (ticks - lost) for rate, lost in self.rows if lost < ticks), Fraction(0)) / self.ticks_per_s


def capacity_of(
    fabric: Fabric, price: IntArray, begin: IntArray, left: IntArray, sharing: Sharing
) -> tuple[Capacity, int]:
    """What links can carry, ``price`` a byte, that cannot begin before ``begin`` and have ``left`` to go (ticks, shape
    (links,)); and how many of the links count."""
    machine = fabric.instance.machine
    counted = (price > 0) & (begin < UNREACHABLE) & (left < UNREACHABLE)
    values, which = np.unique(machine.network.bandwidth, return_inverse=True)
    rates = [exact(float(value)) for value in values]
    alone = counted & (machine.group < 0)
    columns = [price[alone], which.reshape(-1)[alone], begin[alone] + left[alone]]
    kinds, times = np.unique(np.stack(columns), axis=1, return_counts=True)
    rows = [(rates[b] * p * n, h) for (p, b, h), n in zip(kinds.T.tolist(), times.tolist(), strict=True)]
    for g in np.unique(machine.group[counted & (machine.group >= 0)]).tolist():
        inside = np.flatnonzero(counted & (machine.group == g))
        for part in _parts_of_group(fabric, inside, sharing):
            most = max(rates[which.reshape(-1)[e]] * int(price[e]) for e in part)
            rows.append((most, int(begin[part].min()) + int(left[part].min())))
    return Capacity(fabric.ticks_per_s, rows), int(counted.sum())


def _parts_of_group(fabric: Fabric, inside: IntArray, sharing: Sharing) -> list[IntArray]:
    """The links of a group in parts of which one transfer counts at most one link each."""
    stores = fabric.instance.switching.mode == "store_and_forward"
    if sharing == "once" or stores or len(inside) == 1:
        return [inside]
    if sharing == "each":
        return [inside[i : i + 1] for i in range(len(inside))]
    if not _on_one_path(fabric, inside):
        return [inside]
    first = fabric.is_rank[fabric.tail[inside]]
    last = fabric.is_rank[fabric.head[inside]] & ~first
    parts = [inside[first], inside[last]] + [inside[i : i + 1] for i in np.flatnonzero(~first & ~last)]
    return [part for part in parts if len(part)]


def _on_one_path(fabric: Fabric, inside: IntArray) -> bool:
    """Whether two of the links may lie on one route: through switches, and no node twice."""
    for e in inside.tolist():
        middle = int(fabric.head[e])
        if fabric.is_rank[middle]:
            continue
        reached = fabric.reach(fabric.mask([middle]), np.ones_like(fabric.delay), only_switches=True)
        for f in inside.tolist():
            start = int(fabric.tail[f])
            if (
                f != e
                and not fabric.is_rank[start]
                and reached[start] < UNREACHABLE
                and fabric.head[f] != fabric.tail[e]
            ):
                return True
    return False


@jit
def _least_costs(
    start: IntArray, leaving: IntArray, head: IntArray, cost: IntArray, first: IntArray, passes: BoolArray
) -> IntArray:
    """Return least costs (Dijkstra); a node that does not pass is left only where a path may begin.

    The check's own: methods search with :mod:`synth.graph.shortest_paths`, of which this shares nothing.
    """
    least = first.copy()
    waiting: Any = [(np.int64(0), np.int64(0)) for _ in range(0)]
    for v in range(len(first)):
        if first[v] < UNREACHABLE:
            heapq.heappush(waiting, (first[v], np.int64(v)))
    while len(waiting):
        now: Any = heapq.heappop(waiting)
        v = now[1]
        if now[0] > least[v] or not (passes[v] or first[v] < UNREACHABLE):
            continue
        for place in range(start[v], start[v + 1]):
            e = leaving[place]
            if now[0] + cost[e] < least[head[e]]:
                least[head[e]] = now[0] + cost[e]
                heapq.heappush(waiting, (least[head[e]], np.int64(head[e])))
    return least
