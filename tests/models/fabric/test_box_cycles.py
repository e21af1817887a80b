"""Rings through boxes: as many at the NICs' bandwidth as there are, counted by brute force on tiny machines."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations
from typing import Any

import networkx as nx
import numpy as np
import pytest
from examples import some_of
from scipy.optimize import Bounds, LinearConstraint, milp

import synth
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.ring import cycles


def made(**keys: Any) -> FabricInstance:
    instance = synth.make("fabric", **{"collective": "allgather", "bytes": 2**30, **keys})
    assert isinstance(instance, FabricInstance)
    return instance


def best(instance: FabricInstance) -> cycles.Cycles:
    """The set with the highest bandwidth, every cycle of it through all members once."""
    found = list(cycles.several(instance, 0))
    assert all(sorted(cycle) == sorted(instance.members) for one in found for cycle in one.cycles)
    return max(found, key=lambda one: one.bandwidth)


def most_rings(instance: FabricInstance, rate: float) -> int:
    """The most Hamiltonian cycles of ``rate`` bytes/s each that respect the links' bandwidths, hops over switches only:
    all cycles are listed, and HiGHS says how often each is taken."""
    machine = instance.machine
    net = machine.network
    graph = nx.DiGraph()
    for e in range(net.links):
        graph.add_edge(int(net.src[e]), int(net.dst[e]), link=e, weight=float(net.latency[e]) + 1e-9)
    hops: dict[tuple[int, int], list[int]] = {}
    for u, v in permutations(instance.members, 2):
        between = graph.subgraph([u, v, *np.flatnonzero(machine.is_switch).tolist()])
        if nx.has_path(between, u, v):
            hops[u, v] = [graph.edges[pair]["link"] for pair in pairwise(nx.shortest_path(between, u, v, "weight"))]
    first, *others = instance.members
    loads: set[tuple[tuple[int, int], ...]] = set()
    for order in permutations(others):
        legs = list(pairwise((first, *order, first)))
        if all(leg in hops for leg in legs):
            loads.add(tuple(sorted(Counter(e for leg in legs for e in hops[leg]).items())))
    assert loads
    table = np.zeros((net.links, len(loads)))
    for k, load in enumerate(loads):
        for e, count in load:
            table[e, k] = count
    whole = np.ones(len(loads))
    found = milp(
        -whole, integrality=whole, bounds=Bounds(0, 16), constraints=LinearConstraint(table, 0, net.bandwidth / rate)
    )
    return round(-found.fun)


H100 = {"machine": "dgx-h100"}
TINY: tuple[tuple[dict[str, Any], str], ...] = (
    ({**H100, "boxes": 2}, "0-1,8-9"),
    ({**H100, "boxes": 2}, "0-2,8-10"),
    ({**H100, "boxes": 2}, "0-3,8-9"),
    ({**H100, "boxes": 3}, "0-1,8-9,16-17"),  # no cycle visits an odd number of boxes of two rails in turn
    ({**H100, "boxes": 3}, "0,8-10,16-17"),
    ({**H100, "boxes": 2, "leaf": 1}, "0-2,8-10"),
    ({**H100, "boxes": 3, "leaf": 1, "rails": False}, "0-1,8-9,16-17"),
    ({**H100, "boxes": 2, "leaf": 1, "rails": False, "oversubscription": 2}, "0-2,8-10"),
    ({"machine": "dgx-a100", "boxes": 2}, "1-3,8-10"),
    ({"machine": "dgx2", "boxes": 2}, "0-2,16-18"),  # two of three ranks share a port
    ({"machine": "dgx1", "boxes": 2}, "0-2,8-10"),
)


@pytest.mark.parametrize(("keys", "ranks"), TINY)
def test_as_many_rings_as_brute_force_finds(keys: dict[str, Any], ranks: str) -> None:
    instance = made(**keys, ranks=ranks, bytes=420 * 2**20)
    rate = min(float(b) for b in instance.machine.network.bandwidth)
    assert best(instance).bandwidth >= most_rings(instance, rate) * rate


@pytest.mark.slow
@pytest.mark.parametrize("ranks", ["0-3,8-11", "0-1,8-9,16-17,24-25", "0-2,8-9,16-18"])
@pytest.mark.parametrize("leaf", [{}, {"leaf": 2}, {"leaf": 2, "rails": False}])
def test_as_many_rings_of_eight_ranks_as_brute_force_finds(ranks: str, leaf: dict[str, Any]) -> None:
    instance = made(**H100, boxes=4, **leaf, ranks=ranks)
    assert best(instance).bandwidth >= most_rings(instance, 50e9) * 50e9


BETWEEN: dict[str, dict[str, Any]] = {
    "rails": {},
    "rail-optimised": {"leaf": 4, "oversubscription": 2},
    "plain": {"leaf": 4, "oversubscription": 2, "rails": False},
}


@pytest.mark.long(after=1)
@pytest.mark.parametrize("boxes", some_of([2, 3, 5, 11, 16]))
@pytest.mark.parametrize("between", BETWEEN)
def test_eight_rings_of_many_boxes(boxes: int, between: str) -> None:
    """Eight NICs of 50 GB/s a box, and every ring leaves every box: at most 400 GB/s, which there are."""
    assert best(made(**H100, boxes=boxes, **BETWEEN[between], bytes=boxes * 2**20)).bandwidth == 400 * 10**9


@pytest.mark.long
def test_rings_of_sixteen_boxes_take_what_they_promise() -> None:
    """127/128 of 1 GiB at 400 GB/s, and at most 127 hops of 0.7 or 2.6 us and a pause or two in them."""
    instance = made(**H100, boxes=16)
    record = synth.solve(instance, method="ring", time_limit=60)
    assert record.value is not None
    least = 127 / 128 * 2**30 / 400e9
    assert least < record.value < least * 1.25
    assert "8 rings of 400 GB/s" in str(record["message"])
    assert synth.check(record, instance).ok
