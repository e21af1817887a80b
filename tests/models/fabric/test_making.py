"""`synth make fabric`: machines, shapes, files of links, demands, failures; everything wrong is said at once."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from models.fabric.making import faults, made

import synth
from synth.errors import InputError
from synth.schedule.collective import bus_factor
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.box_data import machine_names

PEERS = Path(__file__).resolve().parents[4] / "shared/data/peers/topologies.json"


def capacities(instance: FabricInstance) -> dict[tuple[str, str], float]:
    """Bytes/s from name to name, parallel links together."""
    machine, total = instance.machine, dict[tuple[str, str], float]()
    net = machine.network
    for u, v, b in zip(net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), strict=True):
        key = (machine.names[u], machine.names[v])
        total[key] = total.get(key, 0.0) + b
    return total


@pytest.mark.parametrize("name", machine_names())
@pytest.mark.parametrize("boxes", [1, 2, 3])
def test_every_machine_can_be_made(name: str, boxes: int) -> None:
    """Ranks come first, links come in both directions (but for the one-way doors that a file names), every rank
    reaches every other."""
    if boxes > 1 and name.startswith("teccl"):
        assert "is known for boxes=1 at most" in faults(machine=name, boxes=boxes, bytes=3 * 5 * 2**20)[0]
        return
    instance = made(machine=name, boxes=boxes, bytes=3 * 5 * 2**20)
    machine = instance.machine
    ranks = len(instance.members)
    assert list(instance.members) == list(range(ranks))
    assert machine.is_switch.tolist() == [False] * ranks + [True] * (machine.nodes - ranks)
    assert len(machine.parts_of(range(machine.nodes))) == 1
    assert len(set(machine.names)) == machine.nodes
    one_way = {pair for pair in capacities(instance) if pair[::-1] not in capacities(instance)}
    assert (len(one_way) > 0) == ((name == "ndv2" and boxes > 1) or name.startswith(("teccl-ndv2", "teccl-dgx2")))


def test_two_dgx_a100_link_by_link() -> None:
    """ForestColl's rule: 8 GPUs to an NVSwitch at 300 GB/s, GPU b to NIC b to InfiniBand switch b mod 2 at 25 GB/s."""
    instance = made(machine="dgx-a100", boxes=2, bytes="1GiB")
    wanted = {}
    for box in range(2):
        for b in range(8):
            wanted[f"{box}/gpu{b}", f"{box}/nvswitch"] = 300e9
            wanted[f"{box}/gpu{b}", f"{box}/nic{b}"] = 25e9
            wanted[f"{box}/nic{b}", f"ib{b % 2}"] = 25e9
    assert capacities(instance) == wanted | {(v, u): b for (u, v), b in wanted.items()}
    assert instance.bytes == 2**30
    assert instance.name == "dgx-a100-x2-allgather-1GiB"


def test_the_machines_of_the_peers_are_theirs() -> None:
    """Link by link what their files say (`shared/data/peers/topologies.json`), switches and ranks as they ran them."""
    if not PEERS.is_file():
        pytest.skip("shared/data/peers is not here")
    theirs = json.loads(PEERS.read_text())
    cases = {
        "teccl-ndv2-2": ("teccl-NDv2-2", range(1, 16), [0]),
        "teccl-ndv2-2-16": ("teccl-NDv2-2", range(16), []),
        "teccl-ndv2-4": ("teccl-NDv2-4", range(1, 33), [0]),
        "teccl-dgx2-2": ("teccl-DGX2-2", [*range(1, 17), *range(18, 34)], [0, 17]),
    }
    for name, (key, gpus, switches) in cases.items():
        instance = made(machine=name, bytes=15 * 2**10 if name == "teccl-ndv2-2" else 2**15)
        number = {node: i for i, node in enumerate([*gpus, *switches])}
        wanted = sorted(
            (number[one["src"]], number[one["dst"]], one["GBps"] * 1e9, one["alpha_us"]) for one in theirs[key]["links"]
        )
        net = instance.machine.network
        latency = [float(f"{us:.6g}") for us in (net.latency * 1e6).tolist()]
        found = zip(net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), latency, strict=True)
        assert sorted(found) == wanted
        assert np.flatnonzero(instance.machine.is_switch).tolist() == [number[s] for s in switches]
        assert instance.switching.mode == "store_and_forward"
    for name, key in {"dgx1": "teccl-DGX1", "mi250": "teccl-AMD-1", "amd16": "teccl-AMD-1"}.items():
        wanted = sorted((one["src"], one["dst"], one["GBps"] * 1e9) for one in theirs[key]["links"])
        net = made(machine=name, bytes=2**20).machine.network
        assert sorted(zip(net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), strict=True)) == wanted


