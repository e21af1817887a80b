"""Grow the tree of one piece over idle links, the earliest arrival first.

Every rank that waits for the piece has a label: the best route by which it can get it, from a rank that has it, given
all reservations. The earliest label is settled, its transfer reserved, and labels that this changes are computed again.
Ranks that do not want the piece relay it where that is quicker: they are settled without reservation, which is made
when one that wants it comes by. With a single target this is Dijkstra's search in time-expanded free intervals.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.kernels import jit
from synth_models.fabric.references.pull.routing_state import (
    UNREACHABLE,
    RoutingState,
    earliest_start,
    lag_of,
    release_route,
    reserve_route,
)
from synth_models.fabric.scheduling.interval_reservations import Intervals

UNSEEN, SEEN, PASSED, HOLDS = 0, 1, 2, 3
FULL = -3  # no memory is left


class PieceArrays(NamedTuple):
    """``origin`` and ``goal`` (ranks; goal -1: all members) and ``kind`` (the class of its size), shape (pieces,)."""

    origin: IntArray
    goal: IntArray
    kind: IntArray


class Labels(NamedTuple):
    """What :func:`grow` knows of every rank: ``state`` (:data:`UNSEEN` …), ``arrival`` (ticks), ``key`` (arrival, price
    and what lies ahead), the ``route`` into it and its ``start``; ``chain``: scratch. Shape (ranks,)."""

    state: IntArray
    arrival: IntArray
    key: IntArray
    route: IntArray
    start: IntArray
    chain: IntArray


class TreeTransfers(NamedTuple):
    """Transfers, as one list per piece: ``route``, ``start`` and ``following`` (the next of the piece, or the next free
    one), shape (room,); ``first`` of every piece, shape (pieces,); the first ``free`` one, shape (1,). -1: none."""

    route: IntArray
    start: IntArray
    following: IntArray
    first: IntArray
    free: IntArray


class TreeState(NamedTuple):
    """All that trees grow in. ``wants``: which ranks want what has no goal, shape (ranks,); ``toward``: least ticks
    between ranks, shape (ranks, ranks), or (0, 0)."""

    routing: RoutingState
    reserved: Intervals
    transfers: TreeTransfers
    labels: Labels
    pieces: PieceArrays
    wants: BoolArray
    toward: IntArray


def new_labels(ranks: int) -> Labels:
    """Nothing known."""
    return Labels(*(np.zeros(ranks, dtype=np.int64) for _ in range(6)))


def new_transfers(pieces: int, room: int) -> TreeTransfers:
    """None yet, and room for so many."""
    following = np.arange(1, room + 1, dtype=np.int64)
    following[room - 1] = -1
    return TreeTransfers(
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        following,
        np.full(pieces, -1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@jit
def put(transfers: TreeTransfers, p: int, r: int, t: int) -> bool:
    """Add a transfer to piece p. False if there is no room."""
    i = transfers.free[0]
    if i < 0:
        return False
    transfers.free[0] = transfers.following[i]
    transfers.route[i], transfers.start[i] = r, t
    transfers.following[i], transfers.first[p] = transfers.first[p], i
    return True


@jit
def drop(tree: TreeState, p: int) -> bool:
    """Release the transfers of piece p and give back their places. False if the pool is full."""
    transfers, routing, reserved, kind = tree.transfers, tree.routing, tree.reserved, tree.pieces.kind[p]
    i = transfers.first[p]
    while i >= 0:
        if not release_route(routing, reserved, transfers.route[i], kind, transfers.start[i]):
            return False
        after = transfers.following[i]
        transfers.following[i], transfers.free[0] = transfers.free[0], i
        i = after
    transfers.first[p] = -1
    return True


@jit(inlined=True)
def _priced(routing: RoutingState, r: int, c: int, price: FloatArray) -> int:
    """What the route costs beside time, in ticks."""
    if len(price) == 0:
        return 0
    cost = 0.0
    for k in range(routing.row[r], routing.row[r + 1]):
        e = routing.links[k]
        took = routing.table[routing.link_row[e], c]
        cost += price[e] * took
        if routing.group[e] >= 0:
            cost += price[routing.group[e]] * took
    return int(cost)


@jit
def _better(
    routing: RoutingState, reserved: Intervals, labels: Labels, r: int, c: int, price: FloatArray, left: int
) -> bool:
    """Whether route r gives its end a better label, which is then written. ``left``: ticks from there to the goal."""
    u, v = routing.source[r], routing.target[r]
    lag = lag_of(routing, r, c)
    extra = _priced(routing, r, c, price) + left
    known = labels.key[v] if labels.state[v] != UNSEEN else UNREACHABLE
    if labels.arrival[u] + lag + extra >= known:
        return False
    s = earliest_start(routing, reserved, r, c, labels.arrival[u])
    if s + lag + extra >= known:
        return False
    labels.arrival[v], labels.key[v], labels.route[v], labels.start[v] = s + lag, s + lag + extra, r, s
    if labels.state[v] == UNSEEN:
        labels.state[v] = SEEN
    return True


@jit
def _relabel(
    routing: RoutingState, reserved: Intervals, labels: Labels, v: int, c: int, price: FloatArray, left: int
) -> None:
    """Find a new label for v, whose route is no longer free at its start."""
    labels.state[v] = UNSEEN
    for j in range(routing.entering_row[v], routing.entering_row[v + 1]):
        r = routing.entering[j]
        if labels.state[routing.source[r]] >= PASSED:
            _better(routing, reserved, labels, r, c, price, left)


@jit
def _reserve_branch(tree: TreeState, p: int, v: int) -> bool:
    """Reserve the transfers that bring piece p from a rank that holds it to v. False if memory is full."""
    labels, routing, reserved, c = tree.labels, tree.routing, tree.reserved, tree.pieces.kind[p]
    transfers = tree.transfers
    length, w = 0, v
    while labels.state[w] != HOLDS:
        labels.chain[length] = w
        length += 1
        w = routing.source[labels.route[w]]
    for j in range(length - 1, -1, -1):
        w = labels.chain[j]
        r = labels.route[w]
        s = earliest_start(routing, reserved, r, c, labels.arrival[routing.source[r]])
        if not (put(transfers, p, r, s) and reserve_route(routing, reserved, r, c, s)):
            return False
        labels.arrival[w] += s - labels.start[w]
        labels.start[w], labels.state[w] = s, HOLDS
    return True


@jit
def grow(tree: TreeState, p: int, price: FloatArray, cutoff: int) -> int:
    """Reserve a tree for piece p from its origin to its goal, or to all that want it.

    ``price``: ticks per tick of use of every resource, or empty. Returns the last arrival; -1 if nothing arrives before
    ``cutoff``, -2 if a target cannot be reached, :data:`FULL`. What was reserved until then stays.
    """
    routing, reserved, labels = tree.routing, tree.reserved, tree.labels  # taken out once: that counts references
    toward, wants = tree.toward, tree.wants
    state, arrival, key = labels.state, labels.arrival, labels.key
    origin, goal, c = tree.pieces.origin[p], tree.pieces.goal[p], tree.pieces.kind[p]
    ranks = len(state)
    state[:] = UNSEEN
    guided = goal >= 0 and len(toward) > 0
    missing = 1
    if goal < 0:
        missing = 0
        for v in range(ranks):
            if wants[v] and v != origin:
                missing += 1
    last: Any = 0
    state[origin], arrival[origin], key[origin] = HOLDS, 0, 0
    heap: Any = [(np.int64(0), np.random.random(), np.int64(origin))]
    while missing > 0:
        if len(heap) == 0:
            return -2
        at, _, v = heapq.heappop(heap)
        if v != origin or at > 0:
            if state[v] >= PASSED or at > key[v]:
                continue
            if at > cutoff:
                return -1
            r = labels.route[v]
            if earliest_start(routing, reserved, r, c, arrival[routing.source[r]]) > labels.start[v]:
                _relabel(routing, reserved, labels, v, c, price, toward[v, goal] if guided else 0)
                heapq.heappush(heap, (key[v], np.random.random(), np.int64(v)))
                continue
            if v == goal or (goal < 0 and wants[v]):
                if not _reserve_branch(tree, p, v):
                    return FULL
                missing -= 1
                last = max(last, arrival[v])
                if last > cutoff:
                    return -1
                if missing == 0:
                    break
            else:
                state[v] = PASSED
        for j in range(routing.leaving_row[v], routing.leaving_row[v + 1]):
            r = routing.leaving[j]
            w = routing.target[r]
            if state[w] >= PASSED:
                continue
            left = 0
            if guided:
                left = toward[w, goal]
                if left >= UNREACHABLE or (state[goal] == SEEN and arrival[v] + left >= key[goal]):
                    continue
            if _better(routing, reserved, labels, r, c, price, left):
                heapq.heappush(heap, (key[w], np.random.random(), np.int64(w)))
    return int(last)
