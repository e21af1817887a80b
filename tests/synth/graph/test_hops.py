"""Hops by every search against networkx, on random multigraphs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_graphs import Graph, graphs

from synth.graph.hops import breadth_first, hops, hops_from_nearest, large_hops, small_hops
from synth.graph.rows import lists_by, rows_by
from synth.network import Network


def expected(graph: Graph, sources: list[int]) -> np.ndarray:
    """Hops as networkx counts them."""
    found = np.full((len(sources), graph.nodes), -1)
    for row, source in zip(found, sources, strict=True):
        for node, away in nx.single_source_shortest_path_length(graph.networkx(), source).items():
            row[node] = away
    return found


@pytest.mark.parametrize("search", [hops, small_hops, large_hops])
@given(graph=graphs(), data=st.data())
def test_hops(search: object, graph: Graph, data: st.DataObject) -> None:
    sources = data.draw(st.lists(st.integers(0, graph.nodes - 1), min_size=1))
    found = search(graph.nodes, graph.tail, graph.head, sources)  # type: ignore[operator]
    assert found.dtype == np.int32
    assert np.array_equal(found, expected(graph, sources))


@given(graph=graphs(), data=st.data())
def test_hops_from_the_nearest_source(graph: Graph, data: st.DataObject) -> None:
    sources = data.draw(st.lists(st.integers(0, graph.nodes - 1)))
    found = hops_from_nearest(graph.nodes, graph.tail, graph.head, sources)
    away = np.where((each := expected(graph, sources)) < 0, graph.nodes, each).min(axis=0, initial=graph.nodes)
    assert np.array_equal(found, np.where(away == graph.nodes, -1, away))


@given(graph=graphs(), data=st.data())
def test_breadth_first_in_a_kernel(graph: Graph, data: st.DataObject) -> None:
    """The hops, and every node that is reached once, the nearer ones first."""
    source = data.draw(st.integers(0, graph.nodes - 1))
    start, out = rows_by(graph.tail, graph.nodes)
    distance, order = np.empty(graph.nodes, np.int64), np.empty(graph.nodes, np.int64)
    breadth_first(start, graph.head[out], source, distance, order)
    assert np.array_equal(distance, expected(graph, [source])[0])
    reached = order[order >= 0]
    assert sorted(reached.tolist()) == np.flatnonzero(distance >= 0).tolist()
    assert np.all(order[len(reached) :] == -1)
    assert np.all(np.diff(distance[reached]) >= 0)


@given(graph=graphs())
def test_a_pair_that_is_cut_off(graph: Graph) -> None:
    """Named exactly where a pair without a path exists, and then one of those."""
    links = [(u, v) for u, v in zip(graph.tail.tolist(), graph.head.tolist(), strict=True) if u != v]
    pair, apart = Network(graph.nodes, links).cut_off_pair(), expected(graph, list(range(graph.nodes))) < 0
    assert apart.any() if pair else not apart.any()
    assert pair is None or apart[pair]


@given(key=st.lists(st.integers(0, 5)))
def test_rows(key: list[int]) -> None:
    start, order = rows_by(np.array(key, dtype=np.int64), 6)
    expected = [[i for i, k in enumerate(key) if k == v] for v in range(6)]
    assert [order[start[v] : start[v + 1]].tolist() for v in range(6)] == expected
    assert lists_by(np.array(key, dtype=np.int64), 6) == expected
