"""Certificates of bounds: wrong ones are refused, odd values raise nothing, and every argument knows where it holds."""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
import pytest
from examples import some_of
from models.fabric.small_machines import machine
from models.odd_values import ODDER, mutants

from synth.options import RunOptions
from synth_models.fabric.bounds.strongest import solve
from synth_models.fabric.check import payments
from synth_models.fabric.check.arguments import gossip
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.instance import FabricInstance

STAR = {"kind": "star", "nodes": 4, "bandwidth": 1e9, "latency": 1e-6}
SLOW_SUMS = {"multicast": True, "adds": True, "add_rate": 4e8}
DRAGONFLY = {"kind": "dragonfly", "groups": 3, "routers": 2, "hosts": 2, "bandwidth": 25e9, "latency": 1e-6}
RING = {"kind": "ring", "nodes": 4, "bandwidth": 1e9, "latency": 1e-6}


def instance_of(network: dict[str, Any], collective: str, size: int = 4000, **own: Any) -> FabricInstance:
    return FabricInstance.model_validate(
        {"name": "t", "source": "test", "network": network, "collective": collective, "bytes": size} | own
    )


CASES = {
    "cut": instance_of(RING, "allgather"),
    "prices": instance_of(RING, "alltoall", 4_000_000),
    "gossip": instance_of(STAR, "allreduce", 4_000_000),
    "partition": instance_of(RING, "allreduce", 4_000_000),
    "sum_rates": instance_of(STAR, "allreduce", 4_000_000, switching=SLOW_SUMS),
    "deliveries": instance_of(STAR, "broadcast", 400),
    "sums": instance_of(STAR, "allreduce", 400),
    "moments": instance_of(STAR, "broadcast", 3000),
    "near_goals": instance_of(DRAGONFLY, "broadcast", 65_536),
}


def proven(name: str) -> tuple[FabricInstance, float, dict[str, Any]]:
    instance = CASES[name]
    outcome = solve(instance, RunOptions())
    assert outcome.bound is not None
    assert outcome.certificate is not None
    return instance, outcome.bound, json.loads(json.dumps(dict(outcome.certificate)))


@pytest.mark.parametrize("name", CASES)
def test_each_argument_is_the_strongest_somewhere(name: str) -> None:
    instance, bound, certificate = proven(name)
    assert certificate["argument"] == name
    assert check_bound(instance, bound, certificate) == []
    assert check_bound(instance, 0.0, certificate) == []
    for wrong in (bound * (1 + 1e-9), bound * 2, -1.0, float("nan"), float("inf")):
        assert check_bound(instance, wrong, certificate) != []


