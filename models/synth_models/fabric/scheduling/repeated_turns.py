"""Long schedules out of short ones, where pieces that follow each other are sent alike.

Pieces of one size go out turn after turn. In order of priority nothing depends on what comes later, and after a while
every period of turns is the one before, some ticks later. So the middle of a short schedule is repeated; what fills the
pipeline before it and what empties it afterwards stay as they are. What goes over quicker links may be ahead by more
and more, as long as it waits for nothing that is slower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.scheduling.list_scheduling import most_seconds, timed, timed_backwards
from synth_models.fabric.scheduling.mirrored import mirrored
from synth_models.fabric.scheduling.reversal import arrivals, ends
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

COMPARED = 2  # periods that must be like the one after them
SHORT = (8, 16)  # periods of the short schedule: until all are alike, deep trees take more
UNKNOWN = np.iinfo(np.int64).max


class Period(NamedTuple):
    """After so many ``pieces`` everything is sent alike, with priorities greater by ``steps``."""

    pieces: int
    steps: int


class Middle(NamedTuple):
    """What is repeated: the transfers ``before`` it, ``within`` one period and from there on (``after``, with those of
    the period once), as rows; ``ticks`` by which each transfer is later a period later, shape (transfers,)."""

    before: IntArray
    within: IntArray
    after: IntArray
    ticks: IntArray


def of_many_turns(
    instance: FabricInstance,
    there: FabricInstance,
    sizes: list[int],
    period: Period,
    spread_of: Callable[[list[int], float], Transfers | None],
) -> Schedule | None:
    """A broadcast of pieces of equal ``sizes`` (the last may be smaller), or if ``there`` is its reversed instance a
    reduction, each link in the order of priorities; None where it is not worth it, or turns are not alike.

    ``spread_of``: the transfers of fewer pieces, of which all are so many times as much, as they spread.
    """
    for periods in SHORT:
        times = len(sizes) // period.pieces - periods
        if times < periods // 2 or there.switching.mode == "store_and_forward":
            return None
        made = _of_a_short_one(instance, there, sizes, period, times, spread_of)
        if made is not None:
            return made
    return None


def _of_a_short_one(
    instance: FabricInstance,
    there: FabricInstance,
    sizes: list[int],
    period: Period,
    times: int,
    spread_of: Callable[[list[int], float], Transfers | None],
) -> Schedule | None:
    """The same by repeating a period so many times."""
    pieces = len(sizes)
    short = [*sizes[: pieces - times * period.pieces - 1], sizes[-1]]
    whole = pieces / len(short)
    spread = spread_of(short, whole)
    if spread is None:
        return None
    ticks = clock.ticks_per_second(there.machine, whole * most_seconds(there, spread))
    forwards = there is instance
    found = timed(there, spread, ticks, in_order=True) if forwards else timed_backwards(there, spread, ticks)
    repeats = middle(there.machine, spread, found, period, (len(short) - 1) // period.pieces * period.steps)
    if repeats is None:
        return None
    came = arrivals(there, spread, found)
    later = came.copy()
    later[repeats.after] += times * repeats.ticks[repeats.after]
    end = int(later.max())
    if forwards:
        made = repeated(found, repeats, period, times, 0)
    else:
        turned = mirrored(there, spread, found, backwards=True)
        if turned is None:
            return None
        made = repeated(turned, repeats, period, times, end - int(came.max()))
    made = replace(made, piece_block=np.zeros(pieces, dtype=np.int64), piece_bytes=np.asarray(sizes, dtype=np.int64))
    object.__setattr__(made, "ends", (instance.machine, end))
    return made


def middle(machine: Machine, spread: Transfers, schedule: Schedule, period: Period, end: int) -> Middle | None:
    """The last period with priorities below ``end``, all of which are there; None unless each of :data:`COMPARED`
    periods before is like the one after it. ``schedule``: of ``timed(..., spread, in_order=True)``, a row a transfer;
    every rank receives a piece once."""
    nodes, priority, begin = machine.nodes, spread.priority, end - period.steps
    key = spread.piece * nodes + ends(machine, spread)[1]
    row_of = np.full(len(spread.piece_bytes) * nodes, -1, dtype=np.int64)
    row_of[key] = np.arange(len(key))
    ahead = period.pieces * nodes
    within = np.flatnonzero((priority >= begin) & (priority < end))
    ticks = None
    for number in range(COMPARED + 1):
        there = key[within] - number * ahead
        if not len(there) or there.min() < 0 or begin < (number + 1) * period.steps:
            return None
        now, one = row_of[there], row_of[np.maximum(there - ahead, 0)]
        count = np.count_nonzero((priority >= begin - number * period.steps) & (priority < end - number * period.steps))
        if count != len(within) or now.min() < 0 or one.min() < 0 or not _same_routes(spread, now, one):
            return None
        apart = schedule.start[now] - schedule.start[one]
        ticks = apart if ticks is None else ticks
        if np.any(ticks != apart) or np.any(priority[now] != priority[one] + period.steps):
            return None
    assert ticks is not None
    later = np.zeros(len(row_of), dtype=np.int64)
    later[key[within]] = ticks
    turns = (priority - begin) // period.steps
    like = key - turns * ahead
    known = (like >= 0) & (like < len(row_of))
    by_row = np.where(known, later[np.where(known, like, 0)], UNKNOWN)
    found = Middle(np.flatnonzero(priority < begin), within, np.flatnonzero(priority >= begin), by_row)
    return found if _nothing_is_overtaken(machine, spread, found) else None


def _nothing_is_overtaken(machine: Machine, spread: Transfers, found: Middle) -> bool:
    """Whether a link (and a group) is used by transfers that are later by the same, and none waits for slower ones."""
    if np.any(found.ticks[found.after] == UNKNOWN):
        return False
    link = spread.link[_rows(spread, found.after)]
    ticks = np.repeat(found.ticks[found.after], np.diff(spread.route_start)[found.after])
    for resource in (link, machine.group[link]):
        used = resource >= 0
        some = np.zeros(int(resource.max(initial=0)) + 1, dtype=np.int64)
        some[resource[used]] = ticks[used]
        if np.any(some[resource[used]] != ticks[used]):
            return False
    waiting = np.repeat(np.arange(len(spread.piece)), np.diff(spread.before_start))
    late = spread.priority[waiting] >= spread.priority[found.within].min()
    return bool(np.all(found.ticks[spread.before[late]] <= found.ticks[waiting[late]]))


def _same_routes(spread: Transfers, one: IntArray, other: IntArray) -> bool:
    """Whether the routes of two rows of transfers are the same, one by one."""
    lengths = np.diff(spread.route_start)
    if not np.array_equal(lengths[one], lengths[other]):
        return False
    return np.array_equal(spread.link[_rows(spread, one)], spread.link[_rows(spread, other)])


def _rows(moved: Transfers | Schedule, transfers: IntArray) -> IntArray:
    """Where the routes of some transfers are in ``link``, one after the other."""
    first, lengths = moved.route_start[:-1][transfers], np.diff(moved.route_start)[transfers]
    found: IntArray = np.repeat(first - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
    return found


def repeated(schedule: Schedule, found: Middle, period: Period, times: int, backwards: int) -> Schedule:
    """The schedule with ``times`` periods more. ``backwards``: by so many ticks the whole takes longer, where it is the
    one that ``found`` is about with time reversed, so that what comes after comes before; else 0."""
    turn = np.concatenate([
        np.zeros(len(found.before), dtype=np.int64), np.repeat(np.arange(times), len(found.within)),
        np.full(len(found.after), times, dtype=np.int64),
    ])  # fmt: skip
    row = np.concatenate([found.before, np.tile(found.within, times), found.after])
    later = np.where(turn > 0, found.ticks[row], 0) * turn
    route_start = np.zeros(len(row) + 1, dtype=np.int64)
    np.cumsum(np.diff(schedule.route_start)[row], out=route_start[1:])
    parts = [schedule.link[_rows(schedule, rows)] for rows in (found.before, found.within, found.after)]
    return replace(
        schedule,
        start=schedule.start[row] + (backwards - later if backwards else later),
        piece=schedule.piece[row] + period.pieces * turn,
        adds=schedule.adds[row],
        route_start=route_start,
        link=np.concatenate([parts[0], np.tile(parts[1], times), parts[2]]),
    )
