"""The event-driven greedy: whenever routes into a rank are free, it pulls the rarest piece that it misses.

For pieces that all members want. A piece that has been promised to a rank counts as held, so that neighbours do not all
fetch the same one. A rank leaves a piece alone that it can expect sooner than over the route at hand: from a rank
nearby that has it or has been promised it. Unless the route is idle otherwise and the piece arrives before the rank
could have everything else (``patience``): a slow link helps while there is much to fetch, and only then.

Complexity: O(pieces * ranks) transfers, each O(ranks) for what can be expected, plus a look at the routes into a rank
and at up to ``looks`` pieces. Memory: 20 bytes per (piece, rank).
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray, WordArray
from synth.kernels import jit
from synth.kernels.clock import now as read_clock
from synth_models.fabric.references.pull.routing_state import UNREACHABLE, RoutingState, find_uses, lag_of
from synth_models.fabric.references.pull.tree_growth import PieceArrays
from synth_models.fabric.references.pull.tuned import MANY_BLOCKED, MOST_ENTRIES
from synth_models.fabric.scheduling.reservations import (
    NextFree,
    Uses,
    earliest_behind,
    new_next_free,
    reserve_behind,
)

DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
BIT_OF = np.zeros(64, np.int64)  # BIT_OF[(DE_BRUIJN << i) >> 58] = i: the place of a single set bit
for _bit in range(64):
    BIT_OF[((int(DE_BRUIJN) << _bit) & (2**64 - 1)) >> 58] = _bit


class Holdings(NamedTuple):
    """Who has, or will have, which piece. ``held``, ``promised``: sets of pieces as bits, uint64, shape (ranks, words).
    ``missing``: pieces that a rank still has to pull, shape (ranks,); ``holders``: ranks that have or are promised a
    piece, shape (pieces,). In ticks, shape (pieces, ranks): ``near_held``, from the nearest rank that has it;
    ``near_due``, when it can come from the nearest that has been promised it, which has it when it is ``due``."""

    held: WordArray
    promised: WordArray
    missing: IntArray
    holders: IntArray
    near_held: IntArray
    near_due: IntArray
    due: IntArray


class Entries(NamedTuple):
    """The links by which routes enter a rank, ``link``, -1 if they are many, and at most how long after a start each
    is occupied, ``ahead``; shape (ranks, :data:`MOST_ENTRIES`). ``quick``: ticks that the quickest route into a rank is
    occupied by a piece, shape (ranks,)."""

    link: IntArray
    ahead: IntArray
    quick: IntArray


class Pull(NamedTuple):
    """What a rank pulls next: ``route`` and ``piece``, -1 if nothing can start now; then it is to ``retry`` at that
    tick, and ``blocked`` routes are occupied."""

    route: int
    piece: int
    retry: int
    blocked: int


@jit
def _holdings(pieces: PieceArrays, wants: BoolArray, apart: IntArray) -> Holdings:
    """At the start, when every piece is at its origin."""
    count, ranks = len(pieces.origin), len(wants)
    words = (count + 63) // 64
    holdings = Holdings(
        np.zeros((ranks, words), dtype=np.uint64),
        np.zeros((ranks, words), dtype=np.uint64),
        np.zeros(ranks, dtype=np.int64),
        np.ones(count, dtype=np.int64),
        np.empty((count, ranks), dtype=np.int64),
        np.full((count, ranks), np.int64(UNREACHABLE)),
        np.full((count, ranks), np.int64(UNREACHABLE)),
    )
    for v in range(ranks):
        holdings.missing[v] = count if wants[v] else 0
    for p in range(count):
        u = pieces.origin[p]
        bit = np.uint64(1) << np.uint64(p % 64)
        holdings.held[u, p // 64] |= bit
        holdings.promised[u, p // 64] |= bit
        if wants[u]:
            holdings.missing[u] -= 1
        for x in range(ranks):
            holdings.near_held[p, x] = apart[u, x]
    return holdings


@jit(inlined=True)
def _promise(holdings: Holdings, apart: IntArray, q: int, v: int, arrival: int) -> None:
    """Rank v will have piece q at ``arrival``."""
    holdings.promised[v, q // 64] |= np.uint64(1) << np.uint64(q % 64)
    holdings.missing[v] -= 1
    holdings.holders[q] += 1
    for x in range(len(apart)):
        if apart[v, x] < UNREACHABLE and arrival + apart[v, x] < holdings.near_due[q, x]:
            holdings.near_due[q, x] = arrival + apart[v, x]
            holdings.due[q, x] = arrival


@jit(inlined=True)
def _arrive(holdings: Holdings, apart: IntArray, p: int, v: int) -> None:
    """Rank v has piece p."""
    holdings.held[v, p // 64] |= np.uint64(1) << np.uint64(p % 64)
    for x in range(len(apart)):
        holdings.near_held[p, x] = min(holdings.near_held[p, x], apart[v, x])


@jit(inlined=True)
def _promised(holdings: Holdings, p: int, v: int) -> bool:
    """Whether rank v has piece p or has been promised it."""
    return bool(holdings.promised[v, p // 64] >> np.uint64(p % 64) & np.uint64(1))


@jit
def _uses_of_routes(routing: RoutingState, c: int) -> Uses:
    """What every route occupies for a piece of class c, the link that enters its last rank first."""
    routes, uses = len(routing.source), routing.uses
    row = np.zeros(routes + 1, dtype=np.int64)
    for r in range(routes):
        find_uses(routing, r, c)
        row[r + 1] = row[r] + uses.row[1]
    found = Uses(row, np.zeros(row[-1], np.int64), np.zeros(row[-1], np.int64), np.zeros(row[-1], np.int64))
    for r in range(routes):
        find_uses(routing, r, c)
        entry = 0 if routing.is_reversed else routing.row[r + 1] - routing.row[r] - 1
        for k in range(uses.row[1]):
            at = row[r] + (entry if k == 0 else 0 if k == entry else k)
            found.resource[at], found.offset[at], found.duration[at] = (
                uses.resource[k], uses.offset[k], uses.duration[k],
            )  # fmt: skip
    return found


@jit
def _entries(routing: RoutingState, uses: Uses, ranks: int) -> Entries:
    link = np.full((ranks, MOST_ENTRIES), -1, dtype=np.int64)
    ahead = np.zeros((ranks, MOST_ENTRIES), dtype=np.int64)
    quick = np.full(ranks, np.int64(UNREACHABLE))
    for v in range(ranks):
        known = True
        for j in range(routing.entering_row[v], routing.entering_row[v + 1]):
            r = routing.entering[j]
            long = np.int64(0)
            for k in range(uses.row[r], uses.row[r + 1]):
                long = max(long, uses.duration[k])
            quick[v] = min(quick[v], long)
            if not known:
                continue
            e = uses.resource[uses.row[r]]
            k = 0
            while k < MOST_ENTRIES and link[v, k] != e and link[v, k] >= 0:
                k += 1
            if k == MOST_ENTRIES:
                link[v, :] = -1
                known = False
            else:
                link[v, k] = e
                ahead[v, k] = max(ahead[v, k], uses.offset[uses.row[r]])
    return Entries(link, ahead, quick)


@jit(inlined=True)
def _opens(entries: Entries, reserved: NextFree, v: int) -> int:
    """The first tick at which a route into v may start, as far as the link by which it enters tells."""
    opens = UNREACHABLE
    for k in range(MOST_ENTRIES):
        if entries.link[v, k] >= 0:
            opens = min(opens, reserved.free[entries.link[v, k]] - entries.ahead[v, k])
    return opens


@jit(wraps=True)  # DE_BRUIJN
def _next_pull(
    routing: RoutingState, uses: Uses, reserved: NextFree, holdings: Holdings, kind: IntArray, v: int, now: int,
    slack: float, looks: int,
) -> Pull:  # fmt: skip
    """The rarest piece that v can pull now, over a route that brings it no later than it may be expected otherwise; if
    there is none, one that arrives within ``slack`` ticks."""
    held, promised, holders = holdings.held, holdings.promised, holdings.holders  # here, not within loops: each costs
    near_held, near_due, due = holdings.near_held, holdings.near_due, holdings.due  # counting a reference
    source, entering, lags = routing.source, routing.entering, routing.lag
    free, uses_row, resource, offset = reserved.free, uses.row, uses.resource, uses.offset
    one, words = np.uint64(1), held.shape[1]
    first_entering = routing.entering_row[v]
    degree = routing.entering_row[v + 1] - first_entering
    best_r, best_p = -1, -1
    best_good, best_rare, best_arrival = False, UNREACHABLE, UNREACHABLE
    retry = UNREACHABLE
    looked, blocked = 0, 0
    turn = np.random.randint(degree) if degree else 0
    for j0 in range(degree):
        j = j0 + turn
        if j >= degree:
            j -= degree
        r = entering[first_entering + j]
        u, entry = source[r], uses_row[r]
        enter = free[resource[entry]] - offset[entry]
        if enter > now and enter >= retry:
            continue
        some = False
        for w in range(words):
            if held[u, w] & ~promised[v, w]:
                some = True
                break
        if not some:
            continue
        s, _ = earliest_behind(reserved, uses, r, now)
        if s > now:
            retry = min(retry, s)
            blocked += 1
            continue
        if looked > looks and best_p >= 0:
            break
        first = np.random.randint(words)
        for w0 in range(words):
            w = w0 + first
            if w >= words:
                w -= words
            bits = held[u, w] & ~promised[v, w]
            while bits:
                low = bits & (~bits + one)
                bits ^= low
                q = w * 64 + BIT_OF[(low * DE_BRUIJN) >> np.uint64(58)]
                looked += 1
                arrival = now + (lags[kind[q], r] if len(lags) else lag_of(routing, r, kind[q]))
                other = now + near_held[q, v]
                if due[q, v] > now and near_due[q, v] < other:
                    other = near_due[q, v]
                good = arrival <= other
                if not good and arrival > now + slack:
                    continue
                rare = holders[q] if good else -other
                better = rare < best_rare or (rare == best_rare and arrival < best_arrival)
                if best_p < 0 or (good and not best_good) or (good == best_good and better):
                    best_r, best_p, best_good, best_rare, best_arrival = r, q, good, rare, arrival
            if looked > looks and best_p >= 0:
                break
    return Pull(best_r, best_p, retry, blocked)


@jit
def _widest(table: IntArray, kind: IntArray) -> int:
    """The class of size of the pieces that occupy links longest."""
    widest = np.int64(0)
    for c in kind:
        if table[0, c] > table[0, widest]:
            widest = c
    return int(widest)


@jit
def spread(
    routing: RoutingState, pieces: PieceArrays, wants: BoolArray, apart: IntArray, patience: float, looks: int,
    resources: int, seed: int, seconds: float,
) -> tuple[IntArray, IntArray, IntArray]:  # fmt: skip
    """Piece, route and start of every transfer, in order of their starts. ``apart``: ticks between ranks, shape
    (ranks, ranks). Returns fewer transfers than are wanted if some rank cannot be reached."""
    np.random.seed(seed)
    end = read_clock() + seconds
    ranks, kind = len(wants), pieces.kind
    holdings = _holdings(pieces, wants, apart)
    missing = holdings.missing
    goal = missing.sum()
    out_piece = np.empty(goal, dtype=np.int64)
    out_route = np.empty(goal, dtype=np.int64)
    out_start = np.empty(goal, dtype=np.int64)
    done = 0
    pause = 8 if ranks > 128 else 0  # looks at most in the time of a piece, on big machines
    reserved = new_next_free(resources)
    uses = _uses_of_routes(routing, _widest(routing.table, kind))
    entries = _entries(routing, uses, ranks)
    leaving_row, leaving, target = routing.leaving_row, routing.leaving, routing.target
    first_use, resource, offset, free = uses.row, uses.resource, uses.offset, reserved.free
    link, quick = entries.link, entries.quick
    found: Any = np.int64(0)  # what find_uses finds; a constant would have what takes it compiled twice
    wake = np.full(ranks, np.int64(UNREACHABLE))
    content = np.zeros(ranks, dtype=np.bool_)  # whether a rank only waits for links, and has much to choose from
    events: Any = [(np.int64(0), np.int64(0), np.random.random(), np.int64(0), np.int64(0)) for _ in range(0)]
    for v in range(ranks):
        if missing[v]:
            wake[v] = 0
            heapq.heappush(events, (np.int64(0), np.int64(1), np.random.random(), np.int64(0), np.int64(v)))
    while len(events) and read_clock() <= end:
        now, what, _, p, v = heapq.heappop(events)
        if what == 0:  # piece p arrives at v
            _arrive(holdings, apart, p, v)
            for j in range(leaving_row[v], leaving_row[v + 1]):
                r = leaving[j]
                w = target[r]
                if wants[w] and not content[w] and not _promised(holdings, p, w):
                    entry = first_use[r]
                    at = max(now, free[resource[entry]] - offset[entry])
                    if at < wake[w]:
                        wake[w] = at
                        heapq.heappush(events, (at, np.int64(1), np.random.random(), np.int64(0), np.int64(w)))
            continue
        if wake[v] != now or missing[v] == 0:
            continue
        wake[v] = UNREACHABLE
        while missing[v] > 0:  # pull until nothing more can start now
            opens: Any = _opens(entries, reserved, v)
            if link[v, 0] >= 0 and opens > now:
                content[v], wake[v] = True, opens
                heapq.heappush(events, (np.int64(opens), np.int64(1), np.random.random(), np.int64(0), np.int64(v)))
                break
            slack = patience * missing[v] * quick[v]
            pull = _next_pull(routing, uses, reserved, holdings, kind, v, now, slack, looks)
            if pull.piece < 0:
                content[v] = pull.blocked >= MANY_BLOCKED
                if pull.retry < UNREACHABLE:
                    retry = np.int64(pull.retry)
                    if pause:
                        retry = max(retry, now + quick[v] // pause)
                    wake[v] = retry
                    heapq.heappush(events, (retry, np.int64(1), np.random.random(), np.int64(0), np.int64(v)))
                break
            find_uses(routing, pull.route, kind[pull.piece])
            s, _ = earliest_behind(reserved, routing.uses, found, now)
            reserve_behind(reserved, routing.uses, found, s)
            arrival = s + lag_of(routing, pull.route, kind[pull.piece])
            _promise(holdings, apart, pull.piece, v, arrival)
            out_piece[done], out_route[done], out_start[done] = pull.piece, pull.route, s
            done += 1
            heapq.heappush(events, (arrival, np.int64(0), 0.0, np.int64(pull.piece), np.int64(v)))
    return out_piece[:done], out_route[:done], out_start[:done]
