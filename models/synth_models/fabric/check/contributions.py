"""Which contributions to a sum are where, when: the replay of pieces that are sums.

The events of a piece, departures and arrivals, come in order of time (:mod:`synth_models.fabric.check.possession`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from synth.arrays import BoolArray, Int32Array, IntArray, WordArray
from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance

FEWEST_ROWS = 64  # for partial sums under way
NOT_THERE, LEFT_TWICE, INCOMPLETE, DOUBLED, NO_SUM = range(1, 6)


class Events(NamedTuple):
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


class Ends(NamedTuple):
    """Where pieces begin and must end. ``holders``, ``wanters``: the set of each, and ``is_sum``, whether every holder
    has a contribution instead of all of it: shape (pieces,). ``flat[start[s]:start[s + 1]]``: the ranks of set s.
    ``place`` (position among the members, -1 for others), ``is_switch``, ``ready`` (tick from which a member has its
    own part): shape (nodes,)."""

    holders: IntArray
    wanters: IntArray
    is_sum: BoolArray
    start: IntArray
    flat: IntArray
    place: IntArray
    is_switch: BoolArray
    ready: IntArray


class HandsOn(NamedTuple):
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
    a node's row is of), ``depth`` (transfers over which it came), ``contributes`` (the last set of holders that a node
    was seen in): shape (nodes,). ``chain`` (the same of what a
    transfer brings), ``carried`` (the row of that), ``left_once`` (a switch has sent it on): (transfers,).
    """

    has: WordArray
    waits: IntArray
    free: Int32Array
    of_piece: IntArray
    depth: Int32Array
    contributes: IntArray
    chain: Int32Array
    carried: Int32Array
    left_once: BoolArray


class _Tally(NamedTuple):
    """What the replay of the first ``pieces`` has found: arrivals ``lost``, the ``longest`` chain, ``redundant``
    arrivals."""

    pieces: int
    lost: int
    longest: int
    redundant: int


@jit
def note_lack(missing: IntArray, count: int, piece: int, rank: int, contributions: int, first: int) -> int:
    if count < len(missing):
        missing[count, 0], missing[count, 1], missing[count, 2], missing[count, 3] = piece, rank, contributions, first
    return count + 1


def all_sums(
    instance: FabricInstance, events: Events, ends: Ends, hands_on: HandsOn, code: npt.NDArray[np.int8],
    missing: IntArray, before: tuple[int, int, int],
) -> tuple[int, int, int]:  # fmt: skip
    """All pieces that are sums, behind what was found ``before`` of others; from the one on again for which rows for
    partial sums ran out, with twice as many."""
    found, rows, pieces = _Tally(0, *before), FEWEST_ROWS, len(ends.wanters)
    while found.pieces < pieces:
        sums = _nothing_moved(instance.machine.nodes, len(instance.members), len(code), rows)
        found = _sums(events, ends, hands_on, sums, code, missing, found)
        rows *= 2
    return found[1:]


