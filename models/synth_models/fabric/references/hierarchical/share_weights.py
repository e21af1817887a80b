"""Unequal shares of an allreduce, where links or boxes are unequal: a linear program over how much each rank sums up.

With w_r the share that is summed up at place r, d_er, u_er the seconds that link e takes for it on the way down and
up, and h_e those for which no allreduce can use it (latencies before and after it), minimise T + S / 10 + H / 100 (in
seconds where all shares are equal, which is what H counts in), H the part of the shares that are helped:

    all of it is shared out   sum_r w_r = 1
    a link's seconds          sum_r (d_er + u_er) w_r + h_e <= T
    each way alone            sum_r d_er w_r <= S,   sum_r u_er w_r <= S
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.graph.shortest_paths import UNREACHABLE
from synth.solvers.lp import INTERIOR, linprog
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.gossip import windows
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.hierarchical.tuned import ALONE, BUSIEST, HELP
from synth_models.fabric.scheduling.transfers import Transfers

HELPED = 3  # ways: not, and two; around and beside slow links are two more
WAYS = HELPED + 2
LEAST_SHARE = 1e-6  # of the whole, below which a share is none
DIGITS = 9  # by which rows of the linear program are told apart


def least_busy(
    down: FloatArray, up: FloatArray, lost: FloatArray, kinds: int = HELPED, busiest_first: bool = False
) -> FloatArray:
    """The shares, shape (shares,), from seconds by link and share, shape (links, shares) each, and the seconds that
    links are ``lost``, shape (links,). Of ``kinds`` equal parts of the shares the first is not helped. Many shares are
    equally good: with ``busiest_first`` the program meets those links first that all shares together occupy longest,
    and may end at others."""
    shares = down.shape[1]
    alike = float((down + up)[:, : shares // kinds].mean(axis=1).max(initial=0.0))
    unit = alike or float((down + up).max(initial=0.0)) or 1.0
    used = (down + up).any(axis=1)
    total, ways = (down + up)[used] / unit, np.concatenate([down[used], up[used]]) / unit
    rows = np.concatenate(
        [
            np.column_stack([total, np.full(len(total), -1.0), np.zeros(len(total))]),
            np.column_stack([ways, np.zeros(len(ways)), np.full(len(ways), -1.0)]),
        ]
    )
    cost = np.concatenate([np.where(np.arange(shares) < shares // kinds, 0.0, HELP), [1.0, ALONE]])
    whole = np.concatenate([np.ones(shares), [0.0, 0.0]])[None, :]
    most = np.concatenate([-lost[used] / unit, np.zeros(len(ways))])
    order = np.lexsort(np.round(np.column_stack([rows, most]), DIGITS).T)  # whatever the links' numbers
    if busiest_first:
        order = order[np.argsort(-np.round(rows[order, :shares].sum(axis=1), DIGITS), kind="stable")]
    found = linprog(cost, rows[order], most[order], whole, np.ones(1), method=INTERIOR)
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


def lost_seconds(instance: FabricInstance) -> FloatArray:
    """How long no allreduce can use each link: not before a member's data can be there, and not so late that it reaches
    none any more; shape (links,)."""
    links = Links.of(instance)
    begin, left = windows(links)
    lost = begin + left
    found: FloatArray = np.where(lost < UNREACHABLE, lost / links.ticks, 0.0)
    return found


@dataclass(frozen=True, eq=False)
class Dealt:
    """The rank that sums up each piece of an allreduce, shape (pieces,), and how it is ``helped``: who spreads it in
    each box (:meth:`.box_rails.Rails.helpers`), whether it goes around slow links, or
    beside a box of slow links to one rank of it: one of :data:`WAYS` numbers."""

    rank: IntArray
    helped: IntArray

    @classmethod
    def out(cls, roots: IntArray, count: IntArray) -> Dealt:
        """Equal pieces: ``count`` for each of the roots, in each way, evenly mixed."""
        column = dealt_out(np.arange(len(count), dtype=np.int64), count)
        return cls(roots[column % len(roots)], column // len(roots))

    @property
    def numbered(self) -> tuple[IntArray, IntArray]:
        """The rank of each piece, and its number among those of that rank."""
        return self.rank, evenly_numbered(self.rank)

    @property
    def turn(self) -> IntArray:
        """The number of each piece among those of its rank that are helped as it is: none is left out."""
        key = self.rank * WAYS + self.helped
        order = np.argsort(key, kind="stable")
        first = np.searchsorted(key[order], key)
        found = np.empty(len(key), dtype=np.int64)
        found[order] = np.arange(len(key))
        turn: IntArray = found - first
        return turn


def whole_shares(seconds: FloatArray, lost: FloatArray, weight: FloatArray, pieces: int) -> IntArray:
    """How many of so many equal pieces each share has, shape (shares,): what its weight says, rounded down, and the
    rest one by one where the busiest links then are the least so. ``seconds`` by link and share, ``lost`` by link."""
    count = np.floor(weight * pieces).astype(np.int64)
    some = np.flatnonzero(weight > LEAST_SHARE) if np.any(weight > LEAST_SHARE) else np.arange(len(weight))
    busy = seconds @ count / pieces + lost
    for _ in range(pieces - int(count.sum())):
        with_one_more = np.sort(busy[:, None] + seconds[:, some] / pieces, axis=0)
        share = some[np.lexsort(with_one_more[-BUSIEST:])[0]]
        count[share] += 1
        busy += seconds[:, share] / pieces
    found: IntArray = count
    return found


def dealt_out(roots: IntArray, count: IntArray) -> IntArray:
    """One of ``roots`` for each piece, shape (pieces,): each ``count`` times, evenly mixed."""
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
