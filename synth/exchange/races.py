"""Races: two steps of one rank touch the same chunk, one of them changes it, and neither waits for the other.

A chunk is a cell of memory, whatever a step calls it: in place, one cell has two names. A copy of a cell onto itself
changes nothing; it reads the cell.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.exchange.algorithm import Algorithm
from synth.exchange.order import Before, unordered
from synth.exchange.places import READS_DST, READS_SRC, WRITES_DST, Cells, Steps, changes_nothing
from synth.kernels import jit


def touched(algorithm: Algorithm) -> int:
    """How many chunks all steps read and write together."""
    a = algorithm
    times = READS_SRC[a.kind].astype(np.int64) + READS_DST[a.kind] + WRITES_DST[a.kind]
    return int(np.sum(times * a.count))


def races(algorithm: Algorithm, steps: Steps, where: Cells, waits: Before, order: IntArray) -> IntArray:
    """Rows (earlier step, later step, cell), of every racing pair of steps that are neighbours in some order of that
    cell's accesses; shape (races, 3). There is none exactly if every two conflicting accesses are ordered.

    ``order`` is one order in which the steps can run. In it, for every cell, a read must wait for the write before it,
    a write for the write before it and for the reads since: what is not next to each other then follows. A pair that
    is not ordered that way round is in no order, for ``order`` breaks no wait. Time and memory linear in what is
    touched, plus :func:`synth.exchange.order.unordered`.
    """
    a = algorithm
    pairs = _neighbours(
        order, a.count,
        where.base[steps.rank, a.src_buffer] + a.src_offset, where.base[steps.rank, a.dst_buffer] + a.dst_offset,
        READS_SRC[a.kind], READS_DST[a.kind], WRITES_DST[a.kind] & ~changes_nothing(a, steps, where),
        where.total, touched(a),
    )  # fmt: skip
    first, then, cell = pairs[:, 0], pairs[:, 1], pairs[:, 2]
    different = steps.block[first] != steps.block[then]
    first, then, cell = first[different], then[different], cell[different]
    _, once = np.unique(first * a.steps + then, return_index=True)
    first, then, cell = first[once], then[once], cell[once]
    wrong = unordered(a, steps, waits, order, first, then)
    found: IntArray = np.stack([first[wrong], then[wrong], cell[wrong]], axis=1)
    return found


@jit
def _neighbours(
    order: IntArray,
    count: IntArray,
    src: IntArray,
    dst: IntArray,
    reads_src: BoolArray,
    reads_dst: BoolArray,
    changes_dst: BoolArray,
    cells: int,
    total: int,
) -> IntArray:
    """Pairs of accesses that must be ordered. Accesses are dealt out to their cells in ``order``; 2 step + (write).
    What a step reads and changes is a row of truth values, shape (steps,), each."""
    start = np.zeros(cells + 1, dtype=np.int64)
    for i in range(len(count)):
        if not (reads_src[i] or changes_dst[i]):
            continue  # whatever a nop says it counts
        for c in range(count[i]):
            if reads_src[i]:
                start[src[i] + c + 1] += 1
            if reads_dst[i]:
                start[dst[i] + c + 1] += 1
            if changes_dst[i]:
                start[dst[i] + c + 1] += 1
    for c in range(cells):
        start[c + 1] += start[c]
    access = np.zeros(total, dtype=np.int32)
    at = start[:-1].copy()
    for n in range(len(order)):
        i = order[n]
        if not (reads_src[i] or changes_dst[i]):
            continue
        for c in range(count[i]):
            if reads_src[i]:
                access[at[src[i] + c]] = 2 * i
                at[src[i] + c] += 1
            if reads_dst[i]:
                access[at[dst[i] + c]] = 2 * i
                at[dst[i] + c] += 1
            if changes_dst[i]:
                access[at[dst[i] + c]] = 2 * i + 1
                at[dst[i] + c] += 1
    pairs = np.zeros((2 * total, 3), dtype=np.int32)
    found = 0
    for cell in range(cells):
        written, since = -1, start[cell]
        for n in range(start[cell], start[cell + 1]):
            step, writes = access[n] // 2, access[n] % 2
            if not writes:
                if written >= 0 and written != step:
                    pairs[found, 0], pairs[found, 1], pairs[found, 2] = written, step, cell
                    found += 1
                continue
            alone = True
            for m in range(since, n):
                reader = access[m] // 2
                if reader != step:
                    pairs[found, 0], pairs[found, 1], pairs[found, 2] = reader, step, cell
                    found += 1
                    alone = False
                elif written >= 0:
                    alone = False
            if alone and written >= 0 and written != step:
                pairs[found, 0], pairs[found, 1], pairs[found, 2] = written, step, cell
                found += 1
            written, since = step, n + 1
    return pairs[:found].astype(np.int64)
