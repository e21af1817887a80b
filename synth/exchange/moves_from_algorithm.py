"""From an algorithm back to moves of pieces: what its messages carry, and what each of them waits for.

The inverse of lowering. A chunk that a message carries is a piece; a partial sum that it carries is added where it
arrives. What is done within a rank (copies, reductions, scratch) is gone: it takes no time here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import InputError
from synth.exchange import contents, order, places, validity
from synth.exchange.algorithm import Algorithm
from synth.exchange.contents import Contents
from synth.exchange.places import RECEIVING, SENDING, Steps
from synth.exchange.transfers import Transfers
from synth.kernels import jit
from synth.schedule.collective import REDUCING


@dataclass(frozen=True)
class Raised:
    """``transfers``, whose times are logical: the length of the longest chain of waits that ends with the send, with
    the receive. ``wait[wait_start[i]:wait_start[i + 1]]``: transfers that must have arrived where transfer i starts
    because the thread blocks' order and dependences say so: the last ones of every connection."""

    transfers: Transfers
    wait_start: IntArray
    wait: IntArray


def raised(algorithm: Algorithm, part_bytes: int) -> Raised:
    """The moves of an algorithm on parts of ``part_bytes`` bytes, one transfer a chunk of a message.

    Raises :class:`InputError` for an algorithm that is not valid, for parts smaller than their chunks, and where a
    message carries what no piece is (a spoilt sum that nobody uses).
    """
    a = algorithm
    verdict = validity.check(a)
    if verdict.faults:
        raise InputError(verdict.faults)
    if part_bytes < a.chunks:
        raise InputError(f"a part of {part_bytes} bytes cannot be cut into {a.chunks} chunks")
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
    )
    number = np.full(a.steps, -1, dtype=np.int64)
    number[recv] = np.arange(len(recv))
    wait_start, wait = _waits(a, steps, waits, sequence, send, number)
    return Raised(transfers, *_spread(wait_start, wait, first))


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
) -> tuple[IntArray, IntArray]:
    """For every message, in the order of ``send``, the last messages of each thread block that its send waits for
    within its rank, as rows. ``number``: of the message that a step receives, -1 for none."""
    tb_first = np.searchsorted(a.tb_rank, np.arange(a.ranks + 1)).astype(np.int64)
    place = np.full(a.steps, -1, dtype=np.int64)
    place[send] = np.arange(len(send))
    size, found = _last_received(
        sequence, steps.rank, tb_first, steps.number, waits.same, waits.dep, RECEIVING[a.kind], SENDING[a.kind], number
    )
    rows = np.zeros(len(send), dtype=np.int64)
    sending = sequence[SENDING[a.kind[sequence]]]
    rows[place[sending]] = size
    start = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    begin = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)[:-1]
    back = np.zeros(len(send), dtype=np.int64)
    back[place[sending]] = begin
    return start, found[np.repeat(back - start[:-1], rows) + np.arange(start[-1])]


@jit
def _last_received(
    sequence: IntArray,
    rank: IntArray,
    tb_first: IntArray,
    number: IntArray,
    same: IntArray,
    dep: IntArray,
    receiving: BoolArray,
    sending: BoolArray,
    message: IntArray,
) -> tuple[IntArray, IntArray]:
    """For every step that sends, in the order of ``sequence``, how many messages it waits for, and all of them."""
    width = 1
    for r in range(len(tb_first) - 1):
        width = max(width, tb_first[r + 1] - tb_first[r])
    last = np.full((len(same), width), -1, dtype=np.int64)
    size = np.zeros(len(same), dtype=np.int64)
    sends, total = 0, 0
    for k in range(len(sequence)):
        i = sequence[k]
        for rows in (same, dep):
            j = rows[i]
            if j >= 0:
                for t in range(width):  # of one thread block, the message with the later number came later
                    last[i, t] = max(last[i, t], last[j, t])
        if receiving[i]:
            last[i, number[i]] = message[i]
        if sending[i]:
            for t in range(width):
                size[sends] += last[i, t] >= 0
            total += size[sends]
            sends += 1
    found = np.zeros(total, dtype=np.int64)
    at = 0
    for k in range(len(sequence)):
        i = sequence[k]
        if sending[i]:
            for t in range(width):
                if last[i, t] >= 0:
                    found[at] = last[i, t]
                    at += 1
    return size[:sends], found


def _spread(start: IntArray, wait: IntArray, first: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of messages as rows of transfers: every chunk of a message waits for the last chunks of the others, which
    come after the first ones."""
    count, lengths = np.diff(first), np.diff(start)
    repeated = np.repeat(lengths, count)
    rows = np.concatenate([[0], np.cumsum(repeated)]).astype(np.int64)
    last = first[wait + 1] - 1
    found: IntArray = last[np.repeat(np.repeat(start[:-1], count) - rows[:-1], repeated) + np.arange(rows[-1])]
    return rows, found
