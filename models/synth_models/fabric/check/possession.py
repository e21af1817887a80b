"""Who has which piece, or which contributions to it, when: the events of every piece in order of time.

At a tick, what arrives is there before what starts; among arrivals copies come before additions, so that adding to a
sum that is being replaced is a fault in any order of the file. All transfers last at least one tick, so whatever
arrives by a tick has started before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from synth.arrays import BoolArray, Int32Array, IntArray, WordArray
from synth.kernels import jit
from synth_models.fabric.check import without_kernels
from synth_models.fabric.check.route_hops import Hops
from synth_models.fabric.check.rows import rows_by
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.solution import Schedule

MOST_KEPT = 20
FEWEST_ROWS = 64  # for partial sums under way
NOT_THERE, LEFT_TWICE, INCOMPLETE, DOUBLED, NO_SUM = range(1, 6)


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


class _Events(NamedTuple):
    """Departures and arrivals, those of a piece together and in order of time. A transfer departs once, or from each of
    its sources.

    ``sent[sent_start[p]:sent_start[p + 1]]``: the departures of piece p; ``come[come_start[p]:come_start[p + 1]]``: the
    hops that bring it somewhere. ``start`` (ticks), ``source`` (the node it leaves), ``of`` (the transfer): shape
    (departures,). ``arrive`` (ticks), ``owner`` (the transfer), ``head`` (the node reached): shape (hops,).
    """

    sent_start: IntArray
    sent: Int32Array
    come_start: IntArray
    come: Int32Array
    start: IntArray
    source: Int32Array
    of: Int32Array
    arrive: IntArray
    owner: Int32Array
    head: Int32Array


class _Ends(NamedTuple):
    """Where pieces begin and must end. ``origin``, ``goal`` (-1: all members): shape (pieces,). ``place`` (position
    among the members, -1 for others), ``is_switch``: shape (nodes,)."""

    origin: IntArray
    goal: IntArray
    place: IntArray
    is_switch: BoolArray


class _HandsOn(NamedTuple):
    """What transfers do with sums. ``route_start``: shape (transfers + 1,); ``adds`` (to what the receiver has),
    ``several`` (sources), ``came`` (as :func:`_came_before`): shape (transfers,). ``buffer``, ``copies``: what switches
    that store can."""

    route_start: IntArray
    adds: BoolArray
    several: BoolArray
    came: Int32Array
    buffer: bool
    copies: bool


class _Sums(NamedTuple):
    """Sets of contributions, a bit each, as the rows of one array, and what is known of nodes and transfers.

    ``has``, shape (rows, words): a row a node, what is complete, what is empty, then partial sums under way, each from
    its start until it has arrived everywhere, or in a switch until the end of the piece; a copy needs no row, it is all
    there is. ``waits``: arrivals until a row is free again. ``free``: rows that are free. ``of_piece`` (the piece that
    a node's row is of), ``depth`` (transfers over which it came): shape (nodes,). ``chain`` (the same of what a
    transfer brings), ``carried`` (the row of that), ``left_once`` (a switch has sent it on): (transfers,).
    """

    has: WordArray
    waits: IntArray
    free: Int32Array
    of_piece: IntArray
    depth: Int32Array
    chain: Int32Array
    carried: Int32Array
    left_once: BoolArray


def held(instance: FabricInstance, schedule: Schedule, hops: Hops) -> Held:
    """Replay piece by piece; one piece's state is in memory at a time."""
    machine, blocks, switching = instance.machine, instance.blocks, instance.switching
    net, pieces = machine.network, len(schedule.piece_block)
    reduces = bool(np.any(blocks.origin == EVERYONE))
    if without_kernels.wanted(len(schedule.link)):
        simple = _held_by_arrays(instance, schedule, hops, reduces)
        if simple is not None:
            return simple
    piece = schedule.piece.astype(np.int32)
    of, start, source = _departures(instance, schedule, hops)
    sent_start, sent = rows_by(piece[of], pieces, start, np.zeros(0, dtype=bool))
    reached = np.where(hops.arrive >= 0, piece[hops.owner], np.int32(-1))
    late = schedule.adds[hops.owner] if np.any(schedule.adds) else np.zeros(0, dtype=bool)
    come_start, come = rows_by(reached, pieces, hops.arrive, late)
    head = net.dst[schedule.link]
    code = np.zeros(schedule.transfers, dtype=np.int8)
    missing = np.zeros((MOST_KEPT, 4), dtype=np.int64)
    place = np.full(machine.nodes, -1, dtype=np.int64)
    place[list(instance.members)] = np.arange(len(instance.members))
    block_origin, block_goal = blocks.origin[schedule.piece_block], blocks.goal[schedule.piece_block]
    events = _Events(sent_start, sent, come_start, come, start, source, of, hops.arrive, hops.owner, head)
    adds_up = reduces and bool(switching.adds) and switching.mode == "store_and_forward"
    passes_on = np.zeros_like(machine.is_switch) if adds_up else machine.is_switch  # others add up what they hold
    ends = _Ends(block_origin, block_goal, place, passes_on)
    if reduces:
        first = net.src[schedule.link[schedule.route_start[:-1]]]
        came = _came_before(piece, first, head, schedule.route_start, passes_on, pieces)
        several = np.bincount(of, minlength=schedule.transfers) > 1
        hands_on = _HandsOn(schedule.route_start, schedule.adds, several, came, switching.buffer, switching.copies)
        count, chain, redundant = _all_sums(instance, events, ends, hands_on, code, missing)
    else:
        code[np.bincount(of, minlength=schedule.transfers) > 1] = NO_SUM
        count, chain, redundant = _copies(events, ends, switching.buffer, switching.copies, code, missing)
    return Held(code, missing[: min(count, MOST_KEPT)], int(count), int(chain), int(redundant))