@pytest.mark.parametrize(
    ("keys", "ranks", "switches", "links"),
    [
        ({"network": "ring", "nodes": 5}, 5, 0, 10),
        ({"network": "mesh", "rows": 3, "cols": 4}, 12, 0, 34),
        ({"network": "torus", "rows": 3, "cols": 4}, 12, 0, 48),
        ({"network": "hypercube", "dimension": 4}, 16, 0, 64),
        ({"network": "kautz", "nodes": 12, "degree": 3}, 12, 0, 36),
        ({"network": "full", "nodes": 6}, 6, 0, 30),
        ({"network": "star", "nodes": 6}, 6, 1, 12),
        ({"network": "fat_tree", "leaves": 3, "hosts": 4, "spines": 2}, 12, 5, 2 * (12 + 6)),
        # canonical: 9 groups of 4 routers with 2 links to other groups and 2 ranks each
        ({"network": "dragonfly", "groups": 9, "routers": 4, "hosts": 2}, 72, 36, 2 * (72 + 9 * 6 + 36)),
    ],
)
def test_shapes(keys: dict[str, object], ranks: int, switches: int, links: int) -> None:
    instance = made(**keys, bytes=ranks)
    machine = instance.machine
    assert (len(instance.members), int(machine.is_switch.sum()), machine.links) == (ranks, switches, links)
    assert len(machine.parts_of(range(machine.nodes))) == 1


def test_a_canonical_dragonfly_spreads_its_global_links() -> None:
    instance = made(network="dragonfly", groups=9, routers=4, hosts=2, bytes=72)
    net = instance.machine.network
    between = [0] * 36
    for u, v in zip(net.src.tolist(), net.dst.tolist(), strict=True):
        if u >= 72 and v >= 72 and (u - 72) // 4 != (v - 72) // 4:
            between[u - 72] += 1
    assert between == [2] * 36


def test_links_of_a_file(tmp_path: Path) -> None:
    """Two ranks behind one NIC whose two links take turns, and a third rank; one parallel link."""
    file = tmp_path / "my links.csv"
    rows = ["0,3,1e9,1e-6,nic", "1,3,1e9,1e-6,nic", "3,0,1e9,,", "3,1,1e9,,", "2,3,2e9,,", "3,2,2e9,,", "3,2,2e9,,"]
    file.write_text("src,dst,bandwidth,latency,group\n" + "\n".join(rows) + "\n")
    instance = made(links=file, switches=[3], bytes="3KB", collective="allgather", latency=0)
    assert instance.name == "my-links-allgather-3KB"
    machine = instance.machine
    assert machine.links == 7
    assert machine.group.tolist() == [0, 0, -1, -1, -1, -1, -1]
    assert machine.group_names == ("nic",)
    assert instance.members == (0, 1, 2)
    assert machine.network.latency[0] == 1e-6


def test_a_graph_from_python() -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", bandwidth=1e9)
    graph.add_edge("b", "a", bandwidth=2e9)
    assert made(links=graph, bytes=2, latency=0).machine.network.bandwidth.tolist() == [1e9, 2e9]


def test_a_graph_says_which_nodes_are_switches() -> None:
    """By the attributes that `synth import` reads; `switches` in its place; a wrong word is refused."""
    graph = nx.star_graph(4)
    nx.set_edge_attributes(graph, "1GB/s", "bandwidth")
    star = nx.relabel_nodes(graph, {0: "middle"})
    assert made(links=graph, bytes=20, latency=0).machine.is_switch.tolist() == [False] * 5
    for attributes in ({"switch": True}, {"kind": "switch"}, {"type": "router"}):
        for marked, hub in ((graph.copy(), 0), (star.copy(), "middle")):
            marked.nodes[hub].update(attributes)
            for other in set(marked) - {hub}:
                marked.nodes[other].update({next(iter(attributes)): False if "switch" in attributes else "gpu"})
            instance = made(links=marked, bytes=20, latency=0)
            assert instance.machine.is_switch.tolist() == [node == hub for node in marked]
            assert made(links=marked, bytes=20, latency=0, switches="1" if hub == 0 else "middle") is not None
    star.nodes["middle"]["kind"] = "spline"
    with pytest.raises(InputError, match="node middle, kind = 'spline': must be one of"):
        made(links=star, bytes=20, latency=0)


def test_a_family_without_switches_refuses_them() -> None:
    graph = nx.star_graph(3)
    graph.nodes[0]["switch"] = True
    with pytest.raises(InputError, match="node 0: switches are no part of this family's problem"):
        synth.make("xtree", links=graph, chunks=1, bandwidth="1GB/s", latency=0)


