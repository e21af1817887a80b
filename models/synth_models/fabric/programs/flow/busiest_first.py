"""An order that keeps the busiest links busy: at every moment the hop whose links have most left to carry starts.

On a switch between two rows of ports this is the rule of matchings that cover every fullest port (Birkhoff, von
Neumann; Gonzalez and Sahni: Open shop scheduling to minimize finish time, Journal of the ACM 23, 1976), greedy instead
of exact, and for any routes. Pieces of a part are alike, so what is looked through at every moment is parts.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.programs.flow.orders import Busiest
from synth_models.fabric.programs.flow.pieces import Pieces
from synth_models.fabric.scheduling.insertion import Bookings
from synth_models.fabric.scheduling.reservations import Uses, earliest_behind, new_next_free, reserve_behind, uses_of


def looks(pieces: Pieces) -> float:
    """About how many links are looked at: for every transfer and each of its links, the hops that cross that link."""
    plan = pieces.plan
    crossing = np.bincount(plan.routes.link).astype(float)
    each = np.add.reduceat(crossing[plan.routes.link], plan.routes.start[:-1])
    return float(each[plan.path[pieces.part]].sum()) * 3


def critical_order(pieces: Pieces, bookings: Bookings, rule: Busiest, seed: int) -> IntArray:
    """Start ticks under the rule: an order, since links may be a little late, never early."""
    moves, machine = bookings.transfers, bookings.instance.machine
    length = np.diff(moves.route_start)
    first_piece = np.flatnonzero(pieces.turn == 0)
    transfer_of_piece = np.cumsum(pieces.hops) - pieces.hops
    part_start = starts(pieces.hops[first_piece])
    order = np.arange(len(pieces.piece))
    offset = bookings.offset
    if rule.backwards:
        order = transfer_of_piece[pieces.piece] + pieces.hops[pieces.piece] - 1 - pieces.hop
        offset = np.repeat(bookings.took, length) - bookings.offset - bookings.duration
    begins = starts(length[order])
    at = np.repeat(moves.route_start[:-1][order] - begins[:-1], length[order]) + np.arange(begins[-1])
    hops = Hops(
        part_start,
        np.append(first_piece, len(pieces.part)).astype(np.int64),
        transfer_of_piece.astype(np.int64),
        np.repeat(np.arange(len(first_piece)), np.diff(part_start)),
    )
    start = _run(
        hops,
        uses_of(begins, moves.link[at], machine.group, offset[at], bookings.duration[at], False),
        machine.links + len(machine.group_names),
        bookings.took[order],
        rule.power,
        rule.far,
        np.random.default_rng(seed).random(int(part_start[-1])) * 1e-3,
    )[order]  # reversing a piece's hops twice leaves them as they were
    return -start - bookings.took if rule.backwards else start


class Hops(NamedTuple):
    """Hops of parts, whose pieces are alike: row ``part_start[p] + h`` is hop h of part p, ``part`` the part of every
    row. The pieces of p begin with ``first_piece[p]``, the transfers of a piece with ``transfer_of_piece``.
    Shapes: (parts + 1,), (parts + 1,), (pieces,), (rows,)."""

    part_start: IntArray
    first_piece: IntArray
    transfer_of_piece: IntArray
    part: IntArray


@jit
def _transfer(hops: Hops, row: int, sent: int) -> int:
    """The transfer that is next in a row of which so many pieces have been sent."""
    p = hops.part[row]
    return int(hops.transfer_of_piece[hops.first_piece[p] + sent] + row - hops.part_start[p])


@jit
def _rows_across(hops: Hops, uses: Uses, resources: int) -> tuple[IntArray, IntArray]:
    """The rows that occupy each resource, in ``start[x]:start[x + 1]``."""
    rows = len(hops.part)
    start = np.zeros(resources + 1, dtype=np.int64)
    for row in range(rows):
        i = _transfer(hops, row, 0)
        for k in range(uses.row[i], uses.row[i + 1]):
            start[uses.resource[k] + 1] += 1
    start = np.cumsum(start)
    across = np.empty(start[-1], dtype=np.int64)
    at = start[:-1].copy()
    for row in range(rows):
        i = _transfer(hops, row, 0)
        for k in range(uses.row[i], uses.row[i + 1]):
            x = uses.resource[k]
            across[at[x]] = row
            at[x] += 1
    return start, across


@jit
def _load(uses: Uses, first: int, last: int, left: FloatArray, most: float, power: float, total: float) -> float:
    """``total`` and (left / most) ** power of all that the transfers from ``first`` to before ``last`` occupy."""
    for k in range(uses.row[first], uses.row[last]):
        total += (left[uses.resource[k]] / most) ** power
    return total


@jit
def _run(
    hops: Hops, uses: Uses, resources: int, took: IntArray, power: float, far: float, chance: FloatArray
) -> IntArray:
    """Start ticks."""
    rows = len(hops.part)
    part_start, part = hops.part_start, hops.part
    sent = np.zeros(rows, dtype=np.int64)
    have = np.zeros(rows, dtype=np.int64)
    for p in range(len(part_start) - 1):
        have[part_start[p]] = hops.first_piece[p + 1] - hops.first_piece[p]
    across_start, across = _rows_across(hops, uses, resources)
    left = np.zeros(resources)
    latest = np.int64(0)
    for k in range(uses.row[-1]):
        latest = max(latest, uses.offset[k])
        left[uses.resource[k]] += uses.duration[k]
    start = np.full(len(took), -1, dtype=np.int64)
    reserved = new_next_free(resources)
    # events: a resource is free; behind them, a row has one piece more; behind those, a row looks again
    events: Any = [(np.int64(0), np.int64(resources + rows + r)) for r in range(rows) if have[r] > 0]
    chosen = np.empty(rows, dtype=np.int64)
    weight = np.empty(rows)
    seen = np.full(rows, -1, dtype=np.int64)
    while len(events):
        now = events[0][0]
        count = 0
        while len(events) and events[0][0] == now:
            code = heapq.heappop(events)[1]
            begin, end, single = np.int64(0), np.int64(1), np.int64(-1)
            if code < resources:
                begin, end = across_start[code], across_start[code + 1]
            elif code < resources + rows:
                single = np.int64(code - resources)
                have[single] += 1
            else:
                single = np.int64(code - resources - rows)
            for q in range(begin, end):
                row = single if single >= 0 else across[q]
                if have[row] > 0 and seen[row] != now:
                    seen[row] = now
                    chosen[count] = row
                    count += 1
        if count == 0:
            continue
        most = max(left.max(), 1.0)
        kept = 0
        for c in range(count):
            row = chosen[c]
            i = _transfer(hops, row, sent[row])
            when, _ = earliest_behind(reserved, uses, i, now)
            if when == now:
                to_come = part_start[part[row] + 1] - row  # hops to come count too
                chosen[kept] = row
                weight[kept] = -_load(uses, i, i + to_come, left, most, power, far * to_come + chance[row])
                kept += 1
            elif when <= now + latest:
                heapq.heappush(events, (when, resources + rows + row))
        for c in np.argsort(weight[:kept]):
            row = chosen[c]
            while have[row] > 0:
                i = _transfer(hops, row, sent[row])
                if earliest_behind(reserved, uses, i, now)[0] > now:
                    break
                start[i] = now
                have[row] -= 1
                sent[row] += 1
                reserve_behind(reserved, uses, i, now)
                for k in range(uses.row[i], uses.row[i + 1]):
                    left[uses.resource[k]] -= uses.duration[k]
                    heapq.heappush(events, (now + uses.duration[k], uses.resource[k]))
                if row + 1 < part_start[part[row] + 1]:
                    heapq.heappush(events, (now + took[i], resources + row + 1))
    return start
