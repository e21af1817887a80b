"""Which steps have to wait for which of their rank: dependences, as few as it takes.

A step waits for the last step that wrote what it reads, and where it writes also for those that have read since.
What program order or another dependence says already is left out: what a step is known to come after is a row of
numbers, the last step of every thread block of its rank (a vector clock). A step carries one dependence; the others
stand before it in steps that do nothing (``nop``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.errors import LimitError
from synth.exchange.algorithm import KINDS
from synth.exchange.lowering.channels import Blocks
from synth.exchange.lowering.rank_steps import SEND, Acts
from synth.kernels import jit

Array = TypeVar("Array", IntArray, Int32Array)
MOST_CLOCKS = 2**28  # steps times thread blocks of one rank
READS = np.array([kind in ("s", "cpy", "re", "rrc", "rrs", "rrcs") for kind in KINDS])
WRITES = np.array([kind in ("r", "cpy", "re", "rrc", "rcs", "rrcs") for kind in KINDS])


@dataclass(frozen=True)
class Ordered:
    """Steps by thread block: ``act`` (-1 for a nop), ``block``, ``dep_tb``, ``dep_step``, ``has_dependents`` of every
    step, and ``step_start`` of every block."""

    act: IntArray
    block: IntArray
    dep_tb: IntArray
    dep_step: IntArray
    has_dependents: BoolArray
    step_start: IntArray


class Touching(NamedTuple):
    """What acts touch, those of a rank together and in order: ``start[r]:start[r + 1]`` are those of rank r. ``reads``,
    ``writes``: shape (kinds,). ``base[r]``: where each buffer begins among the chunks of rank r, and their number,
    shape (ranks, buffers + 1). The others are columns of :class:`synth.exchange.lowering.rank_steps.Acts`; ``chunks``
    is its ``count``."""

    start: IntArray
    role: Int32Array
    kind: Int32Array
    src_buffer: Int32Array
    src_offset: Int32Array
    dst_buffer: Int32Array
    dst_offset: Int32Array
    chunks: Int32Array
    reads: BoolArray
    writes: BoolArray
    base: IntArray


def touching(rows: Acts, buffer_chunks: IntArray) -> Touching:
    """What acts touch that are sorted by rank."""
    ranks = len(buffer_chunks)
    start = np.searchsorted(rows.rank, np.arange(ranks + 1))
    base = np.concatenate([np.zeros((ranks, 1), dtype=np.int64), np.cumsum(buffer_chunks, axis=1)], axis=1)
    columns = rows.role, rows.kind, rows.src_buffer, rows.src_offset, rows.dst_buffer, rows.dst_offset, rows.count
    return Touching(start, *columns, READS, WRITES, base)


def ordered(done: Acts, blocks: Blocks, buffer_chunks: IntArray, outlet: IntArray | None = None) -> Ordered:
    """The steps of all thread blocks in order, with their dependences. ``outlet`` of every move: those with one number
    leave in their order, as if each needed what the one before it has."""
    ranks = len(buffer_chunks)
    by_rank = np.argsort(done.rank, kind="stable")
    start = np.searchsorted(done.rank[by_rank], np.arange(ranks + 1))
    first = np.searchsorted(blocks.rank, np.arange(ranks + 1))
    clocks = int((np.diff(start) * np.diff(first)).max(initial=0))
    if clocks > MOST_CLOCKS:
        raise LimitError(f"too large: {clocks:,} steps times thread blocks of one rank, at most {MOST_CLOCKS:,}")
    rows = done.taken(by_rank)
    number = blocks.of[by_rank] - first[rows.rank]
    count, dep_tb, dep_step = _depend(touching(rows, buffer_chunks), first, number, _behind(rows, outlet))
    return _laid_out(by_rank, blocks, count, dep_tb, dep_step, first)


def _behind(rows: Acts, outlet: IntArray | None) -> IntArray:
    """Of every act the send before it over the same outlet, -1 for none."""
    found = np.full(len(rows), -1, dtype=np.int64)
    if outlet is not None:
        sends = np.flatnonzero(rows.role == SEND)
        over = outlet[rows.move[sends]]
        turn = np.argsort(over, kind="stable")
        same = over[turn][1:] == over[turn][:-1]
        found[sends[turn][1:][same]] = sends[turn][:-1][same]
    return found


def _laid_out(
    by_rank: IntArray, blocks: Blocks, count: IntArray, dep_tb: Int32Array, dep_step: Int32Array, first: IntArray
) -> Ordered:
    """Acts with their nops before them, sorted by thread block."""
    size = np.maximum(count, 1)
    act = np.repeat(by_rank, size)
    end = np.cumsum(size)
    last = np.zeros(len(act), dtype=bool)
    last[end - 1] = True
    tb, step = np.full(len(act), -1, dtype=np.int64), np.full(len(act), -1, dtype=np.int64)
    carries = np.repeat(count > 0, size)
    tb[carries], step[carries] = dep_tb, dep_step
    block = blocks.of[act]
    order = np.argsort(block, kind="stable")
    block, tb, step = block[order], tb[order], step[order]
    starts = np.searchsorted(block, np.arange(len(blocks.rank) + 1)).astype(np.int64)
    depends = np.flatnonzero(tb >= 0)
    target = starts[first[blocks.rank[block[depends]]] + tb[depends]] + step[depends]
    wanted = np.zeros(len(act), dtype=bool)
    wanted[target] = True
    return Ordered(np.where(last[order], act[order], -1), block, tb, step, wanted, starts)


@jit
def _longer(values: Array) -> Array:
    """The array with as many zeros behind it."""
    return np.concatenate((values, np.zeros(len(values), dtype=values.dtype)))


@jit
def _depend(
    rows: Touching, first: IntArray, number: IntArray, behind: IntArray
) -> tuple[IntArray, Int32Array, Int32Array]:
    """Of every act (by rank, in order) how many dependences it has, and all of them one after the other: thread block
    on its rank and step in it, the latest last."""
    needs = np.zeros(len(number), dtype=np.int64)
    dep_tb, dep_step = np.zeros(1024, dtype=np.int32), np.zeros(1024, dtype=np.int32)
    total = 0
    for r in range(len(rows.start) - 1):
        low, high, width = rows.start[r], rows.start[r + 1], first[r + 1] - first[r]
        begin, wait = _latest_to_wait_for(rows, number, behind, r, width)
        while total + begin[-1] > len(dep_tb):
            dep_tb, dep_step = _longer(dep_tb), _longer(dep_step)
        total = _as_few(number[low:high], begin, wait, width, needs[low:high], dep_tb, dep_step, total)
    return needs, dep_tb[:total], dep_step[:total]


@jit
def _latest_to_wait_for(
    rows: Touching, number: IntArray, behind: IntArray, r: int, width: int
) -> tuple[IntArray, IntArray]:
    """What the acts of rank r have to wait for: act x, counted from the rank's first, for the acts
    ``wait[begin[x]:begin[x + 1]]``, counted in the same way, at most one of every thread block, the latest. Arrays out
    of named state are named once: each time counts references."""
    start, _, kind, src_buffer, src_offset, dst_buffer, dst_offset, count, reads, writes, base = rows
    low, high = start[r], start[r + 1]
    writer = np.full(base[r, 3], -1, dtype=np.int64)
    reader = np.full(base[r, 3], -1, dtype=np.int64)  # the last entry of the list of readers since
    entry, before = np.zeros(1024, dtype=np.int64), np.zeros(1024, dtype=np.int64)
    entries = 0
    latest, touched = np.full(width, -1, dtype=np.int64), np.zeros(width, dtype=np.int64)
    begin, wait = np.zeros(high - low + 1, dtype=np.int64), np.zeros(1024, dtype=np.int64)
    for x in range(low, high):
        k, many = kind[x], 0
        read, write = base[r, src_buffer[x]] + src_offset[x], base[r, dst_buffer[x]] + dst_offset[x]
        if behind[x] >= 0:
            many = _note(behind[x], number, latest, touched, many)
        if writes[k]:
            for c in range(write, write + count[x]):
                if writer[c] >= 0:
                    many = _note(writer[c], number, latest, touched, many)
                e = reader[c]
                while e >= 0:
                    many = _note(entry[e], number, latest, touched, many)
                    e = before[e]
                writer[c], reader[c] = x, -1
        if reads[k]:
            for c in range(read, read + count[x]):
                if writer[c] >= 0 and writer[c] != x:  # who wrote before x has been noted
                    many = _note(writer[c], number, latest, touched, many)
                if entries == len(entry):
                    entry, before = _longer(entry), _longer(before)
                entry[entries], before[entries] = x, reader[c]
                reader[c] = entries
                entries += 1
        total = begin[x - low]
        begin[x - low + 1] = total + many
        while total + many > len(wait):
            wait = _longer(wait)
        for m in range(many):
            wait[total + m] = latest[touched[m]] - low
            latest[touched[m]] = -1
    return begin, wait


@jit(inlined=True)
def _note(y: int, number: IntArray, latest: IntArray, touched: IntArray, many: int) -> int:
    """Note that act y must have ended; the length of ``touched``, the thread blocks of which ``latest`` has an act."""
    t = number[y]
    if latest[t] < 0:
        touched[many] = t
        many += 1
    latest[t] = max(latest[t], y)
    return many


@jit
def _as_few(
    number: IntArray, begin: IntArray, wait: IntArray, width: int, needs: IntArray, dep_tb: Int32Array,
    dep_step: Int32Array, total: int,
) -> int:  # fmt: skip
    """Write from ``total`` on the dependences of one rank's acts that no other one implies, and where they end; how
    many each act has into ``needs``. Of what an act waits for the latest is taken first, as it may stand for others,
    and comes last."""
    clock = np.full((len(number), width), -1, dtype=np.int32)  # the last step of every block that an act comes after
    at = np.full(width, -1, dtype=np.int64)  # the last act of every thread block
    length = np.zeros(width, dtype=np.int32)  # and its steps so far
    for x in range(len(number)):
        b, own, found = number[x], clock[x], 0
        if at[b] >= 0:
            own[:] = clock[at[b]]
        while True:
            best, place = np.int64(-1), -1
            for m in range(begin[x], begin[x + 1]):
                if wait[m] > best:
                    best, place = wait[m], m
            if best < 0:
                break
            wait[place] = -1
            t = number[best]
            step = clock[best, t]
            if own[t] >= step:
                continue
            dep_tb[total + found], dep_step[total + found] = t, step
            found += 1
            for w in range(width):
                own[w] = max(own[w], clock[best, w])
        for m in range(found // 2):
            p, q = total + m, total + found - 1 - m
            dep_tb[p], dep_tb[q] = dep_tb[q], dep_tb[p]
            dep_step[p], dep_step[q] = dep_step[q], dep_step[p]
        needs[x] = found
        total += found
        length[b] += max(found, 1)
        own[b] = length[b] - 1
        at[b] = x
    return total