def _held_by_arrays(instance: FabricInstance, schedule: Schedule, hops: Hops, reduces: bool) -> Held | None:
    """What :func:`held` finds of a schedule without faults; None where it may have some, and where switches hold data,
    transfers have several sources, or members are more than bits in a word."""
    machine, pieces = instance.machine, len(schedule.piece_block)
    members = np.array(instance.members, dtype=np.int64)
    few = len(members) <= without_kernels.BITS and pieces * machine.nodes <= without_kernels.MOST_HELD
    if not few or hops.leaves is not None or instance.switching.mode != "cut_through" or not schedule.transfers:
        return None
    origin, goal = (part[schedule.piece_block] for part in (instance.blocks.origin, instance.blocks.goal))
    if reduces and np.any(origin != EVERYONE):
        return None
    has, wanted_at = np.zeros((pieces, machine.nodes), dtype=np.uint64), np.zeros((pieces, machine.nodes), dtype=bool)
    full, everyone = 1, np.flatnonzero(goal < 0)
    if reduces:
        has[:, members] = np.uint64(1) << np.arange(len(members), dtype=np.uint64)
        full = 2 ** len(members) - 1
    else:
        has[np.arange(pieces), origin] = 1
    wanted_at[np.ix_(everyone, members)] = True
    one = np.flatnonzero(goal >= 0)
    wanted_at[one, goal[one]] = True
    comes = np.flatnonzero(hops.arrive >= 0)
    of = np.concatenate([np.arange(schedule.transfers), hops.owner[comes]]).astype(np.int64)
    leaves = np.arange(len(of)) < schedule.transfers
    first = schedule.link[schedule.route_start[:-1]]
    node = np.concatenate([machine.network.src[first], machine.network.dst[schedule.link[comes]]]).astype(np.int64)
    time = np.concatenate([schedule.start, hops.arrive[comes]])
    events = without_kernels.Events(schedule.piece[of], time, leaves, of, node)
    found = without_kernels.everything_held(has, full, wanted_at, schedule.adds, events)
    if found is None:
        return None
    none = np.zeros((0, 4), dtype=np.int64)
    return Held(np.zeros(schedule.transfers, dtype=np.int8), none, 0, *found)


