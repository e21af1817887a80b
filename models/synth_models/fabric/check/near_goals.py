"""The argument ``near_goals``: the last transfer from afar towards a goal, and how many goals it can be that for.

One block goes from ``root`` to all members (of an allreduce: what the root contributes; ``backwards`` a reduction with
time reversed and every link turned round). Take a byte and a member v, and of the transfers that bring it there one
after the other the last that leaves the root or a rank x from which v is more than ``reach`` away. It leaves x no
earlier than the latency distance from the root to x, and comes to a rank w that is v or at most ``reach`` from it, so
early that what is left of the way still fits: a time tau before the end that is more than the direct way to w and the
distance from w to v together. So what leaves x over a link e tau before the end is this transfer for at most

    C_e(tau) = max over w of the number of v so near to w, far from x, and not too far for tau

members at once, if no switch makes several transfers of one. All links together leave bytes times (members - 1). The
k-th member of a rank w counts from the k-th shortest tau on, so C_e rises to k at the least of these over all w.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.text import untrusted
from synth_models.fabric.check.arguments import Argument, Needed
from synth_models.fabric.check.payments import transfers_pay_alone
from synth_models.fabric.check.windows import LONGEST, UNREACHABLE, Capacity, Fabric
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import exact

MOST_WORK = 2 * 10**9  # links out of ranks, times pairs of near ranks


def near_goals(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What all members lack, and what the links out of ranks can be the last transfer from afar of."""
    backwards = bool(untrusted.whole(certificate, "backwards", 0, 1))
    fabric, blocks = Fabric(instance, backwards), instance.blocks
    if len(blocks) != 1 or not transfers_pay_alone(fabric):
        raise ValueError("near_goals is about one block, and switches that neither copy nor add")
    root = untrusted.whole(certificate, "root", 0, fabric.nodes - 1)
    reach = untrusted.whole(certificate, "reach", 0, LONGEST)
    origin, goal = (int(ends[0]) for ends in (blocks.origin, blocks.goal)[:: -1 if backwards else 1])
    if goal != EVERYONE or origin not in (EVERYONE, root) or root not in instance.members:
        raise ValueError("the block does not go from the root to all")
    ranks = np.flatnonzero(fabric.is_rank)
    apart = np.stack([fabric.reach(fabric.mask([u]), fabric.delay)[ranks] for u in ranks.tolist()])
    wanted = np.isin(ranks, fabric.members) & (ranks != root)
    w, v = np.nonzero((apart <= reach) & wanted & (ranks != root)[:, None])
    links = np.flatnonzero(fabric.is_rank[fabric.tail])
    if len(links) * len(w) > MOST_WORK:
        raise ValueError("there are too many near ranks for this machine")
    begins, rows = apart[np.searchsorted(ranks, root)], []
    for e in links.tolist():
        x = int(np.searchsorted(ranks, fabric.tail[e]))
        if begins[x] == UNREACHABLE:
            continue
        late = (apart[x] > reach) if ranks[x] != root else np.ones(len(ranks), dtype=bool)
        direct = _direct(fabric, e)[ranks]
        direct[x] = UNREACHABLE
        counts = late[v] & (v != x) & (direct[w] < UNREACHABLE)
        at = _least_of_each(w[counts], direct[w[counts]] + apart[w[counts], v[counts]])
        rate = exact(float(instance.machine.network.bandwidth[e]))
        values, times = np.unique(at, return_counts=True)
        rows += [(rate * n, int(begins[x]) + t) for t, n in zip(values.tolist(), times.tolist(), strict=True)]
    if np.any(begins[wanted] == UNREACHABLE):
        raise ValueError("a member cannot be reached")
    return Fraction(int(blocks.bytes[0]) * int(wanted.sum())), Capacity(fabric.ticks_per_s, rows)


ARGUMENTS: dict[str, Argument] = {"near_goals": near_goals}


def _direct(fabric: Fabric, e: int) -> IntArray:
    """Latency from the beginning of a link over it, and on over switches, to every node."""
    head = int(fabric.head[e])
    first = np.full(fabric.nodes, UNREACHABLE, dtype=np.int64)
    first[head] = fabric.delay[e]
    return first if fabric.is_rank[head] else fabric.reach_from(first, fabric.delay, True)


def _least_of_each(of: IntArray, value: IntArray) -> IntArray:
    """The least of all first (least) values, of all second ones, and so on, of each ``of``."""
    order = np.lexsort((value, of))
    of, value = of[order], value[order]
    first = np.flatnonzero(np.concatenate([np.ones(min(1, len(of)), dtype=bool), of[1:] != of[:-1]]))
    place = np.arange(len(of)) - np.repeat(first, np.diff(np.append(first, len(of))))
    least = np.full(int(place.max(initial=-1)) + 1, UNREACHABLE, dtype=np.int64)
    np.minimum.at(least, place, value)
    return least
