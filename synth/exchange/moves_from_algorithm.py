"""From an algorithm back to moves of pieces: what its messages carry, and what each of them waits for.

The inverse of lowering. A chunk that a message carries is a piece; a partial sum that it carries is added where it
arrives. What is done within a rank (copies, reductions, scratch) is gone: it takes no time here.

An executor of MSCCL XML runs the whole algorithm several times over where a chunk is larger than its buffers take, each
time on a slice of every chunk (:func:`passes_of`). A thread block goes on to its next pass on its own, so that chunks
follow each other through the algorithm like water.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import InputError
from synth.exchange import contents, order, places, validity
from synth.exchange.algorithm import Algorithm
from synth.exchange.contents import Contents
from synth.exchange.places import RECEIVING, SENDING, Steps
from synth.exchange.transfers import Raised, Transfers
from synth.kernels import jit
from synth.schedule.collective import REDUCING

SLICE_BYTES = 2**21  # of a chunk in one pass: NCCL's buffer of 4 MiB has 8 steps, and protocol Simple takes 4 a chunk
MOST_PASSES, MOST_MOVES = 512, 120_000  # that are followed; slices are larger where there would be more


def passes_of(algorithm: Algorithm, part_bytes: int) -> int:
    """How many passes the loop of an MSCCL executor makes over parts of ``part_bytes`` bytes (``mscclRunInterpreter``
    of its ``msccl_kernel_impl.h``: slices of ``MSCCL_CHUNKSTEPS`` steps of its buffer); fewer, of larger slices, where
    they would be more than :data:`MOST_PASSES` or :data:`MOST_MOVES` moves."""
    a = algorithm
    moves = max(int(a.count[SENDING[a.kind]].sum()), 1)
    slices = -(-part_bytes // (a.chunks * SLICE_BYTES))
    return min(slices, MOST_PASSES, max(MOST_MOVES // moves, 1), max(part_bytes // a.chunks, 1))


def raised(algorithm: Algorithm, part_bytes: int, passes: int = 1, checked: bool = False) -> Raised:
    """The moves of an algorithm on parts of ``part_bytes`` bytes, one transfer a chunk of a message and pass.

    ``checked``: the algorithm has passed :func:`synth.exchange.validity.check` before. Raises :class:`InputError` for
    an algorithm that is not valid, for parts smaller than their chunks, and where a message carries what no piece is (a
    spoilt sum that nobody uses).

    The transfers' times are logical: the length of the longest chain of waits that ends with the send, with the
    receive. A transfer waits for the last ones of every connection.
    """
    a = algorithm
    faults = () if checked else validity.check(a).faults
    if faults:
        raise InputError(faults)
    if part_bytes < a.chunks * passes:
        times = f" {passes} times over" if passes > 1 else ""
        raise InputError(f"a part of {part_bytes} bytes cannot be cut into {a.chunks} chunks{times}")
    steps = places.steps(a)
    messages = order.messages(a, steps)
    waits = order.before(a, steps, messages)
    sequence, level = order.sequence(waits)
    nothing = np.zeros(a.steps, dtype=bool)
    ran = contents.run(a, steps, places.cells(a), waits, sequence, nothing)
    turn = np.zeros(a.steps, dtype=np.int64)
    turn[sequence] = np.arange(a.steps)
    by_time = np.argsort(turn[messages.send], kind="stable")
    send, recv = messages.send[by_time], messages.recv[by_time]
    count = a.count[send]
    first = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    at = np.repeat(ran.sent_start[send] - first[:-1], count) + np.arange(first[-1])
    part, chunk, adds = _named(a, ran, ran.sent[at].astype(np.int64))
    pieces, piece = _pieces(a, part, chunk, part_bytes)
    transfers = Transfers(
        name=a.name,
        collective=a.collective,
        ranks=a.ranks,
        root=a.root,
        part_bytes=part_bytes,
        piece_part=pieces["piece_part"],
        piece_offset=pieces["piece_offset"],
        piece_bytes=pieces["piece_bytes"],
        piece=piece,
        src=np.repeat(steps.rank[send], count),
        dst=np.repeat(steps.rank[recv], count),
        adds=adds,
        start_s=np.repeat(level[send], count).astype(np.float64),
        end_s=np.repeat(level[recv], count).astype(np.float64),
        channel_hint=np.repeat(a.tb_channel[steps.block[send]], count),
        wants=None if a.wants is None else a.wants * part_bytes // a.chunks,
    )
    number = np.full(a.steps, -1, dtype=np.int64)
    number[recv] = np.arange(len(recv))
    rows = _waits(a, steps, waits, sequence, send, number)
    once = Raised(transfers, *_spread(rows.start, rows.wait, first))
    if passes == 1:
        return once
    return repeated(once, _behind(rows, steps.block[send], first), passes)


class _Rows(NamedTuple):
    """``wait[start[i]:start[i + 1]]``: the messages that message i waits for; likewise ``end_wait`` by ``end_start``
    those that the last step of every thread block waits for, itself included."""

    start: IntArray
    wait: IntArray
    end_start: IntArray
    end_wait: IntArray


def _behind(rows: _Rows, block: IntArray, first: IntArray) -> tuple[IntArray, IntArray]:
    """For every transfer, as rows, the transfers of the pass before that must have arrived: those that the thread block
    that sends it (``block`` of every message) has waited for by its end."""
    lengths = np.diff(rows.end_start)[block]
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    at = np.repeat(rows.end_start[:-1][block] - start[:-1], lengths) + np.arange(start[-1])
    return _spread(start, rows.end_wait[at], first)


def repeated(once: Raised, behind: tuple[IntArray, IntArray], passes: int) -> Raised:
    """The moves of all passes, one pass after the other, each on its slice of every piece. ``behind``: for every
    transfer, as rows (start, transfers), those of the pass before that must have arrived."""
    t, count = once.transfers, len(once.transfers.piece)
    turn = np.arange(passes, dtype=np.int64)
    edges = t.piece_offset[:, None] + t.piece_bytes[:, None] * np.arange(passes + 1) // passes
    moves = np.repeat(turn, count)
    height = float(t.end_s.max(initial=0)) + 1
    repeated = replace(
        t,
        piece_part=np.repeat(t.piece_part, passes),
        piece_offset=edges[:, :-1].reshape(-1),
        piece_bytes=np.diff(edges, axis=1).reshape(-1),
        piece=np.tile(t.piece, passes) * passes + moves,
        src=np.tile(t.src, passes),
        dst=np.tile(t.dst, passes),
        adds=np.tile(t.adds, passes),
        start_s=np.tile(t.start_s, passes) + moves * height,
        end_s=np.tile(t.end_s, passes) + moves * height,
        channel_hint=np.tile(t.channel_hint, passes),
        together=None if t.together is None else _by_pass(t.together, passes),
        ticks=None,
    )
    inner, outer = np.diff(once.wait_start), np.diff(behind[0])
    later = _merged((once.wait_start, once.wait), (behind[0], behind[1] - count))
    lengths = np.concatenate([inner, np.tile(inner + outer, passes - 1)])
    wait = np.concatenate([once.wait, *(later + k * count for k in range(1, passes))])
    block = None if once.block is None else np.tile(once.block, passes)
    return Raised(repeated, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), wait, block, once.packets)


def _by_pass(together: IntArray, passes: int) -> IntArray:
    """The streams of all passes, each pass with numbers of its own; shape (passes * transfers,)."""
    several = np.tile(together, (passes, 1))
    beyond = np.arange(passes)[:, None] * (int(together.max(initial=0)) + 1)
    found: IntArray = np.where(several < 0, several, several + beyond).reshape(-1)
    return found


def _merged(first: tuple[IntArray, IntArray], then: tuple[IntArray, IntArray]) -> IntArray:
    """The entries of two sets of rows, those of a row behind each other."""
    row = np.concatenate([np.repeat(np.arange(len(start) - 1), np.diff(start)) for start, _ in (first, then)])
    found: IntArray = np.concatenate([first[1], then[1]])[np.argsort(row, kind="stable")]
    return found


def _named(a: Algorithm, ran: Contents, held: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Part, chunk of the part, and whether it is a partial sum, of contents."""
    row = np.clip(held - ran.sums, 0, None)
    is_sum = held >= ran.sums
    if np.any(is_sum & (ran.row_cause[row] != 0)):
        step = int(ran.row_step[row[is_sum & (ran.row_cause[row] != 0)][0]])
        raise InputError(f"{places.place(a, step)} makes a sum that is none, and it is sent on")
    origin = np.where(is_sum, 0, (held - 1) // ran.chunks)
    chunk = np.where(is_sum, ran.row_chunk[row], (held - 1) % ran.chunks)
    complete = contents.complete(a, ran, held)
    adds = ~complete if a.collective in REDUCING else np.zeros(len(held), dtype=bool)
    inner, outer = chunk % a.chunks, chunk // a.chunks
    part = {
        "allgather": origin,
        "gather": origin,
        "reduce_scatter": outer,
        "scatter": outer,
        "alltoall": origin * a.ranks + outer,
    }.get(a.collective, np.zeros(len(held), dtype=np.int64))
    return part, inner, adds


def _pieces(a: Algorithm, part: IntArray, chunk: IntArray, size: int) -> tuple[dict[str, IntArray], IntArray]:
    """The pieces of all parts that move, as a chunk each, and the piece of every transfer."""
    parts, at = np.unique(part, return_inverse=True)
    offset = np.array([size * c // a.chunks for c in range(a.chunks + 1)], dtype=np.int64)
    found = {
        "piece_part": np.repeat(parts, a.chunks).astype(np.int64),
        "piece_offset": np.tile(offset[:-1], len(parts)),
        "piece_bytes": np.tile(np.diff(offset), len(parts)),
    }
    return found, (at.reshape(-1) * a.chunks + chunk).astype(np.int64)


def _waits(
    a: Algorithm, steps: Steps, waits: order.Before, sequence: IntArray, send: IntArray, number: IntArray
) -> _Rows:
    """For every message, in the order of ``send``, the last messages of each thread block that its send waits for
    within its rank, as rows; likewise for the end of every thread block. ``number``: of the message that a step
    receives, -1 for none."""
    tb_first = np.searchsorted(a.tb_rank, np.arange(a.ranks + 1)).astype(np.int64)
    ends = a.step_start[1:] - 1
    ends = ends[a.step_start[1:] > a.step_start[:-1]]
    asked = SENDING[a.kind].copy()
    asked[ends] = True
    size, found = _last_received(
        sequence, steps.rank, tb_first, steps.number, waits.same, waits.dep, RECEIVING[a.kind], asked, number
    )
    asking = sequence[asked[sequence]]
    length, begin = np.zeros((2, a.steps), dtype=np.int64)
    length[asking], begin[asking] = size, np.cumsum(size) - size

    def rows(at: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
        start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return start, found[np.repeat(begin[at] - start[:-1], lengths) + np.arange(start[-1])]

    start, wait = rows(send, length[send])
    last = np.full(len(a.tb_rank), 0, dtype=np.int64)
    filled = np.flatnonzero(np.diff(a.step_start))
    last[filled] = ends
    lengths = np.zeros(len(a.tb_rank), dtype=np.int64)
    lengths[filled] = length[ends]
    return _Rows(start, wait, *rows(last, lengths))


@jit
def _last_received(
    sequence: IntArray,
    rank: IntArray,
    tb_first: IntArray,
    number: IntArray,
    same: IntArray,
    dep: IntArray,
    receiving: BoolArray,
    asked: BoolArray,
    message: IntArray,
) -> tuple[IntArray, IntArray]:
    """For every step that is ``asked`` for, in the order of ``sequence``, how many messages it waits for, its own
    included, and all of them."""
    width = 1
    for r in range(len(tb_first) - 1):
        width = max(width, tb_first[r + 1] - tb_first[r])
    last = np.full((len(same), width), -1, dtype=np.int64)
    size = np.zeros(len(same), dtype=np.int64)
    asks, total = 0, 0
    for k in range(len(sequence)):
        i = sequence[k]
        for rows in (same, dep):
            j = rows[i]
            if j >= 0:
                for t in range(width):  # of one thread block, the message with the later number came later
                    last[i, t] = max(last[i, t], last[j, t])
        if receiving[i]:
            last[i, number[i]] = message[i]
        if asked[i]:
            for t in range(width):
                size[asks] += last[i, t] >= 0
            total += size[asks]
            asks += 1
    found = np.zeros(total, dtype=np.int64)
    at = 0
    for k in range(len(sequence)):
        i = sequence[k]
        if asked[i]:
            for t in range(width):
                if last[i, t] >= 0:
                    found[at] = last[i, t]
                    at += 1
    return size[:asks], found


def _spread(start: IntArray, wait: IntArray, first: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of messages as rows of transfers: every chunk of a message waits for the last chunks of the others, which
    come after the first ones."""
    count, lengths = np.diff(first), np.diff(start)
    repeated = np.repeat(lengths, count)
    rows = np.concatenate([[0], np.cumsum(repeated)]).astype(np.int64)
    last = first[wait + 1] - 1
    found: IntArray = last[np.repeat(np.repeat(start[:-1], count) - rows[:-1], repeated) + np.arange(rows[-1])]
    return rows, found
