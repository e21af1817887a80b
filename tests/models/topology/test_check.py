"""The check: hand-solved topologies, and one change to a valid one for each way to break it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import synth
from synth_models.topology.bounds.anywhere import least_length, strongest
from synth_models.topology.check.certificates import check_bound
from synth_models.topology.check.replay import check_topology
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.solution import Topology, pack, unpack


def ring(nodes: int = 4) -> tuple[TopologyInstance, Topology]:
    """A two-way ring, shifts by one its symmetry, every node reaching half way round on both sides.

    Of 4 nodes: node 0 sends a unit to 1, to 3 and half a unit each way to 2. So an arc carries 1.5 of node 0's and none
    of it twice: three of eight arcs' loads add up to 4 hops a node, 16 over 8 arcs, a load of 2."""
    instance = synth.make("topology", nodes=nodes, degree=2)
    node = np.arange(nodes)
    circuits = np.stack([np.zeros(nodes, dtype=np.int64), node, (node + 1) % nodes], axis=1)
    flow = [[0, 0, 1, 3], [0, 1, 2, 1], [0, 0, 3, 3], [0, 3, 2, 1]]
    symmetries = np.array([(node + 1) % nodes, -node % nodes])
    assert isinstance(instance, TopologyInstance)
    return instance, Topology(circuits, 2, symmetries, np.array(flow))


def test_a_ring_of_four_by_hand() -> None:
    instance, topology = ring()
    verdict = check_topology(instance, topology)
    assert verdict.ok, verdict.faults
    assert verdict.value == 2.0
    assert verdict.facts["load"] == "2"
    assert (verdict.facts["hops"], verdict.facts["diameter"], verdict.facts["arcs"]) == (16, 2, 8)
    assert verdict.facts["alltoall_1MiB_s"] == pytest.approx(2 * 2**20 / 4 / 128e9)


def test_without_the_reflection_one_way_round_is_fuller() -> None:
    """All of node 0's traffic to 2 by way of 1: arcs that lead on carry 3, those that lead back 1."""
    instance, topology = ring()
    flow = np.array([[0, 0, 1, 4], [0, 1, 2, 2], [0, 0, 3, 2]])
    alone = replace(topology, symmetries=topology.symmetries[:1], flow=flow)
    assert check_topology(instance, alone).value == 3.0
    assert check_topology(instance, replace(topology, flow=flow)).value == 2.0  # its mirror image takes half


def broken(name: str, topology: Topology) -> Topology:
    """The topology with one thing wrong."""
    circuits, flow, maps = topology.circuits.copy(), topology.flow.copy(), topology.symmetries.copy()
    match name:
        case "beyond its degree":
            circuits[0] = [0, 1, 3]
        case "to itself":
            circuits[0] = [0, 1, 1]
        case "no node":
            circuits[0] = [0, 1, 9]
        case "no switch":
            circuits[0, 0] = 1
        case "apart":
            circuits = circuits[:1]
        case "no such arc":
            flow[1] = [0, 0, 2, 1]
        case "too little":
            flow[0, 3] -= 1
        case "flow beyond the nodes":
            flow[0, 2] = 7
        case "no renumbering":
            maps[0] = 0
        case "no symmetry":
            maps[0] = [1, 0, 2, 3]
        case "no source":
            maps = maps[:0]
        case "two sources":
            flow[2:, 0] = 1
        case "nothing sent":
            flow = flow[:0]
    return replace(topology, circuits=circuits, flow=flow, symmetries=maps)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("beyond its degree", "node 3 has 3 circuits, its degree leaves 2"),
        ("to itself", "nodes 1 and 1"),
        ("no node", "nodes 1 and 9"),
        ("no switch", "circuit 0: switch 1"),
        ("apart", "does not map the arcs"),
        ("no such arc", "1 rows of the routing use arcs that are not there, the first 0->2"),
        ("too little", "of source 0, node 1 gets 1 of 2 parts"),
        ("flow beyond the nodes", "beyond the last, 3"),
        ("no renumbering", "symmetry 0 is no renumbering"),
        ("no symmetry", "symmetry 0 does not map the arcs onto themselves"),
        ("no source", "no source in the orbit of node 1"),
        ("two sources", "several sources in one orbit"),
        ("nothing sent", "no source in the orbit of node 0"),
    ],
)
def test_each_way_to_break_it_is_named(name: str, words: str) -> None:
    instance, topology = ring()
    verdict = check_topology(instance, broken(name, topology))
    assert verdict.value is None
    assert words in "; ".join(verdict.faults)


def test_nodes_that_nothing_joins() -> None:
    instance, topology = ring()
    apart = Topology(topology.circuits[:1])
    assert check_topology(instance, apart).faults == ["no path leads from node 0 to node 2"]


def test_a_port_of_a_switch_is_taken_once() -> None:
    instance = synth.make("topology", cubes=2, sides="2x2", objective="hops")
    assert isinstance(instance, TopologyInstance)
    assert check_topology(instance, Topology(np.array([[0, 0, 1], [0, 1, 1]]))).faults == [
        "circuit 1: port 1 of switch 0 that receives is used twice"
    ]
    strange = check_topology(instance, Topology(np.array([[9, 0, 0], [0, 0, 5]]))).faults
    assert strange == ["circuit 0: there is no switch 9", "circuit 1: switch 0 has no port 5 that receives"]


