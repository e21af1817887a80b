"""Allreduce in few hops: partial sums exchanged within nested groups of ranks, or collected at one of each.

A *ladder* is a row of partitions of the members, each coarser than the one before, from single ranks to all. On a rung
the groups below exchange their sums, every active rank receiving one from each of the other groups; or they bring them
to one of the active ranks, which alone stays active for the piece. At the end those that were left behind receive the
sum. One rung of exchange is the one-shot allreduce, rungs of pairs are recursive doubling, one rung of collecting is
reduce-scatter and allgather; boxes of GPUs want a mixture.

A rank sends a partial sum before anything more is added to it, so a rung is refused where sends take longer than the
first arrival of their own rung.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.kernels import jit
from synth_models.fabric.references.pulling.board import INF, Board, lag_of
from synth_models.fabric.references.pulling.book import new_book
from synth_models.fabric.references.pulling.game import Moves, Pieces
from synth_models.fabric.references.pulling.grow import reserve, start_of
from synth_models.fabric.solution import BoolArray, IntArray

EXCHANGE, COLLECT = 0, 1


def ladder(near: IntArray, generator: np.random.Generator, widest: int) -> list[IntArray] | None:
    """A random ladder: per rung the number of the group of every member, shape (members,). ``near``: ticks of the
    quickest direct route between members, :data:`INF` for none. Groups of a rung join up to ``widest`` of the rung
    below that are all directly joined, the nearest first; None if it ends before all are one."""
    count = len(near)
    group = np.arange(count)
    rungs = [group]
    while group.max() > 0:
        groups = int(group.max()) + 1
        # the farthest that a member of one group is from the nearest member of another, both ways
        into = np.full((groups, count), INF)
        np.minimum.at(into, group, near)
        apart = np.zeros((groups, groups), dtype=np.int64)
        np.maximum.at(apart.T, group, into.T)
        apart = np.maximum(apart, apart.T)
        limit = np.partition(np.where(np.eye(groups, dtype=bool), INF, apart), 0, axis=1)[:, 0].max()
        if limit >= INF:
            return None
        limit += limit // 4
        new = np.full(groups, -1)
        made = 0
        for a in generator.permutation(groups):
            if new[a] >= 0:
                continue
            new[a] = made
            inside = [int(a)]
            shuffled = generator.permutation(groups)
            for b in shuffled[np.argsort(apart[a][shuffled], kind="stable")]:
                if len(inside) >= widest:
                    break
                if new[b] < 0 and all(apart[b, c] <= limit for c in inside):
                    new[b] = made
                    inside.append(int(b))
            made += 1
        if made == groups:
            return None
        group = new[group]
        rungs.append(group)
    return rungs


def nearness(board: Board, field: Any, kind: int) -> IntArray:
    """Ticks of the quickest direct route between members, shape (members, members)."""
    count = len(board.ranks)
    near = np.full((count, count), INF)
    lag = np.array([lag_of(field, r, kind) for r in range(len(board.source))], dtype=np.int64)
    np.minimum.at(near, (board.source, board.target), lag)
    np.fill_diagonal(near, 0)
    member = np.flatnonzero(board.is_member)
    found: IntArray = near[np.ix_(member, member)]
    return found


def climb(
    board: Board, field: Any, pieces: Pieces, rungs: list[IntArray], kinds: list[int], seed: int, cutoff: int
) -> tuple[Moves, BoolArray] | None:
    """All pieces over the ladder; ``kinds[i]`` says what is done on rung i + 1. The transfers, and which of them add;
    None if it would not be valid, or not complete before ``cutoff``."""
    member = np.flatnonzero(board.is_member)
    groups = np.full((len(rungs), len(board.ranks)), -1, dtype=np.int64)
    for i, rung in enumerate(rungs):
        groups[i, member] = rung
    count, n = len(pieces), len(member)
    room = count * (2 * n * (n + 8))
    width = int(np.diff(board.row).max(initial=1)) * 2
    out = np.zeros((5, min(room, 4_000_000)), dtype=np.int64)
    book = new_book(board.resources, 2 * out.shape[1] * width + 1024)
    done, completion = _climb(
        field, book, pieces.kind, groups, np.array(kinds, dtype=np.int64), member, seed, cutoff, out
    )
    if done < 0:
        return None
    found = out[:, :done]
    lag = found[4]
    return Moves(found[0].copy(), found[1].copy(), found[2].copy(), lag.copy(), int(completion)), found[3] > 0


@jit
def _climb(
    board: Any, book: Any, kind: Any, groups: Any, kinds: Any, member: Any, seed: Any, cutoff: Any, out: Any
) -> Any:
    np.random.seed(seed)
    pieces, ranks = len(kind), groups.shape[1]
    source, target, in_start, into = board[2], board[3], board[6], board[7]
    done, last = 0, np.int64(0)
    active = np.zeros((pieces, ranks), dtype=np.bool_)
    ready = np.zeros((pieces, ranks), dtype=np.int64)  # when what a rank sends next is complete
    latest = np.full((pieces, ranks), np.int64(-1))  # its last start so far
    for v in member:
        active[:, v] = True
    order = np.random.permutation(pieces)
    best_of = np.zeros(ranks, dtype=np.int64)
    for rung in range(1, len(groups)):
        below, here = groups[rung - 1], groups[rung]
        for p in order:
            then = ready[p].copy()
            first = np.full(ranks, np.int64(INF))  # the first arrival of this rung
            takes = active[p].copy()
            if kinds[rung - 1] == COLLECT:  # one active rank of every group, in turn over the pieces
                for g in range(here.max() + 1):
                    count = 0
                    for v in member:
                        if here[v] == g and active[p, v]:
                            count += 1
                    wanted = p % count
                    for v in member:
                        if here[v] == g and active[p, v]:
                            if wanted != 0:
                                takes[v] = False
                            wanted -= 1
            for v in member[np.random.permutation(len(member))]:
                if not takes[v]:
                    continue
                # one transfer from every other group of the rung below that is part of v's group
                best_of[:] = -1
                for other in np.random.permutation(below.max() + 1):
                    inside = False
                    for w in member:
                        if below[w] == other and here[w] == here[v]:
                            inside = True
                            break
                    if other == below[v] or not inside:
                        continue
                    best, at, most = -1, np.int64(0), np.int64(INF)
                    for j in range(in_start[v], in_start[v + 1]):
                        r = into[j]
                        w = source[r]
                        if below[w] != other or not active[p, w]:
                            continue
                        lag = lag_of(board, r, kind[p])
                        if ready[p, w] + lag >= most:
                            continue
                        s = start_of(board, book, r, kind[p], ready[p, w])
                        if s + lag < most:
                            best, at, most = r, s, s + lag
                    if best < 0 or most > cutoff or done == out.shape[1]:
                        return -1, last
                    reserve(board, book, best, kind[p], at)
                    w = source[best]
                    latest[p, w] = max(latest[p, w], at)
                    first[v] = min(first[v], most)
                    then[v] = max(then[v], most)
                    last = max(last, most)
                    out[0, done], out[1, done], out[2, done], out[3, done] = p, best, at, 1
                    out[4, done] = most - at
                    done += 1
            for v in member:
                if latest[p, v] >= first[v]:
                    return -1, last
            ready[p], active[p] = then, takes
    # who was left behind receives the sum, the earliest arrival first
    left = 0
    for p in range(pieces):
        for v in member:
            if not active[p, v]:
                left += 1
    while left > 0:
        before = left
        for p in order:
            best, at, most = -1, np.int64(0), np.int64(INF)
            for v in member:
                if active[p, v]:
                    continue
                for j in range(in_start[v], in_start[v + 1]):
                    r = into[j]
                    w = source[r]
                    if not active[p, w]:
                        continue
                    lag = lag_of(board, r, kind[p])
                    if ready[p, w] + lag >= most:
                        continue
                    s = start_of(board, book, r, kind[p], ready[p, w])
                    if s + lag < most:
                        best, at, most = r, s, s + lag
            if best < 0:
                continue
            if most > cutoff or done == out.shape[1]:
                return -1, last
            reserve(board, book, best, kind[p], at)
            v = target[best]
            active[p, v] = True
            ready[p, v] = most
            last = max(last, most)
            out[0, done], out[1, done], out[2, done], out[3, done], out[4, done] = p, best, at, 0, most - at
            done += 1
            left -= 1
        if left == before:
            return -1, last
    return done, last
