"""Which thread blocks make the moves of which pieces."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import InputError
from synth.exchange.transfers import Transfers

DEALINGS = ("time", "place")


class Dealing(NamedTuple):
    """How pieces are dealt to thread blocks: ``by`` as for :func:`groups_of`, and at how many times the thread blocks
    of a GPU meet at most (:mod:`synth.exchange.mscclpp.meetings`)."""

    by: str = DEALINGS[0]
    meetings: int = 0


def groups_of(t: Transfers, groups: int, by: str = "time") -> IntArray:
    """The group of every piece, shape (pieces,). A group has one thread block on every GPU, which does one thing after
    the other. No group gets more pieces than it must; ``by``:

    ``time``: in the order in which they begin to move, each to the group that has been done with its own for longest,
    so that pieces that are under way at once are in different ones as far as that goes;
    ``place``: neighbours in the data together.

    Raises :class:`InputError` for another word.
    """
    if by not in DEALINGS:
        raise InputError(f"pieces are dealt by {' or '.join(DEALINGS)}, not by {by!r}")
    pieces = len(t.piece_part)
    if by == "place":
        return np.arange(pieces) * groups // max(pieces, 1)
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
