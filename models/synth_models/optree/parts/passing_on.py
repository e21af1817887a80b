"""Passing items on from neighbour to neighbour along a ring or line: circuits of one hop, for any budget.

The nodes hold ``items`` items each. On a line every item runs to both ends; on a ring half of the way round each way.
Every directed link is a queue, served in order of arrival, as many items a step as there are wavelengths.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import Int32Array, IntArray
from synth.kernels import jit


def passing_on(side: int, wavelengths: int, items: int, ring: bool) -> list[Int32Array]:
    """Columns step, source, destination, direction, wavelength, origin, copy, as
    :func:`synth_models.optree.parts.stage_circuits.staged` gives them. Rows are sorted by step."""
    parts = []
    for direction in (0, 1):
        reach = side - 1 if not ring else (side - direction) // 2  # of two equal ways round the first direction's
        step, src, wavelength, origin, copy = _queues(side, wavelengths, items, reach, ring)
        if direction == 1:  # the same on the ring or line read backwards
            src, origin = side - 1 - src, side - 1 - origin
        dst = (src + (1 if direction == 0 else -1)) % side
        parts.append([step, src, dst, np.full(len(step), direction), wavelength, origin, copy])
    columns = [np.concatenate(both) for both in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return [column[order].astype(np.int32) for column in columns]


@jit
def _queues(
    side: int, wavelengths: int, items: int, reach: int, ring: bool
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Upwards: the items wait at every node, its own first; each goes ``reach`` hops, on a line to the end at most."""
    most = side * items * reach
    step, src = np.empty(most, np.int64), np.empty(most, np.int64)
    wavelength, origin, copy = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    waiting = np.empty((side, side * items), np.int64)  # item numbers origin * items + copy
    length, served = np.zeros(side, np.int64), np.zeros(side, np.int64)
    for v in range(side):
        if reach > 0 and (ring or v < side - 1):
            for c in range(items):
                waiting[v, c] = v * items + c
            length[v] = items
    count, now, moving = 0, 0, True
    while moving:
        moving = False
        now += 1
        there = length.copy()
        for v in range(side):
            for wave in range(min(wavelengths, there[v] - served[v])):
                item = waiting[v, served[v]]
                served[v] += 1
                step[count], src[count], wavelength[count] = now, v, wave
                origin[count], copy[count] = item // items, item % items
                count += 1
                moving = True
                to = (v + 1) % side
                if (to - item // items) % side < reach and (ring or to < side - 1):
                    waiting[to, length[to]] = item
                    length[to] += 1
    return step[:count], src[:count], wavelength[:count], origin[:count], copy[:count]
