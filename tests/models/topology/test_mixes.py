"""Mixes of collectives, rates by kind of link, what has failed: by hand, by all topologies of tiny plants, forged."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.topology.brute_force import every_matrix, least_load

import synth
from synth.errors import InputError
from synth.instance import parse
from synth.options import RunOptions
from synth.schedule.collective import NAMES
from synth.schedule.on_links import OnLinks
from synth.text.input_file import InputFile
from synth_models.topology.bounds.anywhere import least_length, strongest
from synth_models.topology.check.certificates import check_bound
from synth_models.topology.check.levels import least_hops
from synth_models.topology.check.replay import check_topology
from synth_models.topology.instance import Cubes, TopologyInstance
from synth_models.topology.parts.completion import completed
from synth_models.topology.parts.links import links_of
from synth_models.topology.parts.routing import routed
from synth_models.topology.solution import Topology, pack, unpack
from synth_models.topology.views.from_table import from_table

MIX = "allreduce:4KiB:60%,alltoall:1KiB:40%"
FOUR = {"nodes": 4, "degree": 2, "bandwidth": "1GB/s", "circuit_latency": "1us"}


def made(**keys: object) -> TopologyInstance:
    instance = synth.make("topology", **keys)
    assert isinstance(instance, TopologyInstance)
    return instance


def simple_graphs(nodes: int, links: int) -> list[np.ndarray[Any, Any]]:
    """All ways to join nodes, parallel links too, none of more than two links, all joined: rows of circuits."""
    pairs = [(0, u, v) for u in range(nodes) for v in range(u + 1, nodes)]
    found = []
    for chosen in combinations_with_replacement(pairs, links):
        rows = np.array(chosen)
        reached = {0}
        for _ in range(nodes):
            reached |= {v for _, *ends in chosen if reached & set(ends) for v in ends}
        if np.bincount(rows[:, 1:].ravel(), minlength=nodes).max() <= 2 and len(reached) == nodes:
            found.append(rows)
    return found


@pytest.fixture(scope="module")
def ring() -> tuple[TopologyInstance, Topology]:
    """Four nodes of degree 2 and the best schedules of a ring."""
    instance = made(mix=MIX, **FOUR)
    found = completed(instance, np.array([[0, 0, 1], [0, 1, 2], [0, 2, 3], [0, 3, 0]]), RunOptions(60.0))
    assert found is not None
    return instance, found


def test_a_ring_of_four_by_hand(ring: tuple[TopologyInstance, Topology]) -> None:
    """8 arcs of 1 GB/s. An allreduce of 4,096 bytes takes 2 * 3 * 4096 / 8e9 = 3.072 us and 1 us for the last byte, an
    all-to-all of 1,024 bytes 4 * (1 + 1 + 2) hops * 256 / 8e9 = 0.512 us, and 1 us; the diameter is 2, so 2 us."""
    instance, topology = ring
    least = Fraction(6, 10) * Fraction(4072, 10**9) + Fraction(4, 10) * Fraction(2, 10**6)
    bound, _, certificate = strongest(instance)
    assert bound == least
    assert certificate == {"argument": "mix", "parts": [{"argument": "traffic"}, {"argument": "depth"}]}
    assert check_bound(instance, float(bound), certificate) == []
    verdict = check_topology(instance, topology)
    assert verdict.ok, verdict.faults
    first, second = verdict.facts["times_s"]
    assert verdict.value == pytest.approx(0.6 * first + 0.4 * second)
    assert float(bound) <= verdict.value
    assert 2e-6 < second < 2.6e-6  # what crosses two arcs goes first on each


def test_no_topology_of_four_nodes_is_below_the_bound() -> None:
    """All 4-node multigraphs of degree 2: what their own bounds prove is no less than the bound for every topology."""
    instance = made(mix=MIX, **FOUR)
    bound, _, _ = strongest(instance)
    every = [rows for links in (3, 4) for rows in simple_graphs(4, links)]
    assert len(every) == 3 + 12  # rings, and paths of three links
    for rows in every[::5]:
        asked = [OnLinks.of(links_of(instance, rows), "t", one.collective, one.bytes) for one in instance.mix or ()]
        own = [one.solved("bound", RunOptions(5.0)).bound or 0.0 for one in asked]
        assert 0.6 * own[0] + 0.4 * own[1] >= float(bound) - 1e-15


@pytest.mark.parametrize("collective", NAMES)
@pytest.mark.parametrize(
    "keys", [{"nodes": 5, "degree": 2}, {"cubes": 2, "sides": "2"}, {"nodes": 3, "degree": 2, "one_way": True}]
)
def test_every_collective_is_bounded_and_counted_again(collective: str, keys: dict[str, Any]) -> None:
    """Large or small; the bound is below what a ring, which all these can be, proves of itself; more is refused."""
    for size in (60,) if keys.get("cubes") else (600_000,):
        instance = made(mix=f"{collective}:{size}:1", bandwidth="1GB/s", circuit_bandwidth="500MB/s", **keys)
        bound, _, certificate = strongest(instance)
        assert bound > 0
        assert check_bound(instance, float(bound), certificate) == []
        assert "proves" in check_bound(instance, float(bound) * (1 + 1e-12), certificate)[0]
        plant = instance.plant
        n = instance.nodes
        rows = [[0, 0, 1], [0, 1, 0]] if isinstance(plant, Cubes) else [[0, u, (u + 1) % n] for u in range(n)]
        asked = OnLinks.of(links_of(instance, np.array(rows)), "t", collective, size)
        assert (asked.solved("bound", RunOptions(0.5)).bound or 0.0) >= float(bound) * (1 - 1e-12)


@pytest.mark.parametrize(
    ("forged", "words"),
    [
        ({"argument": "levels"}, "by the argument mix"),
        ({"argument": "mix"}, "broken"),
        ({"argument": "mix", "parts": [{"argument": "traffic"}]}, "2 arguments"),
        ({"argument": "mix", "parts": [{"argument": "traffic"}, None]}, "2 arguments"),
        ({"argument": "mix", "parts": [{"argument": "traffic"}, {"argument": "faith"}]}, "broken"),
        ({"argument": "mix", "parts": [{"argument": "depth"}, {"argument": "depth"}]}, "proves"),
        ({"argument": "mix", "parts": [{"argument": "traffic"}, {"argument": "cut", "inside": [0, 0]}]}, "each once"),
        ({"argument": "mix", "parts": [{"argument": "traffic"}, {"argument": "cut", "inside": [9]}]}, "broken"),
    ],
)
def test_forged_bounds_are_refused(forged: dict[str, Any], words: str, ring: tuple[TopologyInstance, Topology]) -> None:
    instance, _ = ring
    assert words in check_bound(instance, float(strongest(instance)[0]), forged)[0]


@pytest.mark.parametrize(("collective", "hops"), [("broadcast", 3), ("scatter", 3), ("reduce", 1), ("gather", 1)])
def test_what_ends_at_the_root_is_as_deep_as_the_ways_to_it(collective: str, hops: int) -> None:
    """From node 0 a chain leads out, and from each of its nodes one link back."""
    links = [[0, 1], [1, 2], [2, 3], [1, 0], [2, 0], [3, 0]]
    plant = {"kind": "switches", "nodes": 4, "links": links, "one_way": True}
    rest = {"mix": [{"collective": collective, "bytes": 4, "weight": 1}], "latency": 1.0, "bandwidth": 1e9}
    raw = json.loads(made(nodes=4, degree=2).to_json()) | {"plant": plant, "objective": "mix"} | rest
    instance = parse(raw, TopologyInstance, "t")
    depth = {"argument": "mix", "parts": [{"argument": "depth"}]}
    assert check_bound(instance, hops, depth) == []
    assert "proves" in check_bound(instance, hops + 1e-9, depth)[0]
    assert hops <= strongest(instance)[0] < hops + 1e-6


def test_cubes_in_a_long_chain_are_counted_by_both() -> None:
    """One switch of twelve works: 512 cubes of 8 nodes are at best a ring of 512 joined at two corners."""
    raw = json.loads(made(cubes=512, sides="2x2x2", failed_switches=",".join(map(str, range(1, 12)))).to_json())
    instance = parse(raw, TopologyInstance, "t")
    certificate = {"argument": "levels", "lengths": [7, 8]}
    assert least_hops(instance, 7, 8) == least_length(instance, (7, 8))
    assert "proves" in check_bound(instance, 1e9, certificate)[0]
    assert "broken" in check_bound(instance, 1.0, certificate | {"lengths": [7, 9]})[0]


def test_a_certificate_of_a_mix_is_no_bound_of_a_load() -> None:
    certificate = {"argument": "mix", "parts": []}
    assert "broken" in check_bound(made(nodes=4, degree=2), 1.0, certificate)[0]


def test_each_way_to_break_a_mix_is_named(ring: tuple[TopologyInstance, Topology]) -> None:
    instance, topology = ring
    first, second = topology.schedules
    flow = np.array([[0, 0, 1, 1]])
    broken = {
        "1 schedules of 2": replace(topology, schedules=(first,)),
        "schedule 1, alltoall of 1024 bytes: the stored schedule cannot": replace(topology, schedules=(first, {})),
        "schedule 0, allreduce": replace(topology, schedules=(second, second)),
        "what nobody reads: hope": replace(topology, schedules=(first, {**second, "hope": 1})),
        "no path leads": replace(topology, circuits=topology.circuits[:2]),
        "a routing is of the objective load": replace(topology, flow=flow),
    }
    for words, wrong in broken.items():
        verdict = check_topology(instance, wrong)
        assert verdict.value is None
        assert words in "; ".join(verdict.faults)
    late = {**second, "start_steps": np.concatenate([[7], second["start_steps"][1:]])}
    assert (
        check_topology(instance, replace(topology, schedules=(first, late))).value
        != check_topology(instance, topology).value
    )
    loads = check_topology(made(**FOUR), topology)
    assert "schedules are of the objective mix" in loads.faults[0]


def test_a_mix_comes_back_as_it_was_stored(ring: tuple[TopologyInstance, Topology]) -> None:
    instance, topology = ring
    again = unpack(instance, pack(topology))
    assert check_topology(instance, again).value == check_topology(instance, topology).value
    assert all(a.keys() == b.keys() for a, b in zip(again.schedules, topology.schedules, strict=True))
    assert check_topology(
        instance, unpack(instance, {k: v for k, v in pack(topology).items() if "schedule1" not in k})
    ).faults


def test_a_table_of_circuits_is_no_mix(ring: tuple[TopologyInstance, Topology], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("switch,sends,receives\n0,0,1\n")
    with pytest.raises(InputError, match="holds no schedules"):
        from_table(ring[0], InputFile(tmp_path / "t.csv"))


def test_methods_make_a_mix_that_the_check_accepts(tmp_path: Path) -> None:
    """Published and ours on six nodes; a stored record is checked again."""
    file = tmp_path / "t.json"
    file.write_text(made(mix="allreduce:6MiB:1,alltoall:6MiB:1", nodes=6, degree=3).to_json())
    instance = synth.read(file)
    bound = synth.solve(instance, "bound")
    assert bound.ok
    for method, options in (("circulant", {}), ("search", {"moves": 20, "starts": 1})):
        record = synth.solve(instance, method, time_limit=6, options=options, results=tmp_path)
        assert record.ok
        assert synth.check(record).ok
        assert record.value is not None
        assert bound.bound is not None
        assert bound.bound <= record.value <= 1.5 * bound.bound
    assert synth.solve(instance, "milp").data["termination"] == "unsupported"


def test_loads_are_divided_by_rates() -> None:
    """Two squares, circuits at half the rate: every topology's least load by the program over doubled links."""
    instance = made(cubes=2, sides="2x2", circuit_bandwidth="64GB/s")
    whole = made(cubes=2, sides="2x2")
    assert instance.weights == (2, 1)
    assert instance.most_rate == len(instance.fixed) * 2 + 8
    (_, alike), *_ = every_matrix(whole)
    best = float("inf")
    for chosen, matrix in every_matrix(whole):
        rows = np.array([(w, i, j) for w, order in enumerate(chosen) for i, j in enumerate(order)])
        fixed = np.zeros_like(alike)
        for u, v in whole.fixed:
            fixed[u, v] = fixed[v, u] = 1
        least = 2 * least_load(2 * fixed + (matrix - fixed))
        best = min(best, least)
        found = routed(instance, rows, RunOptions(time_limit_s=None))
        if found is None:
            assert least == float("inf")
            continue
        assert float(found[0]) == pytest.approx(least, rel=1e-5)
        assert check_topology(instance, found[1]).value == pytest.approx(float(found[0]))
    bound, _, certificate = strongest(instance)
    assert float(bound) <= best + 1e-9
    assert check_bound(instance, float(bound), certificate) == []
    assert check_bound(whole, float(bound), certificate) != []
    assert synth.solve(instance, "milp").value == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("method", ["torus", "twisted", "search"])
