"""The check of the bine family: replay of the data movement, rules of the problem, bytes on global links.

Blocks are counted in whole numbers without limit and turned into bytes once, so that the value is exact up to the last
rounding; every number of the messages is compared with its range before it is added to another.

Imports nothing from the methods. Gather-like collectives track who holds which block; reductions track, for every
rank and block, the exact set of ranks whose contribution its partial sum contains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray, WordArray
from synth.kernels import jit
from synth.method import Verdict
from synth.text.untrusted import exact_dot, exact_sum
from synth_models.bine.check.baseline import baseline_bytes
from synth_models.bine.check.links import link_loads
from synth_models.bine.check.rules import problem_faults
from synth_models.bine.instance import BETWEEN_GROUPS, BineInstance
from synth_models.bine.solution import MAX_ROUNDS, Messages

REDUCTIONS = ("reduce", "reduce_scatter", "allreduce")
_NOT_HELD, _ADDED_TWICE, _INCOMPLETE = 1, 2, 3
_WORDS = {
    _NOT_HELD: "sends a block it does not hold",
    _ADDED_TWICE: "adds a contribution the receiver has already",
    _INCOMPLETE: "copies a sum that is not complete",
}
BATCH = 4_000_000  # words of state at a time
MAX_FAULTS = 20


def check_messages(instance: BineInstance, messages: Messages) -> Verdict:
    """Replay every job; the value is the sum over jobs of bytes on global links.

    Facts: ``messages``, ``pieces`` (contiguous runs of blocks sent), ``rounds`` (most of any job), ``total_bytes``,
    ``global_messages``, ``worst_group_pair_bytes`` and ``worst_link_bytes`` (most of any job, each direction apart);
    where there are several jobs, ``global_bytes_by_job`` (as the objective counts); where nodes are given,
    ``node_bytes``, ``group_bytes`` and ``global_bytes``, sent inside nodes, inside groups and between groups;
    ``reduction_percent`` is against the named ``baseline``.
    """
    allocations = instance.allocations
    faults = _shape_faults(instance, messages)
    facts: dict[str, Any] = {"jobs": len(allocations), "messages": 0, "pieces": len(messages)}
    if faults:
        return Verdict(None, facts, faults)
    facts |= {"rounds": 0, "global_messages": 0, "worst_group_pair_bytes": 0.0, "worst_link_bytes": 0.0}
    volume = _Volume()
    for j in range(len(allocations)):
        where = f"job {instance.job_names[j]}: " if len(allocations) > 1 else ""
        faults += [where + text for text in _job_faults(instance, messages, j)]
        loads = _count_job(instance, messages, j, facts, volume)
        if math.isinf(loads["worst_link_bytes"]):
            faults.append(f"{where}no route over the fabric's pairs joins two groups that exchange messages")
            continue
        for name, value in loads.items():
            facts[name] = max(facts[name], value)
        if len(faults) >= MAX_FAULTS:
            break
    total = instance.bytes_of(volume.crossing, messages.shares)
    facts |= _bytes_facts(instance, messages, volume)
    base = baseline_bytes(instance)
    if base is not None and base[1] > 0:
        facts |= {"baseline": base[0], "reduction_percent": round(100 * (1 - total / base[1]), 4)}
    return Verdict(None if faults else total, facts, faults[:MAX_FAULTS])


@dataclass
class _Volume:
    """Blocks as pairs (ranks of a job, so many of its blocks), one a job: in all messages, in those that cross global
    links (times the links crossed), and by level (inside nodes, inside groups, between groups; none on a torus)."""

    sent: list[tuple[int, int]] = field(default_factory=list)
    crossing: list[tuple[int, int]] = field(default_factory=list)
    by_level: tuple[list[tuple[int, int]], ...] = field(default_factory=lambda: ([], [], []))


def _job_faults(instance: BineInstance, messages: Messages, job: int) -> list[str]:
    """Faults of one job's movement, and if there are none against the instance's problem."""
    rows, ranks = messages.rows_of(job), len(instance.allocations[job])
    step, src, dst, count = (c[rows] for c in (messages.round, messages.src, messages.dst, messages.count))
    return _replay(instance, messages, job, ranks) or problem_faults(instance, job, step, src, dst, count)


def _count_job(
    instance: BineInstance, messages: Messages, job: int, facts: dict[str, Any], volume: _Volume
) -> dict[str, float]:
    """Add one job's messages to ``facts`` and its blocks to ``volume``; the loads of its links."""
    rows, ranks = messages.rows_of(job), len(instance.allocations[job])
    step, src, dst, count = (c[rows] for c in (messages.round, messages.src, messages.dst, messages.count))
    unit = instance.bytes_of([(ranks, 1)], messages.shares)
    crossed = instance.crossings(job, src, dst)
    distinct, at = np.unique((step * ranks + src) * ranks + dst, return_index=True)
    facts["messages"] += len(distinct)
    level = None if instance.torus is not None else instance.level(job, src, dst)
    far = crossed > 0 if level is None else level == BETWEEN_GROUPS
    facts["global_messages"] += int(np.sum(far[at]))
    facts["rounds"] = max(facts["rounds"], int(step.max(initial=-1)) + 1)
    volume.sent.append((ranks, exact_sum(count)))
    volume.crossing.append((ranks, exact_dot(count, crossed)))
    if level is not None:
        for k, blocks_of_level in enumerate(volume.by_level):
            blocks_of_level.append((ranks, exact_sum(count[level == k])))
    return link_loads(instance, job, src, dst, count * unit)


