"""Items by what they belong to, in order of time: links' transfers, pieces' transfers, pieces' arrivals."""

from __future__ import annotations

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.kernels import jit
from synth_models.fabric.check import without_kernels

NEAR = 4  # places by which the items of a row are moved on average, before runs are merged,
RUN = 16  # of so many items at first


def rows_by(key: Int32Array, rows: int, time: IntArray, late: BoolArray) -> tuple[IntArray, Int32Array]:
    """Items by row: those of row r are ``order[start[r]:start[r + 1]]``, by time.

    ``key``: the row of every item, shape (items,), -1 for an item to leave out. ``late``: items that come after the
    others at the same time, shape (items,) or empty. All else that ties keeps its order.
    """
    if without_kernels.wanted(len(key)):
        return without_kernels.rows_by(key, rows, time, late)
    found: tuple[IntArray, Int32Array] = _rows_by(key, rows, time, late)
    return found


@jit
def _rows_by(key: Int32Array, rows: int, time: IntArray, late: BoolArray) -> tuple[IntArray, Int32Array]:
    start = np.zeros(rows + 1, dtype=np.int64)
    for i in range(len(key)):
        if key[i] >= 0:
            start[key[i] + 1] += 1
    for r in range(rows):
        start[r + 1] += start[r]
    order = np.empty(start[rows], dtype=np.int32)
    at = start[:-1].copy()
    for turn in range(2 if len(late) else 1):
        for i in range(len(key)):
            if key[i] >= 0 and (len(late) == 0 or late[i] == (turn == 1)):
                order[at[key[i]]] = i
                at[key[i]] += 1
    for r in range(rows):
        many = start[r + 1] - start[r]
        if many > 1 and not _in_time(order, start[r], start[r + 1], time, NEAR * many):
            _by_time(order[start[r] : start[r + 1]], time)
    return start, order


@jit(inlined=True)
def _in_time(order: Int32Array, first: int, last: int, time: IntArray, steps: int) -> bool:
    """Sort items ``first:last`` by time, stable, each put in its place one by one; False where these are more than so
    many ``steps`` away in all, and so that some are not yet sorted."""
    for n in range(first + 1, last):
        item, at = order[n], n
        while at > first and time[order[at - 1]] > time[item]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = item
        steps -= n - at
        if steps < 0:
            return False
    return True


@jit
def _by_time(row: Int32Array, time: IntArray) -> None:
    """Sort one row by time, stable, in place. Runs of :data:`RUN`, twice as many … items are merged: numba takes
    seconds to compile a sort of its own."""
    for begin in range(0, len(row), RUN):
        _in_time(row, begin, min(begin + RUN, len(row)), time, RUN * RUN)
    before, run = row.copy(), RUN
    while run < len(row):
        for begin in range(0, len(row), 2 * run):
            left, middle = begin, min(begin + run, len(row))
            right, end = middle, min(begin + 2 * run, len(row))
            for n in range(begin, end):
                if right == end or (left < middle and time[before[left]] <= time[before[right]]):
                    row[n] = before[left]
                    left += 1
                else:
                    row[n] = before[right]
                    right += 1
        for n in range(len(row)):
            before[n] = row[n]
        run *= 2
