"""From a schedule's transfers to the ranks' programs.

A rank sends and receives in the order of the schedule's times: it sends a piece at its start, and takes what arrives at
its end; what arrives at the moment of a start is there for it. Of one moment, transfers that take no time (copies of a
sum that a switch makes) come after what arrives and before what else starts, so no rank waits for one of them before it
has sent its own. That order has all dependences of the schedule in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.errors import Fault, InputError
from synth.exchange.transfers import EVERYONE, Transfers
from synth.ranks.goals import of_transfers
from synth.ranks.program import (
    RECEIVE,
    RECEIVE_ADD,
    SEND,
    WORD,
    Messages,
    Program,
    Regions,
    places_among_equals,
)

MOST_PLACES = 2**26  # pairs of a rank and a piece
MOST_NAMED = 3  # faults of a kind


class Pieces(NamedTuple):
    """All data in pieces, also what the schedule does not move. Shape (pieces,): ``part``, ``offset`` and ``bytes`` in
    the schedule, ``first`` place and number of ``words``; ``number``: the schedule's piece, -1 for none. Sorted by part
    and offset. ``place``: of the schedule's pieces among these, shape (pieces of the schedule,)."""

    part: IntArray
    offset: IntArray
    bytes: IntArray
    first: IntArray
    words: IntArray
    number: IntArray
    place: IntArray


def pieces_of(transfers: Transfers, scale: float = 1.0) -> Pieces:
    """The pieces, a word for ``8 / scale`` bytes, at least one a piece. Raises :class:`InputError` where pieces of a
    part overlap or leave it."""
    t, given = transfers, len(transfers.piece_part)
    low, size, part = t.piece_offset, t.piece_bytes, t.piece_part
    bad = (size < 1) | (low < 0) | (part < 0) | (part >= t.parts)
    bad[~bad] = low[~bad] > t.sizes[part[~bad]] - size[~bad]
    order = np.lexsort((low, part))
    end = (low + size)[order]
    same = part[order][1:] == part[order][:-1]
    overlap = order[1:][same & (low[order][1:] < end[:-1])]
    _demand_none("piece", {"leaves its part": np.flatnonzero(bad), "overlaps another piece of its part": overlap})
    head = np.concatenate([[True], ~same]) if given else np.zeros(0, dtype=bool)
    before = np.where(head, 0, np.concatenate([[0], end[:-1]])) if given else np.zeros(0, dtype=np.int64)
    tail = np.concatenate([head[1:], [True]]) if given else head
    absent = np.setdiff1d(np.arange(t.parts), part)
    gaps = (
        (part[order], before, low[order]), (part[order][tail], end[tail], t.sizes[part[order][tail]]),
        (absent, np.zeros_like(absent), t.sizes[absent]),
    )  # fmt: skip
    rows = [np.stack([part, low, size, np.arange(given)])]
    rows += [np.stack([p, a, b - a, np.full(len(p), -1)])[:, b > a] for p, a, b in gaps]
    table = np.concatenate(rows, axis=1).astype(np.int64)
    parts, offset, _, _ = table
    parts, offset, sizes, number = table[:, np.lexsort((offset, parts))]
    words = np.maximum(1, np.rint(sizes * (scale / WORD))).astype(np.int64)
    total = np.cumsum(words) - words
    new = np.concatenate([[True], parts[1:] != parts[:-1]])
    first = total - np.maximum.accumulate(np.where(new, total, 0))
    place = np.empty(given, dtype=np.int64)
    place[number[number >= 0]] = np.flatnonzero(number >= 0)
    return Pieces(parts, offset, sizes, first, words, number, place)


class _Held(NamedTuple):
    """Pairs of a rank and a piece that its memory has room for, sorted: ``key`` = rank * pieces + piece, and the place
    ``at`` in the rank's memory; ``words`` of every rank so far."""

    key: IntArray
    at: IntArray
    words: IntArray


def _keys(ranks: int, of_part: IntArray, some: BoolArray | None, pieces: Pieces) -> IntArray:
    """rank * pieces + piece, for all pieces whose part is of that rank, or of everyone, or of ``some``."""
    count = len(pieces.part)
    if some is not None:
        number, rank = np.nonzero(some[pieces.part])
        return rank * count + number
    owner, piece = of_part[pieces.part], np.arange(count)
    all_of = piece[owner == EVERYONE]
    alone = owner != EVERYONE
    whole = (np.arange(ranks)[:, None] * count + all_of).reshape(-1)
    return np.concatenate([whole, owner[alone] * count + piece[alone]]).astype(np.int64)


