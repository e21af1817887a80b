"""Data from rank to rank as an all-to-all whose parts are all as large as the greatest.

Executors know parts of one size. Every part of a demand lies at the beginning of its place in such buffers, and only
the chunks that hold any of it move; what else its place holds is neither read nor written. Several parts from one rank
to another lie one after the other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from synth.arrays import IntArray
from synth.errors import Fault, InputError
from synth.exchange.lowering.equal_chunks import MOST_CHUNKS
from synth.exchange.transfers import Demand, Transfers
from synth.text.quantities import count, percent

ALIGNED = 16  # bytes that every chunk is a multiple of
TRIED = (16, 32, 64, 128, 256, 512, 1024)  # chunks of the greatest part
MORE = 0.02  # of the bytes, that whole chunks may be more


def pairs(demand: Demand, ranks: int) -> tuple[IntArray, IntArray]:
    """Bytes from every rank to every other, shape (ranks * ranks,), and where every part begins among those of its
    pair, shape (parts,)."""
    pair = demand.origin * ranks + demand.goal
    order = np.argsort(pair, kind="stable")
    ends = np.cumsum(demand.bytes[order])
    begins = ends - demand.bytes[order]
    head = np.concatenate([[True], pair[order][1:] != pair[order][:-1]]) if len(pair) else np.zeros(0, dtype=bool)
    first = np.empty(len(pair), dtype=np.int64)
    first[order] = begins - np.maximum.accumulate(np.where(head, begins, 0))
    return np.bincount(pair, demand.bytes, ranks * ranks).astype(np.int64), first


def chunk_bytes(t: Transfers, chunks: int, instances: int = 1) -> int:
    """Bytes of a chunk where the greatest part of a demand has so many, each to be cut into ``instances``."""
    assert t.demand is not None
    most = int(pairs(t.demand, t.ranks)[0].max(initial=1))
    return -(-most // (chunks * instances * ALIGNED)) * instances * ALIGNED


def _asked(t: Transfers, instances: int) -> int:
    """The number of chunks of the greatest part: the least tried that costs few bytes more, or fewest."""
    assert t.demand is not None
    amount, _ = pairs(t.demand, t.ranks)
    moved = {}
    for chunks in TRIED:
        size = chunk_bytes(t, chunks, instances)
        moved[chunks] = int((-(-amount // size) * size).sum())
        if moved[chunks] <= (1 + MORE) * int(amount.sum()):
            return chunks
    return min(moved, key=lambda chunks: moved[chunks])


def padded(t: Transfers, chunks: int | None = None, instances: int = 1) -> Transfers:
    """A demand's moves as those of an all-to-all, in chunks: the greatest part has ``chunks``, each of which can be cut
    into ``instances``. Ends of pieces go to the
    nearest chunk, those of parts to the next. Raises :class:`InputError` for ranks that send themselves data, and for
    too many chunks."""
    assert t.demand is not None
    if np.any(t.demand.origin == t.demand.goal):
        raise InputError("a rank that sends data to itself: no executor moves them")
    if chunks is not None and chunks > MOST_CHUNKS:
        raise InputError([Fault("--chunks", f"must be at most {MOST_CHUNKS}", chunks, True)])
    chunks = chunks or _asked(t, instances)
    size, (amount, first) = chunk_bytes(t, chunks, instances), pairs(t.demand, t.ranks)
    pair = (t.demand.origin * t.ranks + t.demand.goal)[t.piece_part]
    low = first[t.piece_part] + t.piece_offset
    begin, end = (_edge(place, size, amount[pair]) for place in (low, low + t.piece_bytes))
    kept = np.flatnonzero(end > begin)
    number = np.full(len(begin), -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    moves = t.taken(np.flatnonzero(number[t.piece] >= 0))
    return replace(
        moves, collective="alltoall", part_bytes=chunks, piece_part=pair[kept], piece_offset=begin[kept],
        piece_bytes=(end - begin)[kept], piece=number[moves.piece], demand=None, wants=-(-amount // size),
    )  # fmt: skip


def _edge(place: IntArray, size: int, end: IntArray) -> IntArray:
    """The chunk edge of places in data that end there: the nearest, at the end the next one."""
    found: IntArray = np.where(place == end, -(-place // size), (2 * place + size) // (2 * size))
    return np.minimum(found, -(-end // size))


def told(t: Transfers, chunks: int, instances: int = 1) -> str:
    """The sizes of the buffers that the file is for, and how many bytes more move, in words."""
    assert t.demand is not None
    size, (amount, _) = chunk_bytes(t, chunks, instances), pairs(t.demand, t.ranks)
    part, moved = size * chunks, int((-(-amount // size) * size).sum())
    more = percent(moved / max(int(amount.sum()), 1) - 1)
    return (
        f"one all-to-all with parts padded to {count(part)} bytes, the greatest ({count(chunks)} chunks): buffers of "
        f"{count(part * t.ranks)} bytes a rank, what goes to or comes from rank r at r times {count(part)}; whole "
        f"chunks are {more} more bytes than asked for, and nothing else moves"
    )
