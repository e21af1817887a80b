"""Who has which piece, or which contributions to it, when: the events of every piece in order of time.

At a tick, what arrives is there before what starts; among arrivals copies come before additions, so that adding to a
sum that is being replaced is a fault in any order of the file. All transfers last at least one tick, so whatever
arrives by a tick has started before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.kernels import jit
from synth_models.fabric.check.routes import Hops
from synth_models.fabric.check.rows import rows_by
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.solution import Schedule

MOST_KEPT = 20
NOT_THERE, LEFT_TWICE, INCOMPLETE, DOUBLED = range(1, 5)


@dataclass(frozen=True)
class Held:
    """What the replay found.

    ``code``: what is wrong with each transfer, 0 for nothing, shape (transfers,). ``missing``: rows (piece, rank,
    contributions that lack, position in the group of the first of them) of the first that are not at their goal;
    ``missing_count``: how many. ``longest_chain``: transfers in the longest row of which each brings what the next one
    sends. ``redundant``: arrivals at ranks that had all of it.
    """

    code: npt.NDArray[np.int8]
    missing: IntArray
    missing_count: int
    longest_chain: int
    redundant: int


def held(instance: FabricInstance, schedule: Schedule, hops: Hops) -> Held:
    """Replay piece by piece; one piece's state is in memory at a time."""
    machine, blocks, switching = instance.machine, instance.blocks, instance.switching
    net, pieces = machine.network, len(schedule.piece_block)
    reduces = bool(np.any(blocks.origin == EVERYONE))
    piece = schedule.piece.astype(np.int32)
    sent_start, sent = rows_by(piece, pieces, schedule.start, np.zeros(0, dtype=bool))
    reached = np.where(hops.arrive >= 0, piece[hops.owner], np.int32(-1))
    late = schedule.adds[hops.owner] if np.any(schedule.adds) else np.zeros(0, dtype=bool)
    come_start, come = rows_by(reached, pieces, hops.arrive, late)
    source = net.src[schedule.link[schedule.route_start[:-1]]]
    head = net.dst[schedule.link]
    code = np.zeros(schedule.transfers, dtype=np.int8)
    missing = np.zeros((MOST_KEPT, 4), dtype=np.int64)
    place = np.full(machine.nodes, -1, dtype=np.int64)
    place[list(instance.members)] = np.arange(len(instance.members))
    block_origin, block_goal = blocks.origin[schedule.piece_block], blocks.goal[schedule.piece_block]
    events = (sent_start, sent, come_start, come, schedule.start, hops.arrive, hops.owner, source, head)
    goals = (block_goal, place, machine.is_switch, code, missing)
    if reduces:
        came = _came_before(piece, source, head, schedule.route_start, machine.is_switch, pieces)
        found = _sums(*events, *goals, schedule.route_start, schedule.adds, came, switching.buffer, switching.copies)
    else:
        found = _copies(*events, *goals, block_origin, switching.buffer, switching.copies)
    count, chain, redundant = found
    return Held(code, missing[: min(count, MOST_KEPT)], int(count), int(chain), int(redundant))


def _came_before(
    piece: Int32Array, source: Int32Array, head: Int32Array, route_start: IntArray, is_switch: BoolArray, pieces: int
) -> Int32Array:
    """For a hop out of a switch the last transfer listed before it that brings its piece there, or -1: in a reduction
    a switch may hold several partial sums of a piece and adds none to another."""
    if not np.any(is_switch[source]):
        return np.full(len(piece), -1, dtype=np.int32)
    rows, order = rows_by(piece, pieces, np.arange(len(piece)), np.zeros(0, dtype=bool))
    found: Int32Array = _last_into(rows, order, source, head[route_start[:-1]], is_switch)
    return found


@jit
def _last_into(
    rows: IntArray, order: Int32Array, source: Int32Array, head: Int32Array, is_switch: BoolArray
) -> Int32Array:
    came = np.full(len(source), -1, dtype=np.int32)
    last = np.full(len(is_switch), -1, dtype=np.int64)
    of_piece = np.full(len(is_switch), -1, dtype=np.int64)
    for p in range(len(rows) - 1):
        for n in range(rows[p], rows[p + 1]):
            i = order[n]
            if of_piece[source[i]] == p:
                came[i] = last[source[i]]
            if is_switch[head[i]]:
                last[head[i]], of_piece[head[i]] = i, p
    return came


