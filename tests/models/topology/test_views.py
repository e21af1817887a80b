"""Topologies in words, drawn, and as frames of a page."""

from __future__ import annotations

import pytest

import synth
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.views.describe import describe
from synth_models.topology.views.frames import frames
from synth_models.topology.views.network import network
from synth_models.topology.views.plot import plot

CUBES = {"cubes": 2, "sides": "2x2"}
ONE_WAY = {"nodes": 6, "degree": 2, "one_way": True}
FULL = {"nodes": 5, "degree": 4}


@pytest.mark.parametrize(
    ("keys", "method", "line"),
    [
        (CUBES, "twisted", "  switch 3 (axis 1, line of 1,0): 0>1 1>0"),
        (ONE_WAY, "kautz", "  node 0 -> 4 5"),
        (FULL, "circulant", "  node 0 - 1 2 3 4"),
    ],
)
def test_views(keys: dict[str, object], method: str, line: str) -> None:
    instance = synth.make("topology", **keys)
    assert isinstance(instance, TopologyInstance)
    topology = synth.solve(instance, method).solution()
    assert line in describe(instance, topology).splitlines()
    assert plot(instance, topology, "title").axes[0].get_title() == "title"
    shown = frames(instance, topology)
    assert len(shown.src) == len(topology.circuits)
    arcs = network(instance, topology).links
    assert len(arcs) == (len(instance.fixed) + len(shown.src)) * (1 if instance.one_way else 2)


def test_a_two_way_node_names_all_that_it_is_joined_to() -> None:
    instance = synth.make("topology", nodes=3, degree=2, objective="hops")
    assert isinstance(instance, TopologyInstance)
    words = describe(instance, synth.solve(instance, "random_regular").solution())
    assert [line for line in words.splitlines() if "node" in line] == [
        "  node 0 - 1 2",
        "  node 1 - 0 2",
        "  node 2 - 0 1",
    ]
