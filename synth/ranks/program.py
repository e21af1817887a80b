"""What every rank does: its memory in words, its streams of operations, and the messages between ranks.

A word is eight bytes. A stream is done in order, one operation after the other; streams of a rank go on side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.ranks.goals import Goals

SEND, RECEIVE, RECEIVE_ADD, COPY, ADD, NOTHING = range(6)
WORD = 8  # bytes


@dataclass(frozen=True)
class Regions:
    """Words of ranks' memories that hold data: ``count`` words from ``at`` on in the memory of ``rank`` are places
    ``first``, … of ``part``; ``piece`` is the schedule's number for them, -1 for none. All of shape (regions,), sorted
    by rank, then by place in its memory."""

    rank: IntArray
    at: IntArray
    count: IntArray
    part: IntArray
    first: IntArray
    piece: IntArray

    def of_rank(self, rank: int) -> Regions:
        """Those of one rank."""
        low, high = np.searchsorted(self.rank, [rank, rank + 1])
        return Regions(*(column[low:high] for column in self.columns()))

    def columns(self) -> tuple[IntArray, ...]:
        """All columns, in the order of the fields."""
        return self.rank, self.at, self.count, self.part, self.first, self.piece

    def joined(self) -> Regions:
        """The same as few regions: neighbours in memory and in a part are one (which has no piece)."""
        if not len(self.rank):
            return self
        follows = (self.rank[1:] == self.rank[:-1]) & (self.part[1:] == self.part[:-1])
        for column in (self.at, self.first):
            follows &= column[1:] == column[:-1] + self.count[:-1]
        begin = np.flatnonzero(np.concatenate([[True], ~follows]))
        count = np.add.reduceat(self.count, begin)
        none = np.full(len(begin), -1, dtype=np.int64)
        return Regions(self.rank[begin], self.at[begin], count, self.part[begin], self.first[begin], none)


@dataclass(frozen=True)
class Messages:
    """Messages between ranks, shape (messages,) each: sender ``src``, receiver ``dst``, ``count`` words, and the place
    ``slot`` in the sender's memory where the words are to be read: their place in a buffer, or with ``copied`` a place
    of their own, to which the sender copies them because its buffer may change before they are read. ``number``: the
    schedule's number for the message, ``order``: its place among those of the same sender and receiver, as sent."""

    src: IntArray
    dst: IntArray
    count: IntArray
    slot: IntArray
    copied: BoolArray
    number: IntArray
    order: IntArray


@dataclass(frozen=True)
class Program:
    """All ranks' programs. ``words``: size of every rank's memory, shape (ranks,).

    Streams, sorted by rank: ``stream_rank`` (streams,), operations ``stream_start[s]:stream_start[s + 1]``. Operations,
    shape (operations,): ``kind``; ``at``: where the words are that it writes (SEND: reads); ``source``: where COPY and
    ADD read; ``count`` words; ``message``: of SEND and RECEIVE, -1 where the other end is missing: it never comes;
    ``after``: an operation of the same rank that must be done before, -1 for none. Before an operation writes, the
    messages ``wait[wait_start[i]:wait_start[i + 1]]`` must have left its rank's memory.

    ``begins``, ``ends``: what is there before, and must be there after. ``scale``: words per byte of the schedule.
    """

    name: str
    collective: str
    ranks: int
    goals: Goals
    words: IntArray
    stream_rank: IntArray
    stream_start: IntArray
    kind: IntArray
    at: IntArray
    source: IntArray
    count: IntArray
    message: IntArray
    after: IntArray
    wait_start: IntArray
    wait: IntArray
    messages: Messages
    begins: Regions
    ends: Regions

    @property
    def transfers(self) -> int:
        """Messages that carry words."""
        return int(np.count_nonzero(self.messages.count))

    @property
    def bytes_moved(self) -> int:
        """Bytes of all messages."""
        return int(self.messages.count.sum()) * WORD

    def bytes_by_pair(self) -> IntArray:
        """Bytes that every rank (row) sends to every other (column), shape (ranks, ranks)."""
        found = np.zeros((self.ranks, self.ranks), dtype=np.int64)
        np.add.at(found, (self.messages.src, self.messages.dst), self.messages.count * WORD)
        return found


def places_among_equals(*keys: IntArray) -> IntArray:
    """Of every row its number among the rows with the same keys, in their order; shape (rows,)."""
    order = np.lexsort(keys[::-1])
    new = np.ones(len(order), dtype=bool)
    if len(order):
        new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    at = np.arange(len(order))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = at - np.maximum.accumulate(np.where(new, at, 0))
    return found
