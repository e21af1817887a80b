"""List scheduling of many transfers: at every moment the most urgent of those that can start does.

As :func:`synth_models.fabric.scheduling.list_scheduling.list_scheduled`, but of what could start at one moment the
priority alone decides, whichever resource is free last, and who waits stands in the lines of all its resources. Where
most wait for two busy ends that takes a tenth of the time: nobody moves from line to line.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import Int32Array, IntArray
from synth.kernels import jit
from synth.kernels.clock import now as now_s
from synth_models.fabric.scheduling.followers import Followers, becomes_ready
from synth_models.fabric.scheduling.lines import (
    BITS,
    DE_BRUIJN,
    LOWEST,
    WORD,
    Lines,
    empty_lines,
    join,
    leave,
    next_in_line,
)
from synth_models.fabric.scheduling.reservations import Uses

LOOK = 1000  # moments between looks at the clock


class Turns(NamedTuple):
    """A line is a resource that is needed so many ticks, ``offset``, after a transfer's start: shape (lines,).

    ``line``: of every use. ``first``: of every resource one line, ``twin``: of every line another of the same resource,
    -1 for none.
    """

    line: IntArray
    offset: IntArray
    first: IntArray
    twin: IntArray


def started_at_once(
    uses: Uses, resources: int, followers: Followers, priority: IntArray, missing: IntArray, seconds: float
) -> tuple[IntArray, bool]:
    """Start ticks, -1 for a transfer that never becomes ready, and whether that took no more than so many seconds; the
    rest is then missing. Complexity: n log n in transfers, and those that are looked at while their other end is
    busy."""
    uses = _decisive(uses, resources)
    turns = _turns(uses, resources)
    own = uses._replace(resource=turns.line)
    order = np.argsort(priority, kind="stable").astype(np.int64)
    lines = empty_lines(own, len(turns.offset), order, beside=True)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return _at_once(lines, uses, turns, followers, place, order, missing, seconds)


@jit
def _decisive(uses: Uses, resources: int) -> Uses:
    """Without those that follow another: a resource that is always occupied so many ticks after another, and no longer
    than that, is free whenever that one is."""
    before, later = np.full(resources, -1, np.int64), np.zeros(resources, np.int64)
    follows = np.ones(resources, np.bool_)
    row, resource, offset, duration = uses.row, uses.resource, uses.offset, uses.duration
    for i in range(len(row) - 1):
        for k in range(row[i], row[i + 1]):
            x, last = resource[k], resource[k - 1] if k > row[i] else resource[k]
            after = offset[k] - offset[k - 1] if k > row[i] else 0
            if before[x] < 0:
                before[x], later[x] = last, after
            if last == x or last != before[x] or after != later[x] or after < 0 or duration[k] > duration[k - 1]:
                follows[x] = False
    starts, kept = np.zeros(len(row), np.int64), np.zeros(len(resource), np.int64)
    top: Any = np.int64(0)
    for i in range(len(row) - 1):
        for k in range(row[i], row[i + 1]):
            if not follows[resource[k]]:
                kept[top] = k
                top += 1
        starts[i + 1] = top
    kept = kept[:top]
    return Uses(starts, resource[kept], offset[kept], duration[kept])


@jit
def _turns(uses: Uses, resources: int) -> Turns:
    """The lines of all uses."""
    entries = len(uses.resource)
    first, line = np.full(resources, -1, np.int64), np.zeros(entries, np.int64)
    offset, twin = np.zeros(entries, np.int64), np.zeros(entries, np.int64)
    count: Any = np.int64(0)
    for k in range(entries):
        x = uses.resource[k]
        found = first[x]
        while found >= 0 and offset[found] != uses.offset[k]:
            found = twin[found]
        if found < 0:
            found = count
            offset[found], twin[found], first[x] = uses.offset[k], first[x], found
            count += 1
        line[k] = found
    return Turns(line, offset[:count].copy(), first, twin[:count].copy())


@jit
def _other(lines: Lines) -> Int32Array:
    """The line at the other end of the transfer at each place, its own where there is none; -1 where there are more."""
    first, begin, line = lines.first, lines.begin, lines.resource
    found = np.full(len(lines.transfer), -1, np.int32)
    for own in range(len(first) - 1):
        for p in range(first[own], first[own + 1]):
            if begin[p + 1] - begin[p] <= 2:
                found[p] = line[begin[p]] + line[begin[p + 1] - 1] - own
    return found


@jit(inlined=True)
def _first_that_can(lines: Lines, other: Int32Array, when: IntArray, place: int, end: int, now: Any) -> int:
    """The first place from ``place`` on, before ``end``, of a transfer that waits for nothing but its turn; -1 for
    none."""
    bits, begin, line = lines.bits, lines.begin, lines.resource
    p = next_in_line(bits, lines.level, place, end)
    while p >= 0:
        word = p >> BITS
        left, base = bits[word] >> (p & (WORD - 1)) << (p & (WORD - 1)), word << BITS
        while left != 0:
            p = base + LOWEST[(((left & -left) * DE_BRUIJN) & 0xFFFFFFFF) >> 27]
            beside = other[p]
            if beside < 0:
                k = begin[p]
                while k < begin[p + 1] and when[line[k]] <= now:
                    k += 1
                if k == begin[p + 1]:
                    return int(p) if p < end else -1
            elif when[beside] <= now:
                return int(p) if p < end else -1
            left &= left - 1
        p = next_in_line(bits, lines.level, base + WORD, end)
    return -1


@jit(inlined=True)
def _in_line(lines: Lines, row: IntArray, line: IntArray, when: IntArray, waiting: IntArray, i: Any) -> Any:
    """Let transfer i wait in all its lines, and tell which of them is free last."""
    last = line[row[i]]
    for k in range(row[i], row[i + 1]):
        join(lines.bits, lines.level, lines.place[k])
        waiting[line[k]] += 1
        if when[line[k]] > when[last]:
            last = line[k]
    return last


@jit(inlined=True)
def _occupy(
    lines: Lines, uses: Uses, turns: Turns, when: IntArray, waiting: IntArray, wake: IntArray, events: Any, i: Any,
    now: Any,
) -> None:  # fmt: skip
    """Take transfer i, which starts now, out of its lines, and note when those of what it occupies are looked at."""
    for k in range(uses.row[i], uses.row[i + 1]):
        leave(lines.bits, lines.level, lines.place[k])
        waiting[turns.line[k]] -= 1
    for k in range(uses.row[i], uses.row[i + 1]):
        end = now + uses.offset[k] + uses.duration[k]
        x = turns.first[uses.resource[k]]
        while x >= 0:
            when[x] = max(when[x], end - turns.offset[x])
            if waiting[x] > 0 and wake[x] < 0:
                wake[x] = max(now, when[x])
                heapq.heappush(events, (wake[x], np.int64(-1), x))
            x = turns.twin[x]


@jit
def _at_once(
    lines: Lines, uses: Uses, turns: Turns, followers: Followers, place: IntArray, order: IntArray, missing: IntArray,
    seconds: float,
) -> tuple[IntArray, bool]:  # fmt: skip
    """:func:`started_at_once` with lines where nobody waits yet; ``order``: the transfers by priority, ``place``: that
    of each in it. At one moment transfers become ready, then lines are looked at, and then the first of each may start,
    the most urgent of all first."""
    until, looks, count, number = now_s() + seconds, 0, len(order), len(turns.offset)
    first, transfer, own, row, line = lines.first, lines.transfer, lines.place, uses.row, turns.line
    start, ready, waits = np.full(count, -1, np.int64), np.zeros(count, np.int64), missing.copy()
    other = _other(lines)
    when, waiting = -turns.offset, np.zeros(number, np.int64)
    wake = np.full(number, -1, np.int64)  # when each line's one pending event is, -1 for none
    zero, line_free, new = np.int64(0), np.int64(-1), np.int64(-2)
    for i in np.flatnonzero(waits == 0):
        wake[_in_line(lines, row, line, when, waiting, i)] = 0
    events: Any = [(zero, line_free, np.int64(x)) for x in range(number) if wake[x] == 0]  # sorted, and so a heap
    now, kind, x = zero, line_free, zero
    again = False  # whether the next event is known
    while again or len(events):
        looks += 1
        if looks % LOOK == 1 and now_s() > until:
            return start, False
        if not again:
            now, kind, x = heapq.heappop(events)
        again = False
        if kind == new:
            last = _in_line(lines, row, line, when, waiting, x)
            if wake[last] < 0:
                wake[last] = max(now, when[last])
                heapq.heappush(events, (wake[last], line_free, last))
            continue
        p = first[x]
        if kind == line_free:
            wake[x] = -1
            if when[x] > now:  # somebody was quicker
                if waiting[x] > 0:
                    wake[x] = when[x]
                    heapq.heappush(events, (when[x], line_free, x))
                continue
        else:
            i, can = order[kind], start[order[kind]] < 0
            for k in range(row[i], row[i + 1]):
                can = can and when[line[k]] <= now
                p = own[k] + 1 if line[k] == x else p
            if can:
                start[i] = now
                _occupy(lines, uses, turns, when, waiting, wake, events, i, now)
                for s in range(followers.row[i], followers.row[i + 1]):
                    if becomes_ready(followers, ready, waits, s, now):
                        heapq.heappush(events, (ready[followers.transfer[s]], new, followers.transfer[s]))
                continue
            if when[x] > now:
                continue
        p = _first_that_can(lines, other, when, p, first[x + 1], now)
        if p >= 0:
            now, kind, x = heapq.heappushpop(events, (now, place[transfer[p]], x))
            again = True
    return start, True
