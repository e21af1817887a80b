"""Which copy or partial sum every transfer carries, and what every arrival is added to.

A rank's state of a piece is what arrived there last (its own data before anything did); a transfer carries the state
as of its start, and what arrives at the very moment of a start can be used by it.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.errors import InputError
from synth.exchange.transfers import Transfers


def carried(transfers: Transfers) -> tuple[IntArray, IntArray]:
    """Two arrays, shape (transfers,): the transfer whose arrival made what transfer k carries, and the arrival of the
    same piece at the same rank next before k's own; -1 for a rank's own data.

    Raises :class:`InputError` for a transfer that ends no later than it starts.
    """
    late = np.flatnonzero(~(transfers.end_s > transfers.start_s))
    if len(late):
        k = int(late[0])
        raise InputError(f"transfer {k} ends at {transfers.end_s[k]} s, not after its start {transfers.start_s[k]} s")
    count = len(transfers.piece)
    rank = np.concatenate([transfers.dst, transfers.src])
    piece = np.concatenate([transfers.piece, transfers.piece])
    time = np.concatenate([transfers.end_s, transfers.start_s])
    starts = np.repeat([False, True], count)
    order = np.lexsort((starts, time, piece, rank))  # stable: equal arrivals in the order of the transfers
    rank, piece, starts = rank[order], piece[order], starts[order]
    place = np.arange(2 * count)
    new_group = np.ones(2 * count, dtype=bool)
    new_group[1:] = (rank[1:] != rank[:-1]) | (piece[1:] != piece[:-1])
    group_start = np.maximum.accumulate(np.where(new_group, place, 0))
    latest = np.maximum.accumulate(np.where(starts, -1, place))  # place of the last arrival up to here
    before = np.concatenate([[-1], latest[:-1]]) if count else latest
    before = np.where(before >= group_start, before, -1)
    maker = np.where(before >= 0, order[before], -1)
    sent, prior = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    sent[order[starts] - count] = maker[starts]
    prior[order[~starts]] = maker[~starts]
    return sent, prior
