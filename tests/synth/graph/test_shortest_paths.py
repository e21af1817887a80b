"""Shortest paths by every search against networkx, on random multigraphs with ties, zero and huge lengths."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_graphs import Graph, graphs

from synth.arrays import IntArray
from synth.graph.rows import rows_by
from synth.graph.shortest_paths import UNREACHABLE, PathTrees, add_loads, all_pairs, search

SMALL = st.integers(0, 3)
HUGE = st.integers(0, 3) | st.integers(2**58 - 3, 2**58)
LENGTHS = [pytest.param(SMALL, id="small"), pytest.param(HUGE, id="huge")]


def expected(graph: Graph, first: dict[int, int], through: set[int]) -> list[int]:
    """Distances by networkx from several beginnings; paths pass ``through`` and where they begin."""
    copy = graph.networkx()
    for v in set(range(graph.nodes)) - through - first.keys():  # a second node where paths that pass would arrive
        copy.add_node(("end", v))
        for u, _, key, data in list(copy.in_edges(v, keys=True, data=True)):
            copy.remove_edge(u, v, key)
            copy.add_edge(u, ("end", v), size=data["size"])
    for v, distance in first.items():
        copy.add_edge("source", v, size=distance)
    copy.add_node("source")
    found = nx.single_source_dijkstra_path_length(copy, "source", weight="size")
    return [min(found.get(v, UNREACHABLE), found.get(("end", v), UNREACHABLE)) for v in range(graph.nodes)]


def searched(graph: Graph, first: dict[int, int], through: set[int], kind: type) -> tuple[list, IntArray, IntArray]:
    """Distances, arcs and order of the kernel, with lengths of this kind."""
    beginning = np.full(graph.nodes, UNREACHABLE if kind is np.int64 else np.inf, dtype=kind)
    for v, distance in first.items():
        beginning[v] = distance
    entered, settled = np.empty(graph.nodes, np.int64), np.empty(graph.nodes, np.int64)
    start, out = rows_by(graph.tail, graph.nodes)
    passes = np.array([v in through for v in range(graph.nodes)])
    found = search(start, out, graph.head, graph.size.astype(kind), beginning, passes, entered, settled)
    return [UNREACHABLE if d == np.inf else int(d) for d in found.tolist()], entered, settled


@pytest.mark.parametrize(("lengths", "kind"), [(SMALL, np.int64), (SMALL, np.float64), (HUGE, np.int64)])
@given(data=st.data())
def test_search(lengths: st.SearchStrategy[int], kind: type, data: st.DataObject) -> None:
    """Distances; the arcs entered by form paths of these lengths; nodes are settled by distance, ties ascending where
    no arc of length 0 joins them."""
    graph = data.draw(graphs(sizes=lengths))
    node = st.integers(0, graph.nodes - 1)
    first = data.draw(st.dictionaries(node, SMALL, max_size=3))
    through = data.draw(st.sets(node))
    found, entered, settled = searched(graph, first, through, kind)
    assert found == expected(graph, first, through)
    for v, e in enumerate(entered.tolist()):
        if e >= 0:
            assert graph.head[e] == v
            assert found[v] == found[graph.tail[e]] + int(graph.size[e])
            assert int(graph.tail[e]) in through | first.keys()
        else:
            assert found[v] == first.get(v, UNREACHABLE)
    reached = settled[settled >= 0].tolist()
    assert sorted(reached) == [v for v in range(graph.nodes) if found[v] < UNREACHABLE]
    keys = [(found[v], v) for v in reached]
    assert [d for d, _ in keys] == sorted(d for d, _ in keys)
    if np.all(graph.size > 0):
        assert keys == sorted(keys)


@given(graph=graphs(), data=st.data())
def test_loads(graph: Graph, data: st.DataObject) -> None:
    """Every unit wanted adds one to each arc of its node's path."""
    source = data.draw(st.integers(0, graph.nodes - 1))
    amounts = st.lists(st.integers(0, 5), min_size=graph.nodes, max_size=graph.nodes)
    wanted = np.array(data.draw(amounts), dtype=np.int64)
    _, entered, settled = searched(graph, {source: 0}, set(range(graph.nodes)), np.int64)
    load, by_hand = np.zeros(len(graph.tail), np.int64), np.zeros(len(graph.tail), np.int64)
    add_loads(entered, settled, graph.tail, wanted, load)
    for v in range(graph.nodes):
        at = v
        while entered[at] >= 0:
            by_hand[entered[at]] += wanted[v]
            at = int(graph.tail[entered[at]])
    assert np.array_equal(load, by_hand)


@pytest.mark.parametrize("lengths", LENGTHS)
@given(data=st.data())
def test_all_pairs(lengths: st.SearchStrategy[int], data: st.DataObject) -> None:
    graph = data.draw(graphs(sizes=lengths))
    direct = np.full((graph.nodes, graph.nodes), UNREACHABLE)
    np.minimum.at(direct, (graph.tail, graph.head), graph.size)
    before = direct.copy()
    every = set(range(graph.nodes))
    assert all_pairs(direct).tolist() == [expected(graph, {u: 0}, every) for u in range(graph.nodes)]
    assert np.array_equal(direct, before)


@given(graph=graphs(), data=st.data())
def test_trees(graph: Graph, data: st.DataObject) -> None:
    """Distances, and the arcs by which trees enter nodes: the first of the shortest from where they come."""
    sources = data.draw(st.lists(st.integers(0, graph.nodes - 1), min_size=1))
    paths = PathTrees(graph.nodes, graph.tail, graph.head)
    distance, entered = paths.trees(graph.size.astype(float), np.array(sources))
    assert np.array_equal(paths.distances(graph.size.astype(float), np.array(sources)), distance)
    for row, source in enumerate(sources):
        whole = [UNREACHABLE if d == np.inf else int(d) for d in distance[row].tolist()]
        assert whole == expected(graph, {source: 0}, set(range(graph.nodes)))
        for v, e in enumerate(entered[row].tolist()):
            assert (e >= 0) == (v != source and whole[v] < UNREACHABLE)
            if e >= 0:
                alike = np.flatnonzero((graph.tail == graph.tail[e]) & (graph.head == v))
                assert e == alike[np.argmin(graph.size[alike])]
                assert graph.head[e] == v
                assert whole[v] == whole[graph.tail[e]] + graph.size[e]
