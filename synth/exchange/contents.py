"""What every chunk holds: the algorithm run on symbols, and what the collective wants there in the end.

A symbol is a chunk of one rank's input, or a sum of the same chunk of several ranks' inputs, each of them once. Where
nothing races, every order of the steps ends with the same contents; one is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray, WordArray
from synth.errors import InputError
from synth.exchange.algorithm import Algorithm
from synth.exchange.order import Before
from synth.exchange.places import (
    ADDING,
    READS_DST,
    READS_SRC,
    RECEIVING,
    SENDING,
    WRITES_DST,
    Cells,
    Steps,
    changes_nothing,
)
from synth.kernels import jit
from synth.schedule.collective import REDUCING

MOST_WORDS = 2**27  # 64-bit words for sets of contributions
NOTHING = 0
SPOILT, DOUBLED, MIXED, NO_SUMS = range(1, 5)  # why a symbol is none: reported already; twice; of different chunks; …


@dataclass(frozen=True)
class Contents:
    """What the run ended with. A content is :data:`NOTHING`, ``1 + rank * chunks + c`` for chunk c of a rank's input,
    or ``sums + row``.

    ``held``: shape (cells,). ``chunks``: chunks of the largest input. Per row: ``row_chunk``, ``row_step`` (where it
    was made), ``row_cause`` (0 for a sum, else why it is none), ``row_set`` (ranks that contribute, a bit each, shape
    (rows, words)). ``unwritten``: for every step the first cell that it reads and nothing has written, or -1.
    """

    held: Int32Array
    sent_start: IntArray
    sent: Int32Array
    chunks: int
    sums: int
    row_chunk: IntArray
    row_step: IntArray
    row_cause: IntArray
    row_set: WordArray
    unwritten: IntArray


def run(
    algorithm: Algorithm,
    steps: Steps,
    where: Cells,
    waits: Before,
    order: IntArray,
    racing: BoolArray,
) -> Contents:
    """Run the steps in ``order``, but for copies of cells onto themselves, which change nothing. What steps that
    ``racing`` marks (shape (steps,)) read and write is not judged: it depends on the order. Raises
    :class:`InputError` where the sets of contributions would not fit into memory."""
    a = algorithm
    reduces = a.collective in REDUCING
    words = (a.ranks + 63) // 64 if reduces else 0
    added = int(a.count[ADDING[a.kind]].sum())
    if added * words > MOST_WORDS:
        raise InputError(f"{added} sums over {a.ranks} ranks are too many to be replayed")
    chunks = int(where.size[:, 0].max())
    held = np.zeros(where.total, dtype=np.int32)
    for rank in range(a.ranks):
        if a.collective not in ("broadcast", "scatter") or rank == a.root:
            first, size = where.base[rank, 0], where.size[rank, 0]
            held[first : first + size] = 1 + rank * chunks + np.arange(size)
    start = np.concatenate([[0], np.cumsum(np.where(SENDING[a.kind], a.count, 0))]).astype(np.int64)
    sent = np.zeros(start[-1], dtype=np.int32)
    rows = added + len(order) + 1
    unwritten = np.full(a.steps, -1, dtype=np.int64)
    chunk, made, cause = (np.zeros(rows, dtype=np.int64) for _ in range(3))
    sets = np.zeros((added if words else 0, words), dtype=np.uint64)
    _run(
        order[~changes_nothing(a, steps, where)[order]], a.kind, a.count,
        where.base[steps.rank, a.src_buffer] + a.src_offset, where.base[steps.rank, a.dst_buffer] + a.dst_offset,
        waits.message, start[:-1], sent, racing, held, chunks, 1 + a.ranks * chunks,
        reduces, READS_SRC, READS_DST, WRITES_DST, SENDING, RECEIVING, ADDING, chunk, made, cause, sets, unwritten,
    )  # fmt: skip
    return Contents(held, start[:-1], sent, chunks, 1 + a.ranks * chunks, chunk, made, cause, sets, unwritten)


@jit
def _run(
    order: IntArray,
    kind: IntArray,
    count: IntArray,
    src: IntArray,
    dst: IntArray,
    message: IntArray,
    sent: IntArray,
    payload: Any,
    racing: Any,
    held: Any,
    chunks: int,
    sums: int,
    reduces: bool,
    reads_src: Any,
    reads_dst: Any,
    writes_dst: Any,
    sending: Any,
    receiving: Any,
    adding: Any,
    row_chunk: IntArray,
    row_step: IntArray,
    row_cause: IntArray,
    row_set: Any,
    unwritten: IntArray,
) -> None:
    """One row at most for every sum, one for every step that reads what nothing has written. Sums come first."""
    made, spoilt = 0, len(row_set) if reduces else 0
    for n in range(len(order)):
        i = order[n]
        k = kind[i]
        bad = np.int64(-1)
        if not (reads_src[k] or writes_dst[k]):
            continue  # whatever a nop says it counts
        for c in range(count[i]):
            value = np.int64(0)
            parts = 0
            for source in range(3):
                if source == 0 and receiving[k]:
                    new = np.int64(payload[sent[message[i]] + c])
                elif source == 1 and reads_src[k]:
                    new = np.int64(held[src[i] + c])
                elif source == 2 and reads_dst[k]:
                    new = np.int64(held[dst[i] + c])
                else:
                    continue
                if new == 0 or racing[i]:
                    if not racing[i] and unwritten[i] < 0:
                        unwritten[i] = src[i] + c if source == 1 else dst[i] + c
                    if bad < 0:
                        bad = np.int64(sums + spoilt)
                        row_cause[spoilt], row_step[spoilt] = 1, i
                        spoilt += 1
                    new = bad
                if parts == 0:
                    value = new
                elif value >= sums and row_cause[value - sums]:
                    pass
                elif new >= sums and row_cause[new - sums]:
                    value = new
                else:
                    if reduces:
                        row = made
                        made += 1
                        row_cause[row] = _sum(value, new, chunks, sums, row, row_chunk, row_set)
                    else:
                        row = spoilt
                        spoilt += 1
                        row_cause[row] = 4
                    row_step[row] = i
                    value = np.int64(sums + row)
                parts += 1
            if writes_dst[k]:
                held[dst[i] + c] = value
            if sending[k]:
                payload[sent[i] + c] = value


@jit
def _sum(a: Any, b: Any, chunks: int, sums: int, row: int, row_chunk: IntArray, row_set: Any) -> int:
    """The sum of two contents as a row; why it is none, or 0."""
    first = row_chunk[a - sums] if a >= sums else (a - 1) % chunks
    second = row_chunk[b - sums] if b >= sums else (b - 1) % chunks
    row_chunk[row] = first
    if first != second:
        return 3
    for w in range(row_set.shape[1]):
        left = row_set[a - sums, w] if a >= sums else _bit((a - 1) // chunks, w)
        right = row_set[b - sums, w] if b >= sums else _bit((b - 1) // chunks, w)
        if left & right:
            return 2
        row_set[row, w] = left | right
    return 0


@jit
def _bit(rank: int, word: int) -> Any:
    return np.uint64(1) << np.uint64(rank % 64) if rank // 64 == word else np.uint64(0)


def _everyone(ranks: int) -> WordArray:
    """The set of all ranks as a row of words."""
    bits = np.zeros((ranks + 63) // 64 * 64, dtype=np.uint8)
    bits[:ranks] = 1
    return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)


@dataclass(frozen=True)
class Wanted:
    """What the collective promises, a row a chunk of an output: ``rank`` whose output, ``offset`` there, ``chunk`` and
    ``origin``: that chunk of that rank's input, or with -1 the sum over all ranks. All of shape (chunks wanted,)."""

    rank: IntArray
    offset: IntArray
    chunk: IntArray
    origin: IntArray


