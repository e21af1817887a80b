"""Speed-ups over a grid of message sizes and reconfiguration delays, from profiles that are found once.

A profile depends on a pattern and a topology alone, so the whole grid needs one profile for every pair of them; sizes
and delays enter afterwards, in a dynamic program over (step, topology) for every point of the grid. The bytes of every
step are taken to grow with the message. Sizes in bytes, times in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.flows.flow_rows import Profile
from synth_models.harvest.parts.flows.profiles import profile
from synth_models.harvest.parts.topologies import Topology, direct


@dataclass(frozen=True)
class Rates:
    """Profiles of every distinct pattern on every topology, padded to the same number of points.

    ``hops`` and ``load`` have shape (patterns, topologies, points), ``load`` infinite where there is no point;
    ``pattern`` gives the pattern of every step, ``own`` the index of every step's direct topology (-1 where it has
    none, having more partners than ports), both (steps,).
    """

    instance: HarvestInstance
    topologies: tuple[Topology, ...]
    hops: IntArray
    load: FloatArray
    pattern: IntArray
    own: IntArray

    def index(self, topology: Topology) -> int:
        """Where a topology with these link counts stands. Raises ``ValueError`` if it is not among them."""
        return [one.key() for one in self.topologies].index(topology.key())


@dataclass(frozen=True)
class Grid:
    """Times in seconds over a grid: ``best`` and ``bvn`` of shape (sizes, delays), ``static`` of shape (sizes,), that
    of the fastest static topology. ``bvn`` is infinite where a step has no direct topology. ``changes`` is the number
    of reconfigurations of the best schedule."""

    sizes: FloatArray
    delays: FloatArray
    best: FloatArray
    bvn: FloatArray
    static: FloatArray
    changes: IntArray

    @property
    def over_static(self) -> FloatArray:
        """Speed-up over the static topology, shape (sizes, delays)."""
        return self.static[:, None] / self.best

    @property
    def over_bvn(self) -> FloatArray:
        """Speed-up over reconfiguring before every step whose pattern differs, shape (sizes, delays)."""
        return self.bvn / self.best

    @property
    def over_both(self) -> FloatArray:
        """Speed-up over the faster of the two, shape (sizes, delays)."""
        return np.minimum(self.static[:, None], self.bvn) / self.best


def rates(instance: HarvestInstance, topologies: Sequence[Topology]) -> Rates:
    """Profiles of the instance's patterns on the topologies and on every step's direct topology.

    One profile for every pair of a distinct pattern and a distinct topology.
    """
    gpus, ports = instance.gpus, instance.ports
    distinct = {pairs.tobytes(): pairs for pairs in instance.demands}
    joined = {key: direct(pairs, gpus, ports) for key, pairs in distinct.items()}
    directs = {key: Topology("direct", links) for key, links in joined.items() if links is not None}
    known = {one.key(): one for one in (*topologies, *directs.values())}
    place = {key: number for number, key in enumerate(known)}
    order = {key: number for number, key in enumerate(distinct)}
    pattern = np.array([order[pairs.tobytes()] for pairs in instance.demands], dtype=np.int64)
    of_pattern = {key: place[directs[key].key()] if key in directs else -1 for key in distinct}
    own = np.array([of_pattern[pairs.tobytes()] for pairs in instance.demands], dtype=np.int64)
    found = [[profile(pairs, one.links, gpus) for one in known.values()] for pairs in distinct.values()]
    hops, load = _padded(found)
    return Rates(instance, tuple(known.values()), hops, load, pattern, own)


def grid(rated: Rates, sizes: FloatArray, delays: FloatArray, static: Sequence[int]) -> Grid:
    """Times over the grid; ``static`` are the indices of the topologies that compete as static ones.

    O(sizes * steps * topologies * (points + delays)).
    """
    instance = rated.instance
    weight = instance.bytes_per_pair / message_bytes(instance)
    times, bvn = np.empty((len(sizes), len(delays))), np.empty((len(sizes), len(delays)))
    changes, held_still = np.empty(times.shape, dtype=np.int64), np.empty(len(sizes))
    reconfigurations = int(np.count_nonzero(np.diff(rated.own)))
    steps = np.arange(len(weight))
    for row, size in enumerate(sizes):
        seconds = size * weight / instance.port_bandwidth
        cost = step_costs(rated.hops, rated.load, rated.pattern, seconds, instance.alpha, instance.hop_delay)
        held_still[row] = cost[:, list(static)].sum(axis=0).min()
        bvn[row] = cost[steps, rated.own].sum() + reconfigurations * delays if rated.own.min() >= 0 else np.inf
        _schedules(cost, delays, times[row], changes[row])
    return Grid(np.asarray(sizes), np.asarray(delays), times, bvn, held_still, changes)


def message_bytes(instance: HarvestInstance) -> float:
    """The vector's bytes that the instance was made for. Raises ``ValueError`` when it does not say, or says none."""
    stated = (instance.algorithm or {}).get("message_bytes")
    if stated is None or not float(stated) > 0:
        raise ValueError(f"{instance.name}: algorithm.message_bytes is not stated or 0")
    return float(stated)


def ticks(low: float, high: float, count: int) -> FloatArray:
    """``count`` points from low to high, evenly spaced in the logarithm."""
    return np.geomspace(low, high, count)


@jit
def step_costs(
    hops: IntArray, load: FloatArray, pattern: IntArray, seconds: FloatArray, alpha: float, delta: float
) -> FloatArray:
    """Seconds of every step on every topology, (steps, topologies): the best hop limit of each profile."""
    cost = np.empty((len(pattern), hops.shape[1]))
    for i in range(len(pattern)):
        for t in range(hops.shape[1]):
            best = np.inf
            for k in range(hops.shape[2]):
                best = min(best, delta * hops[pattern[i], t, k] + seconds[i] * load[pattern[i], t, k])
            cost[i, t] = alpha + best
    return cost


@jit
def _schedules(cost: FloatArray, delays: FloatArray, times: FloatArray, changes: IntArray) -> None:
    """Shortest path over (step, topology) for every delay; writes its seconds and its number of changes."""
    steps, topologies = cost.shape
    total, count = np.empty(topologies), np.empty(topologies, dtype=np.int64)
    for r in range(len(delays)):
        total[:] = cost[0]
        count[:] = 0
        for i in range(1, steps):
            best = np.argmin(total)
            change, further = total[best] + delays[r], count[best] + 1
            for t in range(topologies):
                if change < total[t]:
                    total[t] = change
                    count[t] = further
                total[t] += cost[i, t]
        best = np.argmin(total)
        times[r] = total[best]
        changes[r] = count[best]


def _padded(found: list[list[Profile]]) -> tuple[IntArray, FloatArray]:
    points = max(1, max(len(one.hops) for row in found for one in row))
    shape = (len(found), len(found[0]), points)
    hops, load = np.zeros(shape, dtype=np.int64), np.full(shape, np.inf)
    for p, row in enumerate(found):
        for t, one in enumerate(row):
            hops[p, t, : len(one.hops)] = one.hops
            load[p, t, : len(one.hops)] = one.unit_load
    return hops, load
