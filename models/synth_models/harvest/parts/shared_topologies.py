"""Topologies for steps whose pairs exchange unequal volumes: ports shared by what the pairs of consecutive steps send.

Where all pairs of a step send alike, its direct topology and shifted rings do. Where they do not, the heavy pairs want
more links than the light ones, and GPUs in an order of their own along a ring. Ours; no guarantee.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.demands import common_volume
from synth_models.harvest.parts.topologies import NO_LINKS, Topology, completed, count_links

MOST_INTERVALS = 60  # of consecutive steps: the shortest ones
GPUS_UP_TO, SWAPPED_UP_TO = 64, 12


def shared_topologies(instance: HarvestInstance) -> list[Topology]:
    """For intervals of steps, shortest first: links given one by one to the pair that sends most a link, and a ring in
    an order that suits their pairs. None where every step's pairs send alike, or with more than 64 GPUs."""
    gpus, ports, steps = instance.gpus, instance.ports, len(instance.steps)
    if gpus > GPUS_UP_TO or all(common_volume(rows) is not None for rows in instance.demands):
        return []
    sent = np.zeros((steps, gpus, gpus))
    for matrix, rows, size in zip(sent, instance.demands, instance.bytes_per_pair, strict=True):
        matrix[rows[:, 0], rows[:, 1]] = rows[:, 2] * (size or 1.0)
    found: list[Topology] = []
    intervals = [(first, first + more) for more in range(steps) for first in range(steps - more)]
    for first, last in intervals[:MOST_INTERVALS]:
        amount = sent[first : last + 1].sum(axis=0)
        ring = suited_ring(amount)
        rows = np.argwhere(amount > 0)
        rows = rows[np.argsort(-amount[rows[:, 0], rows[:, 1]], kind="stable")]
        for words, begun in (("shared", NO_LINKS), ("ring and shared", ring)):
            links = completed(shared(amount, begun, ports), [rows], gpus, ports)
            found.append(Topology(f"{words} by steps {first}-{last}", links))
        parallel = count_links(gpus, ring[:, 0], ring[:, 1], ports)
        found.append(Topology(f"ring for steps {first}-{last}", parallel))
    return found


def shared(amount: FloatArray, begun: IntArray, ports: int) -> IntArray:
    """``begun`` and one link after the other, each to the pair with most ``amount`` a link that has free ports."""
    gpus = len(amount)
    count = np.zeros((gpus, gpus), dtype=np.int64)
    count[begun[:, 0], begun[:, 1]] = begun[:, 2]
    out, into = ports - count.sum(axis=1), ports - count.sum(axis=0)
    while True:
        worth = np.where((out[:, None] > 0) & (into[None, :] > 0), amount / np.maximum(count, 0.5), 0.0)
        u, v = np.unravel_index(int(worth.argmax()), worth.shape)
        if worth[u, v] <= 0:
            src, dst = np.nonzero(count)
            return count_links(gpus, src, dst, count[src, dst])
        count[u, v] += 1
        out[u] -= 1
        into[v] -= 1


def suited_ring(amount: FloatArray) -> IntArray:
    """One cycle through all GPUs: :func:`_heavy_ring`; up to 12 GPUs, two change places as long as that lowers the
    largest load of a link (then the sum of loads)."""
    order = _heavy_ring(amount)
    gpus, best = len(order), _loads(amount, order)
    improved = gpus <= SWAPPED_UP_TO
    while improved:
        improved = False
        for i, j in combinations(range(gpus), 2):
            trial = order.copy()
            trial[[i, j]] = order[[j, i]]
            found = _loads(amount, trial)
            if found < best:
                order, best, improved = trial, found, True
    following = np.roll(order, -1)
    return count_links(gpus, order, following)


def _loads(amount: FloatArray, order: IntArray) -> tuple[float, float]:
    """Largest and total load of the links of the one-way ring in this order, to ten digits."""
    gpus = len(order)
    by_place = amount[np.ix_(order, order)]
    place = np.arange(gpus)
    hops = (place[None, :] - place[:, None]) % gpus
    load = np.zeros(gpus)
    for hop in range(gpus - 1):  # pairs still on their way after that many hops
        load += np.roll(np.where(hops > hop, by_place, 0.0).sum(axis=1), hop)
    return float(f"{load.max():.10g}"), float(f"{load.sum():.10g}")


def _heavy_ring(amount: FloatArray) -> IntArray:
    """GPUs in the order of a ring: pairs in the order of falling ``amount`` become links where they fit."""
    gpus = len(amount)
    following, before = np.full(gpus, -1), np.full(gpus, -1)
    end_of = np.arange(gpus)  # the other end of the chain that a GPU begins or ends
    order = np.argsort(-(amount + amount.T * 1e-6).ravel(), kind="stable")
    for u, v in zip(*np.unravel_index(order, amount.shape), strict=True):
        if following[u] < 0 and before[v] < 0 and end_of[u] != v:
            following[u], before[v] = v, u
            first, last = end_of[u], end_of[v]
            end_of[first], end_of[last] = last, first
    ring = [int(np.flatnonzero(before < 0)[0])]
    while len(ring) < gpus:
        ring.append(int(following[ring[-1]]))
    return np.array(ring, dtype=np.int64)
