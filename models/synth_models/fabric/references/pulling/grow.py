"""Growing the tree of one piece into what is free: earliest arrival first.

Every rank that waits for the piece has a label: the best route by which it can get it, from a rank that has it, given
all reservations. The earliest label is settled, its transfer reserved, and the labels that this concerns found again.
Ranks that do not want the piece relay it where that is quicker: they are settled without reservation, which is made
when one that wants it comes by. With a single target this is Dijkstra's search in time-expanded free intervals.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from synth.kernels import jit
from synth_models.fabric.references.pulling.board import INF, lag_of, shape
from synth_models.fabric.references.pulling.book import free_from, occupy, release

UNSEEN, SEEN, PASSED, HOLDS = 0, 1, 2, 3


@jit
def start_of(board: Any, book: Any, r: Any, c: Any, t: Any) -> Any:
    """The earliest start from t on at which all that route r needs is free."""
    count = shape(board, r, c)
    what, offset, duration = board[14], board[15], board[16]
    k, fixed = 0, 0
    while fixed < count:
        found = free_from(book, what[k], t + offset[k], duration[k]) - offset[k]
        if found > t:
            t, fixed = found, 0
        fixed += 1
        k = k + 1 if k + 1 < count else 0
    return t


@jit
def reserve(board: Any, book: Any, r: Any, c: Any, t: Any) -> Any:
    """Enter a transfer into the book. False if the pool is full."""
    count = shape(board, r, c)
    what, offset, duration = board[14], board[15], board[16]
    for k in range(count):  # noqa: SIM110
        if not occupy(book, what[k], t + offset[k], duration[k]):
            return False
    return True


@jit
def cancel(board: Any, book: Any, r: Any, c: Any, t: Any) -> Any:
    """Take a transfer out of the book. False if the pool is full."""
    count = shape(board, r, c)
    what, offset, duration = board[14], board[15], board[16]
    for k in range(count):  # noqa: SIM110
        if not release(book, what[k], t + offset[k], duration[k]):
            return False
    return True


@jit
def priced(board: Any, r: Any, c: Any, price: Any) -> Any:
    """What the route costs beside time, in ticks."""
    if len(price) == 0:
        return 0
    row, links, table, link_row, group = board[0], board[1], board[9], board[10], board[11]
    cost = 0.0
    for k in range(row[r], row[r + 1]):
        e = links[k]
        cost += price[e] * table[link_row[e], c]
        if group[e] >= 0:
            cost += price[group[e]] * table[link_row[e], c]
    return int(cost)


@jit
def new_labels(ranks: Any) -> Any:
    """Scratch of :func:`grow`."""
    return (
        np.zeros(ranks, dtype=np.int64),  # state
        np.zeros(ranks, dtype=np.int64),  # arrival
        np.zeros(ranks, dtype=np.int64),  # key
        np.zeros(ranks, dtype=np.int64),  # route
        np.zeros(ranks, dtype=np.int64),  # start
        np.zeros(ranks, dtype=np.int64),  # chain
    )


@jit
def new_slots(pieces: Any, room: Any) -> Any:
    """Transfers, as one list per piece: route, start, next of the piece (or next free), and per piece the first; the
    last array holds the first free slot and how many there are."""
    following = np.arange(1, room + 1)
    following[room - 1] = -1
    return (
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        following,
        np.full(pieces, -1, dtype=np.int64),
        np.array([0], dtype=np.int64),
    )


@jit
def put(slots: Any, p: Any, r: Any, t: Any) -> Any:
    """Add a transfer to piece p. False if there is no room."""
    route, start, following, first, free = slots
    i = free[0]
    if i < 0:
        return False
    free[0] = following[i]
    route[i], start[i], following[i], first[p] = r, t, first[p], i
    return True


@jit
def drop(board: Any, book: Any, slots: Any, p: Any, c: Any) -> Any:
    """Take the transfers of piece p out of the book and give back their slots. False if the pool is full."""
    route, start, following, first, free = slots
    i = first[p]
    while i >= 0:
        if not cancel(board, book, route[i], c, start[i]):
            return False
        after = following[i]
        following[i], free[0] = free[0], i
        i = after
    first[p] = -1
    return True


@jit
def _better(board: Any, book: Any, labels: Any, r: Any, u: Any, v: Any, c: Any, price: Any, left: Any) -> Any:
    """Whether route r from u gives v a better label, which is then written. ``left``: ticks from v to the goal."""
    state, arrival, key, via, begin = labels[0], labels[1], labels[2], labels[3], labels[4]
    lag = board[17][c, r] if len(board[17]) else lag_of(board, r, c)
    extra = priced(board, r, c, price) + left
    known = key[v] if state[v] != UNSEEN else INF
    if arrival[u] + lag + extra >= known:
        return False
    s = start_of(board, book, r, c, arrival[u])
    if s + lag + extra >= known:
        return False
    arrival[v], key[v], via[v], begin[v] = s + lag, s + lag + extra, r, s
    if state[v] == UNSEEN:
        state[v] = SEEN
    return True


@jit
def grow(
    board: Any,
    book: Any,
    slots: Any,
    labels: Any,
    p: Any,
    origin: Any,
    goal: Any,
    c: Any,
    wants: Any,
    price: Any,
    toward: Any,
    cutoff: Any,
) -> Any:
    """Reserve a tree for piece p of class c from ``origin`` to ``goal``, or to all ``wants`` if that is -1.

    ``price``: ticks per tick of use of every resource, or empty; ``toward``: least ticks between ranks, or empty.
    Returns the last arrival; -1 if nothing arrives before ``cutoff``, -2 if a target cannot be reached, -3 if memory is
    full. What was reserved until then stays in the slots.
    """  # fmt: skip
    state, arrival, key, via, begin, chain = labels
    ranks = len(state)
    state[:] = UNSEEN
    source, target = board[2], board[3]
    out_start, out, in_start, into = board[4], board[5], board[6], board[7]
    guided = goal >= 0 and len(toward) > 0
    missing = 1
    if goal < 0:
        missing = 0
        for v in range(ranks):
            if wants[v] and v != origin:
                missing += 1
    last = np.int64(0)
    state[origin], arrival[origin], key[origin] = HOLDS, 0, 0
    heap = [(np.int64(0), np.random.random(), np.int64(origin))]
    while missing > 0:
        if len(heap) == 0:
            return -2
        event: Any = heapq.heappop(heap)
        at, v = event[0], event[2]
        if v != origin or at > 0:
            if state[v] >= PASSED or at > key[v]:
                continue
            if at > cutoff:
                return -1
            wanted = v == goal or (goal < 0 and wants[v])
            u = source[via[v]]
            if start_of(board, book, via[v], c, arrival[u]) > begin[v]:
                state[v] = UNSEEN
                left = toward[v, goal] if guided else 0
                for j in range(in_start[v], in_start[v + 1]):
                    w = source[into[j]]
                    if state[w] >= PASSED:
                        _better(board, book, labels, into[j], w, v, c, price, left)
                heapq.heappush(heap, (key[v], np.random.random(), np.int64(v)))
                continue
            if not wanted:
                state[v] = PASSED
            else:
                length, w = 0, v
                while state[w] != HOLDS:
                    chain[length] = w
                    length += 1
                    w = source[via[w]]
                for j in range(length - 1, -1, -1):
                    w = chain[j]
                    r = via[w]
                    s = start_of(board, book, r, c, arrival[source[r]])
                    if not (put(slots, p, r, s) and reserve(board, book, r, c, s)):
                        return -3
                    arrival[w] += s - begin[w]
                    begin[w], state[w] = s, HOLDS
                missing -= 1
                last = max(last, arrival[v])
                if last > cutoff:
                    return -1
                if missing == 0:
                    break
        for j in range(out_start[v], out_start[v + 1]):
            r = out[j]
            w = target[r]
            if state[w] >= PASSED:
                continue
            left = 0
            if guided:
                left = toward[w, goal]
                if left >= INF or (state[goal] == SEEN and arrival[v] + left >= key[goal]):
                    continue
            if _better(board, book, labels, r, v, w, c, price, left):
                heapq.heappush(heap, (key[w], np.random.random(), np.int64(w)))
    return last
