"""Slurm's ``topology.conf`` and ``topology.yaml``: hosts and switches as they name them, faults by line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from exchange.machines.reading import refused

from synth.exchange.machines.formats import FORMATS, read, read_text
from synth.exchange.machines.machine import Machine

FIELD = Path(__file__).parents[4] / "shared/data/field/12-fabric-files-not-read/slurm-tree.conf"
TREE = """# two leaves
SwitchName=leaf1 Nodes=n[01-03] LinkSpeed=400
switchname=leaf2  nodes=n[04-05],big \\
   LinkSpeed=400   # continued
SwitchName=spine1 Switches=leaf[1-2]
SwitchName=spine2 Switches=leaf1,leaf2
"""
YAML = """---
- topology: main
  cluster_default: true
  tree:
    switches:
      - switch: top
        children: s[1-2]
      - switch: s1
        nodes: node[01-02]
      - switch: s2
        nodes: node03
- topology: racks
  block:
    block_sizes: [2, 4]
    blocks:
      - block: b1
        nodes: node[01-02]
      - block: b2
        nodes: node[03-04]
- topology: none
  flat: true
"""


def pairs(machine: Machine) -> Counter[tuple[str, str, str]]:
    """Pairs of nodes that are joined both ways, with the class."""
    there = Counter((machine.names[e.src], machine.names[e.dst], e.kind) for e in machine.links)
    assert all(there[v, u, kind] == times for (u, v, kind), times in there.items())
    assert {e.bandwidth for e in machine.links} == {e.latency for e in machine.links} == {None}
    return Counter(
        {(u, v, kind): n for (u, v, kind), n in there.items() if machine.names.index(u) < machine.names.index(v)}
    )


def net(switch: str, *hosts: str) -> list[tuple[str, str, str]]:
    return [(host, switch, "NET") for host in hosts]


def test_a_tree_with_two_spines() -> None:
    machine = read_text(TREE, "topology.conf")
    up = [(leaf, spine, "UP") for leaf in ("leaf1", "leaf2") for spine in ("spine1", "spine2")]
    hosts = net("leaf1", "n01", "n02", "n03") + net("leaf2", "n04", "n05", "big")
    assert pairs(machine) == Counter([*hosts, *up])
    assert [machine.names[v] for v in machine.ranks] == ["n01", "n02", "n03", "n04", "n05", "big"]
    assert machine.unknown == ("what LinkSpeed=400 counts: Slurm gives it no unit",)


def test_what_scontrol_shows_is_the_same_tree() -> None:
    text = (
        "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=s2 Level=0 LinkSpeed=1 Nodes=n3\n"
        "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-3] Switches=s[1-2]\n"
    )
    up = [("s1", "top", "UP"), ("s2", "top", "UP")]
    assert pairs(read_text(text, "topo.txt")) == Counter(net("s1", "n1", "n2") + net("s2", "n3") + up)


def test_what_scontrol_shows_of_blocks() -> None:
    rows = [f"BlockName=b{i} BlockIndex={i} Nodes=n[{2 * i + 1}-{2 * i + 2}] BlockSize=2\n" for i in range(2)]
    machine = read_text("".join(rows) + "AggregatedBlock=b[0-1] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n", "topo.txt")
    blocks = [("b0", "blocks", "UP"), ("b1", "blocks", "UP")]
    assert pairs(machine) == Counter(net("b0", "n1", "n2") + net("b1", "n3", "n4") + blocks)


def test_lines_go_on_after_a_backslash_as_slurm_joins_them() -> None:
    text = "SwitchName=s0 \\\n  Nodes=a[1-2],\\\nb1\nSwitchName=t Switches=s0\n"
    assert pairs(read_text(text, "topology.conf")) == Counter([*net("s0", "a1", "a2", "b1"), ("s0", "t", "UP")])


def test_parts_that_nothing_joins_are_said() -> None:
    machine = read_text("SwitchName=s0 Nodes=a[0-3]\nSwitchName=s1 Nodes=b[0-3]\n", "topology.conf")
    assert machine.unknown == ("what joins the 2 parts of the network (of s0, s1): no cable",)


def test_blocks_are_joined_by_a_switch_that_is_assumed() -> None:
    machine = read_text("BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2,4\n", "topology.conf")
    blocks = [("b1", "blocks", "UP"), ("b2", "blocks", "UP")]
    assert pairs(machine) == Counter(net("b1", "n1", "n2") + net("b2", "n3", "n4") + blocks)
    assert any("the file says nothing of what is above them" in word for word in machine.assumed)
    alone = read_text("BlockName=rack Nodes=n[01-18]\n", "topology.conf")
    assert pairs(alone) == Counter(net("rack", *(f"n{i:02d}" for i in range(1, 19))))


def test_the_default_of_a_yaml_is_read() -> None:
    machine = read_text(YAML, "topology.yaml")
    tree = net("s1", "node01", "node02") + net("s2", "node03") + [("top", "s1", "UP"), ("top", "s2", "UP")]
    assert pairs(machine) == Counter(tree)
    assert machine.left_out == ("other topologies of the file: racks, none",)
    text = YAML.replace("cluster_default: true", "cluster_default: false").replace(
        "racks", "racks\n  cluster_default: true"
    )
    blocks = read_text(text, "topology.yaml")
    assert [blocks.names[v] for v in sorted(blocks.switches)] == ["b1", "b2", "blocks"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TREE.replace("n[01-03]", "n[01-99999999]"), "line 2, nodes = 'n[01-99999999]': are more than 65,536 hosts"),
        (TREE.replace("n[01-03]", "n[01-03"), "line 2, nodes = 'n[01-03': must be names of hosts"),
        (TREE.replace("n[01-03]", "n[01-04]"), "line 3 = 'n04': is on leaf1 already"),
        (TREE.replace("leaf1,leaf2", "leaf1,leaf3"), "line 6 = 'leaf3': is no other switch of the file"),
        (TREE.replace("spine2", "spine1"), "line 6 = 'spine1': stands twice"),
        (TREE.replace("Nodes=n[01-03]", "Nods=n1"), "line 2 = 'nods': must be key=value with keys of topology.conf"),
        (TREE.replace("SwitchName=spine1", "spine1"), "line 5"),
        (TREE + "BlockName=b Nodes=x\n", "names switches and blocks: one of them a file"),
        (TREE + "SwitchName=empty\n", "line 7 = 'empty': has neither nodes nor switches"),
        (YAML.replace("switch: s1", "name: s1"), "main.tree.switches[1]: must have the keys switch, nodes, children"),
        (YAML.replace("tree:", "ring:"), "the topology is a ring; a tree or block is read"),
        ("- topology: t\n  torus3d:\n    toruses: []\n", "the topology is a torus; a tree or block is read"),
        ("- topology: t\n  tree:\n    switch: []\n", "holds no tree or block"),
        (YAML.replace("cluster_default: true", "x: &a b\n  y: *a"), "has aliases"),
        ("topology: x\nflat: true\n", "must be a list of topologies"),
        ("- topology: x\n  flat: true\n", "the topology is flat: it says nothing of switches"),
        ("- topology: x\n  tree:\n    switches: " + "[" * 5000, "is nested deeper than such a file needs"),
    ],
)
def test_a_broken_file_is_refused_by_its_line(text: str, message: str) -> None:
    assert [one.name for one in FORMATS if one.looks_like(text)] == ["slurm"]
    assert message in refused(text)


@pytest.mark.skipif(not FIELD.is_file(), reason="needs ../shared/data/field")
def test_the_file_of_the_field() -> None:
    machine = read(FIELD)
    hosts = net("leaf1", *(f"n0{i}" for i in range(1, 5))) + net("leaf2", *(f"n0{i}" for i in range(5, 9)))
    assert pairs(machine) == Counter([*hosts, ("leaf1", "spine", "UP"), ("leaf2", "spine", "UP")])
