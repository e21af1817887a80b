"""What every chunk holds: the algorithm run on symbols, and what the collective wants there in the end.

A symbol is a chunk of one rank's input, or a sum of the same chunk of several ranks' inputs, each of them once. Where
nothing races, every order of the steps ends with the same contents; one is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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
    made_rows = _Rows(chunk, made, cause, np.zeros((added if words else 0, words), dtype=np.uint64))
    src, dst = where.base[steps.rank, a.src_buffer] + a.src_offset, where.base[steps.rank, a.dst_buffer] + a.dst_offset
    accesses = _Accesses(a.kind, a.count, src, dst, waits.message, start[:-1], racing)
    changing = order[~changes_nothing(a, steps, where)[order]]
    _run(changing, accesses, _KINDS, held, sent, _Symbols(chunks, 1 + a.ranks * chunks), reduces, made_rows, unwritten)
    return Contents(held, start[:-1], sent, chunks, 1 + a.ranks * chunks, *made_rows, unwritten)


class _Accesses(NamedTuple):
    """What every step touches, shape (steps,): its ``kind``, how many ``chunks``, the first cell that it reads
    (``src``) and that it writes (``dst``), the step that sends what it receives (``message``), the first place of what
    it ``sent``, and whether it is ``racing``."""

    kind: IntArray
    chunks: IntArray
    src: IntArray
    dst: IntArray
    message: IntArray
    sent: IntArray
    racing: BoolArray


class _Kinds(NamedTuple):
    """What steps of every kind do, bool arrays of shape (kinds,)."""

    reads_src: BoolArray
    reads_dst: BoolArray
    writes_dst: BoolArray
    sending: BoolArray
    receiving: BoolArray


class _Rows(NamedTuple):
    """The rows of :class:`Contents`: chunk, step, cause, and set of ranks."""

    chunk: IntArray
    step: IntArray
    cause: IntArray
    ranks: WordArray


class _Symbols(NamedTuple):
    """How contents are numbered: ``chunks`` of the largest input, and the first number of a row (``sums``)."""

    chunks: int
    sums: int


_KINDS = _Kinds(READS_SRC, READS_DST, WRITES_DST, SENDING, RECEIVING)


@jit
def _run(
    order: IntArray,
    steps: _Accesses,
    kinds: _Kinds,
    held: Int32Array,
    payload: Int32Array,
    symbols: _Symbols,
    reduces: bool,
    rows: _Rows,
    unwritten: IntArray,
) -> None:
    """Change ``held``, ``payload``, ``rows`` and ``unwritten``. One row at most for every sum, one for every step that
    reads what nothing has written. Sums come first."""
    sums = symbols.sums
    made, spoilt = 0, len(rows.ranks) if reduces else 0
    for n in range(len(order)):
        i = order[n]
        k = steps.kind[i]
        bad = np.int64(-1)
        if not (kinds.reads_src[k] or kinds.writes_dst[k]):
            continue  # whatever a nop says it counts
        for c in range(steps.chunks[i]):
            value = np.int64(0)
            parts = 0
            for source in range(3):
                if source == 0 and kinds.receiving[k]:
                    new = np.int64(payload[steps.sent[steps.message[i]] + c])
                elif source == 1 and kinds.reads_src[k]:
                    new = np.int64(held[steps.src[i] + c])
                elif source == 2 and kinds.reads_dst[k]:
                    new = np.int64(held[steps.dst[i] + c])
                else:
                    continue
                if new == 0 or steps.racing[i]:
                    if not steps.racing[i] and unwritten[i] < 0:
                        unwritten[i] = steps.src[i] + c if source == 1 else steps.dst[i] + c
                    if bad < 0:
                        bad = np.int64(sums + spoilt)
                        rows.cause[spoilt], rows.step[spoilt] = SPOILT, i
                        spoilt += 1
                    new = bad
                if parts == 0:
                    value = new
                elif value >= sums and rows.cause[value - sums]:
                    pass
                elif new >= sums and rows.cause[new - sums]:
                    value = new
                else:
                    if reduces:
                        row = made
                        made += 1
                        rows.cause[row] = _sum(value, new, symbols, row, rows)
                    else:
                        row = spoilt
                        spoilt += 1
                        rows.cause[row] = NO_SUMS
                    rows.step[row] = i
                    value = np.int64(sums + row)
                parts += 1
            if kinds.writes_dst[k]:
                held[steps.dst[i] + c] = value
            if kinds.sending[k]:
                payload[steps.sent[i] + c] = value


@jit
def _sum(a: np.int64, b: np.int64, symbols: _Symbols, row: int, rows: _Rows) -> int:
    """The sum of two contents as a row; why it is none, or 0."""
    chunks, sums = symbols.chunks, symbols.sums
    first = rows.chunk[a - sums] if a >= sums else (a - 1) % chunks
    second = rows.chunk[b - sums] if b >= sums else (b - 1) % chunks
    rows.chunk[row] = first
    if first != second:
        return MIXED
    for w in range(rows.ranks.shape[1]):
        left = rows.ranks[a - sums, w] if a >= sums else _bit((a - 1) // chunks, w)
        right = rows.ranks[b - sums, w] if b >= sums else _bit((b - 1) // chunks, w)
        if left & right:
            return DOUBLED
        rows.ranks[row, w] = left | right
    return 0


@jit
def _bit(rank: np.int64, word: int) -> np.uint64:
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
    found = Wanted(rank, origin * a.chunks + c if spread else c, rank * a.chunks + c if own_part else c, origin)
    if a.wants is None:
        return found
    asked = c < a.wants[origin * a.ranks + rank]
    return Wanted(*(column[asked] for column in (found.rank, found.offset, found.chunk, found.origin)))


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
