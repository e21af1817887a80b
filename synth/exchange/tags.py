"""Numbers by which a message and its receive find each other."""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.exchange.transfers import Transfers


def tags(t: Transfers) -> IntArray:
    """Per transfer the piece, and once more the number of pieces for every earlier transfer of it over the same pair:
    no tag twice from one rank to another. Shape (transfers,)."""
    pieces = max(len(t.piece_part), 1)
    key = (t.src * t.ranks + t.dst) * pieces + t.piece
    order = np.argsort(key, kind="stable")
    place = np.arange(len(key))
    new = np.ones(len(key), dtype=bool)
    new[1:] = key[order[1:]] != key[order[:-1]]
    turn = np.empty(len(key), dtype=np.int64)
    turn[order] = place - np.maximum.accumulate(np.where(new, place, 0))
    found: IntArray = t.piece + pieces * turn
    return found
