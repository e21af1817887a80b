"""A receive and the send of the same data behind it as one step: data that only passes is not read again.

``r`` and ``s`` become ``rcs``, ``rrc`` and ``s`` become ``rrcs``, or ``rrs`` where nobody needs the sum here. The two
must lie in one thread block, so that of a rank and channel the peers that send the most of what goes on to one peer are
paired with it. The send then happens where the receive is, earlier than before; what the block sent before it must
stand before that place too, and every wait is still for something earlier, so nothing can wait for itself. A connection
has to hold a message now, though, as all executors' do.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.exchange.algorithm import KINDS
from synth.exchange.lowering.buffers import SCRATCH
from synth.exchange.lowering.channels import Blocks
from synth.exchange.lowering.dependences import Touching, touching
from synth.exchange.lowering.rank_steps import RECEIVE, SEND, Acts, R
from synth.exchange.transfers import Transfers
from synth.kernels import jit

KIND_RE = KINDS.index("re")
RCS, RRCS, RRS = (KINDS.index(kind) for kind in ("rcs", "rrcs", "rrs"))


def by_time(t: Transfers, done: Acts) -> Acts:
    """The acts by the start of their moves, of one moment local ones first, then sends, then receives: so that a block
    sends what it has before it receives what it gets meanwhile."""
    moment = np.unique(t.start_s, return_inverse=True)[1].reshape(-1)
    when = np.full(len(done), -1, dtype=np.int64)
    late = done.place >= len(t.piece)
    inner = (done.place >= 0) & ~late
    when[inner] = moment[done.place[inner]]
    when[late] = len(moment)
    phase = np.array([1, 2, 0])[done.role]
    return done.taken(np.lexsort((phase, when)))


def fused(done: Acts, made: Blocks, buffer_chunks: IntArray) -> tuple[Acts, Blocks]:
    """The acts in time order (:func:`by_time`) with what can be one step as one, and the blocks of those."""
    by_rank = np.argsort(done.rank, kind="stable")
    rows = done.taken(by_rank)
    block = made.of[by_rank]
    came, last_use = _just_came(touching(rows, buffer_chunks))
    sends = np.flatnonzero(came >= 0)
    sends = sends[made.channel[block[sends]] == made.channel[block[came[sends]]]]
    partner = _paired(block[came[sends]], block[sends], len(made.rank))
    merged = np.where((partner >= 0) & (made.send >= 0), partner, np.arange(len(made.rank)))
    fits = np.zeros(len(rows), dtype=bool)
    fits[sends] = partner[block[sends]] == block[came[sends]]
    one = _chosen(merged[block], rows.role, np.where(fits, came, -1), len(made.rank))
    gone = np.flatnonzero(one)
    at = came[gone]
    kind = rows.kind.copy()
    passes = (rows.dst_buffer[at] == SCRATCH) & (last_use[at] == gone)
    kind[at] = np.where(kind[at] == R, RCS, np.where(passes, RRS, RRCS))
    dst_buffer, dst_offset = rows.dst_buffer.copy(), rows.dst_offset.copy()
    nothing = at[kind[at] == RRS]
    dst_buffer[nothing], dst_offset[nothing] = rows.src_buffer[nothing], rows.src_offset[nothing]
    left = replace(rows, kind=kind, dst_buffer=dst_buffer, dst_offset=dst_offset).taken(~one)
    used, of = np.unique(merged[block[~one]], return_inverse=True)
    send = np.full(len(made.rank), -1, dtype=np.int64)
    sending = made.send >= 0
    send[merged[sending]] = made.send[sending]
    new = Blocks(of.reshape(-1), made.rank[used], send[used], made.recv[used], made.channel[used])
    return _compact(left), new


def _paired(receives: IntArray, sends: IntArray, count: int) -> IntArray:
    """For every block that sends the one that receives whose data it sends on most, each taken once; -1 for none."""
    found, taken = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=bool)
    pairs, often = np.unique(receives * count + sends, return_counts=True)
    for k in np.argsort(-often, kind="stable").tolist():
        recv, send = divmod(int(pairs[k]), count)
        if found[send] < 0 and not taken[recv]:
            found[send], taken[recv] = recv, True
    return found


@jit
def _just_came(rows: Touching) -> tuple[IntArray, IntArray]:
    """For every send the receive that brought just what it sends, if nothing has touched that since, else -1; for every
    receive the last act that reads what it brought before that is written again."""
    start, role, kind, src_buffer, src_offset, dst_buffer, dst_offset, count, reads, writes, base = rows
    came = np.full(len(kind), -1, dtype=np.int64)
    last_use = np.full(len(kind), -1, dtype=np.int64)
    for r in range(len(start) - 1):
        touched = np.full(base[r, 3], -1, dtype=np.int64)
        writer = np.full(base[r, 3], -1, dtype=np.int64)
        for x in range(start[r], start[r + 1]):
            if reads[kind[x]]:
                c0 = base[r, src_buffer[x]] + src_offset[x]
                y = touched[c0]
                alike = role[x] == SEND and y >= 0 and role[y] == RECEIVE and count[y] == count[x]
                if alike and dst_buffer[y] == src_buffer[x] and dst_offset[y] == src_offset[x]:
                    came[x] = y
                    for c in range(c0, c0 + count[x]):
                        if touched[c] != y:
                            came[x] = -1
                for c in range(c0, c0 + count[x]):
                    touched[c] = x
                    if writer[c] >= 0:
                        last_use[writer[c]] = x
            if writes[kind[x]]:
                c0 = base[r, dst_buffer[x]] + dst_offset[x]
                for c in range(c0, c0 + count[x]):
                    if writer[c] >= 0 and kind[x] == KIND_RE:
                        last_use[writer[c]] = x
                    touched[c] = x
                    writer[c] = x
    return came, last_use


@jit
def _chosen(block: IntArray, role: Int32Array, came: IntArray, blocks: int) -> BoolArray:
    """Which sends become one step with the receive that brought their data: in every block receives keep their order,
    sends keep theirs, and no send that stays alone has to move up."""
    one = np.zeros(len(block), dtype=np.bool_)
    alone = np.full(blocks, -1, dtype=np.int64)  # the last send that stays alone
    joined = np.full(blocks, -1, dtype=np.int64)  # the last receive that is joined
    for x in range(len(block)):
        if role[x] != SEND:
            continue
        b, y = block[x], came[x]
        if y >= 0 and alone[b] < y and joined[b] < y:
            one[x] = True
            joined[b] = y
        else:
            alone[b] = x
    return one


def _compact(done: Acts) -> Acts:
    """Without the places in the scratch buffer that nobody uses any more."""
    first = np.concatenate([[0], np.cumsum(done.scratch)])
    ends = (done.src_buffer == SCRATCH, done.src_offset), (done.dst_buffer == SCRATCH, done.dst_offset)
    begins = [first[done.rank[there]] + offset[there] for there, offset in ends]
    more = np.zeros(first[-1] + 1, dtype=np.int64)  # by how many acts more a place is used than the one before it
    for (there, _), at in zip(ends, begins, strict=True):
        more += np.bincount(at, minlength=len(more)) - np.bincount(at + done.count[there], minlength=len(more))
    kept = np.concatenate([[0], np.cumsum(np.cumsum(more[:-1]) > 0)])  # places before each that are used
    offsets = []
    for (there, offset), at in zip(ends, begins, strict=True):
        offsets.append(offset.copy())
        offsets[-1][there] = kept[at] - kept[first[done.rank[there]]]
    return replace(done, src_offset=offsets[0], dst_offset=offsets[1], scratch=np.diff(kept[first]))
