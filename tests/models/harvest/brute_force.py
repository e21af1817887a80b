"""Harvest's problem solved by trying everything, written from its statement alone; imports nothing of the family.

A step of m bytes a pair takes on a topology, over hop limits L, ``min of alpha + delta * L + m * u_L / bandwidth``,
where ``u_L`` is the smallest largest load of a link when every pair splits one unit over its routes of at most L hops
(a linear program over all simple routes). A schedule is one topology a step; a change costs the reconfiguration
delay. A step of no bytes costs ``alpha + delta * L`` for the least L that reaches all its pairs.

All topologies: matrices of link counts whose rows and columns sum to at most ``ports``; those that have room for one
more link are left out, since a link more never makes a step slower. A linear program is solved only where a count
(hops of all pairs over all links, pairs over links at one GPU) leaves the topology in the race; the count never exceeds
the program's value, so the least total is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
from scipy.optimize import linprog

Matrix = tuple[tuple[int, ...], ...]
Pairs = tuple[tuple[int, int], ...]


@cache
def topologies(gpus: int, ports: int) -> tuple[Matrix, ...]:
    """Every matrix of link counts within the ports to which no link can be added."""
    found = []
    rows = [
        [row for row in product(range(ports + 1), repeat=gpus) if row[u] == 0 and sum(row) <= ports]
        for u in range(gpus)
    ]

    def extend(done: list[tuple[int, ...]]) -> None:
        if len(done) == gpus:
            out = [sum(row) < ports for row in done]
            into = [sum(column) < ports for column in zip(*done, strict=True)]
            if not any(out[u] and into[v] for u in range(gpus) for v in range(gpus) if u != v):
                found.append(tuple(done))
            return
        for row in rows[len(done)]:
            if all(sum(column) <= ports for column in zip(*done, row, strict=True)):
                extend([*done, row])

    extend([])
    return tuple(found)


def simple_routes(links: Matrix, source: int, target: int, most: int) -> list[list[tuple[int, int]]]:
    """Routes of at most ``most`` hops, as lists of links."""
    found = []
    others = [v for v in range(len(links)) if v not in (source, target)]
    for between in range(min(most, len(links) - 1)):
        for middle in permutations(others, between):
            stops = [source, *middle, target]
            route = list(pairwise(stops))
            if all(links[u][v] for u, v in route):
                found.append(route)
    return found


@cache
def least_load(links: Matrix, pairs: Pairs, hops: int) -> float:
    """Smallest largest load per link over routes of at most ``hops`` hops; infinite where a pair has none."""
    chosen = [(number, route) for number, (s, t) in enumerate(pairs) for route in simple_routes(links, s, t, hops)]
    if {number for number, _ in chosen} != set(range(len(pairs))):
        return float("inf")
    ends = [(u, v) for u, row in enumerate(links) for v, count in enumerate(row) if count]
    load, once = np.zeros((len(ends), len(chosen) + 1)), np.zeros((len(pairs), len(chosen) + 1))
    for column, (number, route) in enumerate(chosen):
        once[number, column] = 1
        for u, v in route:
            load[ends.index((u, v)), column] = 1
    load[:, -1] = [-links[u][v] for u, v in ends]
    cost = np.zeros(len(chosen) + 1)
    cost[-1] = 1
    answer: Any = linprog(
        cost, A_ub=load, b_ub=np.zeros(len(ends)), A_eq=once, b_eq=np.ones(len(pairs)), method="highs"
    )
    assert answer.status == 0, answer.message
    return float(answer.fun)


@cache
def counted(links: Matrix, pairs: Pairs) -> tuple[int, float]:
    """Hops of the farthest pair (0: out of reach), and a load that no routing is below."""
    distance = []
    for s, t in pairs:
        lengths = [len(route) for route in simple_routes(links, s, t, len(links) - 1)]
        if not lengths:
            return 0, float("inf")
        distance.append(min(lengths))
    load = sum(distance) / sum(map(sum, links))
    for side, ports in ((0, [sum(row) for row in links]), (1, [sum(column) for column in zip(*links, strict=True)])):
        for gpu, room in enumerate(ports):
            if needed := sum(pair[side] == gpu for pair in pairs):
                load = max(load, needed / room)
    return max(distance), load


def optimum(raw: Mapping[str, Any]) -> float:
    """Least completion time in seconds of an instance file's data with ``pairs`` in every step."""
    delta = raw["delta"] if raw.get("latency", "on") == "on" else 0.0
    shapes, delay = topologies(raw["gpus"], raw["ports"]), raw["reconfiguration_delay"]
    steps = [(tuple(sorted(map(tuple, s["pairs"]))), s["bytes"] / raw["port_bandwidth"]) for s in raw["steps"]]
    farthest = raw["gpus"] - 1

    def seconds(step: int, links: Matrix) -> float:
        pairs, size = steps[step]
        limits = range(counted(links, pairs)[0], farthest + 1) if delta > 0 and size > 0 else [farthest]
        if size == 0:
            return float(raw["alpha"] + delta * counted(links, pairs)[0])
        return float(min(raw["alpha"] + delta * limit + size * least_load(links, pairs, limit) for limit in limits))

    cost = np.empty((len(steps), len(shapes)))
    for i, (pairs, size) in enumerate(steps):
        for j, links in enumerate(shapes):
            hops, load = counted(links, pairs)
            cost[i, j] = raw["alpha"] + delta * hops + (size * load if size > 0 else 0.0) if hops else np.inf
    settled = np.isinf(cost)
    while True:
        total, before = cost[0].copy(), []
        for i in range(1, len(steps)):
            stay = total <= total.min() + delay
            before.append(np.where(stay, np.arange(len(shapes)), total.argmin()))
            total = np.where(stay, total, total.min() + delay) + cost[i]
        chosen = [int(total.argmin())]
        for came_from in reversed(before):
            chosen.append(int(came_from[chosen[-1]]))
        chosen.reverse()
        todo = [(i, j) for i, j in enumerate(chosen) if not settled[i, j]]
        if not todo:
            return float(total.min())
        for i, j in todo:
            cost[i, j], settled[i, j] = seconds(i, shapes[j]), True