def wanted(algorithm: Algorithm) -> Wanted:
    """The postcondition, the ranks' own parts included."""
    a = algorithm
    ranks, parts, inner = np.arange(a.ranks), np.arange(a.ranks), np.arange(a.chunks)
    root = np.array([0 if a.root is None else a.root])
    everywhere, at_root = ranks, root
    where, whose = {
        "allgather": (everywhere, parts),
        "alltoall": (everywhere, parts),
        "gather": (at_root, parts),
        "reduce": (at_root, np.array([-1])),
        "broadcast": (everywhere, root),
        "scatter": (everywhere, root),
    }.get(a.collective, (everywhere, np.array([-1])))
    rank, origin, c = (grid.reshape(-1).astype(np.int64) for grid in np.meshgrid(where, whose, inner, indexing="ij"))
    spread = len(whose) > 1
    own_part = a.collective in ("alltoall", "reduce_scatter", "scatter")
    return Wanted(rank, origin * a.chunks + c if spread else c, rank * a.chunks + c if own_part else c, origin)


def complete(algorithm: Algorithm, found: Contents, held: IntArray) -> BoolArray:
    """Which contents are sums over all ranks (of whatever chunk)."""
    whole = np.full(len(held), algorithm.ranks == 1)
    row = np.clip(held - found.sums, 0, None)
    is_sum = (held >= found.sums) & (found.row_cause[row] == 0)
    if len(found.row_set):
        whole[is_sum] = np.all(found.row_set == _everyone(algorithm.ranks), axis=1)[row[is_sum]]
    return whole


def lacking(algorithm: Algorithm, where: Cells, found: Contents, promise: Wanted) -> IntArray:
    """Rows of ``promise`` that do not hold; those whose content is spoilt by what is reported already left out."""
    held = found.held[where.base[promise.rank, 1] + promise.offset].astype(np.int64)
    row = np.clip(held - found.sums, 0, None)
    is_row = held >= found.sums
    chunk = np.where(is_row, found.row_chunk[row], (held - 1) % found.chunks)
    good = (promise.origin >= 0) & (held == 1 + promise.origin * found.chunks + promise.chunk)
    good |= (promise.origin < 0) & (held > NOTHING) & (chunk == promise.chunk) & complete(algorithm, found, held)
    spoilt = is_row & (found.row_cause[row] == SPOILT)
    wrong: IntArray = np.flatnonzero(~(good | spoilt))
    return wrong
