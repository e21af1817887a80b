"""Method ``leaders`` (ours): the receive count met, so least bytes on global links whatever the groups.

Where every schedule counts (problem ``any``) nothing limits rounds, so every part of a partition (group, node) may take
each block in once, by one of its ranks, the block's *leader* there, and hand it on inside. Every block then runs along
a tree of ranks whose ranks of any group, and of any node, are connected in it:

* **allgather, large broadcast**: from the rank that holds the block to its leader in every other group, from leaders to
  those in the other nodes, from these to the ranks. A large broadcast first cuts the vector among the ranks of the
  root's group. Leaders are spread evenly: what a part gets from another goes to its ranks in equal shares. Parts
  exchange as in Bruck's allgather, in ceil(log2 parts) stages.
* **reduce-scatter, large reduce**: the same backwards, receivers adding. **Large allreduce**: first that, then this.
* **small broadcast, reduce, allreduce**: one block, one leader a part; among leaders along binomial trees.
* **scatter, gather**: the root deals with one rank of every finest part that counts, that one along a binomial tree.

*Why it is least*: a tree whose G parts are connected in it has G - 1 edges between parts, what the receive count asks
for (``bounds/global_bytes.py``), on every level at once, so for all ``costs``; twice that for an allreduce; a scattered
block enters every part it has to enter and no other. Rounds are one-port: in a round a rank sends at most one message
and receives at most one. Messages of one stage form a bipartite graph of senders and receivers, which König colours
with its degree, 1 where parts are equal. Large vectors: p^2 in blocks and rows; others O(p).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.graph.edge_colouring import edge_colours
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.bine.instance import BineInstance
from synth_models.bine.parts.steps import Rows
from synth_models.bine.solution import Steps, join

MAX_PAIRS = 24_000_000  # ranks squared, of large vectors


def solve(instance: BineInstance, options: RunOptions) -> Outcome:
    """Method ``leaders``. Raises :class:`UnsupportedError` for other problems than ``any``, tori and alltoall."""
    if instance.problem != "any" or instance.torus is not None:
        raise UnsupportedError("leaders is for groups and the problem any, where every schedule counts")
    if instance.collective == "alltoall":
        raise UnsupportedError("leaders has no alltoall: ring's shifts send no block over a border in vain")
    return Outcome("finished", join([_job(instance, job) for job in range(len(instance.jobs))]))


def _job(instance: BineInstance, job: int) -> Steps:
    nodes = instance.nodes[job]
    levels = [level.astype(np.int64) for level in (instance.allocations[job], nodes, np.arange(len(nodes)))]
    ranks, root = len(levels[0]), instance.root
    if instance.collective in ("scatter", "gather"):
        counted = instance.partitions(job)[-1][1].astype(np.int64)
        return _dealt(levels, counted, root, backwards=instance.collective == "gather")
    if instance.blocks(ranks) == 1:
        return _as_asked(instance, _whole_vector(levels, root), np.zeros(1, dtype=np.int64))
    if ranks * ranks > MAX_PAIRS:
        raise UnsupportedError(f"more than {MAX_PAIRS} pairs of ranks")
    order = _by_parts(levels, root)
    rooted = root if instance.collective in ("broadcast", "reduce") else None
    return _as_asked(instance, _blocks_apart(levels, order, rooted), order)


@dataclass(frozen=True)
class _Messages:
    """Rows of one-port rounds, all columns of shape (rows,); what a row carries is as in ``Columns``."""

    round: IntArray
    src: IntArray
    dst: IntArray
    first: IntArray
    count: IntArray

    @property
    def rounds(self) -> int:
        return int(self.round.max(initial=-1)) + 1


def _as_asked(instance: BineInstance, out: _Messages, layout: IntArray) -> Steps:
    """The rows that hand blocks out, or these backwards with sums, or one after the other."""
    rows, start = Rows(), 0
    if instance.collective in ("reduce", "reduce_scatter", "allreduce"):
        rows.add(out.rounds - 1 - out.round, out.dst, out.src, out.first, out.count, True)
        start = out.rounds
    if instance.collective in ("broadcast", "allgather", "allreduce"):
        rows.add(start + out.round, out.src, out.dst, out.first, out.count)
    return rows.finish(layout)


def _by_parts(levels: list[IntArray], root: int) -> IntArray:
    """Ranks in the order of their groups, nodes and numbers, the root's group, node and the root first."""
    keys = [key for level in levels for key in (level != level[root], level)]
    return np.lexsort(keys[::-1]).astype(np.int64)


