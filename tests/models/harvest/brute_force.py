"""Harvest's problem solved by trying everything, written from its statement alone; imports nothing of the family.

A step is a demand matrix (section 3.3, one-to-many): from GPU j to GPU k go ``m * M[j, k]`` bytes, where M counts how
often the step lists the pair, each time with the volume that stands beside it (1 unless said). It takes on a topology,
over hop limits L, ``min of alpha + delta * L + m * u_L / bandwidth``, where ``u_L`` is the smallest largest load of a
link when every pair splits its volume over its routes of at most L hops (a linear program over all simple routes). A
schedule is one topology a step; a change costs the reconfiguration delay. A step of no bytes costs
``alpha + delta * L`` for the least L that reaches all its pairs.

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
Demand = tuple[tuple[int, int, int], ...]  # source, destination, volume


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


def demand_of(step: Mapping[str, Any]) -> Demand:
    """The entries of the step's matrix that are not zero: volumes of a pair that is listed again add up."""
    total: dict[tuple[int, int], int] = {}
    for (s, t), volume in zip(step["pairs"], step.get("volumes") or [1] * len(step["pairs"]), strict=True):
        total[s, t] = total.get((s, t), 0) + volume
    return tuple(sorted((s, t, volume) for (s, t), volume in total.items()))


@cache
def least_load(links: Matrix, pairs: Demand, hops: int) -> float:
    """Smallest largest load per link over routes of at most ``hops`` hops; infinite where a pair has none."""
    chosen = [(number, route) for number, (s, t, _) in enumerate(pairs) for route in simple_routes(links, s, t, hops)]
    if {number for number, _ in chosen} != set(range(len(pairs))):
        return float("inf")
    ends = [(u, v) for u, row in enumerate(links) for v, count in enumerate(row) if count]
    load, once = np.zeros((len(ends), len(chosen) + 1)), np.zeros((len(pairs), len(chosen) + 1))
    unit = max(volume for *_, volume in pairs)  # the program counts in the largest volume
    for column, (number, route) in enumerate(chosen):
        once[number, column] = 1
        for u, v in route:
            load[ends.index((u, v)), column] = pairs[number][2] / unit
    load[:, -1] = [-links[u][v] for u, v in ends]
    cost = np.zeros(len(chosen) + 1)
    cost[-1] = 1
    answer: Any = linprog(
        cost, A_ub=load, b_ub=np.zeros(len(ends)), A_eq=once, b_eq=np.ones(len(pairs)), method="highs"
    )
    assert answer.status == 0, answer.message
    return float(answer.fun) * unit


@cache
def distances(links: Matrix) -> tuple[tuple[float, ...], ...]:
    """Hops from every GPU to every other, by growing what is reached; infinite where there is no route."""
    found = []
    for source in range(len(links)):
        hops = [float("inf")] * len(links)
        reached, hop = {source}, 0
        while reached:
            for gpu in reached:
                hops[gpu] = hop
            hop += 1
            reached = {v for u in reached for v, count in enumerate(links[u]) if count and hops[v] > hop}
        found.append(tuple(hops))
    return tuple(found)


@cache
def counted(links: Matrix, pairs: Demand) -> tuple[int, float]:
    """Hops of the farthest pair (0: out of reach), and a load that no routing is below."""
    distance = distances(links)
    farthest = max(distance[s][t] for s, t, _ in pairs)
    if farthest == float("inf"):
        return 0, float("inf")
    load = sum(distance[s][t] * volume for s, t, volume in pairs) / sum(map(sum, links))
    for side, ports in ((0, [sum(row) for row in links]), (1, [sum(column) for column in zip(*links, strict=True)])):
        needed = [0] * len(links)
        for pair in pairs:
            needed[pair[side]] += pair[2]
        load = max(load, *(much / room for much, room in zip(needed, ports, strict=True) if much))
    return int(farthest), load


def optimum(raw: Mapping[str, Any]) -> float:
    """Least completion time in seconds of an instance file's data with ``pairs`` in every step."""
    delta = raw["delta"] if raw.get("latency", "on") == "on" else 0.0
    shapes, delay = topologies(raw["gpus"], raw["ports"]), raw["reconfiguration_delay"]
    steps = [(demand_of(step), step["bytes"] / raw["port_bandwidth"]) for step in raw["steps"]]
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


def random_one_to_many(number: int, sizes: tuple[int, ...] = (2, 3, 4)) -> dict[str, Any]:
    """Like :func:`random_demand`, of ``sizes`` GPUs, with any matrix in a step: pairs listed once and again, volumes
    beside them in most steps (small ones, and such as 1 beside 1,000,000), some of them permutations added up as
    in a multi-port collective, on 1 to 3 ports (one on 6 GPUs, up to two on 5)."""
    random = np.random.default_rng([31, number])
    gpus = int(random.choice(sizes))
    ports = int(random.integers(1, {5: 3, 6: 2}.get(gpus, 4)))
    every = [[u, v] for u in range(gpus) for v in range(gpus) if u != v]
    steps: list[dict[str, Any]] = []
    for _ in range(int(random.integers(1, 5 if gpus < 5 else 4))):
        if steps and random.random() < 0.2:
            step = {**steps[int(random.integers(len(steps)))]}
        elif random.random() < 0.3:
            moved = [random.permutation(gpus).tolist() for _ in range(int(random.integers(1, ports + 1)))]
            step = {"pairs": [[u, p[u]] for p in moved for u in range(gpus) if u != p[u]] or [every[0]]}
        else:
            step = {"pairs": [every[i] for i in random.integers(len(every), size=random.integers(1, len(every) + 3))]}
        if "volumes" not in step and random.random() < 0.7:
            largest = int(random.choice([2, 3, 7, 10**6]))
            step["volumes"] = [int(w) for w in random.integers(1, largest + 1, len(step["pairs"]))]
        largest = max(volume for *_, volume in demand_of(step))
        size = 0.0 if random.random() < 0.08 else float(random.choice([1e5, 1e6, 3e6, random.uniform(1e4, 1e7)]))
        steps.append({**step, "bytes": size / largest})
    return random_demand(number) | {"name": f"one-to-many-{number}", "gpus": gpus, "ports": ports, "steps": steps}
