"""When every batch goes: to its rail, over it, and from there to the ranks of the box, each as early as links are free.

The pieces of a batch follow each other without a pause, as fast as the slowest link of the route takes them; a batch
occupies all links of a route for so long.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth_models.fabric.plans.demands.layout import RouteTable
from synth_models.fabric.plans.tokens.batches import Batches
from synth_models.fabric.scheduling.interval_reservations import intervals_of, reserve_earliest

NEVER = -1


class Starts(NamedTuple):
    """The tick at which every batch starts: to its rail and over it, shape (batches,), and on to every place, shape
    (batches, size); :data:`NEVER` where nothing goes. ``ticks``: when all has arrived, shape (1,)."""

    before: IntArray
    across: IntArray
    behind: IntArray
    ticks: IntArray


@jit
def _uses(batches: Batches, routes: RouteTable, boxes: int, resources: int) -> IntArray:
    """How often each resource is occupied at most, shape (resources,)."""
    size = batches.fan.shape[1]
    times = np.zeros(len(routes.latency), np.int64)
    inside = boxes * boxes * size
    for i in range(len(batches.tokens)):
        s, c, q = batches.origin[i], batches.box[i], batches.rail[i]
        b, g = s // size, s % size
        if b != c:
            times[(b * boxes + c) * size + q] += 1
            if g != q:
                times[inside + s * size + q] += 1
        for h in range(size):
            if batches.fan[i, h] > 0:
                times[inside + (c * size + q) * size + h] += 1
    uses = np.zeros(resources, np.int64)
    for r in range(len(times)):
        for e in range(routes.used[r], routes.used[r + 1]):
            uses[routes.resource[e]] += times[r]
    return uses


@jit
def placed(
    batches: Batches, order: IntArray, token_bytes: int, routes: RouteTable, boxes: int, resources: int
) -> Starts:
    """The starts of all batches, placed in this order."""
    size, count = batches.fan.shape[1], len(batches.tokens)
    origin, box, rail, tokens, fan = batches.origin, batches.box, batches.rail, batches.tokens, batches.fan
    used, resource, offset = routes.used, routes.resource, routes.offset
    latency, slowest = routes.latency, routes.slowest
    first, _, length, begin, end, _ = intervals_of(_uses(batches, routes, boxes, resources))
    duration, at = np.zeros(len(resource), np.int64), np.zeros(np.diff(used).max(), np.int64)
    before, across = np.full(count, NEVER, np.int64), np.full(count, NEVER, np.int64)
    behind = np.full((count, size), NEVER, np.int64)
    inside = boxes * boxes * size
    last: Any = np.int64(0)
    for n in range(count):
        i = order[n]
        s, c, q = origin[i], box[i], rail[i]
        b, g = s // size, s % size
        now: Any = np.int64(0)
        for hop in range(2 if b != c else 0):
            if hop == 0 and g == q:
                continue
            r = inside + s * size + q if hop == 0 else (b * boxes + c) * size + q
            lasts = tokens[i] * token_bytes * slowest[r]
            for e in range(used[r], used[r + 1]):
                duration[e] = lasts
            start = reserve_earliest(
                first, length, begin, end, resource, offset, duration, used[r], used[r + 1], now, at
            )
            now = start + latency[r] + lasts
            if hop == 0:
                before[i] = start
            else:
                across[i] = start
        last = max(last, now)
        for ahead in range(1, size + 1):
            h = (q + ahead) % size
            if fan[i, h] > 0:
                r = inside + (c * size + q) * size + h
                lasts = fan[i, h] * token_bytes * slowest[r]
                for e in range(used[r], used[r + 1]):
                    duration[e] = lasts
                start = reserve_earliest(
                    first, length, begin, end, resource, offset, duration, used[r], used[r + 1], now, at
                )
                behind[i, h] = start
                last = max(last, start + latency[r] + lasts)
    return Starts(before, across, behind, np.array([last]))
