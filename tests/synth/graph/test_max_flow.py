"""Maximum flows and least cuts against networkx, on random multigraphs with zero, tied and huge capacities."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from examples import some
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_graphs import Graph, graphs

from synth.graph import max_flow
from synth.graph.max_flow import MaximumFlow, augment, of_matrix, reached, residual

SMALL = st.integers(0, 3)
HUGE = st.integers(0, 3) | st.integers(2**30 - 2, 2**30) | st.integers(2**56 - 3, 2**56)
CAPACITIES = [pytest.param(SMALL, id="small"), pytest.param(HUGE, id="huge")]


def simple(graph: Graph) -> nx.DiGraph:
    """Parallel arcs joined to one."""
    found = nx.DiGraph()
    found.add_nodes_from(range(graph.nodes))
    for u, v, data in graph.networkx().edges(data=True):
        if u != v:
            before = found.edges[u, v]["size"] if found.has_edge(u, v) else 0
            found.add_edge(u, v, size=before + data["size"])
    return found


def expected(graph: Graph, source: int, sink: int) -> tuple[int, set[int], set[int]]:
    """Value, the source's side nearest to it, the sink's side nearest to it."""
    value, flow = nx.maximum_flow(simple(graph), source, sink, capacity="size")
    left = nx.DiGraph()
    left.add_nodes_from(range(graph.nodes))
    for u, v, data in simple(graph).edges(data=True):
        if flow[u][v] < data["size"]:
            left.add_edge(u, v)
        if flow[u][v] > 0:
            left.add_edge(v, u)
    return value, {source} | nx.descendants(left, source), {sink} | nx.ancestors(left, sink)


@st.composite
def questions(draw: st.DrawFn, capacities: st.SearchStrategy[int]) -> tuple[Graph, int, int]:
    graph = draw(graphs(sizes=capacities))
    assume(graph.nodes > 1)
    source, sink = draw(st.permutations(range(graph.nodes)))[:2]
    return graph, source, sink


def ids(side: np.ndarray) -> set[int]:
    return set(np.flatnonzero(side).tolist())


@pytest.mark.parametrize("small", [0, 2**30], ids=["kernel", "scipy"])
@pytest.mark.parametrize("capacities", CAPACITIES)
@given(data=st.data())
def test_value_and_cuts(small: int, capacities: st.SearchStrategy[int], data: st.DataObject) -> None:
    """What scipy can take is asked of both."""
    graph, source, sink = data.draw(questions(capacities))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(max_flow, "SMALL_CAPACITY", small)
        found = MaximumFlow(graph.nodes, graph.tail, graph.head, graph.size, source, sink)
        sides = ids(found.source_side), ids(found.sink_side)
    assert (found.value, *sides) == expected(graph, source, sink)


@settings(max_examples=some(50))
@given(graph=graphs(sizes=SMALL), data=st.data())
def test_a_network_asked_again(graph: Graph, data: st.DataObject) -> None:
    """Many pairs of nodes of one network and of the same with another capacity, cuts asked for late or not at all."""
    assume(graph.nodes > 1)
    other = Graph(graph.nodes, graph.tail, graph.head, graph.size + 1)
    pairs = [tuple(data.draw(st.permutations(range(graph.nodes)))[:2]) for _ in range(4)]
    asked = [(one, *pair) for pair in pairs for one in (graph, other, graph)]
    flows = [MaximumFlow(one.nodes, one.tail, one.head, one.size, *pair) for one, *pair in asked]
    for (one, source, sink), found in zip(asked, flows, strict=True):
        value, near_source, near_sink = expected(one, source, sink)
        assert found.value == value
        if data.draw(st.booleans()):
            assert (ids(found.source_side), ids(found.sink_side)) == (near_source, near_sink)


@pytest.mark.parametrize("small", [0, 2**30], ids=["kernel", "scipy"])
@pytest.mark.parametrize("capacities", CAPACITIES)
@given(data=st.data())
def test_flow_on_arcs(small: int, capacities: st.SearchStrategy[int], data: st.DataObject) -> None:
    """Within the capacities, kept at every other node, and of the value, where no two arcs have the same ends."""
    graph, source, sink = data.draw(questions(capacities))
    first = np.unique(graph.tail * graph.nodes + graph.head, return_index=True)[1]
    some = Graph(graph.nodes, graph.tail[first], graph.head[first], graph.size[first])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(max_flow, "SMALL_CAPACITY", small)
        found = MaximumFlow(*some, source, sink)
        flow = found.on_arcs
    assert np.all((flow >= 0) & (flow <= some.size))
    out = [int(flow[some.tail == v].sum() - flow[some.head == v].sum()) for v in range(graph.nodes)]
    assert out == [found.value if v == source else -found.value if v == sink else 0 for v in range(graph.nodes)]


@pytest.mark.parametrize("capacities", CAPACITIES)
@given(data=st.data())
def test_the_matrix_holds_the_same_network(capacities: st.SearchStrategy[int], data: st.DataObject) -> None:
    """Value and cut; and in part, ``most``; what has been sent can be read off what is left."""
    graph, source, sink = data.draw(questions(capacities))
    matrix = np.zeros((graph.nodes, graph.nodes), dtype=np.int64)
    np.add.at(matrix, (graph.tail, graph.head), graph.size)
    np.fill_diagonal(matrix, 0)
    value, side, _ = expected(graph, source, sink)
    network = of_matrix(matrix)
    assert augment(network, source, sink, 2**62) == value
    assert ids(reached(network, source)) == side
    most = data.draw(st.integers(0, 5))
    network = of_matrix(matrix)
    assert augment(network, source, sink, most) == min(value, most)
    left = np.zeros_like(matrix)
    left[network.head.reshape(-1, 2)[:, ::-1].reshape(-1), network.head] = network.room
    assert np.array_equal(left + left.T, matrix + matrix.T)
    sent = (matrix - left).sum(axis=1)
    assert sent[source] == -sent[sink] == min(value, most)
    assert np.count_nonzero(sent) <= 2


def test_capacities_beyond_64_bits_are_refused() -> None:
    wide = np.array([2**62, 2**62])
    with pytest.raises(OverflowError, match="64 bits"):
        MaximumFlow(2, np.array([0, 0]), np.array([1, 1]), wide, 0, 1)


def test_parallel_arcs_whose_sum_exceeds_32_bits() -> None:
    """Each fits scipy's 32 bits, three together do not: 3 * 2^30."""
    ends, capacity = np.zeros(3, dtype=np.int64), np.full(3, 2**30)
    assert MaximumFlow(2, ends, ends + 1, capacity, 0, 1).value == 3 * 2**30
    assert augment(residual(2, ends, ends + 1, capacity), 0, 1, 2**62) == 3 * 2**30