def test_with_a_failed_switch_link_and_cube_methods_use_the_rest(method: str) -> None:
    keys: dict[str, object] = {
        "cubes": 3,
        "sides": "2x2",
        "failed_cubes": "1",
        "failed_switches": "0",
        "failed_links": "8-9",
    }
    instance = made(**keys)
    assert isinstance(instance.plant, Cubes)
    assert (instance.plant.cubes, instance.plant.failed, instance.plant.failed_links) == (2, (0,), ((4, 5),))
    assert len(instance.fixed) == 7
    assert "The cubes that are left, 0, 2" in instance.source
    record = synth.solve(instance, method, options={"moves": 30} if method == "search" else {})
    assert record.ok
    assert record.value is not None
    assert record.value >= float(strongest(instance)[0]) - 1e-9


def test_a_failed_link_loads_the_others_more_in_every_topology() -> None:
    whole, broken = (made(cubes=2, sides="2x2", failed_links=links) for links in ("", "0-1"))
    best = [min(float(routed(one, rows, RunOptions(None))[0]) for rows in _rows(one)) for one in (whole, broken)]  # type: ignore[index]
    assert best[0] < best[1]
    assert float(strongest(broken)[0]) <= best[1]


def _rows(instance: TopologyInstance) -> list[Any]:
    chosen = [chosen for chosen, matrix in every_matrix(instance) if least_load(matrix) < float("inf")]
    return [np.array([(w, i, j) for w, order in enumerate(one) for i, j in enumerate(order)]) for one in chosen]


