"""Allreduce in few hops: partial sums exchanged within nested groups of ranks, or collected at one of each.

A *ladder* is a row of partitions of the members, each coarser than the one before, from single ranks to all. On a rung
the groups below exchange their sums, every active rank receiving one from each of the other groups; or they bring them
to one of the active ranks, which alone stays active for the piece. Where boxes are joined by few ranks, a rank of each
group below receives one sum from each of the others, and it alone stays active. At the end those that were left behind
receive the sum. One rung of exchange is the one-shot allreduce, rungs of pairs are recursive doubling, one rung of
collecting is reduce-scatter and allgather; boxes of GPUs want a mixture.

A rank sends a partial sum before anything more is added to it, so a rung is refused where sends take longer than the
first arrival of their own rung.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.kernels import jit
from synth_models.fabric.references.pull.routing_state import (
    UNREACHABLE,
    Routing,
    RoutingState,
    earliest_start,
    lag_of,
    reserve_route,
)
from synth_models.fabric.references.pull.tree_search import Pieces, Timetable
from synth_models.fabric.scheduling.interval_reservations import Intervals, new_intervals

EXCHANGE, COLLECT, ENTER = 0, 1, 2


def ladder(near: IntArray, generator: np.random.Generator, widest: int) -> tuple[list[IntArray], list[bool]] | None:
    """A random ladder: per rung the number of the group of every member, shape (members,), and for every rung but the
    first whether its groups are joined by single routes only. ``near``: ticks of the quickest direct route between
    members, :data:`UNREACHABLE` for none. Groups of a rung join up to ``widest`` of the rung below, the nearest first:
    those whose members all receive from some member of the other; where there are none at last all that are left, with
    some route both ways. None if it ends before all are one."""
    count = len(near)
    group = np.arange(count)
    rungs, entered = [group], list[bool]()
    while group.max() > 0:
        groups = int(group.max()) + 1
        # the farthest that a member of one group is from the nearest member of another, both ways
        into = np.full((groups, count), UNREACHABLE)
        np.minimum.at(into, group, near)
        apart = np.zeros((groups, groups), dtype=np.int64)
        np.maximum.at(apart.T, group, into.T)
        apart = np.maximum(apart, apart.T)
        limit = np.partition(np.where(np.eye(groups, dtype=bool), UNREACHABLE, apart), 0, axis=1)[:, 0].max()
        entered.append(bool(limit >= UNREACHABLE))
        if entered[-1]:
            apart = np.full((groups, groups), UNREACHABLE)
            np.minimum.at(apart.T, group, into.T)
            apart = np.maximum(apart, apart.T)
            limit = np.partition(np.where(np.eye(groups, dtype=bool), UNREACHABLE, apart), 0, axis=1)[:, 0].max()
        if limit >= UNREACHABLE:
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
        if made == groups or (entered[-1] and made > 1):
            return None
        group = new[group]
        rungs.append(group)
    return rungs, entered


def nearness(routing: Routing, state: RoutingState, kind: int) -> IntArray:
    """Ticks of the quickest direct route between members, shape (members, members)."""
    count = len(routing.ranks)
    near = np.full((count, count), UNREACHABLE)
    lag = np.array([lag_of(state, r, kind) for r in range(len(routing.source))], dtype=np.int64)
    np.minimum.at(near, (routing.source, routing.target), lag)
    np.fill_diagonal(near, 0)
    member = np.flatnonzero(routing.is_member)
    found: IntArray = near[np.ix_(member, member)]
    return found


class Ladder(NamedTuple):
    """``rungs``: the partitions (see :func:`ladder`); ``kinds[i]``: what is done on rung i + 1, :data:`EXCHANGE`,
    :data:`COLLECT` or :data:`ENTER`."""

    rungs: list[IntArray]
    kinds: list[int]


def climb(
    routing: Routing, state: RoutingState, pieces: Pieces, ladder: Ladder, seed: int, cutoff: int
) -> tuple[Timetable, BoolArray] | None:
    """All pieces over the ladder. The transfers, and which of them add; None if it would not be valid, or not complete
    before ``cutoff``."""
    rungs, kinds = ladder
    member = np.flatnonzero(routing.is_member)
    ranks, count, n = len(routing.ranks), len(pieces), len(member)
    groups = np.full((len(rungs), ranks), -1, dtype=np.int64)
    for i, rung in enumerate(rungs):
        groups[i, member] = rung
    room = min(count * (2 * n * (n + 8)), 4_000_000)
    width = int(np.diff(routing.row).max(initial=1)) * 2
    active = np.zeros((count, ranks), dtype=np.bool_)
    active[:, member] = True
    sums = Sums(
        state,
        new_intervals(routing.resources, 2 * room * width + 1024),
        pieces.kind,
        member,
        active,
        np.zeros((count, ranks), dtype=np.int64),
        np.full((count, ranks), -1, dtype=np.int64),
        Sent(
            np.zeros(room, dtype=np.int64),
            np.zeros(room, dtype=np.int64),
            np.zeros(room, dtype=np.int64),
            np.zeros(room, dtype=np.int64),
            np.zeros(room, dtype=np.bool_),
            np.zeros(2, dtype=np.int64),
        ),
    )
    if not _climb(sums, groups, np.array(kinds, dtype=np.int64), seed, cutoff):
        return None
    done, completion = sums.sent.done.tolist()
    sent = sums.sent
    found = Timetable(
        sent.piece[:done].copy(), sent.route[:done].copy(), sent.start[:done].copy(), sent.lag[:done].copy(), completion
    )
    return found, sent.adds[:done]


class Sent(NamedTuple):
    """Transfers in the order in which they were found: ``piece``, ``route``, ``start``, ``lag``, whether it ``adds``;
    shape (room,); ``done``: how many there are, and the last arrival."""

    piece: IntArray
    route: IntArray
    start: IntArray
    lag: IntArray
    adds: BoolArray
    done: IntArray


class Sums(NamedTuple):
    """Sums under way. ``kind``: the class of size of every piece; ``member``: the ranks that take part. Which ranks
    take part in the next rung with a piece, ``active``; when what each sends next is complete, ``ready``, and its last
    start so far, ``latest`` (ticks, -1: none); shape (pieces, ranks)."""

    routing: RoutingState
    reserved: Intervals
    kind: IntArray
    member: IntArray
    active: BoolArray
    ready: IntArray
    latest: IntArray
    sent: Sent


class Offer(NamedTuple):
    """A transfer that could be made: its ``route`` (-1: none), ``start`` and ``arrival``."""

    route: int
    start: int
    arrival: int


@jit
def _quickest(sums: Sums, p: int, v: int, below: IntArray, group: int, offer: Offer) -> Offer:
    """The route by which v first receives piece p from an active rank of the ``group``, or ``offer``. From any (-1) it
    is a copy of the sum, behind all that is still to be added at v."""
    routing, reserved, kind = sums.routing, sums.reserved, sums.kind[p]
    active, ready = sums.active[p], sums.ready[p]
    route, start, arrival = offer.route, offer.start, offer.arrival
    for j in range(routing.entering_row[v], routing.entering_row[v + 1]):
        r = routing.entering[j]
        w = routing.source[r]
        if (group >= 0 and below[w] != group) or not active[w]:
            continue
        lag = lag_of(routing, r, kind)
        begin = ready[w] if group >= 0 else max(ready[w], ready[v] + 1 - lag)
        if begin + lag >= arrival:
            continue
        s = earliest_start(routing, reserved, r, kind, begin)
        if s + lag < arrival:
            route, start, arrival = r, s, s + lag
    return Offer(route, start, arrival)


@jit
def _send(sums: Sums, p: int, offer: Offer, adds: np.bool_, cutoff: int) -> bool:
    """Make the transfer that was offered. False if there is none, no room, or if it arrives after ``cutoff``."""
    sent, i = sums.sent, sums.sent.done[0]
    if offer.route < 0 or offer.arrival > cutoff or i == len(sent.piece):
        return False
    reserve_route(sums.routing, sums.reserved, offer.route, sums.kind[p], offer.start)
    sent.piece[i], sent.route[i], sent.start[i], sent.adds[i] = p, offer.route, offer.start, adds
    sent.lag[i] = offer.arrival - offer.start
    sent.done[0] += 1
    sent.done[1] = max(sent.done[1], offer.arrival)
    return True


@jit
def _takers(sums: Sums, p: int, here: IntArray, kind: int) -> BoolArray:
    """Who receives piece p on this rung: all that are active, or one of every group, by turns over the pieces."""
    takes: BoolArray = sums.active[p].copy()
    if kind != COLLECT:
        return takes
    for g in range(here.max() + 1):
        count = 0
        for v in sums.member:
            if here[v] == g and sums.active[p, v]:
                count += 1
        wanted = p % count
        for v in sums.member:
            if here[v] == g and sums.active[p, v]:
                if wanted != 0:
                    takes[v] = False
                wanted -= 1
    return takes


@jit
def _entrances(sums: Sums, p: int, below: IntArray, here: IntArray) -> BoolArray:
    """Of every group below the active rank that the sums of the others reach first."""
    takes: BoolArray = np.zeros(len(here), np.bool_)
    for g in range(below.max() + 1):
        entrance, least = -1, np.int64(UNREACHABLE)
        for v in sums.member:
            if below[v] != g or not sums.active[p, v]:
                continue
            last = sums.ready[p, v]
            for other in range(below.max() + 1):
                if _joins(sums, below, here, other, v):
                    last = max(last, _quickest(sums, p, v, below, other, Offer(-1, 0, UNREACHABLE)).arrival)
            if last < least:
                entrance, least = v, last
        if entrance >= 0:
            takes[entrance] = True
    return takes


@jit
def _joins(sums: Sums, below: IntArray, here: IntArray, other: int, v: int) -> bool:
    """Whether the group ``other`` of the rung below is another one that is part of v's group."""
    if other == below[v]:
        return False
    for w in sums.member:  # noqa: SIM110
        if below[w] == other and here[w] == here[v]:
            return True
    return False


