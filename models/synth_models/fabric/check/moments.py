"""The argument ``moments``: some transfer of every chain starts late enough and arrives early enough.

The certificate names demands, each a block, a member that is its origin (in a reduction: contributes to it), another
that wants it, a weight, and a moment for every rank: 0 at the origin, not before the stated bound at the goal. In a
schedule that ends before the bound, every byte comes from the origin to the goal by a chain of transfers. It is at the
origin at its moment or later, at the goal before its moment; so some transfer of the chain leaves its rank u at the
moment of u or later, and has arrived at its rank v by the moment of v. Until then it has occupied every link of its way
only between the moment of u plus the least latency from u, and the moment of v minus the least latency to v.

A byte on a link at one time is part of one transfer of one block, so it can be that one for all demands of that block
whose windows, for one pair of ranks, are open then: at most the greatest sum of their weights. A way from rank to rank
pays a share on each of its links, ``share``, and the least sum of shares over any way is what a demand is worth a byte.
The links have to carry what all demands are worth. Needed are switches that make no several transfers of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.text import untrusted
from synth_models.fabric.check.arguments import Argument, Needed
from synth_models.fabric.check.payments import transfers_pay_alone
from synth_models.fabric.check.windows import LONGEST, UNREACHABLE, Capacity, Fabric
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import exact

MOST_DEMANDS = 10_000
MOST_WEIGHT, MOST_SHARE = 2**30, 2**10
MOST_WORK = 2 * 10**8  # pairs of ranks on a link, times demands
STRICTLY = Fraction(1, 10**12)  # bytes by which the links must fall short: equality alone would refute nothing


@dataclass(frozen=True)
class _Demands:
    """Shape (demands,) each, but ``since``: (demands, ranks), ticks."""

    block: IntArray
    source: IntArray
    target: IntArray
    weight: IntArray
    since: IntArray


@dataclass
class Until(Capacity):
    """What the windows of the certificate hold, which is made for bounds up to ``most`` ticks."""

    most: int = 0
    carried: Fraction = Fraction(0)

    def until(self, seconds: Fraction) -> Fraction:
        """Price times bytes; raises ``ValueError`` for a bound that the moments are not made for."""
        if seconds * self.ticks_per_s > self.most:
            raise ValueError("a goal's moment comes before the bound")
        return self.carried


def moments(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What all demands are worth, and what the links can carry in their windows."""
    fabric = Fabric(instance)
    if not transfers_pay_alone(fabric):
        raise ValueError("moments prove nothing where switches copy or add")
    finer = untrusted.whole(certificate, "finer", 1, 2**40)
    ticks = fabric.ticks_per_s * finer
    if ticks > 10**18 or int(fabric.delay.max(initial=0)) * finer * fabric.nodes > LONGEST:
        raise ValueError("the ticks are too fine")
    ranks = np.flatnonzero(fabric.is_rank)
    demands = _demands(fabric, certificate, ranks)
    share = untrusted.whole_numbers(certificate, "share", 0, MOST_SHARE, (len(fabric.tail),))
    worth = least_share(fabric, share, ranks)
    weights = [
        int(size) * untrusted.exact_sum(demands.weight[demands.block == b])
        for b, size in enumerate(instance.blocks.bytes.tolist())
    ]
    carried = _carried(fabric, demands, share, ranks, finer) / ticks
    goals = demands.since[np.arange(len(demands.block)), np.searchsorted(ranks, demands.target)]
    return worth * sum(weights) - STRICTLY, Until(ticks, [], int(goals.min()), carried)


ARGUMENTS: dict[str, Argument] = {"moments": moments}


