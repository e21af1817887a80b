"""A schedule whose transfers are shifted forwards, then backwards in time, as far as links and chunks allow.

In the order of their timesteps, transfers take the first timestep in which what they carry is there and a link is free;
then, from the end, the last one before what waits for them. What one pass leaves idle the next fills, so a pass makes
the schedule no longer: justification (:mod:`synth_models.xtree.references.justified`), of a schedule of any kind. Some
passes shake the order.

Complexity: a pass takes O(M log M + M w) for M transfers that look at w timesteps each.
Guarantee: a valid schedule, never longer than the one it is given.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.graph.rows import rows_by
from synth.kernels import jit
from synth.network import Network
from synth.options import RunOptions
from synth.schedule import Schedule

NOISE, SHAKEN = 4.0, 4  # timesteps by which the order is shaken, in every SHAKEN-th pair of passes


class _Rows(NamedTuple):
    """Of every transfer some others: ``item[start[i]:start[i + 1]]``, shapes (transfers + 1,) and (all of them,)."""

    start: IntArray
    item: IntArray


class _Links(NamedTuple):
    """The links of every arc a, ``link[start[a]:start[a + 1]]``, and every transfer's ``arc``, shape (transfers,)."""

    start: IntArray
    link: IntArray
    arc: IntArray


def shifted(
    network: Network, schedule: Schedule, least: int, passes: int, options: RunOptions, random: np.random.Generator
) -> Schedule:
    """The shortest schedule of ``passes`` pairs of passes, or of fewer where ``least`` timesteps are reached.

    Itself where a node sends its sum, or a part of it, before all that reaches it is there: it would hold another one.
    """
    before = _waits(network, schedule)
    if before is None:
        return schedule
    after = _turned(before, len(schedule))
    start, link = rows_by(network.arcs[3], len(network.arcs[0]))
    links = _Links(start, link, network.arcs[3][schedule.link].astype(np.int64))
    best, at = schedule, schedule.step.astype(np.int64)
    for number in range(passes):
        if best.steps <= least or options.out_of_time():
            break
        shake = 0.0
        if number % SHAKEN == SHAKEN - 1:
            at, shake = best.step.astype(np.int64), NOISE
        for waits, followers, forwards in ((after, before, False), (before, after, True)):
            order = (at if forwards else -at) + shake * random.random(len(at))
            at, used = _placed(order, waits, followers, links)
            if forwards and at.max() < best.steps:
                best = Schedule.of(at, used, schedule.chunk, schedule.adds)
            at = at if forwards else at.max() + 1 - at
    return best


def _waits(network: Network, schedule: Schedule) -> _Rows | None:
    """What every transfer waits for: a copy for the copy that brings the chunk, or at the root for all sums; a sum for
    all that come before. None where one does not wait for these in the schedule."""
    nodes, sums = network.nodes, np.flatnonzero(schedule.adds)
    leaves = schedule.chunk.astype(np.int64) * nodes + network.src[schedule.link]
    comes = schedule.chunk.astype(np.int64) * nodes + network.dst[schedule.link]
    copies = np.flatnonzero(~schedule.adds)
    copies = copies[np.lexsort((schedule.step[copies], comes[copies]))]
    sums = sums[np.argsort(comes[sums], kind="stable")]
    first, last = np.searchsorted(comes[sums], leaves, "left"), np.searchsorted(comes[sums], leaves, "right")
    copy = np.searchsorted(comes[copies], leaves, "left")
    brought = np.zeros(len(schedule), dtype=bool)
    if len(copies):
        brought = ~schedule.adds & (comes[copies][np.minimum(copy, len(copies) - 1)] == leaves)
    lengths = np.where(brought, 1, last - first)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    row = np.repeat(np.arange(len(schedule)), lengths)
    place = np.where(brought, len(sums) + copy, first)
    item = np.concatenate([sums, copies])[place[row] + np.arange(len(row)) - start[:-1][row]]
    if np.any(schedule.step[item] >= schedule.step[row]):
        return None
    return _Rows(start, item.astype(np.int64))


def _turned(rows: _Rows, count: int) -> _Rows:
    """Of every transfer those that have it in their row."""
    start, order = rows_by(rows.item, count)
    return _Rows(start, np.repeat(np.arange(count), np.diff(rows.start))[order])


@jit
def _placed(order: FloatArray, waits: _Rows, followers: _Rows, links: _Links) -> tuple[IntArray, IntArray]:
    """Timestep and link of every transfer, shape (transfers,) each: one after the other, of those that wait for nothing
    more the least in ``order`` first, each in the first timestep in which a link of its arc is free."""
    count, horizon = len(order), 64
    missing = np.diff(waits.start)
    at, used, ready = np.zeros(count, np.int64), np.zeros(count, np.int64), np.ones(count, np.int64)
    busy = np.zeros((len(links.link), horizon), np.bool_)  # by place in ``links.link`` and timestep
    full = np.ones(len(links.link), np.int64)  # a timestep before which a place is never free
    heap = [(order[i], i) for i in range(count) if missing[i] == 0]
    heapq.heapify(heap)
    while len(heap) > 0:
        _, i = heapq.heappop(heap)
        place, step = -1, 0
        for p in range(links.start[links.arc[i]], links.start[links.arc[i] + 1]):
            while full[p] < horizon and busy[p, full[p]]:
                full[p] += 1
            t = max(full[p], ready[i])
            while t < horizon and busy[p, t]:
                t += 1
            if place < 0 or t < step:
                place, step = p, t
        if step >= horizon:
            wider = np.zeros((len(links.link), 2 * step), np.bool_)
            wider[:, :horizon] = busy
            busy, horizon = wider, 2 * step
        busy[place, step] = True
        at[i], used[i] = step, links.link[place]
        for j in followers.item[followers.start[i] : followers.start[i + 1]]:
            ready[j] = max(ready[j], step + 1)
            missing[j] -= 1
            if missing[j] == 0:
                heapq.heappush(heap, (order[j], j))
    return at, used
