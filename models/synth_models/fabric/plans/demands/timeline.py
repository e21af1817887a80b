"""From parts on rails and the stages between boxes to pieces with a turn, and from these to start times.

A piece's *turn* is the moment, counted in bytes of a rail, at which it would cross its rail if nothing else took time.
Pieces take their turns one after the other: to the rail inside the box, over the rail, and on inside the other box,
each as early as the links are free, also before what others have reserved. So balancing, rails and redistribution
overlap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth_models.fabric.plans.demands.decomposition import Stages
from synth_models.fabric.plans.demands.layout import Layout, RouteTable
from synth_models.fabric.plans.demands.rails import Parts
from synth_models.fabric.scheduling.interval_reservations import Intervals, intervals_of, reserve_earliest
from synth_models.fabric.scheduling.reservations import Uses

INSIDE = -1  # instead of a rail: the piece stays in its box
AROUND = -2  # and less, -2 - c: it goes from rank to rank of its box over box c
FETCHED = 1024  # transfers that are placed one after the other, and fetched together before that


class Pieces(NamedTuple):
    """What goes from ``origin`` to ``goal`` (ranks) over ``rail``, so many ``bytes``, when it is its ``turn``; shape
    (pieces,) each."""

    origin: IntArray
    goal: IntArray
    rail: IntArray
    bytes: IntArray
    turn: IntArray


class Placed(NamedTuple):
    """Transfers: of which ``piece``, over which ``route``, from which ``start`` tick on, until when the ``end``; shape
    (transfers,) each."""

    piece: IntArray
    route: IntArray
    start: IntArray
    end: IntArray


@jit(inlined=True)
def up_to_cut(amount: int, turn: int, cuts: IntArray) -> int:
    """How much of an amount whose turn begins then goes before the next of the turns ``cuts``."""
    cut = np.searchsorted(cuts, turn, side="right")
    return min(amount, cuts[cut] - turn) if cut < len(cuts) else amount


@jit
def between_boxes(parts: Parts, stages: Stages, cuts: IntArray, boxes: int, size: int) -> Pieces:
    """The parts, cut where a stage ends and at the turns ``cuts``, each with its turn."""
    count = len(stages.length)
    most = len(parts.bytes) + (count + len(cuts) + 1) * boxes * size
    pieces = Pieces(
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64),
        np.zeros(most, np.int64),
    )  # fmt: skip
    begin = np.cumsum(stages.length) - stages.length
    top = 0
    for b in range(boxes):
        by_target = np.argsort(stages.target[:, b], kind="mergesort")
        first = 0
        for c in range(boxes):
            last = first
            while last < count and stages.target[by_target[last], b] == c:
                last += 1
            for q in range(size):
                k = (b * boxes + c) * size + q
                stage, gone = first, np.int64(0)
                for p in range(parts.row[k], parts.row[k + 1]):
                    left = parts.bytes[p]
                    while left > 0:
                        s = by_target[stage]
                        turn = begin[s] + gone
                        taken = up_to_cut(min(left, stages.length[s] - gone), turn, cuts)
                        pieces.origin[top], pieces.goal[top], pieces.rail[top] = parts.origin[p], parts.goal[p], q
                        pieces.bytes[top], pieces.turn[top] = taken, turn
                        top += 1
                        left -= taken
                        gone += taken
                        if gone == stages.length[s]:
                            stage, gone = stage + 1, np.int64(0)
            first = last
    return Pieces(pieces.origin[:top], pieces.goal[:top], pieces.rail[:top], pieces.bytes[:top], pieces.turn[:top])


@jit
def inside_boxes(demand: IntArray, boxes: int, size: int, largest: int, until: int) -> Pieces:
    """What stays in its box, in pieces of at most ``largest`` bytes, their turns spread evenly until ``until``."""
    most = 0
    for b in range(boxes):
        for i in range(b * size, (b + 1) * size):
            for j in range(b * size, (b + 1) * size):
                if i != j:
                    most += (demand[i, j] + largest - 1) // largest
    pieces = Pieces(
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.full(most, INSIDE, np.int64), np.zeros(most, np.int64),
        np.zeros(most, np.int64),
    )  # fmt: skip
    top = 0
    for b in range(boxes):
        for g in range(size):
            for h in range(size):
                i, j = b * size + g, b * size + h
                count = (demand[i, j] + largest - 1) // largest if i != j else 0
                phase = (h - g) % size
                for k in range(count):
                    pieces.origin[top], pieces.goal[top] = i, j
                    pieces.bytes[top] = demand[i, j] // count + (1 if k < demand[i, j] % count else 0)
                    pieces.turn[top] = int(until * ((k + phase / size) / count))
                    top += 1
    return pieces


@jit
def around(moved: IntArray, boxes: int, size: int, cells: int, until: int) -> Pieces:
    """What goes from rank to rank of a box over other boxes, each block in ``cells`` pieces over one box after the
    other, their turns spread evenly until ``until``."""
    most = (moved != 0).sum() * cells
    pieces = Pieces(
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64),
        np.zeros(most, np.int64),
    )  # fmt: skip
    top = 0
    for i in range(boxes * size):
        for j in range(i // size * size, (i // size + 1) * size):
            for k in range(cells if moved[i, j] > 0 else 0):
                amount = moved[i, j] * (k + 1) // cells - moved[i, j] * k // cells
                if amount > 0:
                    pieces.origin[top], pieces.goal[top], pieces.bytes[top] = i, j, amount
                    pieces.rail[top] = AROUND - (i // size + 1 + k % (boxes - 1)) % boxes
                    pieces.turn[top] = until * k // cells
                    top += 1
    return Pieces(pieces.origin[:top], pieces.goal[:top], pieces.rail[:top], pieces.bytes[:top], pieces.turn[:top])


@jit(inlined=True)
def place_one(reserved: Intervals, routes: RouteTable, r: int, amount: int, now: int) -> tuple[int, int]:
    """Reserve route r for so many bytes as early as it is free from ``now`` on; start and arrival."""
    u, v = routes.used[r], routes.used[r + 1]
    start = reserve_earliest(
        reserved.first, reserved.length, reserved.begin, reserved.end,
        routes.resource[u:v], routes.offset[u:v], routes.per_byte[u:v] * amount, 0, v - u, now,
        np.zeros(v - u, np.int64),
    )  # fmt: skip
    return start, start + routes.latency[r] + routes.slowest[r] * amount


class _Batch(NamedTuple):
    """Transfers that are placed one after the other: of which ``piece``, over which ``route``, from when on at the
    earliest (``begins``, -1: when the one before has come), how long until each has come (``span``); shape (transfers,)
    each. What they occupy are ``uses``."""

    piece: IntArray
    route: IntArray
    begins: IntArray
    span: IntArray
    uses: Uses


@jit
def _new_batch(most: int, each: int) -> _Batch:
    """Room for so many transfers, which occupy so many resources each."""
    row, entries = np.zeros(most + 1, np.int64), most * each
    uses = Uses(row, np.zeros(entries, np.int64), np.zeros(entries, np.int64), np.zeros(entries, np.int64))
    piece, route = np.zeros(most, np.int64), np.zeros(most, np.int64)
    return _Batch(piece, route, np.zeros(most, np.int64), np.zeros(most, np.int64), uses)


@jit
def _fetch(
    batch: _Batch, order: IntArray, gone: int, half: int, amount: IntArray, begins: IntArray, ahead: IntArray,
    row: IntArray, way: IntArray, routes: RouteTable,
) -> tuple[int, int]:  # fmt: skip
    """The next :data:`FETCHED` transfers or a few more, of pieces from ``order[gone]`` on, the first or the second
    ``half`` of their ways; how many pieces are ``gone`` then, and how many transfers that are. What is far apart in
    memory is fetched here, where nothing has to wait for it."""
    top, entry = 0, 0
    while gone < len(order) and top < FETCHED:
        p = order[gone]
        gone += 1
        middle = row[p] + ahead[p]
        low, high = (middle, row[p + 1]) if half else (row[p], middle)
        for w in range(low, high):
            r = way[w]
            batch.piece[top], batch.route[top], batch.begins[top] = p, r, begins[p] if w == low else -1
            batch.span[top] = routes.latency[r] + routes.slowest[r] * amount[p]
            for e in range(routes.used[r], routes.used[r + 1]):
                batch.uses.resource[entry], batch.uses.offset[entry] = routes.resource[e], routes.offset[e]
                batch.uses.duration[entry] = routes.per_byte[e] * amount[p]
                entry += 1
            top += 1
            batch.uses.row[top] = entry
    return gone, top


@jit
def placed_along(
    order: IntArray, amount: IntArray, begins: IntArray, ahead: IntArray, row: IntArray, way: IntArray,
    routes: RouteTable, resources: int,
) -> Placed:  # fmt: skip
    """The transfers of pieces of ``amount`` bytes, placed piece after piece in this order, none before the piece
    ``begins``: piece p goes over the routes ``way[row[p]:row[p + 1]]``. All go over so many of them as are ``ahead``
    before any goes over the others: what comes early on a link and what comes late are then placed one after the other.
    """
    first, _, length, begin, end, _ = intervals_of(uses_of(way, routes, resources))
    most, each = len(way), np.diff(routes.used).max()
    piece, route = np.empty(most, np.int64), np.empty(most, np.int64)
    starts, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    longest = 0
    for p in range(len(row) - 1):
        longest = max(longest, row[p + 1] - row[p])
    batch = _new_batch(FETCHED + longest, each)
    which, over, from_when, span, uses = batch
    entry, resource, offset, duration = uses
    come, at = begins.copy(), np.zeros(each, np.int64)
    top: Any = np.int64(0)
    now: Any = np.int64(0)
    for half in range(2):
        gone: Any = np.int64(0)
        while gone < len(order):
            gone, count = _fetch(batch, order, gone, half, amount, come, ahead, row, way, routes)
            for n in range(count):
                if from_when[n] >= 0:
                    now = from_when[n]
                start = reserve_earliest(
                    first, length, begin, end, resource, offset, duration, entry[n], entry[n + 1], now, at
                )
                now = start + span[n]
                piece[top], route[top], starts[top], ends[top] = which[n], over[n], start, now
                if half == 0:
                    come[piece[top]] = now
                top += 1
    return Placed(piece[:top], route[:top], starts[:top], ends[:top])


@jit
def uses_of(way: IntArray, routes: RouteTable, resources: int) -> IntArray:
    """How many of these routes occupy each resource, shape (resources,)."""
    times, uses = np.zeros(len(routes.latency), np.int64), np.zeros(resources, np.int64)
    for r in way:
        times[r] += 1
    for r in range(len(times)):
        for e in range(routes.used[r], routes.used[r + 1]):
            uses[routes.resource[e]] += times[r]
    return uses


@jit
def ways(pieces: Pieces, boxes: int, size: int) -> tuple[IntArray, IntArray]:
    """The routes of the pieces, numbered as in a :class:`Layout`: ``row`` and ``way``, those of piece p are
    ``way[row[p]:row[p + 1]]``."""
    origin, goal, rail = pieces.origin, pieces.goal, pieces.rail
    row, way = np.zeros(len(origin) + 1, np.int64), np.zeros(3 * len(origin), np.int64)
    box, place = np.arange(boxes * size) // size, np.arange(boxes * size) % size  # a division takes long
    inside = boxes * boxes * size
    top: Any = np.int64(0)
    for p in range(len(origin)):
        i, j, q = origin[p], goal[p], rail[p]
        b, c, g, h = box[i], box[j], place[i], place[j]
        if q == INSIDE:
            way[top] = inside + i * size + h
            top += 1
        elif q <= AROUND:
            c = AROUND - q
            way[top] = (b * boxes + c) * size + g
            way[top + 1] = inside + (c * size + g) * size + h
            way[top + 2] = (c * boxes + b) * size + h
            top += 3
        else:
            if g != q:
                way[top] = inside + i * size + q
                top += 1
            way[top] = (b * boxes + c) * size + q
            top += 1
            if h != q:
                way[top] = inside + (c * size + q) * size + h
                top += 1
        row[p + 1] = top
    return row, way[:top]


def placed(pieces: Pieces, layout: Layout, ahead: int) -> Placed:
    """The transfers of the pieces, placed piece after piece. Nothing goes to its rail more than ``ahead`` bytes of a
    rail before its turn."""
    boxes, size = layout.boxes, layout.size
    box = np.arange(boxes * size) // size
    between = (box[pieces.origin] * boxes + box[pieces.goal]) * size + np.maximum(pieces.rail, 0)
    begins = np.maximum(pieces.turn - ahead, 0) * layout.routes.slowest[between]
    begins[pieces.rail < 0] = 0
    row, way = ways(pieces, boxes, size)
    order, none = np.arange(len(pieces.bytes), dtype=np.int64), np.zeros(len(pieces.bytes), dtype=np.int64)
    return placed_along(order, pieces.bytes, begins, none, row, way, layout.routes, layout.resources)