@pytest.mark.parametrize(
    ("collective", "blocks", "factor"),
    [
        ("allgather", [(0, EVERYONE, 4), (1, EVERYONE, 4), (2, EVERYONE, 4)], Fraction(2, 3)),
        ("reduce_scatter", [(EVERYONE, 0, 4), (EVERYONE, 1, 4), (EVERYONE, 2, 4)], Fraction(2, 3)),
        ("allreduce", [(EVERYONE, EVERYONE, 12)], Fraction(4, 3)),
        ("alltoall", [(0, 1, 4), (0, 2, 4), (1, 0, 4), (1, 2, 4), (2, 0, 4), (2, 1, 4)], Fraction(2, 3)),
        ("broadcast", [(1, EVERYONE, 12)], Fraction(1)),
        ("reduce", [(EVERYONE, 1, 12)], Fraction(1)),
        ("gather", [(0, 1, 4), (2, 1, 4)], Fraction(2, 3)),
        ("scatter", [(1, 0, 4), (1, 2, 4)], Fraction(2, 3)),
    ],
)
def test_bytes_count_as_in_nccl_tests(collective: str, blocks: list[tuple[int, int, int]], factor: Fraction) -> None:
    root = {"root": 1} if collective in ("broadcast", "reduce", "gather", "scatter") else {}
    instance = made(network="ring", nodes=3, bytes=12, collective=collective, **root)
    found = instance.blocks
    rows = zip(found.origin.tolist(), found.goal.tolist(), found.bytes.tolist(), strict=True)
    assert sorted(rows) == sorted(blocks)
    assert bus_factor(collective, 3) == factor


def test_demand_failures_and_a_group(tmp_path: Path) -> None:
    demand, broken = tmp_path / "demand.csv", tmp_path / "broken.txt"
    demand.write_text("src,dst,bytes\n0,5,100\n5,0,1\n")
    broken.write_text("# two things\nlink 0/gpu1 0/nvswitch\nnode ib0\n\n")
    instance = made(machine="dgx-a100", boxes=2, collective="demand", demand=demand, failed=broken, ranks="0,5,8-9")
    assert instance.bytes == 101
    assert instance.members == (0, 5, 8, 9)
    used = capacities(instance)
    assert ("0/gpu5", "0/nvswitch") in used
    assert not [pair for pair in used if "ib0" in pair]
    assert not [pair for pair in used if "0/gpu1" in pair]  # outside the group, and no relay
    assert ("0/gpu1", "0/nic1") in capacities(
        made(machine="dgx-a100", boxes=2, bytes=400, ranks=[0, 5, 8, 9], relay=True)
    )


def test_a_demand_by_names_and_with_units(tmp_path: Path) -> None:
    demand = tmp_path / "demand.csv"
    demand.write_text("src, dst, bytes\n0/gpu0, 1/gpu1, 64KB\n\n1/gpu1, 0, 1.5KiB\n")
    instance = made(machine="dgx-a100", boxes=2, collective="demand", demand=demand)
    number = instance.machine.names.index("1/gpu1")
    assert instance.demand == ((0, number, 64000), (number, 0, 1536))
    demand.write_text("src,dst,bytes\n0/gpu0,2/gpu9,5\n0,0/nvswitch,5\n\n0,1,99999999GiB\n")
    text = "\n".join(faults(machine="dgx-a100", boxes=2, collective="demand", demand=demand))
    assert "d.csv, line 2, dst = '2/gpu9': no such node" in text
    demand.write_text(demand.read_text().replace("2/gpu9", "1"))
    text = "\n".join(faults(machine="dgx-a100", boxes=2, collective="demand", demand=demand))
    for words in ("line 3, dst = '0/nvswitch': is a switch", "line 5, bytes = '99999999GiB': must be <="):
        assert f"{demand}, {words}" in text
    for word in ("1e400", "9" * 5000, "nan", "-inf", "1.5", "5 apples"):
        demand.write_text(f"src,dst,bytes\n0,1,{word}\n")
        assert "line 2, bytes = " in "\n".join(faults(machine="dgx-a100", collective="demand", demand=demand))