def _departures(instance: FabricInstance, schedule: Schedule, hops: Hops) -> tuple[Int32Array, IntArray, Int32Array]:
    """Transfer, tick and node of every departure."""
    src = instance.machine.network.src
    if hops.leaves is None:
        of = np.arange(schedule.transfers, dtype=np.int32)
        return of, schedule.start, src[schedule.link[schedule.route_start[:-1]]]
    rows = np.flatnonzero(hops.leaves >= 0)
    return hops.owner[rows], hops.leaves[rows], src[schedule.link[rows]]


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
    events: _Events, ends: _Ends, buffer: bool, copies: bool, code: npt.NDArray[np.int8], missing: IntArray
) -> tuple[int, int, int]:
    """Pieces that one rank has. A switch that stores may send on what has come (with ``buffer``) or what comes at that
    very tick, and without ``copies`` once for every time that it has come."""
    sent_start, sent, come_start, come, start, source, of, arrive, owner, head = events  # named once, as in _sums
    origin, goal, place, is_switch = ends
    nodes = len(is_switch)
    chain = np.zeros(len(code), dtype=np.int32)
    here = np.full(nodes, -1, dtype=np.int64)  # the last piece that a node has had,
    depth = np.zeros(nodes, dtype=np.int32)  # over how many transfers it came,
    at = np.zeros(nodes, dtype=np.int64)  # when (a switch),
    parcels = np.zeros(nodes, dtype=np.int64)  # and how often it can still leave (a switch)
    members: IntArray = np.flatnonzero(place >= 0)
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
            i, u, now = of[sent[n]], source[sent[n]], start[sent[n]]
            n += 1
            if here[u] != p or (is_switch[u] and not buffer and at[u] != now):
                code[i] = NOT_THERE
            elif is_switch[u] and not copies:
                if parcels[u] == 0:
                    code[i] = LEFT_TWICE
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
def _lacks(missing: IntArray, count: int, piece: int, rank: int, contributions: int, first: int) -> int:
    if count < len(missing):
        missing[count, 0], missing[count, 1], missing[count, 2], missing[count, 3] = piece, rank, contributions, first
    return count + 1


def _all_sums(
    instance: FabricInstance, events: _Events, ends: _Ends, hands_on: _HandsOn, code: npt.NDArray[np.int8],
    missing: IntArray,
) -> tuple[int, int, int]:  # fmt: skip
    """All pieces, from the one on again for which rows for partial sums ran out, with twice as many."""
    found, rows, pieces = (0, 0, 0, 0), FEWEST_ROWS, len(ends.goal)
    while found[0] < pieces:
        sums = _nothing_moved(instance.machine.nodes, len(instance.members), len(code), rows)
        found = _sums(events, ends, hands_on, sums, code, missing, *found)
        rows *= 2
    return found[1:]


