"""Start times by insertion: transfers are placed one by one, in order of priority, each as early as its links allow.

:func:`synth_models.fabric.scheduling.list_scheduling.timed` goes through time and starts whatever can start; a transfer
of two links then loses its turn to one that needs only the first of them to be free a little earlier. Here a transfer
that has been placed stays, and later ones fill the gaps left before it, so the order of priority holds on every link.
(Serial and parallel schedule generation: Kolisch, European Journal of Operational Research 90, 1996.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.arrays import IntArray
from synth.clock import start_up_costs
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.scheduling.followers import Followers
from synth_models.fabric.scheduling.list_scheduling import most_seconds, placed_in_gaps
from synth_models.fabric.scheduling.reservations import uses_of
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule


@dataclass(frozen=True, eq=False)
class Bookings:
    """Transfers with whole ticks. Per link of every route: ``offset`` from the transfer's start and ``duration``; per
    transfer: ticks that it ``took`` until it has arrived, whether it ``waits``, and its ``follower`` (-1: none)."""

    instance: FabricInstance
    transfers: Transfers
    ticks_per_s: int
    offset: IntArray
    duration: IntArray
    took: IntArray
    waits: IntArray
    follower: IntArray

    @classmethod
    def of(cls, instance: FabricInstance, transfers: Transfers) -> Bookings:
        """Durations and offsets under the instance's clock and way of switching. Routes are paths; each transfer waits
        for at most one other, and at most one waits for it."""
        machine = instance.machine
        ticks = clock.ticks_per_second(machine, most_seconds(instance, transfers))
        hop_by_hop = instance.switching.mode == "store_and_forward"
        length = np.diff(transfers.route_start)
        sizes, row = np.unique(transfers.piece_bytes, return_inverse=True)
        table, link_row = clock.duration_table(machine, ticks, sizes)
        owner = np.repeat(np.arange(len(length)), length)
        duration = table[link_row[transfers.link], row.reshape(-1)[transfers.piece][owner]] if len(owner) else owner
        latency = clock.latencies(machine, ticks)[transfers.link]
        step = latency + duration if hop_by_hop else latency
        gone = np.cumsum(step) - step
        offset = gone - np.repeat(gone[transfers.route_start[:-1]] if len(owner) else gone, length)
        begins = transfers.route_start[:-1]
        longest = np.maximum.reduceat(duration, begins) if len(owner) else duration
        took = offset[begins + length - 1] + latency[begins + length - 1] if len(owner) else duration
        took = took + (duration[begins + length - 1] if hop_by_hop else longest)
        follower = np.full(len(length), -1, dtype=np.int64)
        waits = np.diff(transfers.before_start)
        follower[transfers.before] = np.flatnonzero(waits > 0)
        return cls(instance, transfers, ticks, offset, duration, took, waits, follower)

    def placed(self, priority: IntArray) -> IntArray:
        """Start ticks of transfers placed in this order, the least number first, each as early as its links allow.
        O(links of all routes * GAPS), and a heap. Raises ``ValueError`` where some wait for each other."""
        return self._place(priority, self.offset, self.took, self.waits, self.follower)

    def placed_backwards(self, priority: IntArray) -> IntArray:
        """The same backwards in time: ticks from each arrival to the end."""
        ends = np.repeat(self.took, np.diff(self.transfers.route_start))
        before = np.full(len(self.took), -1, dtype=np.int64)
        leading = np.flatnonzero(self.follower >= 0)
        before[self.follower[leading]] = leading
        waits = (self.follower >= 0).astype(np.int64)
        return self._place(priority, ends - self.offset - self.duration, self.took, waits, before)

    def end(self, start: IntArray) -> int:
        """Ticks until the last transfer has arrived."""
        return int((start + self.took).max(initial=0))

    def schedule(self, start: IntArray) -> Schedule:
        """The transfers with these start ticks."""
        moves = self.transfers
        piece, route_start = moves.piece, moves.route_start
        if self.instance.switching.mode == "store_and_forward":
            owner = np.repeat(np.arange(len(start)), np.diff(moves.route_start))
            start, piece = start[owner] + self.offset, piece[owner]
            route_start = np.arange(len(owner) + 1, dtype=np.int64)
        adds = np.zeros(len(start), dtype=bool)
        return Schedule(
            self.ticks_per_s, moves.piece_block, moves.piece_bytes, start, piece, adds, route_start, moves.link
        )

    def _place(
        self, priority: IntArray, offset: IntArray, took: IntArray, waits: IntArray, follower: IntArray
    ) -> IntArray:
        machine, moves = self.instance.machine, self.transfers
        uses = uses_of(moves.route_start, moves.link, machine.group, offset, self.duration, True)
        row = starts(follower >= 0)
        followers = Followers(row, follower[follower >= 0], took[follower >= 0])
        resources = machine.links + len(machine.group_names)
        start, _ = placed_in_gaps(uses, resources, followers, priority, waits, math.inf)
        if np.any(start < 0):
            raise ValueError(f"{int(np.sum(start < 0))} transfers wait for each other")
        return start


def improved(bookings: Bookings, start: IntArray, until: float, least: int) -> IntArray:
    """Forward and backward improvement (Tormos and Lova, Annals of Operations Research 102, 2001): all transfers as
    late as they can be, in the order in which they end, then as early as they can be, in the order in which they now
    start; again while it gains and the clock (:func:`synth.clock.start_up_costs.counted_now`) is before ``until``."""
    best, end = start, bookings.end(start)
    while end > least and start_up_costs.counted_now() < until:
        late = bookings.placed_backwards(ranked(-(best + bookings.took)))
        last = bookings.end(late)
        early = bookings.placed(ranked(last - late - bookings.took))
        if bookings.end(early) >= end:
            break
        best, end = early, bookings.end(early)
    return best


def ranked(keys: npt.NDArray[Any]) -> IntArray:
    """Place of every key in ascending order; equal keys keep their order."""
    rank = np.empty(len(keys), dtype=np.int64)
    rank[np.argsort(keys, kind="stable")] = np.arange(len(keys))
    return rank
