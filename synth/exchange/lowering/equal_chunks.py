"""Pieces of bytes as runs of equal chunks.

An executor knows chunks of one size. Where the greatest common divisor of all offsets and sizes makes few enough of
them, nothing is rounded; otherwise the ends of pieces move to the nearest multiple of a part's N-th, so that the
pieces still make up their part, and a piece that is left without a chunk moves no more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from synth.arrays import IntArray
from synth.errors import Fault, InputError
from synth.exchange.transfers import Transfers
from synth.text.quantities import percent

MOST_CHUNKS = 4096  # of a part, without rounding
MOST_TRIED = 512  # of a part, when rounding: the least that is near enough, or the nearest
ALIKE = 0.1  # of a chunk: how far the ends of pieces may lie from those of as many equal chunks
NEAR = 0.02  # of a part's bytes: how far the end of a piece may move to be near enough


@dataclass(frozen=True)
class Chunked:
    """Pieces in chunks: ``offset`` in their part and ``count``, shape (pieces,); ``chunks`` a part; ``moves``: the
    transfers, of pieces with a chunk at least; ``notes`` in words, what was rounded."""

    chunks: int
    offset: IntArray
    count: IntArray
    moves: Transfers
    notes: tuple[str, ...]


def chunked(transfers: Transfers, wanted: int | None, most_count: int) -> Chunked:
    """Cut into chunks, ``wanted`` a part or as many as the pieces ask for; pieces of more than ``most_count`` chunks
    into several. Raises :class:`InputError` where a part would have too many chunks."""
    t, notes = transfers, []
    ends = t.piece_offset + t.piece_bytes
    whole = int(np.gcd.reduce(np.concatenate([t.piece_offset, t.piece_bytes, [t.part_bytes]])))
    chunks = t.part_bytes // whole
    if wanted is not None and wanted > MOST_CHUNKS:
        raise InputError([Fault("--chunks", f"must be at most {MOST_CHUNKS}", wanted, True)])
    grain = max(whole // (wanted // chunks), 1) if wanted and wanted % chunks == 0 else whole
    if (chunks <= MOST_CHUNKS) if wanted is None else (wanted % chunks == 0 and grain * wanted == t.part_bytes):
        chunks = wanted or chunks
        first, last = t.piece_offset // grain, ends // grain
    else:
        chunks = wanted or _alike(t) or _nearest(np.unique(np.concatenate([t.piece_offset, ends])), t.part_bytes)
        first, last = _rounded(t.piece_offset, t.part_bytes, chunks), _rounded(ends, t.part_bytes, chunks)
        notes.append(_words(t, last, chunks, int((last == first).sum())))
    kept = t.taken((last > first)[t.piece])
    return _split(Chunked(chunks, first, last - first, kept, tuple(notes)), most_count)


def _alike(t: Transfers) -> int:
    """The number of pieces of a part where all have about equal bytes, so that each ends within a tenth of a chunk of
    where so many chunks end; 0 where they have not, or are more than :data:`MOST_CHUNKS`."""
    chunks = round(t.part_bytes / max(float(t.piece_bytes.mean()), 1.0)) if len(t.piece_bytes) else 0
    places = np.concatenate([t.piece_offset, t.piece_offset + t.piece_bytes]) / t.part_bytes * chunks
    off = float(np.abs(places - np.rint(places)).max(initial=0))
    return chunks if 0 < chunks <= MOST_CHUNKS and off <= ALIKE else 0


def _rounded(place: IntArray, part_bytes: int, chunks: int) -> IntArray:
    """The chunk boundary nearest to each place in a part."""
    found: IntArray = np.rint(place / part_bytes * chunks).astype(np.int64)
    return found


def _nearest(places: IntArray, part_bytes: int) -> int:
    """The least number of chunks whose boundaries are near all places, or the one whose are nearest."""
    share = places / part_bytes
    best, least = 1, np.inf
    for chunks in range(1, MOST_TRIED + 1):
        off = float(np.abs(np.rint(share * chunks) / chunks - share).max()) * min(chunks, 1 / NEAR)
        if off < least - 1e-12:
            best, least = chunks, off
        if off <= NEAR:
            return chunks
    return best


def _words(t: Transfers, last: IntArray, chunks: int, lost: int) -> str:
    far = float(np.abs(last / chunks - (t.piece_offset + t.piece_bytes) / t.part_bytes).max(initial=0))
    empty = f", {lost} pieces smaller than half a chunk were merged" if lost else ""
    return (
        f"pieces have unequal bytes: rounded to {chunks} equal chunks a part (--chunks N for another number); ends of "
        f"pieces move by up to {percent(far)} of a part{empty}"
    )


def _split(found: Chunked, most: int) -> Chunked:
    """Pieces of more than ``most`` chunks as several, and their moves."""
    t = found.moves
    if not len(found.count) or int(found.count.max()) <= most:
        return found
    pieces = np.maximum(-(-found.count // most), 1)
    begin = np.cumsum(pieces) - pieces
    of = np.repeat(np.arange(len(pieces)), pieces)
    within = np.arange(len(of)) - begin[of]
    low, high = (found.count[of] * (within + k) // pieces[of] for k in (0, 1))
    rows = np.repeat(np.arange(len(t.piece)), pieces[t.piece])
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(pieces[t.piece]) - pieces[t.piece], pieces[t.piece])
    moves = _of_pieces(t.taken(rows), of, begin[t.piece[rows]] + nth)
    return Chunked(found.chunks, found.offset[of] + low, high - low, moves, found.notes)


def _of_pieces(t: Transfers, of: IntArray, piece: IntArray) -> Transfers:
    """The moves as those of other pieces, each a part of the piece ``of``."""
    return replace(
        t, piece_part=t.piece_part[of], piece_offset=t.piece_offset[of], piece_bytes=t.piece_bytes[of], piece=piece
    )


def copied(found: Chunked, instances: int, slices: int = 1) -> tuple[Chunked, IntArray]:
    """Every piece cut into ``instances`` equal ones that move side by side, each of these into ``slices`` that move one
    behind the other, parts of so many times the chunks; beside them which of the copies every transfer belongs to,
    shape (transfers,)."""
    t, k = found.moves, instances * slices
    of, nth = np.repeat(np.arange(len(found.count)), k), np.tile(np.arange(k), len(found.count))
    rows = np.repeat(np.arange(len(t.piece)), k)
    cut = np.tile(np.arange(k), len(t.piece))
    moves = _of_pieces(t.taken(rows), of, t.piece[rows] * k + cut)
    offset = found.offset[of] * k + nth * found.count[of]
    return Chunked(found.chunks * k, offset, found.count[of], moves, found.notes), cut // slices


def in_chunks(transfers: Transfers, wanted: int | None) -> tuple[Transfers, list[str]]:
    """The moves with chunks in the place of bytes, without the pieces that rounding leaves nothing of; beside them what
    was rounded, in words."""
    cut = chunked(transfers, wanted, MOST_CHUNKS)
    t, kept = cut.moves, np.flatnonzero(cut.count > 0)
    number = np.full(len(cut.count), -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    moves = replace(
        t, part_bytes=cut.chunks, piece_part=t.piece_part[kept], piece_offset=cut.offset[kept],
        piece_bytes=cut.count[kept], piece=number[t.piece],
    )  # fmt: skip
    return moves, list(cut.notes)
