"""Profiles of topologies for patterns, and the flows behind them.

A profile does not depend on sizes, times or bandwidth, so one is enough for any number of them: with loads ``u_L`` for
hop limits ``L`` a step of m bytes a pair costs ``alpha + min over L of hop_delay * L + m * u_L / port_bandwidth``.

Ways of finding it, the first that fits: forced routes (every GPU leads to one other only) and shifts on two-way shifted
rings, in closed form; a linear program over simple routes for one source of each orbit of a group of translations;
the same program over a layered graph where the routes are too many to list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from synth_models.harvest import forced, layered_flow, path_flow, symmetry
from synth_models.harvest.flows import UNREACHABLE, FlowRows, Profile, merged
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.path_flow import Routes
from synth_models.harvest.plan import FloatArray, IntArray
from synth_models.harvest.topologies import Topology

__all__ = ["Profile", "cost_matrix", "profile", "profile_table", "routes", "step_time"]

ALL_LIMITS_UP_TO = 17  # GPUs; beyond, hop limits go up to EXTRA_HOPS above the smallest
EXTRA_HOPS = 4


def profile(pairs: IntArray, links: IntArray, gpus: int) -> Profile:
    """The Pareto list (hop limit, largest unit load) of a pattern (pairs, 2) on a topology (links, 3).

    Complete where routes are forced, for shifts on shifted rings and for up to 17 GPUs; else hop limits go up to four
    above the smallest one possible. The program's loads are those of the routes it found, exact to about 1e-9.
    """
    following = forced.successors(links, gpus)
    if following is not None:
        return forced.forced_profile(pairs, *following)
    ring = _two_way_ring(pairs, links, gpus)
    if ring is not None:
        return forced.two_way_profile(*ring, gpus)
    return _Reduced(pairs, links, gpus).profile()


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


def profile_table(
    patterns: Iterable[IntArray], topologies: Sequence[Topology], gpus: int
) -> dict[bytes, list[Profile]]:
    """Profiles of every distinct pattern (keyed by its array's bytes) on every topology."""
    distinct = {pairs.tobytes(): pairs for pairs in patterns}
    return {key: [profile(pairs, topology.links, gpus) for topology in topologies] for key, pairs in distinct.items()}


def cost_matrix(instance: HarvestInstance, table: dict[bytes, list[Profile]]) -> tuple[FloatArray, IntArray]:
    """Seconds of every step on every topology and the hop limits behind them, both (steps, topologies)."""
    rows = [[step_time(instance, i, one) for one in table[pairs.tobytes()]] for i, pairs in enumerate(instance.pairs)]
    return np.array([[time for time, _ in row] for row in rows]), np.array([[hops for _, hops in row] for row in rows])


def _two_way_ring(pairs: IntArray, links: IntArray, gpus: int) -> tuple[int, int, dict[int, int]] | None:
    """(shift of the pattern, shift of the ring, link counts) when both are of that kind."""
    shift = forced.pattern_shift(pairs, gpus)
    counts = forced.shift_counts(links, gpus) if shift is not None else None
    ring = forced.two_way(counts, gpus) if counts is not None else None
    return (shift, ring, counts) if shift is not None and ring is not None and counts is not None else None


class _Reduced:
    """A pattern on a topology up to a group of translations: the pairs of one source of every orbit."""

    def __init__(self, pairs: IntArray, links: IntArray, gpus: int) -> None:
        self.pairs, self.links, self.gpus = pairs, links, gpus
        self.group = symmetry.translations(pairs, links, gpus)
        chosen = np.isin(pairs[:, 0], self.group.min(axis=0))
        self.few = pairs[chosen]
        least = symmetry.orbits(links, self.group)
        first, self.link_orbit = np.unique(least, return_inverse=True)
        self.count = links[first, 2]
        graph = csr_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(gpus, gpus))
        hops = shortest_path(graph, unweighted=True)
        self.distance = np.where(np.isfinite(hops), hops, 1 << 30).astype(np.int64)
        self.least_hops = int(self.distance[pairs[:, 0], pairs[:, 1]].max())

    def solve(self, hop_limit: int) -> tuple[float, Routes, FloatArray]:
        """Smallest load within a hop limit, and the routes of the chosen pairs with their shares."""
        listed = path_flow.list_routes(self.few, self.links, self.distance, hop_limit)
        if listed is None:
            return layered_flow.solve(self.few, self.links, self.distance, hop_limit, self.link_orbit, self.count)
        load, share = path_flow.solve(listed, len(self.few), self.link_orbit, self.count)
        return load, listed, share

    def volume_bound(self) -> float:
        """No routing has a smaller load: hops of all pairs over links, and pairs over ports at every GPU."""
        hops = self.distance[self.pairs[:, 0], self.pairs[:, 1]].sum()
        bounds = [float(hops / self.links[:, 2].sum())]
        for side in (0, 1):
            ports = np.bincount(self.links[:, side], self.links[:, 2], self.gpus)
            needed = np.bincount(self.pairs[:, side], minlength=self.gpus)
            bounds.append(float((needed[needed > 0] / ports[needed > 0]).max()))
        return max(bounds)

    def profile(self) -> Profile:
        """Hop limits upwards from the smallest, until nothing can be gained any more."""
        if self.least_hops >= self.gpus:
            return UNREACHABLE
        last = self.gpus - 1 if self.gpus <= ALL_LIMITS_UP_TO else min(self.gpus - 1, self.least_hops + EXTRA_HOPS)
        points: list[tuple[int, float]] = []
        floor = self.volume_bound() * (1 + 1e-9)
        unlimited = self.solve(last)[0] if last > self.least_hops else 0.0
        for hop_limit in range(self.least_hops, last + 1):
            load = self.solve(hop_limit)[0]
            if not points or load < points[-1][1] * (1 - 1e-9):
                points.append((hop_limit, load))
            if load <= max(floor, unlimited * (1 + 1e-9)):
                break
        return Profile(np.array([hops for hops, _ in points]), np.array([load for _, load in points]))

    def routes(self, hop_limit: int) -> FlowRows:
        """The flow of all pairs: that of the chosen ones, moved by every translation."""
        if self.least_hops > hop_limit:
            raise ValueError("a pair cannot be reached")
        _, found, share = self.solve(hop_limit)
        used = np.flatnonzero(share > 0)
        lengths = np.diff(found.start)[used]
        entry = np.concatenate([np.arange(found.start[r], found.start[r + 1]) for r in used])
        hop = entry - np.repeat(found.start[used], lengths)
        route = np.repeat(used, lengths)
        ends = self.few[found.pair[route]]
        link = self.links[found.link[entry]]
        keys = self.pairs[:, 0] * self.gpus + self.pairs[:, 1]
        order = np.argsort(keys)
        moved = self.group[:, ends[:, 0]] * self.gpus + self.group[:, ends[:, 1]]
        pair = order[np.searchsorted(keys[order], moved.ravel())]
        size = len(self.group)
        rows = FlowRows(
            pair, np.tile(hop, size), self.group[:, link[:, 0]].ravel(), self.group[:, link[:, 1]].ravel(),
            np.tile(share[route], size),
        )  # fmt: skip
        return merged(self.gpus, rows)