def _blocks_apart(levels: list[IntArray], order: IntArray, root: int | None) -> _Messages:
    """The block at every position of ``order`` to all ranks, from the rank there, or from ``root``, which holds all."""
    ranks = len(order)
    holder = order[None, :]  # of every part of the level above, who has each position's block
    parts: list[_Messages] = []
    if root is not None:
        mine = np.flatnonzero(levels[0] == levels[0][root])
        holder = mine[np.arange(ranks) * len(mine) // ranks][None, :]
        _, src, dst, first, count = _runs(np.zeros(ranks, dtype=np.int64), np.full(ranks, root), holder[0])
        parts.append(_coloured(src, dst, first, count, levels[0]))
    above = np.zeros(ranks, dtype=np.int64)
    for level in levels:
        members = np.split(np.argsort(level, kind="stable"), np.cumsum(np.bincount(level))[:-1])
        found, rows = np.empty((len(members), ranks), dtype=np.int64), []
        parent = above[[some[0] for some in members]]
        for whole, had in enumerate(holder):
            rows += _between(np.flatnonzero(parent == whole), members, level, had, root, found)
        stage, *columns = (np.concatenate(column) for column in zip(*rows, strict=True))
        for now in range(int(stage.max(initial=-1)) + 1):
            src, dst, first, count = (column[stage == now] for column in columns)
            parts.append(_coloured(src, dst, first, count, above))
        holder, above = found, level
    return _one_after_the_other(parts)


def _between(
    children: IntArray, members: list[IntArray], level: IntArray, had: IntArray, root: int | None, found: IntArray
) -> list[tuple[IntArray, ...]]:
    """Rows (stage, source, target, first, count) that take the blocks which ``had`` hold, one for each position, to
    every part of ``children``. Writes into ``found`` who then holds them there.

    As in Bruck's allgather: the part j takes what began s parts after it in the stage floor(log2 s), from the part
    2^stage after it, which has taken it before.
    """
    size, number = len(children), np.zeros(len(members), dtype=np.int64)
    number[children] = np.arange(size)
    origin = number[level[had]]
    place = np.empty(len(had), dtype=np.int64)  # among the positions of one origin
    order = np.argsort(origin, kind="stable")
    counts = np.bincount(origin, minlength=size)
    place[order] = np.arange(len(had)) - (np.cumsum(counts) - counts)[origin[order]]
    for part in children:
        mine = members[part]
        spread = mine[place * len(mine) // counts[origin]]
        other = np.full(len(had), root) if root is not None and level[root] == part else spread
        found[part] = np.where(origin == number[part], had, other)
    rows: list[tuple[IntArray, ...]] = []
    for j, part in enumerate(children):
        away = (origin - j) % size
        stage = np.floor(np.log2(np.maximum(away, 1))).astype(np.int64)
        source = found[children[(j + (1 << stage)) % size], np.arange(len(had))]
        holds_all = root is not None and level[root] == part
        rows.append(_runs(stage, np.where((away == 0) | holds_all, found[part], source), found[part]))
    return rows


def _runs(
    stage: IntArray, source: IntArray, target: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Rows (stage, source, target, first, count) for positions whose two ranks differ, neighbours together."""
    begin = np.append(True, (np.diff(stage) != 0) | (np.diff(source) != 0) | (np.diff(target) != 0))
    at = np.flatnonzero(begin)
    count = np.diff(np.append(at, len(source)))
    moves = source[at] != target[at]
    return stage[at][moves], source[at][moves], target[at][moves], at[moves], count[moves]


def _coloured(src: IntArray, dst: IntArray, first: IntArray, count: IntArray, within: IntArray) -> _Messages:
    """Rounds for messages inside parts (``within``: every rank's) that all could go at once, were it not for the ports:
    by the distance of their ranks, or by König where that takes more rounds than a rank has messages."""
    if not len(src):
        return _Messages(*(np.zeros(0, dtype=np.int64) for _ in range(5)))
    ranks = len(within)
    pairs, which = np.unique(src * ranks + dst, return_inverse=True)
    left, right = np.divmod(pairs, ranks)
    sizes = np.bincount(within)
    order = np.argsort(within, kind="stable")
    place = np.empty(ranks, dtype=np.int64)
    place[order] = np.arange(ranks) - (np.cumsum(sizes) - sizes)[within[order]]
    colour = (place[right] - place[left]) % sizes[within[left]] - 1
    degree = int(max(np.bincount(left).max(), np.bincount(right).max()))
    if colour.max() >= degree:
        colour = edge_colours(left, right, ranks, ranks, degree)
    return _Messages(colour[which], src, dst, first, count)


def _whole_vector(levels: list[IntArray], root: int) -> _Messages:
    """One block from the root along binomial trees: leaders of groups, of the nodes of a group, ranks of a node."""
    leader = np.full(1, root)  # of every part of the level above
    above = np.zeros(len(levels[0]), dtype=np.int64)
    parts = []
    for level in levels:
        first = np.unique(level, return_index=True)[1]
        now = first.copy()
        now[level[leader]] = leader
        members = np.split(now[np.argsort(above[first], kind="stable")], np.cumsum(np.bincount(above[first]))[:-1])
        trees = [_binomial(np.append(r, some[some != r])) for r, some in zip(leader, members, strict=True)]
        when, src, dst = (np.concatenate(column) for column in zip(*trees, strict=True))
        parts.append(_Messages(when, src, dst, np.zeros_like(src), np.ones_like(src)))
        leader, above = now, level
    return _one_after_the_other(parts)


def _binomial(ranks: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Rounds, sources and destinations of a binomial tree over ``ranks`` from the first of them."""
    to = np.arange(1, len(ranks))
    bit = np.floor(np.log2(to)).astype(np.int64)
    return bit, ranks[to - (1 << bit)], ranks[to]


def _dealt(levels: list[IntArray], counted: IntArray, root: int, backwards: bool) -> Steps:
    """A block for (from) every rank. ``counted``: every rank's part of the finest partition whose borders cost."""
    order = _by_parts(levels, root)
    begins = np.flatnonzero(np.append(True, np.diff(counted[order]) != 0))
    sizes = np.diff(np.append(begins, len(order)))
    rows, rounds = Rows(), 0
    turn = np.argsort(-sizes[1:], kind="stable") + 1  # the largest part first
    rows.add(np.arange(len(turn)), root, order[begins[turn]], begins[turn], sizes[turn])
    ready = np.full(len(sizes), len(turn))  # the root deals in its own part last
    ready[turn] = np.arange(len(turn)) + 1
    for begin, size, start in zip(begins, sizes, ready, strict=True):
        bits = int(size - 1).bit_length()
        for bit in reversed(range(bits)):
            src = np.arange(0, size, 2 << bit)
            src = src[src + (1 << bit) < size]
            dst = src + (1 << bit)
            rows.add(start + bits - 1 - bit, order[begin + src], order[begin + dst], begin + dst,
                     np.minimum(1 << bit, size - dst))  # fmt: skip
        rounds = max(rounds, int(start) + bits)
    steps = rows.finish(order)
    if not backwards:
        return steps
    rows = Rows()
    rows.add(rounds - 1 - steps.round, steps.dst, steps.src, steps.first, steps.count)
    return rows.finish(order)


def _one_after_the_other(parts: list[_Messages]) -> _Messages:
    starts = np.concatenate([[0], np.cumsum([part.rounds for part in parts])])
    columns = [(part.round + start, part.src, part.dst, part.first, part.count)
               for part, start in zip(parts, starts, strict=False)]  # fmt: skip
    return _Messages(*(np.concatenate(column) for column in zip(*columns, strict=True)))
