"""Method ``fast`` (reference): balancing, then stages of a decomposition, as FAST has it.

FAST ("An efficient scheduler for all-to-all GPU communication", 2025): what a box sends to another is first balanced
over its NICs inside the box; then a Birkhoff–von Neumann decomposition of the demand between boxes is sent stage by
stage, each when the one before has ended; what a stage has brought is handed on inside the boxes during the next.
The stages, and which bytes take which rail, are those of method ``plan``, which begins nothing later than it can.
Complexity: a transfer for each hop of each part of a block in each stage.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.kernels import jit
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.demands.balanced_plan import Plan, in_turn, schedule_of
from synth_models.fabric.plans.demands.decomposition import decomposed
from synth_models.fabric.plans.demands.layout import Layout, RouteTable
from synth_models.fabric.plans.demands.matrix import demand_of
from synth_models.fabric.plans.demands.rails import on_rails
from synth_models.fabric.plans.demands.timeline import (
    INSIDE,
    Pieces,
    Placed,
    between_boxes,
    inside_boxes,
    place_one,
    uses_of,
    ways,
)
from synth_models.fabric.plans.out_trees import empty, refusal
from synth_models.fabric.scheduling.interval_reservations import intervals_of

KNOWN = ("alltoall", "demand")


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``fast``."""
    refused = refusal(instance, KNOWN, "fast")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    try:
        layout = Layout.of(instance)
        demand, block = demand_of(instance, layout.node)
    except UnsupportedError as error:
        return Outcome("unsupported", message=str(error))
    boxes, size = layout.boxes, layout.size
    parts, fullest = on_rails(demand, boxes, size)
    stages = decomposed(fullest)
    between = between_boxes(parts, stages, np.zeros(0, dtype=np.int64), boxes, size)
    within = inside_boxes(demand, boxes, size, int(demand.max()), 0)
    pieces = in_turn(within, between)
    begin = np.cumsum(stages.length) - stages.length
    stage = np.searchsorted(begin, pieces.turn, side="right") - 1
    stage[pieces.rail == INSIDE] = -1
    transfers = in_phases(pieces, stage, layout.routes, layout.resources, boxes, size)
    plan = Plan(pieces, transfers, layout.routes, int(transfers.end.max(initial=0)), layout.ticks_per_s)
    return Outcome("finished", schedule_of(plan, block), message=f"balanced, then {len(stages.length)} stages")


@jit
def in_phases(pieces: Pieces, stage: IntArray, routes: RouteTable, resources: int, boxes: int, size: int) -> Placed:
    """Transfers of pieces, which are in the order of their ``stage`` (-1: inside a box), phase after phase."""
    count = len(pieces.bytes)
    most = 3 * count
    found = Placed(
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    )
    reserved = intervals_of(uses_of(ways(pieces, boxes, size)[1], routes, resources))
    inside = boxes * boxes * size
    top: Any = np.int64(0)
    balanced: Any = np.int64(0)
    for p in range(count):
        i, j, q = pieces.origin[p], pieces.goal[p], pieces.rail[p]
        if q == INSIDE or i % size != q:
            r = inside + i * size + (j % size if q == INSIDE else q)
            start, end = place_one(reserved, routes, r, pieces.bytes[p], 0)
            found.piece[top], found.route[top], found.start[top], found.end[top] = p, r, start, end
            top += 1
            if q != INSIDE:
                balanced = max(balanced, end)
    first, begins, ends = 0, balanced, balanced
    while first < count:
        last = first
        while last < count and stage[last] == stage[first]:
            p = last
            last += 1
            if pieces.rail[p] != INSIDE:
                r = (pieces.origin[p] // size * boxes + pieces.goal[p] // size) * size + pieces.rail[p]
                start, end = place_one(reserved, routes, r, pieces.bytes[p], begins)
                found.piece[top], found.route[top], found.start[top], found.end[top] = p, r, start, end
                top += 1
                ends = max(ends, end)
        for p in range(first, last):
            q, j = pieces.rail[p], pieces.goal[p]
            if q != INSIDE and j % size != q:
                r = inside + (j // size * size + q) * size + j % size
                start, end = place_one(reserved, routes, r, pieces.bytes[p], ends)
                found.piece[top], found.route[top], found.start[top], found.end[top] = p, r, start, end
                top += 1
        first, begins = last, ends
    return Placed(found.piece[:top], found.route[:top], found.start[:top], found.end[:top])
