"""Which thread blocks make the moves of which pieces."""

from __future__ import annotations

import heapq

import numpy as np

from synth.arrays import IntArray
from synth.exchange.transfers import Transfers


def groups_of(t: Transfers, groups: int) -> IntArray:
    """The group of every piece, shape (pieces,). A group has one thread block on every GPU, which does one thing after
    the other: pieces that are under way at once had better be in different ones. So they are dealt in the order in
    which they begin to move, each to the group that has been done with its own for longest, and no group gets more
    pieces than it must."""
    pieces = len(t.piece_part)
    begin, end = np.full(pieces, np.inf), np.zeros(pieces)
    np.minimum.at(begin, t.piece, t.start_s)
    np.maximum.at(end, t.piece, t.end_s)
    most = -(-pieces // groups)
    free = [(0.0, 0, group) for group in range(groups)]  # when its pieces have ended, how many it has
    found = np.zeros(pieces, dtype=np.int64)
    for piece in np.lexsort((np.arange(pieces), begin)).tolist():
        until, count, group = heapq.heappop(free)
        found[piece] = group
        if count + 1 < most:
            heapq.heappush(free, (max(until, float(end[piece])), count + 1, group))
    return found
