"""Networks given from Python: a NetworkX graph, a pandas frame."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pandas as pd
import pytest

import synth
from synth.errors import InputError


def test_a_graph_is_a_network() -> None:
    """A path a - b - c takes two timesteps each way for C = 1: b receives both ends in one, the ends need two."""
    graph = nx.path_graph(["a", "b", "c"])
    graph["a"]["b"]["bandwidth"] = 5.0
    instance = synth.make("xtree", links=graph, bandwidth=1.0, latency=0, chunks=1, name="path")
    assert (
        instance.source
        == "synth make xtree 'links=(Graph with 3 nodes and 2 edges)' bandwidth=1.0 latency=0 chunks=1 name=path"
    )
    assert instance.topology.src.tolist() == [0, 1, 1, 2]
    assert instance.topology.bandwidth.tolist() == [5.0, 5.0, 1.0, 1.0]
    assert instance.topology.names == ("a", "b", "c")
    assert synth.solve(instance, "ilp").value == 2


def test_parallel_edges_are_parallel_links() -> None:
    graph = nx.MultiDiGraph([(0, 1), (0, 1), (1, 0)])
    assert synth.make("xtree", links=graph, bandwidth=1, latency=0, name="two").topology.links == 3


def test_a_frame_is_a_network() -> None:
    frame = pd.DataFrame({"src": [0, 1, 1], "dst": [1, 0, 0], "latency": [1e-6, None, 2e-6]})
    instance = synth.make("xtree", links=frame, name="frame", bandwidth="1GB/s", latency="3us")
    assert instance.topology.latency.tolist() == [1e-6, 3e-6, 2e-6]
    assert instance.topology.links == 3


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (pd.DataFrame({"src": [0], "to": [1]}), "has the columns src,dst"),
        (pd.DataFrame({"src": [0.5], "dst": [1]}), "whole numbers"),
        (3, "must be a file, a NetworkX graph or a pandas"),
        (nx.DiGraph([(0, 1)]), "disconnected"),
    ],
)  # fmt: skip
def test_what_is_no_network(links: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        synth.make("xtree", links=links, name="x", bandwidth=1, latency=0)


@pytest.mark.parametrize("family", ["fabric", "xtree"])
def test_faults_of_a_graph_name_its_edges(family: str) -> None:
    """By their ends, and the graph by its type; one given as ``network`` is sent to ``links``."""
    graph = nx.DiGraph()
    graph.add_edge("a", "b", bandwidth="fast", latency=1e-6)
    graph.add_edge("b", "a", bandwidth=1e9, latency=-1)
    asked: dict[str, Any] = {"fabric": {"collective": "allgather", "bytes": 100}, "xtree": {}}[family]
    with pytest.raises(InputError) as caught:
        synth.make(family, links=graph, name="x", **asked)
    for words in ("links = DiGraph: ", "edge a-b, bandwidth = 'fast': ", "edge b-a, latency = -1: "):
        assert words in str(caught.value)
    with pytest.raises(InputError, match="network = DiGraph: a graph is given as links="):
        synth.make(family, network=graph, name="x", **asked)