BUDGET = {"kind": "degree", "nodes": 4, "degree": 2, "links": [[0, 1], [0, 1]]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"objective": "mix"}, ["mix: is missing"]),
        ({"mix": [{"collective": "alltoall", "bytes": 8, "weight": 1}]}, ["mix: has no meaning with the objective"]),
        (
            {"objective": "mix", "mix": [{"collective": "magic", "bytes": 0, "weight": -1}]},
            ["mix[0].collective = 'magic'", "mix[0].bytes = 0", "mix[0].weight = -1: must be > 0"],
        ),
        (
            {"objective": "mix", "mix": [{"collective": "alltoall", "bytes": 9, "weight": 1}] * 2},
            ["mix[1]: alltoall of 9 bytes stands twice", "mix[0].bytes = 9: does not divide among 4 nodes"],
        ),
        ({"circuit_bandwidth": 0}, ["circuit_bandwidth = 0: must be >= 0.001"]),
        ({"circuit_latency": 1e308, "bandwidth": 1e300}, ["circuit_latency = 1e+308: must", "bandwidth = 1e+300"]),
        ({"circuit_bandwidth": 1.000000001e9, "bandwidth": 1e9}, ["no ratio of whole numbers up to 1000000"]),
        ({"plant": BUDGET}, ["no link and no circuit can join node 0 and these: 2, 3"]),
        ({"plant": {"kind": "cubes", "sides": [2, 2], "cubes": 2, "failed_links": [[0, 3], [0, 1], [1, 0]]}},
         ["nodes 0 and 3 have no link inside a cube", "nodes 1 and 0 stands twice"]),
    ],
)  # fmt: skip
def test_faults_are_named_all_at_once(changes: dict[str, Any], words: list[str]) -> None:
    raw = json.loads(made(nodes=4, degree=2).to_json()) | changes
    with pytest.raises(InputError) as caught:
        parse(raw, TopologyInstance, "t")
    for one in words:
        assert one in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"nodes": 4, "degree": 2, "mix": "allreduc:1KiB:1,alltoall:1KiB:-4%,a:b"},
         ["unknown collective; did you mean allreduce", "weight: must be a number above 0", "'a:b' must be"]),
        ({"nodes": 4, "degree": 2, "mix": "alltoall:zero:1"}, ["'alltoall:zero:1', bytes"]),
        ({"nodes": 4, "degree": 2, "mix": "alltoall:4:1e999999999"}, ["weight: must be a number above 0"]),
        ({"cubes": 10**30}, ["cubes"]),
        ({"cubes": 2, "failed_cubes": "0,1"}, ["leaves no cube"]),
        ({"cubes": 2, "failed_cubes": "1,1,5"}, ["a cube stands twice", "no cube 5"]),
        ({"cubes": 2, "failed_links": "0"}, ["must be pairs of nodes"]),
        ({"cubes": 2, "failed_links": "0-999"}, ["no node 999"]),
        ({"nodes": 4, "degree": 2, "failed_cubes": "0"}, ["has no meaning with nodes="]),
    ],
)  # fmt: skip
def test_faults_of_keys(keys: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        synth.make("topology", **keys)
    for one in words:
        assert one in str(caught.value)
