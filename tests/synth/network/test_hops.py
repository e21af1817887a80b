"""Hops by both searches against Bellman-Ford's relaxation, on random graphs with parallel arcs and parts cut off."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.network import Network
from synth.network.hops import hops, large_hops, small_hops


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, np.ndarray, np.ndarray]:
    nodes = draw(st.integers(1, 9))
    node = st.integers(0, nodes - 1)
    arcs = draw(st.lists(st.tuples(node, node), max_size=30))
    pairs = np.array(arcs, dtype=np.int64).reshape(-1, 2)
    return nodes, pairs[:, 0], pairs[:, 1]


def relaxed(nodes: int, tail: np.ndarray, head: np.ndarray) -> np.ndarray:
    """Hops between all nodes: arcs are relaxed until nothing changes."""
    far = nodes + 1
    found = np.full((nodes, nodes), far)
    np.fill_diagonal(found, 0)
    for _ in range(nodes):
        for start, end in zip(tail, head, strict=True):
            found[:, end] = np.minimum(found[:, end], found[:, start] + 1)
    return np.where(found >= far, -1, found)


@pytest.mark.parametrize("search", [hops, small_hops, large_hops])
@settings(deadline=None)  # the first example imports scipy
@given(graph=graphs(), data=st.data())
def test_hops(search: object, graph: tuple[int, np.ndarray, np.ndarray], data: st.DataObject) -> None:
    nodes, tail, head = graph
    sources = data.draw(st.lists(st.integers(0, nodes - 1), min_size=1))
    found = search(nodes, tail, head, sources)  # type: ignore[operator]
    assert found.dtype == np.int32
    assert np.array_equal(found, relaxed(nodes, tail, head)[sources])


@settings(deadline=None)
@given(graph=graphs())
def test_a_pair_that_is_cut_off(graph: tuple[int, np.ndarray, np.ndarray]) -> None:
    """Named exactly where a pair without a path exists, and then one of those."""
    nodes, tail, head = graph
    links = [(u, v) for u, v in zip(tail.tolist(), head.tolist(), strict=True) if u != v]
    pair, apart = Network(nodes, links).cut_off_pair(), relaxed(nodes, tail, head) < 0
    assert apart.any() if pair else not apart.any()
    assert pair is None or apart[pair]
