"""Which thread blocks make the moves of which pieces."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import InputError
from synth.exchange.mscclpp.plan import ALIGNED
from synth.exchange.transfers import Transfers

DEALINGS = ("time", "place", "load")


class Loop(NamedTuple):
    """A loop of about so many ``passes`` over parts of ``part_bytes`` bytes."""

    passes: int
    part_bytes: int

    def pace(self, chunks: int) -> int:
        """The bytes of a chunk that a pass takes, where a part has so many chunks."""
        return -(-self.part_bytes // (chunks * self.passes * ALIGNED)) * ALIGNED


class Dealing(NamedTuple):
    """How pieces are dealt to thread blocks: ``by`` as for :func:`groups_of`; at how many times the thread blocks of a
    GPU meet at most (:mod:`synth.exchange.mscclpp.meetings`); the ``loop`` that they run, in which they do not meet."""

    by: str = DEALINGS[0]
    meetings: int = 0
    loop: Loop | None = None

    def shorter(self) -> Iterator[Dealing]:
        """Those to try, one after the other, where a thread block has too many operations: itself, with even work, and
        so with half as many meetings, and half of these, down to one."""
        yield self
        meetings = self.meetings
        while True:
            yield Dealing("load", meetings, self.loop)
            if meetings < 2:
                return
            meetings //= 2


def groups_of(t: Transfers, groups: int, by: str = "time") -> IntArray:
    """The group of every piece, shape (pieces,). A group has one thread block on every GPU, which does one thing after
    the other; ``by``:

    ``time``: in the order in which they begin to move, each to the group that has been done with its own for longest,
    so that pieces that are under way at once are in different ones as far as that goes; none gets more than it must;
    ``load``: in the same order, each to the group whose busiest thread block then has the fewest starts and arrivals;
    ``place``: neighbours in the data together, none more than it must.

    Raises :class:`InputError` for another word.
    """
    if by not in DEALINGS:
        raise InputError(f"pieces are dealt by {' or '.join(DEALINGS)}, not by {by!r}")
    pieces = len(t.piece_part)
    if by == "place":
        return np.arange(pieces) * groups // max(pieces, 1)
    if by == "load":
        return _by_load(t, groups)
    begin, end = np.full(pieces, np.inf), np.zeros(pieces)
    np.minimum.at(begin, t.piece, t.start_s)
    np.maximum.at(end, t.piece, t.end_s)
    most = -(-pieces // groups)
    free = [(0.0, 0, group) for group in range(groups)]  # when its pieces have ended, how many it has
    found = np.zeros(pieces, dtype=np.int64)
    for piece in np.argsort(begin, kind="stable").tolist():
        until, count, group = heapq.heappop(free)
        found[piece] = group
        if count + 1 < most:
            heapq.heappush(free, (max(until, float(end[piece])), count + 1, group))
    return found


def _by_load(t: Transfers, groups: int) -> IntArray:
    """Pieces dealt so that thread blocks have about as much to do; none may pass a limit of the executor."""
    pieces = len(t.piece_part)
    work, begin = np.zeros((pieces, t.ranks), dtype=np.int64), np.full(pieces, np.inf)
    np.add.at(work, (t.piece, t.src), 1)
    np.add.at(work, (t.piece, t.dst), 1)
    np.minimum.at(begin, t.piece, t.start_s)
    load = np.zeros((groups, t.ranks), dtype=np.int64)
    found = np.zeros(pieces, dtype=np.int64)
    for piece in np.argsort(begin, kind="stable").tolist():
        then = load + work[piece]
        found[piece] = group = int(np.lexsort((then.sum(axis=1), then.max(axis=1)))[0])
        load[group] = then[group]
    return found


class Parts(NamedTuple):
    """Of every transfer the ``line`` (of channels) that it goes over, and which thread blocks send and receive it."""

    line: list[int]
    sender: list[int]
    receiver: list[int]


def in_one(t: Transfers, group: IntArray) -> Parts:
    """A thread block of every GPU does all that a group's transfers ask of it; ``group`` of every piece."""
    alone = group[t.piece].tolist()
    return Parts(alone, alone, alone)


def in_two(t: Transfers, group: IntArray) -> Parts | None:
    """For sums that are handed on, with a piece a group: one thread block adds up and sends on what is added, another
    takes in sums and hands them on; where a sum is finished, one does both. In a loop a thread block then never waits
    for a sum to come back before it adds the next slice. None where this changes nothing, or pieces share a group.
    ``group``: of every piece."""
    if t.collective != "allreduce" or len(np.unique(group)) < len(group) or t.adds.all():
        return None
    beyond = int(group.max(initial=0)) + 1
    handed = group[t.piece] + np.where(t.adds, 0, beyond)
    receives = set(zip(t.piece[~t.adds].tolist(), t.dst[~t.adds].tolist(), strict=True))
    sender = [
        line if (piece, src) in receives else int(group[piece])
        for line, piece, src in zip(handed.tolist(), t.piece.tolist(), t.src.tolist(), strict=True)
    ]
    return Parts(handed.tolist(), sender, handed.tolist())
