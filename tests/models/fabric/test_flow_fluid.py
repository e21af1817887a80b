"""``flow``'s fluid optimum against a program over all simple paths, written from the problem statement alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

from synth.options import RunOptions
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.node_symmetries import identity, symmetries
from synth_models.fabric.problem.automorphism import automorphism
from synth_models.fabric.programs.flow.arcs import arcs_of
from synth_models.fabric.programs.flow.certified_bound import certified
from synth_models.fabric.programs.flow.fluid_optimum import fluid_optimum

OPTIONS = RunOptions(time_limit_s=60.0)


def instance_of(network: dict[str, Any], collective: str, size: int, **own: Any) -> FabricInstance:
    raw = {"name": "t", "source": "test", "network": network, "collective": collective, "bytes": size} | own
    return FabricInstance.model_validate(raw)


def random_instance(seed: int) -> FabricInstance:
    """Up to four ranks and two switches, links both ways or one way, parallel links, groups; some demand."""
    draw = random.Random(seed)
    while True:
        ranks, switches = draw.randint(2, 4), draw.randint(0, 2)
        nodes = list(range(ranks + switches))
        links, latencies = [], draw.choice([[0.0], [0.0, 0.5, 1.0]])
        for _ in range(draw.randint(2, 9)):
            u, v = draw.sample(nodes, 2)
            group = draw.choice([None, None, None, "a", "b"])
            row = {"bandwidth": float(draw.choice([1, 2, 3, 5])), "latency": draw.choice(latencies)}
            for tail, head in [(u, v), (v, u)] if draw.random() < 0.7 else [(u, v)]:
                links.append({"src": tail, "dst": head} | row | ({"group": group} if group else {}))
        collective = draw.choice(["alltoall", "scatter", "gather", "demand", "demand"])
        own: dict[str, Any] = {}
        size = 12 * draw.randint(1, 9)
        if collective == "demand":
            pairs = draw.sample([(u, v) for u in range(ranks) for v in range(ranks) if u != v], draw.randint(1, 2))
            rows = [(u, v, draw.choice([1, 7, 1000, 10**6])) for u, v in pairs for _ in range(draw.randint(1, 2))]
            own["demand"], size = rows, sum(row[2] for row in rows)
        own["switching"] = {"mode": draw.choice(["cut_through", "store_and_forward"])}
        network = {"kind": "links", "nodes": len(nodes), "switches": nodes[ranks:], "links": links}
        try:
            return instance_of(network, collective, size, **own)
        except ValueError:  # ranks that cannot reach each other: another one
            continue


def simple_paths(instance: FabricInstance, u: int, v: int) -> Iterator[list[int]]:
    """All paths as links, every choice of parallel links."""
    machine, graph = instance.machine, nx.MultiDiGraph()
    graph.add_nodes_from(range(machine.nodes))
    for e, (a, b) in enumerate(zip(machine.network.src.tolist(), machine.network.dst.tolist(), strict=True)):
        graph.add_edge(a, b, key=e)
    for path in nx.all_simple_edge_paths(graph, u, v):
        yield [e for _, _, e in path]


def seconds_per_byte(instance: FabricInstance, path: list[int]) -> dict[Any, float]:
    """What a byte on this path takes of every link, and of every group: from rank to rank the longest of its links
    there (they are held at once), or the sum of all where switches store and forward."""
    machine = instance.machine
    used: dict[Any, float] = {}
    hops: list[list[int]] = [[]]
    for e in path:
        hops[-1].append(e)
        if not machine.is_switch[machine.network.dst[e]] or instance.switching.mode == "store_and_forward":
            hops.append([])
    for hop in hops:
        held: dict[Any, float] = {}
        for e in hop:
            used["link", e] = used.get(("link", e), 0.0) + 1 / machine.network.bandwidth[e]
            if machine.group[e] >= 0:
                key = ("group", int(machine.group[e]))
                held[key] = max(held.get(key, 0.0), 1 / machine.network.bandwidth[e])
        for key, seconds in held.items():
            used[key] = used.get(key, 0.0) + seconds
    return used


def least_time(instance: FabricInstance) -> float:
    """The fluid optimum over all simple paths."""
    columns = [
        (b, seconds_per_byte(instance, path))
        for b, (u, v) in enumerate(zip(instance.blocks.origin.tolist(), instance.blocks.goal.tolist(), strict=True))
        for path in simple_paths(instance, u, v)
    ]
    rows = {key: i for i, key in enumerate(sorted({key for _, used in columns for key in used}))}
    limit = np.zeros((len(rows), len(columns) + 1))
    limit[:, -1] = -1
    whole = np.zeros((len(instance.blocks), len(columns) + 1))
    for j, (b, used) in enumerate(columns):
        whole[b, j] = 1
        for key, seconds in used.items():
            limit[rows[key], j] = seconds * instance.blocks.bytes[b]
    cost = np.zeros(len(columns) + 1)
    cost[-1] = 1
    result = linprog(cost, A_ub=limit, b_ub=np.zeros(len(rows)), A_eq=whole, b_eq=np.ones(len(whole)), method="highs")
    assert result.status == 0
    return float(result.fun)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("first", [0, 50, *(pytest.param(n, marks=pytest.mark.slow) for n in range(100, 300, 50))])
def test_fluid_optimum_is_that_of_all_simple_paths(first: int) -> None:
    for seed in range(first, first + 50):
        instance = random_instance(seed)
        fluid = fluid_optimum(instance, OPTIONS)
        assert fluid is not None
        assert fluid.time == pytest.approx(least_time(instance), rel=1e-6), seed
        assert fluid.price.sum() == pytest.approx(1.0)
        proven = certified(instance, fluid.price)
        assert proven is not None
        assert check_bound(instance, proven.seconds, proven.certificate) == []
        once = arcs_of(instance.machine, instance.switching.mode).states == instance.machine.nodes
        if once and not instance.machine.network.latency.any():  # prices of links cannot say that a group is held once
            assert proven.seconds == pytest.approx(fluid.time, rel=1e-6), seed
        for _, routes in fluid.routings:
            assert_joined(instance, routes)


def assert_joined(instance: FabricInstance, routes: Any) -> None:
    """Every path leads from its source to its goal; the shares of a pair sum to 1; every pair has some."""
    net = instance.machine.network
    total: dict[tuple[int, int], float] = {}
    for i in range(len(routes)):
        links = routes.link[routes.start[i] : routes.start[i + 1]]
        assert net.src[links[0]] == routes.source[i]
        assert net.dst[links[-1]] == routes.goal[i]
        assert all(net.dst[a] == net.src[b] for a, b in pairwise(links))
        assert len({*net.src[links].tolist(), int(net.dst[links[-1]])}) == len(links) + 1
        pair = int(routes.source[i]), int(routes.goal[i])
        total[pair] = total.get(pair, 0.0) + routes.share[i]
    assert set(total) == set(zip(instance.blocks.origin.tolist(), instance.blocks.goal.tolist(), strict=True))
    assert all(value == pytest.approx(1.0) for value in total.values())


def test_dgx1_alltoall_takes_a_75th_of_a_second() -> None:
    """8 ranks, 0.125 GB a pair, links of 50 and 25 GB/s: 13.333 ms."""
    instance = instance_of({"kind": "machine", "name": "dgx1"}, "alltoall", 10**9)
    fluid = fluid_optimum(instance, OPTIONS)
    assert fluid is not None
    assert fluid.time == pytest.approx(1 / 75, rel=1e-9)
    proven = certified(instance, fluid.price)
    assert proven is not None
    assert 1 / 75 <= proven.seconds < 1 / 75 + 1e-6  # the first bytes' latency on top


def test_16_gpus_of_two_ndv2_cannot_exchange_1_gb_in_less_than_320_ms() -> None:
    """Eight ranks of a box send 8/16 GB each to the other over one link of 12.5 GB/s: 4 GB / 12.5 GB/s."""
    mode = {"mode": "store_and_forward"}
    instance = instance_of({"kind": "machine", "name": "teccl-ndv2-2-16"}, "alltoall", 10**9, switching=mode)
    fluid = fluid_optimum(instance, OPTIONS)
    assert fluid is not None
    assert fluid.time == pytest.approx(0.32, rel=1e-9)


def test_bus_is_held_once_by_a_transfer_that_crosses_it() -> None:
    """Two ranks exchange 10 bytes over a bus of 1 byte/s: 20 s, though each byte goes in and out of it."""
    rows = [{"src": u, "dst": v, "bandwidth": 1.0, "group": "bus"} for u, v in ((0, 2), (1, 2), (2, 0), (2, 1))]
    network = {"kind": "links", "nodes": 3, "switches": [2], "links": rows}
    instance = instance_of(network, "alltoall", 20)
    fluid = fluid_optimum(instance, OPTIONS)
    assert fluid is not None
    assert fluid.time == pytest.approx(20.0)
    stored = fluid_optimum(instance_of(network, "alltoall", 20, switching={"mode": "store_and_forward"}), OPTIONS)
    assert stored is not None
    assert stored.time == pytest.approx(40.0)


SYMMETRIC: list[tuple[dict[str, Any], int]] = [
    ({"kind": "ring", "nodes": 5}, 5),
    ({"kind": "torus", "rows": 3, "cols": 4}, 12),
    ({"kind": "mesh", "rows": 3, "cols": 4}, 4),
    ({"kind": "hypercube", "dimension": 3}, 8),
    ({"kind": "star", "nodes": 6}, 6),
    ({"kind": "fat_tree", "leaves": 3, "hosts": 2, "spines": 2}, 6),
    ({"kind": "machine", "name": "dgx-a100", "boxes": 2}, 16),
    ({"kind": "machine", "name": "dgx1", "boxes": 3}, 3),
]


@pytest.mark.parametrize(("network", "least"), SYMMETRIC, ids=lambda value: str(value))
def test_folded_flow_is_as_fast_as_the_whole(
    network: dict[str, Any], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = 720720  # divides by all numbers of ranks here
    instance = instance_of(network, "alltoall", members)
    group = symmetries(instance)
    assert len(group) >= least
    folded = fluid_optimum(instance, OPTIONS)
    monkeypatch.setattr(
        "synth_models.fabric.programs.flow.fluid_optimum.symmetries", lambda instance: identity(instance.machine)
    )
    whole = fluid_optimum(instance, OPTIONS)
    assert folded is not None
    assert whole is not None
    assert folded.commodities < whole.commodities
    assert folded.time == pytest.approx(whole.time, rel=1e-7)
    assert_joined(instance, folded.routes)


def test_symmetries_keep_every_link() -> None:
    """Images of links join the images of their ends and are as fast; a failed link breaks the rotation."""
    instance = instance_of({"kind": "fat_tree", "leaves": 4, "hosts": 3, "spines": 3}, "alltoall", 12)
    net, group = instance.machine.network, symmetries(instance)
    for node, link in zip(group.node, group.link, strict=True):
        assert np.array_equal(net.src[link], node[net.src])
        assert np.array_equal(net.dst[link], node[net.dst])
        assert np.array_equal(net.bandwidth[link], net.bandwidth)
    ring = instance_of({"kind": "ring", "nodes": 6}, "alltoall", 6, failed={"links": [[0, 1]]})
    members = np.arange(6)
    assert automorphism(ring.machine, members, (members + 1) % 6) is None


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter"])
@pytest.mark.parametrize(("network", "least"), SYMMETRIC, ids=lambda value: str(value))
def test_what_everyone_wants_is_kept_by_what_keeps_pairs(network: dict[str, Any], least: int, collective: str) -> None:
    """An allgather looks the same to all ranks, as an alltoall does: no renumbering is lost to it."""
    assert len(symmetries(instance_of(network, collective, 720720))) >= least


def test_states_of_a_switch_are_told_apart_only_where_a_group_is_crossed_twice() -> None:
    plain = instance_of({"kind": "star", "nodes": 4}, "alltoall", 4)
    assert arcs_of(plain.machine, "cut_through").states == 5
    rows = [{"src": u, "dst": v, "bandwidth": 1.0, "group": "bus"} for u, v in ((0, 2), (1, 2), (2, 0), (2, 1))]
    bus = instance_of({"kind": "links", "nodes": 3, "switches": [2], "links": rows}, "alltoall", 20)
    assert arcs_of(bus.machine, "cut_through").states == 4
    assert arcs_of(bus.machine, "store_and_forward").states == 3


@pytest.mark.long
def test_programs_that_grow_by_columns_find_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begun with one route a pair, on random machines and a mesh; what the last prices prove meets the flow."""
    cases = [random_instance(seed) for seed in range(2000, 2040)]
    cases.append(instance_of({"kind": "mesh", "rows": 3, "cols": 5}, "alltoall", 15000, failed={"links": [[0, 1]]}))
    whole = [fluid_optimum(instance, OPTIONS) for instance in cases]
    monkeypatch.setattr("synth_models.fabric.programs.flow.fluid_optimum.WHOLE_UP_TO", 0)
    for direct in (0, 10**6):
        monkeypatch.setattr("synth_models.fabric.programs.flow.fluid_optimum.NEARER_UP_TO", direct)
        for instance, known in zip(cases, whole, strict=True):
            grown = fluid_optimum(instance, OPTIONS)
            assert known is not None
            assert grown is not None
            assert grown.time == pytest.approx(known.time, rel=1e-7)
            assert grown.least == pytest.approx(grown.time, rel=1e-7)


def test_no_time_for_the_program_is_said() -> None:
    instance = instance_of({"kind": "mesh", "rows": 6, "cols": 6}, "alltoall", 36)
    fluid = fluid_optimum(instance, RunOptions(time_limit_s=1e-6))
    assert fluid is None or fluid.least <= fluid.time * (1 + 1e-9)
