"""Every topology tried: the optimum of small instances by enumeration, an oracle for the programs that shares no code
with them or with the profiles.

With one port a topology is a permutation (a GPU mapped to itself has an idle port) and routes are forced, so 8 GPUs
(40,320 topologies) take seconds. With more ports every matrix of whole numbers with row and column sums ``ports`` is
rated by linear programs, which is for 4 GPUs (282 with two ports).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
from scipy.optimize import linprog

from synth.arrays import FloatArray, IntArray
from synth_models.harvest.instance import HarvestInstance


def optimum(instance: HarvestInstance) -> float:
    """Least completion time (s) over all sequences of topologies; infinite if nothing connects the pairs."""
    rate = one_port_seconds if instance.ports == 1 else many_port_seconds
    known: dict[tuple[bytes, float], FloatArray] = {}
    total: FloatArray | None = None
    for i, pairs in enumerate(instance.pairs):
        key = (pairs.tobytes(), float(instance.bytes_per_pair[i]))
        if key not in known:
            known[key] = rate(instance, pairs, key[1] / instance.port_bandwidth)
        if total is None:
            total = known[key]
        else:
            total = np.minimum(total, total.min() + instance.reconfiguration_delay) + known[key]
    assert total is not None
    return float(total.min())


def one_port_seconds(instance: HarvestInstance, pairs: IntArray, seconds: float) -> FloatArray:
    """Time of a step on every permutation of the GPUs, in lexicographic order: pairs walk along until they arrive."""
    gpus = instance.gpus
    successor = np.array(list(permutations(range(gpus))))
    count = len(successor)
    load = np.zeros((count, gpus), dtype=np.int64)  # of the link out of every GPU
    longest = np.zeros(count, dtype=np.int64)
    reached = np.ones(count, dtype=bool)
    rows = np.arange(count)
    for source, target in pairs.tolist():
        place = np.full(count, source)
        for hop in range(1, gpus + 1):
            walking = rows[place != target]
            np.add.at(load, (walking, place[walking]), 1)
            longest[walking] = np.maximum(longest[walking], hop)
            place[walking] = successor[walking, place[walking]]
        reached &= place == target
    time = instance.alpha + instance.hop_delay * longest + seconds * load.max(axis=1)
    return np.where(reached, time, np.inf)


def topologies(gpus: int, ports: int) -> Iterator[IntArray]:
    """All matrices of link counts with row and column sums ``ports``; the diagonal counts idle ports."""

    def rows(free: tuple[int, ...], left: int) -> Iterator[tuple[int, ...]]:
        if len(free) == 1:
            if left <= free[0]:
                yield (left,)
            return
        for first in range(min(left, free[0]) + 1):
            for rest in rows(free[1:], left - first):
                yield (first, *rest)

    def extend(done: list[tuple[int, ...]], free: tuple[int, ...]) -> Iterator[IntArray]:
        if len(done) == gpus:
            yield np.array(done, dtype=np.int64)
            return
        for row in rows(free, ports):
            yield from extend([*done, row], tuple(a - b for a, b in zip(free, row, strict=True)))

    yield from extend([], (ports,) * gpus)


def many_port_seconds(instance: HarvestInstance, pairs: IntArray, seconds: float) -> FloatArray:
    """Time of a step on every topology of :func:`topologies`: the best hop limit, each rated by a linear program over
    flows of single pairs hop by hop."""
    found = []
    for links in topologies(instance.gpus, instance.ports):
        limits = range(1, instance.gpus)
        times = [
            instance.alpha + instance.hop_delay * limit + seconds * hop_limited_load(pairs, links, limit)
            for limit in (limits if instance.hop_delay > 0 else limits[-1:])
        ]
        found.append(min(times))
    return np.array(found)


def hop_limited_load(pairs: IntArray, links: IntArray, limit: int) -> float:
    """Smallest largest load per link when every pair sends one unit over routes of at most ``limit`` hops."""
    gpus = len(links)
    arcs = [(u, v) for u in range(gpus) for v in range(gpus) if u != v and links[u, v]]
    places = {(v, h): h * gpus + v for h in range(limit + 1) for v in range(gpus)}
    width = len(arcs) * limit + limit + 1  # flow by hop, arrivals by number of hops
    balance = np.zeros((len(pairs), len(places), len(pairs), width))
    capacity = np.zeros((len(arcs), len(pairs), width))
    right = np.zeros((len(pairs), len(places)))
    for p, (source, target) in enumerate(pairs.tolist()):
        right[p, places[source, 0]] = 1
        for h in range(limit):
            for a, (u, v) in enumerate(arcs):
                column = h * len(arcs) + a
                balance[p, places[u, h], p, column] = 1
                balance[p, places[v, h + 1], p, column] = -1
                capacity[a, p, column] = 1 / links[u, v]
        for h in range(limit + 1):
            balance[p, places[target, h], p, limit * len(arcs) + h] = 1
    variables = len(pairs) * width
    rows = balance.reshape(-1, variables)
    answer = linprog(
        np.r_[np.zeros(variables), 1],
        A_ub=np.c_[capacity.reshape(len(arcs), variables), -np.ones(len(arcs))],
        b_ub=np.zeros(len(arcs)),
        A_eq=np.c_[rows, np.zeros(len(rows))],
        b_eq=right.ravel(),
    )
    return float(answer.x[-1]) if answer.x is not None and answer.status == 0 else float("inf")