def _bytes_facts(instance: BineInstance, messages: Messages, volume: _Volume) -> dict[str, Any]:
    """What all jobs send, in bytes; by level and by job where the instance distinguishes them."""
    facts: dict[str, Any] = {"total_bytes": instance.bytes_of(volume.sent, messages.shares)}
    if any(job.nodes is not None for job in instance.jobs) or instance.costs is not None:
        levels = zip(("node_bytes", "group_bytes", "global_bytes"), volume.by_level, strict=True)
        facts |= {name: instance.bytes_of(rows, messages.shares) for name, rows in levels}
    if 1 < len(volume.crossing) <= 100:
        facts["global_bytes_by_job"] = [instance.bytes_of([row], messages.shares) for row in volume.crossing]
    return facts


def _shape_faults(instance: BineInstance, messages: Messages) -> list[str]:
    """What is wrong with the arrays themselves."""
    jobs = len(instance.allocations)
    columns = (messages.job, messages.round, messages.src, messages.dst, messages.first, messages.count, messages.adds)
    if len({len(column) for column in columns}) != 1:
        return ["the columns differ in length"]
    if messages.shares < 1:
        return ["there must be at least one share"]
    sizes = [instance.blocks(len(groups)) * messages.shares for groups in instance.allocations]
    if messages.starts.tolist() != [0, *accumulate(sizes)] or len(messages.layout) != sum(sizes):
        return ["the layout does not hold one part for every job"]
    if _outside(messages.job, 0, jobs - 1) or np.any(np.diff(messages.job) < 0):
        return ["the rows are not ordered by job, or name a job that is not there"]
    for j, blocks in enumerate(sizes):
        fault = _rows_fault(messages, j, len(instance.allocations[j]), blocks)
        if fault is not None:
            return [f"job {j}: {fault}"]
    return []


def _rows_fault(messages: Messages, job: int, ranks: int, blocks: int) -> str | None:
    """What is wrong first with the layout and the rows of one job."""
    layout, rows = messages.layout_of(job), messages.rows_of(job)
    if not np.array_equal(np.sort(layout), np.arange(blocks)):
        return f"the layout is no permutation of its {blocks} blocks"
    columns = (messages.round, messages.src, messages.dst, messages.first, messages.count)
    step, src, dst, first, count = (column[rows] for column in columns)
    if _outside(step, 0, MAX_ROUNDS - 1) or np.any(np.diff(step) < 0):
        return f"the rows are not ordered by round, or name one outside 0..{MAX_ROUNDS - 1}"
    if _outside(src, 0, ranks - 1) or _outside(dst, 0, ranks - 1):
        return f"a message names a rank outside 0..{ranks - 1}"
    if np.any(src == dst):
        return f"rank {int(src[np.argmax(src == dst)])} sends to itself"
    if _outside(first, 0, blocks - 1) or _outside(count, 1, blocks) or np.any(first > blocks - count):
        return f"a row names a block outside 0..{blocks - 1}"
    return None


def _outside(values: IntArray, least: int, most: int) -> bool:
    """Whether some value is less than ``least`` or more than ``most``."""
    return bool(len(values)) and (int(values.min()) < least or int(values.max()) > most)


class _Rows(NamedTuple):
    """The rows that move some of a batch of blocks, shape (rows,) each, ordered by ``round``: the blocks at positions
    ``low`` to ``high`` of the batch go from ``src`` to ``dst``, which ``adds`` them to its own or keeps them."""

    round: IntArray
    src: IntArray
    dst: IntArray
    low: IntArray
    high: IntArray
    adds: BoolArray


