"""When a transfer comes to each link of its route, counted from its start."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.scheduling import gathering


class Moved(gathering.Routed, Protocol):
    """Pieces and their routes, as transfers have them."""

    @property
    def piece_bytes(self) -> IntArray:
        """Shape (pieces,)."""

    @property
    def piece(self) -> IntArray:
        """Shape (transfers,)."""


def hop_times(machine: Machine, moved: Moved, ticks_per_s: int, hop_by_hop: bool) -> gathering.HopTimes:
    """The times of all routes; ``hop_by_hop``: every switch receives all before it sends, and hops of a route that
    parts wait for each other where their links take turns."""
    sizes, size_row = np.unique(moved.piece_bytes, return_inverse=True)
    table, link_row = clock.duration_table(machine, ticks_per_s, sizes)
    if not table.size:
        table = np.zeros((1, 1), dtype=np.int64)
    offset, arrival, duration = _offsets(
        moved.route_start,
        moved.link,
        machine.network.src.astype(np.int64),
        machine.network.dst.astype(np.int64),
        clock.latencies(machine, ticks_per_s),
        table,
        link_row,
        size_row.reshape(-1).astype(np.int64)[moved.piece],
        hop_by_hop,
        machine.group,
    )
    leaves = np.full(len(moved.link), -1, dtype=np.int64)
    leaves[moved.route_start[:-1]] = 0
    times = gathering.HopTimes(offset, arrival, duration, leaves)
    several = np.flatnonzero(gathering.gathering(machine, moved.route_start, moved.link))
    if len(several) and not hop_by_hop:
        size = np.repeat(moved.piece_bytes[moved.piece], np.diff(moved.route_start))
        gathering.gathered(machine, ticks_per_s, moved, size, several, times)
    return times


@jit
def _offsets(
    route_start: IntArray,
    link: IntArray,
    src: IntArray,
    dst: IntArray,
    latency: IntArray,
    table: IntArray,
    link_row: IntArray,
    size_row: IntArray,
    hop_by_hop: bool,
    group: IntArray,
) -> tuple[IntArray, IntArray, IntArray]:
    """Columns of ``HopTimes`` but the last."""
    offset = np.zeros(len(link), dtype=np.int64)
    arrival = np.zeros(len(link), dtype=np.int64)
    longest = np.zeros(len(link), dtype=np.int64)
    duration = np.zeros(len(link), dtype=np.int64)
    for i in range(len(route_start) - 1):
        first = route_start[i]
        for k in range(first, route_start[i + 1]):
            e = link[k]
            took = table[link_row[e], size_row[i]]
            longest[k] = duration[k] = took
            for p in range(k - 1, first - 1, -1):
                if dst[link[p]] == src[e]:
                    before = latency[link[p]]
                    if hop_by_hop:
                        before += table[link_row[link[p]], size_row[i]]
                    else:
                        longest[k] = max(took, longest[p])
                    offset[k] = offset[p] + before
                    break
            again = hop_by_hop and group[e] >= 0
            while again:
                again = False
                for p in range(first, k):
                    behind = offset[p] + duration[p]
                    if group[link[p]] == group[e] and offset[p] < offset[k] + took and offset[k] < behind:
                        offset[k], again = behind, True
            arrival[k] = offset[k] + latency[e] + longest[k]
    return offset, arrival, duration