@jit
def _rung(sums: Sums, p: int, below: IntArray, here: IntArray, kind: int, cutoff: int) -> bool:
    """Take piece p over one rung: each rank that takes it receives the sum of every other group below that is part of
    its group. False if that would not be valid or not in time."""
    ranks = len(here)
    then = sums.ready[p].copy()
    first = np.full(ranks, np.int64(UNREACHABLE))  # the first arrival of this rung
    takes = _entrances(sums, p, below, here) if kind == ENTER else _takers(sums, p, here, kind)
    for v in sums.member[np.random.permutation(len(sums.member))]:
        if not takes[v]:
            continue
        for other in np.random.permutation(below.max() + 1):
            if not _joins(sums, below, here, other, v):
                continue
            nothing = Offer(-1, 0, UNREACHABLE)
            offer = _quickest(sums, p, v, below, other, nothing)
            if not _send(sums, p, offer, np.bool_(True), cutoff):
                return False
            w = sums.routing.source[offer.route]
            sums.latest[p, w] = max(sums.latest[p, w], offer.start)
            first[v] = min(first[v], offer.arrival)
            then[v] = max(then[v], offer.arrival)
    for v in sums.member:  # nothing is added to what a rank still sends
        if sums.latest[p, v] >= first[v]:
            return False
    sums.ready[p], sums.active[p] = then, takes
    return True