def _demands(fabric: Fabric, certificate: Mapping[str, Any], ranks: IntArray) -> _Demands:
    blocks = fabric.instance.blocks
    if not len(blocks):
        raise ValueError("there are no blocks")
    block = untrusted.whole_numbers(certificate, "block", 0, len(blocks) - 1)
    count = len(block)
    if not 1 <= count <= MOST_DEMANDS:
        raise ValueError(f"there are not 1..{MOST_DEMANDS} demands")
    source, target = (
        untrusted.whole_numbers(certificate, key, 0, fabric.nodes - 1, (count,)) for key in ("source", "target")
    )
    for end, wanted in ((source, blocks.origin[block]), (target, blocks.goal[block])):
        if np.any(np.where(wanted == EVERYONE, ~np.isin(end, fabric.members), end != wanted)):
            raise ValueError("a demand is none of its block's")
    weight = untrusted.whole_numbers(certificate, "weight", 1, MOST_WEIGHT, (count,))
    since = untrusted.whole_numbers(certificate, "since", 0, LONGEST, (count * len(ranks),))
    since = since.reshape(count, len(ranks))
    if np.any(source == target) or np.any(since[np.arange(count), np.searchsorted(ranks, source)]):
        raise ValueError("a demand's origin has a moment other than 0, or is its goal")
    return _Demands(block, source, target, weight, since)


def least_share(fabric: Fabric, share: IntArray, ranks: IntArray) -> int:
    """The least sum of shares over a way from a rank over switches to another."""
    least = UNREACHABLE
    for u in ranks.tolist():
        cost = fabric.reach(fabric.mask([u]), share, True)
        least = min(least, int(cost[ranks[ranks != u]].min(initial=UNREACHABLE)))
    if least in (0, UNREACHABLE):
        raise ValueError("some way from rank to rank pays nothing")
    return least


def _carried(fabric: Fabric, demands: _Demands, share: IntArray, ranks: IntArray, finer: int) -> Fraction:
    """Bytes times price times ticks a second that all links together can carry."""
    back = Fabric(fabric.instance, not fabric.is_reversed)
    ahead = np.stack([fabric.reach(fabric.mask([u]), fabric.delay, True) for u in ranks.tolist()])
    behind = np.stack([back.reach(back.mask([v]), fabric.delay, True) for v in ranks.tolist()])
    counted = np.flatnonzero(share)
    work = sum(len(_ends(fabric, e, ranks, ahead, behind)[0]) for e in counted.tolist()) * len(demands.block)
    if work > MOST_WORK:
        raise ValueError("there are too many demands for this machine")
    total = Fraction(0)
    for e in counted.tolist():
        us, vs = _ends(fabric, e, ranks, ahead, behind)
        begin = demands.since[:, us] + ahead[us, fabric.tail[e]] * finer
        end = demands.since[:, vs] - (behind[vs, fabric.head[e]] + fabric.delay[e]) * finer
        amount = _most(begin, end, demands)
        total += exact(float(fabric.instance.machine.network.bandwidth[e])) * int(share[e]) * amount
    return total


def _ends(fabric: Fabric, e: int, ranks: IntArray, ahead: IntArray, behind: IntArray) -> tuple[IntArray, IntArray]:
    """The pairs of ranks, by place, that a way from one to the other over switches and link e may join."""
    tail, head = int(fabric.tail[e]), int(fabric.head[e])
    first: BoolArray = ranks == tail if fabric.is_rank[tail] else ahead[:, tail] < UNREACHABLE
    last: BoolArray = ranks == head if fabric.is_rank[head] else behind[:, head] < UNREACHABLE
    us, vs = np.nonzero(first[:, None] & last[None, :])
    apart = us != vs
    return us[apart].astype(np.int64), vs[apart].astype(np.int64)


def _most(begin: IntArray, end: IntArray, demands: _Demands) -> int:
    """The integral over time of the greatest weight of one block's open windows of one pair; shape (demands, pairs)
    each."""
    open_ = begin < end
    moments = np.unique(np.concatenate([begin[open_], end[open_]]))
    if not len(moments):
        return 0
    most = np.zeros(len(moments), dtype=np.int64)
    for b in np.unique(demands.block).tolist():
        own = np.flatnonzero(demands.block == b)
        for pair in range(begin.shape[1]):
            rows = own[open_[own, pair]]
            if not len(rows):
                continue
            change = np.zeros(len(moments), dtype=np.int64)
            np.add.at(change, np.searchsorted(moments, begin[rows, pair]), demands.weight[rows])
            np.subtract.at(change, np.searchsorted(moments, end[rows, pair]), demands.weight[rows])
            most = np.maximum(most, np.cumsum(change))
    return sum(int(price) * int(length) for price, length in zip(most[:-1], np.diff(moments), strict=True))
