"""Ring, bucket, Bruck and Sparbit: the algorithms that are no butterflies.

Ring and bucket (Jain & Sabharwal 2010: one ring per dimension of a torus) take p-1 and sum(side-1) rounds a half; Bruck
(Bruck et al. 1997, concatenation and radix-2 index) and Sparbit (Loch & Koslovski 2021) take ceil(log2 p) for every p.
"""

from __future__ import annotations

import numpy as np

from synth_models.bine.parts.steps import Rows, in_pieces
from synth_models.bine.solution import Steps


def bucket(torus: list[int], collective: str) -> Steps:
    """Reduce-scatter, allgather or (large) allreduce by rings, one dimension after the other."""
    ranks = int(np.prod(torus))
    place = np.array(np.unravel_index(np.arange(ranks), torus))
    rows, step = Rows(), 0
    halves = [h for h in ("reduce_scatter", "allgather") if collective in (h, "allreduce")]
    for half in halves:
        scatter = half == "reduce_scatter"
        for d in range(len(torus)) if scatter else reversed(range(len(torus))):
            below = int(np.prod(torus[d + 1 :]))
            begin = np.arange(ranks) // (below * torus[d]) * (below * torus[d])
            met = place.copy()
            met[d] = (place[d] + 1) % torus[d]
            to = np.ravel_multi_index(tuple(met), tuple(torus))
            for t in range(torus[d] - 1):
                which = (place[d] - t - (1 if scatter else 0)) % torus[d]
                rows.add(step, np.arange(ranks), to, begin + which * below, below, scatter)
                step += 1
    return rows.finish(np.arange(ranks))


def pairwise_alltoall(ranks: int) -> Steps:
    """The p-1 shifts: in round t every rank sends its block to the rank t+1 further on."""
    rows, r = Rows(), np.arange(ranks)
    for t in range(1, ranks):
        to = (r + t) % ranks
        rows.add(t - 1, r, to, r * ranks + to, 1)
    return rows.finish(np.arange(ranks * ranks))


def bruck_allgather(ranks: int) -> Steps:
    """Round k: every rank sends the min(2^k, p - 2^k) blocks from its own on to the rank 2^k before it."""
    rows, r = Rows(), np.arange(ranks)
    k = 0
    while (1 << k) < ranks:
        count = min(1 << k, ranks - (1 << k))
        head = np.minimum(count, ranks - r)  # a run that passes the last rank goes on at block 0
        rows.add(k, r, (r - (1 << k)) % ranks, r, head)
        rows.add(k, r, (r - (1 << k)) % ranks, 0, count - head)
        k += 1
    return rows.finish(np.arange(ranks))


def bruck_alltoall(ranks: int) -> Steps:
    """Round k: a block that has distance d to go in all moves on by 2^k if bit k of d is set."""
    rows, r = Rows(), np.arange(ranks)
    away = np.arange(1, ranks)
    k = 0
    while (1 << k) < ranks:
        moving = away[(away >> k) & 1 == 1]
        origin = (r[:, None] - (moving & ((1 << k) - 1))[None, :]) % ranks
        block = origin * ranks + (origin + moving[None, :]) % ranks
        src = np.broadcast_to(r[:, None], block.shape).ravel()
        rows.add(k, src, (src + (1 << k)) % ranks, block.ravel(), 1)
        k += 1
    return rows.finish(np.arange(ranks * ranks))


def sparbit_allgather(ranks: int) -> Steps:
    """Distances halve while blocks double; odd remainders skip the block that would arrive twice."""
    rows, r = Rows(), np.arange(ranks)
    bits = (ranks - 1).bit_length()
    held = [0]  # offsets d such that every rank r holds block r - d
    for k in range(bits):
        distance = 1 << (bits - 1 - k)
        moving = [d for d in held if d + distance < ranks and (d + distance) not in held]
        for d in moving:
            rows.add(k, r, (r + distance) % ranks, (r - d) % ranks, 1)
        held += [d + distance for d in moving]
    return in_pieces(rows.finish(np.arange(ranks)))
