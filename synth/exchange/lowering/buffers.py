"""Where the data of a piece lies at a rank: places in the buffers i, o, s, in chunks (see ``Algorithm``).

In place input and output are one buffer, and every place in it is called by one name: ``o`` for allgather and gather
(at the root), ``i`` for all others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.exchange.transfers import Transfers

INPUT, OUTPUT, SCRATCH = 0, 1, 2


class Places(NamedTuple):
    """Of pairs of a rank and a piece, shape (pairs,): whether the rank has it from the beginning (``begins``; in a
    reduction its own contribution to it), where (``begin_buffer``, ``begin_offset``), whether it must end with it
    (``ends``), and where the rank keeps what comes (``keep_buffer``, ``keep_offset``; an offset of -1: some place in
    the scratch buffer)."""

    begins: BoolArray
    begin_buffer: IntArray
    begin_offset: IntArray
    ends: BoolArray
    keep_buffer: IntArray
    keep_offset: IntArray


def places(t: Transfers, rank: IntArray, part: IntArray, offset: IntArray, chunks: int, in_place: bool) -> Places:
    """The places of pieces of ``part`` at ``offset`` (in chunks) at ``rank``; arrays of one shape."""
    n, c = t.ranks, chunks
    zero = np.zeros_like(rank)
    everyone = np.ones(len(rank), dtype=bool)
    at_root = rank == (-1 if t.root is None else t.root)
    by_part = part * c + offset  # where the buffer holds all parts
    match t.collective:
        case "allgather":
            begins, ends, begin, end = rank == part, everyone, offset, by_part
        case "gather":
            begins, ends, begin, end = rank == part, at_root, offset, by_part
        case "scatter":
            begins, ends, begin, end = at_root, rank == part, by_part, offset
        case "alltoall":
            begins, ends = rank == part // n, rank == part % n
            begin, end = part % n * c + offset, part // n * c + offset
        case "broadcast":
            begins, ends, begin, end = at_root, everyone, offset, offset
        case "reduce_scatter":
            begins, ends, begin, end = everyone, rank == part, by_part, offset
        case "reduce":
            begins, ends, begin, end = everyone, at_root, offset, offset
        case _:
            begins, ends, begin, end = everyone, everyone, offset, offset
    begin_buffer, end_buffer = zero + INPUT, zero + OUTPUT
    if in_place:
        if t.collective == "allgather":
            begin, begin_buffer = by_part, zero + OUTPUT
        elif t.collective == "gather":
            begin, begin_buffer = np.where(at_root, by_part, offset), np.where(at_root, OUTPUT, INPUT)
        elif t.collective == "reduce_scatter":
            end, end_buffer = by_part, zero + INPUT
        elif t.collective == "scatter":
            end, end_buffer = np.where(at_root, by_part, offset), np.where(at_root, INPUT, OUTPUT)
        else:
            end_buffer = zero + INPUT
    kept = ends | (begins & (in_place and t.reduces))  # in place a sum may grow where the contribution was
    keep = np.where(ends, end, begin) if in_place and t.reduces else end
    keep_buffer = np.where(ends, end_buffer, begin_buffer) if in_place and t.reduces else end_buffer
    return Places(begins, begin_buffer, begin, ends, np.where(kept, keep_buffer, SCRATCH), np.where(kept, keep, -1))


def sizes(t: Transfers, chunks: int, scratch: IntArray) -> IntArray:
    """Chunks of the buffers i, o, s of every rank, shape (ranks, 3); ``scratch``: what they use, shape (ranks,). All
    get as much scratch as the one that uses most, so that a place at the peer can be named."""
    n, c = t.ranks, chunks
    everywhere = {
        "allgather": (c, n * c), "reduce_scatter": (n * c, c), "alltoall": (n * c, n * c), "gather": (c, 0),
        "scatter": (0, c),
    }.get(t.collective, (c, c))  # fmt: skip
    found = np.zeros((n, 3), dtype=np.int64)
    found[:, :2] = everywhere
    if t.collective == "gather":
        found[t.root, 1] = n * c
    if t.collective == "scatter":
        found[t.root, 0] = n * c
    found[:, 2] = scratch.max(initial=0)
    return found


def own_copies(t: Transfers, chunks: int) -> tuple[IntArray, IntArray, IntArray]:
    """Out of place, what a rank has to copy from its input to its output itself, all of a part at once: the ranks, and
    the offsets in both, each of shape (copies,)."""
    n, c = t.ranks, chunks
    rank = np.arange(n, dtype=np.int64)
    root = np.array([t.root or 0], dtype=np.int64)
    zero = np.zeros(1, dtype=np.int64)
    if t.wants is not None:  # what a rank keeps is no part that was given
        return rank[:0], rank[:0], rank[:0]
    match t.collective:
        case "allgather":
            return rank, np.zeros_like(rank), rank * c
        case "alltoall":
            return rank, rank * c, rank * c
        case "gather":
            return root, zero, root * c
        case "scatter":
            return root, root * c, zero
        case "broadcast":
            return root, zero, zero
    if n == 1:
        return zero, zero, zero
    return rank[:0], rank[:0], rank[:0]
