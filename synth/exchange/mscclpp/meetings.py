"""When the thread blocks of a GPU meet, so that what one of them puts later does not go before what others put sooner.

Thread blocks of a GPU share its links in no order. A barrier between two puts of different thread blocks makes one:
what stands before it goes first. The puts of a GPU are cut into slices, the first of few and the last of more, by the
times at which they start; between two slices those thread blocks meet that put anything in either, and the order of
slices holds along the whole chain.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.exchange.mscclpp.plan import MAX_DEVICE_SYNCERS
from synth.exchange.transfers import Transfers

SOONER = 1.5  # first slices are smaller than last ones: what is put first is what others hand on
MOST = MAX_DEVICE_SYNCERS - 1  # barriers of a GPU for this; barrier 0 is for what ends in place


class Meeting(NamedTuple):
    """A barrier before all that starts at ``time_s`` or later: its number on the GPU, and how many come."""

    time_s: float
    number: int
    parties: int


def meetings(t: Transfers, group: IntArray, put: BoolArray, most: int) -> dict[tuple[int, int], list[Meeting]]:
    """The meetings of every thread block (group and rank), at most so many on a GPU. ``group``: of every piece, shape
    (pieces,); ``put``: the transfers that are puts, shape (transfers,)."""
    found: dict[tuple[int, int], list[Meeting]] = defaultdict(list)
    for rank in range(t.ranks):
        mine = np.flatnonzero(put & (t.src == rank))
        times, blocks = t.start_s[mine], group[t.piece[mine]]
        cuts = _cuts(times, min(most, MOST))
        part = np.searchsorted(cuts, times, side="right")  # the slice of every put
        for k, time_s in enumerate(cuts.tolist()):
            coming = np.unique(blocks[(part == k) | (part == k + 1)]).tolist()
            if len(coming) > 1:
                for one in coming:
                    found[one, rank].append(Meeting(time_s, k + 1, len(coming)))
    return found


def _cuts(times: FloatArray, most: int) -> FloatArray:
    """Times, ascending, at each of which a slice begins: all but the first slice, at most so many."""
    distinct: FloatArray
    distinct, count = np.unique(times, return_counts=True)
    if len(distinct) <= most + 1:
        return distinct[1:]
    before = np.cumsum(count)[:-1]  # puts before each time but the first
    wanted = (np.arange(1, most + 1) / (most + 1)) ** SOONER * len(times)
    chosen: FloatArray = distinct[1:][np.unique(np.minimum(np.searchsorted(before, wanted), len(before) - 1))]
    return chosen
