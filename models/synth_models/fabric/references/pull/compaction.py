"""Transfers whose order is known, pushed together: each as early as it can after those it needs, then from the end.

Serial schedule generation with free intervals filled, and double justification (Valls, Ballestin, Quintanilla 2005):
everything as late as possible from the end of the schedule, then as early as possible again. What a transfer needs is
read off a valid schedule: all that has brought its piece to its source by its start.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.graph.rows import rows_by
from synth.kernels import jit
from synth_models.fabric.references.pull.routing_state import (
    Routing,
    RoutingState,
    earliest_start,
    reserve_route,
)
from synth_models.fabric.references.pull.tree_search import Pieces, Timetable
from synth_models.fabric.scheduling.interval_reservations import new_intervals


def needs(routing: Routing, timetable: Timetable) -> tuple[IntArray, IntArray]:
    """For every transfer those of the same piece that have arrived at its source by its start, as rows. ``routing``
    forwards, ``timetable`` with forward times."""
    ranks = len(routing.ranks)
    into = timetable.piece * ranks + routing.target[timetable.route]
    row, which = rows_by(into, int(timetable.piece.max(initial=0) + 1) * ranks)
    key = timetable.piece * ranks + routing.source[timetable.route]
    return _needs(row, which, key, timetable.start, timetable.start + timetable.lag)


def needed_by(row: IntArray, needed: IntArray) -> tuple[IntArray, IntArray]:
    """Who needs each transfer, as rows."""
    count = len(row) - 1
    start, order = rows_by(needed, count)
    return start, np.repeat(np.arange(count), np.diff(row))[order]


def pushed(routing: Routing, pieces: Pieces, timetable: Timetable, passes: int = 1) -> Timetable:
    """The same transfers, never later than before: pushed together ``passes`` times, forwards and backwards."""
    if not len(timetable.piece):
        return timetable
    row, needed = needs(routing, timetable)
    back_row, back = needed_by(row, needed)
    table = routing.table(pieces.sizes)
    ahead, behind = routing.state(table), routing.reversed().state(table)
    kind = pieces.kind[timetable.piece]
    room = int(np.diff(routing.row)[timetable.route].sum()) * 4 + 1024
    best, now = timetable, timetable
    for _ in range(passes):
        start = _serial(ahead, routing.resources, room, np.argsort(now.start, kind="stable"), now.route, kind,
                        row, needed, now.lag)  # fmt: skip
        now = Timetable(now.piece, now.route, start, now.lag, int((start + now.lag).max()))
        if now.completion < best.completion:
            best = now
        late = now.reversed(now.completion)
        begin = _serial(behind, routing.resources, room, np.argsort(late.start, kind="stable"), late.route,
                        kind, back_row, back, late.lag)  # fmt: skip
        end = int((begin + late.lag).max())
        now = Timetable(late.piece, late.route, begin, late.lag, end).reversed(end)
        if now.completion < best.completion:
            best = now
    start = _serial(ahead, routing.resources, room, np.argsort(now.start, kind="stable"), now.route, kind,
                    row, needed, now.lag)  # fmt: skip
    now = Timetable(now.piece, now.route, start, now.lag, int((start + now.lag).max()))
    return now if now.completion < best.completion else best


@jit
def _needs(
    row: IntArray, which: IntArray, key: IntArray, start: IntArray, arrival: IntArray
) -> tuple[IntArray, IntArray]:
    """As :func:`needs`: ``which[row[k]:row[k + 1]]`` bring something to the rank and piece of key k."""
    count = len(key)
    found = np.zeros(count + 1, dtype=np.int64)
    for i in range(count):
        found[i + 1] = found[i]
        for k in range(row[key[i]], row[key[i] + 1]):
            if arrival[which[k]] <= start[i]:
                found[i + 1] += 1
    flat = np.zeros(found[count], dtype=np.int64)
    for i in range(count):
        at = found[i]
        for k in range(row[key[i]], row[key[i] + 1]):
            if arrival[which[k]] <= start[i]:
                flat[at] = which[k]
                at += 1
    return found, flat


@jit
def _serial(
    routing: RoutingState, resources: int, room: int, order: IntArray, route: IntArray, kind: IntArray, row: IntArray,
    needed: IntArray, lag: IntArray,
) -> IntArray:  # fmt: skip
    """Start of every transfer, placed in this order."""
    reserved = new_intervals(resources, room)
    start = np.zeros(len(order), dtype=np.int64)
    for i in order:
        t: Any = np.int64(0)  # a constant has a type of its own: all that takes it would be compiled twice
        for k in range(row[i], row[i + 1]):
            t = max(t, start[needed[k]] + lag[needed[k]])
        start[i] = earliest_start(routing, reserved, route[i], kind[i], t)
        reserve_route(routing, reserved, route[i], kind[i], start[i])
    return start