@jit
def _copies(
    sent_start: IntArray,
    sent: Int32Array,
    come_start: IntArray,
    come: Int32Array,
    start: IntArray,
    arrive: IntArray,
    owner: Int32Array,
    source: Int32Array,
    head: Int32Array,
    goal: IntArray,
    place: IntArray,
    is_switch: BoolArray,
    code: npt.NDArray[np.int8],
    missing: IntArray,
    origin: IntArray,
    buffer: bool,
    copies: bool,
) -> tuple[int, int, int]:
    """Pieces that one rank has. A switch that stores may send on what has come (with ``buffer``) or what comes at that
    very tick, and without ``copies`` once for every time that it has come."""
    nodes = len(is_switch)
    chain = np.zeros(len(start), dtype=np.int32)
    here = np.full(nodes, -1, dtype=np.int64)  # the last piece that a node has had,
    depth = np.zeros(nodes, dtype=np.int32)  # over how many transfers it came,
    at = np.zeros(nodes, dtype=np.int64)  # when (a switch),
    parcels = np.zeros(nodes, dtype=np.int64)  # and how often it can still leave (a switch)
    members = np.flatnonzero(place >= 0)
    lost, longest, redundant = 0, 0, 0
    for p in range(len(goal)):
        here[origin[p]], depth[origin[p]] = p, 0
        n, last = sent_start[p], come_start[p + 1]
        a = come_start[p]
        while n < sent_start[p + 1] or a < last:
            if a < last and (n == sent_start[p + 1] or arrive[come[a]] <= start[sent[n]]):
                k = come[a]
                v, i = head[k], owner[k]
                a += 1
                if is_switch[v]:
                    if here[v] != p or (not buffer and at[v] != arrive[k]):
                        parcels[v] = 0
                    parcels[v] += 1
                    here[v], depth[v], at[v] = p, chain[i], arrive[k]
                elif here[v] != p:
                    here[v], depth[v] = p, chain[i]
                else:
                    redundant += 1
                continue
            i = sent[n]
            u = source[i]
            n += 1
            if here[u] != p or (is_switch[u] and not buffer and at[u] != start[i]):
                code[i] = 1
            elif is_switch[u] and not copies:
                if parcels[u] == 0:
                    code[i] = 2
                else:
                    parcels[u] -= 1
            chain[i] = 1 + (depth[u] if here[u] == p else 0)
            longest = max(longest, chain[i])
        if goal[p] >= 0:
            if here[goal[p]] != p:
                lost = _lacks(missing, lost, p, goal[p], 0, 0)
        else:
            for v in members:
                if here[v] != p:
                    lost = _lacks(missing, lost, p, v, 0, 0)
    return lost, longest, redundant


@jit
def _lacks(missing: IntArray, count: int, piece: int, rank: Any, contributions: int, first: int) -> int:
    if count < len(missing):
        missing[count, 0], missing[count, 1], missing[count, 2], missing[count, 3] = piece, rank, contributions, first
    return count + 1


