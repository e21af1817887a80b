"""Rounds in which one rank, the *source*, meets the others in turn, and these spread what it gives them.

In a round every rank sends at most one piece and receives at most one. In round t the source exchanges piece t with the
rank t mod m of the m = n - 1 others, which does nothing else; when it has met all, it spreads the last piece too. With
C pieces nothing takes less than ``C + ceil(log2 n) - 1`` rounds: the last piece is given in round C, has two holders
then, and each further round at most doubles them.

:func:`by_halves`, for n = 2^k, meets that bound. It is StragglAR's schedule (Devraj, Ding, Kumar, Kleinberg, Singh:
"Efficient AllReduce with Stragglers", 2025, arXiv 2505.23523): the k pieces under way have disjoint sets of holders,
which double every round. The half that holds the oldest piece exchanges it with the other half for newer ones. What a
rank takes is chosen such that it is everywhere when the rank meets the source again.

:func:`by_flows`, for any n (ours): a round is a flow of most pieces from ranks that hold them to ranks that lack them,
rare pieces first, ties broken at random. Guarantee: none; it is run again with other numbers until it meets the bound.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray

EMPTY_FIRST = 2000  # of the cost of a rank that holds nothing yet: doubling at first, for rare pieces later
OFFSET = 5000  # added to all costs, since none may be negative
COSTS = ((0, 5, 10, 20, 30), (0, 0, 3, 10), (20, 50, 100, 200), (0, 10, 30), (10, 20, 60))  # of which each run draws


class Given(NamedTuple):
    """Piece ``piece`` goes from ``sender`` to ``receiver``; the others are 0 … m - 1, the source is m."""

    piece: int
    sender: int
    receiver: int


Rounds = list[list[Given]]


def least_rounds(n: int, pieces: int) -> int:
    """What no schedule for n >= 2 ranks goes below."""
    return pieces + (n - 1).bit_length() - 1


def by_halves(n: int, pieces: int) -> Rounds:
    """Of n = 2^k ranks, for at least n - 1 pieces: :func:`least_rounds` of them. Raises ``ValueError`` otherwise."""
    m, k = n - 1, n.bit_length() - 1
    if n != 1 << k or n < 2 or pieces < m:
        raise ValueError(f"{n} ranks, {pieces} pieces: want a power of two, and as many pieces as there are others")
    held: dict[int, list[int]] = {}  # of each piece under way, the oldest first, its holders
    rounds: Rounds = []
    for t in range(least_rounds(n, pieces)):
        meets = t % m if t < pieces else m
        oldest = held.pop(t - k, None)
        free = _fresh(held, k, m) if oldest is None else [b for b in oldest if b != meets]
        found = _exchanges(held, free, t, k, m, pieces)
        for piece, _, b in found:
            held[piece].append(b)
        if oldest is not None:
            found += [Given(t - k, b, a) for _, a, b in found if a != m]
        if t < pieces:
            found.append(Given(t, m, meets))
            held[t] = [meets] if t < pieces - 1 else [meets, m]
        rounds.append(found)
    return rounds


def _fresh(held: dict[int, list[int]], k: int, m: int) -> list[int]:
    """The ranks that hold nothing yet, but for those that meet the source first."""
    taken = {rank for holders in held.values() for rank in holders}
    return [rank for rank in range(k, m) if rank not in taken]


def _exchanges(held: dict[int, list[int]], free: list[int], t: int, k: int, m: int, pieces: int) -> list[Given]:
    """Which holder of a piece gives it to which of the ``free`` ranks in round t: to those that soon meet the source
    what is over by then, to others what is left."""
    slots = {piece: list(holders) for piece, holders in held.items()}
    found, others = [], []
    for b in sorted(free, key=lambda b: _next(b, t, m, pieces)):
        piece = _next(b, t, m, pieces) - k
        if t >= k and piece in slots:
            found.append(Given(piece, slots[piece].pop(), b))
        else:
            others.append(b)
    left = [(piece, a) for piece, holders in slots.items() for a in holders]
    return found + [Given(piece, a, b) for (piece, a), b in zip(left, others, strict=False)]


def _next(rank: int, t: int, m: int, pieces: int) -> int:
    """The round after t in which the rank meets the source; beyond all rounds if it does not."""
    after = t + 1 + (rank - t - 1) % m
    return after if after < pieces else 4 * (pieces + m)


def by_flows(n: int, pieces: int, seed: int, lag: int = 0) -> Rounds:
    """Of n >= 2 ranks, as many rounds as these random numbers take. What comes in a round is sent on from the next one
    on, or so many rounds of ``lag`` later, during which it may still be on its way."""
    numbers = random.Random(seed)
    rare, behind, rare_last, behind_last, noise = (numbers.choice(some) for some in COSTS)
    m, least = n - 1, least_rounds(n, pieces)
    last = least - numbers.choice([1, n.bit_length() // 2 + 1, n.bit_length(), 2 * n.bit_length()])
    draw = np.random.default_rng(seed)
    holds, rounds, t = np.zeros((pieces, n), dtype=bool), [], 0
    since = np.zeros((pieces, n), dtype=np.int64)  # the round in which a piece came
    while not holds.all():
        under_way = np.flatnonzero(holds.any(axis=1) & ~holds.all(axis=1))
        many = holds[under_way].sum(axis=1)
        if t < last:
            worth = (rare * np.log2(np.maximum(many, 1))).astype(np.int64)
        else:
            worth = -(10 * rare_last * np.log2(n / np.maximum(many, 1)) / max(1, least - t)).astype(np.int64)
        own = holds.sum(axis=0)
        poor = (behind if t < last else behind_last) * (own[:m].max(initial=0) - own) + EMPTY_FIRST * (own == 0)
        idle = np.ones(n, dtype=bool)
        idle[[t % m, m] if t < pieces else []] = False
        has, may = holds[under_way], (holds & (since < t - lag))[under_way]
        found = _flow(under_way, may & idle, ~has & idle, worth[:, None] - poor, noise, draw)
        for piece, _, b in found:
            holds[piece, b], since[piece, b] = True, t
        if t < pieces:
            found.append(Given(t, m, t % m))
            holds[t, [t % m, m]], since[t, t % m], since[t, m] = True, t, -1
        rounds.append(found)
        t += 1
    return rounds


def _flow(
    pieces: IntArray, gives: BoolArray, lacks: BoolArray, cost: IntArray, noise: int, draw: np.random.Generator
) -> list[Given]:
    """As many of these ``pieces`` as one round can give, from ranks that may give them to ranks that lack them, at the
    least cost. ``gives``, ``lacks``, ``cost``: shape (pieces, ranks)."""
    count, n = gives.shape
    (row, a), (to, b) = np.nonzero(gives), np.nonzero(lacks)
    if not len(a) or not len(b):
        return []
    senders, receivers, source, sink = np.unique(a), np.unique(b), 2 * n + count, 2 * n + count + 1
    tail = np.concatenate([a, 2 * n + to, np.full(len(senders), source), n + receivers])
    head = np.concatenate([2 * n + row, n + b, senders, np.full(len(receivers), sink)])
    free = np.zeros(len(senders) + len(receivers), dtype=np.int64)
    costs = np.concatenate([draw.integers(noise, size=len(a)), cost[to, b] + draw.integers(noise, size=len(b)), free])
    from ortools.graph.python import min_cost_flow  # which methods of other machines need not load

    flow = min_cost_flow.SimpleMinCostFlow()
    arcs = flow.add_arcs_with_capacity_and_unit_cost(tail, head, np.ones(len(tail), dtype=np.int64), costs + OFFSET)
    flow.set_node_supply(source, n)
    flow.set_node_supply(sink, -n)
    flow.solve_max_flow_with_min_cost()
    used = flow.flows(arcs) > 0
    out, into = used[: len(a)], used[len(a) : len(a) + len(b)]
    giving, taking = np.argsort(row[out], kind="stable"), np.argsort(to[into], kind="stable")
    columns = pieces[row[out][giving]], a[out][giving], b[into][taking]
    return [Given(*each) for each in zip(*(column.tolist() for column in columns), strict=True)]