def _memory(ranks: int, pieces: Pieces, keys: IntArray) -> _Held:
    count = len(pieces.part)
    key = np.unique(keys)
    size = pieces.words[key % count]
    total = np.cumsum(size) - size
    first = np.searchsorted(key, np.arange(ranks + 1) * count)
    base = np.concatenate([total, [size.sum()]])[first]
    return _Held(key, total - base[:-1][key // count], np.diff(base))


def _regions(keys: IntArray, held: _Held, pieces: Pieces) -> Regions:
    key = np.sort(keys)
    at = held.at[np.searchsorted(held.key, key)]
    rank, piece = np.divmod(key, len(pieces.part))
    return Regions(rank, at, pieces.words[piece], pieces.part[piece], pieces.first[piece], pieces.number[piece])


def program_of(transfers: Transfers, scale: float = 1.0) -> Program:
    """The ranks' programs, with a word for ``8 / scale`` bytes of the schedule. Raises :class:`InputError` for
    transfers whose numbers name nothing, and where ranks times pieces are too many."""
    t = transfers
    _demand_numbers(t)
    pieces = pieces_of(t, scale)
    if t.ranks * len(pieces.part) > MOST_PLACES:
        raise InputError(f"{t.ranks} ranks and {len(pieces.part):,} pieces are too many to be run")
    goals = of_transfers(t)
    piece = pieces.place[t.piece]
    moved = [who * len(pieces.part) + piece for who in (t.src, t.dst)]
    begins = _keys(t.ranks, goals.origin, goals.begins, pieces)
    ends = _keys(t.ranks, goals.goal, goals.ends, pieces)
    held = _memory(t.ranks, pieces, np.concatenate([begins, ends, *moved]))
    if goals.begins is None and np.any(goals.origin == EVERYONE):  # a rank on the way of a sum has its contribution too
        begins = held.key
    source, target = (held.at[np.searchsorted(held.key, key)] for key in moved)
    count = pieces.words[piece]
    copied, waiting, message = _changes(t)
    slot, words = _slots(t, source, count, copied, held.words)
    order, sends = _in_time(t)
    number = np.concatenate([np.arange(len(t.piece))] * 2)[order]
    rank = np.concatenate([t.dst, t.src])[order]
    adds = t.adds if goals.begins is None else t.adds & ~_comes_to_nothing(t, moved[1], begins)
    received = np.where(adds, RECEIVE_ADD, RECEIVE)
    op_of = np.empty(len(t.piece), dtype=np.int64)
    op_of[number[~sends]] = np.flatnonzero(~sends)
    by_op = np.argsort(op_of[waiting], kind="stable")
    none = np.full(len(order), -1, dtype=np.int64)
    stream_rank = np.arange(t.ranks)
    when = np.empty(len(t.piece), dtype=np.int64)
    when[number[sends]] = np.arange(len(t.piece))
    return Program(
        name=t.name, collective=t.collective, ranks=t.ranks, goals=goals, words=words, stream_rank=stream_rank,
        stream_start=np.searchsorted(rank, np.arange(t.ranks + 1)).astype(np.int64),
        kind=np.where(sends, SEND, received[number]).astype(np.int64),
        at=np.where(sends, source[number], target[number]), source=none, count=count[number], message=number,
        after=none,
        wait_start=np.searchsorted(op_of[waiting][by_op], np.arange(len(order) + 1)).astype(np.int64),
        wait=message[by_op],
        messages=Messages(t.src, t.dst, count, slot, copied, np.arange(len(t.piece)), _turns(t.src, t.dst, when)),
        begins=_regions(begins, held, pieces), ends=_regions(ends, held, pieces),
    )  # fmt: skip


def _turns(src: IntArray, dst: IntArray, when: IntArray) -> IntArray:
    by_time = np.argsort(when, kind="stable")
    found = np.empty(len(when), dtype=np.int64)
    found[by_time] = places_among_equals(src[by_time], dst[by_time])
    return found


def _demand_none(what: str, wrong: Mapping[str, IntArray]) -> None:
    """Raises :class:`InputError` for numbers of things of which something is wrong, by what it is."""
    faults = [Fault(f"{what} {k}", words) for words, rows in wrong.items() for k in rows[:MOST_NAMED].tolist()]
    if faults:
        raise InputError(faults)


def _demand_numbers(t: Transfers) -> None:
    outside = {
        "its piece does not exist": (t.piece < 0) | (t.piece >= len(t.piece_part)),
        "its sender does not exist": (t.src < 0) | (t.src >= t.ranks),
        "its receiver does not exist": (t.dst < 0) | (t.dst >= t.ranks),
        "is from a rank to itself": t.src == t.dst,
    }
    _demand_none("transfer", {words: np.flatnonzero(rows) for words, rows in outside.items()})


def _times(t: Transfers) -> tuple[IntArray | FloatArray, IntArray | FloatArray]:
    exact = t.exact
    return (t.start_s, t.end_s) if exact is None else (exact.start, exact.end)


def _phases(t: Transfers) -> IntArray:
    """The order of arrivals (0, …) and sends (transfers, …) within a moment: what arrives, the sends and the arrivals
    of transfers that take no time, all other sends."""
    start, end = _times(t)
    at_once = start == end
    return np.concatenate([np.where(at_once, 2, 0), np.where(at_once, 1, 3)]).astype(np.int64)


def _in_time(t: Transfers) -> tuple[IntArray, BoolArray]:
    """Arrivals (0, …) and sends (transfers, …) by rank, time and phase, and which of them are sends."""
    start, end = _times(t)
    sends = np.repeat([False, True], len(t.piece))
    order = np.lexsort((_phases(t), np.concatenate([end, start]), np.concatenate([t.dst, t.src])))
    return order, sends[order]


def _comes_to_nothing(t: Transfers, keys: IntArray, begins: IntArray) -> BoolArray:
    """Which transfers bring a piece to a rank that has nothing of it yet: they store what others would add to.
    ``keys``: of the receivers and pieces; ``begins``: those of what is there before."""
    _, end = _times(t)
    order = np.lexsort((_phases(t)[: len(end)], end))
    _, first = np.unique(keys[order], return_index=True)
    found = np.zeros(len(keys), dtype=bool)
    found[order[first]] = True
    return found & ~np.isin(keys, begins)


def _changes(t: Transfers) -> tuple[BoolArray, IntArray, IntArray]:
    """Which transfers are copied at their start, because what they carry changes before or as they arrive; and for the
    others, two arrays in step: the transfer whose arrival changes it, and the transfer that must have been read."""
    start, end = _times(t)
    count = len(t.piece)
    rank, piece = np.concatenate([t.dst, t.src]), np.concatenate([t.piece, t.piece])
    sends = np.repeat([False, True], count)
    order = np.lexsort((_phases(t), np.concatenate([end, start]), piece, rank))
    rank, piece, sends = rank[order], piece[order], sends[order]
    last = np.ones(2 * count, dtype=bool)
    last[:-1] = (rank[1:] != rank[:-1]) | (piece[1:] != piece[:-1])
    place = np.arange(2 * count)
    group_end = np.minimum.accumulate(np.where(last, place, 2 * count)[::-1])[::-1]
    upcoming = np.minimum.accumulate(np.where(sends, 2 * count, place)[::-1])[::-1]  # the next arrival from here on
    changed = sends & (upcoming <= group_end)
    transfer, change = order[changed] - count, order[upcoming[changed]]
    copied = np.zeros(count, dtype=bool)
    early = end[change] <= end[transfer]
    copied[transfer[early]] = True
    return copied, change[~early], transfer[~early]


def _slots(
    t: Transfers, source: IntArray, count: IntArray, copied: BoolArray, words: IntArray
) -> tuple[IntArray, IntArray]:
    """Where every message is read, and the ranks' sizes of memory with the room for copies."""
    at = np.flatnonzero(copied)
    by_rank = at[np.argsort(t.src[at], kind="stable")]
    size = count[by_rank]
    total = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    first = np.searchsorted(t.src[by_rank], np.arange(t.ranks + 1))
    slot = source.copy()
    slot[by_rank] = total[:-1] - total[first][t.src[by_rank]] + words[t.src[by_rank]]
    return slot, words + np.diff(total[first])
