"""Where things are in an algorithm: the memory of every rank as numbered cells, and the words for a step or a chunk.

A cell is one chunk of one buffer of one rank. In place, input and output are one piece of memory, so that a chunk of
the input and one of the output may be the same cell. Which ones follows from the pointers by which an executor knows a
call to be in place (count: elements of one rank's part, chunks i[0..C-1] of an allgather):

| collective | in place if | so that |
|---|---|---|
| allgather, gather (the root) | sendbuff = recvbuff + rank * count | i[c] is o[rank C + c] |
| reduce_scatter, scatter (the root) | recvbuff = sendbuff + rank * count | o[c] is i[rank C + c] |
| allreduce, broadcast, reduce, alltoall | sendbuff = recvbuff | i[c] is o[c] |

Sources: Azure/msccl-executor-nccl @c6f6b36, src/misc/msccl/msccl_lifecycle.cc, mscclInternalSchedulerSelectAlgo (all
eight); microsoft/msccl @b23e9cd, src/graph/tuning.cc, mscclInPlaceTotalCountHelper (six; it has no gather and no
scatter, and src/collectives/all_to_all.cc refuses an alltoall in place); microsoft/msccl-tools @030a750,
msccl/language/collectives.py, get_buffer_index (allgather, allreduce, reduce_scatter). At the other ranks of a gather
or scatter one of the buffers is not there, so that nothing is shared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.exchange.algorithm import BUFFERS, KINDS, RECEIVES, SENDS, Algorithm

READS_SRC = np.array([kind in ("s", "cpy", "re", "rrc", "rrs", "rrcs") for kind in KINDS])
READS_DST = np.array([kind == "re" for kind in KINDS])
WRITES_DST = np.array([kind in ("r", "cpy", "re", "rrc", "rcs", "rrcs") for kind in KINDS])
SENDING = np.array([kind in SENDS for kind in KINDS])
RECEIVING = np.array([kind in RECEIVES for kind in KINDS])
ADDING = np.array([kind in ("re", "rrc", "rrs", "rrcs") for kind in KINDS])


@dataclass(frozen=True)
class Cells:
    """``base[rank, buffer] + offset`` is the cell of a chunk; ``size``: how many chunks a rank's buffer really has,
    whatever a file declares (the scratch buffer: what it declares). Both int64 of shape (ranks, 3). ``total`` cells."""

    base: IntArray
    size: IntArray
    total: int


def cells(algorithm: Algorithm) -> Cells:
    """The cells of all ranks, one rank after the other."""
    a, ranks = algorithm, np.arange(algorithm.ranks)
    part, all_parts = np.full(a.ranks, a.chunks), np.full(a.ranks, a.chunks * a.ranks)
    at_root = ranks == (-1 if a.root is None else a.root)
    given, result = {
        "allgather": (part, all_parts),
        "reduce_scatter": (all_parts, part),
        "alltoall": (all_parts, all_parts),
        "gather": (part, np.where(at_root, all_parts, 0)),
        "scatter": (np.where(at_root, all_parts, 0), part),
    }.get(a.collective, (part, part))
    scratch = a.buffer_chunks[:, 2]
    one = np.full(a.ranks, a.in_place)
    if a.collective in ("gather", "scatter"):
        one &= at_root
    memory = np.where(one, np.maximum(given, result), given + result)
    start = np.concatenate([[0], np.cumsum(memory + scratch)]).astype(np.int64)
    first = start[:-1]
    inner = first + np.where(a.collective in ("allgather", "gather", "reduce_scatter", "scatter"), ranks * a.chunks, 0)
    in_base = np.where(one & (given < result), inner, first)
    out_base = np.where(one, np.where(result < given, inner, first), first + given)
    base = np.stack([in_base, out_base, first + memory], axis=1).astype(np.int64)
    return Cells(base, np.stack([given, result, scratch], axis=1).astype(np.int64), int(start[-1]))


def changes_nothing(algorithm: Algorithm, steps: Steps, where: Cells) -> BoolArray:
    """Which steps copy cells onto themselves, shape (steps,). Every executor loads and stores them (localCopy), so that
    they read: with other reads they do not conflict, with a write they do (they might store what was there before)."""
    a = algorithm
    src, dst = (
        where.base[steps.rank, buffer] + offset
        for buffer, offset in ((a.src_buffer, a.src_offset), (a.dst_buffer, a.dst_offset))
    )
    found: BoolArray = (a.kind == KINDS.index("cpy")) & (src == dst)
    return found


@dataclass(frozen=True)
class Steps:
    """Per step, shape (steps,): its thread block (numbered over all ranks), its rank, its position in the block, and
    the thread block's number on its rank."""

    block: IntArray
    rank: IntArray
    position: IntArray
    number: IntArray


def steps(algorithm: Algorithm) -> Steps:
    """Where every step stands."""
    a = algorithm
    lengths = np.diff(a.step_start)
    block = np.repeat(np.arange(len(a.tb_rank)), lengths).astype(np.int64)
    number = numbers(a)
    position = np.arange(a.steps) - a.step_start[:-1][block] if a.steps else np.zeros(0, dtype=np.int64)
    return Steps(block, a.tb_rank[block], position.astype(np.int64), number[block])


def numbers(algorithm: Algorithm) -> IntArray:
    """The number of every thread block on its rank, shape (thread blocks,)."""
    first = np.searchsorted(algorithm.tb_rank, algorithm.tb_rank)
    found: IntArray = (np.arange(len(algorithm.tb_rank)) - first).astype(np.int64)
    return found


def place(algorithm: Algorithm, step: int) -> str:
    """The step in words."""
    a = algorithm
    block = int(np.searchsorted(a.step_start, step, "right")) - 1
    line = f"line {a.line[step]}, " if len(a.line) else ""
    return f"{line}{block_place(a, block)}, step {step - int(a.step_start[block])}"


def block_place(algorithm: Algorithm, block: int) -> str:
    """The thread block in words."""
    rank = int(algorithm.tb_rank[block])
    return f"gpu {rank}, tb {block - int(np.searchsorted(algorithm.tb_rank, rank))}"


def chunk(buffer: int, offset: int, count: int = 1) -> str:
    """Chunks of a buffer in words: ``o[3]``, ``o[3..5]``."""
    return f"{BUFFERS[buffer]}[{offset}]" if count == 1 else f"{BUFFERS[buffer]}[{offset}..{offset + count - 1}]"
