"""The moves played one after the other, and what every rank does for them: sends, receives, local steps.

Every move is played as a whole at its place in the order, so that nothing ever waits for something later in the order:
whatever executor runs it, with however little room for data under way, it cannot get stuck. A move carries what its
sender held when it began, though: where a sum comes in before the last move that wants the sum without it has been
played, it waits in the scratch buffer and is added behind that move. In place, what would overwrite data that still
has to leave waits there too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.errors import InputError
from synth.exchange.algorithm import KINDS
from synth.exchange.lowering.buffers import INPUT, OUTPUT, SCRATCH, Places, own_copies, places
from synth.exchange.lowering.equal_chunks import Chunked
from synth.exchange.transfers import Transfers
from synth.kernels import jit

SEND, RECEIVE, LOCAL = range(3)
S, R, CPY, RE, RRC = (KINDS.index(kind) for kind in ("s", "r", "cpy", "re", "rrc"))
COLUMNS = ("move", "place", "rank", "role", "peer", "kind", "src_buffer", "src_offset", "dst_buffer", "dst_offset",
           "count")  # fmt: skip


@dataclass(frozen=True)
class Acts:
    """What ranks do, in the order of the moves; int32 arrays of shape (acts,): ``move`` (-1: a local step), ``place``
    (the number of the move at which it is due), ``rank``, ``role`` (SEND, RECEIVE, LOCAL), ``peer`` (-1 for none), then
    as in ``Algorithm``. ``scratch``: chunks of the scratch buffer used, shape (ranks,). ``dropped``: moves that bring
    a rank what it has."""

    move: Int32Array
    place: Int32Array
    rank: Int32Array
    role: Int32Array
    peer: Int32Array
    kind: Int32Array
    src_buffer: Int32Array
    src_offset: Int32Array
    dst_buffer: Int32Array
    dst_offset: Int32Array
    count: Int32Array
    scratch: IntArray
    dropped: int

    def __len__(self) -> int:
        return len(self.move)

    def taken(self, rows: Any) -> Acts:
        """Those of these rows, in their order."""
        columns = {name: getattr(self, name)[rows] for name in COLUMNS}
        return Acts(**columns, scratch=self.scratch, dropped=self.dropped)


def acts(cut: Chunked, in_place: bool, most_count: int, instances: int = 1) -> Acts:
    """Play the moves; own parts are copied in ``instances`` shares at least. Raises :class:`InputError` for a move of
    what its sender has not."""
    t = cut.moves
    state, of_src, of_dst = _states(t, len(cut.count))
    rank, piece = (part.astype(np.int64) for part in np.divmod(state, max(len(cut.count), 1)))
    where = places(t, rank, t.piece_part[piece], cut.offset[piece], cut.chunks, in_place)
    wait, in_order, start, end = _waits(t, of_src, of_dst)
    if in_place and t.collective == "alltoall":
        wait = _still_leaving(t)
    room = 2 * len(t.piece) + 2 * int((wait >= 0).sum()) + int(where.ends.sum()) + 1
    rows = np.zeros((len(COLUMNS), room), dtype=np.int32)
    scratch = np.zeros(t.ranks, dtype=np.int64)
    moves = _MoveRows(of_src, of_dst, t.src, t.dst, t.adds, wait, in_order, start, end)
    states = _States(rank, cut.count[piece], where)
    total, dropped, wrong = _play(moves, states, _data(states, len(t.piece)), t.reduces, scratch, rows)
    if wrong >= 0:
        raise InputError(f"transfer {wrong}: rank {t.src[wrong]} sends piece {t.piece[wrong]}, which it has not")
    made = [np.ascontiguousarray(row[:total]) for row in rows]
    if not in_place:
        own = _own(t, cut.chunks, min(most_count, max(cut.chunks // instances, 1)))
        made = [np.concatenate(pair) for pair in zip(own, made, strict=True)]
    columns: dict[str, Any] = dict(zip(COLUMNS, made, strict=True))
    return Acts(**columns, scratch=scratch, dropped=dropped)


def _states(t: Transfers, pieces: int) -> tuple[IntArray, IntArray, IntArray]:
    """Pairs of rank and piece that moves touch, as one number each; of every move its sender's and its receiver's."""
    keys = np.concatenate([t.src * max(pieces, 1) + t.piece, t.dst * max(pieces, 1) + t.piece])
    state, inverse = np.unique(keys, return_inverse=True)
    of_src, of_dst = np.split(inverse.reshape(-1), 2)
    return state, of_src, of_dst


def _waits(t: Transfers, of_src: IntArray, of_dst: IntArray) -> tuple[IntArray, BoolArray, IntArray, IntArray]:
    """For every move of a reduction the last move played after it that wants its receiver's sum without it, -1 for
    none; whether no later one arrives there sooner; start and end of all moves as numbers in order of time."""
    count = len(t.piece)
    none = np.full(count, -1, dtype=np.int64)
    if not t.reduces:
        return none, np.zeros(count, dtype=bool), none, none
    moments, inverse = np.unique(np.concatenate([t.start_s, t.end_s]), return_inverse=True)
    start, end = np.split(inverse.reshape(-1).astype(np.int64), 2)
    reads = np.lexsort((start, of_src))
    base = len(moments) + 1
    keys = of_src[reads] * base + start[reads]
    before = np.searchsorted(keys, of_dst * base + end)  # reads of the state that start before the end
    last = reads[np.maximum(before - 1, 0)]
    same = (before > 0) & (of_src[last] == of_dst) & (last > np.arange(count))
    return np.where(same, last, -1), _in_order(of_dst, end), start, end


@jit
def _in_order(state: IntArray, end: IntArray) -> BoolArray:
    found = np.zeros(len(state), dtype=np.bool_)
    least = np.full(state.max() + 1 if len(state) else 0, np.int64(2**62))
    for i in range(len(state) - 1, -1, -1):
        found[i] = least[state[i]] >= end[i]
        least[state[i]] = min(least[state[i]], end[i])
    return found


def _still_leaving(t: Transfers) -> IntArray:
    """In place what comes from rank r lies where what goes to rank r lay: for every move that ends there the last move
    played after it of that, -1 for none."""
    n, part, count = t.ranks, t.piece_part[t.piece], len(t.piece)
    last = np.full(n * n, -1, dtype=np.int64)
    leaves = t.src == part // n
    np.maximum.at(last, part[leaves], np.flatnonzero(leaves))
    opposite = part % n * n + part // n  # the part that goes the other way
    found = np.where(t.dst == part % n, last[opposite], -1)
    return np.where(found > np.arange(count), found, -1)


def _own(t: Transfers, chunks: int, most_count: int) -> list[Int32Array]:
    """Copies of own parts as rows of :class:`Acts`, before all moves."""
    rank, src, dst = own_copies(t, chunks)
    pieces = -(-chunks // most_count)
    low = np.tile(np.arange(pieces) * most_count, len(rank))
    count = np.minimum(chunks - low, most_count)
    rank, src, dst = (np.repeat(x, pieces) for x in (rank, src, dst))
    zero = np.zeros_like(rank)
    rows = (zero - 1, zero - 1, rank, zero + LOCAL, zero - 1, zero + CPY, zero + INPUT, src + low, zero + OUTPUT,
            dst + low, count)  # fmt: skip
    return [row.astype(np.int32) for row in rows]


class _MoveRows(NamedTuple):
    """Of every move, shape (moves,): the states of its sender and its receiver (``of_src``, ``of_dst``), the two ranks,
    whether the receiver ``adds`` what comes, the last move that it ``wait``s for (-1: none), whether no later one
    arrives there sooner (``in_order``), and start and end as numbers in order of time."""

    of_src: IntArray
    of_dst: IntArray
    src: IntArray
    dst: IntArray
    adds: BoolArray
    wait: IntArray
    in_order: BoolArray
    start: IntArray
    end: IntArray


class _States(NamedTuple):
    """Of every state (a rank and a piece), shape (states,): ``rank``, ``chunks`` of the piece, and where it begins and
    is kept (``where``; an offset of -1 is replaced once a place in the scratch buffer is taken)."""

    rank: IntArray
    chunks: IntArray
    where: Places


class _Data(NamedTuple):
    """What has become of the data so far. Of every state: whether it is there (``has``), whether it is a finished sum
    (``done``), where it is, when the first sum arrived if the begin is still where it was (``first_end``, else -1), and
    the last move that is ``waiting`` to be put there. Of every move: the one that waited before it (``then``) and its
    place in the scratch buffer (``held``). -1: none."""

    has: BoolArray
    done: BoolArray
    buffer: IntArray
    offset: IntArray
    first_end: IntArray
    waiting: IntArray
    then: IntArray
    held: IntArray


def _data(states: _States, moves: int) -> _Data:
    """The data at the beginning."""
    first_end, waiting = np.full((2, len(states.rank)), -1, dtype=np.int64)
    then, held = np.full((2, moves), -1, dtype=np.int64)
    done = np.zeros(len(states.rank), dtype=np.bool_)
    buffer, offset = states.where.begin_buffer.copy(), states.where.begin_offset.copy()
    return _Data(states.where.begins.copy(), done, buffer, offset, first_end, waiting, then, held)


@jit
def _act(
    rows: Int32Array, n: int, move: int, place: int, rank: int, peer: int, kind: int, sb: int, so: int, db: int,
    do: int, count: int,
) -> int:  # fmt: skip
    """Write act ``n`` into a column of ``rows``, from offset ``so`` of buffer ``sb`` to ``do`` of ``db``; the number of
    acts."""
    role = SEND if kind == S else RECEIVE if kind in (R, RRC) else LOCAL
    rows[0, n], rows[1, n], rows[2, n], rows[3, n], rows[4, n], rows[5, n] = move, place, rank, role, peer, kind
    rows[6, n], rows[7, n], rows[8, n], rows[9, n], rows[10, n] = sb, so, db, do, count
    return n + 1


@jit
def _play(
    moves: _MoveRows, states: _States, data: _Data, reduces: bool, scratch: IntArray, rows: Int32Array
) -> tuple[int, int, int]:
    """Fill ``rows`` and ``scratch``, change ``data`` and where states are kept; the number of acts, of dropped moves,
    and the first move of what is not there, or -1."""
    src, adds, wait = moves.src, moves.adds, moves.wait
    where, count = states.where, states.chunks
    begin_buffer, begin_offset = where.begin_buffer, where.begin_offset
    keep_buffer, keep_offset = where.keep_buffer, where.keep_offset
    has, done, buffer, offset = data.has, data.done, data.buffer, data.offset
    n, dropped = 0, 0
    for i in range(len(src)):
        a, b = moves.of_src[i], moves.of_dst[i]
        if not has[a]:
            return n, dropped, i
        if (done[b] or has[b]) if not reduces else done[b]:
            dropped += 1
            continue
        if data.waiting[a] >= 0:
            n = _put(a, i, moves, states, data, scratch, rows, n)
        sb, so = buffer[a], offset[a]
        if reduces and data.first_end[a] > moves.start[i]:
            sb, so = begin_buffer[a], begin_offset[a]
        size = count[a]
        u, v = src[i], moves.dst[i]
        n = _act(rows, n, i, i, u, v, S, sb, so, sb, so, size)
        begun = reduces and buffer[b] == begin_buffer[b] and offset[b] == begin_offset[b]
        if wait[i] >= 0 and reduces and adds[i] and begun and moves.in_order[i]:
            apart = keep_buffer[b] != begin_buffer[b] or keep_offset[b] != begin_offset[b]
        else:
            apart = wait[i] < 0
        if not apart:  # put it aside
            data.held[i] = scratch[v]
            scratch[v] += size
            n = _act(rows, n, i, i, v, u, R, SCRATCH, data.held[i], SCRATCH, data.held[i], size)
            if reduces:
                data.then[i], data.waiting[b] = data.waiting[b], i
            else:
                buffer[b], offset[b], has[b] = SCRATCH, data.held[i], True
            continue
        if keep_offset[b] < 0:
            keep_offset[b] = scratch[v]
            scratch[v] += size
        kb, ko = keep_buffer[b], keep_offset[b]
        if adds[i]:
            n = _act(rows, n, i, i, v, u, RRC, buffer[b], offset[b], kb, ko, size)
            if begun and (kb != begin_buffer[b] or ko != begin_offset[b]):
                data.first_end[b] = moves.end[i]
        else:
            n = _act(rows, n, i, i, v, u, R, kb, ko, kb, ko, size)
            done[b], data.waiting[b] = True, -1  # a finished sum replaces what nobody asked for
        buffer[b], offset[b], has[b] = kb, ko, True
    for b in range(len(states.rank)):
        if where.ends[b]:
            if data.waiting[b] >= 0:
                n = _put(b, len(src), moves, states, data, scratch, rows, n)
            if has[b] and not where.begins[b] and (buffer[b] != keep_buffer[b] or offset[b] != keep_offset[b]):
                n = _act(rows, n, -1, len(src), states.rank[b], -1, CPY, buffer[b], offset[b], keep_buffer[b],
                         keep_offset[b], count[b])  # fmt: skip
    return n, dropped, -1


@jit
def _put(
    b: int, i: int, moves: _MoveRows, states: _States, data: _Data, scratch: IntArray, rows: Int32Array, n: int
) -> int:
    """Put what waits in state ``b`` for moves before ``i`` where it belongs: first what is added, then finished sums.
    Returns the number of acts."""
    waiting, then, buffer, offset = data.waiting, data.then, data.buffer, data.offset
    keep_buffer, keep_offset = states.where.keep_buffer, states.where.keep_offset
    v, size = states.rank[b], states.chunks[b]
    for turn in range(2):
        before, w = np.int64(-1), waiting[b]
        while w >= 0:
            following = then[w]
            if moves.wait[w] >= i or moves.adds[w] != (turn == 0):
                before = w
            else:
                if keep_offset[b] < 0:
                    keep_offset[b] = scratch[v]
                    scratch[v] += size
                kb, ko = keep_buffer[b], keep_offset[b]
                if moves.adds[w]:
                    if buffer[b] != kb or offset[b] != ko:
                        n = _act(rows, n, -1, i, v, -1, CPY, buffer[b], offset[b], kb, ko, size)
                    n = _act(rows, n, -1, i, v, -1, RE, SCRATCH, data.held[w], kb, ko, size)
                else:
                    n = _act(rows, n, -1, i, v, -1, CPY, SCRATCH, data.held[w], kb, ko, size)
                buffer[b], offset[b] = kb, ko
                if before < 0:
                    waiting[b] = following
                else:
                    then[before] = following
            w = following
    return n
