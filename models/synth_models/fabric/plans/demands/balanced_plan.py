"""The plan of a demand between equal boxes: balanced rails, exact stages between boxes, everything overlapped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth_models.fabric.plans.demands.decomposition import decomposed
from synth_models.fabric.plans.demands.layout import Layout, RouteTable
from synth_models.fabric.plans.demands.rails import on_rails
from synth_models.fabric.plans.demands.timeline import (
    Pieces,
    Placed,
    around,
    between_boxes,
    inside_boxes,
    placed,
)
from synth_models.fabric.problem.rows import picked
from synth_models.fabric.solution import Schedule

CELLS = 32  # of the time on the rails, that no piece is longer than,
MOST_EXACT = 16  # boxes between which the decomposition is exact,
QUANTA = 1024  # and of how many quanta the longest row or column is between more
AHEAD = 8  # th of that time, and so many of the longest
WAITS = 4  # latencies, before its turn is the earliest that a piece goes to its rail, between more boxes
HOT = 3  # th of the longest time inside a box, from which on a pair there may also go over other boxes,
AROUND_CELLS = 64  # in so many pieces; what stays is then cut
FINER = 4  # times as finely
DIGIT = 11  # bits by which turns are sorted at a time
FIRST_CELLS = 4  # halvings of it at the beginning and at the end


class Plan(NamedTuple):
    """Pieces, their transfers over the ``routes``, and the tick, of so many a second, at which the last has arrived."""

    pieces: Pieces
    transfers: Placed
    routes: RouteTable
    ticks: int
    ticks_per_s: int


def balanced_plan(layout: Layout, demand: IntArray, cells: int = CELLS) -> Plan:
    """The plan of a demand, bytes from rank to rank in the order of the layout, shape (ranks, ranks)."""
    boxes, size, routes = layout.boxes, layout.size, layout.routes
    parts, fullest = on_rails(demand, boxes, size)
    stages = decomposed(rounded(fullest))
    turns = int(stages.length.sum())
    between = between_boxes(parts, stages, cuts(turns, cells), boxes, size)
    rail, nv = _paces(layout)
    moved = moved_around(demand, boxes, size, rail, nv, _longer_around(layout))
    until = max(turns, turns_inside(layout, demand - moved))
    largest = max(until * rail // nv // (cells * FINER if moved.any() else cells), 1)
    within = inside_boxes(demand - moved, boxes, size, largest, until)
    pieces = in_turn(between, within)
    if moved.any():
        pieces = in_turn(pieces, around(moved, boxes, size, AROUND_CELLS, until))
    ahead = turns if boxes <= MOST_EXACT else turns // AHEAD + WAITS * int(routes.latency.max()) // rail
    transfers = placed(pieces, layout, ahead)
    return Plan(pieces, transfers, routes, int(transfers.end.max(initial=0)), layout.ticks_per_s)


def cuts(turns: int, cells: int) -> IntArray:
    """Where pieces end at the latest: evenly, and more and more closely at the beginning and at the end."""
    inner = [turns * k // cells for k in range(1, cells)]
    ends = [turns // cells >> k for k in range(1, FIRST_CELLS + 1)]
    found = sorted({cut for cut in (*inner, *ends, *(turns - end for end in ends)) if 0 < cut < turns})
    return np.array(found, dtype=np.int64)


def within_boxes(layout: Layout, demand: IntArray, until: int, cells: int) -> Pieces:
    """What stays in its box, in pieces that take at most this share of the time, their turns until ``until`` bytes of a
    rail."""
    rail, nv = _paces(layout)
    return inside_boxes(demand, layout.boxes, layout.size, max(until * rail // nv // cells, 1), until)


def turns_inside(layout: Layout, demand: IntArray) -> int:
    """Bytes that a rail carries while the busiest rank is busy inside its box."""
    rail, nv = _paces(layout)
    return int(_busiest_inside(demand, layout.boxes, layout.size)) * nv // rail


def _paces(layout: Layout) -> tuple[int, int]:
    """Ticks that a byte takes over a rail, and inside a box; 1 where there is none."""
    slowest = layout.routes.slowest
    rail = int(slowest[layout.size]) if layout.boxes > 1 else 1
    return rail, int(slowest[layout.inside + 1]) if layout.size > 1 else 1


@jit
def _busiest_inside(demand: IntArray, boxes: int, size: int) -> int:
    """The most bytes that a rank sends or receives within its box."""
    most = np.int64(0)
    for b in range(boxes):
        block = demand[b * size : (b + 1) * size, b * size : (b + 1) * size]
        for g in range(size):
            most = max(most, block[g].sum() - block[g, g], block[:, g].sum() - block[g, g])
    return int(most)


def _longer_around(layout: Layout) -> int:
    """By how many ticks of latency the way around over another box is longer than the one inside: by two rails."""
    return 2 * int(layout.routes.latency[layout.size]) if layout.boxes > 1 else 0


@jit
def moved_around(demand: IntArray, boxes: int, size: int, rail: int, nv: int, longer: int) -> IntArray:
    """What of the largest blocks inside boxes goes out over a rail and back over another, while rails are idle: so much
    that the ranks' links inside and outside end together. ``rail``, ``nv``: ticks that a byte takes; ``longer``: by so
    many the way around begins to arrive later."""
    moved = np.zeros(demand.shape, dtype=np.int64)
    if boxes < 2 or size < 2:
        return moved
    ranks = boxes * size
    inside = np.zeros((2, ranks), dtype=np.int64)
    outside = np.zeros((2, boxes), dtype=np.int64)
    for i in range(ranks):
        for j in range(ranks):
            if i // size != j // size:
                outside[0, i // size] += demand[i, j]
                outside[1, j // size] += demand[i, j]
            elif i != j:
                inside[0, i] += demand[i, j]
                inside[1, j] += demand[i, j]
    longest = max(inside[0].max(), inside[1].max())
    rails = np.zeros((2, ranks), dtype=np.int64)
    for i in range(ranks):
        rails[0, i], rails[1, i] = outside[0, i // size] // size, outside[1, i // size] // size
    if max(rails[0].max(), rails[1].max()) * rail >= longest * nv:
        return moved
    for i in range(ranks):
        for j in range(i // size * size, (i // size + 1) * size):
            if i == j or demand[i, j] * HOT < longest:
                continue
            within, beside = max(inside[0, i], inside[1, j]), max(rails[0, i], rails[1, j])
            amount = int((float(within) * nv - float(beside) * rail - longer) / (nv + rail))
            amount = min(max(amount, 0), demand[i, j])
            moved[i, j] = amount
            inside[0, i] -= amount
            inside[1, j] -= amount
            rails[0, i] += amount
            rails[1, j] += amount
    return moved


def in_turn(first: Pieces, second: Pieces) -> Pieces:
    """Pieces of both, in the order of their turns."""
    columns = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    order = _in_order(columns[-1])
    return Pieces(*(column[order] for column in columns))


@jit
def _in_order(turn: IntArray) -> IntArray:
    """As a stable argsort of numbers that are not negative, in a quarter of the time: digit by digit from the last."""
    count, most = len(turn), np.int64(0)
    for n in range(count):
        most = max(most, turn[n])
    order, spare = np.arange(count), np.empty(count, np.int64)
    place = np.zeros((1 << DIGIT) + 1, np.int64)
    shift, mask = 0, (1 << DIGIT) - 1
    while most >> shift > 0:
        place[:] = 0
        for n in range(count):
            place[(turn[n] >> shift & mask) + 1] += 1
        for d in range(mask):
            place[d + 1] += place[d]
        for n in range(count):
            d = turn[order[n]] >> shift & mask
            spare[place[d]] = order[n]
            place[d] += 1
        order, spare = spare, order
        shift += DIGIT
    return order


def rounded(matrix: IntArray) -> IntArray:
    """The matrix; of many boxes every entry rounded up to whole quanta, so that stages are few. Nothing waits for the
    end of a stage that is empty before, so little of what is added costs time."""
    if len(matrix) <= MOST_EXACT:
        return matrix
    quantum = max(int(matrix.sum(axis=0).max()), int(matrix.sum(axis=1).max())) // QUANTA
    return matrix if quantum < 2 else -(-matrix // quantum) * quantum


def schedule_of(plan: Plan, block: IntArray) -> Schedule:
    """The plan's transfers; ``block``: the number of every pair's block, shape (ranks, ranks)."""
    routes, transfers = plan.routes, plan.transfers
    return Schedule(
        plan.ticks_per_s,
        block[plan.pieces.origin, plan.pieces.goal],
        plan.pieces.bytes,
        transfers.start,
        transfers.piece,
        np.zeros(len(transfers.start), dtype=bool),
        *picked((routes.row, routes.link), transfers.route),
    )
