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
from typing import Any

import numpy as np

from synth.kernel_clock import now as read_clock
from synth.kernels import jit
from synth_models.fabric.references.pulling.board import INF, lag_of, shape

DOORS = 4
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
BIT_OF = np.zeros(64, np.int64)  # BIT_OF[(DE_BRUIJN << i) >> 58] = i: the place of a single set bit
for _bit in range(64):
    BIT_OF[((int(DE_BRUIJN) << _bit) & (2**64 - 1)) >> 58] = _bit


@jit
def _free_at(board: Any, free: Any, r: Any, c: Any, t: Any) -> Any:
    """The earliest start over route r from t on, given when each resource is free for good."""
    count = shape(board, r, c)
    for k in range(count):
        t = max(t, free[board[14][k]] - board[15][k])
    return t


@jit(wraps=True)  # DE_BRUIJN
def spread(
    board: Any,
    pieces: Any,
    wants: Any,
    apart: Any,
    patience: float,
    looks: Any,
    resources: Any,
    seed: Any,
    seconds: float,
) -> Any:
    """Route and start of every transfer, in order of their starts, and their pieces. ``apart``: ticks between ranks,
    shape (ranks, ranks). Returns fewer transfers than are wanted if some rank cannot be reached."""
    np.random.seed(seed)
    end = read_clock() + seconds
    source, target = board[2], board[3]
    out_start, out, in_start, into = board[4], board[5], board[6], board[7]
    count, ranks = len(pieces[0]), len(wants)
    words = (count + 63) // 64
    one = np.uint64(1)
    held = np.zeros((ranks, words), dtype=np.uint64)
    promised = np.zeros((ranks, words), dtype=np.uint64)
    missing = np.zeros(ranks, dtype=np.int64)
    holders = np.ones(count, dtype=np.int64)
    near_held = np.empty((count, ranks), dtype=np.int64)  # ticks from the nearest rank that has it
    near_due = np.full((count, ranks), np.int64(INF))  # when it can come from the nearest that has been promised it
    due = np.full((count, ranks), np.int64(INF))  # when that one will have it
    for v in range(ranks):
        missing[v] = count if wants[v] else 0
    for p in range(count):
        u = pieces[0][p]
        held[u, p // 64] |= one << np.uint64(p % 64)
        promised[u, p // 64] |= one << np.uint64(p % 64)
        if wants[u]:
            missing[u] -= 1
        for x in range(ranks):
            near_held[p, x] = apart[u, x]
    goal = missing.sum()
    out_piece = np.empty(goal, dtype=np.int64)
    out_route = np.empty(goal, dtype=np.int64)
    out_begin = np.empty(goal, dtype=np.int64)
    done = 0
    many = 64  # routes that wait for a link: then no arrival is worth another look
    pause = 8 if ranks > 128 else 0  # looks at most in the time of a piece, on big machines
    free = np.zeros(resources, dtype=np.int64)
    wake = np.full(ranks, np.int64(INF))
    quick = np.full(ranks, np.int64(INF))  # ticks that the quickest way in is occupied by a piece
    widest = np.int64(0)
    for p in range(count):
        if board[9][0, pieces[2][p]] > board[9][0, widest]:
            widest = pieces[2][p]
    # what every route occupies, and how long after the start, for the widest pieces: a row per route, padded
    width = 1
    for r in range(len(source)):
        width = max(width, shape(board, r, widest))
    uses = np.full((len(source), width), -1, dtype=np.int32)
    after = np.zeros((len(source), width), dtype=np.int64)
    for r in range(len(source)):
        n = shape(board, r, widest)
        length = board[0][r + 1] - board[0][r]
        long = np.int64(0)
        for k in range(n):
            uses[r, k], after[r, k] = board[14][k], board[15][k]
            long = max(long, board[16][k])
        last = 0 if board[13] else length - 1
        uses[r, 0], uses[r, last] = uses[r, last], uses[r, 0]
        after[r, 0], after[r, last] = after[r, last], after[r, 0]
        quick[target[r]] = min(quick[target[r]], long)
    doors = np.full((ranks, DOORS), -1, dtype=np.int64)  # the links by which routes enter a rank, if they are few
    ahead = np.zeros((ranks, DOORS), dtype=np.int64)  # at most how long after the start each is occupied
    for v in range(ranks):
        for j in range(in_start[v], in_start[v + 1]):
            e = uses[into[j], 0]
            k = 0
            while k < DOORS and doors[v, k] != e and doors[v, k] >= 0:
                k += 1
            if k == DOORS:
                doors[v, :] = -1
                break
            doors[v, k] = e
            ahead[v, k] = max(ahead[v, k], after[into[j], 0])
    content = np.zeros(ranks, dtype=np.bool_)  # whether a rank only waits for links, and has much to choose from
    events = [(np.int64(0), np.int64(0), np.random.random(), np.int64(0), np.int64(0)) for _ in range(0)]
    for v in range(ranks):
        if missing[v]:
            wake[v] = 0
            heapq.heappush(events, (np.int64(0), np.int64(1), np.random.random(), np.int64(0), np.int64(v)))
    while len(events) and read_clock() <= end:
        event: Any = heapq.heappop(events)
        now, what, p, v = event[0], event[1], event[3], event[4]
        if what == 0:  # piece p arrives at v
            held[v, p // 64] |= one << np.uint64(p % 64)
            for x in range(ranks):
                near_held[p, x] = min(near_held[p, x], apart[v, x])
            for j in range(out_start[v], out_start[v + 1]):
                w = target[out[j]]
                if wants[w] and not content[w] and not promised[w, p // 64] >> np.uint64(p % 64) & one:
                    at = max(now, free[uses[out[j], 0]] - after[out[j], 0])
                    if at < wake[w]:
                        wake[w] = at
                        heapq.heappush(events, (at, np.int64(1), np.random.random(), np.int64(0), np.int64(w)))
            continue
        if wake[v] != now or missing[v] == 0:
            continue
        wake[v] = INF
        degree = in_start[v + 1] - in_start[v]
        while missing[v] > 0:  # pull until nothing more can start now
            opens = np.int64(INF)
            for k in range(DOORS):
                if doors[v, k] >= 0:
                    opens = min(opens, free[doors[v, k]] - ahead[v, k])
            if doors[v, 0] >= 0 and opens > now:
                content[v], wake[v] = True, opens
                heapq.heappush(events, (opens, np.int64(1), np.random.random(), np.int64(0), np.int64(v)))
                break
            best_r, best_p = -1, -1
            best_good, best_rare, best_arrival = False, np.int64(INF), np.int64(INF)
            again = np.int64(INF)
            looked, blocked = 0, 0
            turn = np.random.randint(degree) if degree else 0
            for j0 in range(degree):
                j = j0 + turn
                if j >= degree:
                    j -= degree
                r = into[in_start[v] + j]
                u = source[r]
                enter = free[uses[r, 0]] - after[r, 0]
                if enter > now and enter >= again:
                    continue
                some = False
                for w0 in range(words):
                    if held[u, w0] & ~promised[v, w0]:
                        some = True
                        break
                if not some:
                    continue
                s = now
                for k in range(width):
                    if uses[r, k] >= 0:
                        s = max(s, free[uses[r, k]] - after[r, k])
                if s > now:
                    again = min(again, s)
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
                        arrival = now + (
                            board[17][pieces[2][q], r] if len(board[17]) else lag_of(board, r, pieces[2][q])
                        )
                        other = now + near_held[q, v]
                        if due[q, v] > now and near_due[q, v] < other:
                            other = near_due[q, v]
                        good = arrival <= other
                        if not good and arrival > now + patience * missing[v] * quick[v]:
                            continue
                        rare = holders[q] if good else -other
                        if (
                            best_p < 0
                            or (good and not best_good)
                            or (
                                good == best_good
                                and (rare < best_rare or (rare == best_rare and arrival < best_arrival))
                            )
                        ):
                            best_r, best_p, best_good, best_rare, best_arrival = r, q, good, rare, arrival
                    if looked > looks and best_p >= 0:
                        break
            if best_p < 0:
                content[v] = blocked >= many
                if again < INF:
                    if pause:
                        again = max(again, now + quick[v] // pause)
                    wake[v] = again
                    heapq.heappush(events, (again, np.int64(1), np.random.random(), np.int64(0), np.int64(v)))
                break
            q, c = best_p, pieces[2][best_p]
            s = _free_at(board, free, best_r, c, now)
            n = shape(board, best_r, c)
            for k in range(n):
                free[board[14][k]] = max(free[board[14][k]], s + board[15][k] + board[16][k])
            arrival = s + lag_of(board, best_r, c)
            promised[v, q // 64] |= one << np.uint64(q % 64)
            missing[v] -= 1
            holders[q] += 1
            for x in range(ranks):
                if apart[v, x] < INF and arrival + apart[v, x] < near_due[q, x]:
                    near_due[q, x] = arrival + apart[v, x]
                    due[q, x] = arrival
            out_piece[done], out_route[done], out_begin[done] = q, best_r, s
            done += 1
            heapq.heappush(events, (arrival, np.int64(0), 0.0, np.int64(q), np.int64(v)))
    return out_piece[:done], out_route[:done], out_begin[:done]
