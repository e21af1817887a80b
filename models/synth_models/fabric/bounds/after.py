"""Lower bounds on when ranks have their own part of each of several collectives, some of which come after others.

Let what rank r wants of a collective be V bytes, from ranks u that have their parts at m_u or later, and d_u the least
latency from u to r. Then r does not have all of it before max over u of m_u + d_u, nor before the least of these plus
V over the bandwidth of all links into r. Before it has, its part of what comes after is not ready.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from synth.arrays import IntArray
from synth.graph.shortest_paths import UNREACHABLE
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.paths import distances
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.order import in_order
from synth_models.fabric.problem.ready import moments

Moments = dict[int, Fraction]


def least_moments(instance: FabricInstance) -> list[Moments]:
    """For every collective the moment in seconds, at the earliest, at which each of its ranks has its own part."""
    collectives = instance.collectives or ()
    needed = {k for one in collectives for k in one.after or ()}
    found: list[Moments] = [{} for _ in collectives]
    ends: dict[int, Moments] = {}
    for number in in_order([one.after or () for one in collectives], range(len(collectives))):
        one, part = collectives[number], instance.parts[number]
        late, release = moments(one.ready), exact(one.release)
        for rank in part.members:
            before = [ends[k].get(rank, Fraction(0)) for k in one.after or ()]
            found[number][rank] = max([release, late.get(rank, Fraction(0)), *before])
        if number in needed:
            ends[number] = _ends(part, found[number])
    return found


def _ends(part: FabricInstance, ready: Moments) -> Moments:
    """When each rank has all that it wants, at the earliest."""
    links, blocks, members = Links.of(part), part.blocks, part.members
    away = {u: distances(links, links.delay, [u]) for u in members}
    origins, origin = np.unique(blocks.origin, return_inverse=True)
    goals, goal = np.unique(blocks.goal, return_inverse=True)
    holders = [blocks.ranks(code, members) for code in origins.tolist()]
    holds, wants = (blocks.masks(codes, members, links.nodes) for codes in (origins, goals))
    found: Moments = {}
    for rank in members:
        wanted = wants[goal.reshape(-1), rank] & (blocks.sums | ~holds[origin.reshape(-1), rank])
        if not wanted.any():
            continue
        kinds = set(zip(origin.reshape(-1)[wanted].tolist(), blocks.sums[wanted].tolist(), strict=True))
        come = [moment for k, is_sum in kinds for moment in _first(links, away, ready, rank, holders[k], is_sum)]
        adds = np.any(holds[origin.reshape(-1), rank] & blocks.sums & wanted)
        rate = sum((exact(float(b)) for b in part.machine.network.bandwidth[links.dst == rank]), Fraction(0))
        volume = sum(blocks.bytes[wanted].tolist()) / rate if rate else Fraction(0)
        own = [ready[rank]] if adds else []
        found[rank] = max([*come, *own, min(come) + volume]) if come else Fraction(0)
    return found


def _first(
    links: Links, away: Mapping[int, IntArray], ready: Moments, rank: int, holders: Sequence[int], is_sum: bool
) -> list[Fraction]:
    """When the first of a block can be there: of a sum from every holder, else from the nearest."""
    sources = [u for u in holders if u != rank and away[u][rank] < UNREACHABLE]
    times = [ready[u] + links.seconds(int(away[u][rank])) for u in sources]
    return times if is_sum or not times else [min(times)]


def base(ready: Moments) -> Fraction:
    """The moment before which no rank has its part."""
    return min(ready.values(), default=Fraction(0))
