"""A timetable that repeats: when every transfer of a round starts, so that a round can begin every period.

All rounds make the same transfers. If no two transfers of a round hold a link at the same moment modulo the period,
rounds follow each other at the pace of the busiest link and nothing is lost but the first round's way to the leaves.
Time is cut into cells, the greatest time that all transfers hold their links for a whole number of. Every transfer
takes the first moment after what it waits for at which its links are free; where there is none, and the transfers at
hand hold two links (or rows of links) each for equally long, an alternating chain of two moments is swapped (Koenig's
colouring of the edges of a bipartite graph), which always succeeds; other transfers push out those in their way,
which look for another moment, a limited number of times.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.kernels import jit
from synth_models.fabric.scheduling.reservations import (
    Periodic,
    Uses,
    conflicts_modulo,
    is_free_modulo,
    new_periodic,
    release_modulo,
    reserve_modulo,
)

WORK = 10**8  # cells looked at, after which the rest is placed without looking
EVICTIONS = 20  # per transfer that holds more than two resources
MOST_EVICTED = 1024  # for one transfer
MOST_CELLS = 2**13
FINE = 12  # cells of the shortest transfer, where bandwidths have no common measure


def cells_of(ticks: IntArray, busiest: int) -> tuple[IntArray, int]:
    """Durations in cells, rounded up where needed, and ticks of a cell; ``busiest``: ticks of the busiest link."""
    distinct = np.unique(ticks)
    cell = math.gcd(*distinct.tolist())
    if busiest // cell > MOST_CELLS:
        cell = max(int(distinct[0]) // FINE, -(-busiest // MOST_CELLS), 1)
    return -(-ticks // cell), cell


class Order(NamedTuple):
    """Who waits for whom. ``before[before_row[i]:before_row[i + 1]]``: the transfers that i waits for; ``after``: those
    that wait for i; ``wait``: cells from the start of i until those may start. ``backward``: it goes up an in-tree and
    is placed as late as may be before the moment ``pivot``, all others after it. Shapes: ``backward``, ``pivot``,
    ``wait`` (transfers,), rows (transfers + 1,)."""

    backward: BoolArray
    pivot: IntArray
    wait: IntArray
    before_row: IntArray
    before: IntArray
    after_row: IntArray
    after: IntArray


class Timetable(NamedTuple):
    """Under construction: ``reserved``, the ``slot`` of every transfer (its cell modulo the period, -1 for none), its
    ``start`` cell in the first round, and how often it was ``evicted``; shape (transfers,)."""

    reserved: Periodic
    slot: IntArray
    start: IntArray
    evicted: IntArray


@jit
def timetable(period: int, turns: IntArray, order: Order, uses: Uses, resources: int) -> tuple[IntArray, int]:
    """Start cell of every transfer of the first round, and how many found no moment of their own (or minus that, where
    looking for moments took too long).

    ``turns``: transfers so that each comes after those that it waits for; those that are ``backward`` come in the
    opposite order. ``uses``: in cells, all from the transfer's start on.
    """
    count = len(turns)
    found = Timetable(
        new_periodic(resources, period),
        np.full(count, -1, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
    )
    todo = np.empty(count + 1, dtype=np.int64)
    work: Any = np.int64(0)
    budget = EVICTIONS * np.sum(np.diff(uses.row) > 2) + 1000
    for first in turns:
        todo[0] = first
        left = 1
        while left:
            left -= 1
            i = todo[left]
            limit = _limit(i, order, found.start)
            moment, cheapest, looked = _first_moment(found, uses, i, limit, order.backward[i], work)
            work += looked
            if moment < 0 and work < WORK:
                moment = _chain(found, uses, i, limit, order.backward[i])
            if moment < 0 and budget > 0 and cheapest >= 0:
                moment = cheapest
                removed = _evict(found, uses, i, moment, todo, left)
                budget -= removed
                left = min(left + removed, len(todo))
            if moment < 0:
                found.start[i] = limit
                continue
            found.slot[i] = moment
            reserve_modulo(found.reserved, uses, i, moment)
            found.start[i] = _beyond(limit, moment, period, order.backward[i])
    homeless = 0
    for i in turns:  # chains have moved some
        moment = found.slot[i]
        if moment < 0:
            homeless += 1
            moment = (i * 40503) % period
        found.start[i] = _beyond(_limit(i, order, found.start), moment, period, order.backward[i])
    return found.start, homeless if work < WORK else -homeless


@jit
def _limit(i: int, order: Order, start: IntArray) -> int:
    """The earliest start of transfer i, or of a backward one the latest."""
    backward, limit = order.backward, order.pivot[i]
    if backward[i]:
        limit -= order.wait[i]
        for k in range(order.after_row[i], order.after_row[i + 1]):
            if backward[order.after[k]]:
                limit = min(limit, start[order.after[k]] - order.wait[i])
    else:
        for k in range(order.before_row[i], order.before_row[i + 1]):
            j = order.before[k]
            if not backward[j]:
                limit = max(limit, start[j] + order.wait[j])
    return int(limit)


@jit
def _beyond(limit: int, moment: int, period: int, backward: bool) -> int:
    """The first cell from ``limit`` on, or the last up to it, that is ``moment`` modulo the period."""
    return limit - (limit - moment) % period if backward else limit + (moment - limit) % period


@jit
def _longest(uses: Uses, i: int) -> int:
    longest = 1
    for k in range(uses.row[i], uses.row[i + 1]):
        longest = max(longest, uses.duration[k])
    return int(longest)


@jit
def _first_moment(found: Timetable, uses: Uses, i: int, limit: int, backward: bool, work: int) -> tuple[int, int, int]:
    """The first moment (a multiple of the longest duration) from the limit on at which transfer i finds all it needs
    free, else -1; the moment with the cheapest to evict; and the cells looked at."""
    period = found.reserved.holder.shape[1]
    longest = _longest(uses, i)
    moments = max(period // longest, 1)
    sense = -1 if backward else 1
    first = limit // longest if backward else -(-limit // longest)
    cheapest, least, looked = -1, 2**60, 0
    for step in range(moments if work < WORK else 0):
        moment = ((first + sense * step) % moments) * longest
        cost, known, cells = conflicts_modulo(found.reserved, uses, i, moment, found.evicted, least)
        looked += cells
        if cost < least:
            least, cheapest = cost, moment
        if known == 0:
            return moment, cheapest, looked
    return -1, cheapest, looked


@jit
def _evict(found: Timetable, uses: Uses, i: int, moment: int, todo: IntArray, left: int) -> int:
    """Take out all that is in the way of transfer i; they are to be placed again, and how many they are."""
    removed = 0
    period = found.reserved.holder.shape[1]
    for k in range(uses.row[i], uses.row[i + 1]):
        for c in range(moment, min(moment + uses.duration[k], period)):
            j = found.reserved.holder[uses.resource[k], c]
            if j >= 0 and removed < MOST_EVICTED:
                release_modulo(found.reserved, uses, j, found.slot[j])
                found.slot[j] = -1
                found.evicted[j] += 1
                if left + removed < len(todo):
                    todo[left + removed] = j
                removed += 1
    return removed


@jit
def _chain(found: Timetable, uses: Uses, i: int, limit: int, backward: bool) -> int:
    """Make a moment free at both ends of transfer i by swapping two moments along a chain; -1 if that cannot be."""
    reserved, slot = found.reserved, found.slot
    longest = _longest(uses, i)
    if not _joins_two(uses, i, longest):
        return -1
    moments = max(reserved.holder.shape[1] // longest, 1)
    first = limit // longest if backward else -(-limit // longest)
    left, right = uses.resource[uses.row[i]], uses.resource[uses.row[i] + 1]
    alpha, beta = -1, -1
    for step in range(moments):
        when = ((first + step) % moments) * longest
        if alpha < 0 and is_free_modulo(reserved, left, when, longest):
            alpha = when
        if beta < 0 and is_free_modulo(reserved, right, when, longest):
            beta = when
    if alpha < 0 or beta < 0:
        return -1
    # follow the transfers at alpha, beta, alpha… from the right end; all must be of this kind
    chain = np.empty(2 * len(reserved.holder) + 1, dtype=np.int64)
    length = 0
    resource, when = right, alpha
    while True:
        j = reserved.holder[resource, when]
        if j < 0:
            if not is_free_modulo(reserved, resource, when, longest):
                return -1
            break
        if not _joins_two(uses, j, longest) or slot[j] != when or length == len(chain):
            return -1
        chain[length] = j
        length += 1
        b = uses.row[j]
        resource = uses.resource[b] if uses.resource[b + 1] == resource else uses.resource[b + 1]
        if resource == left and when == beta:
            return -1  # odd cycle: not bipartite
        when = beta if when == alpha else alpha
    for j in chain[:length]:
        release_modulo(reserved, uses, j, slot[j])
    for j in chain[:length]:
        slot[j] = beta if slot[j] == alpha else alpha
        reserve_modulo(reserved, uses, j, slot[j])
    return int(alpha)


@jit
def _joins_two(uses: Uses, i: int, longest: int) -> bool:
    """Whether transfer i holds two resources, each for so long."""
    a = uses.row[i]
    return bool(uses.row[i + 1] == a + 2 and uses.duration[a] == longest and uses.duration[a + 1] == longest)
