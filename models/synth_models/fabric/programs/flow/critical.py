"""An order that keeps the busiest links busy: at every moment the hop whose links have most left to carry starts.

On a switch between two rows of ports this is the rule of matchings that cover every fullest port (Birkhoff, von
Neumann; Gonzalez and Sahni: Open shop scheduling to minimize finish time, Journal of the ACM 23, 1976), greedy instead
of exact, and for any routes. Pieces of a part are alike, so what is looked through at every moment is parts.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.kernels import jit
from synth_models.fabric.programs.flow.pieces import Pieces
from synth_models.fabric.programs.flow.placing import Bookings

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Busiest:
    """The weight of a hop: the sum, over the links that its piece has yet to cross, of (left on the link / most left on
    any) to the ``power``, plus ``far`` times the hops left, plus a little chance. ``backwards``: time runs from the
    end, every piece from its goal to its origin."""

    power: float
    far: float = 0.0
    backwards: bool = False

    @property
    def name(self) -> str:
        """How a message calls it."""
        return f"busiest links first{', backwards' if self.backwards else ''} ({self.power:g}, {self.far:g})"


BUSIEST = (
    Busiest(16.0),
    Busiest(16.0, backwards=True),
    Busiest(4.0),
    Busiest(4.0, backwards=True),
    Busiest(64.0),
    Busiest(16.0, 0.3),
)


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
    part_start = np.concatenate([[0], np.cumsum(pieces.hops[first_piece])]).astype(np.int64)
    turned = np.arange(len(pieces.piece))
    offset = bookings.offset
    if rule.backwards:
        turned = transfer_of_piece[pieces.piece] + pieces.hops[pieces.piece] - 1 - pieces.hop
        offset = np.repeat(bookings.took, length) - bookings.offset - bookings.duration
    begins = np.concatenate([[0], np.cumsum(length[turned])]).astype(np.int64)
    at = np.repeat(moves.route_start[:-1][turned] - begins[:-1], length[turned]) + np.arange(begins[-1])
    start = _run(
        part_start,
        np.append(first_piece, len(pieces.part)).astype(np.int64),
        transfer_of_piece.astype(np.int64),
        begins,
        moves.link[at],
        machine.group,
        machine.links,
        len(machine.group_names),
        offset[at],
        bookings.duration[at],
        bookings.took[turned],
        rule.power,
        rule.far,
        np.random.default_rng(seed).random(int(part_start[-1])) * 1e-3,
    )[turned]  # turning a piece's hops twice leaves them as they were
    return -start - bookings.took if rule.backwards else start


@jit
def _run(
    part_start: IntArray,
    first_piece: IntArray,
    transfer_of_piece: IntArray,
    route_start: IntArray,
    link: IntArray,
    group: IntArray,
    links: int,
    groups: int,
    offset: IntArray,
    duration: IntArray,
    took: IntArray,
    power: float,
    far: float,
    chance: FloatArray,
) -> IntArray:
    """Start ticks. Row part_start[p] + h is hop h of part p; its next piece is ``sent`` pieces behind the first."""
    rows = part_start[-1]
    parts = len(part_start) - 1
    resources = links + groups
    sent = np.zeros(rows, dtype=np.int64)
    have = np.zeros(rows, dtype=np.int64)
    part_of = np.zeros(rows, dtype=np.int64)
    for p in range(parts):
        have[part_start[p]] = first_piece[p + 1] - first_piece[p]
        part_of[part_start[p] : part_start[p + 1]] = p
    # the rows that cross each resource
    across_start = np.zeros(resources + 1, dtype=np.int64)
    for r in range(rows):
        i = transfer_of_piece[first_piece[part_of[r]]] + r - part_start[part_of[r]]
        for k in range(route_start[i], route_start[i + 1]):
            across_start[link[k] + 1] += 1
            if group[link[k]] >= 0:
                across_start[links + group[link[k]] + 1] += 1
    across_start = np.cumsum(across_start)
    across = np.empty(across_start[-1], dtype=np.int64)
    at = across_start[:-1].copy()
    for r in range(rows):
        i = transfer_of_piece[first_piece[part_of[r]]] + r - part_start[part_of[r]]
        for k in range(route_start[i], route_start[i + 1]):
            across[at[link[k]]] = r
            at[link[k]] += 1
            if group[link[k]] >= 0:
                across[at[links + group[link[k]]]] = r
                at[links + group[link[k]]] += 1
    left = np.zeros(resources)
    latest = np.int64(0)
    for i in range(len(route_start) - 1):
        for k in range(route_start[i], route_start[i + 1]):
            latest = max(latest, offset[k])
            left[link[k]] += duration[k]
            if group[link[k]] >= 0:
                left[links + group[link[k]]] += duration[k]
    start = np.full(len(route_start) - 1, -1, dtype=np.int64)
    free = np.zeros(resources, dtype=np.int64)
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
            i = transfer_of_piece[first_piece[part_of[row]] + sent[row]] + row - part_start[part_of[row]]
            when = now
            total = far * (part_start[part_of[row] + 1] - row) + chance[row]
            for k in range(route_start[i], route_start[i + 1]):
                e = link[k]
                when = max(when, free[e] - offset[k])
                if group[e] >= 0:
                    when = max(when, free[links + group[e]] - offset[k])
            last = i + part_start[part_of[row] + 1] - row
            for k in range(route_start[i], route_start[last]):  # hops to come count too
                e = link[k]
                total += (left[e] / most) ** power
                if group[e] >= 0:
                    total += (left[links + group[e]] / most) ** power
            if when == now:
                chosen[kept] = row
                weight[kept] = -total
                kept += 1
            elif when <= now + latest:
                heapq.heappush(events, (when, resources + rows + row))
        for c in np.argsort(weight[:kept]):
            row = chosen[c]
            while have[row] > 0:
                i = transfer_of_piece[first_piece[part_of[row]] + sent[row]] + row - part_start[part_of[row]]
                fits = True
                for k in range(route_start[i], route_start[i + 1]):
                    e = link[k]
                    if free[e] - offset[k] > now or (group[e] >= 0 and free[links + group[e]] - offset[k] > now):
                        fits = False
                        break
                if not fits:
                    break
                start[i] = now
                have[row] -= 1
                sent[row] += 1
                for k in range(route_start[i], route_start[i + 1]):
                    e = link[k]
                    free[e] = now + offset[k] + duration[k]
                    left[e] -= duration[k]
                    heapq.heappush(events, (now + duration[k], np.int64(e)))
                    if group[e] >= 0:
                        g = links + group[e]
                        free[g] = max(free[g], free[e])
                        left[g] -= duration[k]
                        heapq.heappush(events, (now + duration[k], np.int64(g)))
                if row + 1 < part_start[part_of[row] + 1]:
                    heapq.heappush(events, (now + took[i], resources + row + 1))
    return start
