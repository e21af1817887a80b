"""The plan of small messages of about equal ranks between equal boxes: no rail pauses while it could carry anything.

Rails are served as they become free. Of two ends that are, a block hops behind the rail, before it, or neither, as long
as there is time for the hop: that is decided when its turn comes, and not beforehand. First goes what has most left to
go where it comes last, over the NIC of its goal and from the NIC of the same place in its box. So both have about the
same left when nothing can hop behind any more. The order of these turns is then that in which pieces are placed.
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import Int32Array, IntArray
from synth.kernels import jit
from synth_models.fabric.plans.demands.timeline import Pieces, Placed
from synth_models.fabric.references.plan.relayed_plan import RelayedRoutes, placed_in_order
from synth_models.fabric.references.plan.straight_plan import cut_blocks

CELLS = 48  # of the time on the rails of the busiest box, that no piece is longer than
ABOVE = Fraction(201, 200)  # times the bound is when what hops behind its rail has to have come
NEAR = Fraction(1, 40)  # of the bound, above which a plan is not made
HOPS = 2  # that take no longer than half of the time on the rails, or there is no time to choose in
LARGEST = 20  # th of that time, that no block is longer than,
BUSIEST = 5  # and 5/4 of it no rank sends or receives


class Left(NamedTuple):
    """What has not gone yet. Blocks between two boxes stand together: that from place g of box b to place h of box c
    has the number ((b * boxes + c) * size + g) * size + h. It has ``many`` pieces: the last so many of the ``queue``
    before ``row[number + 1]``. How many go from a rank ``to_box`` or come to it ``from_box``, shape (ranks, boxes). In
    ticks on a rail: ``goal``, ``source``: by rank, shape (ranks,); ``place``: from box b to all ranks of place h, at
    b * size + h; ``out``, ``into``: by box."""

    many: Int32Array
    row: Int32Array
    queue: Int32Array
    to_box: IntArray
    from_box: IntArray
    goal: IntArray
    source: IntArray
    place: IntArray
    out: IntArray
    into: IntArray


class Times(NamedTuple):
    """In ticks: of a byte on a ``rail``, and on a rail and ``behind`` it; from when ``hop`` on pieces may have hopped
    before their rail; ``until`` when those that hop behind it must be through."""

    rail: int
    behind: int
    hop: int
    until: int


def dispatched(found: RelayedRoutes, demand: IntArray, bound: Fraction) -> tuple[Pieces, Placed] | None:
    """Pieces and transfers of a demand, bytes from rank to rank in the order of the layout; None where that would not
    be near the ``bound``, in ticks."""
    size, (rail, inside) = found.size, found.per_byte
    ticks, latency = found.ticks_of(demand)
    hop = int(found.routes.latency[found.route[0, 1]]) if size > 1 else 0
    if size < 2 or ticks < HOPS * hop or not _alike(demand, size, ticks // rail):
        return None
    cell = ticks // CELLS
    pieces = cut_blocks(demand, size, max(cell // rail, 1), max(cell // inside, 1))
    times = Times(rail, rail + inside, hop, int(bound * ABOVE) - latency - hop)
    start, first, last, end = _turns(pieces, found.boxes, size, times)
    if end + latency > bound * (1 + NEAR):
        return None
    share = pieces.turn * CELLS + (pieces.goal - pieces.origin) % size
    moment = np.where(start < 0, share * (end // (CELLS * size)), start)
    return pieces, placed_in_order(found, pieces, first, last, moment)


def _alike(demand: IntArray, size: int, most: int) -> bool:
    """Whether no block between boxes, and no rank, stands out; ``most``: bytes on the busiest rail."""
    box = np.arange(len(demand)) // size
    between = np.where(box[:, None] == box, 0, demand)
    busiest = max(int(between.sum(axis=0).max()), int(between.sum(axis=1).max()))
    return int(between.max()) * LARGEST <= most and (BUSIEST - 1) * busiest <= BUSIEST * most


@jit
def _left(pieces: Pieces, boxes: int, size: int, rail: int) -> Left:
    """All that goes between boxes."""
    ranks = boxes * size
    many, row = np.zeros(ranks * ranks, np.int32), np.zeros(ranks * ranks + 1, np.int32)
    to_box, from_box = np.zeros((ranks, boxes), np.int64), np.zeros((ranks, boxes), np.int64)
    goal, source, place = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
    out, into = np.zeros(boxes, np.int64), np.zeros(boxes, np.int64)
    for p in range(len(pieces.origin)):
        i, j = pieces.origin[p], pieces.goal[p]
        b, c = i // size, j // size
        if b != c:
            took = pieces.bytes[p] * rail
            many[((b * boxes + c) * size + i % size) * size + j % size] += 1
            to_box[i, c] += 1
            from_box[j, b] += 1
            goal[j] += took
            source[i] += took
            place[b * size + j % size] += took
            out[b] += took
            into[c] += took
    row[1:] = np.cumsum(many)
    top, queue = row[:-1].copy(), np.zeros(row[-1], np.int32)
    for p in range(len(pieces.origin)):
        i, j = pieces.origin[p], pieces.goal[p]
        if i // size != j // size:
            number = ((i // size * boxes + j // size) * size + i % size) * size + j % size
            queue[top[number]] = p
            top[number] += 1
    return Left(many, row, queue, to_box, from_box, goal, source, place, out, into)


@jit(inlined=True)
def _gone(left: Left, number: int, size: int, i: int, j: int, took: int) -> None:
    """The first piece of a block, from rank i to rank j, goes."""
    b, c = i // size, j // size
    left.many[number] -= 1
    left.to_box[i, c] -= 1
    left.from_box[j, b] -= 1
    left.goal[j] -= took
    left.source[i] -= took
    left.place[b * size + j % size] -= took
    left.out[b] -= took
    left.into[c] -= took


@jit(inlined=True)
def _first(left: Left, number: int) -> Any:
    """The piece of a block that goes next."""
    return left.queue[left.row[number + 1] - left.many[number]]


@jit(inlined=True)
def _block(left: Left, size: int, pieces: Pieces, times: Times, x: int, y: int, now: int) -> tuple[int, int]:
    """The most urgent block for the rail from rank x to rank y, -1 if there is none, and its number: that which has
    most to go where it would go last."""
    b, c, g = x // size, y // size, x % size
    base = (b * len(left.out) + c) * size * size
    most: Any = np.int64(-1)
    best: Any = base + g * size + g
    here = 2 * left.goal[y] + 2 * left.place[b * size + g]
    if left.many[best] > 0:
        most = here + left.source[x]
    if now < times.until and left.to_box[x, c] > 0:
        for h in range(size):
            number = base + g * size + h
            if h != g and left.many[number] > 0:
                found = 2 * left.goal[c * size + h] + 2 * left.place[b * size + h] + left.source[x]
                if found > most and now + pieces.bytes[_first(left, number)] * times.behind <= times.until:
                    most, best = found, number
    if now >= times.hop and left.from_box[y, b] > 0:
        for h in range(size):
            number = base + h * size + g
            if h != g and left.many[number] > 0:
                found = here + left.source[b * size + h]
                if found > most:
                    most, best = found, number
    return most, best


@jit
def _turns(pieces: Pieces, boxes: int, size: int, times: Times) -> tuple[IntArray, IntArray, IntArray, int]:
    """When each piece goes over its rail, -1 inside boxes, the ranks between which that is, and when all are over."""
    left, ranks, count = _left(pieces, boxes, size, times.rail), boxes * size, len(pieces.origin)
    start, first, last = np.full(count, -1, np.int64), pieces.origin.copy(), pieces.goal.copy()
    busy_out, busy_in = np.zeros(ranks, np.bool_), np.zeros(ranks, np.bool_)
    zero: Any = np.int64(0)
    end = zero
    events: Any = [(zero, np.int64(count + x)) for x in range(ranks)]  # sorted, and so a heap
    for x in range(ranks):
        heapq.heappush(events, (np.int64(times.hop), np.int64(count + x)))
    while len(events):
        now, which = heapq.heappop(events)
        mine, over = which - count, -1
        if which < count:
            mine, over = first[which], last[which]
            busy_out[mine] = busy_in[over] = False
        for side in range(1 if over < 0 else 2):
            me = over if side else mine
            if busy_in[me] if side else busy_out[me]:
                continue
            best, x, y, most = zero - 1, zero - 1, zero - 1, zero - 1
            for c in range(boxes):
                other = c * size + me % size
                if other == me or (busy_out[other] if side else busy_in[other]):
                    continue
                s, t = (other, me) if side else (me, other)
                found, k = _block(left, size, pieces, times, s, t, now)
                found += (left.out[c] if side else left.into[c]) // size if found >= 0 else 0
                if found > most:
                    most, best, x, y = found, k, s, t
            if best >= 0:
                p = _first(left, best)
                took = pieces.bytes[p] * times.rail
                start[p], first[p], last[p] = now, x, y
                busy_out[x] = busy_in[y] = True
                _gone(left, best, size, pieces.origin[p], pieces.goal[p], took)
                end = max(end, now + took)
                heapq.heappush(events, (now + took, np.int64(p)))
    return start, first, last, end
