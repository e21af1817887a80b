"""The plan of a demand between equal boxes: balanced rails, exact stages between boxes, everything overlapped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth_models.fabric.references.demand_parts.decomposition import decomposed
from synth_models.fabric.references.demand_parts.layout import Layout, RouteTable
from synth_models.fabric.references.demand_parts.rails import on_rails
from synth_models.fabric.references.demand_parts.timeline import (
    Pieces,
    Placed,
    between_boxes,
    inside_boxes,
    placed,
)
from synth_models.fabric.solution import Schedule

CELLS = 32  # of the time on the rails, that no piece is longer than,
MOST_EXACT = 16  # boxes between which the decomposition is exact,
QUANTA = 1024  # and of how many quanta the longest row or column is between more
ROOM = 2  # reserved intervals a piece, to begin with
AHEAD = 8  # th of that time, and so many of the longest
WAITS = 4  # latencies, before its turn is the earliest that a piece goes to its rail, between more boxes
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
    stages = decomposed(_rounded(fullest))
    turns = int(stages.length.sum())
    between = between_boxes(parts, stages, cuts(turns, cells), boxes, size)
    rail = int(routes.slowest[size]) if boxes > 1 else 1
    nv = int(routes.slowest[layout.inside + 1]) if size > 1 else 1
    busiest = _busiest_inside(demand, boxes, size)
    until = max(turns, busiest * nv // rail)
    largest = max(until * rail // nv // cells, 1)
    within = inside_boxes(demand, boxes, size, largest, until)
    pieces = in_turn(between, within)
    ahead = turns if boxes <= MOST_EXACT else turns // AHEAD + WAITS * int(routes.latency.max()) // rail
    room = ROOM
    while True:
        transfers = placed(pieces, routes, layout.resources, boxes, size, ahead, room)
        if len(transfers.piece) or not len(pieces.bytes):
            break
        room *= 4
    return Plan(pieces, transfers, routes, int(transfers.end.max(initial=0)), layout.ticks_per_s)


def cuts(turns: int, cells: int) -> IntArray:
    """Where pieces end at the latest: evenly, and more and more closely at the beginning and at the end."""
    inner = [turns * k // cells for k in range(1, cells)]
    ends = [turns // cells >> k for k in range(1, FIRST_CELLS + 1)]
    found = sorted({cut for cut in (*inner, *ends, *(turns - end for end in ends)) if 0 < cut < turns})
    return np.array(found, dtype=np.int64)


@jit
def _busiest_inside(demand: IntArray, boxes: int, size: int) -> int:
    """The most bytes that a rank sends or receives within its box."""
    most = np.int64(0)
    for b in range(boxes):
        block = demand[b * size : (b + 1) * size, b * size : (b + 1) * size]
        for g in range(size):
            most = max(most, block[g].sum() - block[g, g], block[:, g].sum() - block[g, g])
    return int(most)


def in_turn(first: Pieces, second: Pieces) -> Pieces:
    """Pieces of both, in the order of their turns."""
    columns = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    order = np.argsort(columns[-1], kind="stable")
    return Pieces(*(column[order] for column in columns))


def _rounded(matrix: IntArray) -> IntArray:
    """The matrix; of many boxes every entry rounded up to whole quanta, so that stages are few. Nothing waits for the
    end of a stage that is empty before, so little of what is added costs time."""
    if len(matrix) <= MOST_EXACT:
        return matrix
    quantum = max(int(matrix.sum(axis=0).max()), int(matrix.sum(axis=1).max())) // QUANTA
    return matrix if quantum < 2 else -(-matrix // quantum) * quantum


def schedule_of(plan: Plan, block: IntArray) -> Schedule:
    """The plan's transfers; ``block``: the number of every pair's block, shape (ranks, ranks)."""
    routes, transfers = plan.routes, plan.transfers
    length = np.diff(routes.row)[transfers.route]
    start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    entry = np.arange(start[-1]) - np.repeat(start[:-1] - routes.row[transfers.route], length)
    return Schedule(
        plan.ticks_per_s,
        block[plan.pieces.origin, plan.pieces.goal],
        plan.pieces.bytes,
        transfers.start,
        transfers.piece,
        np.zeros(len(transfers.start), dtype=bool),
        start,
        routes.link[entry],
    )
