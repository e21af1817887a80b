"""A schedule as rounds of messages between ranks.

In a round a rank posts all its sends and receives at once and waits for them; what it sends is what it held before the
round. So every sum has one order: what the rank holds, then what arrives round after round, within a round by the
number of the sender. A rank waits for nobody but its partners of the round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.errors import InputError
from synth.exchange.transfers import Transfers, parts_of


@dataclass(frozen=True)
class Rounds:
    """A collective among ``ranks`` ranks. Parts are those of :class:`~synth.exchange.transfers.Transfers`, each of
    ``units`` equal units of whatever size. Pieces, shape (pieces,): ``part``, ``offset`` and ``size`` in units; those
    of a part cover it, but for a part that nobody sends. Messages, shape (messages,), sorted by round: ``round``,
    ``src``, ``dst``, ``piece``, ``adds``."""

    name: str
    collective: str
    ranks: int
    root: int | None
    units: int
    part: IntArray
    offset: IntArray
    size: IntArray
    round: IntArray
    src: IntArray
    dst: IntArray
    piece: IntArray
    adds: BoolArray

    @property
    def parts(self) -> int:
        """Number of parts of the data."""
        return parts_of(self.collective, self.ranks)

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return int(self.round.max(initial=-1)) + 1


def in_rounds(transfers: Transfers) -> Rounds:
    """The transfers in the fewest rounds that keep what each of them carries. Raises :class:`InputError` for a demand,
    for parts of which not all arrives, and where a rank would have to keep what it held earlier in order to send it."""
    t = transfers
    if t.demand is not None or t.wants is not None:
        raise InputError("only whole collectives are put in rounds")
    rounds = _least_rounds(*_arcs(t), len(t.piece))
    order = np.lexsort((t.piece, t.dst, t.src, rounds))
    unit = math.gcd(t.part_bytes, *t.piece_offset.tolist(), *t.piece_bytes.tolist())
    return Rounds(
        t.name, t.collective, t.ranks, t.root, t.part_bytes // unit, t.piece_part, t.piece_offset // unit,
        t.piece_bytes // unit, rounds[order], t.src[order], t.dst[order], t.piece[order], t.adds[order],
    )  # fmt: skip


def _times(t: Transfers) -> tuple[IntArray | FloatArray, IntArray | FloatArray]:
    exact = t.exact
    return (t.start_s, t.end_s) if exact is None else (exact.start, exact.end)


def _arcs(t: Transfers) -> tuple[IntArray, IntArray, IntArray]:
    """What must not come before what: rounds[after] >= rounds[before] + gap. A rank sends a piece in a later round than
    the arrival before; what arrives next may come in the round of the send, and two arrivals in one if both are added.
    Within a moment: arrivals, then sends and arrivals of transfers that take no time, then other sends."""
    start, end = _times(t)
    count, at_once = len(t.piece), start == end
    phase = np.concatenate([np.where(at_once, 2, 0), np.where(at_once, 1, 3)])
    rank, piece = np.concatenate([t.dst, t.src]), np.concatenate([t.piece, t.piece])
    order = np.lexsort((phase, np.concatenate([end, start]), piece, rank))
    arcs: list[tuple[int, int, int]] = []
    last, sent = -1, list[int]()
    key = rank.astype(np.int64) * (len(t.piece_part) + 1) + piece
    here = -1
    for event, at in zip(order.tolist(), key[order].tolist(), strict=True):
        if at != here:
            here, last, sent = at, -1, []
        if event >= count:
            sent.append(event - count)
            if last >= 0:
                arcs.append((last, event - count, 1))
        else:
            arcs += [(one, event, 0) for one in sent]
            if last >= 0 and not sent:
                arcs.append((last, event, int(not (t.adds[last] and t.adds[event]))))
            last, sent = event, []
    before, after, gap = np.array(arcs, dtype=np.int64).reshape(-1, 3).T
    return before, after, gap


def _least_rounds(before: IntArray, after: IntArray, gap: IntArray, count: int) -> IntArray:
    """The least rounds that keep all arcs. Raises :class:`InputError` where none do."""
    found = np.zeros(count, dtype=np.int64)
    for _ in range(count + 1):
        least = found[before] + gap
        if np.all(found[after] >= least):
            return found
        np.maximum.at(found, after, least)
    raise InputError("cannot be put in rounds: a rank sends what it held before something else came and went")
