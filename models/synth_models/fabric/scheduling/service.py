"""When transfers end where nobody keeps a schedule's order: links serve first come, first served, or are shared fairly.

Both begin a transfer as soon as what it waits for has arrived. *First come, first served*: it queues at all links of
its route at once and takes them behind all that queued before it. *Fair*: the transfers under way share the links by
max-min fairness, as a fluid (Bertsekas and Gallager, Data Networks, section 6.5.2): all rates grow alike, and a
transfer's stays where a link of its route is full. A group of links that take turns is full where the shares of its
links add up to one.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.clock.deadline import SLACK_S, OutOfTime, left
from synth.errors import UnsupportedError
from synth.kernels import jit
from synth.kernels.clock import now as now_s
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.scheduling.followers import NEVER, Followers, becomes_ready
from synth_models.fabric.scheduling.hop_times import hop_times
from synth_models.fabric.scheduling.list_scheduling import followers_of, most_seconds
from synth_models.fabric.scheduling.reservations import (
    Uses,
    earliest_behind,
    new_next_free,
    reserve_behind,
    uses_of,
)
from synth_models.fabric.scheduling.transfers import Transfers

LOOK = 100  # events between looks at the clock
SAME = 1e-9  # of a transfer: what is left where rounding ends it


def seconds(instance: FabricInstance, transfers: Transfers, behind: IntArray, fair: bool) -> float:
    """Seconds until all have arrived, ``fair`` or first come, first served.

    ``behind``: the transfer that each must not queue before, -1 for none, shape (transfers,); a fair link has no queue.
    Raises :class:`UnsupportedError` where transfers wait for each other, and for fair links of switches that store and
    forward or have few streams; :class:`synth.clock.deadline.OutOfTime` as list scheduling does.
    """
    machine = instance.machine
    ticks = clock.ticks_per_second(machine, most_seconds(instance, transfers))
    hop_by_hop = instance.switching.mode == "store_and_forward"
    if machine.abilities.streams.any() or (fair and hop_by_hop):
        raise UnsupportedError("links are shared only on machines whose switches forward at once, with any streams")
    hops = hop_times(machine, transfers, ticks, hop_by_hop)
    uses = uses_of(transfers.route_start, transfers.link, machine.group, hops.offset, hops.duration, False)
    followers = followers_of(machine, transfers, hops)
    missing = np.diff(transfers.before_start)
    resources = machine.links + len(machine.group_names)
    if fair:
        size = transfers.piece_bytes[transfers.piece]
        longest = np.maximum.reduceat(uses.duration, uses.row[:-1]) if len(size) else missing
        end, in_time = _fair(uses, resources, followers, (size, longest), missing, left() + SLACK_S)
        start: FloatArray = end - longest
    else:
        begin, in_time = _first_come(uses, resources, followers, behind, missing, left() + SLACK_S)
        start = begin.astype(float)
    if not in_time:
        raise OutOfTime
    if np.any(start < -SAME * ticks):
        raise UnsupportedError("these moves cannot be made on this machine: some wait for each other")
    return float((np.repeat(start, np.diff(transfers.route_start)) + hops.arrival).max(initial=0.0)) / ticks


@jit
def _first_come(
    uses: Uses, resources: int, followers: Followers, behind: IntArray, missing: IntArray, seconds: float
) -> tuple[IntArray, bool]:
    """Start ticks, -1 for a transfer that never becomes ready, and whether that took no more than so many seconds.
    Complexity: n log n, times the links of a route."""
    until, looks = now_s() + seconds, 0
    row, transfer = followers.row, followers.transfer
    count = len(missing)
    start = np.full(count, -1, dtype=np.int64)
    ready, waits = np.zeros(count, dtype=np.int64), missing.copy()
    next_in_line = np.full(count, -1, dtype=np.int64)
    for i in range(count):
        if behind[i] >= 0:
            waits[i] += 1
            next_in_line[behind[i]] = i
    reserved = new_next_free(resources)
    heap: Any = [(np.int64(0), np.int64(i)) for i in range(count) if waits[i] == 0]
    heapq.heapify(heap)
    while len(heap):
        looks += 1
        if looks % LOOK == 1 and now_s() > until:
            return start, False
        now, i = heapq.heappop(heap)
        start[i] = earliest_behind(reserved, uses, i, now)[0]
        reserve_behind(reserved, uses, i, start[i])
        j = next_in_line[i]
        if j >= 0:
            ready[j] = max(ready[j], now)
            waits[j] -= 1
            if waits[j] == 0:
                heapq.heappush(heap, (ready[j], j))
        for s in range(row[i], row[i + 1]):
            if becomes_ready(followers, ready, waits, s, start[i]):
                heapq.heappush(heap, (ready[transfer[s]], transfer[s]))
    return start, True


@jit
def _fair(
    uses: Uses, resources: int, followers: Followers, of: tuple[IntArray, IntArray], missing: IntArray, seconds: float
) -> tuple[FloatArray, bool]:
    """When each transfer's last byte has left the slowest link, in ticks, -1 for one that never becomes ready; and
    whether that took no more than so many seconds. ``of`` every transfer: its bytes, and ticks of its slowest link.
    Complexity: events * transfers under way * links of a route."""
    until, looks = now_s() + seconds, 0
    row, transfer, lag = followers
    size, longest = of
    count = len(missing)
    end = np.full(count, -1.0)
    ready, waits = np.zeros(count), missing.copy()
    rest = size.astype(np.float64)
    rate = np.zeros(count)
    heap: Any = [(0.0, np.int64(i)) for i in range(count) if waits[i] == 0]
    heapq.heapify(heap)
    active = np.empty(count, dtype=np.int64)
    going, now = 0, 0.0
    while going or len(heap):
        looks += 1
        if looks % LOOK == 1 and now_s() > until:
            return end, False
        if going == 0:
            now = max(now, heap[0][0])
        while len(heap) and heap[0][0] <= now:
            active[going] = heapq.heappop(heap)[1]
            going += 1
        _share(uses, resources, active[:going], size, rate)
        until_next = (rest[active[:going]] / rate[active[:going]]).min()
        if len(heap):
            until_next = min(until_next, heap[0][0] - now)
        now += until_next
        kept = 0
        for a in range(going):
            i = active[a]
            rest[i] -= rate[i] * until_next
            if rest[i] > SAME * size[i]:
                active[kept] = i
                kept += 1
                continue
            end[i] = now
            for s in range(row[i], row[i + 1]):
                j = transfer[s]
                if lag[s] == NEVER:
                    continue
                ready[j] = max(ready[j], now + max(lag[s] - longest[i], 0.0))
                waits[j] -= 1
                if waits[j] == 0:
                    heapq.heappush(heap, (ready[j], j))
        going = kept
    return end, True


@jit
def _share(uses: Uses, resources: int, active: IntArray, size: IntArray, rate: FloatArray) -> None:
    """Enter the max-min fair rates of the active transfers, in bytes a tick: a resource is full where what it takes a
    byte of each, times the rates, adds up to 1."""
    full = np.zeros(resources)
    weight = np.zeros(resources)
    growing: BoolArray = np.ones(len(active), dtype=np.bool_)
    for i in active:
        for k in range(uses.row[i], uses.row[i + 1]):
            weight[uses.resource[k]] += uses.duration[k] / size[i]
    stop: BoolArray = np.zeros(len(active), dtype=np.bool_)
    level = 0.0
    while growing.any():
        level = np.inf
        for a in range(len(active)):
            if growing[a]:
                for k in range(uses.row[active[a]], uses.row[active[a] + 1]):
                    x = uses.resource[k]
                    level = min(level, (1.0 - full[x]) / weight[x])
        for a in range(len(active)):
            stop[a] = False
            if growing[a]:
                for k in range(uses.row[active[a]], uses.row[active[a] + 1]):
                    x = uses.resource[k]
                    stop[a] |= (1.0 - full[x]) / weight[x] <= level * (1.0 + SAME)
        for a in range(len(active)):
            if stop[a]:
                i = active[a]
                growing[a] = False
                rate[i] = level
                for k in range(uses.row[i], uses.row[i + 1]):
                    x = uses.resource[k]
                    weight[x] -= uses.duration[k] / size[i]
                    full[x] += uses.duration[k] / size[i] * level
