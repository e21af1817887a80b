"""Images, groups and orbits against networkx and against their definitions, on random graphs and permutations."""

from __future__ import annotations

from itertools import permutations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.isomorphism import DiGraphMatcher, categorical_edge_match
from random_graphs import Graph, graphs

from synth.graph.symmetry import arc_images, generated, isomorphisms, orbits, orbits_of_group, row_images


@st.composite
def generators(draw: st.DrawFn, most: int = 6) -> tuple[int, list[np.ndarray]]:
    count = draw(st.integers(1, most))
    found = draw(st.lists(st.permutations(range(count)), max_size=3))
    return count, [np.array(image, dtype=np.int64) for image in found]


def coloured(graph: Graph) -> np.ndarray:
    """What joins every ordered pair: how often with which size; shape (nodes, nodes)."""
    found = np.zeros((graph.nodes, graph.nodes), dtype=np.int64)
    np.add.at(found, (graph.tail, graph.head), 100**graph.size)
    return found


@given(graph=graphs(most_nodes=4, sizes=st.integers(0, 1)))
def test_images_of_arcs(graph: Graph) -> None:
    """Some where and only where the matrix of what joins all pairs stays the same, and then one to one, ends onto the
    images of ends, kind onto kind, parallel arcs of one kind in order."""
    joined = coloured(graph)
    for image in map(np.array, permutations(range(graph.nodes))):
        found = arc_images(image, graph.tail, graph.head, (graph.size,))
        assert (found is not None) == np.array_equal(joined[np.ix_(image, image)], joined)
        if found is not None:
            assert sorted(found.tolist()) == list(range(len(graph.tail)))
            assert np.array_equal(graph.tail[found], image[graph.tail])
            assert np.array_equal(graph.head[found], image[graph.head])
            assert np.array_equal(graph.size[found], graph.size)
            rows = list(zip(graph.tail.tolist(), graph.head.tolist(), graph.size.tolist(), strict=True))
            for row in set(rows):
                alike = [e for e, other in enumerate(rows) if other == row]
                assert np.all(np.diff(found[alike]) > 0)


@given(graph=graphs(most_nodes=4, sizes=st.integers(0, 2)))
def test_kinds_that_move(graph: Graph) -> None:
    """Size 0 becomes 1 and 1 becomes 0: as on the graph with these sizes exchanged."""
    turned = np.array([1, 0, 2])[graph.size]
    other = coloured(graph._replace(size=turned))
    for image in map(np.array, permutations(range(graph.nodes))):
        found = arc_images(image, graph.tail, graph.head, (graph.size,), (turned,))
        moved = np.zeros_like(other)
        moved[np.ix_(image, image)] = other
        assert (found is not None) == np.array_equal(moved, coloured(graph))
        assert found is None or np.array_equal(graph.size[found], turned)


@given(moves=generators())
def test_groups_and_orbits(moves: tuple[int, list[np.ndarray]]) -> None:
    """The group is what products of generators reach, networkx finding it as a graph of permutations; its orbits are
    those of the generators."""
    count, moved = moves
    cayley = nx.DiGraph()
    cayley.add_node(tuple(range(count)))
    for image in permutations(range(count)):
        cayley.add_edges_from((image, tuple(g[list(image)].tolist())) for g in moved)
    reached = {tuple(range(count))} | nx.descendants(cayley, tuple(range(count)))
    group = generated(moved, count, 720)
    assert group is not None
    assert group[0].tolist() == list(range(count))
    assert {tuple(image) for image in group.tolist()} == reached
    assert len(group) == len(reached)
    assert generated(moved, count, len(group) - 1) is None or len(group) == 1
    things = nx.Graph()
    things.add_nodes_from(range(count))
    things.add_edges_from((i, int(g[i])) for g in moved for i in range(count))
    least = [0] * count
    for part in nx.connected_components(things):
        for i in part:
            least[i] = min(part)
    assert orbits(count, moved).tolist() == orbits_of_group(group).tolist() == least


@given(moves=generators(most=5), more=generators(most=5))
def test_elements_told_apart_by_some_things_only(
    moves: tuple[int, list[np.ndarray]], more: tuple[int, list[np.ndarray]]
) -> None:
    """As many as there are restrictions to these things."""
    joined = [np.concatenate([a, moves[0] + b]) for a, b in zip(moves[1], more[1], strict=False)]
    count = moves[0] + more[0]
    every = generated(joined, count, 120**2)
    some = generated(joined, count, 120**2, told_apart=moves[0])
    assert every is not None
    assert some is not None
    restricted = {tuple(row) for row in every[:, moves[0] :].tolist()}
    assert {tuple(row) for row in some[:, moves[0] :].tolist()} == restricted
    assert len(some) == len(restricted)


@given(moves=generators(), columns=st.integers(1, 3))
def test_images_of_rows(moves: tuple[int, list[np.ndarray]], columns: int) -> None:
    count, moved = moves
    rows = np.stack(np.unravel_index(np.arange(count**columns), (count,) * columns), axis=1)
    rows = np.random.default_rng(0).permutation(rows)
    for image, found in zip(moved, row_images(moved, rows), strict=True):
        assert np.array_equal(rows[found], image[rows])


@given(graph=graphs(most_nodes=4, sizes=st.integers(0, 1)), image=st.permutations(range(4)))
def test_isomorphisms(graph: Graph, image: list[int]) -> None:
    """All that networkx finds, onto a renumbering of the graph."""
    colour = coloured(graph)
    order = np.array([v for v in image if v < graph.nodes])
    target = colour[np.ix_(order, order)]
    whole = [nx.complete_graph(graph.nodes, nx.DiGraph) for _ in range(2)]
    for found, matrix in zip(whole, (colour, target), strict=True):
        found.add_edges_from((v, v) for v in range(graph.nodes))
        for u, v in found.edges:
            found.edges[u, v]["colour"] = int(matrix[u, v])
    matches = DiGraphMatcher(*whole, edge_match=categorical_edge_match("colour", None)).isomorphisms_iter()
    expected = sorted(tuple(match[u] for u in range(graph.nodes)) for match in matches)
    assert list(isomorphisms(colour, target)) == expected