def test_a_file_of_another_kind_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A fault in every line of a large file: the first thousand are told, in a moment."""
    demand = tmp_path / "demand.csv"
    demand.write_text("src,dst,bytes\n" + "0,1,x\n" * 50_000)
    text = "\n".join(faults(machine="dgx1", collective="demand", demand=demand))
    assert "1,000 faults and more: what follows line 1001 was not read" in text
    assert "line 2, bytes = 'x': must be a size in bytes" in text


def test_the_same_instance_from_its_file(tmp_path: Path) -> None:
    instance = made(machine="mi250", boxes=2, bytes="1GiB", collective="broadcast", root=3)
    file = tmp_path / "one.json"
    file.write_text(instance.to_json())
    assert synth.read(file).model_dump() == instance.model_dump()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"bytes": 8}, ["machine: give machine=NAME, network=SHAPE or links=FILE.csv"]),
        ({"machine": "dgx1"}, ["bytes: is missing"]),
        ({"machine": "dgx1", "bytes": 7}, ["bytes = 7: does not divide among 8 ranks"]),
        ({"machine": "dgx1", "bytes": "1XB"}, ["bytes = '1XB': must be a size in bytes"]),
        ({"machine": "dgx1", "bytes": 0}, ["bytes = 0: must be >= 1"]),
        ({"machine": "dgx1", "bytes": 2**60}, ["bytes"]),
        ({"machine": "dgx-9", "bytes": 8}, ["machine = 'dgx-9': unknown; did you mean dgx2? one of amd16, dgx-a100"]),
        ({"machine": "dgx1", "network": "ring", "nodes": 3, "bytes": 8}, ["network = 'ring'", "nodes = 3"]),
        ({"network": "ring", "bytes": 8}, ["nodes: is missing"]),
        ({"network": "equimesh", "rows": 2, "cols": 2, "bytes": 4}, ["network = 'equimesh': must be one of line"]),
        ({"network": "ring", "nodes": 4, "bytes": 4, "root": 1}, ["root = 1: has no meaning for allgather"]),
        (
            {"machine": "dgx-a100", "bytes": 8, "collective": "broadcast", "root": 8},
            ["root = 8: is a switch (nvswitch): only ranks hold data"],
        ),
        (
            {"machine": "dgx-a100", "bytes": 8, "ranks": "0,8,99,1,1"},
            ["ranks[1] = 8: is a switch", "ranks[2] = 99: no such node", "ranks: names node 1 2 times"],
        ),
        (
            {"machine": "dgx1", "bytes": 8, "ranks": "0-x"},
            ["ranks = '0-x': must be nodes by number or name, such as 0,1,4-7; the nodes are gpu0"],
        ),
        ({"machine": "dgx1", "collective": "demand"}, ["demand: is missing"]),
        ({"machine": "teccl-dgx2-2", "boxes": 2, "bytes": 64}, ["is known for boxes=1 at most"]),
        ({"network": "full", "nodes": 4000, "bytes": 4000}, ["nodes"]),
        ({"network": "fat_tree", "leaves": 4096, "hosts": 4096, "bytes": 2**24}, ["nodes and", "are supported"]),
    ],
)
def test_what_is_wrong_is_said_at_once(keys: dict[str, object], words: list[str]) -> None:
    text = "\n".join(faults(**keys))
    for word in words:
        assert word in text


def test_bad_files(tmp_path: Path) -> None:
    links, demand, broken = tmp_path / "l.csv", tmp_path / "d.csv", tmp_path / "f.txt"
    links.write_text("src,dst,bandwidth\n0,1,0\n1,0,-2\n1,7,1e9\n2,2,1e9\n1,2,nan\n")
    text = "\n".join(faults(links=links, bytes=8, switches="1,9"))
    for word in (
        "l.csv), line 2, bandwidth = '0'",
        "line 3, bandwidth = '-2'",
        "line 5 = '2': goes from a node to itself",
        "line 6",
    ):
        assert word in text
    demand.write_text("src,dst,bytes\n0,99,5\n0,0,5\n3,1,0\n8,0,5\n")
    text = "\n".join(faults(machine="dgx-a100", collective="demand", demand=demand))
    for word in ("d.csv, line 3: goes from a rank to itself", "d.csv, line 4, bytes = '0': must be >= 1"):
        assert word in text
    demand.write_text("src,dst,bytes\n0,99,5\n8,0,5\n")
    text = "\n".join(faults(machine="dgx-a100", collective="demand", demand=demand))
    for word in ("d.csv, line 2, dst = '99': no such node", "d.csv, line 3, src = '8': is a switch"):
        assert word in text
    demand.write_text("src,dst,bytes\n0,5,5\n")
    text = "\n".join(faults(machine="dgx-a100", collective="demand", demand=demand, ranks="0,1"))
    assert "d.csv, line 2, dst = '5': is no member of ranks" in text
    broken.write_text("link 0\nlunk 3 4\nnode nowhere\n")
    text = "\n".join(faults(machine="dgx-a100", bytes=8, failed=broken))
    assert "line 1 = 'link 0'" in text
    assert "line 2" in text
    broken.write_text("node nowhere\nlink 0 1\n")
    assert "line 1 = 'nowhere': no such node" in "\n".join(faults(machine="dgx-a100", bytes=8, failed=broken))
    broken.write_text("link 0 1\n\nnode 99\nlink gpu3 nvswitch\n")
    text = "\n".join(faults(machine="dgx-a100", bytes=8, failed=broken))
    assert "line 1: there is no link from 0 to 1" in text
    assert "line 3 = '99': no such node" in text
    assert "line 4" not in text


def test_faults_of_keys_and_files_are_said_together(tmp_path: Path) -> None:
    links = tmp_path / "l.csv"
    links.write_text("src,dst,bandwidth,latency\n0,1,25GB,1e-6\n1,0,0,-1\n0,-1,inf,nan\n")
    text = "\n".join(faults(links=links, bytes=0, ranks="a,,b"))
    for word in (
        "bytes = 0: must be >= 1",
        "ranks = 'a,,b'",
        "l.csv), line 2, bandwidth = '25GB': must be a rate",
        "l.csv), line 3, bandwidth = '0': must be in 0.001..1e+18 bytes/s",
        "l.csv), line 3, latency = '-1': must be in 0..1e+06 s",
        "l.csv), line 4, dst = '-1': nodes are numbers or names, not both",
        "l.csv), line 4, bandwidth = 'inf': must be a rate",
        "l.csv), line 4, latency = 'nan': must be a time",
    ):
        assert word in text


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        (
            {"multicast": True, "switching": "store_and_forward"},
            "multicast = True: has no meaning with switching=store",
        ),
        ({"buffer": True}, "buffer = True: has no meaning with switching=cut_through"),
        ({"copies": False}, "copies = False: has no meaning with switching=cut_through"),
        ({"bytes": "8.5"}, "bytes = '8.5': must be a whole number of bytes"),
    ],
)
def test_what_would_do_nothing_is_said(keys: dict[str, object], word: str) -> None:
    assert word in "\n".join(faults(**{"machine": "dgx-a100", "bytes": 8} | keys))


def test_different_instances_have_different_names() -> None:
    """What solves two of them together must not write one record over the other."""
    box = {"machine": "dgx-a100", "bytes": 8}
    stored = box | {"switching": "store_and_forward"}
    spread = box | {"collective": "broadcast"}
    group = box | {"ranks": "0,1"}
    ring = {"network": "ring", "nodes": 4, "bytes": 8}
    several = [box, box | {"multicast": True}, stored, stored | {"buffer": True}, stored | {"copies": False}]
    several += [spread, spread | {"root": 2}, group, group | {"relay": True}, ring, ring | {"bidirectional": False}]
    names = [made(**keys).name for keys in several]
    assert len(set(names)) == len(several)
    assert names[0] == "dgx-a100-allgather-8B"
    assert names[2:5] == [names[0] + more for more in ("-stored", "-stored-buffer", "-stored-nocopies")]


def test_names_of_many_keys_are_short_and_still_different() -> None:
    """A name that would be longer than instances' may be is cut, never refused: nobody typed it."""
    several = ["+".join(["4", "6"] * 20), "+".join(["4", "6"] * 19 + ["6", "4"])]
    names = [made(machine="dgx-h100", gpus=gpus, collective="broadcast", bytes=8).name for gpus in several]
    assert len(set(names)) == len(several)
    assert all(len(name) == 100 and name.startswith("dgx-h100-x40-gpus4-6-4-6") for name in names)
    assert names == [made(machine="dgx-h100", gpus=gpus, collective="broadcast", bytes=8).name for gpus in several]


def test_a_partition_names_its_parts(tmp_path: Path) -> None:
    broken = tmp_path / "f.txt"
    broken.write_text("node ib0\nnode ib1\n")
    text = "\n".join(faults(machine="dgx-a100", boxes=2, bytes=16, failed=broken))
    assert "parts the ranks into 2" in text
    assert "{0, 1, 2, 3, 4, 5, 6, 7}; {8, 9, 10, 11, 12, 13, 14, 15}" in text
    line = tmp_path / "line.csv"
    line.write_text("src,dst,bandwidth,latency\n0,1,1,0\n1,2,1,0\n")
    assert made(links=line, bytes=1, collective="broadcast").the_root == 0
    text = "\n".join(faults(links=line, bytes=1, collective="broadcast", root=1))
    assert "ranks {0} cannot be reached from the root 1" in text
    assert "ranks {1, 2} cannot reach the root 0" in "\n".join(faults(links=line, bytes=1, collective="reduce"))