def test_parallel_links_share() -> None:
    """Two nodes with two links: each carries half a unit each way."""
    instance = synth.make("topology", nodes=2, degree=2)
    assert isinstance(instance, TopologyInstance)
    flow = np.array([[0, 0, 1, 1], [1, 1, 0, 1]])
    none = np.zeros((0, 2), dtype=np.int64)
    verdict = check_topology(instance, Topology(np.array([[0, 0, 1], [0, 1, 0]]), 1, none, flow))
    assert (verdict.value, verdict.facts["load"]) == (0.5, "1/2")


def test_what_is_stored_comes_back_and_strange_data_is_refused() -> None:
    instance, topology = ring()
    packed = pack(topology)
    again = unpack(instance, packed)
    assert all(
        np.array_equal(getattr(again, key), getattr(topology, key)) for key in ("circuits", "flow", "symmetries")
    )
    for key, value in (
        ("scale", 0),
        ("scale", 1.5),
        ("flow", [[0, 0, 1]]),
        ("symmetries", [[0, 1]]),
        ("circuits", [[-1, 0, 0]]),
    ):
        with pytest.raises(ValueError, match=key):
            unpack(instance, packed | {key: value})


@pytest.mark.parametrize(
    ("keys", "bound"),
    [
        ({"cubes": 2, "sides": "2x2x2"}, Fraction(13, 3)),  # 416 hops over 96 arcs
        ({"cubes": 2, "sides": "4x4x4"}, Fraction(53792, 768)),
        ({"nodes": 10, "degree": 3}, Fraction(150, 30)),  # Moore: 3 nodes at one hop, 6 at two
        ({"nodes": 12, "degree": 2, "one_way": True}, Fraction(12 * (2 + 8 + 15), 24)),  # 2, 4 and 5 nodes
        ({"nodes": 10, "degree": 3, "objective": "hops"}, Fraction(150)),
    ],
)
def test_bounds_by_hand_and_their_certificates(keys: dict[str, object], bound: Fraction) -> None:
    instance = synth.make("topology", **keys)
    assert isinstance(instance, TopologyInstance)
    found, _, certificate = strongest(instance)
    assert found == bound
    assert check_bound(instance, float(found), certificate) == []
    assert "proves" in check_bound(instance, float(found) * 1.001, certificate)[0]


@pytest.mark.parametrize("keys", [{"cubes": 16}, {"cubes": 40, "sides": "2x3", "failed_switches": "1"}])
def test_lengths_are_counted_again(keys: dict[str, object]) -> None:
    """Where cubes are many, longer circuits prove more; what is no pair of lengths proves nothing."""
    instance = synth.make("topology", **keys)
    assert isinstance(instance, TopologyInstance)
    found, _, certificate = strongest(instance)
    alike = Fraction(least_length(instance), instance.most_arcs)
    assert certificate["lengths"][1] > 1
    assert found > alike
    assert check_bound(instance, float(found), certificate) == []
    assert check_bound(instance, float(alike), {"argument": "levels"}) == []
    assert "proves" in check_bound(instance, float(found) * 1.001, certificate)[0]
    for lengths in ([1], [0, 1], [1, 2, 3], [1, 1000], [1, 1.5]):
        assert "broken" in check_bound(instance, 1.0, {"argument": "levels", "lengths": lengths})[0]
    ring = synth.make("topology", nodes=9, degree=2)
    assert isinstance(ring, TopologyInstance)
    assert "broken" in check_bound(ring, 1.0, {"argument": "levels", "lengths": [1, 2]})[0]


def test_a_cut_is_counted_again() -> None:
    """A cube of 2 x 2 with three of four switches gone: 4 x 4 pairs over the one circuit each way, two arcs out."""
    instance = synth.make("topology", cubes=2, sides="2x2", failed_switches="1,2,3")
    assert isinstance(instance, TopologyInstance)
    found, _, certificate = strongest(instance)
    assert found == 8
    assert certificate == {"argument": "cut", "inside": [0, 1, 2, 3]}
    assert check_bound(instance, 8.0, certificate) == []
    for inside in ([0, 1, 2, 3, 3], [], list(range(8)), [8], [0.5]):
        assert "broken" in check_bound(instance, 8.0, {"argument": "cut", "inside": inside})[0]
    assert check_bound(instance, 8.0, {"argument": "cut", "inside": [0]})
    assert "broken" in check_bound(instance, 8.0, {"argument": "faith"})[0]


def test_a_petersen_graph_meets_the_bound() -> None:
    """Ten nodes of degree 3 and diameter 2, no topology has fewer hops."""
    instance = synth.make("topology", nodes=10, degree=3, objective="hops")
    assert isinstance(instance, TopologyInstance)
    outer = [(0, i, (i + 1) % 5) for i in range(5)]
    inner = [(0, 5 + i, 5 + (i + 2) % 5) for i in range(5)]
    spokes = [(0, i, i + 5) for i in range(5)]
    assert check_topology(instance, Topology(np.array(outer + inner + spokes))).value == 150 == strongest(instance)[0]
