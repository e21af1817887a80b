"""The check of Chakra traces: every send meets its receive, nothing waits for itself, and all pieces end where
they must.

It reads the files' nodes alone and shares no code with the writer. What a node holds is told by its dependences: a send
carries what the one receive or compute node of its piece that it depends on holds, or the rank's own data; a compute
node adds up the (at most two) nodes of the piece that it depends on, and the rank's own data where there is but one. A
compute node called ``order`` holds nothing: what depends on it happens later, no more.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray, WordArray
from synth.errors import Fault
from synth.exchange.chakra.dataflow import MESSAGES, Nodes, replay
from synth.exchange.chakra.messages import COMP, RECV, SEND
from synth.exchange.chakra.trace import Pieces, Trace
from synth.kernels import jit
from synth.schedule.collective import REDUCING

FEW = 20  # places named for one kind of fault
SEARCH = 200_000_000  # steps that the search for an order between nodes of one tag may take


def faults(trace: Trace) -> list[Fault]:
    """All that is wrong with a trace: receives without sends (or of another size), nodes that wait for themselves, and,
    where the trace says what its tags stand for, pieces sent before they are there, doubled, or missing at the end.
    The first :data:`FEW` places of every kind."""
    wrong = [] if trace.pieces is None else piece_faults(trace.pieces, trace.ranks)
    position, stuck = ordered(trace, np.full(len(trace.kind), -1, dtype=np.int64))
    if len(stuck):
        return wrong + [Fault(trace.place(k), "waits for itself: a circle of dependences") for k in stuck[:FEW]]
    match, unmatched = matched(trace, position)
    wrong += unmatched
    position, stuck = ordered(trace, match)
    wrong += [
        Fault(trace.place(k), "never happens: it waits, over dependences and messages, for itself") for k in stuck[:FEW]
    ]
    if trace.pieces is None or wrong:
        return wrong
    return _replayed(trace, trace.pieces, match, np.argsort(position))


def piece_faults(pieces: Pieces, ranks: int) -> list[Fault]:
    """What is wrong with the table of pieces: parts that there are not, ranges that leave, overlap or do not cover
    their part."""
    part, offset, size = pieces.piece_part, pieces.piece_offset, pieces.piece_bytes
    parts = part_count(pieces, ranks)
    wrong = []
    for name, bad in (
        ("part", (part < 0) | (part >= parts)),
        ("offset", (offset < 0) | (offset > pieces.part_bytes)),
        ("bytes", (size < 1) | (size > pieces.part_bytes)),
    ):
        wrong += [Fault(f"piece {p}", f"its {name} is out of range") for p in np.flatnonzero(bad)[:FEW]]
    if wrong:
        return wrong
    order = np.lexsort((offset, part))
    part, offset, end = part[order], offset[order], (offset + size)[order]
    first = np.concatenate([[True], part[1:] != part[:-1]])[: len(part)]
    last = np.concatenate([part[1:] != part[:-1], [True]])[: len(part)]
    starts_at = np.where(first, 0, np.concatenate([[0], end[:-1]])[: len(part)])
    torn = (offset != starts_at) | (last & (end != pieces.sizes(parts)[part]))
    return [
        Fault(f"piece {order[k]}", "it and its neighbours do not cover their part once")
        for k in np.flatnonzero(torn)[:FEW]
    ]


def part_count(pieces: Pieces, ranks: int) -> int:
    """How many parts the data of a collective has."""
    collective = pieces.collective
    if pieces.demand is not None:
        return len(pieces.demand.bytes)
    if collective == "alltoall":
        return ranks * ranks
    return 1 if collective in ("broadcast", "reduce", "allreduce") else ranks


def matched(trace: Trace, position: IntArray) -> tuple[IntArray, list[Fault]]:
    """The send of every receive and back, -1 for none, by order within (source, destination, tag)."""
    match = np.full(len(trace.kind), -1, dtype=np.int64)
    wrong: list[Fault] = []
    columns = []
    for kind in (SEND, RECV):
        nodes = np.flatnonzero(trace.kind == kind)
        ends = (trace.rank[nodes], trace.peer[nodes])
        src, dst = ends if kind == SEND else ends[::-1]
        order = np.lexsort((position[nodes], trace.tag[nodes], dst, src))
        nodes = nodes[order]
        key = np.stack([src[order], dst[order], trace.tag[nodes]])
        new = np.ones(len(nodes), dtype=bool)
        new[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
        place = np.arange(len(nodes))
        turn = place - np.maximum.accumulate(np.where(new, place, 0))
        columns.append((nodes, np.concatenate([key, turn[None]])))
        later = np.flatnonzero(~new)
        wrong += _unordered(trace, nodes[later - 1], nodes[later], position)
    (sends, send_key), (receives, receive_key) = columns
    both = np.concatenate([send_key, receive_key], axis=1)
    nodes = np.concatenate([sends, receives])
    order = np.lexsort((np.arange(both.shape[1]), *both[::-1]))
    both, nodes = both[:, order], nodes[order]
    same = np.zeros(len(nodes) + 1, dtype=bool)
    same[1:-1] = (both[:, 1:] == both[:, :-1]).all(axis=0)
    pairs = np.flatnonzero(same[1:-1])
    match[nodes[pairs]], match[nodes[pairs + 1]] = nodes[pairs + 1], nodes[pairs]
    for k in nodes[~same[1:] & ~same[:-1]][:FEW]:
        other = "receive" if trace.kind[k] == SEND else "send"
        wrong.append(Fault(trace.place(k), f"tag {trace.tag[k]}: no {other} at rank {trace.peer[k]} for it"))
    sizes = nodes[pairs][trace.size[nodes[pairs]] != trace.size[nodes[pairs + 1]]]
    for k in sizes[:FEW]:
        there = f"{trace.place(match[k])} has {trace.size[match[k]]} bytes"
        wrong.append(Fault(trace.place(k), f"{trace.size[k]} bytes, but {there}"))
    return match, wrong


def _unordered(trace: Trace, earlier: IntArray, later: IntArray, position: IntArray) -> list[Fault]:
    """Nodes of one tag between one pair of which neither waits for the other."""
    if not len(earlier):
        return []
    waits = _waits(earlier, later, position, trace.dep_start, trace.dep, SEARCH)
    wrong = []
    for k in np.flatnonzero(waits != 1)[:FEW]:
        other = f"node {trace.node[earlier[k]]}, of the same peer and tag,"
        why = f"does not wait for {other} so which meets which is open"
        wrong.append(
            Fault(
                trace.place(later[k]), why if waits[k] == 0 else f"too entangled to tell whether it waits for {other}"
            )
        )
    return wrong


def ordered(trace: Trace, match: IntArray) -> tuple[IntArray, IntArray]:
    """The place of every node in an order that respects dependences and messages, -1 for those in or behind a circle,
    and those of them that may stand in one."""
    position: IntArray = _sorted(trace.kind, trace.dep_start, trace.dep, match)
    return position, np.flatnonzero(position < 0)


@jit
def _sorted(kind: IntArray, dep_start: IntArray, dep: IntArray, match: IntArray) -> IntArray:
    nodes = len(kind)
    out = np.zeros(nodes + 1, dtype=np.int64)
    waits = np.zeros(nodes, dtype=np.int64)
    for k in range(nodes):
        waits[k] = dep_start[k + 1] - dep_start[k]
        for d in dep[dep_start[k] : dep_start[k + 1]]:
            out[d + 1] += 1
        if kind[k] == RECV and match[k] >= 0:
            waits[k] += 1
    for k in range(nodes):
        out[k + 1] += out[k]
    child = np.empty(len(dep), dtype=np.int64)
    fill = out[:-1].copy()
    for k in range(nodes):
        for d in dep[dep_start[k] : dep_start[k + 1]]:
            child[fill[d]] = k
            fill[d] += 1
    position = np.full(nodes, -1, dtype=np.int64)
    queue = np.empty(nodes, dtype=np.int64)
    head, tail = 0, 0
    for k in range(nodes):
        if waits[k] == 0:
            queue[tail] = k
            tail += 1
    while head < tail:
        k = queue[head]
        position[k] = head
        head += 1
        for c in child[out[k] : out[k + 1]]:
            waits[c] -= 1
            if waits[c] == 0:
                queue[tail] = c
                tail += 1
        if kind[k] == SEND and match[k] >= 0:
            waits[match[k]] -= 1
            if waits[match[k]] == 0:
                queue[tail] = match[k]
                tail += 1
    return position


@jit
def _waits(
    earlier: IntArray, later: IntArray, position: IntArray, dep_start: IntArray, dep: IntArray, budget: int
) -> IntArray:
    """1 where ``later`` reaches ``earlier`` over dependences, 0 where not, -1 where the search took too long."""
    found = np.zeros(len(later), dtype=np.int64)
    seen = np.full(len(position), -1, dtype=np.int64)
    stack = np.empty(len(position), dtype=np.int64)
    for q in range(len(later)):
        goal, top = earlier[q], 1
        stack[0] = later[q]
        seen[later[q]] = q
        while top > 0 and found[q] == 0:
            top -= 1
            k = stack[top]
            for d in dep[dep_start[k] : dep_start[k + 1]]:
                budget -= 1
                if d == goal:
                    found[q] = 1
                elif seen[d] != q and position[d] > position[goal]:
                    seen[d] = q
                    stack[top] = d
                    top += 1
            if budget < 0:
                found[q] = -1
    return found


def _replayed(trace: Trace, pieces: Pieces, match: IntArray, order: IntArray) -> list[Fault]:
    """The dataflow from the ranks' own data to the collective's end."""
    ranks, sums = trace.ranks, pieces.collective in REDUCING
    part = pieces.piece_part
    moved, piece_of = trace.tag >= 0, trace.piece
    if not len(part) and moved.any():
        return [Fault(trace.place(k), "there are no pieces to send") for k in np.flatnonzero(moved)[:FEW]]
    odd = np.flatnonzero(moved)
    odd = odd[trace.size[odd] != pieces.piece_bytes[piece_of[odd]]]
    if len(odd):
        sizes = pieces.piece_bytes
        return [
            Fault(trace.place(k), f"{trace.size[k]} bytes, but piece {piece_of[k]} has {sizes[piece_of[k]]}")
            for k in odd[:FEW]
        ]
    owner = np.full(len(part), -1, dtype=np.int64)
    if not sums:
        owner = _owners(pieces, part, ranks)
    words = (ranks + 63) // 64 if sums else 1
    nodes = Nodes(order, trace.kind, trace.rank, piece_of, trace.dep_start, trace.dep, match)
    wrong, sets = replay(nodes, owner, words, ranks)
    found = []
    for k in np.flatnonzero(wrong)[:FEW]:
        piece = int(piece_of[k])
        found.append(Fault(trace.place(k), MESSAGES[int(wrong[k])].format(piece=piece if piece >= 0 else "…")))
    return found or _unfinished(trace, pieces, sets, owner, sums)


def _owners(pieces: Pieces, part: IntArray, ranks: int) -> IntArray:
    """The rank that has each piece at the beginning."""
    if pieces.demand is not None:
        return pieces.demand.origin[part]
    if pieces.collective in ("allgather", "gather"):
        return part
    if pieces.collective == "alltoall":
        return part // ranks
    return np.full(len(part), pieces.root, dtype=np.int64)


def _unfinished(trace: Trace, pieces: Pieces, sets: WordArray, owner: IntArray, sums: bool) -> list[Fault]:
    """The (rank, part) that the collective must end with and that are not complete."""
    ranks, count = trace.ranks, len(pieces.piece_part)
    full = np.zeros(sets.shape[1], dtype=np.uint64)
    for r in range(ranks if sums else 1):
        full[r // 64] |= np.uint64(1 << r % 64)
    state = np.flatnonzero((trace.kind == COMP) | (trace.kind == RECV))
    complete = state[(sets[state] == full).all(axis=1)]
    piece = _pieces_of(trace)
    held = np.unique(trace.rank[complete] * max(count, 1) + piece[complete])
    if not sums:
        held = np.union1d(held, owner * max(count, 1) + np.arange(count))
    found = []
    for rank in range(ranks):
        have = np.zeros(count, dtype=bool)
        have[held[(held >= rank * count) & (held < (rank + 1) * count)] - rank * count] = True
        parts = _wanted(pieces, ranks, rank)
        covered = np.zeros(part_count(pieces, ranks), dtype=bool)
        covered[pieces.piece_part[have]] = True
        covered[pieces.piece_part[~have]] = False
        if ranks == 1 or not sums:
            covered[_own(pieces, ranks, rank)] = True
        for part in parts[~covered[parts]]:
            found.append(Fault(f"rank {rank}", f"ends without the whole of part {part}"))
    return found[:FEW]


def _wanted(pieces: Pieces, ranks: int, rank: int) -> IntArray:
    """The parts that a rank must end with."""
    everything = np.arange(part_count(pieces, ranks))
    if pieces.demand is not None:
        return np.flatnonzero((pieces.demand.goal == rank) & (pieces.demand.bytes > 0))
    match pieces.collective:
        case "allgather" | "broadcast" | "allreduce":
            return everything
        case "reduce_scatter" | "scatter":
            return everything[rank : rank + 1]
        case "alltoall":
            return everything[rank::ranks]
        case _:
            return everything if rank == pieces.root else everything[:0]


def _own(pieces: Pieces, ranks: int, rank: int) -> IntArray:
    """The parts that a rank has whole at the beginning, in pieces or not."""
    everything = np.arange(part_count(pieces, ranks))
    if pieces.demand is not None:
        return np.flatnonzero(pieces.demand.origin == rank)
    match pieces.collective:
        case "allgather" | "gather":
            return everything[rank : rank + 1]
        case "alltoall":
            return everything[rank * ranks : (rank + 1) * ranks]
        case "broadcast" | "scatter":
            return everything if rank == pieces.root else everything[:0]
        case _:
            return everything if ranks == 1 else everything[:0]


def _pieces_of(trace: Trace) -> IntArray:
    """The piece of every node: its tag; a compute node's is that of what it adds."""
    piece = trace.piece.copy()
    first = trace.dep_start[:-1]
    adds = np.flatnonzero((trace.kind == COMP) & (trace.dep_start[1:] > first))
    piece[adds] = np.maximum(piece[trace.dep[first[adds]]], piece[trace.dep[trace.dep_start[adds + 1] - 1]])
    return piece
