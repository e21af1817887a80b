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
from synth_models.fabric.references.demand_parts.decomposition import Stages
from synth_models.fabric.references.demand_parts.layout import RouteTable
from synth_models.fabric.references.demand_parts.rails import Parts
from synth_models.fabric.scheduling.reservations import Intervals, Uses, earliest, new_intervals, reserve

INSIDE = -1  # instead of a rail: the piece stays in its box
AROUND = -2  # and less, -2 - c: it goes from rank to rank of its box over box c


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
                        taken = min(left, stages.length[s] - gone)
                        cut = np.searchsorted(cuts, turn, side="right")
                        if cut < len(cuts):
                            taken = min(taken, cuts[cut] - turn)
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


@jit
def scratch_uses(routes: RouteTable) -> Uses:
    """What one transfer occupies, to be filled in."""
    longest = 0
    for r in range(len(routes.latency)):
        longest = max(longest, routes.used[r + 1] - routes.used[r])
    return Uses(
        np.zeros(2, np.int64), np.zeros(longest, np.int64), np.zeros(longest, np.int64), np.zeros(longest, np.int64)
    )


@jit(inlined=True)
def place_one(reserved: Intervals, uses: Uses, routes: RouteTable, r: int, amount: int, now: int) -> tuple[int, int]:
    """Reserve route r for so many bytes as early as it is free from ``now`` on; start and arrival."""
    first = routes.used[r]
    length = routes.used[r + 1] - first
    for k in range(length):
        uses.resource[k], uses.offset[k] = routes.resource[first + k], routes.offset[first + k]
        uses.duration[k] = routes.per_byte[first + k] * amount
    uses.row[1] = length
    start = earliest(reserved, uses, 0, now)
    reserve(reserved, uses, 0, start)
    return start, start + routes.latency[r] + routes.slowest[r] * amount


@jit
def placed(pieces: Pieces, routes: RouteTable, resources: int, boxes: int, size: int, ahead: int, room: int) -> Placed:
    """The transfers of the pieces, placed piece after piece. Nothing goes to its rail more than ``ahead`` bytes of a
    rail before its turn. ``room``: for so many reserved intervals a piece; no transfers where it is too small."""
    most = 3 * len(pieces.bytes)
    found = Placed(
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    )
    uses = scratch_uses(routes)
    reserved = new_intervals(resources, room * len(pieces.bytes) + 1024)
    inside = boxes * boxes * size
    way = np.zeros(3, dtype=np.int64)
    top: Any = np.int64(0)
    for p in range(len(pieces.bytes)):
        i, j, q = pieces.origin[p], pieces.goal[p], pieces.rail[p]
        hops = 0
        if q == INSIDE:
            way[0] = inside + i * size + j % size
            hops = 1
        elif q <= AROUND:
            b, c = i // size, AROUND - q
            way[0] = (b * boxes + c) * size + i % size
            way[1] = inside + (c * size + i % size) * size + j % size
            way[2] = (c * boxes + b) * size + j % size
            hops = 3
        else:
            b, c = i // size, j // size
            if i % size != q:
                way[hops] = inside + i * size + q
                hops += 1
            way[hops] = (b * boxes + c) * size + q
            hops += 1
            if j % size != q:
                way[hops] = inside + (c * size + q) * size + j % size
                hops += 1
        now: Any = np.int64(0)
        if q >= 0:
            now = max(now, (pieces.turn[p] - ahead) * routes.slowest[(i // size * boxes + j // size) * size + q])
        for hop in range(hops):
            found.piece[top], found.route[top] = p, way[hop]
            found.start[top], now = place_one(reserved, uses, routes, way[hop], pieces.bytes[p], now)
            found.end[top] = now
            top += 1
        if reserved.top[1]:
            top = np.int64(0)
            break
    return Placed(found.piece[:top], found.route[:top], found.start[:top], found.end[:top])