def _replay(instance: BineInstance, messages: Messages, job: int, ranks: int) -> list[str]:
    """Faults of the data movement of one job."""
    layout, rows = messages.layout_of(job), messages.rows_of(job)
    columns = (messages.round, messages.src, messages.dst, messages.first, messages.count)
    step, src, dst, first, count = (np.ascontiguousarray(column[rows]) for column in columns)
    adds = np.ascontiguousarray(messages.adds[rows])
    reduces = instance.collective in REDUCTIONS
    if adds.any() and not reduces:
        return ["adds partial sums in a collective without reduction"]
    words = (ranks + 63) // 64 if reduces else 1
    batch = max(1, BATCH // (ranks * words))
    faults = []
    for low in range(0, len(layout), batch):
        blocks = layout[low : low + batch]
        begin, end = _states(instance, ranks, blocks, words)
        inside = (first < low + len(blocks)) & (first + count > low)
        spans = np.maximum(first - low, 0), np.minimum(first + count - low, len(blocks))
        low_in, high_in = (span[inside] for span in spans)
        within = _Rows(step[inside], src[inside], dst[inside], low_in, high_in, adds[inside])
        code, row, position = _run(begin, np.zeros(begin.shape[:2], dtype=bool), within, reduces, end)
        if code:
            r = np.flatnonzero(inside)[row]
            what = f"round {step[r]}: rank {src[r]} -> {dst[r]}, block {blocks[position]}: {_WORDS[code]}"
            faults.append(what)
            continue
        wanted = _wanted(instance.collective, instance.root, ranks, blocks)
        missing = np.argwhere(wanted & (begin != end).any(axis=2))
        if len(missing):
            rank, position = missing[0]
            what = "the complete sum of block" if reduces else "block"
            faults.append(f"rank {rank} ends without {what} {blocks[position]} ({len(missing)} such)")
        if len(faults) >= MAX_FAULTS:
            break
    return faults


def _states(instance: BineInstance, ranks: int, blocks: IntArray, words: int) -> tuple[WordArray, WordArray]:
    """What ranks hold at the beginning, shape (ranks, blocks, words), and the complete set, shape (words,)."""
    state = np.zeros((ranks, len(blocks), words), dtype=np.uint64)
    at = np.arange(len(blocks))
    full = np.zeros(words, dtype=np.uint64)
    if instance.collective in REDUCTIONS:
        r = np.arange(ranks)
        bit = np.uint64(1) << (r % 64).astype(np.uint64)
        state[r[:, None], at[None, :], (r // 64)[:, None]] = bit[:, None]
        np.bitwise_or.at(full, r // 64, bit)
        return state, full
    full[0] = 1
    match instance.collective:
        case "broadcast" | "scatter":
            state[instance.root, :, 0] = 1
        case "gather" | "allgather":
            state[blocks % ranks, at, 0] = 1
        case _:
            state[blocks // ranks % ranks, at, 0] = 1
    return state, full


def _wanted(collective: str, root: int, ranks: int, blocks: IntArray) -> BoolArray:
    """Whether a rank must end with a block, shape (ranks, blocks)."""
    wanted = np.zeros((ranks, len(blocks)), dtype=bool)
    match collective:
        case "broadcast" | "allgather" | "allreduce":
            wanted[:] = True
        case "reduce" | "gather":
            wanted[root] = True
        case _:  # scatter and reduce_scatter: its own block; alltoall: the blocks meant for it
            wanted[blocks % ranks, np.arange(len(blocks))] = True
    return wanted


@jit
def _run(state: WordArray, complete: BoolArray, rows: _Rows, reduces: bool, full: WordArray) -> tuple[int, int, int]:
    """Move the rows through ``state``, shape (ranks, blocks, words), in place, all of a round at once; (fault code,
    row, position), code 0 if none. ``complete``, shape (ranks, blocks), becomes whether a rank has all of a block.

    Only what is complete may be copied. What is added is put aside first, or the whole state where that is less: rows
    may send a block again and again."""
    step, src, dst, low, high, adds = rows
    ranks, blocks, words = state.shape
    for r in range(ranks):
        for b in range(blocks):
            complete[r, b] = _is_full(state, r, b, full)
    begin = 0
    while begin < len(step):
        end, size = begin, 0
        while end < len(step) and step[end] == step[begin]:
            size += (high[end] - low[end]) * adds[end]
            end += 1
        crowded = size > ranks * blocks
        before = state.copy() if crowded else state
        moved = np.empty((0 if crowded else size, words), dtype=np.uint64)
        at = 0
        for i in range(begin, end):
            for b in range(low[i], high[i]):
                if not adds[i] and not complete[src[i], b]:
                    return (_INCOMPLETE if reduces else _NOT_HELD), i, b
                if adds[i] and not crowded:
                    for w in range(words):
                        moved[at, w] = state[src[i], b, w]
                    at += 1
        at = 0
        for i in range(begin, end):
            for b in range(low[i], high[i]):
                if adds[i]:
                    for w in range(words):
                        came = before[src[i], b, w] if crowded else moved[at, w]
                        if state[dst[i], b, w] & came:
                            return _ADDED_TWICE, i, b
                        state[dst[i], b, w] |= came
                    complete[dst[i], b] = _is_full(state, dst[i], b, full)
                    at += 1
                elif not complete[dst[i], b]:
                    for w in range(words):
                        state[dst[i], b, w] = full[w]
                    complete[dst[i], b] = True
        begin = end
    return 0, 0, 0


@jit
def _is_full(state: WordArray, rank: int, block: int, full: WordArray) -> bool:
    for w in range(len(full)):  # noqa: SIM110
        if state[rank, block, w] != full[w]:
            return False
    return True
