"""Reservations: for every link and group, when it is occupied, as sorted disjoint intervals in one pool.

Intervals that touch are one, so a saturated link has few. An interval that was entered can be taken out again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.kernels import jit

FOREVER = 2**62


@jit
def new_book(resources: Any, room: Any) -> Any:
    """An empty book for this many links and groups, with room for so many intervals in all, before it has to grow."""
    each = 8
    first = np.arange(resources, dtype=np.int64) * each
    capacity = np.full(resources, each, dtype=np.int64)
    count = np.zeros(resources, dtype=np.int64)
    begin = np.zeros(resources * each + room, dtype=np.int64)
    end = np.zeros(resources * each + room, dtype=np.int64)
    top = np.array([resources * each, 0], dtype=np.int64)  # second: 1 if the pool is full
    return first, capacity, count, begin, end, top


@jit
def place_of(book: Any, x: Any, t: Any) -> Any:
    """Index in the pool of the first interval of resource x that ends after t."""
    low = book[0][x]
    high = low + book[2][x]
    end = book[4]
    while low < high:
        middle = (low + high) >> 1
        if end[middle] > t:
            high = middle
        else:
            low = middle + 1
    return low


@jit
def free_from(book: Any, x: Any, t: Any, d: Any) -> Any:
    """The earliest moment from t on from which resource x is free for d ticks."""
    i = place_of(book, x, t)
    last = book[0][x] + book[2][x]
    begin, end = book[3], book[4]
    while i < last and begin[i] < t + d:
        t = end[i]
        i += 1
    return t


@jit
def occupy(book: Any, x: Any, t: Any, d: Any) -> Any:
    """Enter [t, t + d), which must be free. False if the pool is full (then nothing is entered)."""
    first, capacity, count, begin, end, _ = book
    i = place_of(book, x, t)
    last = first[x] + count[x]
    left = i > first[x] and end[i - 1] == t
    right = i < last and begin[i] == t + d
    if left and right:
        end[i - 1] = end[i]
        for j in range(i, last - 1):
            begin[j], end[j] = begin[j + 1], end[j + 1]
        count[x] -= 1
        return True
    if left:
        end[i - 1] = t + d
        return True
    if right:
        begin[i] = t
        return True
    if count[x] == capacity[x]:
        moved = _moved(book, x)
        if moved < 0:
            return False
        i += moved
        last = first[x] + count[x]
    for j in range(last, i, -1):
        begin[j], end[j] = begin[j - 1], end[j - 1]
    begin[i], end[i] = t, t + d
    count[x] += 1
    return True


@jit
def release(book: Any, x: Any, t: Any, d: Any) -> Any:
    """Take out [t, t + d), which was entered. False if the pool is full (then it stays occupied)."""
    first, capacity, count, begin, end, _ = book
    i = place_of(book, x, t)
    last = first[x] + count[x]
    starts, ends = begin[i] == t, end[i] == t + d
    if starts and ends:
        for j in range(i, last - 1):
            begin[j], end[j] = begin[j + 1], end[j + 1]
        count[x] -= 1
    elif starts:
        begin[i] = t + d
    elif ends:
        end[i] = t
    else:
        if count[x] == capacity[x]:
            moved = _moved(book, x)
            if moved < 0:
                return False
            i += moved
            last = first[x] + count[x]
        for j in range(last, i, -1):
            begin[j], end[j] = begin[j - 1], end[j - 1]
        count[x] += 1
        end[i] = t
        begin[i + 1] = t + d
    return True


@jit
def _moved(book: Any, x: Any) -> Any:
    """Give resource x twice the room at the end of the pool; by how much its intervals moved, -1 if it is full."""
    first, capacity, count, begin, end, top = book
    size = 2 * capacity[x]
    if top[0] + size > len(begin):
        top[1] = 1
        return -1
    for j in range(count[x]):
        begin[top[0] + j], end[top[0] + j] = begin[first[x] + j], end[first[x] + j]
    moved = top[0] - first[x]
    first[x], capacity[x] = top[0], size
    top[0] += size
    return moved
