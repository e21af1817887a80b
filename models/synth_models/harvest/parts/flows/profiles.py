"""Profiles of topologies for patterns, and the flows behind them.

A pattern is rows (source, destination, volume): :mod:`synth_models.harvest.parts.demands`. A profile does not depend on
sizes, times or bandwidth, so one is enough for any number of them: with loads ``u_L`` for hop limits ``L`` a step of m
bytes a volume costs ``alpha + min over L of hop_delay * L + m * u_L / port_bandwidth``.

Ways of finding it, the first that fits: forced routes (every GPU leads to one other only) and shifts on two-way shifted
rings, in closed form; a linear program over simple routes for one source of each orbit of a group of translations;
the same program over a layered graph, or an even split over shortest routes, where the routes are too many to list.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from synth.arrays import IntArray
from synth.graph.hops import hops
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.demands import relative_volumes, volumes
from synth_models.harvest.parts.flows import forced, symmetry
from synth_models.harvest.parts.flows import layered as layered_flow
from synth_models.harvest.parts.flows import path as path_flow
from synth_models.harvest.parts.flows import split as split_flow
from synth_models.harvest.parts.flows.flow_rows import UNREACHABLE, FlowRows, LinkFlow, Profile, merged
from synth_models.harvest.parts.flows.path import Routes

ALL_LIMITS_UP_TO = 12  # GPUs; beyond, hop limits go up to EXTRA_HOPS above the smallest
EXTRA_HOPS = 4
MANY_ROUTES, MORE_ROUTES = 20_000, 3_000  # listed at the smallest hop limit; at larger ones beyond 12 GPUs
MAX_LAYERED = 40_000  # pairs times links times hops of a layered program


def profile(pairs: IntArray, links: IntArray, gpus: int) -> Profile:
    """The Pareto list (hop limit, largest unit load) of a pattern (pairs, 3) on a topology (links, 3).

    Complete where routes are forced, for shifts on shifted rings and for up to 12 GPUs; else hop limits go up to four
    above the smallest one possible and at most to 3,000 routes. The program's loads are those of the routes it found,
    exact to about 1e-9. Where even the shortest routes are too many (large tori), the load is that of splitting evenly
    over them.
    """
    found, exact = quick_profile(pairs, links, gpus)
    return found if exact else _Reduced(pairs, links, gpus).profile()


def quick_profile(pairs: IntArray, links: IntArray, gpus: int) -> tuple[Profile, bool]:
    """The profile and True where it needs no program; else one point that no routing beats, and False.

    That point has the longest distance as its hops and, as its load, the hops of all volumes over all links or the
    volumes over the links at one GPU.
    """
    following = forced.successors(links, gpus)
    if following is not None:
        return forced.forced_profile(pairs, *following), True
    ring = _two_way_ring(pairs, links, gpus)
    if ring is not None:
        hops, load = forced.two_way_profile(*ring, gpus)
        return Profile(hops, load * volumes(pairs)[0]), True
    apart = _distances(links.tobytes(), gpus)[pairs[:, 0], pairs[:, 1]]
    if apart.max() >= gpus:
        return UNREACHABLE, True
    return Profile(np.array([apart.max()], dtype=np.int64), np.array([_least_load(pairs, links, apart, gpus)])), False


def routes(pairs: IntArray, links: IntArray, gpus: int, hop_limit: int) -> FlowRows:
    """A flow with routes of at most ``hop_limit`` hops and the load that the profile states for it.

    Raises ``ValueError`` when a pair cannot be reached within the limit.
    """
    following = forced.successors(links, gpus)
    if following is not None:
        return forced.forced_routes(pairs, following[0])
    ring = _two_way_ring(pairs, links, gpus)
    if ring is not None:
        return forced.two_way_routes(pairs[:, 0], *ring, gpus, hop_limit)
    return _Reduced(pairs, links, gpus).routes(hop_limit)


def step_time(instance: HarvestInstance, step: int, found: Profile) -> tuple[float, int]:
    """Seconds of a step with this profile and the hop limit that gives them; infinite and 0 where unreachable."""
    if not len(found.hops):
        return np.inf, 0
    size = instance.bytes_per_pair[step] / instance.port_bandwidth
    times = instance.alpha + instance.hop_delay * found.hops + size * found.unit_load
    best = int(times.argmin())
    return float(times[best]), int(found.hops[best])


def _two_way_ring(pairs: IntArray, links: IntArray, gpus: int) -> tuple[int, int, dict[int, int]] | None:
    """(shift of the pattern, shift of the ring, link counts) when both are of that kind."""
    shift = forced.pattern_shift(pairs, gpus)
    counts = forced.shift_counts(links, gpus) if shift is not None else None
    ring = forced.two_way(counts, gpus) if counts is not None else None
    return (shift, ring, counts) if shift is not None and ring is not None and counts is not None else None


@lru_cache(maxsize=16)
def _distances(links: bytes, gpus: int) -> IntArray:
    """Hops between all GPUs, shape (gpus, gpus); 2^30 where there is no route."""
    rows = np.frombuffer(links, dtype=np.int64).reshape(-1, 3)
    found = hops(gpus, rows[:, 0], rows[:, 1], range(gpus)).astype(np.int64)
    return np.where(found < 0, 1 << 30, found)


def _least_load(pairs: IntArray, links: IntArray, apart: IntArray, gpus: int) -> float:
    """No routing has a smaller load: hops of all volumes over links, and volumes over links at every GPU."""
    volume = volumes(pairs)
    bounds = [float((apart * volume.astype(np.float64)).sum() / links[:, 2].sum())]
    for side in (0, 1):
        ports = np.bincount(links[:, side], links[:, 2], gpus)
        needed = np.bincount(pairs[:, side], volume, gpus)
        bounds.append(float((needed[needed > 0] / ports[needed > 0]).max()))
    return max(bounds)


class _Reduced:
    """A pattern on a topology up to a group of translations: the pairs of one source of every orbit."""

    def __init__(self, pairs: IntArray, links: IntArray, gpus: int) -> None:
        self.pairs, self.links, self.gpus = pairs, links, gpus
        self.group = symmetry.translations(pairs, links, gpus)
        self.few = pairs[np.isin(pairs[:, 0], self.group.min(axis=0))]
        self.volume = volumes(self.few)
        first, self.link_orbit = np.unique(symmetry.orbits(links, self.group), return_inverse=True)
        self.count = links[first, 2]
        self.distance = _distances(links.tobytes(), gpus)
        apart = self.distance[pairs[:, 0], pairs[:, 1]]
        self.least_hops = int(apart.max())
        self.floor = _least_load(pairs, links, apart, gpus) if self.least_hops < gpus else 0.0

    def listed(self, hop_limit: int) -> Routes | None:
        """All simple routes of the chosen pairs, if they are not too many."""
        small = self.gpus <= ALL_LIMITS_UP_TO or hop_limit == self.least_hops
        most = MANY_ROUTES if small else MORE_ROUTES
        return path_flow.list_routes(self.few, self.links, self.distance, hop_limit, most)

    def solve(self, hop_limit: int, listed: Routes | None) -> LinkFlow | None:
        """A flow of the chosen pairs of smallest load; None where no program of this hop limit is small enough."""
        if listed is None:
            if len(self.few) * len(self.links) * hop_limit <= MAX_LAYERED:
                listed, share = layered_flow.solve(
                    self.few, self.links, self.distance, hop_limit, self.link_orbit, self.count
                )
            elif hop_limit == self.least_hops:
                return split_flow.split(self.few, self.links, self.distance)
            else:
                return None
        else:
            share = path_flow.solve(listed, relative_volumes(self.few), self.link_orbit, self.count)
        lengths = np.diff(listed.start)
        hop = np.arange(len(listed.link)) - np.repeat(listed.start[:-1], lengths)
        flow = LinkFlow(np.repeat(listed.pair, lengths), hop, listed.link, np.repeat(share, lengths))
        used = flow.share > 0
        return LinkFlow(flow.pair[used], flow.hop[used], flow.link[used], flow.share[used])

    def load(self, flow: LinkFlow) -> float:
        """Largest sum of shares times volumes per parallel link."""
        amount = flow.share * self.volume[flow.pair]
        return float((np.bincount(self.link_orbit[flow.link], amount, len(self.count)) / self.count).max())

    def profile(self) -> Profile:
        """Hop limits upwards from the smallest, until nothing can be gained any more."""
        if self.least_hops >= self.gpus:
            return UNREACHABLE
        last = self.gpus - 1 if self.gpus <= ALL_LIMITS_UP_TO else min(self.gpus - 1, self.least_hops + EXTRA_HOPS)
        points: list[tuple[int, float]] = []
        before = -1
        for hop_limit in range(self.least_hops, last + 1):
            listed = self.listed(hop_limit)
            if listed is not None and len(listed.pair) == before:
                continue  # no new routes
            before = -1 if listed is None else len(listed.pair)
            flow = self.solve(hop_limit, listed)
            if flow is None:
                break
            load = self.load(flow)
            if not points or load < points[-1][1] * (1 - 1e-9):
                points.append((hop_limit, load))
            if load <= self.floor * (1 + 1e-9):
                break
        return Profile(np.array([hops for hops, _ in points]), np.array([load for _, load in points]))

    def routes(self, hop_limit: int) -> FlowRows:
        """The flow of all pairs: that of the chosen ones, moved by every translation."""
        if self.least_hops > hop_limit:
            raise ValueError("a pair cannot be reached")
        flow = self.solve(hop_limit, self.listed(hop_limit))
        if flow is None:
            raise ValueError("the profile has no such hop limit")
        ends, link = self.few[flow.pair], self.links[flow.link]
        keys = self.pairs[:, 0] * self.gpus + self.pairs[:, 1]
        order = np.argsort(keys)
        moved = self.group[:, ends[:, 0]] * self.gpus + self.group[:, ends[:, 1]]
        size = len(self.group)
        rows = FlowRows(
            order[np.searchsorted(keys[order], moved.ravel())],
            np.tile(flow.hop, size),
            self.group[:, link[:, 0]].ravel(),
            self.group[:, link[:, 1]].ravel(),
            np.tile(flow.share, size),
        )
        return merged(self.gpus, rows)
