"""Edge colourings of random bipartite multigraphs: proper on networkx's line graph, with König's number of colours."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.graph.edge_colouring import edge_colours

SIDE = 7


@given(
    edges=st.lists(st.tuples(st.integers(0, SIDE - 1), st.integers(0, SIDE - 1)), max_size=60), spare=st.integers(0, 2)
)
def test_edges_that_meet_differ_in_colour(edges: list[tuple[int, int]], spare: int) -> None:
    """Parallel edges, one edge or none, more colours than are needed; with one fewer than the degree it is refused."""
    graph = nx.MultiGraph()
    graph.add_edges_from((("left", u), ("right", v), k) for k, (u, v) in enumerate(edges))
    degree = max((d for _, d in graph.degree), default=0)
    left, right = np.array(edges, dtype=np.int64).reshape(-1, 2).T.copy()
    colour = edge_colours(left, right, SIDE, SIDE, degree + spare)
    assert colour.shape == (len(edges),)
    assert np.all((colour >= 0) & (colour < degree + spare))
    for one, other in nx.line_graph(graph).edges():
        assert one == other or colour[one[2]] != colour[other[2]]
    if edges:
        with pytest.raises(ValueError, match="more edges than there are colours"):
            edge_colours(left, right, SIDE, SIDE, degree - 1)


def test_larger_ones() -> None:
    """150 edges at 12 and 9 vertices."""
    random = np.random.default_rng(0)
    left, right = random.integers(0, 12, 150), random.integers(0, 9, 150)
    degree = int(max(np.bincount(left).max(), np.bincount(right).max()))
    colour = edge_colours(left, right, 12, 9, degree)
    for side in (left, right):
        assert len({(v, c) for v, c in zip(side.tolist(), colour.tolist(), strict=True)}) == len(side)
