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

import numpy as np
import numpy.typing as npt

from synth.kernels import jit

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
WORK = 10**8  # cells looked at, after which the rest is placed without looking
EVICTIONS = 20  # per transfer that holds more than two resources
MOST_CELLS = 2**13
FINE = 12  # cells of the shortest transfer, where bandwidths have no common measure


def cells_of(ticks: IntArray, busiest: int) -> tuple[IntArray, int]:
    """Durations in cells, rounded up where needed, and ticks of a cell; ``busiest``: ticks of the busiest link."""
    distinct = np.unique(ticks)
    cell = math.gcd(*distinct.tolist())
    if busiest // cell > MOST_CELLS:
        cell = max(int(distinct[0]) // FINE, -(-busiest // MOST_CELLS), 1)
    return -(-ticks // cell), cell


@jit
def timetable(
    period: int,
    order: IntArray,
    backward: BoolArray,
    pivot: IntArray,
    held_start: IntArray,
    held: IntArray,
    cells: IntArray,
    resources: int,
    wait: IntArray,
    before_start: IntArray,
    before: IntArray,
    after_start: IntArray,
    after: IntArray,
) -> tuple[IntArray, int]:
    """Start cell of every transfer of the first round, and how many found no moment of their own (or minus that, where
    looking for moments took too long).

    ``order``: transfers so that each comes after those that it waits for; those that are ``backward`` (up an in-tree)
    come in the opposite order and are placed as late as may be before the moment ``pivot``, all others after it.
    ``held``: resources of transfer i in ``held_start[i]:held_start[i + 1]``, each held for ``cells`` at that place.
    ``wait``: cells from a transfer's start until those after it may start.
    """
    count = len(order)
    table = np.full((resources, period), -1, dtype=np.int64)
    slot = np.full(count, -1, dtype=np.int64)
    start = np.zeros(count, dtype=np.int64)
    evicted = np.zeros(count, dtype=np.int64)
    todo = np.empty(count + 1, dtype=np.int64)
    blockers = np.empty(1024, dtype=np.int64)
    work = 0
    budget = EVICTIONS * np.sum(np.diff(held_start) > 2) + 1000
    for at in range(count):
        todo[0] = order[at]
        left = 1
        while left:
            left -= 1
            i = todo[left]
            limit = _limit(i, backward, pivot, start, wait, before_start, before, after_start, after)
            longest = 1
            for k in range(held_start[i], held_start[i + 1]):
                longest = max(longest, cells[k])
            moments = max(period // longest, 1)
            sense = -1 if backward[i] else 1
            first = limit // longest if backward[i] else -(-limit // longest)
            found, best, least = -1, -1, 2**60
            for step in range(moments if work < WORK else 0):
                when = ((first + sense * step) % moments) * longest
                cost, known, last = 0, 0, -1
                for k in range(held_start[i], held_start[i + 1]):
                    for c in range(when, min(when + cells[k], period)):
                        j = table[held[k], c]
                        work += 1
                        if j >= 0 and j != last:
                            last = j
                            cost += 1 + evicted[j]
                            known += 1
                            if cost >= least:
                                break
                    if cost >= least:
                        break
                if cost < least:
                    least, best = cost, when
                if known == 0:
                    found = when
                    break
            if found < 0 and work < WORK:
                found = _chain(table, slot, held_start, held, cells, i, longest, moments, first)
            if found < 0 and budget > 0 and best >= 0:
                found = best
                many = 0
                for k in range(held_start[i], held_start[i + 1]):
                    for c in range(found, min(found + cells[k], period)):
                        j = table[held[k], c]
                        if j >= 0 and many < len(blockers):
                            blockers[many] = j
                            many += 1
                            for q in range(held_start[j], held_start[j + 1]):
                                for d in range(slot[j], min(slot[j] + cells[q], period)):
                                    if table[held[q], d] == j:
                                        table[held[q], d] = -1
                for x in range(many):
                    j = blockers[x]
                    slot[j] = -1
                    evicted[j] += 1
                    budget -= 1
                    if left < len(todo):
                        todo[left] = j
                        left += 1
            if found < 0:
                start[i] = limit
                continue
            slot[i] = found
            for k in range(held_start[i], held_start[i + 1]):
                for c in range(found, min(found + cells[k], period)):
                    table[held[k], c] = i
            start[i] = limit - (limit - found) % period if backward[i] else limit + (found - limit) % period
    homeless = 0
    for at in range(count):  # chains have moved some
        i = order[at]
        limit = _limit(i, backward, pivot, start, wait, before_start, before, after_start, after)
        moment = slot[i]
        if moment < 0:
            homeless += 1
            moment = (i * 40503) % period
        start[i] = limit - (limit - moment) % period if backward[i] else limit + (moment - limit) % period
    return start, homeless if work < WORK else -homeless


@jit
def _limit(
    i: int,
    backward: BoolArray,
    pivot: IntArray,
    start: IntArray,
    wait: IntArray,
    before_start: IntArray,
    before: IntArray,
    after_start: IntArray,
    after: IntArray,
) -> int:
    """The earliest start of transfer i, or of a backward one the latest."""
    limit = pivot[i]
    if backward[i]:
        limit -= wait[i]
        for k in range(after_start[i], after_start[i + 1]):
            if backward[after[k]]:
                limit = min(limit, start[after[k]] - wait[i])
    else:
        for k in range(before_start[i], before_start[i + 1]):
            if not backward[before[k]]:
                limit = max(limit, start[before[k]] + wait[before[k]])
    return int(limit)


@jit
def _free(table: IntArray, resource: int, when: int, longest: int) -> bool:
    free = True
    for c in range(when, when + longest):
        free = free and table[resource, c] < 0
    return free


@jit
def _chain(
    table: IntArray,
    slot: IntArray,
    held_start: IntArray,
    held: IntArray,
    cells: IntArray,
    i: int,
    longest: int,
    moments: int,
    first: int,
) -> int:
    """Make a moment free at both ends of transfer i by swapping two moments along a chain; -1 if that cannot be."""
    a = held_start[i]
    if held_start[i + 1] != a + 2 or cells[a] != longest or cells[a + 1] != longest:
        return -1
    left, right = held[a], held[a + 1]
    alpha, beta = -1, -1
    for step in range(moments):
        when = ((first + step) % moments) * longest
        if alpha < 0 and _free(table, left, when, longest):
            alpha = when
        if beta < 0 and _free(table, right, when, longest):
            beta = when
    if alpha < 0 or beta < 0:
        return -1
    # follow the transfers at alpha, beta, alpha… from the right end; all must be of this kind
    chain = np.empty(2 * table.shape[0] + 1, dtype=np.int64)
    length = 0
    resource, when = right, alpha
    while True:
        j = table[resource, when]
        if j < 0:
            if not _free(table, resource, when, longest):
                return -1
            break
        b = held_start[j]
        if held_start[j + 1] != b + 2 or cells[b] != longest or cells[b + 1] != longest or slot[j] != when:
            return -1
        if length == len(chain):
            return -1
        chain[length] = j
        length += 1
        resource = held[b] if held[b + 1] == resource else held[b + 1]
        if resource == left and when == beta:
            return -1  # odd cycle: not bipartite
        when = beta if when == alpha else alpha
    for x in range(length):
        j = chain[x]
        for k in range(held_start[j], held_start[j + 1]):
            for c in range(slot[j], slot[j] + longest):
                if table[held[k], c] == j:
                    table[held[k], c] = -1
    for x in range(length):
        j = chain[x]
        slot[j] = beta if slot[j] == alpha else alpha
        for k in range(held_start[j], held_start[j + 1]):
            for c in range(slot[j], slot[j] + longest):
                table[held[k], c] = j
    return alpha