@jit
def _climb(sums: Sums, groups: IntArray, kinds: IntArray, seed: int, cutoff: int) -> bool:
    """All pieces over all rungs. False if that would not be valid or not in time."""
    np.random.seed(seed)
    pieces = len(sums.kind)
    order = np.random.permutation(pieces)
    for rung in range(1, len(groups)):
        for p in order:
            if not _rung(sums, p, groups[rung - 1], groups[rung], kinds[rung - 1], cutoff):
                return False
    # who was left behind receives the sum, the earliest arrival first
    anyone: Any = np.int64(-1)  # a constant has a type of its own: what takes it would be compiled twice
    left = 0
    for p in range(pieces):
        for v in sums.member:
            if not sums.active[p, v]:
                left += 1
    while left > 0:
        before = left
        for p in order:
            offer = Offer(-1, 0, UNREACHABLE)
            for v in sums.member:
                if not sums.active[p, v]:
                    offer = _quickest(sums, p, v, groups[0], anyone, offer)
            if offer.route < 0:
                continue
            if not _send(sums, p, offer, np.bool_(False), cutoff):
                return False
            v = sums.routing.target[offer.route]
            sums.active[p, v] = True
            sums.ready[p, v] = offer.arrival
            left -= 1
        if left == before:
            return False
    return True
