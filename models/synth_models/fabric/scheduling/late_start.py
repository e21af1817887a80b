"""A schedule for ranks that are all ready at once, timed again for ranks that are not.

Two ways: all of it so much later that nobody sends too early, or every transfer as early as its links, its rank and
what it waits for allow. In the second way every transfer brings what it brought before. Let k leave a rank with a part
of a sum. What had come there by then comes by then; what came there later comes later; and what adds to a place into
which a whole sum comes later still comes before that. So no contribution is added twice, and no sum lacks one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, lcm
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.ready import in_ticks, moments
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.scheduling.followers import Followers
from synth_models.fabric.scheduling.gates import Waiting, started
from synth_models.fabric.scheduling.gathering import HopTimes
from synth_models.fabric.scheduling.hop_times import hop_times
from synth_models.fabric.scheduling.lighter_roots import lighter_roots
from synth_models.fabric.scheduling.list_scheduling import followers_of, most_seconds, occupied
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import MOST_TICKS, Schedule

MOST_PAIRS = 20_000_000  # of transfers of which one waits for the other: some hundred megabytes
FINER, MOST_FINER = (8, 32), 30_000  # parts of each piece that are tried, and transfers that they may make
SEVERAL_WAYS = 200_000  # transfers beyond which one order only is tried


class Pairs(NamedTuple):
    """Transfers ``after`` that wait for others, ``before``; ``here`` and ``there`` are the links of both, as places in
    the list of all routes, by which they come to the rank or leave it. Shape (pairs,) each."""

    before: IntArray
    after: IntArray
    here: IntArray
    there: IntArray


_NOBODY = Pairs(*(np.zeros(0, dtype=np.int64) for _ in range(4)))


class Waits(NamedTuple):
    """The three kinds of waiting, all at one rank: what leaves for what arrives, what arrives for the part of a sum
    that leaves without it, a whole sum for what adds."""

    leaving: Pairs
    coming: Pairs
    whole: Pairs


def late_schedules(
    instance: FabricInstance, schedule: Schedule, made_for: FabricInstance
) -> Iterator[tuple[str, Schedule]]:
    """Schedules of an instance with ready times, in words, made of one of ``instance.on_time``, or of the same with
    slower links."""
    later = shifted(instance, schedule) if made_for is instance.on_time else None
    if later is not None:
        yield "all of it later", later
    moves = Transfers.of_schedule(schedule)
    waits = _waits(instance, moves, hop_times(made_for.machine, moves, schedule.ticks_per_s, False), schedule.start)
    if waits is None or not len(moves.piece):
        return
    sizes = lighter_roots(instance, schedule)
    cut, told = (moves, "") if sizes is None else (replace(moves, piece_bytes=sizes), "late roots of less, ")
    yield from ((told + words, made) for words, made in _timed(instance, cut, waits))
    if sizes is not None and len(moves.piece) <= SEVERAL_WAYS:
        yield from _timed(instance, moves, waits)
    for parts in FINER:
        if parts * len(moves.piece) <= MOST_FINER and int(cut.piece_bytes.min()) >= parts:
            finer = _timed(instance, *_finer(cut, waits, parts))
            yield from ((f"{told}each piece in {parts}, {words}", made) for words, made in finer)


def _finer(moves: Transfers, waits: Waits, parts: int) -> tuple[Transfers, Waits]:
    """Every piece in so many parts, which go the same ways; of each number all before the next."""
    count, length = len(moves.piece), np.diff(moves.route_start)
    size, rest = np.divmod(moves.piece_bytes, parts)
    number = np.arange(parts)
    owner = np.repeat(np.arange(count), length)
    turn = np.empty(count, dtype=np.int64)
    turn[np.argsort(moves.priority, kind="stable")] = np.arange(count)
    of, part = np.repeat(np.arange(count), parts), np.tile(number, count)
    route_start = starts(np.repeat(length, parts))
    rows = np.arange(route_start[-1]) - np.repeat(route_start[:-1], np.repeat(length, parts))
    made = replace(
        moves,
        piece_block=np.repeat(moves.piece_block, parts),
        piece_bytes=(size[:, None] + (number < rest[:, None])).reshape(-1),
        piece=moves.piece[of] * parts + part,
        adds=moves.adds[of],
        priority=part * count + turn[of],
        route_start=route_start,
        link=moves.link[rows + np.repeat(moves.route_start[:-1][of], np.repeat(length, parts))],
        before=np.zeros(0, dtype=np.int64),
        before_start=np.zeros(count * parts + 1, dtype=np.int64),
    )

    def place(row: IntArray) -> IntArray:
        i = owner[row]
        first: IntArray = route_start[:-1].reshape(count, parts)[i] + (row - moves.route_start[i])[:, None]
        return first.reshape(-1)

    def each(pairs: Pairs) -> Pairs:
        ends = ((row[:, None] * parts + number).reshape(-1) for row in pairs[:2])
        return Pairs(*ends, *map(place, pairs[2:]))

    return made, Waits(*map(each, waits))


def _timed(instance: FabricInstance, moves: Transfers, waits: Waits) -> Iterator[tuple[str, Schedule]]:
    """The transfers, whose priorities are the starts that they had, in several orders; of many in one."""
    ticks = ticks_of(instance, moves)
    times, uses, resources = occupied(instance, moves, ticks, False)
    followers = _followers(waits, times, len(moves.piece))
    missing = np.bincount(followers.transfer, minlength=len(moves.piece)).astype(np.int64)
    first = first_ticks(instance, moves, times, ticks)
    order = np.argsort(moves.priority, kind="stable")
    orders = {"in its own order": order}
    many = len(moves.piece) > SEVERAL_WAYS
    if not many:
        last = np.maximum.reduceat(times.arrival, moves.route_start[:-1])
        rest = _rest(followers.row, followers.transfer, followers.lag, last, order)
        orders["the longest rest first"] = np.lexsort((moves.priority, -rest))
    for words, by in orders.items():
        priority = np.empty(len(by), dtype=np.int64)
        priority[by] = np.arange(len(by))
        for in_gaps in (False,) if many else (False, True):
            occupies = occupied(instance, moves, ticks, True)[1] if in_gaps else uses
            try:
                start = started(Waiting(occupies, resources, followers, missing), priority, first, in_gaps)
            except ValueError:
                continue
            route = moves.route_start, moves.link
            made = Schedule(ticks, moves.piece_block, moves.piece_bytes, start, moves.piece, moves.adds, *route)
            yield f"timed again {words}{', in gaps' if in_gaps else ''}", made


def ticks_of(instance: FabricInstance, moves: Transfers) -> int:
    """Ticks a second in which ready times are whole, too, if they fit."""
    late = moments(instance.ready).values()
    seconds = most_seconds(instance, moves) + float(max(late, default=0))
    ticks = clock.ticks_per_second(instance.machine, seconds)
    finer = lcm(ticks, *(moment.denominator for moment in late))
    return finer if finer * max(1, ceil(seconds)) <= clock.ROOM else ticks


def timed_late(instance: FabricInstance, moves: Transfers) -> Schedule:
    """The transfers, on every link in the order of their priorities, none before the rank that it leaves has its own
    part of it. Raises as :func:`started`."""
    ticks = ticks_of(instance, moves)
    times, uses, resources = occupied(instance, moves, ticks, False)
    waiting = Waiting(uses, resources, followers_of(instance.machine, moves, times), np.diff(moves.before_start))
    start = started(waiting, moves.priority, first_ticks(instance, moves, times, ticks), in_order=True)
    route = moves.route_start, moves.link
    return Schedule(ticks, moves.piece_block, moves.piece_bytes, start, moves.piece, moves.adds, *route)


def shifted(instance: FabricInstance, schedule: Schedule) -> Schedule | None:
    """All of the schedule so much later that no rank sends of its own before it is ready; None where that is longer
    than its clock runs."""
    ticks, moves = schedule.ticks_per_s, Transfers.of_schedule(schedule)
    hops = hop_times(instance.machine, moves, ticks, False)
    by = int((first_ticks(instance, moves, hops, ticks) - schedule.start).max(initial=0))
    if by + int(schedule.start.max(initial=0)) + int(hops.arrival.max(initial=0)) > MOST_TICKS // 2:
        return None
    columns = schedule.piece_block, schedule.piece_bytes, schedule.start + max(by, 0), schedule.piece, schedule.adds
    return Schedule(ticks, *columns, schedule.route_start, schedule.link)


def first_ticks(instance: FabricInstance, moves: Transfers, hops: HopTimes, ticks: int) -> IntArray:
    """The tick before which each transfer does not start, shape (transfers,): a rank that it leaves then has its own
    part of what it sends, be it one that holds the block or one of those that add to a sum."""
    instant = in_ticks(instance.ready, instance.machine.nodes, ticks)
    rows = np.flatnonzero(hops.leaves >= 0)
    of = np.repeat(np.arange(len(moves.piece)), np.diff(moves.route_start))[rows]
    source = instance.machine.network.src[moves.link[rows]].astype(np.int64)
    blocks = instance.blocks
    own = blocks.mean(blocks.origin[moves.piece_block[moves.piece[of]]], source, instance.members)
    found = np.zeros(len(moves.piece), dtype=np.int64)
    np.maximum.at(found, of[own], instant[source[own]] - hops.leaves[rows][own])
    return found


def waits_of_leaving(instance: FabricInstance, moves: Transfers, hops: HopTimes, start: IntArray) -> Followers:
    """Who waits, in a schedule with these starts, for what it carries to arrive. Raises ``ValueError`` where switches
    store what passes, or there are too many."""
    waits = _waits(instance, moves, hops, start)
    if waits is None:
        raise ValueError("too many transfers wait for each other, or switches store them")
    return _followers(Waits(waits.leaving, _NOBODY, _NOBODY), hops, len(moves.piece))


def _waits(instance: FabricInstance, moves: Transfers, hops: HopTimes, start: IntArray) -> Waits | None:
    """Who waits for whom in a schedule with these starts. None where switches store what passes, or there are too
    many."""
    machine = instance.machine
    if instance.switching.mode == "store_and_forward" and machine.is_switch.any():
        return None
    owner = np.repeat(np.arange(len(moves.piece)), np.diff(moves.route_start))
    piece, adds = moves.piece[owner], moves.adds[owner]
    block = moves.piece_block[piece]
    tail, head = (end[moves.link].astype(np.int64) for end in (machine.network.src, machine.network.dst))
    is_sum, origin = instance.blocks.sums[block], instance.blocks.origin[block]
    own = instance.blocks.mean(origin, tail, instance.members)
    leaves = np.flatnonzero((hops.leaves >= 0) & (is_sum | ~own))
    comes = np.flatnonzero(~machine.is_switch[head])
    place, tick = (piece * machine.nodes + head)[comes], (start[owner] + hops.arrival)[comes]
    comes, place, tick = (column[np.lexsort((tick, place))] for column in (comes, place, tick))
    at, when = (piece * machine.nodes + tail)[leaves], (start[owner] + hops.leaves)[leaves]
    first, last = (np.searchsorted(place, at, side) for side in ("left", "right"))
    now = first + _there_by(place, tick, at, when, first)
    until = np.where(is_sum[leaves], now, np.minimum(now, first + 1))
    parts = np.flatnonzero(adds[leaves] | (np.bincount(owner[hops.leaves >= 0])[owner[leaves]] > 1))
    wholes = np.flatnonzero(is_sum[comes] & ~adds[comes])
    begun = np.searchsorted(place, place[wholes], "left")
    to_leave, to_come, to_be_whole = until - first, (last - now)[parts], wholes - begun
    if sum(int(count.sum()) for count in (to_leave, to_come, to_be_whole)) > MOST_PAIRS:
        return None
    d, j = _ranges(first, to_leave)
    leaving = Pairs(owner[comes[j]], owner[leaves[d]], comes[j], leaves[d])
    d, j = _ranges(now[parts], to_come)
    coming = Pairs(owner[leaves[parts[d]]], owner[comes[j]], leaves[parts[d]], comes[j])
    c, j = _ranges(begun, to_be_whole)
    c, j = c[adds[comes[j]]], j[adds[comes[j]]]
    whole = Pairs(owner[comes[j]], owner[comes[wholes[c]]], comes[j], comes[wholes[c]])
    return Waits(leaving, coming, whole)


def _there_by(place: IntArray, tick: IntArray, at: IntArray, when: IntArray, first: IntArray) -> IntArray:
    """How many of those that come to the place ``at`` are there at tick ``when``; ``first``: where these begin."""
    kind = np.repeat([0, 1], [len(place), len(at)])
    order = np.lexsort((kind, np.concatenate([tick, when]), np.concatenate([place, at])))
    so_far = np.empty(len(order), dtype=np.int64)
    so_far[order] = np.cumsum(kind[order] == 0)
    found: IntArray = so_far[len(place) :] - first
    return found


def _ranges(begin: IntArray, length: IntArray) -> tuple[IntArray, IntArray]:
    """The rows, and ``begin[row]`` to ``begin[row] + length[row]`` of each, one after the other."""
    row = np.repeat(np.arange(len(begin)), length)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length) + np.repeat(begin, length)


def _followers(waits: Waits, times: HopTimes, transfers: int) -> Followers:
    """Who waits for whom, and how long from the start of the one to that of the other."""
    leaving, coming, whole = waits
    lag = np.concatenate(
        [
            times.arrival[leaving.here] - times.leaves[leaving.there],
            times.leaves[coming.here] + 1 - times.arrival[coming.there],
            times.arrival[whole.here] + 1 - times.arrival[whole.there],
        ]
    )
    before, after = (np.concatenate([pairs[k] for pairs in waits]) for k in (0, 1))
    order = np.argsort(before, kind="stable")
    row = starts(np.bincount(before, minlength=transfers))
    return Followers(row, after[order].astype(np.int64), np.maximum(lag[order], 0))


@jit
def _rest(row: IntArray, follower: IntArray, lag: IntArray, last: IntArray, order: IntArray) -> IntArray:
    """Ticks from the start of each transfer to the end of the longest chain that waits for it; ``last``: its own."""
    rest = last.copy()
    for n in range(len(order) - 1, -1, -1):
        i = order[n]
        for s in range(row[i], row[i + 1]):
            rest[i] = max(rest[i], lag[s] + rest[follower[s]])
    return rest
