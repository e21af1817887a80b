"""TACCL's, TE-CCL's and ASTRA-sim's files: machines by hand, and against what we took from these tools elsewhere."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from exchange.machines.reading import both_ways, links_of, refused, sample, text_of

from synth.exchange.machines.formats import read_text
from synth.exchange.machines.machine import Hints, Machine
from synth_models.fabric.problem.box_machine import MachineSpec

GB, GIB = 1e9, 2**30
PEERS = Path(__file__).parents[4] / "shared/data/peers/topologies.json"
MACHINES = {"DGX2": ("teccl-dgx2-2", 2), "NDv2-2": ("teccl-ndv2-2", 2), "NDv2-4": ("teccl-ndv2-4", 4)}


def teccl(name: str, **params: Any) -> Machine:
    return read_text(json.dumps({"TopologyParams": {"name": name, **params}}), "input.json")


def test_astra_sim_ring_of_switches() -> None:
    """NPU v has the coordinates (v mod 4, v div 4). Rings of 4 at 50 * 2^30 bytes/s and 500 ns; every two NPUs with the
    same first coordinate hang on a switch at 12.5 * 2^30 bytes/s and 936.25 ns, which is paid up and down."""
    rings = [(f"npu{4 * r + i}", f"npu{4 * r + (i + 1) % 4}", 50.0 * GIB, 5e-7) for r in range(2) for i in range(4)]
    ups = [(f"npu{4 * r + i}", f"dim1.switch{i}", 12.5 * GIB, 936.25e-9) for r in range(2) for i in range(4)]
    machine = sample("torus.yml")
    assert links_of(machine) == both_ways(*rings, *ups)
    assert len(machine.ranks) == 8


def test_astra_sim_full_connection_and_a_ring_of_two() -> None:
    text = "topology: [FullyConnected, Ring]\nnpus_count: [3, 2]\nbandwidth: [1, 2]\nlatency: [0, 10]\n"
    pairs = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)]
    full = [(f"npu{u}", f"npu{v}", 1.0 * GIB, 0.0) for u, v in pairs]
    ring = [(f"npu{u}", f"npu{u + 3}", 2.0 * GIB, 1e-8) for u in range(3)]
    assert links_of(read_text(text, "n.yml")) == both_ways(*full, *ring)


YAML = text_of("torus.yml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Switch ]", "Mesh ]", "topology[1] = 'Mesh': is not one of Ring, FullyConnected, Switch"),
        ("[ 4, 2 ]", "[ 4, 1 ]", "npus_count[1] = 1: is 1, outside 2..1000000"),
        ("[ 4, 2 ]", "[ 4, true ]", "npus_count[1] = True: is not a whole number"),
        ("12.5 ]", "tbd ]", "bandwidth[1] = 'tbd': is not a number"),
        ("12.5 ]", "-12.5 ]", "bandwidth[1] = -12.5: is -12.5, not in 1e-09..1e+09"),
        ("12.5 ]", ".inf ]", "bandwidth[1] = inf: is inf"),
        ("936.25 ]", "-1 ]", "latency[1] = -1: is -1, not in 0..1e+15"),
        ("[ 4, 2 ]", "[ 4 ]", "the lists must be of equal length, one entry a dimension: topology 2, npus_count 1"),
        ("[ 4, 2 ]", "4", "npus_count = 4: must be a list with an entry a dimension"),
        ("latency:", "delay:", "latency: is missing"),
        ("[ 4, 2 ]", "[ 999999, 999999 ]", "at most 65,536 nodes and 4,000,000 links are supported"),
        ("[ 4, 2 ]", "[ 4, 2", "line 4: not valid YAML"),
        ("[ 4, 2 ]", "&a [ *a, 2 ]", "has aliases"),
        ("[ 4, 2 ]", "!!python/object/apply:os.getcwd []", "not valid YAML: could not determine a constructor"),
    ],
)
def test_broken_astra_sim(old: str, new: str, message: str) -> None:
    assert old in YAML
    assert message in refused(YAML.replace(old, new, 1))


def test_taccl_known() -> None:
    """Beta 23 us for 1 MB is 1/23 TB/s for pairs with two NVLinks, 46 half of it; alpha 0.3 us."""
    machine = sample("taccl-known.json", Hints(chunk_bytes=10**6, time_unit_s=1e-6))
    rates = Counter(link.bandwidth for link in machine.links)
    assert rates == {1e12 / 23: 16, 1e12 / 46: 16}
    assert {link.latency for link in machine.links} == {3e-7}
    assert [(e.src, e.dst) for e in machine.links[:2]] == [(0, 1), (1, 0)]
    assert machine.unknown == ("which GPUs reach the ports between boxes: that is in TACCL's sketch, not here",)
    relative = sample("taccl-known.json")
    assert {(link.bandwidth, link.latency) for link in relative.links} == {(None, None)}
    assert "its name says 1MB" in relative.unknown[0]
    assert relative.kinds == ["beta23", "beta46"]


def test_taccl_custom_rows_are_receivers() -> None:
    """links[0][1] = 1: GPU 1 sends to GPU 0 (beta 40); links[1][0]: 0 to 1 (20); links[2][1]: 1 to 2 (46)."""
    machine = sample("taccl-custom.json", Hints(chunk_bytes=1000, time_unit_s=1e-9))
    links = [("gpu1", "gpu0", 25 * GB, 7e-10), ("gpu0", "gpu1", 50 * GB, 7e-10), ("gpu1", "gpu2", 1000e9 / 46, 7e-10)]
    assert links_of(machine) == Counter(links)


def test_taccl_one_beta_is_all_pairs() -> None:
    text = '{"name": "x", "gpus_per_node": 3, "alpha": 1, "node_betas_list": [8], "node_invbws_list": [8]}'
    assert len(read_text(text, "x.json").links) == 6


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("known", '"gpus_per_node": 8', '"gpus_per_node": 0', "gpus_per_node = 0: is 0, outside 1..1024"),
        ("known", '"gpus_per_node": 8', '"gpus_per_node": 6', "2 betas for 6 GPUs: which links there are is not in"),
        ("known", '"alpha": 0.3', '"alpha": "0.3"', "alpha = '0.3': is not a number"),
        ("known", '"alpha": 0.3', '"alpha": 0.3, "beta": 1', "beta: unknown key"),
        ("known", "[23, 46], \"node_inv", "[23, -46], \"node_inv", "node_betas_list[1] = -46: is -46, not in"),
        ("known", '"node_betas_list": [23, 46],', "", "node_betas_list: must be a list of numbers"),
        ("known", '"name": "NDv2_1MB"', '"name": 3', "name = 3: must be a text"),
        ("known", '"remote_beta": 105', '"remote_beta": NaN', "remote_beta = nan: is nan"),
        ("custom", "[0, 1, 0], [1, 0, 0]", "[0, 1], [1, 0, 0]", "links: must be 3 rows of 3 numbers, a row a receiver"),
        ("custom", '[[0, 1, 0], [1', '[[1, 1, 0], [1', "links[0][0] = 1.0: goes from a GPU to itself"),
        ("custom", '"betas":  [[0, 40', '"betas":  [[0, 0', "betas[0][1] = 0.0: must be > 0 where there is a link"),
        ("custom", '"betas":  [[0, 40', '"betas":  [[0, "a"', "betas[0][1] = 'a': is not a number"),
        ("custom", '"alpha"', '"node_betas_list": [1], "alpha"', "node_betas_list: has no meaning beside links"),
    ],
)  # fmt: skip
def test_broken_taccl(name: str, old: str, new: str, message: str) -> None:
    text = text_of(f"taccl-{name}.json")
    assert old in text
    assert message in refused(text.replace(old, new, 1))


def test_taccl_numbers_beyond_any_machine() -> None:
    message = refused(text_of("taccl-known.json"), hints=Hints(chunk_bytes=2**48, time_unit_s=1e-12))
    assert "--chunk, --time-unit: make a bandwidth of" in message
    text = text_of("taccl-known.json").replace('"alpha": 0.3', '"alpha": 1e9')
    assert "--time-unit = 1000000.0: times alpha must be in 0..1e+06 s" in refused(text, hints=Hints(time_unit_s=1e6))


def test_teccl_dgx1_by_hand() -> None:
    """Two NVLinks of 25 GB/s for pairs 01 04 13 23 26 45 57 67, one for 02 03 12 15 37 46 47 56; its alpha."""
    machine = sample("teccl-input.json")
    pairs = {50: "01 04 13 23 26 45 57 67", 25: "02 03 12 15 37 46 47 56"}
    links = [(f"gpu{p[0]}", f"gpu{p[1]}", rate * GB, 7e-7) for rate, every in pairs.items() for p in every.split()]
    assert links_of(machine) == both_ways(*links)
    assert machine.switching == "cut_through"


@pytest.mark.parametrize("name", MACHINES)
def test_teccl_as_in_our_own_machine_files(name: str) -> None:
    """Written down from TE-CCL's code apart from these rules: the same links, ranks numbered in its order."""
    ours, chassis = MACHINES[name]
    built = MachineSpec(kind="machine", name=ours).build()
    net = built.network
    expected = Counter(
        zip(net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), net.latency.tolist(), strict=True)
    )
    machine = teccl(name.partition("-")[0], chassis=chassis)
    assert Counter((e.src, e.dst, e.bandwidth, e.latency) for e in machine.links) == expected
    assert sorted(machine.switches) == [v for v in range(built.nodes) if built.is_switch[v]]
    assert machine.switching == "store_and_forward"


