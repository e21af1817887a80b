"""The check of an algorithm, whoever made it: does every order in which an executor may run it end with the collective?

From nothing but the algorithm: its numbers name things that exist; sends and receives match; nothing waits for itself;
every two accesses of a chunk of which one writes are ordered (no race, so that one run speaks for all); nothing is
read before it is written; in the end every chunk of every output holds what the collective promises, the rank's own
part included, and a sum every contribution once. What an executor in particular takes is for
:mod:`synth.exchange.executors`.

A stage is judged where the one before found nothing: ranges and matching; waiting; races, reads and contents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.errors import Fault, FaultsByKind, InputError, first_of_kind
from synth.exchange import contents, order, places
from synth.exchange.algorithm import BUFFERS, KINDS, Algorithm
from synth.exchange.contents import DOUBLED, MIXED, NO_SUMS, Contents, Wanted
from synth.exchange.places import READS_SRC, RECEIVING, SENDING, WRITES_DST, Cells, Steps, block_place, place
from synth.exchange.races import races, touched
from synth.schedule.collective import NAMES

MOST_RANKS = 2**16
MOST_CELLS = 2**26
MOST_TOUCHED = 2**25
MOST_CLOCKS = 2**28  # steps x thread blocks of one rank
MOST_CHANNEL = 2**15
MOST_SHOWN = 6  # steps of a circle that are named


@dataclass(frozen=True)
class Verdict:
    """``faults``: what is wrong, each with its place (the first few of every kind, and how many more); empty exactly if
    the algorithm is valid. ``facts``: counts about a valid one; ``level``: the length of the longest chain of waits
    that ends with each step, shape (steps,), empty if it does not run."""

    faults: tuple[Fault, ...]
    facts: dict[str, Any] = field(default_factory=dict)
    level: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def check(algorithm: Algorithm) -> Verdict:
    """Judge an algorithm. 50,000 steps take about a second. Raises :class:`InputError` for one too large to judge."""
    faults = form_faults(algorithm)
    if faults:
        return Verdict(tuple(faults))
    where, steps = places.cells(algorithm), places.steps(algorithm)
    _refuse_huge(algorithm, steps, where)
    found = order.messages(algorithm, steps)
    faults = list(_message_faults(algorithm, steps, found))
    if faults:
        return Verdict(tuple(faults))
    waits = order.before(algorithm, steps, found)
    sequence, level = order.sequence(waits)
    if len(sequence) < algorithm.steps:
        return Verdict((_deadlock(algorithm, waits, level),))
    racing = races(algorithm, steps, where, waits, sequence)
    marked = np.zeros(algorithm.steps, dtype=bool)
    marked[racing[:, :2].reshape(-1)] = True
    ended = contents.run(algorithm, steps, where, waits, sequence, marked)
    promise = contents.wanted(algorithm)
    faults = [
        *_race_faults(algorithm, where, steps, racing),
        *_unwritten_faults(algorithm, where, steps, ended),
        *_lacking_faults(algorithm, ended, promise, contents.lacking(algorithm, where, ended, promise)),
    ]
    return Verdict(tuple(faults), _facts(algorithm, steps, found, level), level)


def form_faults(algorithm: Algorithm) -> list[Fault]:
    """Numbers that name nothing: ranks, buffers, chunks, thread blocks, steps that do not exist."""
    faults = list(_head_faults(algorithm))
    if faults:
        return faults
    where, steps = places.cells(algorithm), places.steps(algorithm)
    return [*_block_faults(algorithm), *_step_faults(algorithm, steps, where), *_dependence_faults(algorithm, steps)]


def _facts(a: Algorithm, steps: Steps, found: order.Messages, level: IntArray) -> dict[str, Any]:
    return {
        "ranks": a.ranks,
        "thread_blocks": len(a.tb_rank),
        "channels": len(np.unique(a.tb_channel[(a.tb_send >= 0) | (a.tb_recv >= 0)])),
        "steps": a.steps,
        "messages": len(found.send),
        "longest_chain": int(level.max(initial=0)),
        "sends_to_hold": order.room_needed(a, steps, found),
    }


def _head_faults(a: Algorithm) -> Iterator[Fault]:
    """What must hold before anything else can be looked at."""
    if a.collective not in NAMES:
        yield Fault("collective", f"must be one of {', '.join(NAMES)}", a.collective, True)
    if not 1 <= a.ranks <= MOST_RANKS:
        yield Fault("ranks", f"must be in 1..{MOST_RANKS}", a.ranks, True)
        return
    if not 1 <= a.chunks <= MOST_CELLS // a.ranks:
        yield Fault("chunks", f"must be in 1..{MOST_CELLS // a.ranks} for {a.ranks} ranks", a.chunks, True)
        return
    if a.collective in ("broadcast", "reduce", "gather", "scatter") and not (
        a.root is not None and 0 <= a.root < a.ranks
    ):
        yield Fault("root", f"must be in 0..{a.ranks - 1}", a.root, True)
    if a.buffer_chunks.shape != (a.ranks, 3):
        yield Fault("buffers", f"must be three for each of {a.ranks} ranks")
        return
    wrong = np.flatnonzero((a.buffer_chunks < 0) | (a.buffer_chunks > MOST_CELLS)).tolist()
    has = a.buffer_chunks.reshape(-1)
    yield from first_of_kind(
        wrong, lambda k: Fault(f"gpu {k // 3}", f"its buffer {BUFFERS[k % 3]} has {has[k]} chunks")
    )


def _refuse_huge(a: Algorithm, steps: Steps, where: Cells) -> None:
    """Raises :class:`InputError`: what would not fit into memory."""
    blocks = np.bincount(a.tb_rank, minlength=a.ranks)
    clocks = int((np.bincount(steps.rank, minlength=a.ranks) * blocks).max(initial=0))
    for count, most, what in (
        (where.total, MOST_CELLS, "chunks in all buffers"),
        (touched(a), MOST_TOUCHED, "chunks that steps touch"),
        (clocks, MOST_CLOCKS, "steps times thread blocks of one gpu"),
    ):
        if count > most:
            raise InputError(f"too large to be checked: {count:,} {what}, at most {most:,}")


def _block_faults(a: Algorithm) -> Iterator[Fault]:
    """Thread blocks: peers and channels that exist, one block for each peer, channel and direction."""
    faults = FaultsByKind()

    def wrong(block: int, words: str) -> None:
        faults.add(Fault(block_place(a, block), words))

    taken: dict[tuple[str, int, int, int], int] = {}
    columns = zip(a.tb_rank.tolist(), a.tb_send.tolist(), a.tb_recv.tolist(), a.tb_channel.tolist(), strict=True)
    for block, (rank, send, recv, channel) in enumerate(columns):
        for direction, peer in (("send", send), ("recv", recv)):
            if not -1 <= peer < a.ranks:
                wrong(block, f"{direction} = {peer}: there are gpus 0..{a.ranks - 1}, or -1 for none")
            elif peer == rank:
                wrong(block, f"{direction} = {peer}: is its own gpu")
            elif peer >= 0:
                other = taken.setdefault((direction, rank, peer, channel), block)
                if other != block:
                    wrong(block, f"{direction} = {peer} on channel {channel}, as {block_place(a, other)}")
        if not (0 if send >= 0 or recv >= 0 else -1) <= channel <= MOST_CHANNEL:
            wrong(block, f"chan = {channel}: must be in 0..{MOST_CHANNEL}")
    yield from faults.kept()


def _step_faults(a: Algorithm, steps: Steps, where: Cells) -> Iterator[Fault]:
    """Steps: kinds, peers, and chunks that exist."""
    known = (a.kind >= 0) & (a.kind < len(KINDS))
    for buffer in (a.src_buffer, a.dst_buffer):
        known &= (buffer >= 0) & (buffer < len(BUFFERS))
    yield from _at(a, ~known, lambda i: "its type or a buffer is unknown")
    if not known.all():
        return
    works = a.kind != KINDS.index("nop")
    yield from _at(a, works & (a.count < 1), lambda i: f"cnt = {a.count[i]}: it moves nothing")
    for which, peers, word in ((SENDING, a.tb_send, "send"), (RECEIVING, a.tb_recv, "recv")):
        alone = which[a.kind] & (peers[steps.block] < 0)

        def peerless(i: int, word: str = word) -> str:
            return f"type {KINDS[a.kind[i]]}, but its thread block has {word} = -1"

        yield from _at(a, alone, peerless)
    declared = a.buffer_chunks
    for which, buffer, offset, verb in (
        (READS_SRC, a.src_buffer, a.src_offset, "reads"),
        (WRITES_DST, a.dst_buffer, a.dst_offset, "writes"),
    ):
        size = np.minimum(where.size, declared)[steps.rank, buffer]
        outside = which[a.kind] & (a.count >= 1) & ((offset < 0) | (offset > size) | (a.count > size - offset))

        def words(i: int, buffer: IntArray = buffer, offset: IntArray = offset, verb: str = verb) -> str:
            rank, b = steps.rank[i], buffer[i]
            real = where.size[rank, b]
            has = f"{declared[rank, b]} chunks" + (f", and really {real}" if real < declared[rank, b] else "")
            chunks = places.chunk(b, int(offset[i]), int(a.count[i]))
            return f"{verb} {chunks}; the buffer {BUFFERS[b]} of gpu {rank} has {has}"

        yield from _at(a, outside, words)
    both = READS_SRC[a.kind] & WRITES_DST[a.kind]
    src, dst = (
        where.base[steps.rank, buffer] + offset
        for buffer, offset in ((a.src_buffer, a.src_offset), (a.dst_buffer, a.dst_offset))
    )
    overlap = both & (src != dst) & (np.abs(src - dst) < a.count)
    yield from _at(a, overlap, lambda i: "reads and writes chunks that overlap: it would read what it has written")


def _at(a: Algorithm, wrong: Any, words: Callable[[int], str]) -> Iterator[Fault]:
    return first_of_kind(np.flatnonzero(wrong).tolist(), lambda i: Fault(place(a, i), words(i)))


def _dependence_faults(a: Algorithm, steps: Steps) -> Iterator[Fault]:
    """Dependences name steps of their rank that exist and signal."""
    half = (a.dep_tb < 0) != (a.dep_step < 0)
    yield from _at(a, half, lambda i: f"depid = {a.dep_tb[i]} and deps = {a.dep_step[i]}: both are -1, or none")
    first = np.searchsorted(a.tb_rank, np.arange(a.ranks + 1))
    blocks = np.diff(first)[steps.rank]
    some = (a.dep_tb >= 0) & ~half
    no_block = some & (a.dep_tb >= blocks)
    yield from _at(a, no_block, lambda i: f"depid = {a.dep_tb[i]}: gpu {steps.rank[i]} has {blocks[i]} thread blocks")
    at = np.flatnonzero(some & ~no_block)
    target = first[steps.rank[at]] + a.dep_tb[at]
    lengths = np.diff(a.step_start)[target]
    short = a.dep_step[at] >= lengths
    beyond, silent, of_nop = np.zeros((3, a.steps), dtype=bool)
    beyond[at[short]] = True
    length_of = dict(zip(at[short].tolist(), lengths[short].tolist(), strict=True))
    yield from _at(a, beyond, lambda i: f"deps = {a.dep_step[i]}: tb {a.dep_tb[i]} has {length_of[i]} steps")
    at, named = at[~short], (a.step_start[target] + a.dep_step[at])[~short]
    silent[at[~a.has_dependents[named]]] = True
    yield from _at(
        a,
        silent,
        lambda i: f"waits for step {a.dep_step[i]} of tb {a.dep_tb[i]}, which has hasdep = 0: nobody signals",
    )
    of_nop[at[a.has_dependents[named] & (a.kind[named] == KINDS.index("nop"))]] = True
    yield from _at(
        a, of_nop, lambda i: f"waits for step {a.dep_step[i]} of tb {a.dep_tb[i]}, a nop: those do not signal"
    )


def _message_faults(a: Algorithm, steps: Steps, found: order.Messages) -> Iterator[Fault]:
    """As many sends as receives over every connection, and of the same count each."""
    faults = FaultsByKind()
    if not found.matched:
        sends, receives = Counter(found.send_key.tolist()), Counter(found.recv_key.tolist())
        last: dict[int, int] = dict(zip(found.send_key.tolist(), found.send.tolist(), strict=True))
        last_recv: dict[int, int] = dict(zip(found.recv_key.tolist(), found.recv.tolist(), strict=True))
        for key in sorted(sends.keys() | receives.keys()):
            if sends[key] != receives[key]:
                more = last[key] if sends[key] > receives[key] else last_recv[key]
                block = steps.block[more]
                channel = int(a.tb_channel[block])
                rank, peer = int(steps.rank[more]), int((a.tb_send if more == last.get(key) else a.tb_recv)[block])
                ends = f"{rank} to {peer}" if sends[key] > receives[key] else f"{peer} to {rank}"
                which = "send" if sends[key] > receives[key] else "receive"
                words = f"gpu {ends} on channel {channel}: {sends[key]} sends, {receives[key]} receives"
                faults.add(Fault(place(a, more), f"{words}; this is the last {which}"))
    else:
        for k in np.flatnonzero(a.count[found.send] != a.count[found.recv]).tolist():
            send, recv = int(found.send[k]), int(found.recv[k])
            words = f"sends {a.count[send]} chunks, which {place(a, recv)} receives as {a.count[recv]}"
            faults.add(Fault(place(a, send), words))
    yield from faults.kept()


def _deadlock(a: Algorithm, waits: order.Before, level: IntArray) -> Fault:
    circle = order.cycle(waits, level)
    told = [(step, kind) for step, kind in circle if kind != "same"] or circle
    words = {
        "same": "for the step before it",
        "dep": "for its dependence,",
        "message": "for the message of",
        "room": "for room, by",
    }
    chain = ", which (or a step before it) waits ".join(
        f"{words[kind]} {place(a, waits.of(step)[kind])}" for step, kind in told[:MOST_SHOWN]
    )
    more = f", … ({len(told)} waits in the circle)" if len(told) > MOST_SHOWN else ", and so in a circle"
    stuck = int(np.sum(level == 0))
    return Fault(place(a, told[0][0]), f"deadlock: waits {chain}{more}; {stuck:,} of {a.steps:,} steps never run")


def _of_each_kind(columns: list[IntArray], fault_at: Callable[[int], Fault]) -> Iterator[Fault]:
    """Faults in rows, of one kind where all ``columns`` (of one shape, (rows,)) agree: the first of every kind."""
    if len(columns[0]):
        _, first, kind = np.unique(np.stack(columns), axis=1, return_index=True, return_inverse=True)
        for k in np.argsort(first).tolist():
            yield from first_of_kind(np.flatnonzero(kind.reshape(-1) == k).tolist(), fault_at)


def _race_faults(a: Algorithm, where: Cells, steps: Steps, racing: IntArray) -> Iterator[Fault]:
    def fault(k: int) -> Fault:
        first, then, cell = racing[k].tolist()
        one, other = (_access(a, where, steps, step, cell) for step in (first, then))
        return Fault(place(a, then), f"race: it {other}, {place(a, first)} {one}, and neither waits for the other")

    kinds = [column[racing[:, side]] for side in (0, 1) for column in (a.kind, a.src_buffer, a.dst_buffer)]
    yield from _of_each_kind(kinds, fault)


def _access(a: Algorithm, where: Cells, steps: Steps, step: int, cell: int) -> str:
    """What a step does to a cell, as it names it."""
    said = []
    for which, verb, buffer, offset in (
        (READS_SRC, "reads", a.src_buffer, a.src_offset),
        (WRITES_DST, "writes", a.dst_buffer, a.dst_offset),
    ):
        at = cell - int(where.base[steps.rank[step], buffer[step]] + offset[step])
        if which[a.kind[step]] and 0 <= at < a.count[step]:
            said.append(f"{verb} {places.chunk(int(buffer[step]), int(offset[step]) + at)}")
    return " and ".join(said)


def _unwritten_faults(a: Algorithm, where: Cells, steps: Steps, ended: Contents) -> Iterator[Fault]:
    at = np.flatnonzero(ended.unwritten >= 0)

    def fault(k: int) -> Fault:
        step = int(at[k])
        said = _access(a, where, steps, step, int(ended.unwritten[step]))
        return Fault(place(a, step), f"{said}, which nothing has written by then")

    yield from _of_each_kind([a.kind[at], a.src_buffer[at], a.dst_buffer[at]], fault)


def _lacking_faults(a: Algorithm, ended: Contents, promise: Wanted, wrong: IntArray) -> Iterator[Fault]:
    where = places.cells(a)
    held = ended.held[where.base[promise.rank, 1] + promise.offset][wrong].astype(np.int64)

    def fault(k: int) -> Fault:
        rank, offset, chunk, origin = (
            int(rows[wrong[k]]) for rows in (promise.rank, promise.offset, promise.chunk, promise.origin)
        )
        wants = f"the sum of all gpus' i[{chunk}]" if origin < 0 else f"i[{chunk}] of gpu {origin}"
        if origin == rank:
            wants = f"its own i[{chunk}]"
        return Fault(f"gpu {rank}, o[{offset}]", f"must end with {wants}; it holds {_held(a, ended, int(held[k]))}")

    row = np.clip(held - ended.sums, 0, None)
    cause = np.where(held >= ended.sums, 2 + ended.row_cause[row], np.minimum(held, 1))
    yield from _of_each_kind([cause, (promise.origin == promise.rank)[wrong].astype(np.int64)], fault)


def _held(a: Algorithm, ended: Contents, held: int) -> str:
    """A content in words."""
    if held == contents.NOTHING:
        return "nothing"
    if held < ended.sums:
        rank, chunk = divmod(held - 1, ended.chunks)
        return f"i[{chunk}] of gpu {rank}"
    row = held - ended.sums
    made = place(a, int(ended.row_step[row]))
    cause = int(ended.row_cause[row])
    if cause == DOUBLED:
        return f"a sum with a contribution twice, added by {made}"
    if cause == MIXED:
        return f"a sum of different chunks, added by {made}"
    if cause == NO_SUMS:
        return f"a sum, made by {made}: {a.collective} adds nothing"
    bits = ended.row_set[row]
    lack = [r for r in range(a.ranks) if not int(bits[r // 64]) >> (r % 64) & 1]
    names = ", ".join(map(str, lack[:MOST_SHOWN])) + (", …" if len(lack) > MOST_SHOWN else "")
    less = f", which lacks {len(lack)} (gpu {names})" if lack else ""
    return f"a sum of i[{ended.row_chunk[row]}] over {a.ranks - len(lack)} gpus{less}"