def _nothing_moved(nodes: int, members: int, transfers: int, rows: int) -> _Sums:
    """The state before a piece, with so many rows for partial sums."""
    slots = nodes + 2
    return _Sums(
        np.zeros((slots + rows, (members + 63) // 64), dtype=np.uint64),
        np.zeros(slots + rows, dtype=np.int64),
        np.arange(slots, slots + rows)[::-1].astype(np.int32),
        np.full(nodes, -1, dtype=np.int64),
        np.zeros(nodes, dtype=np.int32),
        np.full(nodes, -1, dtype=np.int64),
        np.zeros(transfers, dtype=np.int32),
        np.full(transfers, nodes, dtype=np.int32),
        np.zeros(transfers, dtype=np.bool_),
    )


@jit
def _sums(
    events: Events, ends: Ends, hands_on: HandsOn, sums: _Sums, code: npt.NDArray[np.int8], missing: IntArray,
    found: _Tally,
) -> _Tally:  # fmt: skip
    """Pieces to which all of their holders contribute, those after ``found``. A contribution that comes twice is a
    fault; so is to send nothing, to hand on as complete what is not, and to add what shares a contribution with what
    comes from another source. A transfer takes what its source has, or what came to the switch that it leaves.

    What was found until the first piece that is still to be replayed, for which rows run out. Arrays out of tuples are
    named once: each time counts references, which would take longer than all else.
    """
    sent_start, sent, come_start, come, start, source, of, arrive, owner, head = events
    holders, _, is_sum, _, _, place, is_switch, ready = ends
    route_start, adds, several, came, buffer, copies = hands_on
    has, waits, free, of_piece, depth, contributes, chain, carried, left_once = sums
    full, empty = len(is_switch), len(is_switch) + 1
    begin, lost, longest, redundant = found
    own_row = adds | several  # transfers that bring partial sums
    now_of = -1  # the set of holders that the row of what is complete is of
    for p in range(begin, len(holders)):
        if not is_sum[p]:
            continue
        now_of = _complete_of(has, full, ends, contributes, holders[p], now_of)
        n, behind, a, last = sent_start[p], sent_start[p + 1], come_start[p], come_start[p + 1]
        frees, longest_yet, redundant_yet = len(free), longest, redundant
        while n < behind or a < last:
            leaves = a == last or (n < behind and arrive[come[a]] > start[sent[n]])
            if leaves:
                i, v, now = of[sent[n]], source[sent[n]], start[sent[n]]
            else:
                i, v, now = owner[come[a]], head[come[a]], arrive[come[a]]
            if not is_switch[v] and (of_piece[v] != p or ready[v] > 0):
                _own(v, p, of_piece, has, depth, place, ready[v] <= now and contributes[v] == now_of)
            if leaves:
                value, deep = v, depth[v]
                if is_switch[v]:
                    value, deep = empty, np.int32(0)
                    if _leave_switch(arrive, left_once, code, i, came[i], now, buffer, copies):
                        value, deep = carried[came[i]], chain[came[i]]
                n += 1
                further = several[i] and chain[i] > 0
                chain[i] = max(chain[i], deep + 1)
                longest = max(longest, chain[i])
                nothing, complete = _compared(has, value, full)
                if nothing:
                    code[i] = NOT_THERE
                elif not own_row[i] and not complete:
                    code[i] = INCOMPLETE
                if further:
                    if _add_row(has, carried[i], value):
                        code[i] = max(code[i], DOUBLED)
                elif own_row[i]:
                    if frees == 0:
                        return _Tally(p, lost, longest_yet, redundant_yet)
                    frees -= 1
                    carried[i] = free[frees]
                    waits[carried[i]] = _arrivals(arrive, route_start[i], route_start[i + 1])
                    _copy_row(has, carried[i], value)
                continue
            a += 1
            if is_switch[v]:
                continue
            if adds[i]:
                if _add_row(has, v, carried[i]):
                    code[i] = max(code[i], DOUBLED)
                depth[v] = max(depth[v], chain[i])
            else:
                had = _is_row(has, v, full)
                depth[v] = depth[v] if had else chain[i]
                redundant += had
                if several[i] and not _is_row(has, carried[i], full):
                    code[i] = INCOMPLETE
                _copy_row(has, v, full)
            if own_row[i]:
                frees = _arrived(waits, free, carried[i], frees)
        _empty_switches(events, ends, hands_on, sums, p, frees)
        lost = _lacking_at_goals(sums, ends, p, missing, lost)
    return _Tally(len(holders), lost, longest, redundant)


@jit
def _complete_of(has: WordArray, full: int, ends: Ends, contributes: IntArray, number: int, now_of: int) -> int:
    """Make the row ``full``, which is of set ``now_of``, hold the contributions of set ``number`` and nothing else;
    that set."""
    if number != now_of:
        for w in range(has.shape[1]):
            has[full, w] = 0
        for n in range(ends.start[number], ends.start[number + 1]):
            v = ends.flat[n]
            contributes[v] = number
            has[full, ends.place[v] // 64] |= np.uint64(1) << np.uint64(ends.place[v] % 64)
    return number


@jit(inlined=True)
def _arrived(waits: IntArray, free: Int32Array, row: int, frees: int) -> int:
    """How many rows are free once what is in this row has arrived in one more place."""
    waits[row] -= 1
    if waits[row] == 0:
        free[frees] = row
        frees += 1
    return frees


@jit
def _empty_switches(events: Events, ends: Ends, hands_on: HandsOn, sums: _Sums, p: int, frees: int) -> None:
    """Free the rows of what is in switches at the end of piece p; ``frees`` are free without them."""
    for n in range(events.sent_start[p], events.sent_start[p + 1]):
        i = events.of[events.sent[n]]
        if hands_on.adds[i] and ends.is_switch[events.head[hands_on.route_start[i + 1] - 1]]:
            sums.free[frees] = sums.carried[i]
            frees += 1


@jit(inlined=True)
def _leave_switch(
    arrive: IntArray, left_once: BoolArray, code: npt.NDArray[np.int8], i: int, before: int, now: int, buffer: bool,
    copies: bool,
) -> bool:  # fmt: skip
    """Whether transfer i finds in a switch what transfer ``before`` has brought: at that very tick, or in a buffer."""
    if before < 0 or not (arrive[before] == now or (buffer and arrive[before] < now)):
        return False
    if left_once[before] and not copies:
        code[i] = LEFT_TWICE
    left_once[before] = True
    return True


@jit(inlined=True)
def _is_row(has: WordArray, row: int, other: int) -> bool:
    """Whether two rows hold the same contributions."""
    alike = True
    for w in range(has.shape[1]):
        alike = alike and has[row, w] == has[other, w]
    return alike


@jit(inlined=True)
def _compared(has: WordArray, row: int, full: int) -> tuple[bool, bool]:
    """Whether a row holds nothing, and whether it holds as much as the row ``full``."""
    nothing, complete = True, True
    for w in range(has.shape[1]):
        nothing, complete = nothing and has[row, w] == 0, complete and has[row, w] == has[full, w]
    return nothing, complete


@jit(inlined=True)
def _add_row(has: WordArray, row: int, other: int) -> bool:
    """Add to a row the contributions of another; whether they share one."""
    shared = False
    for w in range(has.shape[1]):
        if has[row, w] & has[other, w]:
            shared = True
        has[row, w] |= has[other, w]
    return shared


@jit(inlined=True)
def _copy_row(has: WordArray, row: int, other: int) -> None:
    """Make a row hold what another does."""
    for w in range(has.shape[1]):
        has[row, w] = has[other, w]


@jit(inlined=True)
def _arrivals(arrive: IntArray, first: int, last: int) -> int:
    """At how many of these hops something arrives."""
    count = 0
    for h in range(first, last):
        count += arrive[h] >= 0
    return count


@jit
def _lacking_at_goals(sums: _Sums, ends: Ends, p: int, missing: IntArray, lost: int) -> int:
    """``lost`` and the ranks that want piece p and have not all of it."""
    has, of_piece, full, first, number = sums.has, sums.of_piece, len(ends.is_switch), ends.wanters[p], ends.holders[p]
    for n in range(ends.start[first], ends.start[first + 1]):
        v = ends.flat[n]
        if of_piece[v] == p and ends.ready[v] > 0:
            _own(v, p, of_piece, has, sums.depth, ends.place, sums.contributes[v] == number)
        whole = of_piece[v] == p
        for w in range(has.shape[1]):
            whole = whole and has[v, w] == has[full, w]
        if not whole:
            _own(v, p, of_piece, has, sums.depth, ends.place, sums.contributes[v] == number)
            lacking, least = _lacking(has, v, full)
            lost = note_lack(missing, lost, p, v, lacking, least) if lacking else lost
    return lost


@jit
def _lacking(has: WordArray, row: int, full: int) -> tuple[int, int]:
    """How many contributions a row lacks of those in row ``full``, and the position in the group of the first."""
    lacking, first = 0, -1
    for m in range(64 * has.shape[1]):
        if (has[full, m // 64] & ~has[row, m // 64]) >> np.uint64(m % 64) & np.uint64(1):
            lacking += 1
            if first < 0:
                first = m
    return lacking, first


@jit(inlined=True)
def _own(
    v: int, p: int, of_piece: IntArray, has: WordArray, depth: Int32Array, place: IntArray, is_ready: bool
) -> None:
    """What a node has of a piece before anything came, nothing, and of a holder that is ready its own contribution: no
    other rank can have brought that before."""
    if of_piece[v] != p:
        of_piece[v], depth[v] = p, 0
        for w in range(has.shape[1]):
            has[v, w] = 0
    if is_ready:
        has[v, place[v] // 64] |= np.uint64(1) << np.uint64(place[v] % 64)
