"""Pieces that follow each other over one connection (and one of several parallel links) and lie side by side at both
ends go in one step.

The later ones move up to the first, so none of what they read may have been written since then, and nobody may have
touched where they go to. The first ones are there only with the last, so in the schedule nobody may send them on before
that has arrived: what is cut into pieces to be forwarded piece by piece stays so. All the same it costs overlap, as a
message of several pieces takes one way only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, Int32Array, IntArray
from synth.exchange.lowering.dependences import READS, WRITES
from synth.exchange.lowering.rank_steps import RECEIVE, SEND, Acts
from synth.exchange.transfers import Transfers
from synth.kernels import jit

MOST_CELLS = 2**27  # chunks of all buffers; beyond them steps stay as they are


def joined(
    t: Transfers, done: Acts, lane: IntArray, buffer_chunks: IntArray, most_count: int
) -> tuple[Transfers, Acts, IntArray]:
    """The acts with steps of up to ``most_count`` chunks, and the moves and lanes that are left: a joined step counts
    as its first move."""
    if int(buffer_chunks.sum()) > MOST_CELLS or not len(t.piece):
        return t, done, lane
    connection = np.unique(np.stack([t.src, t.dst, lane, t.channel_hint]), axis=1, return_inverse=True)[1].reshape(-1)
    base: IntArray = np.concatenate([[0], np.cumsum(buffer_chunks.reshape(-1))])[:-1].reshape(buffer_chunks.shape)
    src = base[done.rank, done.src_buffer] + done.src_offset
    dst = base[done.rank, done.dst_buffer] + done.dst_offset
    new_src, new_dst, count = src.copy(), dst.copy(), done.count.copy()
    kept = np.ones(len(done), dtype=bool)
    touched, written = np.full((2, int(buffer_chunks.sum())), -1, dtype=np.int32)
    acts = _Acts(done.move, done.role, done.kind, done.src_buffer, done.dst_buffer, src, dst)
    moves = _MoveTimes(connection, t.start_s, t.end_s, _sent_on(t))
    _join(acts, moves, _Memory(READS, WRITES, touched, written), most_count, _Steps(new_src, new_dst, count, kept))
    src_offset = (done.src_offset + new_src - src).astype(np.int32)
    dst_offset = (done.dst_offset + new_dst - dst).astype(np.int32)
    rows = replace(done, src_offset=src_offset, dst_offset=dst_offset, count=count).taken(kept)
    left = np.unique(rows.move[rows.role == SEND])
    number = np.searchsorted(left, rows.move)
    return (
        t.taken(left),
        replace(
            rows,
            move=np.where(rows.move >= 0, number, -1).astype(np.int32),
            place=np.where(rows.place >= 0, np.searchsorted(left, rows.place), -1).astype(np.int32),
        ),
        lane[left],
    )


def _sent_on(t: Transfers) -> FloatArray:
    """When the receiver of every move first sends the piece on that has come, infinite for never."""
    pieces = int(t.piece.max(initial=0)) + 1
    moments, inverse = np.unique(np.concatenate([t.start_s, t.end_s]), return_inverse=True)
    start, end = np.split(inverse.reshape(-1), 2)
    states = np.unique(np.concatenate([t.src * pieces + t.piece, t.dst * pieces + t.piece]), return_inverse=True)[1]
    of_src, of_dst = np.split(states.reshape(-1), 2)
    sends = np.sort(of_src * len(moments) + start)
    after = np.searchsorted(sends, of_dst * len(moments) + end)
    following = sends[np.minimum(after, len(sends) - 1)]
    same = (after < len(sends)) & (following // len(moments) == of_dst)
    found: FloatArray = np.where(same, moments[following % len(moments)], np.inf)
    return found


class _Acts(NamedTuple):
    """Columns of :class:`Acts`, shape (acts,); ``src`` and ``dst`` are the first chunks of memory it reads and writes.
    The receive of a send is the act behind it."""

    move: Int32Array
    role: Int32Array
    kind: Int32Array
    src_buffer: Int32Array
    dst_buffer: Int32Array
    src: IntArray
    dst: IntArray


class _MoveTimes(NamedTuple):
    """Of every move, shape (moves,): its connection, start and end, and when what it brings is first sent on (s)."""

    connection: IntArray
    start: FloatArray
    end: FloatArray
    sent_on: FloatArray


class _Memory(NamedTuple):
    """Which kinds of acts read and write, shape (kinds,), and the last act that ``touched`` and that has ``written``
    every chunk of memory, shape (chunks of all buffers,)."""

    reads: BoolArray
    writes: BoolArray
    touched: Int32Array
    written: Int32Array


class _Steps(NamedTuple):
    """The steps, shape (acts,): as :class:`_Acts` and ``chunks`` once others are joined to them, and which are kept."""

    src: IntArray
    dst: IntArray
    chunks: Int32Array
    kept: BoolArray


@jit
def _join(acts: _Acts, moves: _MoveTimes, memory: _Memory, most: int, steps: _Steps) -> None:
    """Change ``steps`` and ``memory``: join what follows each other in steps of at most ``most`` chunks."""
    move, role, kind, src, dst = acts.move, acts.role, acts.kind, acts.src, acts.dst
    new_src, new_dst, count = steps.src, steps.dst, steps.chunks
    connection, start, sent_on = moves.connection, moves.start, moves.sent_on
    last = np.full(connection.max() + 1, -1, dtype=np.int64)
    needed = np.zeros(len(last), dtype=np.float64)  # when what the last step brings is first sent on
    ready = np.zeros(len(last), dtype=np.int64)  # what it may read was written by acts before this one
    first = x = 0
    while x < len(move):
        if role[x] != SEND:
            _stamp(x, x, count[x], acts, memory)
            x += 1
            continue
        y, c, size = x + 1, connection[move[x]], count[x]
        if x == 0 or start[move[x]] != start[move[first]] or role[first] != SEND:
            first = x  # of this moment: what arrives in it is there only after its sends
        assert role[y] == RECEIVE
        assert move[y] == move[x]
        a = last[c]
        b = a + 1
        fits = a >= 0 and moves.end[move[x]] <= needed[c] and count[a] + size <= most and kind[b] == kind[y]
        fits = fits and acts.src_buffer[a] == acts.src_buffer[x] and acts.dst_buffer[b] == acts.dst_buffer[y]
        adds = memory.reads[kind[y]]
        fits = fits and (not adds or acts.src_buffer[b] == acts.src_buffer[y])
        up = src[x] == new_src[a] + count[a] and dst[y] == new_dst[b] + count[b]
        up = up and (not adds or src[y] == new_src[b] + count[b])
        down = src[x] + size == new_src[a] and dst[y] + size == new_dst[b]
        down = down and (not adds or src[y] + size == new_src[b])
        fits = fits and (up or down)
        for k in range(size):
            if not fits:
                break
            fits = memory.written[src[x] + k] < ready[c] and memory.touched[dst[y] + k] < b
            if fits and adds:
                fits = memory.written[src[y] + k] < b
        if fits:
            steps.kept[x] = steps.kept[y] = False
            count[a] += size
            count[b] += size
            if not up:
                new_src[a], new_dst[a], new_dst[b] = src[x], new_dst[a] - size, dst[y]
                new_src[b] -= size
            needed[c] = min(needed[c], sent_on[move[x]])
        else:
            a, b = x, y
            last[c], needed[c], ready[c] = x, sent_on[move[x]], first
        _stamp(x, a, size, acts, memory)
        _stamp(y, b, size, acts, memory)
        x += 2


@jit
def _stamp(x: int, as_act: int, size: int, acts: _Acts, memory: _Memory) -> None:
    """Note what act x reads and writes, as if done by the act ``as_act``."""
    touched, written = memory.touched, memory.written
    src, dst = acts.src[x], acts.dst[x]
    for k in range(size):
        if memory.reads[acts.kind[x]]:
            touched[src + k] = max(touched[src + k], as_act)
        if memory.writes[acts.kind[x]]:
            touched[dst + k] = max(touched[dst + k], as_act)
            written[dst + k] = max(written[dst + k], as_act)
