"""Pieces that follow each other over one connection (and one of several parallel links) and lie side by side at both
ends go in one step.

The later ones move up to the first, so none of what they read may have been written since then, and nobody may have
touched where they go to. The first ones are there only with the last, so in the schedule nobody may send them on before
that has arrived: what is cut into pieces to be forwarded piece by piece stays so. All the same it costs overlap, as a
message of several pieces takes one way only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.exchange.lowering.moving import RECEIVE, SEND, Acts
from synth.exchange.lowering.ordering import READS, WRITES
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
    base = np.concatenate([[0], np.cumsum(buffer_chunks.reshape(-1))])[:-1].reshape(buffer_chunks.shape)
    src = base[done.rank, done.src_buffer] + done.src_offset
    dst = base[done.rank, done.dst_buffer] + done.dst_offset
    new_src, new_dst, count = src.copy(), dst.copy(), done.count.copy()
    kept = np.ones(len(done), dtype=bool)
    touched, written = np.full((2, int(buffer_chunks.sum())), -1, dtype=np.int32)
    _join(
        done.move, done.role, done.kind, done.src_buffer, done.dst_buffer, src, dst, connection, t.start_s, t.end_s,
        _sent_on(t), READS, WRITES, touched, written, most_count, new_src, new_dst, count, kept,
    )  # fmt: skip
    src_offset = (done.src_offset + new_src - src).astype(np.int32)
    dst_offset = (done.dst_offset + new_dst - dst).astype(np.int32)
    rows = replace(done, src_offset=src_offset, dst_offset=dst_offset, count=count).taken(kept)
    moves = np.unique(rows.move[rows.role == SEND])
    number = np.searchsorted(moves, rows.move)
    return (
        t.taken(moves),
        replace(
            rows,
            move=np.where(rows.move >= 0, number, -1).astype(np.int32),
            place=np.where(rows.place >= 0, np.searchsorted(moves, rows.place), -1).astype(np.int32),
        ),
        lane[moves],
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


@jit
def _join(
    move: Any,
    role: Any,
    kind: Any,
    src_buffer: Any,
    dst_buffer: Any,
    src: Any,
    dst: Any,
    connection: IntArray,
    start: FloatArray,
    end: FloatArray,
    sent_on: FloatArray,
    reads: Any,
    writes: Any,
    touched: Any,
    written: Any,
    most: int,
    new_src: Any,
    new_dst: Any,
    count: Any,
    kept: Any,
) -> None:
    """Change ``new_src``, ``new_dst``, ``count``, ``kept``. ``touched``, ``written``: the last act that did, for every
    chunk of memory. The receive of a send is the act behind it."""
    last = np.full(connection.max() + 1, -1, dtype=np.int64)
    needed = np.zeros(len(last), dtype=np.float64)  # when what the last step brings is first sent on
    ready = np.zeros(len(last), dtype=np.int64)  # what it may read was written by acts before this one
    first = x = 0
    while x < len(move):
        if role[x] != SEND:
            _stamp(x, x, kind, src, dst, count[x], reads, writes, touched, written)
            x += 1
            continue
        y, c, size = x + 1, connection[move[x]], count[x]
        if x == 0 or start[move[x]] != start[move[first]] or role[first] != SEND:
            first = x  # of this moment: what arrives in it is there only after its sends
        assert role[y] == RECEIVE
        assert move[y] == move[x]
        a = last[c]
        b = a + 1
        fits = a >= 0 and end[move[x]] <= needed[c] and count[a] + size <= most and kind[b] == kind[y]
        fits = fits and src_buffer[a] == src_buffer[x] and dst_buffer[b] == dst_buffer[y]
        adds = reads[kind[y]]
        fits = fits and (not adds or src_buffer[b] == src_buffer[y])
        up = src[x] == new_src[a] + count[a] and dst[y] == new_dst[b] + count[b]
        up = up and (not adds or src[y] == new_src[b] + count[b])
        down = src[x] + size == new_src[a] and dst[y] + size == new_dst[b]
        down = down and (not adds or src[y] + size == new_src[b])
        fits = fits and (up or down)
        for k in range(size):
            if not fits:
                break
            fits = written[src[x] + k] < ready[c] and touched[dst[y] + k] < b
            if fits and adds:
                fits = written[src[y] + k] < b
        if fits:
            kept[x] = kept[y] = False
            count[a] += size
            count[b] += size
            if not up:
                new_src[a], new_dst[a], new_dst[b] = src[x], new_dst[a] - size, dst[y]
                new_src[b] -= size
            needed[c] = min(needed[c], sent_on[move[x]])
        else:
            a, b = x, y
            last[c], needed[c], ready[c] = x, sent_on[move[x]], first
        _stamp(x, a, kind, src, dst, size, reads, writes, touched, written)
        _stamp(y, b, kind, src, dst, size, reads, writes, touched, written)
        x += 2


@jit
def _stamp(
    x: int,
    as_act: int,
    kind: Any,
    src: Any,
    dst: Any,
    size: Any,
    reads: Any,
    writes: Any,
    touched: Any,
    written: Any,
) -> None:
    """Note what act x reads and writes, as if done by the act ``as_act``."""
    for k in range(size):
        if reads[kind[x]]:
            touched[src[x] + k] = max(touched[src[x] + k], as_act)
        if writes[kind[x]]:
            touched[dst[x] + k] = max(touched[dst[x] + k], as_act)
            written[dst[x] + k] = max(written[dst[x] + k], as_act)
