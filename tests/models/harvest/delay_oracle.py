"""Harvest with delays that depend on what changes, solved by trying every sequence of topologies.

Written from the statement alone, before any program; imports nothing of the family. A topology is a matrix of link
counts with zero diagonal whose rows and columns sum to at most ``ports``; **all** of them are tried, also those with
room for another link (a link more can cost a delay here). A schedule is one topology a step. A change from x to y
before a step takes

    reconfiguration_delay + delay_per_circuit * (circuits set up) + table(ports changed),

where a circuit is set up for every link that y has above x (parallel links count one by one), a port is an input or an
output of the optical switch, and it changes when it is joined to another GPU than before, or to none. ``table`` is
the time of the first row of ``delay_by_ports`` whose number of ports is not below that of the change. A change takes
nothing when x = y; of the rest, the step's ``overlap`` is hidden behind computation. The first topology is free.

Steps are rated as in :mod:`models.harvest.brute_force`: with one port a GPU has one link out, so routes are forced.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import combinations, permutations, product
from math import perm
from typing import Any

import numpy as np
from models.harvest.brute_force import Demand, demand_of, least_load

from synth.arrays import FloatArray, IntArray

Matrix = tuple[tuple[int, ...], ...]


@cache
def topologies(gpus: int, ports: int) -> tuple[Matrix, ...]:
    """Every matrix of link counts within the ports, the empty one included."""
    rows = [
        [row for row in product(range(ports + 1), repeat=gpus) if row[u] == 0 and sum(row) <= ports]
        for u in range(gpus)
    ]
    return tuple(
        matrix for matrix in product(*rows) if all(sum(column) <= ports for column in zip(*matrix, strict=True))
    )


def circuits_set_up(before: Matrix, after: Matrix) -> int:
    """Links of ``after`` that ``before`` has not, parallel links one by one."""
    return sum(max(0, y - x) for old, new in zip(before, after, strict=True) for x, y in zip(old, new, strict=True))


def ports_changed(before: Matrix, after: Matrix, ports: int) -> int:
    """Outputs and inputs of GPUs that lead elsewhere: of a GPU's ports as many stay as its lists of partners, idle
    ports (None) included, have in common."""
    changed = 0
    for old, new in [
        *zip(before, after, strict=True),
        *zip(zip(*before, strict=True), zip(*after, strict=True), strict=True),
    ]:
        here, there = _partners(old, ports), _partners(new, ports)
        for partner in here:
            if partner in there:
                there.remove(partner)
        changed += len(there)
    return changed


def _partners(row: tuple[int, ...], ports: int) -> list[int | None]:
    joined: list[int | None] = [gpu for gpu, count in enumerate(row) for _ in range(count)]
    return joined + [None] * (ports - len(joined))


def change_seconds(raw: Mapping[str, Any], before: Matrix, after: Matrix) -> float:
    """What a change takes, nothing of it hidden."""
    if before == after:
        return 0.0
    seconds = raw["reconfiguration_delay"] + raw.get("delay_per_circuit", 0.0) * circuits_set_up(before, after)
    if "delay_by_ports" in raw:
        changed = ports_changed(before, after, raw["ports"])
        seconds += next(time for most, time in raw["delay_by_ports"] if changed <= most)
    return float(seconds)


def step_seconds(raw: Mapping[str, Any], step: Mapping[str, Any], links: Matrix) -> float:
    """A step on a topology, the best hop limit; infinite where a pair has no route."""
    delta = raw["delta"] if raw.get("latency", "on") == "on" else 0.0
    demand, size = demand_of(step), step["bytes"] / raw["port_bandwidth"]
    best = float("inf")
    for limit in range(1, raw["gpus"]):
        load = _forced_load(links, demand, limit) if raw["ports"] == 1 else least_load(links, demand, limit)
        if load < float("inf"):
            best = min(best, raw["alpha"] + delta * limit + size * load)
    return float(best)


def _forced_load(links: Matrix, demand: Demand, limit: int) -> float:
    """Most volume on one link where every GPU has at most one link out; infinite where a pair needs more hops."""
    load = [0] * len(links)
    for source, target, volume in demand:
        place = source
        for _ in range(limit):
            if place == target:
                break
            load[place] += volume
            if 1 not in links[place]:
                return float("inf")
            place = links[place].index(1)
        if place != target:
            return float("inf")
    return float(max(load))


@cache
def changes(gpus: int, ports: int) -> tuple[IntArray, IntArray]:
    """Of every pair of topologies the circuits that are set up and the ports that change."""
    shapes = topologies(gpus, ports)
    circuits = np.array([[circuits_set_up(x, y) for y in shapes] for x in shapes])
    return circuits, np.array([[ports_changed(x, y, ports) for y in shapes] for x in shapes])


def tables(raw: Mapping[str, Any]) -> tuple[list[FloatArray], list[FloatArray]]:
    """Seconds of every step on every topology, and what is paid before every later step for every pair of them, which
    is :func:`change_seconds` less what is hidden."""
    shapes = topologies(raw["gpus"], raw["ports"])
    cost = [np.array([step_seconds(raw, step, links) for links in shapes]) for step in raw["steps"]]
    circuits, ports = changes(raw["gpus"], raw["ports"])
    whole = raw["reconfiguration_delay"] + raw.get("delay_per_circuit", 0.0) * circuits
    if "delay_by_ports" in raw:
        most, seconds = zip(*raw["delay_by_ports"], strict=True)
        whole = whole + np.array(seconds)[np.searchsorted(most, ports)]
    np.fill_diagonal(whole, 0.0)
    return cost, [np.maximum(whole - step.get("overlap", 0.0), 0.0) for step in raw["steps"][1:]]


def optimum(raw: Mapping[str, Any]) -> float:
    """Least completion time in seconds over all sequences of at most three topologies, each summed up as it stands."""
    cost, paid = tables(raw)
    if len(cost) == 1:
        return float(cost[0].min())
    two = cost[0][:, None] + paid[0] + cost[1][None, :]
    if len(cost) == 2:
        return float(two.min())
    assert len(cost) == 3
    return min(float((two[:, middle, None] + paid[1][middle] + cost[2]).min()) for middle in range(len(cost[0])))


def random_instance(number: int, gpus: int) -> dict[str, Any]:
    """Instance ``number`` of an endless list: 1 to 3 steps, delays of all three kinds, some with overlap."""
    random = np.random.default_rng([1919, gpus, number])
    ports = 1 if gpus == 4 else int(random.integers(1, 3))
    every = [(u, v) for u in range(gpus) for v in range(gpus) if u != v]
    kind, steps = random.choice(["circuits", "ports", "both", "constant"]), []
    for _ in range(int(random.choice([1, 2, 3], p=[0.1, 0.3, 0.6]))):
        count = int(random.integers(1, gpus + 1))
        pairs = [list(every[i]) for i in random.permutation(len(every))[:count]]
        step = {"bytes": 0.0 if random.random() < 0.08 else float(random.uniform(1e4, 1e7)), "pairs": pairs}
        if random.random() < 0.3:
            step["volumes"] = random.integers(1, 4, count).tolist()
        if random.random() < 0.4:
            step["overlap"] = float(random.choice([0.0, 1e-6, 5e-6, 1e-4]))
        steps.append(step)
    raw = {
        "format": "synth-instance/1",
        "family": "harvest",
        "name": f"random-{number}",
        "source": "random",
        "gpus": gpus,
        "ports": ports,
        "port_bandwidth": 1e11,
        "alpha": float(random.choice([0.0, 5e-7])),
        "delta": float(random.choice([0.0, 5e-7, 2e-5])),
        "reconfiguration_delay": float(random.choice([0.0, 1e-6, 1e-5])),
        "steps": steps,
    }
    if kind in ("circuits", "both"):
        raw["delay_per_circuit"] = float(random.choice([1e-6, 5e-6, 2e-5, 1e-4]))
    if kind in ("ports", "both"):
        most = 2 * gpus * ports
        rows = sorted({*random.integers(1, most, 2).tolist(), most})
        times = np.sort(random.choice([0.0, 1e-6, 1e-5, 3e-5, 1e-4], len(rows)))
        raw["delay_by_ports"] = [[rows[i], float(times[i])] for i in range(len(rows))]
    return raw


def random_trade_off(number: int, gpus: int) -> dict[str, Any]:
    """Instance ``number`` of an endless list in which a change costs about what it saves: 2 or 3 steps of 0.1 to 10 us
    a pair, up to all pairs in a step, changes of 0.1 to 20 us that depend on what changes, a hop's delay on, off or 0,
    some steps with overlap."""
    random = np.random.default_rng([3535, gpus, number])
    every = [(u, v) for u in range(gpus) for v in range(gpus) if u != v]
    steps = []
    for _ in range(int(random.integers(2, 4))):
        if random.random() < 0.4:
            moved = random.permutation(gpus).tolist()
            pairs = [[u, v] for u, v in enumerate(moved) if u != v] or [[0, 1]]
        else:
            count = int(random.integers(1, len(every) // 2 + 1))
            pairs = [list(every[i]) for i in random.permutation(len(every))[:count]]
        step = {"bytes": 0.0 if random.random() < 0.1 else float(random.uniform(1e4, 1e6)), "pairs": pairs}
        if random.random() < 0.3:
            step["volumes"] = random.integers(1, 4, len(pairs)).tolist()
        if random.random() < 0.3:
            step["overlap"] = float(random.choice([2e-7, 1e-6, 5e-6]))
        steps.append(step)
    kind = number % 3  # by circuit, by ports, both
    raw = random_instance(number, gpus) | {
        "name": f"trade-off-{number}",
        "delta": float(random.choice([0.0, 5e-7, 3e-6])),
        "latency": str(random.choice(["on", "on", "off"])),
        "reconfiguration_delay": float(random.choice([0.0, 1e-7, 2e-6])),
        "steps": steps,
    }
    ports = raw["ports"] = 1 if gpus == 4 else 1 + int(random.random() < 0.5)
    raw = {key: value for key, value in raw.items() if not key.startswith("delay_")}
    if kind != 1:
        raw["delay_per_circuit"] = float(random.choice([1e-7, 3e-7, 1e-6, 3e-6]))
    if kind != 0:
        most = 2 * gpus * ports
        rows = sorted({2, *random.integers(2, most, 2).tolist(), most})
        times = np.sort(random.choice([0.0, 2e-7, 1e-6, 3e-6, 2e-5], len(rows)))
        raw["delay_by_ports"] = [[rows[i], float(times[i])] for i in range(len(rows))]
    return raw


def one_port_optimum(
    gpus: int, shifts: tuple[int, ...], message: float, bandwidth: float, alpha: float, delta: float, per_circuit: float
) -> float:
    """Least time of steps ``u -> u + shift`` of message / (2 * shift) bytes on one port over all sequences of
    permutations, with a delay per circuit alone. Every GPU sends and receives, so no other topology serves a step.

    A change takes its links away one by one, for nothing, and sets the new ones up one by one, for ``per_circuit``
    each: two sweeps over the partial permutations, ordered by their number of links, find the cheapest change to
    every permutation at once. A partial permutation is a number with a digit a GPU: 1 + where it sends, 0 for nowhere.
    """
    digit = (gpus + 1) ** np.arange(gpus)
    levels = []
    for size in range(gpus + 1):
        to = np.array(list(permutations(range(1, gpus + 1), size)), dtype=np.int64).reshape(perm(gpus, size), size)
        codes = [(to * digit[list(rows)]).sum(axis=1) for rows in combinations(range(gpus), size)]
        levels.append(np.sort(np.concatenate(codes)))
    fewer = []  # of every level: (a partial permutation, the same without one of its links)
    for size in range(1, gpus + 1):
        whole, part = [], []
        for gpu in range(gpus):
            sends = levels[size] // digit[gpu] % (gpus + 1)
            whole.append(np.flatnonzero(sends))
            part.append(np.searchsorted(levels[size - 1], (levels[size] - sends * digit[gpu])[whole[-1]]))
        fewer.append((np.concatenate(whole), np.concatenate(part)))

    successor = np.stack([levels[gpus] // digit[gpu] % (gpus + 1) - 1 for gpu in range(gpus)], axis=1)
    total = np.zeros(len(successor))
    for number, shift in enumerate(shifts):
        if number:
            value = [np.full(len(codes), np.inf) for codes in levels[:-1]] + [total]
            for size in range(gpus, 0, -1):
                whole, part = fewer[size - 1]
                np.minimum.at(value[size - 1], part, value[size][whole])
            for size in range(1, gpus + 1):
                whole, part = fewer[size - 1]
                np.minimum.at(value[size], whole, value[size - 1][part] + per_circuit)
            total = value[gpus]
        total = total + _shift_seconds(successor, shift, message / (2 * shift) / bandwidth, alpha, delta)
    return float(total.min())


def _shift_seconds(successor: IntArray, shift: int, size: float, alpha: float, delta: float) -> FloatArray:
    count, gpus = successor.shape
    everyone = np.arange(count)
    load, longest, missed = np.zeros(successor.shape), np.zeros(count), np.zeros(count, dtype=bool)
    for source in range(gpus):
        at, target, length = np.full(count, source), (source + shift) % gpus, np.zeros(count)
        for _ in range(gpus):
            going = at != target
            load[everyone[going], at[going]] += 1
            length += going
            at = np.where(going, successor[everyone, at], at)
        missed |= at != target
        longest = np.maximum(longest, length)
    return np.where(missed, np.inf, alpha + delta * longest + size * load.max(axis=1))