def fields(certificate: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all fields, those of windows too."""
    for key, value in certificate.items() if isinstance(certificate, dict) else enumerate(certificate):
        yield (*path, key)
        if key == "windows" or path[-1:] == ("windows",):
            yield from fields(value, (*path, key))


@pytest.mark.long(after=3)
@pytest.mark.parametrize("name", CASES)
def test_odd_values(name: str) -> None:
    """Whatever stands in a field, the check returns faults or finds the bound proven; it never raises."""
    instance, bound, certificate = proven(name)
    for path in fields(certificate):
        inner = certificate
        for key in path[:-1]:
            inner = inner[key]
        plain = not isinstance(inner[path[-1]], dict) and path[-1] != "windows"
        for odd in mutants(inner[path[-1]]) if plain else ODDER:
            other = copy.deepcopy(certificate)
            place = other
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = odd
            assert isinstance(check_bound(instance, bound, other), list)
            assert check_bound(instance, bound * 1.5, other) != [], (path, odd)
        if isinstance(inner, dict):
            other = copy.deepcopy(certificate)
            place = other
            for key in path[:-1]:
                place = place[key]
            del place[path[-1]]
            assert check_bound(instance, bound, other) != []
    for nothing in ({}, [], None, {"argument": "nothing"}, {"argument": "trust me"}):
        assert check_bound(instance, bound, nothing) != []  # type: ignore[arg-type]


@pytest.mark.long(after=2)
@pytest.mark.parametrize("name", CASES)
def test_no_certificate_proves_more_than_the_best(name: str) -> None:
    """Random prices, sets and partitions prove at most a little more than the search found (its prices are rounded)."""
    instance, bound, certificate = proven(name)
    rng, links = np.random.default_rng(1), instance.machine.links
    nodes, members = instance.machine.nodes, list(instance.members)
    for _ in range(300):
        other = copy.deepcopy(certificate)
        if "length" in other:
            other["length"] = rng.integers(0, 4, links).tolist()
        if "windows" in other:
            for window in other["windows"]:
                window["length"] = rng.integers(0, 4, links).tolist()
        if "since" in other:
            other["since"] = (np.array(other["since"]) * rng.integers(1, 3, len(other["since"]))).tolist()
            other["weight"] = rng.integers(1, 4, len(other["weight"])).tolist()
        if "part" in other:
            other["part"] = rng.integers(0, nodes, nodes).tolist()
        if "inside" in other:
            inside = rng.random(nodes) < 0.5
            other["inside"] = np.flatnonzero(inside).tolist()
            other["origins"] = [v for v in members if inside[v]]
            other["goals"] = [v for v in members if not inside[v]]
        assert check_bound(instance, bound * (1 + 1e-6), other) != []


@pytest.mark.long
def test_arguments_hold_only_where_they_hold() -> None:
    """Copies in switches, ranks that only forward, and other collectives refute what was proven without them."""
    for name, other in (
        ("gossip", {"switching": {"multicast": True}}),
        ("sums", {"switching": {"multicast": True}}),
        ("deliveries", {"switching": {"multicast": True}}),
        ("deliveries", {"switching": {"mode": "store_and_forward", "copies": True}}),
        ("gossip", {"ranks": [0, 1, 2], "relay": True}),
        ("gossip", {"collective": "allgather"}),
        ("partition", {"collective": "allgather"}),
        ("prices", {"collective": "allgather"}),
        ("sums", {"collective": "reduce_scatter"}),
        ("deliveries", {"collective": "allreduce"}),
        ("deliveries", {"collective": "reduce"}),
    ):
        instance, bound, certificate = proven(name)
        raw = instance.model_dump(mode="json", exclude_none=True) | other
        raw["bytes"] = raw["bytes"] // 12 * 12
        faults = check_bound(FabricInstance.model_validate(raw), bound / 100, certificate)
        assert [fault for fault in faults if "broken" in fault], (name, other)


@pytest.mark.parametrize("seed", some_of(range(40)))
def test_spanning_trees_of_members_without_their_distances(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random machines and prices, many of them 0: what a byte pays at least is twice the spanning tree found by all
    distances; where prices are not the same both ways and members are too many for that, never more."""
    draw = random.Random(seed)
    nodes = draw.randint(3, 14)
    ranks = draw.randint(2, nodes)
    order = [(v, draw.randrange(v)) for v in range(1, nodes)]
    extra = [tuple(draw.sample(range(nodes), 2)) for _ in range(draw.randint(0, 2 * nodes))]
    pairs = sorted({(max(pair), min(pair)) for pair in order + extra})
    links = [(a, b, 1.0, 0.0) for u, v in pairs for a, b in ((u, v), (v, u))]
    numbers = list(range(nodes))
    draw.shuffle(numbers)
    links = [(numbers[u], numbers[v], b, a) for u, v, b, a in links]
    switches = [v for v in range(nodes) if v >= ranks]
    instance = machine(nodes, links, switches, collective="allreduce", bytes=1)
    same = draw.random() < 0.5
    price = {}
    for u, v, _, _ in links:
        price[u, v] = price[v, u] if same and (v, u) in price else draw.choice([0, 0, 1, 2, 5])
    net = instance.machine.network
    length = [price[u, v] for u, v in zip(net.src.tolist(), net.dst.tolist(), strict=True)]
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((u, v, cost) for (u, v), cost in price.items())
    apart = dict(nx.all_pairs_dijkstra_path_length(graph))
    closure = nx.Graph()
    for u, v in itertools.combinations(range(ranks), 2):
        closure.add_edge(u, v, weight=min(apart[u][v], apart[v][u]))
    least = nx.minimum_spanning_tree(closure).size(weight="weight")
    asked, _ = gossip(instance, {"length": length})
    assert asked == 2 * least
    monkeypatch.setattr(payments, "MOST_IN_PAIRS", 1)
    found, _ = gossip(instance, {"length": length})
    assert found <= asked
    assert found == asked or not same


def test_a_part_without_members_is_refused() -> None:
    instance, bound, _certificate = proven("gossip")
    faults = check_bound(instance, bound / 100, {"argument": "partition", "part": [0, 1, 2, 3, 4]})
    assert faults == ["the certificate is broken: a part has no member"]
    assert check_bound(instance, bound / 100, {"argument": "partition", "part": [0, 1, 2, 3, 0]}) == []


def test_a_group_with_both_hops_of_a_route() -> None:
    """0 -> switch -> 1 over two links of one bus: a transfer that cuts through uses both at once, so a byte takes the
    bus for one byte's time, not two; stored and forwarded it takes it twice."""
    links = [(0, 2, 1.0, 0.0, "bus"), (2, 1, 1.0, 0.0, "bus")]
    own = {"collective": "demand", "demand": [[0, 1, 10]], "bytes": 10}
    at_once = machine(3, links, [2], **own)
    assert solve(at_once, RunOptions()).bound == 10
    stored = machine(3, links, [2], **own, switching={"mode": "store_and_forward"})
    assert solve(stored, RunOptions()).bound == 20
    both = {"argument": "prices", "length": [1, 1], "away_ticks": 0, "ticks_per_s": 1}
    assert check_bound(stored, 20.0, both) == []
    assert check_bound(at_once, 20.0, both) != []


@pytest.mark.parametrize("seed", range(20))
def test_nodes_out_of_place(seed: int) -> None:
    """A cut with a node too many or too few proves the bound only if it is as strong."""
    instance, bound, certificate = proven("cut")
    chooser = random.Random(seed)
    other = copy.deepcopy(certificate)
    key = chooser.choice(["inside", "origins", "goals"])
    other[key] = sorted(set(other[key]) ^ {chooser.randrange(instance.machine.nodes)})
    assert isinstance(check_bound(instance, bound, other), list)
    assert check_bound(instance, bound * (1 + 1e-9), other) != []
