"""From an algorithm for an executor to the ranks' programs: a stream a thread block, its steps in order.

A step that does several things becomes several operations: ``rrs``, for one, copies what it adds to into a place of the
thread block's own, adds what it receives, and sends that on. A send's words are copied out when it is done, as an
executor's connection does, however many it holds; whether messages match and buffers are complete shows in the run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import InputError
from synth.exchange import order, places, validity
from synth.exchange.algorithm import BUFFERS, KINDS, Algorithm
from synth.exchange.places import Cells, Steps
from synth.ranks.goals import Goals, goals_of
from synth.ranks.program import (
    ADD,
    COPY,
    NOTHING,
    RECEIVE,
    RECEIVE_ADD,
    SEND,
    Messages,
    Program,
    Regions,
    places_among_equals,
)

SRC, DST, OWN = range(3)  # where an operation's words are: the step's source, its destination, the thread block's place
# what a step of every kind does, in order: the operation, where it writes (SEND: reads), where COPY and ADD read
OPERATIONS = {
    "s": [(SEND, SRC, SRC)],
    "r": [(RECEIVE, DST, DST)],
    "cpy": [(COPY, DST, SRC)],
    "re": [(ADD, DST, SRC)],
    "rrc": [(COPY, DST, SRC), (RECEIVE_ADD, DST, DST)],
    "rcs": [(RECEIVE, DST, DST), (SEND, DST, DST)],
    "rrs": [(COPY, OWN, SRC), (RECEIVE_ADD, OWN, OWN), (SEND, OWN, OWN)],
    "rrcs": [(COPY, DST, SRC), (RECEIVE_ADD, DST, DST), (SEND, DST, DST)],
    "nop": [(NOTHING, SRC, SRC)],
}
MOST_WORDS = 2**33


def program_of(algorithm: Algorithm, words: int = 1) -> tuple[Program, IntArray]:
    """The ranks' programs with ``words`` words a chunk, and the step of every operation, shape (operations,). Raises
    :class:`InputError` for an algorithm whose numbers name nothing; nothing else of it is looked at."""
    a = algorithm
    if faults := validity.form_faults(a):
        raise InputError(faults)
    where, steps = places.cells(a), places.steps(a)
    base = where.base - where.base.min(axis=1, keepdims=True)
    size = _sizes(where, a)
    table = [OPERATIONS[KINDS[kind]] for kind in a.kind.tolist()]
    step = np.repeat(np.arange(a.steps), [len(one) for one in table]).astype(np.int64)
    kind, at, source = np.array([row for one in table for row in one], dtype=np.int64).reshape(-1, 3).T.copy()
    first = np.searchsorted(step, np.arange(a.steps + 1)).astype(np.int64)
    own, size = _own_places(a, steps, size)
    place = np.stack([
        base[steps.rank, a.src_buffer] + a.src_offset, base[steps.rank, a.dst_buffer] + a.dst_offset, own[steps.block]
    ])  # fmt: skip
    message, messages = _messages(a, steps, words)
    slot = size[messages.src] * words + _placed(messages.src, messages.count)
    total = size * words + np.bincount(messages.src, messages.count, a.ranks).astype(np.int64)
    if int(total.sum()) > MOST_WORDS:
        raise InputError(f"{int(total.sum()):,} words are too many to be run")
    sends, receives = kind == SEND, (kind == RECEIVE) | (kind == RECEIVE_ADD)
    waits_for = order.before(a, steps, order.Messages(*(np.zeros(0, dtype=np.int64),) * 4)).dep[step]
    goals, part = goals_of(a.collective, a.ranks, a.root), Parts(a.collective, a.ranks, a.chunks, a.wants)
    program = Program(
        name=a.name, collective=a.collective, ranks=a.ranks, goals=goals, words=total,
        stream_rank=a.tb_rank, stream_start=first[a.step_start],
        kind=kind, at=place[at, step] * words, source=place[source, step] * words, count=a.count[step] * words,
        message=np.where(sends, message[0][step], np.where(receives, message[1][step], -1)),
        after=np.where((step != np.roll(step, 1)) & (waits_for >= 0), first[waits_for + 1] - 1, -1),
        wait_start=np.zeros(len(step) + 1, dtype=np.int64), wait=np.zeros(0, dtype=np.int64),
        messages=replace(messages, slot=slot),
        begins=regions(part, base, words, goals, ends=False), ends=regions(part, base, words, goals, ends=True),
    )  # fmt: skip
    return program, step


def _sizes(where: Cells, a: Algorithm) -> IntArray:
    """Chunks of every rank's buffers together."""
    begin = where.base.min(axis=1)
    return np.diff(np.concatenate([begin, [where.total]])).astype(np.int64)


