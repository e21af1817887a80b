"""Reservations: when links and groups are occupied, for all that gives transfers their start times.

A *resource* is a link or a group of links that take turns: resource e is link e, resource links + g is group g.
:class:`Uses` says what a transfer occupies, counted from its start. Each kind of reservations tells the first moment
for a transfer, has it entered, and where that is said has it taken out again:

- :class:`NextFree` knows when a resource is free for good: :func:`earliest_behind`, :func:`reserve_behind`;
- :class:`Gaps` also the latest gaps before: :func:`earliest_in_gap`, :func:`reserve_in_gap`;
- :class:`~synth_models.fabric.scheduling.interval_reservations.Intervals` every occupied interval: ``earliest``,
  ``reserve``, ``release``;
- :class:`Periodic` who holds each cell of a period: :func:`conflicts_modulo`, :func:`reserve_modulo`,
  :func:`release_modulo`.

Times are whole ticks, of a :class:`Periodic` cells. For shares of a link in epochs there is
:mod:`synth_peers.teccl.programs.epoch_reservations`. The check has its own rules and uses none of this.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit

ANYBODY = -2  # whoever holds a cell, if anybody does


class Uses(NamedTuple):
    """What transfers occupy: transfer i, in the entries ``row[i]:row[i + 1]``, occupies ``resource`` from ``offset``
    ticks after its start on, for ``duration`` ticks. ``row``: shape (transfers + 1,); others: shape (entries,)."""

    row: IntArray
    resource: IntArray
    offset: IntArray
    duration: IntArray


class NextFree(NamedTuple):
    """``free``: the tick from which on each resource is free for good, shape (resources,)."""

    free: IntArray


class Gaps(NamedTuple):
    """``free``: the tick from which on each resource is free for good, shape (resources,); before that it is free in
    the ``known`` gaps ``begin`` to ``end``, shape (resources, gaps remembered)."""

    free: IntArray
    begin: IntArray
    end: IntArray
    known: IntArray


class Periodic(NamedTuple):
    """``holder``: the transfer that holds each cell of the period, -1 for none, shape (resources, cells)."""

    holder: IntArray


# what transfers occupy


@jit
def uses_of(
    route_start: IntArray, link: IntArray, group: IntArray, offset: IntArray, duration: IntArray, merged: bool
) -> Uses:
    """Uses of transfers over the routes ``link[route_start[i]:route_start[i + 1]]``: every link, followed by its group.

    ``offset``, ``duration``: ticks, per link of every route; ``group``: of every link of the machine, -1 for none.
    ``merged``: a group that a route crosses twice is occupied from the first moment to the last, as one entry.
    """
    count = len(route_start) - 1
    row = np.zeros(count + 1, dtype=np.int64)
    width = 2 * len(link)
    uses = Uses(row, np.zeros(width, np.int64), np.zeros(width, np.int64), np.zeros(width, np.int64))
    top: Any = np.int64(0)
    for i in range(count):
        for k in range(route_start[i], route_start[i + 1]):
            e = link[k]
            uses.resource[top], uses.offset[top], uses.duration[top] = e, offset[k], duration[k]
            top += 1
            if group[e] >= 0:
                first = row[i] if merged else top
                top = add_use(uses, first, top, len(group) + group[e], offset[k], duration[k])
        row[i + 1] = top
    return Uses(row, uses.resource[:top], uses.offset[:top], uses.duration[:top])


@jit(inlined=True)
def add_use(uses: Uses, first: int, top: int, resource: int, offset: int, duration: int) -> int:
    """Add a use behind the entries ``first:top``, or widen the one of the same resource among them; the new ``top``."""
    at = first
    while at < top and uses.resource[at] != resource:
        at += 1
    if at == top:
        uses.resource[at], uses.offset[at], uses.duration[at] = resource, offset, duration
        return top + 1
    end = max(uses.offset[at] + uses.duration[at], offset + duration)
    uses.offset[at] = min(uses.offset[at], offset)
    uses.duration[at] = end - uses.offset[at]
    return top


# behind everything reserved so far


@jit
def new_next_free(resources: int) -> NextFree:
    """Nothing reserved."""
    return NextFree(np.zeros(resources, dtype=np.int64))


@jit(inlined=True)
def earliest_behind(reserved: NextFree, uses: Uses, i: int, now: int) -> tuple[int, int]:
    """The first start of transfer i from ``now`` on at which all it occupies is free for good, and the resource that
    it waits for longest (-1: none)."""
    free, resource, offset = reserved.free, uses.resource, uses.offset
    start, blocker = now, -1
    for k in range(uses.row[i], uses.row[i + 1]):
        begin = free[resource[k]] - offset[k]
        if begin > start:
            start, blocker = begin, resource[k]
    return start, blocker


@jit(inlined=True)
def reserve_behind(reserved: NextFree, uses: Uses, i: int, start: int) -> None:
    """Occupy what transfer i needs; what lies before is lost."""
    for k in range(uses.row[i], uses.row[i + 1]):
        x = uses.resource[k]
        reserved.free[x] = max(reserved.free[x], start + uses.offset[k] + uses.duration[k])


# in gaps


@jit
def new_gaps(resources: int, remembered: int) -> Gaps:
    """Nothing reserved; of every resource so many gaps will be known, the latest ones."""
    shape = (resources, remembered)
    return Gaps(
        np.zeros(resources, dtype=np.int64),
        np.zeros(shape, dtype=np.int64),
        np.zeros(shape, dtype=np.int64),
        np.zeros(resources, dtype=np.int64),
    )


@jit
def earliest_in_gap(reserved: Gaps, uses: Uses, i: int, now: int) -> int:
    """The first start of transfer i from ``now`` on at which all it occupies is free. One entry a resource."""
    settled = False
    while not settled:
        settled = True
        for k in range(uses.row[i], uses.row[i + 1]):
            x, begin = uses.resource[k], now + uses.offset[k]
            found = max(begin, reserved.free[x])
            if begin < reserved.free[x]:
                for q in range(reserved.known[x]):
                    begins = max(begin, reserved.begin[x, q])
                    if begins + uses.duration[k] <= reserved.end[x, q] and begins < found:
                        found = begins
            if found > begin:
                now = found - uses.offset[k]
                settled = False
    return now


@jit
def reserve_in_gap(reserved: Gaps, uses: Uses, i: int, start: int) -> None:
    """Occupy what transfer i needs, which must be free. One entry a resource."""
    for k in range(uses.row[i], uses.row[i + 1]):
        x, begin = uses.resource[k], start + uses.offset[k]
        end = begin + uses.duration[k]
        if begin >= reserved.free[x]:
            if begin > reserved.free[x]:
                _add_gap(reserved, x, reserved.free[x], begin)
            reserved.free[x] = max(reserved.free[x], end)
        else:
            _cut_gap(reserved, x, begin, end)


@jit
def _cut_gap(reserved: Gaps, x: int, begin: int, end: int) -> None:
    """Take [begin, end) out of the gap of resource x that holds it."""
    for q in range(reserved.known[x]):
        if reserved.begin[x, q] <= begin and end <= reserved.end[x, q]:
            before = reserved.end[x, q]
            if begin > reserved.begin[x, q]:
                reserved.end[x, q] = begin
                if before > end:
                    _add_gap(reserved, x, end, before)
            elif before > end:
                reserved.begin[x, q] = end
            else:
                reserved.known[x] -= 1
                last = reserved.known[x]
                reserved.begin[x, q], reserved.end[x, q] = reserved.begin[x, last], reserved.end[x, last]
            break


@jit
def _add_gap(reserved: Gaps, x: int, begin: int, end: int) -> None:
    """One more gap; where there is no room, instead of the one that ends first (unless that is the new one)."""
    at = reserved.known[x]
    if at == reserved.begin.shape[1]:
        at = 0
        for q in range(1, reserved.begin.shape[1]):
            if reserved.end[x, q] < reserved.end[x, at]:
                at = q
        if reserved.end[x, at] > end:
            return
    else:
        reserved.known[x] += 1
    reserved.begin[x, at] = begin
    reserved.end[x, at] = end


# modulo a period


@jit
def new_periodic(resources: int, period: int) -> Periodic:
    """Nothing reserved in a period of so many cells."""
    return Periodic(np.full((resources, period), -1, dtype=np.int64))


@jit
def is_free_modulo(reserved: Periodic, resource: int, when: int, duration: int) -> bool:
    """Whether the resource is free from cell ``when`` on for so many cells."""
    period = reserved.holder.shape[1]
    free = True
    for c in range(when, when + min(duration, period)):
        free = free and reserved.holder[resource, c if c < period else c - period] < 0
    return free


@jit
def conflicts_modulo(
    reserved: Periodic, uses: Uses, i: int, start: int, price: IntArray, least: int
) -> tuple[int, int, int]:
    """What is in the way of transfer i at ``start``, a cell of the period: the sum of 1 + ``price`` of every transfer
    for every resource and stretch of cells that it holds, how many these are, and the cells looked at. Gives up once
    the sum is ``least``."""
    period = reserved.holder.shape[1]
    total, known, looked, last = 0, 0, 0, -1
    for k in range(uses.row[i], uses.row[i + 1]):
        when = (start + uses.offset[k]) % period
        for c in range(when, when + min(uses.duration[k], period)):
            j = reserved.holder[uses.resource[k], c if c < period else c - period]
            looked += 1
            if j >= 0 and j != last:
                last = j
                total += 1 + price[j]
                known += 1
                if total >= least:
                    return total, known, looked
    return total, known, looked


@jit
def reserve_modulo(reserved: Periodic, uses: Uses, i: int, start: int) -> None:
    """Let transfer i hold what it needs in every period, from cell ``start`` on, whoever held it before."""
    _hand_over_modulo(reserved, uses, i, start, ANYBODY, i)


@jit
def release_modulo(reserved: Periodic, uses: Uses, i: int, start: int) -> None:
    """Free the cells that transfer i, entered with this start, still holds."""
    _hand_over_modulo(reserved, uses, i, start, i, -1)


@jit(inlined=True)
def _hand_over_modulo(reserved: Periodic, uses: Uses, i: int, start: int, holder: int, following: int) -> None:
    """Let ``following`` hold the cells of transfer i, entered with this start, that ``holder`` holds."""
    period = reserved.holder.shape[1]
    for k in range(uses.row[i], uses.row[i + 1]):
        when = (start + uses.offset[k]) % period
        for c in range(when, when + min(uses.duration[k], period)):
            at = c if c < period else c - period
            if holder == ANYBODY or reserved.holder[uses.resource[k], at] == holder:
                reserved.holder[uses.resource[k], at] = following
