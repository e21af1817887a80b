"""Start times in cells: every transfer in the first gap that all links of its route have, found 64 cells at a time.

Time is cut into cells of equal length, and every resource (a link, or a group of links) has a bit for each: whether
it is occupied. The start of a transfer is the first cell from which on all that it occupies is free: the words of its
links, each moved by the latency before it, are put together by "or", and the first zero is the answer. Where a
transfer occupies several cells, a bit stands for all from it on. So millions of transfers find their place among all
gaps that there are, where lists of gaps (:mod:`synth_models.fabric.scheduling.reservations`) keep a few.

A cell is what all durations and latencies are whole multiples of, if the longest duration then has at most
:data:`MOST` cells; else a part of that, and every interval is rounded outwards to whole cells.
"""

from __future__ import annotations

import heapq
import math
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray, WordArray
from synth.kernels import jit
from synth.kernels.clock import now as now_s
from synth_models.fabric.scheduling.followers import NEVER
from synth_models.fabric.scheduling.reservations import Uses

BITS, MOST = 64, 64  # of a word; cells of a transfer
MANY = 300_000  # transfers, which lists of gaps place as well where all are long
SLOT = 1.05  # times the longest duration that a cell for a whole transfer may take
COARSE = 32  # cells of the longest duration where no cell suits all times
ROOM = 2**26  # words of all resources at most
DOUBLINGS = 6  # of the time that there are cells for
LOOK = 1000  # transfers between looks at the clock


class Cells(NamedTuple):
    """Uses in cells: their ``offset`` and how many each ``lasts``, shape (entries,); ``ticks`` of a cell."""

    ticks: int
    offset: IntArray
    lasts: IntArray

    @classmethod
    def of(cls, uses: Uses, rounded: bool = False) -> Cells | None:
        """In cells that suit these uses; None where one lasts too many times as long as another, or where many would
        have to be rounded. If these may be ``rounded``, and latencies are short beside what transfers take, a cell is
        as long as the longest transfer from its first link to the end of its last."""
        if not len(uses.duration):
            return None
        longest = int(uses.duration.max())
        ticks = math.gcd(*np.unique(uses.duration).tolist(), *np.unique(uses.offset).tolist())
        if longest > MOST * ticks:
            whole = int((uses.offset + uses.duration).max())
            if rounded and whole <= SLOT * longest:
                return cls(whole, np.zeros_like(uses.offset), np.ones_like(uses.offset))
            if len(uses.row) > MANY and not rounded:
                return None
            ticks = -(-longest // COARSE)
        offset = uses.offset // ticks
        lasts = -(-(uses.offset + uses.duration) // ticks) - offset
        return cls(ticks, offset, lasts) if int(lasts.max()) <= BITS else None


def placed_in_cells(
    uses: Uses, resources: int, followers: tuple[IntArray, IntArray, IntArray], priority: IntArray, missing: IntArray,
    seconds: float, rounded: bool = False,
) -> tuple[IntArray, bool] | None:  # fmt: skip
    """Start ticks, -1 for a transfer that never becomes ready, and whether that took no more than so many seconds; None
    where cells do not suit the times, or need too much room. The least ``priority`` goes first, of those that wait for
    nothing that is not placed.

    ``followers``: as :class:`synth_models.fabric.scheduling.list_scheduling.Followers`; ``missing``: how many each
    waits for, shape (transfers,). ``rounded``: as :meth:`Cells.of` has it.
    """
    cells = Cells.of(uses, rounded)
    if cells is None:
        return None
    until = now_s() + seconds
    busiest = int(np.bincount(uses.resource, cells.lasts, resources).max())
    words = (busiest + 2 * int((cells.offset + cells.lasts).max())) // BITS + 2
    for _ in range(DOUBLINGS):
        if words * resources > ROOM:
            return None
        busy = np.zeros((resources, words + 3), dtype=np.uint64)
        start, ended = _placed(uses, cells, followers, priority, missing.copy(), busy, until)
        if ended >= 0:
            return start, bool(ended)
        words *= 2
    return None


@jit
def _placed(
    uses: Uses,
    cells: Cells,
    followers: tuple[IntArray, IntArray, IntArray],
    priority: IntArray,
    waits: IntArray,
    busy: WordArray,
    until: float,
) -> tuple[IntArray, int]:
    """Start ticks, and 1; 0 where that took too long, -1 where the cells of ``busy`` do not suffice."""
    row, transfer, lag = followers
    full, one, none = ~np.uint64(0), np.uint64(1), np.uint64(0)
    start = np.full(len(priority), -1, dtype=np.int64)
    ready = np.zeros(len(priority), dtype=np.int64)
    begun = np.zeros(len(busy), dtype=np.int64)  # words of every resource, the first ones, that have no free cell
    horizon, looks = BITS * (busy.shape[1] - 3), 0
    heap: Any = [(priority[i], np.int64(i)) for i in range(len(priority)) if waits[i] == 0]
    heapq.heapify(heap)
    while len(heap):
        i = heapq.heappop(heap)[1]
        looks += 1
        if looks % LOOK == 1 and now_s() > until:
            return start, 0
        first, last = uses.row[i], uses.row[i + 1]
        at = max(ready[i], BITS * begun[uses.resource[first]] - cells.offset[first])
        word = full
        while word == full:
            word = none
            for k in range(first, last):
                if at + cells.offset[k] + cells.lasts[k] + BITS > horizon:
                    return start, -1
                word |= _occupied(busy, uses.resource[k], at + cells.offset[k], cells.lasts[k])
                if word == full:
                    break
            at += BITS
        at -= BITS
        while word & one:
            word >>= one
            at += 1
        start[i] = at * cells.ticks
        for k in range(first, last):
            for cell in range(at + cells.offset[k], at + cells.offset[k] + cells.lasts[k]):
                busy[uses.resource[k], cell >> 6] |= one << np.uint64(cell & 63)
        x = uses.resource[first]
        while busy[x, begun[x]] == full:
            begun[x] += 1
        for s in range(row[i], row[i + 1]):
            if lag[s] != NEVER:
                j = transfer[s]
                ready[j] = max(ready[j], -((-start[i] - max(lag[s], 0)) // cells.ticks))
                waits[j] -= 1
                if waits[j] == 0:
                    heapq.heappush(heap, (priority[j], j))
    return start, 1


@jit(inlined=True)
def _occupied(busy: WordArray, x: int, cell: int, count: int) -> Any:
    """A word whose bit i says whether some of ``count`` cells of resource x, from ``cell`` + i on, are occupied."""
    q, moved = cell >> 6, np.uint64(cell & 63)
    low, high = busy[x, q], busy[x, q + 1]
    if moved:
        rest = np.uint64(64) - moved
        low = (low >> moved) | (high << rest)
        high = (high >> moved) | (busy[x, q + 2] << rest)
    done = 1
    while done < count:
        more = min(done, count - done)
        step = np.uint64(more)
        low |= (low >> step) | (high << (np.uint64(64) - step))
        high |= high >> step
        done += more
    return low
