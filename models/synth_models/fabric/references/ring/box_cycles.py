"""Cycles through boxes: every box is visited once a cycle, entered at the rank of one NIC and left at that of another.

How NCCL's rings use a machine of many boxes: a cycle per NIC, which a box is left over once. From each box to the next
as many pairs of ranks are taken as no two of them share a NIC (or any other link that is as slow); a cycle takes one
pair after every box, so that it enters no box at the rank that it leaves it at. Which pair goes to which cycle is an
assignment per box, the last of which also closes the cycles. Inside a box a cycle is a Hamiltonian path from where it
enters to where it leaves.

With B boxes of at least three ranks, a NIC a rank, and switches that no more than the NICs hold up, these are as many
cycles at the NICs' bandwidth as a box has NICs, which is most: every cycle leaves every box.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from synth.arrays import SAME, BoolArray, FloatArray, IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.references.ring.tuned import ATTEMPTS
from synth_models.fabric.routes.near_boxes import around
from synth_models.fabric.routes.search import Route, Routes


class Crossings(NamedTuple):
    """Pairs of ranks over which a box is left for the next, shape (pairs,) each: none shares what is slowest."""

    leaves: IntArray
    enters: IntArray


class Stay(NamedTuple):
    """What a cycle does in a box: the number of the box, the rank that it enters at and the one that it leaves at."""

    box: int
    enters: int
    leaves: int


def stays(instance: FabricInstance, size: int, most: int, rng: np.random.Generator) -> list[list[Stay]]:
    """For every cycle the boxes in its order, at most ``most`` cycles for pieces of ``size`` bytes; none where there
    are no boxes of several ranks, or where not all cycles can be closed."""
    boxes = instance.boxes
    if len(boxes) < 2 or max(map(len, boxes)) < 2:
        return []
    routes = Routes.of(instance, size)
    order = around(_between(routes, boxes)).tolist()
    crossings = [_crossings(routes, boxes[b], boxes[after], most) for b, after in pairwise([*order, order[0]])]
    count = min(len(pairs.leaves) for pairs in crossings)
    crossings = [Crossings(pairs.leaves[:count], pairs.enters[:count]) for pairs in crossings]
    single = np.array([len(boxes[b]) == 1 for b in order])
    for _ in range(ATTEMPTS if count else 0):
        taken = _dealt_out(crossings, single, rng)
        if taken is not None:
            return [
                [
                    Stay(
                        b, int(crossings[k - 1].enters[taken[k - 1, cycle]]), int(crossings[k].leaves[taken[k, cycle]])
                    )
                    for k, b in enumerate(order)
                ]
                for cycle in range(count)
            ]
    return []


def _between(routes: Routes, boxes: Sequence[Sequence[int]]) -> FloatArray:
    """Seconds of the quickest direct route from any rank of every box to any of every other, shape (boxes, boxes)."""
    members = np.array([rank for box in boxes for rank in box])
    first = np.cumsum([0, *map(len, boxes[:-1])])
    nearest = [np.min([routes.direct_seconds(rank)[members] for rank in box], axis=0) for box in boxes]
    found = np.minimum.reduceat(np.array(nearest), first, axis=1)
    np.fill_diagonal(found, np.inf)
    return found


def _crossings(routes: Routes, box: Sequence[int], after: Sequence[int], most: int) -> Crossings:
    """Pairs by one of the quickest direct routes, each the one whose links then have least to do, as long as no link
    has more to do than the slowest link of one pair."""
    machine, nothing = routes.machine, np.zeros(0, dtype=np.int64)
    seconds = np.array([routes.direct_seconds(u)[list(after)] for u in box])
    if not np.isfinite(seconds).any():
        return Crossings(nothing, nothing)
    near = [(box[i], after[k]) for i, k in np.argwhere(seconds <= seconds.min() * (1 + SAME)).tolist()]
    quickest = [(u, v, route) for u, v in near for route in routes.equal(u, v)]
    pairs = np.array([(u, v) for u, v, _ in quickest])
    table = _resources(machine, [route for _, _, route in quickest])
    each = np.zeros(machine.links + len(machine.group_names) + 1)  # seconds a byte of links, groups, and of nothing
    each[: machine.links] = 1 / machine.network.bandwidth
    grouped = machine.group >= 0
    np.maximum.at(each, machine.links + machine.group[grouped], each[: machine.links][grouped])
    slowest = each[table].max(axis=1).min()
    busy, used = np.zeros_like(each), np.zeros(machine.nodes)
    found: list[tuple[int, int]] = []
    while len(found) < most:
        busiest = (busy + each)[table].max(axis=1)
        best = np.lexsort((used[pairs].sum(axis=1), used[pairs].max(axis=1), busiest))[0]
        if busiest[best] > slowest * (1 + SAME):
            break
        found.append((int(pairs[best, 0]), int(pairs[best, 1])))
        used[pairs[best]] += 1
        taken = np.unique(table[best])
        busy[taken] += each[taken]
    return Crossings(*np.array(found, dtype=np.int64).T)


def _resources(machine: Machine, routes: Sequence[Route]) -> IntArray:
    """The links of every route and, numbered after all links, their groups; a last number, of nothing, fills the rows
    up: shape (routes, longest)."""
    nothing = machine.links + len(machine.group_names)
    rows = [
        [*route, *{machine.links + int(machine.group[e]) for e in route if machine.group[e] >= 0}] for route in routes
    ]
    table = np.full((len(rows), max(map(len, rows))), nothing, dtype=np.int64)
    for k, row in enumerate(rows):
        table[k, : len(row)] = row
    return table


def _dealt_out(crossings: Sequence[Crossings], single: BoolArray, rng: np.random.Generator) -> IntArray | None:
    """Which pair of every crossing each cycle takes, shape (crossings, cycles); None where some cycle does not close.
    ``single``: boxes of one rank, which are entered and left there."""
    from scipy.optimize import linear_sum_assignment  # half a second that only machines of boxes need

    count = len(crossings[0].leaves)
    taken = np.zeros((len(crossings), count), dtype=np.int64)
    taken[0] = np.arange(count)
    for k in range(1, len(crossings)):
        came = crossings[k - 1].enters[taken[k - 1]]
        barred = (came[:, None] == crossings[k].leaves) & ~single[k]
        if k == len(crossings) - 1:
            barred |= (crossings[0].leaves[taken[0]][:, None] == crossings[k].enters) & ~single[0]
        rows, columns = linear_sum_assignment(barred + rng.random(barred.shape) / (2 * count))
        if barred[rows, columns].any():
            return None
        taken[k] = columns
    return taken
