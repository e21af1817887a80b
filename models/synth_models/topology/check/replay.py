"""The check of the topology family: circuits against ports, hops and loads counted again in whole numbers.

Imports nothing from the methods. Every circuit takes a port that exists and that no other takes, and nodes keep to
their degree. For the objective ``load`` every source must send the same number of units to each other node, over arcs
that are there; a source stands for its orbit under renumberings that are checked to map the arcs onto themselves. All
nodes of the orbit send as images of the source do, every image alike: so the arcs of an orbit carry the same load, the
sum over all sources and arcs of the orbit divided by their number. That average of routings is a routing.
Schedules of a mix are replayed as what they are (:mod:`synth_models.topology.check.mixes`).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.graph.hops import hops
from synth.method import Verdict
from synth_models.topology.check.mixes import mixed_time
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.solution import Topology

SHOWN = 4  # faults of each kind that are put in words


class _Arcs(NamedTuple):
    """All arcs, parallel ones as one: ``key`` = tail * nodes + head, ascending; their rates, added up, as whole numbers
    (:attr:`TopologyInstance.weights`); how many there are."""

    key: IntArray
    rate: IntArray
    number: int


def check_topology(instance: TopologyInstance, topology: Topology) -> Verdict:
    """Check circuits and routing; the value is the largest load of an arc, or the sum of hops.

    Facts: arcs, sum of hops, average path length, diameter, of a routing its sources and its load as a fraction, and
    the seconds that an all-to-all of 1 MiB from every node takes where only the load counts.
    """
    faults = _port_faults(instance, topology.circuits)
    if faults:
        return Verdict(None, {}, faults)
    arcs = _arcs(instance, topology.circuits)
    n = instance.nodes
    facts: dict[str, Any] = {"nodes": n, "circuits": len(topology.circuits), "arcs": arcs.number}
    faults = _symmetry_faults(n, arcs, topology.symmetries)
    if faults:
        return Verdict(None, facts, faults)
    orbit = _orbits(n, topology.symmetries)
    least, size = np.unique(orbit, return_counts=True)
    away = hops(n, arcs.key // n, arcs.key % n, least)
    if (away < 0).any():
        row, node = np.argwhere(away < 0)[0].tolist()
        return Verdict(None, facts, [f"no path leads from node {least[row]} to node {node}"])
    total = int(size @ away.sum(axis=1, dtype=np.int64))
    facts |= {"hops": total, "average_hops": total / (n * (n - 1)), "diameter": int(away.max())}
    faults = _beside_the_objective(instance, topology)
    if instance.objective == "hops" or faults:
        return Verdict(None if faults else float(total), facts, faults)
    if instance.objective == "mix":
        value, times, faults = mixed_time(instance, topology)
        return Verdict(value, facts | times, faults)
    faults = _flow_faults(instance, topology, arcs, orbit)
    if faults:
        return Verdict(None, facts, faults)
    load = _largest_load(instance, topology, arcs, dict(zip(least.tolist(), size.tolist(), strict=True)), orbit)
    seconds = float(load * 2**20 / n / Fraction(instance.bandwidth))
    mean = total * instance.weights[0] / int(arcs.rate.sum())
    facts |= {"sources": len(least), "load": str(load), "mean_load": mean}
    return Verdict(float(load), facts | {"alltoall_1MiB_s": seconds})


def _beside_the_objective(instance: TopologyInstance, topology: Topology) -> list[str]:
    """What the solution holds that does not count for the objective."""
    faults = []
    if len(topology.flow) and instance.objective != "load":
        faults.append(f"a routing is of the objective load, here the objective is {instance.objective}")
    if topology.schedules and instance.objective != "mix":
        faults.append(f"schedules are of the objective mix, here the objective is {instance.objective}")
    return faults


def _port_faults(instance: TopologyInstance, circuits: IntArray) -> list[str]:
    """Circuits at ports that do not exist or that another has taken, and nodes beyond their degree."""
    if instance.degree is not None:
        return _degree_faults(instance, circuits)
    faults, taken = [], set[tuple[int, str, int]]()
    for row, (switch, sends, receives) in enumerate(circuits.tolist()):
        if switch >= len(instance.switches):
            faults.append(f"circuit {row}: there is no switch {switch}")
            continue
        for side, port in (("sends", sends), ("receives", receives)):
            if port >= len(getattr(instance.switches[switch], side)):
                faults.append(f"circuit {row}: switch {switch} has no port {port} that {side}")
            elif (switch, side, port) in taken:
                faults.append(f"circuit {row}: port {port} of switch {switch} that {side} is used twice")
            taken.add((switch, side, port))
    return _few(faults)


def _degree_faults(instance: TopologyInstance, circuits: IntArray) -> list[str]:
    n = instance.nodes
    bad = [
        f"circuit {row}: switch {s}, nodes {u} and {v}: a circuit joins two nodes below {n}, its switch is 0"
        for row, (s, u, v) in enumerate(circuits.tolist())
        if s != 0 or u == v or max(u, v) >= n
    ]
    if bad:
        return _few(bad)
    ends = [circuits[:, 1], circuits[:, 2]] if instance.one_way else [circuits[:, 1:].ravel()]
    for way, nodes in zip(("sends", "receives") if instance.one_way else ("has",), ends, strict=True):
        used = np.bincount(nodes, minlength=n)
        free = instance.free[0 if way != "receives" else 1]
        for node in np.flatnonzero(used > free).tolist():
            bad.append(f"node {node} {way} {used[node]} circuits, its degree leaves {free[node]}")
    return _few(bad)


def _few(faults: list[str]) -> list[str]:
    return faults if len(faults) <= SHOWN else [*faults[:SHOWN], f"and {len(faults) - SHOWN} more faults of this kind"]


def _arcs(instance: TopologyInstance, circuits: IntArray) -> _Arcs:
    """The arcs of fixed links and circuits; a circuit from a node to itself is none."""
    n, counted, count = instance.nodes, Counter[int](), 0
    fixed, own = instance.weights
    links = [(u, v, fixed) for u, v in instance.fixed.tolist()]
    for switch, a, b in circuits.tolist():
        ends = (a, b)
        if instance.degree is None:
            ports = instance.switches[switch]
            ends = (int(ports.sends[a]), int(ports.receives[b]))
        links.append((*ends, own))
    for u, v, rate in links:
        for tail, head in ((u, v),) if instance.one_way else ((u, v), (v, u)):
            if tail != head:
                counted[tail * n + head] += rate
                count += 1
    keys = sorted(counted)
    return _Arcs(np.array(keys, dtype=np.int64), np.array([counted[key] for key in keys], dtype=np.int64), count)


def _moved(n: int, arcs: _Arcs, image: IntArray) -> IntArray | None:
    """The place of the arc to which each arc goes, None where some goes to none or to one of another rate."""
    key = image[arcs.key // n] * n + image[arcs.key % n]
    place = np.minimum(np.searchsorted(arcs.key, key), len(arcs.key) - 1)
    same = np.array_equal(arcs.key[place], key) and np.array_equal(arcs.rate[place], arcs.rate)
    return place if same else None


def _symmetry_faults(n: int, arcs: _Arcs, symmetries: IntArray) -> list[str]:
    faults = []
    for row, image in enumerate(symmetries):
        if not np.array_equal(np.sort(image), np.arange(n)):
            faults.append(f"symmetry {row} is no renumbering of the nodes")
        elif _moved(n, arcs, image) is None:
            faults.append(f"symmetry {row} does not map the arcs onto themselves")
    return _few(faults)


def _orbits(count: int, images: IntArray | list[IntArray]) -> IntArray:
    """The least member of the orbit of each thing."""
    label = np.arange(count, dtype=np.int64)
    while True:
        before = label.copy()
        for image in images:
            low = np.minimum(label, label[image])
            np.minimum.at(low, image, low.copy())
            label = low
        label = label[label]
        if np.array_equal(before, label):
            return label


def _flow_faults(instance: TopologyInstance, topology: Topology, arcs: _Arcs, orbit: IntArray) -> list[str]:
    """Rows on arcs that are not there, orbits without a source or with two, nodes that get too much or too little."""
    n, (source, tail, head, amount) = instance.nodes, topology.flow.T
    if (topology.flow[:, :3] >= n).any():
        return [f"the routing names a node beyond the last, {n - 1}"]
    key = tail * n + head
    place = np.minimum(np.searchsorted(arcs.key, key), len(arcs.key) - 1)
    absent = np.flatnonzero(arcs.key[place] != key)
    if len(absent):
        row = int(absent[0])
        return [f"{len(absent)} rows of the routing use arcs that are not there, the first {tail[row]}->{head[row]}"]
    sources = np.unique(source)
    missing = np.setdiff1d(orbit, orbit[sources])
    if len(missing):
        return [f"the routing has no source in the orbit of node {missing[0]}"]
    if len(np.unique(orbit[sources])) < len(sources):
        return ["the routing has several sources in one orbit"]
    faults, order = [], np.argsort(source, kind="stable")
    for rows in np.split(order, np.searchsorted(source[order], sources[1:])):
        s, got = int(source[rows[0]]), np.zeros(n, dtype=np.int64)
        np.add.at(got, head[rows], amount[rows])
        np.subtract.at(got, tail[rows], amount[rows])
        got[s] += topology.scale * n  # it keeps none of its own
        wrong = np.flatnonzero(got != topology.scale)
        if len(wrong):
            v = next((node for node in wrong.tolist() if node != s), s)
            faults.append(f"of source {s}, node {v} gets {got[v]} of {topology.scale} parts of its unit")
    return _few(faults)


def _largest_load(
    instance: TopologyInstance, topology: Topology, arcs: _Arcs, size: dict[int, int], orbit: IntArray
) -> Fraction:
    """The largest load of an arc of a fixed link's rate, exactly: amounts of 37 bits, at most 2^23 of them, are summed
    by the sources' orbits' size, and the sums multiplied as Python's whole numbers."""
    n = instance.nodes
    images = [place for image in topology.symmetries if (place := _moved(n, arcs, image)) is not None]
    of = _orbits(len(arcs.key), images)
    source, tail, head, amount = topology.flow.T
    place = np.searchsorted(arcs.key, tail * n + head)
    stands_for = np.array([size[node] for node in orbit[source].tolist()], dtype=np.int64)
    total: dict[int, int] = {}
    for times in np.unique(stands_for).tolist():
        rows = stands_for == times
        carried = np.zeros(len(arcs.key), dtype=np.int64)
        np.add.at(carried, of[place[rows]], amount[rows])
        for arc in np.flatnonzero(carried).tolist():
            total[arc] = total.get(arc, 0) + times * int(carried[arc])
    capacity = np.zeros(len(arcs.key), dtype=np.int64)
    np.add.at(capacity, of, arcs.rate)
    unit = instance.weights[0]
    return max(Fraction(carried * unit, topology.scale * int(capacity[arc])) for arc, carried in total.items())