@jit
def _sums(
    sent_start: IntArray,
    sent: Int32Array,
    come_start: IntArray,
    come: Int32Array,
    start: IntArray,
    arrive: IntArray,
    owner: Int32Array,
    source: Int32Array,
    head: Int32Array,
    goal: IntArray,
    place: IntArray,
    is_switch: BoolArray,
    code: npt.NDArray[np.int8],
    missing: IntArray,
    route_start: IntArray,
    adds: BoolArray,
    came: Int32Array,
    buffer: bool,
    copies: bool,
) -> tuple[int, int, int]:
    """Pieces to which every member contributes: a bit a contribution. Sets are rows of one array: a row a node, what is
    complete, what is empty, then partial sums under way, each from its start until it has arrived everywhere, or in a
    switch until the end of the piece; a copy needs no row, it is all there is."""
    nodes = len(is_switch)
    members = np.flatnonzero(place >= 0)
    words = (len(members) + 63) // 64
    full, empty, slots = nodes, nodes + 1, nodes + 2
    has = np.zeros((slots + 16, words), dtype=np.uint64)
    for m in range(len(members)):
        has[full, m // 64] |= np.uint64(1) << np.uint64(m % 64)
    of_piece = np.full(nodes, -1, dtype=np.int64)
    depth = np.zeros(nodes, dtype=np.int32)
    chain = np.zeros(len(start), dtype=np.int32)
    carried = np.full(len(start), full, dtype=np.int32)  # the row of what a transfer brings
    left_once = np.zeros(len(start), dtype=np.bool_)
    free = np.arange(slots, slots + 16)[::-1].astype(np.int32)
    frees = 16
    waits = np.zeros(slots + 16, dtype=np.int64)  # arrivals until a row is free again
    lost, longest, redundant = 0, 0, 0
    for p in range(len(goal)):
        n, a, last = sent_start[p], come_start[p], come_start[p + 1]
        while n < sent_start[p + 1] or a < last:
            if a < last and (n == sent_start[p + 1] or arrive[come[a]] <= start[sent[n]]):
                k = come[a]
                v, i = head[k], owner[k]
                a += 1
                if is_switch[v]:
                    continue
                _own(v, p, of_piece, has, depth, place)
                if adds[i]:
                    row = carried[i]
                    for w in range(words):
                        if has[v, w] & has[row, w]:
                            code[i] = max(code[i], 4)
                        has[v, w] |= has[row, w]
                    depth[v] = max(depth[v], chain[i])
                    waits[row] -= 1
                    if waits[row] == 0:
                        free[frees] = row
                        frees += 1
                elif _same(has, v, full):
                    redundant += 1
                else:
                    _copy(has, full, v)
                    depth[v] = chain[i]
                continue
            i = sent[n]
            u = source[i]
            n += 1
            before = came[i]
            value, deep = np.int64(empty), np.int32(0)
            if not is_switch[u]:
                _own(u, p, of_piece, has, depth, place)
                value, deep = np.int64(u), depth[u]
            elif before >= 0 and (arrive[before] == start[i] or (buffer and arrive[before] < start[i])):
                value, deep = np.int64(carried[before]), chain[before]
                if not copies and left_once[before]:
                    code[i] = 2
                left_once[before] = True
            chain[i] = deep + 1
            longest = max(longest, chain[i])
            if _same(has, value, empty):
                code[i] = 1
            elif not adds[i] and not _same(has, value, full):
                code[i] = 3
            if adds[i]:
                if frees == 0:
                    size = len(waits) - slots
                    has = _doubled(has, size)
                    waits = np.concatenate((waits, np.zeros(size, dtype=np.int64)))
                    free = np.zeros(2 * size, dtype=np.int32)
                    for s in range(size):
                        free[s] = slots + 2 * size - 1 - s
                    frees = size
                frees -= 1
                row = free[frees]
                carried[i] = row
                _copy(has, value, row)
                waits[row] = 0
                for k in range(route_start[i], route_start[i + 1]):
                    if arrive[k] >= 0:
                        waits[row] += 1
        for n in range(sent_start[p], sent_start[p + 1]):  # what is in switches
            i = sent[n]
            if adds[i] and is_switch[head[route_start[i + 1] - 1]]:
                free[frees] = carried[i]
                frees += 1
        for v in members:
            if goal[p] >= 0 and v != goal[p]:
                continue
            _own(v, p, of_piece, has, depth, place)
            if not _same(has, v, full):
                lacking, first = 0, -1
                for m in range(len(members)):
                    if not has[v, m // 64] >> np.uint64(m % 64) & np.uint64(1):
                        lacking += 1
                        if first < 0:
                            first = m
                lost = _lacks(missing, lost, p, v, lacking, first)
    return lost, longest, redundant


@jit
def _own(v: Any, p: int, of_piece: IntArray, has: Any, depth: Int32Array, place: IntArray) -> None:
    """What a node has of a piece before anything came: a member its own contribution, all others nothing."""
    if of_piece[v] == p:
        return
    of_piece[v], depth[v] = p, 0
    for w in range(has.shape[1]):
        has[v, w] = 0
    if place[v] >= 0:
        has[v, place[v] // 64] = np.uint64(1) << np.uint64(place[v] % 64)


@jit
def _same(has: Any, a: Any, b: Any) -> bool:
    for w in range(has.shape[1]):  # noqa: SIM110
        if has[a, w] != has[b, w]:
            return False
    return True


@jit
def _copy(has: Any, a: Any, b: Any) -> None:
    for w in range(has.shape[1]):
        has[b, w] = has[a, w]


@jit
def _doubled(has: Any, more: int) -> Any:
    bigger = np.zeros((len(has) + more, has.shape[1]), dtype=np.uint64)
    bigger[: len(has)] = has
    return bigger
