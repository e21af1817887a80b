"""Which steps have to wait for which of their rank: dependences, as few as it takes.

A step waits for the last step that wrote what it reads, and where it writes also for those that have read since.
What program order or another dependence says already is left out: what a step is known to come after is a row of
numbers, the last step of every thread block of its rank (a vector clock). A step carries one dependence; the others
stand before it in steps that do nothing (``nop``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

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
    columns = rows.kind, rows.src_buffer, rows.src_offset, rows.dst_buffer, rows.dst_offset, rows.count
    base = np.concatenate([np.zeros((ranks, 1), dtype=np.int64), np.cumsum(buffer_chunks, axis=1)], axis=1)
    number = blocks.of[by_rank] - first[rows.rank]
    behind = _behind(rows, outlet)
    count, dep_tb, dep_step = _depend(start, first, number, *columns, behind, np.stack([READS, WRITES]), base)
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
    start: IntArray, first: IntArray, number: IntArray, kind: Int32Array, src_buffer: Int32Array,
    src_offset: Int32Array, dst_buffer: Int32Array, dst_offset: Int32Array, count: Int32Array, behind: IntArray,
    uses: BoolArray, base: IntArray,
) -> tuple[IntArray, Int32Array, Int32Array]:  # fmt: skip
    """Of every act (by rank, in order) how many dependences it has, and all of them one after the other: thread block
    on its rank and step in it, the latest last."""
    needs = np.zeros(len(kind), dtype=np.int64)
    dep_tb, dep_step = np.zeros(1024, dtype=np.int32), np.zeros(1024, dtype=np.int32)
    total = 0
    for r in range(len(start) - 1):
        low, high, width = start[r], start[r + 1], first[r + 1] - first[r]
        cells = base[r, 3]
        writer = np.full(cells, -1, dtype=np.int64)
        reader = np.full(cells, -1, dtype=np.int64)  # the last entry of the list of readers since
        entry, before = np.zeros(1024, dtype=np.int64), np.zeros(1024, dtype=np.int64)
        entries = 0
        clock = np.full((high - low, width), -1, dtype=np.int32)
        at = np.full(width, -1, dtype=np.int64)  # the last act of every thread block
        length = np.zeros(width, dtype=np.int32)  # and its steps so far
        wanted = np.full(width, -1, dtype=np.int64)
        touched = np.zeros(width, dtype=np.int64)
        for x in range(low, high):
            b, k = number[x], kind[x]
            own = clock[x - low]
            if at[b] >= 0:
                own[:] = clock[at[b] - low]
            many = 0
            if behind[x] >= 0:
                many = _want(behind[x], number, clock, low, own, wanted, touched, many)
            for side in range(2):
                if not uses[side, k]:
                    continue
                c0 = base[r, src_buffer[x]] + src_offset[x] if side == 0 else base[r, dst_buffer[x]] + dst_offset[x]
                for c in range(c0, c0 + count[x]):
                    y = writer[c]
                    if y >= 0:
                        many = _want(y, number, clock, low, own, wanted, touched, many)
                    if side == 1:
                        e = reader[c]
                        while e >= 0:
                            many = _want(entry[e], number, clock, low, own, wanted, touched, many)
                            e = before[e]
            found = 0
            while True:  # the latest first: it may stand for others
                best = np.int64(-1)
                for m in range(many):
                    best = max(best, wanted[touched[m]])
                if best < 0:
                    break
                t = number[best]
                wanted[t] = -1
                step = clock[best - low, t]
                if own[t] >= step:
                    continue
                if total + 1 >= len(dep_tb):
                    dep_tb, dep_step = _longer(dep_tb), _longer(dep_step)
                dep_tb[total], dep_step[total] = t, step
                total += 1
                found += 1
                for w in range(width):
                    own[w] = max(own[w], clock[best - low, w])
            needs[x] = found
            for m in range(found // 2):  # the latest last
                p, q = total - found + m, total - 1 - m
                dep_tb[p], dep_tb[q] = dep_tb[q], dep_tb[p]
                dep_step[p], dep_step[q] = dep_step[q], dep_step[p]
            length[b] += max(found, 1)
            own[b] = length[b] - 1
            at[b] = x
            if uses[0, k]:
                c0 = base[r, src_buffer[x]] + src_offset[x]
                for c in range(c0, c0 + count[x]):
                    if entries == len(entry):
                        entry, before = _longer(entry), _longer(before)
                    entry[entries], before[entries] = x, reader[c]
                    reader[c] = entries
                    entries += 1
            if uses[1, k]:
                c0 = base[r, dst_buffer[x]] + dst_offset[x]
                for c in range(c0, c0 + count[x]):
                    writer[c], reader[c] = x, -1
    return needs, dep_tb[:total], dep_step[:total]


@jit
def _want(
    y: int,
    number: IntArray,
    clock: Int32Array,
    low: int,
    own: Int32Array,
    wanted: IntArray,
    touched: IntArray,
    many: int,
) -> int:
    """Note that act y must have ended, unless that is known; the length of ``touched``."""
    t = number[y]
    if own[t] >= clock[y - low, t]:
        return many
    if wanted[t] < 0:
        for m in range(many):
            if touched[m] == t:
                break
        else:
            touched[many] = t
            many += 1
    wanted[t] = max(wanted[t], y)
    return many