def _own_places(a: Algorithm, steps: Steps, size: IntArray) -> tuple[IntArray, IntArray]:
    """The place of every thread block's own, in chunks, and the ranks' sizes with them."""
    needed = np.zeros(len(a.tb_rank), dtype=np.int64)
    adds = a.kind == KINDS.index("rrs")
    np.maximum.at(needed, steps.block[adds], a.count[adds])
    return size[a.tb_rank] + _placed(a.tb_rank, needed), size + np.bincount(a.tb_rank, needed, a.ranks).astype(np.int64)


def _placed(rank: IntArray, count: IntArray) -> IntArray:
    """Places one after the other on every rank."""
    by_rank = np.argsort(rank, kind="stable")
    total = np.cumsum(count[by_rank]) - count[by_rank]
    first = np.searchsorted(rank[by_rank], rank[by_rank])
    found = np.empty(len(rank), dtype=np.int64)
    found[by_rank] = total - total[first] if len(rank) else total
    return found


def _messages(a: Algorithm, steps: Steps, words: int) -> tuple[IntArray, Messages]:
    """The messages, one a send, and of every step the message that it sends and the one that it receives, shape
    (2, steps): the k-th receive of a connection takes its k-th send, -1 where there is none."""
    found = order.messages(a, steps)
    of = np.full((2, a.steps), -1, dtype=np.int64)
    by_step = np.sort(found.send)
    of[0, by_step] = np.arange(len(by_step))
    at = [places_among_equals(key) for key in (found.send_key, found.recv_key)]
    sent = {
        (key, k): step
        for key, k, step in zip(found.send_key.tolist(), at[0].tolist(), found.send.tolist(), strict=True)
    }
    for key, k, step in zip(found.recv_key.tolist(), at[1].tolist(), found.recv.tolist(), strict=True):
        of[1, step] = of[0, sent[key, k]] if (key, k) in sent else -1
    src, dst = steps.rank[by_step], a.tb_send[steps.block[by_step]]
    copied = np.ones(len(by_step), dtype=bool)
    count = a.count[by_step] * words
    return of, Messages(src, dst, count, np.zeros_like(src), copied, by_step, places_among_equals(src, dst))


class Parts(NamedTuple):
    """The parts of a collective among ``ranks``, of ``chunks`` each, and how many of each are to arrive (``wants``,
    None: all)."""

    collective: str
    ranks: int
    chunks: int
    wants: IntArray | None = None


def regions(parts: Parts, base: IntArray, words: int, goals: Goals, ends: bool) -> Regions:
    """The chunks of all inputs, or of all outputs, which begin at ``base`` (by rank, input and output); the number of a
    chunk in its part is its piece. Of outputs only the chunks that are to arrive are there."""
    collective, ranks, chunks, wants = parts
    rows = []
    owner = goals.goal if ends else goals.origin
    for rank in range(ranks):
        mine = np.flatnonzero((owner == rank) | (owner < 0))
        several = _spread(collective, ends)
        if collective == "alltoall":
            place = mine // ranks if ends else mine % ranks
        else:
            place = mine if several else np.zeros_like(mine)
        chunk = np.tile(np.arange(chunks), len(mine))
        at = base[rank, 1 if ends else 0] + np.repeat(place * chunks, chunks) + chunk
        part = np.repeat(mine, chunks)
        found = np.stack([np.full(len(at), rank), at * words, np.full(len(at), words), part, chunk * words, chunk])
        kept = np.argsort(at, kind="stable")
        rows.append(found[:, kept if wants is None or not ends else kept[chunk[kept] < wants[part[kept]]]])
    return Regions(*np.concatenate(rows, axis=1).astype(np.int64))


def _spread(collective: str, ends: bool) -> bool:
    """Whether a buffer holds all parts one after the other."""
    return collective in (("allgather", "gather") if ends else ("reduce_scatter", "scatter"))


class StepNames:
    """What steps and chunks are called."""

    def __init__(self, algorithm: Algorithm, step: IntArray) -> None:
        self.algorithm, self.step = algorithm, step

    def message(self, number: int) -> str:
        return places.place(self.algorithm, number)

    def operation(self, number: int) -> str:
        return places.place(self.algorithm, int(self.step[number])) if number >= 0 else ""

    def region(self, piece: int, part: int) -> str:
        return f"chunk {piece} of part {part} in its output {BUFFERS[1]}"
