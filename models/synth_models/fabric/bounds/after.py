"""Lower bounds on when ranks have their own part of each of several collectives, some of which come after others, and
on what is left then.

Let what rank r wants of a collective be V bytes, from ranks u that have their parts at m_u or later, and d_u the least
latency from u to r. Then r does not have all of it before max over u of m_u + d_u, nor before the least of these plus
V over the bandwidth of all links into r. Before it has, its part of what comes after is not ready.

Once r has all that it wants of a collective, what follows takes longer than to send r's part of it: to the farthest
rank that wants some, and all of it at the bandwidth of all links out of r; and then what follows there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
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
from synth_models.fabric.problem.several import links_in

Moments = dict[int, Fraction]
LONGEST = 2**59  # ticks


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


class Followers:
    """What is left where a collective has ended, if others follow."""

    def __init__(self, instance: FabricInstance) -> None:
        collectives = instance.collectives or ()
        self.instance, self.parts = instance, instance.parts
        self.whole, self.after = Links.of(instance), [one.after or () for one in collectives]
        self.order = in_order(self.after, range(len(collectives)))
        self._known: dict[int, tuple[IntArray, IntArray]] = {}

    def tails(self, chosen: Set[int]) -> dict[int, IntArray]:
        """For every chosen collective, and every node, shape (nodes,): the whole machine's ticks at least
        from when it has ended there until the last of the chosen has."""
        found = {k: np.zeros(self.parts[k].machine.nodes, dtype=np.int64) for k in chosen}
        for number in [number for number in reversed(self.order) if number in chosen]:
            before = [k for k in self.after[number] if k in chosen]
            if not before:
                continue
            lasts = self._lasts(number, found[number])
            for k in before:
                found[k] = np.maximum(found[k], lasts)
        return found

    def _lasts(self, number: int, tail: IntArray) -> IntArray:
        """The least ticks from when each rank is ready until all that needs its part has come, and what follows."""
        if number not in self._known:
            self._known[number] = self._sends(self.parts[number])
        away, takes = self._known[number]
        found = np.zeros(len(takes), dtype=np.int64)
        ends = np.where(away < UNREACHABLE, away + tail, -1)
        goes = ends.max(axis=1, initial=-1) >= 0
        first = np.where(away < UNREACHABLE, away + tail, UNREACHABLE).min(axis=1, initial=UNREACHABLE)
        found[goes] = np.maximum(ends.max(axis=1, initial=-1), first + takes)[goes]
        return np.minimum(found, LONGEST)

    def _sends(self, part: FabricInstance) -> tuple[IntArray, IntArray]:
        """The ticks to whoever wants what only a rank has, or contributes, shape (nodes, nodes), and those in which all
        of it leaves the rank, shape (nodes,)."""
        links, blocks, members = Links.of(part), part.blocks, part.members
        delay = self.whole.delay[links_in(self.instance.machine, part.machine)]
        (origins, origin), (goals, goal) = (
            np.unique(ends, return_inverse=True) for ends in (blocks.origin, blocks.goal)
        )
        holds, wants = (blocks.masks(codes, members, links.nodes) for codes in (origins, goals))
        lone = np.array([row.sum() == 1 for row in holds])[origin.reshape(-1)]
        far = np.full((links.nodes, links.nodes), UNREACHABLE, dtype=np.int64)
        takes = np.zeros(links.nodes, dtype=np.int64)
        for rank in members:
            gives = holds[origin.reshape(-1), rank] & (blocks.sums | lone)
            wanting = wants[np.unique(goal.reshape(-1)[gives])]
            wanting[:, rank] = False
            wanted = wanting.any(axis=0)
            if not wanted.any():
                continue
            far[rank, wanted] = distances(links, delay, [rank])[wanted]
            leaves = gives & np.array([row.sum() > row[rank] for row in wants])[goal.reshape(-1)]
            leads = distances(links.reverse, delay, np.flatnonzero(wanted))[links.dst] < UNREACHABLE
            out = part.machine.network.bandwidth[(links.src == rank) & leads]
            rate = sum((exact(float(b)) for b in out), Fraction(0))
            takes[rank] = min(int(sum(blocks.bytes[leaves].tolist()) / rate * self.whole.ticks), LONGEST)
        return far, takes


def base(ready: Moments) -> Fraction:
    """The moment before which no rank has its part."""
    return min(ready.values(), default=Fraction(0))
