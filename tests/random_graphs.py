"""Random directed multigraphs for the tests of :mod:`synth.graph`, and the same as networkx knows them."""

from __future__ import annotations

from typing import NamedTuple

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from synth.arrays import IntArray

TIES = st.integers(0, 3)


class Graph(NamedTuple):
    """Nodes 0..nodes-1; arcs from ``tail`` to ``head`` with ``size`` (a length, a capacity), shape (arcs,) each."""

    nodes: int
    tail: IntArray
    head: IntArray
    size: IntArray

    def networkx(self) -> nx.MultiDiGraph:
        """The same graph; keys are arcs' numbers."""
        graph = nx.MultiDiGraph()
        graph.add_nodes_from(range(self.nodes))
        for e, (u, v, size) in enumerate(zip(self.tail.tolist(), self.head.tolist(), self.size.tolist(), strict=True)):
            graph.add_edge(u, v, key=e, size=size)
        return graph


@st.composite
def graphs(draw: st.DrawFn, most_nodes: int = 9, sizes: st.SearchStrategy[int] = TIES) -> Graph:
    """One node or more, loops and parallel arcs, nodes cut off, many ties unless other ``sizes`` are given."""
    nodes = draw(st.integers(1, most_nodes))
    node = st.integers(0, nodes - 1)
    arcs = draw(st.lists(st.tuples(node, node, sizes), max_size=30))
    columns = np.array(arcs, dtype=np.int64).reshape(-1, 3)
    return Graph(nodes, columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy())