@pytest.mark.parametrize(
    ("key", "name", "chassis"),
    [("DGX1", "DGX1", 1), ("NDv2-2", "NDv2", 2), ("NDv2-4", "NDv2", 4), ("DGX2-2", "DGX2", 2), ("AMD-1", "AMD", 1)],
)
def test_teccl_as_in_the_shared_facts(key: str, name: str, chassis: int) -> None:
    if not PEERS.exists():
        pytest.skip("needs ../shared/data/peers")
    facts = json.loads(PEERS.read_text())[f"teccl-{key}"]["links"]
    machine = teccl(name, chassis=chassis)
    number = [int(node.lstrip("gpuswitch")) for node in machine.names]
    found = {(number[e.src], number[e.dst], e.bandwidth, e.latency) for e in machine.links}
    rounded = {(u, v, rate, round((latency or 0) * 1e6, 9)) for u, v, rate, latency in found}
    assert rounded == {(e["src"], e["dst"], e["GBps"] * GB, e["alpha_us"] or 0.0) for e in facts}
    assert len(machine.links) == len(facts)


def test_teccl_amd_of_several_boxes_as_it_runs() -> None:
    """Box c has nodes 24c+1 to 24c+24; switches are 0 and 24c+16 to 24c+23, one too low: GPU 15 is one, the last small
    switch is none. A box: 28 GPU pairs, 8 small switches of 2 GPUs, 8 ways to node 0, each both ways."""
    machine = teccl("AMD", chassis=2, alpha=[1e-6, 2e-6])
    assert len(machine.names) == 49
    switches = {int(machine.names[v].removeprefix("switch")) for v in machine.switches}
    assert switches == {0, *range(16, 24), *range(40, 48)}
    assert len(machine.links) == 2 * 2 * (28 + 16 + 8)
    found = links_of(machine)
    assert found["gpu1", "gpu2", 200 * GB, 1e-6] == 1
    assert found["switch17", "gpu1", 50 * GB, 1e-6] == 1  # its first small switch is faster by a slip
    assert found["gpu24", "switch16", 25 * GB, 2e-6] == 1
    assert found["switch16", "switch0", 25 * GB, 2e-6] == 1
    assert any("off by one" in word for word in machine.assumed)


