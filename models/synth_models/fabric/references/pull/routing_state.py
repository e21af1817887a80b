"""Ranks, direct routes between them, and what a transfer occupies for how long, in ticks.

A routing may be *reversed*: time runs backwards and every route leads from its end to its start. A schedule that
spreads pieces on the reversed routing is, read backwards, a reduction on the machine itself, tick by tick: a transfer
occupies the same intervals, counted back from its arrival.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import AnyIntArray, BoolArray, IntArray
from synth.graph.rows import rows_by
from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import picked
from synth_models.fabric.references.pull.direct_routes import WeightedLinks, direct_routes
from synth_models.fabric.references.pull.tuned import MOST_ROUTES
from synth_models.fabric.scheduling.interval_reservations import Intervals, earliest, release, reserve
from synth_models.fabric.scheduling.reservations import Uses, add_use

UNREACHABLE = 2**62  # ticks


class RoutingState(NamedTuple):
    """A :class:`Routing` as kernels take it.

    ``links[row[r]:row[r + 1]]`` is route r, from rank ``source[r]`` to rank ``target[r]``. The routes that leave rank v
    are ``leaving[leaving_row[v]:leaving_row[v + 1]]``, those that enter it ``entering`` likewise. ``latency``: ticks,
    shape (links,); ``table``: ticks per bandwidth and class of size; ``link_row``: the row of each link's bandwidth;
    ``group``: the resource of each link's group, -1 for none. ``uses``: what :func:`find_uses` found last, as its
    transfer 0. ``lag``: ticks from start to arrival, shape (classes, routes), or (0, 0) where that would be large.
    """

    row: IntArray
    links: IntArray
    source: IntArray
    target: IntArray
    leaving_row: IntArray
    leaving: IntArray
    entering_row: IntArray
    entering: IntArray
    latency: IntArray
    table: IntArray
    link_row: IntArray
    group: IntArray
    hop_by_hop: bool
    is_reversed: bool
    uses: Uses
    lag: IntArray


@dataclass(frozen=True, eq=False)
class Routing:
    """Ranks are numbered 0.. in the order of ``ranks`` (node numbers). ``links[row[r]:row[r + 1]]`` is route r as on
    the machine; ``source`` and ``target``, shape (routes,), its ends, exchanged if ``is_reversed``;
    ``ticks`` per second."""

    machine: Machine
    ranks: IntArray
    is_member: BoolArray
    row: IntArray
    links: IntArray
    source: IntArray
    target: IntArray
    latency: IntArray
    link_row: IntArray
    group: IntArray
    resources: int
    ticks: int
    hop_by_hop: bool
    is_reversed: bool

    @classmethod
    def of(cls, instance: FabricInstance, ticks: int, size: int, rounds: int, seed: int) -> Routing:
        """Of an instance, with the routes that suit pieces of ``size`` bytes; ``rounds`` at most per pair of ranks."""
        machine = instance.machine
        net = machine.network
        used = np.zeros(machine.nodes, dtype=bool)
        used[net.src] = used[net.dst] = True
        used[list(instance.members)] = True
        ranks = np.flatnonzero(used & ~machine.is_switch).astype(np.int64)
        most = max(16, MOST_ROUTES // max(len(ranks) * rounds, 1))
        start, out = rows_by(net.src, machine.nodes)
        graph = WeightedLinks(
            start, out, net.src.astype(np.int64), net.dst.astype(np.int64), machine.is_switch,
            net.latency + size / net.bandwidth,
        )  # fmt: skip
        row, links = direct_routes(graph, ranks, rounds, most, seed)
        row, links = sorted_by_end(row, links, net.dst)  # what enters a rank lies together: the greedy reads it often
        place = np.full(machine.nodes, -1, dtype=np.int64)
        place[ranks] = np.arange(len(ranks))
        member = np.zeros(machine.nodes, dtype=bool)
        member[list(instance.members)] = True
        group = np.where(machine.group >= 0, machine.group + machine.links, -1).astype(np.int64)
        _, link_row = np.unique(net.bandwidth, return_inverse=True)
        return cls(
            machine, ranks, member[ranks], row, links,
            place[net.src[links[row[:-1]]]], place[net.dst[links[row[1:] - 1]]],
            clock.latencies(machine, ticks), link_row.reshape(-1).astype(np.int64), group,
            machine.links + len(machine.group_names), ticks, instance.switching.mode == "store_and_forward", False,
        )  # fmt: skip

    def table(self, sizes: IntArray) -> IntArray:
        """Ticks per distinct bandwidth and size in bytes, shape (bandwidths, sizes)."""
        return clock.duration_table(self.machine, self.ticks, sizes)[0]

    def reversed(self) -> Routing:
        """The same routes with time running backwards."""
        return replace(self, source=self.target, target=self.source, is_reversed=not self.is_reversed)

    @cached_property
    def leaving(self) -> tuple[IntArray, IntArray]:
        """Routes that leave each rank, as rows."""
        return rows_by(self.source, len(self.ranks))

    @cached_property
    def entering(self) -> tuple[IntArray, IntArray]:
        """Routes that enter each rank, as rows."""
        return rows_by(self.target, len(self.ranks))

    def state(self, table: IntArray) -> RoutingState:
        """What the kernels take, with ``table``: ticks per bandwidth and class of size."""
        width = int(np.diff(self.row).max(initial=1)) * 2 + 2
        uses = Uses(*(np.zeros(size, dtype=np.int64) for size in (2, width, width, width)))
        found = RoutingState(
            self.row, self.links, self.source, self.target, *self.leaving, *self.entering, self.latency,
            np.ascontiguousarray(table), self.link_row, self.group, self.hop_by_hop, self.is_reversed, uses,
            np.zeros((0, 0), dtype=np.int64),
        )  # fmt: skip
        return found._replace(lag=_lags(found, len(self.source), table.shape[1]))


def sorted_by_end(row: IntArray, links: IntArray, dst: AnyIntArray) -> tuple[IntArray, IntArray]:
    """Routes in the order of the nodes where they end."""
    return picked((row, links), np.argsort(dst[links[row[1:] - 1]], kind="stable"))


@jit(inlined=True)
def find_uses(routing: RoutingState, r: int, c: int) -> None:
    """Write what a transfer of class c over route r occupies into ``routing.uses``, as transfer 0: the links in their
    order, then their groups, each once."""
    uses = routing.uses
    resource, offset, duration = uses.resource, uses.offset, uses.duration
    links, table, link_row, latency = routing.links, routing.table, routing.link_row, routing.latency
    t, longest = 0, 0
    count: Any = np.int64(0)  # a constant has a type of its own: what takes it would be compiled twice
    for k in range(routing.row[r], routing.row[r + 1]):
        e = links[k]
        d = table[link_row[e], c]
        resource[count], offset[count], duration[count] = e, t, d
        count += 1
        t += latency[e]
        if routing.hop_by_hop:
            t += d
        longest = max(longest, d)
    lag = t if routing.hop_by_hop else t + longest
    group, first_group = routing.group, count
    for k in range(first_group):
        g = group[resource[k]]
        if g >= 0:
            count = add_use(uses, first_group, count, g, offset[k], duration[k])
    if routing.is_reversed:
        for k in range(count):
            offset[k] = lag - offset[k] - duration[k]
    uses.row[1] = count


@jit(inlined=True)
def earliest_start(routing: RoutingState, reserved: Intervals, r: int, c: int, t: int) -> int:
    """The first start from t on at which all that a transfer of class c over route r needs is free."""
    find_uses(routing, r, c)
    return earliest(reserved, routing.uses, 0, t)


@jit
def reserve_route(routing: RoutingState, reserved: Intervals, r: int, c: int, t: int) -> bool:
    """Reserve what a transfer needs. False if the pool is full."""
    find_uses(routing, r, c)
    return reserve(reserved, routing.uses, 0, t)


@jit
def release_route(routing: RoutingState, reserved: Intervals, r: int, c: int, t: int) -> bool:
    """Release what was reserved for a transfer. False if the pool is full."""
    find_uses(routing, r, c)
    return release(reserved, routing.uses, 0, t)


@jit(inlined=True)
def lag_of(routing: RoutingState, r: int, c: int) -> int:
    """Ticks from start to arrival."""
    if len(routing.lag):
        return int(routing.lag[c, r])
    return _lag_of(routing, r, c)


@jit
def _lag_of(routing: RoutingState, r: int, c: int) -> int:
    t, longest = 0, 0
    for k in range(routing.row[r], routing.row[r + 1]):
        e = routing.links[k]
        d = routing.table[routing.link_row[e], c]
        t += routing.latency[e]
        if routing.hop_by_hop:
            t += d
        longest = max(longest, d)
    return int(t if routing.hop_by_hop else t + longest)


@jit
def _lags(routing: RoutingState, routes: int, classes: int) -> IntArray:
    """:func:`_lag_of` for all, shape (classes, routes); no rows where that would be large."""
    if routes * classes > 8_000_000:
        return np.zeros((0, 0), dtype=np.int64)
    found = np.zeros((classes, routes), dtype=np.int64)
    for c in range(classes):
        for r in range(routes):
            found[c, r] = _lag_of(routing, r, c)
    return found


@jit
def distances(routing: RoutingState, c: int, ranks: int) -> IntArray:
    """Ticks between all ranks when nothing else moves, over other ranks where that is quicker; shape (ranks, ranks)."""
    best = np.full((ranks, ranks), np.int64(UNREACHABLE))
    for r in range(len(routing.source)):
        u, v = routing.source[r], routing.target[r]
        best[u, v] = min(best[u, v], lag_of(routing, r, c))
    for u in range(ranks):
        best[u, u] = 0
    for w in range(ranks):
        for u in range(ranks):
            if best[u, w] < UNREACHABLE:
                for v in range(ranks):
                    if best[w, v] < UNREACHABLE and best[u, w] + best[w, v] < best[u, v]:
                        best[u, v] = best[u, w] + best[w, v]
    return best
