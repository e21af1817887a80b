"""What must have happened before what: program order, dependences, messages.

The k-th send and the k-th receive over one (sender, receiver, channel) are the two ends of one message. A step starts
after the step before it in its thread block, after the step that it depends on, and, where it receives, after the send
of its message. Everything here is linear in the steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.exchange.algorithm import Algorithm
from synth.exchange.places import RECEIVING, SENDING, Steps
from synth.kernels import jit


@dataclass(frozen=True)
class Messages:
    """``send`` and ``recv``: steps, sorted by connection and order, shape (sends,) and (receives,);
    ``send_key`` and ``recv_key``: rows (sender, receiver, channel) as one number each, the same for both ends."""

    send: IntArray
    recv: IntArray
    send_key: IntArray
    recv_key: IntArray

    @property
    def matched(self) -> bool:
        """Whether every send has its receive."""
        return np.array_equal(self.send_key, self.recv_key)


def messages(algorithm: Algorithm, steps: Steps) -> Messages:
    """Both ends of all messages; peers and channels are in range (:mod:`synth.exchange.validity` sees to it)."""
    a = algorithm
    channels = int(a.tb_channel.max()) + 2 if len(a.tb_channel) else 1
    send, recv = (np.flatnonzero(which[a.kind]) for which in (SENDING, RECEIVING))

    def key(source: IntArray, target: IntArray, at: IntArray) -> IntArray:
        found: IntArray = (source * a.ranks + target) * channels + a.tb_channel[steps.block[at]] + 1
        return found

    send_key = key(steps.rank[send], a.tb_send[steps.block[send]], send)
    recv_key = key(a.tb_recv[steps.block[recv]], steps.rank[recv], recv)
    by_send, by_recv = (np.argsort(found, kind="stable") for found in (send_key, recv_key))
    return Messages(send[by_send], recv[by_recv], send_key[by_send], recv_key[by_recv])


@dataclass(frozen=True)
class Before:
    """The steps that a step waits for, -1 for none, shape (steps,) each: ``same`` (in its thread block), ``dep``,
    ``message`` (the send of what it receives), ``room`` (the receive that makes room for what it sends)."""

    same: IntArray
    dep: IntArray
    message: IntArray
    room: IntArray

    def of(self, step: int) -> dict[str, int]:
        """What one step waits for, by kind."""
        found = {"same": self.same, "dep": self.dep, "message": self.message, "room": self.room}
        return {kind: int(rows[step]) for kind, rows in found.items() if rows[step] >= 0}


def before(algorithm: Algorithm, steps: Steps, found: Messages, room: int | None = None) -> Before:
    """All waits. ``room``: sends that a connection holds before it waits for the receiver; None for no limit."""
    a = algorithm
    same = np.where(steps.position > 0, np.arange(a.steps) - 1, -1).astype(np.int64)
    first = np.searchsorted(a.tb_rank, np.arange(a.ranks))
    dep = np.full(a.steps, -1, dtype=np.int64)
    waits = np.flatnonzero(a.dep_tb >= 0)
    dep[waits] = a.step_start[first[steps.rank[waits]] + a.dep_tb[waits]] + a.dep_step[waits]
    message = np.full(a.steps, -1, dtype=np.int64)
    message[found.recv] = found.send
    back = np.full(a.steps, -1, dtype=np.int64)
    if room is not None and room < len(found.send):
        full = found.send_key[room:] == found.send_key[: len(found.send) - room]
        back[found.send[room:][full]] = found.recv[: len(found.recv) - room][full]
    return Before(same, dep, message, back)


def sequence(waits: Before) -> tuple[IntArray, IntArray]:
    """An order in which all steps can run, shorter where some wait for each other, and for every step that is in it the
    length of the longest chain of steps that ends with it, else 0; shapes (steps that run,), (steps,)."""
    start, after = _successors(waits.same, waits.dep, waits.message, waits.room)
    return _kahn(waits.same, waits.dep, waits.message, waits.room, start, after)


def cycle(waits: Before, level: IntArray) -> list[tuple[int, str]]:
    """Steps that wait for each other in a circle, each with the kind of its wait for the next one of the list; those
    that only wait for the step before them are left out where possible. ``level`` of :func:`sequence`."""
    stuck = np.flatnonzero(level == 0)
    if not len(stuck):
        return []
    at = int(stuck[0])
    seen: dict[int, int] = {}
    path: list[tuple[int, str]] = []
    while at not in seen:
        seen[at] = len(path)
        held = {kind: step for kind, step in waits.of(at).items() if level[step] == 0}
        kind = next(kind for kind in ("dep", "message", "room", "same") if kind in held)
        path.append((at, kind))
        at = held[kind]
    return path[seen[at] :]


def room_needed(algorithm: Algorithm, steps: Steps, found: Messages) -> int:
    """The least number of sends that a connection must hold before it waits for the receiver so that everything can
    run; at least 1. The algorithm runs without a limit."""
    most = int(np.unique(found.send_key, return_counts=True)[1].max()) if len(found.send) else 1
    least = 1
    while least < most:
        middle = (least + most) // 2
        order, _ = sequence(before(algorithm, steps, found, middle))
        if len(order) == algorithm.steps:
            most = middle
        else:
            least = middle + 1
    return least


@jit
def _successors(same: IntArray, dep: IntArray, message: IntArray, room: IntArray) -> tuple[IntArray, IntArray]:
    """The steps that wait for each one, as rows."""
    count = len(same)
    start = np.zeros(count + 1, dtype=np.int64)
    for rows in (same, dep, message, room):
        for i in range(count):
            if rows[i] >= 0:
                start[rows[i] + 1] += 1
    for i in range(count):
        start[i + 1] += start[i]
    after = np.zeros(start[count], dtype=np.int64)
    at = start[:-1].copy()
    for rows in (same, dep, message, room):
        for i in range(count):
            if rows[i] >= 0:
                after[at[rows[i]]] = i
                at[rows[i]] += 1
    return start, after


@jit
def _kahn(
    same: IntArray, dep: IntArray, message: IntArray, room: IntArray, start: IntArray, after: IntArray
) -> tuple[IntArray, IntArray]:
    """As :func:`sequence`; ``start``, ``after`` of :func:`_successors`."""
    count = len(same)
    missing = np.zeros(count, dtype=np.int64)
    level = np.zeros(count, dtype=np.int64)
    order = np.zeros(count, dtype=np.int64)
    head, tail = 0, 0
    for i in range(count):
        for rows in (same, dep, message, room):
            if rows[i] >= 0:
                missing[i] += 1
        if missing[i] == 0:
            order[tail] = i
            tail += 1
    deepest = np.zeros(count, dtype=np.int64)
    while head < tail:
        i = order[head]
        head += 1
        level[i] = deepest[i] + 1
        for k in range(start[i], start[i + 1]):
            j = after[k]
            deepest[j] = max(deepest[j], level[i])
            missing[j] -= 1
            if missing[j] == 0:
                order[tail] = j
                tail += 1
    return order[:tail], level


def unordered(
    algorithm: Algorithm, steps: Steps, waits: Before, order: IntArray, first: IntArray, then: IntArray
) -> BoolArray:
    """Which of the pairs are in no order: nothing makes step ``then`` wait, over however many others, for step
    ``first``, which comes before it in ``order``; both of one rank; bool, shape (pairs,).

    A thread block is a chain, so what a step has waited for is one number a thread block: the last position there. Most
    pairs are decided by waits within their rank; for the rest the numbers are carried along over all ranks, for
    :data:`COLUMNS` thread blocks at a time. Time steps x (thread blocks of a rank + blocks of undecided pairs).
    """
    open_pairs: BoolArray = (steps.block[first] != steps.block[then]) | (steps.position[first] >= steps.position[then])
    tb_first = np.searchsorted(algorithm.tb_rank, np.arange(algorithm.ranks + 1)).astype(np.int64)
    if np.any(open_pairs):
        at = np.flatnonzero(open_pairs)
        rows, listed = _by_rank(order, steps.rank, algorithm.ranks)
        turn = np.argsort(then[at], kind="stable")
        known = _within_ranks(
            rows, listed, tb_first, waits.same, waits.dep, steps.number, steps.position,
            *_pairs_by_step(then[at][turn], algorithm.steps), steps.number[first[at][turn]],
            steps.position[first[at][turn]],
        )  # fmt: skip
        open_pairs[at[turn[known]]] = False
    at = np.flatnonzero(open_pairs)
    columns = np.unique(steps.block[first[at]])
    for k in range(0, len(columns), COLUMNS):
        some = columns[k : k + COLUMNS]
        mine = at[np.isin(steps.block[first[at]], some)]
        column = np.full(len(algorithm.tb_rank), -1, dtype=np.int64)
        column[some] = np.arange(len(some))
        known = _over_ranks(
            order, waits.same, waits.dep, waits.message, column[steps.block], steps.position, len(some),
            then[mine], column[steps.block[first[mine]]], steps.position[first[mine]],
        )  # fmt: skip
        open_pairs[mine[known]] = False
    return open_pairs


COLUMNS = 32


def _pairs_by_step(then: IntArray, count: int) -> tuple[IntArray]:
    return (np.concatenate([[0], np.cumsum(np.bincount(then, minlength=count))]).astype(np.int64),)


def _by_rank(order: IntArray, rank: IntArray, ranks: int) -> tuple[IntArray, IntArray]:
    found = rank[order]
    rows = np.concatenate([[0], np.cumsum(np.bincount(found, minlength=ranks))]).astype(np.int64)
    return rows, order[np.argsort(found, kind="stable")]


@jit
def _within_ranks(
    rows: IntArray,
    listed: IntArray,
    tb_first: IntArray,
    same: IntArray,
    dep: IntArray,
    number: IntArray,
    position: IntArray,
    pair_start: IntArray,
    pair_number: IntArray,
    pair_position: IntArray,
) -> BoolArray:
    """Which pairs (sorted by their later step) are ordered by waits within their rank."""
    known = np.zeros(len(pair_number), dtype=np.bool_)
    row = np.zeros(len(same), dtype=np.int64)
    for r in range(len(rows) - 1):
        width = tb_first[r + 1] - tb_first[r]
        clock = np.full((rows[r + 1] - rows[r], width), -1, dtype=np.int32)
        for k in range(rows[r], rows[r + 1]):
            i = listed[k]
            at = k - rows[r]
            row[i] = at
            if same[i] >= 0:
                clock[at] = clock[row[same[i]]]
            if dep[i] >= 0:
                other = row[dep[i]]
                for t in range(width):
                    clock[at, t] = max(clock[at, t], clock[other, t])
            clock[at, number[i]] = position[i]
            for p in range(pair_start[i], pair_start[i + 1]):
                known[p] = clock[at, pair_number[p]] >= pair_position[p]
    return known


@jit
def _over_ranks(
    order: IntArray,
    same: IntArray,
    dep: IntArray,
    message: IntArray,
    column: IntArray,
    position: IntArray,
    width: int,
    then: IntArray,
    pair_column: IntArray,
    pair_position: IntArray,
) -> BoolArray:
    """Which pairs are ordered by waits of any kind."""
    clock = np.full((len(same), width), -1, dtype=np.int32)
    for k in range(len(order)):
        i = order[k]
        for rows in (same, dep, message):
            j = rows[i]
            if j >= 0:
                for t in range(width):
                    clock[i, t] = max(clock[i, t], clock[j, t])
        if column[i] >= 0:
            clock[i, column[i]] = position[i]
    known = np.zeros(len(then), dtype=np.bool_)
    for p in range(len(then)):
        known[p] = clock[then[p], pair_column[p]] >= pair_position[p]
    return known
