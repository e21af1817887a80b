"""The playing field: ranks, direct routes between them, and what a transfer occupies for how long, in ticks.

A board may be *mirrored*: time runs backwards and every route leads from its end to its start. What spreads pieces on
the mirrored board is, read backwards, a reduction on the machine itself, tick by tick: the intervals that a transfer
occupies are those of the machine, seen from its arrival.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.parts import clock
from synth_models.fabric.parts.machine import Machine
from synth_models.fabric.references.pulling.ways import direct_routes
from synth_models.fabric.solution import IntArray

MOST_ROUTES = 1_200_000
INF = 2**62


@dataclass(frozen=True, eq=False)
class Board:
    """Ranks are numbered 0.. in the order of ``ranks`` (node numbers). ``links[row[r]:row[r + 1]]`` is route r as on
    the machine; ``source`` and ``target``, shape (routes,), its ends as the board is played (exchanged if
    ``mirrored``). ``ticks``: per second."""

    machine: Machine
    ranks: IntArray
    is_member: Any
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
    mirrored: bool

    @classmethod
    def of(cls, instance: FabricInstance, ticks: int, size: int, rounds: int, seed: int) -> Board:
        """Of an instance, with the routes that suit pieces of ``size`` bytes; ``rounds`` at most per pair of ranks."""
        machine = instance.machine
        net = machine.network
        used = np.zeros(machine.nodes, dtype=bool)
        used[net.src] = used[net.dst] = True
        used[list(instance.members)] = True
        ranks = np.flatnonzero(used & ~machine.is_switch).astype(np.int64)
        most = max(16, MOST_ROUTES // max(len(ranks) * rounds, 1))
        start, out = rows_of(net.src, machine.nodes)
        row, links = direct_routes(
            ranks, start, out, net.src.astype(np.int64), net.dst.astype(np.int64), machine.is_switch,
            net.latency + size / net.bandwidth, rounds, most, seed,
        )  # fmt: skip
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

    def turned(self) -> Board:
        """Time backwards."""
        return replace(self, source=self.target, target=self.source, mirrored=not self.mirrored)

    @cached_property
    def leaving(self) -> tuple[IntArray, IntArray]:
        """Routes that leave each rank, as rows."""
        return rows_of(self.source, len(self.ranks))

    @cached_property
    def entering(self) -> tuple[IntArray, IntArray]:
        """Routes that enter each rank, as rows."""
        return rows_of(self.target, len(self.ranks))

    def kernel(self, table: IntArray) -> Any:
        """What the kernels take: with ``table``, ticks per bandwidth and class of size, and per route and class the
        ticks from start to arrival."""
        width = int(np.diff(self.row).max(initial=1)) * 2 + 2
        given = (
            self.row, self.links, self.source, self.target, *self.leaving, *self.entering, self.latency,
            np.ascontiguousarray(table), self.link_row, self.group, self.hop_by_hop, self.mirrored,
            np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64),
        )  # fmt: skip
        return *given, lags(given, len(self.source), table.shape[1])


def rows_of(key: Any, count: int) -> tuple[IntArray, IntArray]:
    """Positions by key, as rows."""
    start = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=count))]).astype(np.int64)
    return start, np.argsort(key, kind="stable").astype(np.int64)


def sorted_by_end(row: IntArray, links: IntArray, dst: Any) -> tuple[IntArray, IntArray]:
    """Routes in the order of the nodes where they end."""
    order = np.argsort(dst[links[row[1:] - 1]], kind="stable")
    length = np.diff(row)[order]
    new = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    return new, links[np.arange(new[-1]) + np.repeat(row[:-1][order] - new[:-1], length)]


@jit
def shape(board: Any, r: Any, c: Any) -> Any:
    """Write what a transfer of class c over route r occupies into the board's scratch (resource, ticks from its start,
    duration) and return how many entries there are. Two links of one group make one entry."""
    row, links, latency, table, link_row, group = board[0], board[1], board[8], board[9], board[10], board[11]
    hop, mirrored, what, offset, duration = board[12], board[13], board[14], board[15], board[16]
    t, longest, count = np.int64(0), np.int64(0), 0
    for k in range(row[r], row[r + 1]):
        e = links[k]
        d = table[link_row[e], c]
        what[count], offset[count], duration[count] = e, t, d
        count += 1
        t += latency[e]
        if hop:
            t += d
        longest = max(longest, d)
    lag = t if hop else t + longest
    plain = count
    for k in range(plain):
        g = group[what[k]]
        if g < 0:
            continue
        at = plain
        while at < count and what[at] != g:
            at += 1
        if at < count:
            last = max(offset[at] + duration[at], offset[k] + duration[k])
            offset[at] = min(offset[at], offset[k])
            duration[at] = last - offset[at]
        else:
            what[count], offset[count], duration[count] = g, offset[k], duration[k]
            count += 1
    if mirrored:
        for k in range(count):
            offset[k] = lag - offset[k] - duration[k]
    return count


@jit
def lag_of(board: Any, r: Any, c: Any) -> Any:
    """Ticks from start to arrival."""
    row, links, latency, table, link_row = board[0], board[1], board[8], board[9], board[10]
    t, longest = np.int64(0), np.int64(0)
    for k in range(row[r], row[r + 1]):
        d = table[link_row[links[k]], c]
        t += latency[links[k]]
        if board[12]:
            t += d
        longest = max(longest, d)
    return t if board[12] else t + longest


@jit
def lags(board: Any, routes: Any, classes: Any) -> Any:
    """:func:`lag_of` for all, shape (classes, routes); no rows where that would be large."""
    if routes * classes > 8_000_000:
        return np.zeros((0, 0), dtype=np.int64)
    found = np.zeros((classes, routes), dtype=np.int64)
    for c in range(classes):
        for r in range(routes):
            found[c, r] = lag_of(board, r, c)
    return found


@jit
def distances(board: Any, c: Any, ranks: Any) -> Any:
    """Ticks between all ranks when nothing else moves, over other ranks where that is quicker; shape (ranks, ranks)."""
    best = np.full((ranks, ranks), np.int64(INF))
    for r in range(len(board[2])):
        u, v = board[2][r], board[3][r]
        best[u, v] = min(best[u, v], lag_of(board, r, c))
    for u in range(ranks):
        best[u, u] = 0
    for w in range(ranks):
        for u in range(ranks):
            if best[u, w] < INF:
                for v in range(ranks):
                    if best[w, v] < INF and best[u, w] + best[w, v] < best[u, v]:
                        best[u, v] = best[u, w] + best[w, v]
    return best