def random_demand(number: int) -> dict[str, Any]:
    """Demand ``number`` of an endless list: 3 or 4 GPUs, 1 to 3 ports, 1 to 4 steps in which a GPU may send to, and
    receive from, up to all others, with sizes, delays and latencies on very different scales, zeros included."""
    random = np.random.default_rng([20, number])
    gpus, ports = int(random.integers(3, 5)), int(random.integers(1, 4))
    every = [(u, v) for u in range(gpus) for v in range(gpus) if u != v]
    steps, patterns = [], []
    for _ in range(int(random.integers(1, 5))):
        if patterns and random.random() < 0.25:
            pairs = patterns[int(random.integers(len(patterns)))]
        else:
            count = int(random.integers(1, len(every) + 1))
            pairs = [list(every[i]) for i in random.permutation(len(every))[:count]]
        patterns.append(pairs)
        size = 0.0 if random.random() < 0.08 else float(random.choice([1e5, 1e6, 2e6, 3e6, random.uniform(1e4, 1e7)]))
        steps.append({"bytes": size, "pairs": pairs})
    return {
        "format": "synth-instance/1",
        "family": "harvest",
        "name": f"random-{number}",
        "source": "random",
        "gpus": gpus,
        "ports": ports,
        "port_bandwidth": 1e11,
        "alpha": float(random.choice([0.0, 5e-7])),
        "delta": float(random.choice([0.0, 5e-7, 3e-6, 2e-5])),
        "latency": str(random.choice(["on", "on", "off"])),
        "reconfiguration_delay": float(random.choice([0.0, 1e-6, 1e-5, 1e-4, 1.0])),
        "steps": steps,
    }
