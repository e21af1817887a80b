"""From an order of transfers to start times: event-driven list scheduling on links and groups.

Whoever knows which transfers are to be made, over which routes and after which others, gets start times here: at every
moment the ready transfer of least priority number starts as soon as all links of its route (and their groups) are free
for it. Nothing waits while it could run, so a bad priority costs time, never validity.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.clock.deadline import SLACK_S, OutOfTime, left
from synth.kernels import jit
from synth.kernels.clock import now as now_s
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.scheduling import gathering
from synth_models.fabric.scheduling.at_once import started_at_once
from synth_models.fabric.scheduling.cells import placed_in_cells
from synth_models.fabric.scheduling.followers import NEVER, Followers, becomes_ready, with_lags
from synth_models.fabric.scheduling.hop_times import hop_times
from synth_models.fabric.scheduling.lines import Lines, empty_lines, join, leave, next_in_line
from synth_models.fabric.scheduling.reservations import (
    Uses,
    earliest_behind,
    earliest_in_gap,
    new_gaps,
    new_next_free,
    reserve_behind,
    reserve_in_gap,
    uses_of,
)
from synth_models.fabric.scheduling.switch_sums import in_trees, meet_in_switches
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

GAPS = 48  # of every link that later transfers may fill: the latest ones
LOOK = 1000  # events between looks at the clock


def timed(
    instance: FabricInstance, transfers: Transfers, ticks_per_s: int | None = None, *,
    in_order: bool = False, in_gaps: bool = False, in_cells: bool = False, rounded: bool = False,
) -> Schedule:  # fmt: skip
    """The transfers with start times. Raises ``ValueError`` where some wait for each other, and
    :class:`synth.clock.deadline.OutOfTime` where that would take longer than the time limit in force.

    ``in_order``: every link serves its transfers in the order of their priorities, idle or not, so that a planned
    schedule keeps its order; linear time after sorting. A transfer's priority must then be greater than those of the
    transfers that it waits for.

    ``in_gaps``: transfers are placed in the order of their priorities, those that others wait for first, each as early
    as its links allow, also before what has been placed there. Where routes to a link take unequally long, a link
    waits for what comes from afar and would be idle until then.

    ``in_cells``: the same among all gaps (:mod:`synth_models.fabric.scheduling.cells`), where the times suit that.
    ``rounded``: cells of rounded times are better than lists of gaps.

    Routes of several sources (:mod:`synth_models.fabric.scheduling.gathering`) wait for what each source must hold.

    Where switches store and forward, a route is run hop by hop without waiting in a switch, and every hop is a
    transfer of its own in the schedule. Sums through switches that also add become in-trees
    (:mod:`synth_models.fabric.scheduling.switch_sums`; :class:`synth.errors.UnsupportedError` where they cannot).
    """
    transfers = summed_up(instance, transfers)
    ticks = ticks_per_s or clock.ticks_per_second(instance.machine, most_seconds(instance, transfers))
    hops, uses, resources = occupied(instance, transfers, ticks, in_gaps or in_cells)
    followers, missing = followers_of(instance.machine, transfers, hops), np.diff(transfers.before_start)
    found, seconds, in_gaps = None, left() + SLACK_S, in_gaps or in_cells
    if in_cells:
        found = placed_in_cells(uses, resources, followers, transfers.priority, missing, seconds, rounded)
    if found is None:
        kernel = placed_in_gaps if in_gaps else list_scheduled_in_order if in_order else list_scheduled
        order = np.argsort(transfers.priority, kind="stable") if in_order and not in_gaps else transfers.priority
        found = kernel(uses, resources, followers, order, missing, seconds)
    return schedule_of(instance, transfers, ticks, hops, found)


def timed_alike(instance: FabricInstance, transfers: Transfers) -> Schedule:
    """:func:`timed`, but of links that are looked at in the same tick, that comes first which has most transfers, not
    that of the least number: the same transfers have the same times, whatever the numbers of their links."""
    return _listed(instance, transfers, list_scheduled, _most_used_first)


def timed_at_once(instance: FabricInstance, transfers: Transfers) -> Schedule:
    """:func:`timed`, but of what could start at one moment the priority alone decides; quicker where many wait."""
    return _listed(instance, transfers, started_at_once, lambda resource: resource)


def _listed(
    instance: FabricInstance, transfers: Transfers, kernel: Callable[..., Any], numbered: Callable[[IntArray], IntArray]
) -> Schedule:
    """The transfers with the start times of this kernel, their resources in another order."""
    transfers = summed_up(instance, transfers)
    ticks = clock.ticks_per_second(instance.machine, most_seconds(instance, transfers))
    hops, uses, resources = occupied(instance, transfers, ticks, False)
    uses = uses._replace(resource=numbered(uses.resource))
    followers, missing = followers_of(instance.machine, transfers, hops), np.diff(transfers.before_start)
    found = kernel(uses, resources, followers, transfers.priority, missing, left() + SLACK_S)
    return schedule_of(instance, transfers, ticks, hops, found)


def timed_backwards(instance: FabricInstance, transfers: Transfers, ticks_per_s: int | None = None) -> Schedule:
    """:func:`timed`, each link in order of priority, but links are occupied when they are with time reversed, each
    route from its end on: what is then valid with time reversed
    (:func:`synth_models.fabric.scheduling.mirrored.mirrored`) need not be so as it is."""
    ticks = ticks_per_s or clock.ticks_per_second(instance.machine, most_seconds(instance, transfers))
    hops, uses, resources = occupied(instance, transfers, ticks, False, backwards=True)
    followers, missing = followers_of(instance.machine, transfers, hops), np.diff(transfers.before_start)
    order = np.argsort(transfers.priority, kind="stable")
    found = list_scheduled_in_order(uses, resources, followers, order, missing, left() + SLACK_S)
    return schedule_of(instance, transfers, ticks, hops, found)


def summed_up(instance: FabricInstance, transfers: Transfers) -> Transfers:
    """The transfers, those of a sum that pass switches which store and add as an in-tree."""
    if not meet_in_switches(instance, transfers):
        return transfers
    return Transfers.of(transfers.piece_block, transfers.piece_bytes, *in_trees(instance, transfers))


def occupied(
    instance: FabricInstance, transfers: Transfers, ticks: int, gaps: bool, backwards: bool = False
) -> tuple[gathering.HopTimes, Uses, int]:
    """Times of the hops, what the transfers occupy, and how many resources there are."""
    machine = instance.machine
    hops = hop_times(machine, transfers, ticks, instance.switching.mode == "store_and_forward")
    offset = hops.offset
    if backwards and len(offset):
        longest = np.maximum.reduceat(hops.duration, transfers.route_start[:-1])
        offset = offset + clock.latencies(machine, ticks)[transfers.link] - hops.duration
        offset += np.repeat(longest, _lengths(transfers))
    uses = uses_of(transfers.route_start, transfers.link, machine.group, offset, hops.duration, gaps)
    resources = machine.links + len(machine.group_names)
    if machine.abilities.streams.any():
        uses, resources = gathering.with_streams(machine, uses, resources, transfers, hops)
    return hops, uses, resources


def schedule_of(
    instance: FabricInstance, transfers: Transfers, ticks: int, hops: gathering.HopTimes, found: tuple[IntArray, bool]
) -> Schedule:
    """The transfers with the start times that were found, and whether these were in time."""
    start, in_time = found
    if not in_time:
        raise OutOfTime
    if np.any(start < 0):
        raise ValueError(
            f"{int(np.sum(start < 0))} transfers wait for each other, or for one that is not at their source"
        )
    piece, adds, route_start = transfers.piece, transfers.adds, transfers.route_start
    count = _lengths(transfers)
    end = int((np.repeat(start, count) + hops.arrival).max(initial=0))
    if instance.switching.mode == "store_and_forward":
        start, piece, adds = np.repeat(start, count) + hops.offset, np.repeat(piece, count), np.repeat(adds, count)
        route_start = np.arange(len(transfers.link) + 1, dtype=np.int64)
    made = Schedule(
        ticks, transfers.piece_block, transfers.piece_bytes, start, piece, adds, route_start, transfers.link
    )
    object.__setattr__(made, "ends", (instance.machine, end))
    return made


def _most_used_first(resource: IntArray) -> IntArray:
    """Resources numbered from those that occur most often down, alike ones in the order in which they first occur."""
    _, first, which, count = np.unique(resource, return_index=True, return_inverse=True, return_counts=True)
    number = np.empty(len(count), dtype=np.int64)
    number[np.lexsort((first, -count))] = np.arange(len(count))
    found: IntArray = number[which.reshape(-1)]
    return found


def completion(instance: FabricInstance, schedule: Schedule) -> int:
    """Ticks until the last transfer has arrived: what a method compares schedules by. The check computes its own."""
    if not schedule.transfers:
        return 0
    if schedule.ends is not None and schedule.ends[0] is instance.machine:
        return schedule.ends[1]
    hops = hop_times(instance.machine, schedule, schedule.ticks_per_s, False)
    return int((np.repeat(schedule.start, np.diff(schedule.route_start)) + hops.arrival).max())


def most_seconds(instance: FabricInstance, transfers: Transfers) -> float:
    """More than the transfers take one after the other on every link: what the clock must have room for."""
    net = instance.machine.network
    if not len(transfers.link):
        return 1e-6
    amount = np.repeat(transfers.piece_bytes[transfers.piece], _lengths(transfers)).astype(float)
    return float(np.sum(amount / net.bandwidth[transfers.link] + net.latency[transfers.link])) * 1.01 + 1e-6


def _lengths(transfers: Transfers) -> IntArray:
    lengths: IntArray = np.diff(transfers.route_start)
    return lengths


def waiting_for(transfers: Transfers) -> tuple[IntArray, IntArray]:
    """The transfers that wait for each one, as rows."""
    count = len(transfers.piece)
    waiting = np.repeat(np.arange(count, dtype=np.int64), np.diff(transfers.before_start))
    order = np.argsort(transfers.before, kind="stable")
    start = starts(np.bincount(transfers.before, minlength=count))
    return start, waiting[order]


def followers_of(machine: Machine, transfers: Transfers, hops: gathering.HopTimes) -> Followers:
    """Who waits for every transfer, with the lag of each."""
    src, dst = machine.network.src.astype(np.int64), machine.network.dst.astype(np.int64)
    rows = waiting_for(transfers)
    found = with_lags(*rows, transfers.route_start, transfers.link, src, dst, hops.arrival, hops.leaves)
    if transfers.anywhere and len(found.lag):
        whole = np.maximum.reduceat(hops.arrival, transfers.route_start[:-1])
        found.lag[:] = np.where(found.lag == NEVER, np.repeat(whole, np.diff(found.row)), found.lag)
    return found


def list_scheduled(
    uses: Uses, resources: int, followers: Followers, priority: IntArray, missing: IntArray, seconds: float
) -> tuple[IntArray, bool]:
    """Start ticks, -1 for a transfer that never becomes ready, and whether that took no more than so many seconds; the
    rest is then missing. Complexity: n log n in transfers, and the moves from one busy link's line to another's."""
    order = np.argsort(priority, kind="stable").astype(np.int64)
    lines = empty_lines(uses, resources, order)
    return _from_lines(lines, uses, followers, order, priority, missing, seconds)


@jit(inlined=True)
def _sooner(wake: IntArray, wake_priority: IntArray, at: int, when: int, priority: int) -> bool:
    """Whether resource ``at`` has to be looked at before its pending event; if so, it is noted. One event a resource
    is pending: one for every transfer that waits there would make n of them quadratic."""
    if wake[at] >= 0 and (wake[at] < when or (wake[at] == when and wake_priority[at] <= priority)):
        return False
    wake[at], wake_priority[at] = when, priority
    return True


@jit(inlined=True)
def _free(free: IntArray, resource: IntArray, offset: IntArray, begin: int, end: int, now: int) -> tuple[int, int]:
    """From when on, ``now`` at least, the uses ``begin:end`` are free for good, and which of them is so last (-1: all
    are by now)."""
    start, last = now, -1
    for k in range(begin, end):
        found = free[resource[k]] - offset[k]
        if found > start:
            start, last = found, k
    return start, last


@jit
def _from_lines(
    lines: Lines, uses: Uses, followers: Followers, order: IntArray, priority: IntArray, missing: IntArray,
    seconds: float,
) -> tuple[IntArray, bool]:  # fmt: skip
    """:func:`list_scheduled` with lines where nobody waits yet. Each transfer waits in the line of that resource which
    will be free last for it. At one moment transfers that become ready come first, then resources, each by the
    priority of the transfer that it is looked at for."""
    until, looks, count = now_s() + seconds, 0, len(priority)
    bits, level, first, transfer = lines.bits, lines.level, lines.first, lines.transfer
    begin, resource, offset, place, row = lines.begin, lines.resource, lines.offset, lines.at, uses.row
    beside = len(begin) > 0
    urgent = priority[transfer] if beside else priority
    start, ready, waits = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.int64), missing.copy()
    free = np.zeros(len(first) - 1, dtype=np.int64)
    wake = np.full(len(free), -1, dtype=np.int64)  # when each resource's one pending event is, -1 for none
    wake_priority = np.zeros(len(free), dtype=np.int64)
    zero = np.int64(0)
    events: Any = [(zero, zero, priority[i], np.int64(i)) for i in order if waits[i] == 0]  # sorted, and so a heap
    while len(events):
        looks += 1
        if looks % LOOK == 1 and now_s() > until:
            return start, False
        now, kind, event_priority, number = heapq.heappop(events)
        if kind == 0:  # a transfer becomes ready
            when, k = _free(free, uses.resource, uses.offset, uses.row[number], uses.row[number + 1], now)
            k = uses.row[number] if k < 0 else k
            join(bits, level, lines.place[k])
            if _sooner(wake, wake_priority, uses.resource[k], when, event_priority):
                heapq.heappush(events, (when, np.int64(1), event_priority, np.int64(uses.resource[k])))
            continue
        if wake[number] != now or wake_priority[number] != event_priority:
            continue  # replaced by a sooner one
        wake[number] = -1
        p = next_in_line(bits, level, first[number], first[number + 1])
        while p >= 0:
            i = p if beside else transfer[p]
            entries = begin if beside else row
            when, k = _free(free, resource, offset, entries[i], entries[i + 1], now)
            if when == now:
                leave(bits, level, p)
                start[transfer[p]] = now
                _reserve_and_release(uses, followers, free, waits, ready, priority, events, transfer[p], now)
            else:
                x, urgency = resource[k], urgent[i]
                if _sooner(wake, wake_priority, x, when, urgency):
                    heapq.heappush(events, (when, np.int64(1), urgency, np.int64(x)))
                if x == number:
                    break
                leave(bits, level, p)
                join(bits, level, place[k])
            p = next_in_line(bits, level, p, first[number + 1])
    return start, True


@jit(inlined=True)
def _reserve_and_release(
    uses: Uses, followers: Followers, free: IntArray, waits: IntArray, ready: IntArray, priority: IntArray, events: Any,
    i: int, now: int,
) -> None:  # fmt: skip
    """Occupy what transfer i needs, which starts now, and note those that were waiting for it alone."""
    for k in range(uses.row[i], uses.row[i + 1]):
        x = uses.resource[k]
        free[x] = max(free[x], now + uses.offset[k] + uses.duration[k])
    for s in range(followers.row[i], followers.row[i + 1]):
        if becomes_ready(followers, ready, waits, s, now):
            j = followers.transfer[s]
            heapq.heappush(events, (ready[j], np.int64(0), priority[j], np.int64(j)))


@jit
def placed_in_gaps(
    uses: Uses, resources: int, followers: Followers, priority: IntArray, missing: IntArray, seconds: float
) -> tuple[IntArray, bool]:
    """As :func:`list_scheduled`, by insertion. Complexity: n (log n + links of a route * gaps)."""
    until, looks = now_s() + seconds, 0
    start = np.full(len(priority), -1, dtype=np.int64)
    ready, waits = np.zeros(len(priority), dtype=np.int64), missing.copy()
    reserved = new_gaps(resources, GAPS)
    heap: Any = [(priority[i], np.int64(i)) for i in range(len(priority)) if waits[i] == 0]
    heapq.heapify(heap)
    while len(heap):
        looks += 1
        if looks % LOOK == 1 and now_s() > until:
            return start, False
        i = heapq.heappop(heap)[1]
        start[i] = earliest_in_gap(reserved, uses, i, ready[i])
        reserve_in_gap(reserved, uses, i, start[i])
        for s in range(followers.row[i], followers.row[i + 1]):
            if becomes_ready(followers, ready, waits, s, start[i]):
                j = followers.transfer[s]
                heapq.heappush(heap, (priority[j], j))
    return start, True


@jit
def list_scheduled_in_order(
    uses: Uses, resources: int, followers: Followers, order: IntArray, missing: IntArray, seconds: float
) -> tuple[IntArray, bool]:
    """Start ticks when transfers are placed one by one, in this order, each behind those that its links have; -1 for
    one whose turn comes before all that it waits for. And whether that took no more than so many seconds."""
    until, looks = now_s() + seconds, 0
    count = len(order)
    start = np.full(count, -1, dtype=np.int64)
    ready = np.zeros(count, dtype=np.int64)
    waits = missing.copy()
    reserved = new_next_free(resources)
    for i in order:
        looks += 1
        if looks % LOOK == 1 and now_s() > until:
            return start, False
        if waits[i] != 0:
            continue
        now, _ = earliest_behind(reserved, uses, i, ready[i])
        start[i] = now
        reserve_behind(reserved, uses, i, now)
        for s in range(followers.row[i], followers.row[i + 1]):
            if followers.lag[s] != NEVER:
                j = followers.transfer[s]
                ready[j] = max(ready[j], now + followers.lag[s])
                waits[j] -= 1
    return start, True