def test_teccl_mesh_joins_the_ends_of_rows() -> None:
    """Side 3: 0-1, 1-2, …, 7-8 and 0-3, …, 5-8; 2-3 and 5-6 among them."""
    machine = teccl("Mesh", side_length=3)
    pairs = [(v, v + 1) for v in range(8)] + [(v, v + 3) for v in range(6)]
    assert links_of(machine) == both_ways(*((f"gpu{u}", f"gpu{v}", 100 * GB, 0.0) for u, v in pairs))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ('"DGX1"', "TopologyParams = 'DGX1': must be an object"),
        ('{"chassis": 1}', "TopologyParams.name: must be one of DGX1, NDv2, DGX2, AMD, Mesh"),
        ('{"name": "Torus"}', "TopologyParams.name = 'Torus': must be one of"),
        ('{"name": ["DGX1"]}', "TopologyParams.name = ['DGX1']: must be one of"),
        ('{"name": "AMD", "chassis": 0}', "TopologyParams.chassis = 0: is 0, outside 1..1000"),
        ('{"name": "AMD", "chassis": 1.5}', "TopologyParams.chassis = 1.5: is not a whole number"),
        ('{"name": "Mesh", "side_length": 10000}', "TopologyParams.side_length = 10000: is 10000, outside 2..255"),
        ('{"name": "DGX1", "alpha": 0}', "TopologyParams.alpha = 0: must be a list of two latencies"),
        ('{"name": "DGX1", "alpha": [-1, 0]}', "TopologyParams.alpha[0] = -1: is -1, not in 0..1e+06"),
        ('{"name": "AMD", "chassis": 2, "alpha": [1]}', "TopologyParams.alpha = [1]: must be a list of two"),
        ('{"name": "DGX1", "chasis": 2}', "TopologyParams.chasis: unknown key"),
    ],
)
def test_broken_teccl(params: str, message: str) -> None:
    assert message in refused(f'{{"TopologyParams": {params}}}')