def _nothing_moved(nodes: int, members: int, transfers: int, rows: int) -> _Sums:
    """The state before a piece, with so many rows for partial sums."""
    slots, position = nodes + 2, np.arange(members)
    has = np.zeros((slots + rows, (members + 63) // 64), dtype=np.uint64)
    np.bitwise_or.at(has[nodes], position // 64, np.uint64(1) << (position % 64).astype(np.uint64))
    return _Sums(
        has,
        np.zeros(slots + rows, dtype=np.int64),
        np.arange(slots, slots + rows)[::-1].astype(np.int32),
        np.full(nodes, -1, dtype=np.int64),
        np.zeros(nodes, dtype=np.int32),
        np.zeros(transfers, dtype=np.int32),
        np.full(transfers, nodes, dtype=np.int32),
        np.zeros(transfers, dtype=np.bool_),
    )


@jit
def _sums(
    events: _Events, ends: _Ends, hands_on: _HandsOn, sums: _Sums, code: npt.NDArray[np.int8], missing: IntArray,
    begin: int, lost: int, longest: int, redundant: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Pieces to which every member contributes, from ``begin`` on. A contribution that comes twice is a fault; so it is
    to send nothing, to hand on as complete what is not, and to add what shares a contribution with what comes from
    another source. A transfer takes what its source has, or what came to the switch that it leaves.

    What was found until the first piece that is still to be replayed, for which rows run out. Arrays out of tuples are
    named once: each time counts references, which would take longer than all else.
    """
    sent_start, sent, come_start, come, start, source, of, arrive, owner, head = events
    _, goal, place, is_switch = ends
    route_start, adds, several, came, buffer, copies = hands_on
    has, waits, free, of_piece, depth, chain, carried, left_once = sums
    members: IntArray = np.flatnonzero(place >= 0)
    full, empty, words = len(is_switch), len(is_switch) + 1, has.shape[1]
    for p in range(begin, len(goal)):
        n, behind, a, last = sent_start[p], sent_start[p + 1], come_start[p], come_start[p + 1]
        frees, longest_yet, redundant_yet = len(free), longest, redundant
        while n < behind or a < last:
            leaves = a == last or (n < behind and arrive[come[a]] > start[sent[n]])
            k = sent[n] if leaves else come[a]
            i, v = (of[k], source[k]) if leaves else (owner[k], head[k])
            if not is_switch[v] and of_piece[v] != p:  # before anything came: a member its own, others nothing
                of_piece[v], depth[v] = p, 0
                for w in range(words):
                    has[v, w] = 0
                if place[v] >= 0:
                    has[v, place[v] // 64] = np.uint64(1) << np.uint64(place[v] % 64)
            if leaves:
                n += 1
                before, value, deep = came[i], empty, np.int32(0)
                if not is_switch[v]:
                    value, deep = v, depth[v]
                elif before >= 0 and (arrive[before] == start[k] or (buffer and arrive[before] < start[k])):
                    value, deep = carried[before], chain[before]
                    if not copies and left_once[before]:
                        code[i] = LEFT_TWICE
                    left_once[before] = True
                further = several[i] and chain[i] > 0
                chain[i] = max(chain[i], deep + 1)
                longest = max(longest, chain[i])
                nothing, complete = True, True
                for w in range(words):
                    nothing, complete = nothing and has[value, w] == 0, complete and has[value, w] == has[full, w]
                if nothing:
                    code[i] = NOT_THERE
                elif not adds[i] and not several[i] and not complete:
                    code[i] = INCOMPLETE
                row = carried[i]
                if further:
                    for w in range(words):
                        if has[value, w] & has[row, w]:
                            code[i] = max(code[i], DOUBLED)
                        has[row, w] |= has[value, w]
                elif adds[i] or several[i]:
                    if frees == 0:
                        return p, lost, longest_yet, redundant_yet
                    frees -= 1
                    row = carried[i] = free[frees]
                    waits[row] = 0
                    for h in range(route_start[i], route_start[i + 1]):
                        waits[row] += arrive[h] >= 0
                    for w in range(words):
                        has[row, w] = has[value, w]
                continue
            a += 1
            if is_switch[v]:
                continue
            row = carried[i]
            if adds[i]:
                for w in range(words):
                    if has[v, w] & has[row, w]:
                        code[i] = max(code[i], DOUBLED)
                    has[v, w] |= has[row, w]
                depth[v] = max(depth[v], chain[i])
            else:
                had, whole = True, True
                for w in range(words):
                    had, whole = had and has[v, w] == has[full, w], whole and has[row, w] == has[full, w]
                    has[v, w] = has[full, w]
                depth[v] = depth[v] if had else chain[i]
                redundant += had
                if several[i] and not whole:
                    code[i] = INCOMPLETE
            if adds[i] or several[i]:
                waits[row] -= 1
                if waits[row] == 0:
                    free[frees] = row
                    frees += 1
        for n in range(sent_start[p], behind):  # what is in switches
            i = of[sent[n]]
            if adds[i] and is_switch[head[route_start[i + 1] - 1]]:
                free[frees] = carried[i]
                frees += 1
        lost = _lacking_at_goals(sums, ends, members, p, missing, lost)
    return len(goal), lost, longest, redundant


@jit
def _lacking_at_goals(sums: _Sums, ends: _Ends, members: IntArray, p: int, missing: IntArray, lost: int) -> int:
    """``lost`` and the ranks that want piece p and have not all of it."""
    has, of_piece, goal, full = sums.has, sums.of_piece, ends.goal[p], len(ends.is_switch)
    for v in members:
        if goal >= 0 and v != goal:
            continue
        whole = of_piece[v] == p
        for w in range(has.shape[1]):
            whole = whole and has[v, w] == has[full, w]
        if not whole:
            _own(v, p, of_piece, has, sums.depth, ends.place)
            lacking, first = _lacking(has, v, len(members))
            lost = _lacks(missing, lost, p, v, lacking, first) if lacking else lost
    return lost


@jit
def _lacking(has: WordArray, row: int, members: int) -> tuple[int, int]:
    """How many contributions a row lacks, and the position in the group of the first."""
    lacking, first = 0, -1
    for m in range(members):
        if not has[row, m // 64] >> np.uint64(m % 64) & np.uint64(1):
            lacking += 1
            if first < 0:
                first = m
    return lacking, first


@jit
def _own(v: int, p: int, of_piece: IntArray, has: WordArray, depth: Int32Array, place: IntArray) -> None:
    """What a node has of a piece before anything came: a member its own contribution, all others nothing."""
    if of_piece[v] == p:
        return
    of_piece[v], depth[v] = p, 0
    for w in range(has.shape[1]):
        has[v, w] = 0
    if place[v] >= 0:
        has[v, place[v] // 64] = np.uint64(1) << np.uint64(place[v] % 64)
