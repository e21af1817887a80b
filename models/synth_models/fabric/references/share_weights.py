"""Unequal shares of an allreduce, where links or boxes are unequal: a linear program over how much each rank sums up.

With w_r the share that is summed up at place r and d_er, u_er the seconds that link e takes for it on the way down and
up, minimise T + S / 50:

    all of it is shared out   sum_r w_r = 1
    a link's seconds          sum_r (d_er + u_er) w_r <= T
    each way alone            sum_r d_er w_r <= S,   sum_r u_er w_r <= S
"""

from __future__ import annotations

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.solvers.lp import linprog
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.scheduling.list_scheduling import Transfers

ALONE = 0.1


def least_busy(down: FloatArray, up: FloatArray) -> FloatArray:
    """The shares, shape (shares,), from seconds by link and share, shape (links, shares) each."""
    shares = down.shape[1]
    unit = max(float((down + up).max(initial=0.0)), 1e-300)
    used = (down + up).any(axis=1)
    total, ways = (down + up)[used] / unit, np.concatenate([down[used], up[used]]) / unit
    rows = np.concatenate(
        [
            np.column_stack([total, np.full(len(total), -1.0), np.zeros(len(total))]),
            np.column_stack([ways, np.zeros(len(ways)), np.full(len(ways), -1.0)]),
        ]
    )
    cost = np.concatenate([np.zeros(shares), [1.0, ALONE]])
    whole = np.concatenate([np.ones(shares), [0.0, 0.0]])[None, :]
    found = linprog(cost, rows, np.zeros(len(rows)), whole, np.ones(1), method="highs")
    if found.x is None:
        return np.full(shares, 1 / shares)
    weight = np.maximum(np.asarray(found.x[:shares]), 0.0)
    result: FloatArray = weight / weight.sum()
    return result


def seconds_of_shares(instance: FabricInstance, transfers: Transfers, shares: int) -> FloatArray:
    """How long each link is occupied if one share is all there is, shape (links,
    shares)."""
    net = instance.machine.network
    owner = np.repeat(transfers.piece % shares, np.diff(transfers.route_start))
    count = np.bincount(transfers.link * shares + owner, minlength=len(net.src) * shares).reshape(-1, shares)
    turns = len(transfers.piece_bytes) / shares
    found: FloatArray = count / turns / net.bandwidth[:, None]
    return found


def dealt_out(roots: IntArray, weight: FloatArray, pieces: int) -> IntArray:
    """The rank that sums up each of equal pieces, shape (pieces,): as many a place of ``roots`` as its weight says,
    evenly mixed."""
    wanted = weight * pieces
    count = np.floor(wanted).astype(np.int64)
    count[np.argsort(count - wanted, kind="stable")[: pieces - int(count.sum())]] += 1
    at = np.concatenate([(np.arange(n) + 0.5) / n for n in count.tolist() if n])
    found: IntArray = np.repeat(roots, count)[np.argsort(at, kind="stable")]
    return found


def evenly_numbered(roots: IntArray) -> IntArray:
    """The number of every piece among those of its rank, as if all had as many as the rank with most."""
    count = np.bincount(roots)
    order = np.argsort(roots, kind="stable")
    first = np.concatenate([[0], np.cumsum(count)])[roots[order]]
    found = np.empty(len(roots), dtype=np.int64)
    found[order] = np.arange(len(roots)) - first
    spread: IntArray = found * int(count.max()) // np.maximum(count[roots], 1)
    return spread
