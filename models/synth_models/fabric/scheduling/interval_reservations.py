"""Reservations of intervals, in any order and out again: all that :mod:`~synth_models.fabric.scheduling.reservations`
says of resources, uses and ticks holds here too."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth_models.fabric.scheduling.reservations import Uses

EACH = 8  # intervals of a resource, before it moves to the end of the pool


class Intervals(NamedTuple):
    """Sorted disjoint intervals of all resources in one pool; those that touch are one, so a saturated link has few.

    Resource x is occupied from ``begin[j]`` to ``end[j]``, ``length[x]`` such j from ``first[x]`` on, with room for
    ``capacity[x]``; shape (resources,). ``begin``, ``end``: ticks, shape (pool,). ``top``: how much of the pool is
    given away, and 1 once it was too small; shape (2,).
    """

    first: IntArray
    capacity: IntArray
    length: IntArray
    begin: IntArray
    end: IntArray
    top: IntArray


@jit
def new_intervals(resources: int, room: int) -> Intervals:
    """Nothing reserved; room for so many intervals in all beside :data:`EACH` a resource."""
    pool = resources * EACH + room
    return Intervals(
        np.arange(resources, dtype=np.int64) * EACH,
        np.full(resources, EACH, dtype=np.int64),
        np.zeros(resources, dtype=np.int64),
        np.zeros(pool, dtype=np.int64),
        np.zeros(pool, dtype=np.int64),
        np.array([resources * EACH, 0], dtype=np.int64),
    )


@jit
def intervals_of(most: IntArray) -> Intervals:
    """Nothing reserved; room for so many intervals of every resource, shape (resources,), which are never moved."""
    row = np.cumsum(most)
    pool = row[-1] if len(row) else 0
    return Intervals(
        row - most,
        most,
        np.zeros(len(most), dtype=np.int64),
        np.empty(pool, dtype=np.int64),
        np.empty(pool, dtype=np.int64),
        np.array([pool, 0], dtype=np.int64),
    )


@jit(inlined=True)
def earliest(reserved: Intervals, uses: Uses, i: int, start: int) -> int:
    """The first start of transfer i from ``start`` on at which all it occupies is free."""
    resource, offset, duration = uses.resource, uses.offset, uses.duration
    first, last = uses.row[i], uses.row[i + 1]
    k, settled = first, 0
    while settled < last - first:
        found = _free_from(reserved, resource[k], start + offset[k], duration[k]) - offset[k]
        if found > start:
            start, settled = found, 0
        settled += 1
        k = k + 1 if k + 1 < last else first
    return start


@jit
def reserve(reserved: Intervals, uses: Uses, i: int, start: int) -> bool:
    """Occupy what transfer i needs, which must be free. False if the pool is full: then a part of it is occupied."""
    for k in range(uses.row[i], uses.row[i + 1]):
        if not _occupy(reserved, uses.resource[k], start + uses.offset[k], uses.duration[k]):
            return False
    return True


@jit(inlined=True)
def reserve_earliest(
    first: IntArray, length: IntArray, begin: IntArray, end: IntArray, resource: IntArray, offset: IntArray,
    duration: IntArray, entry: int, beyond: int, now: int, at: IntArray,
) -> int:  # fmt: skip
    """Occupy what one transfer needs as early as it is free from ``now`` on; its start. The same as :func:`earliest`
    and :func:`reserve` of a transfer with these uses, all of different resources, in a third of the time: columns of
    :class:`Intervals` and :class:`Uses` that come one by one have their references counted once, and every place is
    looked for once, and further on from there. Every resource must have room (:func:`intervals_of`). The transfer's
    uses are ``entry:beyond``; ``at``: room for their places."""
    start, k, settled, looked = now, entry, 0, entry
    while settled < beyond - entry:
        x, t, lasts = resource[k], start + offset[k], duration[k]
        low = first[x]
        last = low + length[x]
        if looked < beyond:
            i = _place_of(low, last, end, t)
            looked += 1
        else:
            i = at[k - entry]
            while i < last and end[i] <= t:
                i += 1
        while i < last and begin[i] < t + lasts:
            t = end[i]
            i += 1
        at[k - entry] = i
        if t - offset[k] > start:
            start, settled = t - offset[k], 0
        settled += 1
        k = k + 1 if k + 1 < beyond else entry
    for k in range(entry, beyond):
        x, t, i = resource[k], start + offset[k], at[k - entry]
        until, low = t + duration[k], first[x]
        last = low + length[x]
        left, right = i > low and end[i - 1] == t, i < last and begin[i] == until
        if left and right:
            end[i - 1] = end[i]
            for j in range(i, last - 1):
                begin[j], end[j] = begin[j + 1], end[j + 1]
            length[x] -= 1
        elif left:
            end[i - 1] = until
        elif right:
            begin[i] = t
        else:
            for j in range(last, i, -1):
                begin[j], end[j] = begin[j - 1], end[j - 1]
            length[x] += 1
            begin[i], end[i] = t, until
    return int(start)


@jit
def release(reserved: Intervals, uses: Uses, i: int, start: int) -> bool:
    """Free what transfer i, which was entered with this start, occupies. False if the pool is full: then a part of it
    stays occupied."""
    for k in range(uses.row[i], uses.row[i + 1]):
        if not _vacate(reserved, uses.resource[k], start + uses.offset[k], uses.duration[k]):
            return False
    return True


@jit(inlined=True)
def _place_of(first: int, last: int, end: IntArray, t: int) -> int:
    """Index in the pool of the first interval among ``first:last`` that ends after t."""
    high = last
    step, low = 1, high - 1
    while low >= first and end[low] > t:  # most transfers come late: from the last interval back, in larger steps
        high = low
        step *= 2
        low = high - step
    low = max(low + 1, first)
    while low < high:
        middle = (low + high) >> 1
        if end[middle] > t:
            high = middle
        else:
            low = middle + 1
    return int(low)


@jit(inlined=True)
def _free_from(reserved: Intervals, x: int, t: int, duration: int) -> int:
    """The first moment from t on from which resource x is free for so long."""
    begin, end = reserved.begin, reserved.end
    last = reserved.first[x] + reserved.length[x]
    i = _place_of(reserved.first[x], last, end, t)
    while i < last and begin[i] < t + duration:
        t = end[i]
        i += 1
    return int(t)


@jit
def _occupy(reserved: Intervals, x: int, t: int, duration: int) -> bool:
    """Enter [t, t + duration), which must be free. False if the pool is full (then nothing is entered)."""
    first, begin, end = reserved.first, reserved.begin, reserved.end
    last = first[x] + reserved.length[x]
    i = _place_of(first[x], last, end, t)
    left = i > first[x] and end[i - 1] == t
    right = i < last and begin[i] == t + duration
    if left and right:
        end[i - 1] = end[i]
        _remove(reserved, x, i)
    elif left:
        end[i - 1] = t + duration
    elif right:
        begin[i] = t
    else:
        i = _inserted(reserved, x, i)
        if i < 0:
            return False
        begin[i], end[i] = t, t + duration
    return True


@jit
def _vacate(reserved: Intervals, x: int, t: int, duration: int) -> bool:
    """Take out [t, t + duration), which was entered. False if the pool is full (then it stays occupied)."""
    begin, end = reserved.begin, reserved.end
    i = _place_of(reserved.first[x], reserved.first[x] + reserved.length[x], end, t)
    starts, ends = begin[i] == t, end[i] == t + duration
    if starts and ends:
        _remove(reserved, x, i)
    elif starts:
        begin[i] = t + duration
    elif ends:
        end[i] = t
    else:
        i = _inserted(reserved, x, i)
        if i < 0:
            return False
        end[i], begin[i + 1] = t, t + duration
    return True


@jit
def _remove(reserved: Intervals, x: int, i: int) -> None:
    """Take interval i, one of resource x, out of the pool."""
    begin, end = reserved.begin, reserved.end
    for j in range(i, reserved.first[x] + reserved.length[x] - 1):
        begin[j], end[j] = begin[j + 1], end[j + 1]
    reserved.length[x] -= 1


@jit
def _inserted(reserved: Intervals, x: int, i: int) -> int:
    """Make place for one more interval of resource x before interval i; its index, -1 if the pool is full."""
    first, begin, end, top = reserved.first, reserved.begin, reserved.end, reserved.top
    if reserved.length[x] == reserved.capacity[x]:  # twice the room, at the end of the pool
        size = 2 * reserved.capacity[x]
        if top[0] + size > len(begin):
            top[1] = 1
            return -1
        for j in range(reserved.length[x]):
            begin[top[0] + j], end[top[0] + j] = begin[first[x] + j], end[first[x] + j]
        i += top[0] - first[x]
        first[x], reserved.capacity[x] = top[0], size
        top[0] += size
    for j in range(first[x] + reserved.length[x], i, -1):
        begin[j], end[j] = begin[j - 1], end[j - 1]
    reserved.length[x] += 1
    return i
