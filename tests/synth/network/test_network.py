"""Networks: builders against hand-counted links and networkx's generators, symmetries and distances against others."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.network import Network, builders
from synth.network.symmetry import is_automorphism, point_symmetries, translation, translations


def links_of(network: Network) -> Counter[tuple[int, int]]:
    return Counter(zip(network.src.tolist(), network.dst.tolist(), strict=True))


def both_ways(edges: list[tuple[int, int]]) -> Counter[tuple[int, int]]:
    return Counter([*edges, *((v, u) for u, v in edges)])


def test_builders_by_hand() -> None:
    assert links_of(builders.line(3)) == both_ways([(0, 1), (1, 2)])
    assert links_of(builders.ring(4)) == both_ways([(0, 1), (1, 2), (2, 3), (3, 0)])
    assert links_of(builders.ring(3, False)) == Counter([(0, 1), (1, 2), (2, 0)])
    assert links_of(builders.grid((2, 3), False)) == both_ways([(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)])
    # 2x2 EquiMesh: the 4 mesh edges both ways, and every edge ring 0->1->0 doubles both of its links: 16 = 4RC
    square = both_ways([(0, 1), (2, 3), (0, 2), (1, 3)])
    assert links_of(builders.equimesh(2, 2)) == square + square
    # Imase-Itoh, 3 nodes, degree 2: u -> -(2u+1), -(2u+2) mod 3: 0 -> 2, 1; 1 -> 0, 2; 2 -> 1, 0
    assert links_of(builders.kautz(3, 2)) == Counter([(0, 2), (0, 1), (1, 0), (1, 2), (2, 1), (2, 0)])
    # 4 nodes, degree 2: 0 -> 3, 2; 1 -> (1 dropped), 0; 2 -> 3, (2 dropped); 3 -> 1, 0
    assert links_of(builders.kautz(4, 2)) == Counter([(0, 3), (0, 2), (1, 0), (2, 3), (3, 1), (3, 0)])


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("sides", [s for s in product(range(1, 6), repeat=2) if s != (1, 1)])
def test_grids_against_networkx(sides: tuple[int, int], wrap: bool) -> None:
    """networkx wraps a side only when it is longer than 2, which is our rule for sides 1 and 2 as well."""
    graph = nx.grid_2d_graph(*sides, periodic=wrap)
    edges = [(u[0] * sides[1] + u[1], v[0] * sides[1] + v[1]) for u, v in graph.edges if u != v]
    assert links_of(builders.grid(sides, wrap)) == both_ways(edges)


@pytest.mark.parametrize(
    ("sides", "links"),
    [((1, 2), 2), ((2, 2), 8), ((1, 3), 6), ((2, 3), 2 * (3 + 6)), ((3, 3), 36), ((2, 2, 2), 24), ((2, 3, 4), 24 * 5)],
)
def test_torus_short_sides(sides: tuple[int, ...], links: int) -> None:
    """A side of 1 gives no link, of 2 one each way, of >= 3 two out of every node: (2,3,4) has 1 + 2 + 2 per node."""
    network = builders.grid(sides, True)
    assert network.links == links
    assert max(links_of(network).values()) == 1
    assert links_of(network) == Counter((v, u) for u, v in links_of(network).elements())


@pytest.mark.parametrize("dimension", range(1, 6))
def test_hypercube_against_networkx(dimension: int) -> None:
    graph = nx.hypercube_graph(dimension)
    ids = {bits: int("".join(map(str, bits if dimension > 1 else (bits,))), 2) for bits in graph}
    assert links_of(builders.hypercube(dimension)) == both_ways([(ids[u], ids[v]) for u, v in graph.edges])


@pytest.mark.parametrize(("degree", "length"), [(2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (3, 2)])
def test_kautz_against_networkx(degree: int, length: int) -> None:
    """With (d+1) d^n nodes the Imase-Itoh network is the Kautz graph: the n-fold line digraph of the complete digraph
    on d+1 nodes, up to the names of nodes."""
    graph = nx.complete_graph(degree + 1, nx.DiGraph)
    for _ in range(length):
        graph = nx.line_graph(graph)
    ours = nx.DiGraph(list(links_of(builders.kautz((degree + 1) * degree**length, degree))))
    assert nx.is_isomorphic(ours, graph)


@pytest.mark.parametrize("rings", list(product(builders.RING_DIRECTIONS, repeat=4)))
def test_equimesh_degrees(rings: tuple[str, ...]) -> None:
    """What the topology is for: in- and out-degree 4 at every node, 4RC links, the mesh inside it, no self-loop."""
    for rows, cols in product(range(2, 8), repeat=2):
        network = builders.equimesh(rows, cols, rings)
        assert network.links == 4 * rows * cols
        assert set(network.in_degree.tolist()) == set(network.out_degree.tolist()) == {4}
        mesh = links_of(builders.grid((rows, cols), False))
        assert not mesh - links_of(network)
        first = slice(mesh.total())
        assert Counter(zip(network.src[first].tolist(), network.dst[first].tolist(), strict=True)) == mesh


def test_equimesh_ring_orders_of_the_paper() -> None:
    """Five nodes: 0 2 4 3 1 and back to 0, or 1 3 4 2 0 and back to 1; on the right edge these are ids 4, 9, ..."""
    assert builders.interleaved_ring(5, "even_up") == [0, 2, 4, 3, 1]
    assert builders.interleaved_ring(5, "odd_up") == [1, 3, 4, 2, 0]
    assert builders.interleaved_ring(4, "even_up") == [0, 2, 3, 1]
    assert builders.interleaved_ring(4, "odd_up") == [1, 3, 2, 0]
    network = builders.equimesh(5, 5, ("even_up", "odd_up", "even_up", "odd_up"))
    extra = links_of(network) - links_of(builders.grid((5, 5), False))
    top = [(0, 2), (2, 4), (4, 3), (3, 1), (1, 0)]
    bottom = [(21, 23), (23, 24), (24, 22), (22, 20), (20, 21)]
    left = [(0, 10), (10, 20), (20, 15), (15, 5), (5, 0)]
    right = [(9, 19), (19, 24), (24, 14), (14, 4), (4, 9)]
    assert extra == Counter(top + bottom + left + right)


@given(length=st.integers(2, 40))
@settings(derandomize=True)
def test_ring_directions_are_reverses(length: int) -> None:
    """Both orders visit all positions once (the paper's printed ranges leave one out) and are each other reversed."""

    def steps(direction: str) -> set[tuple[int, int]]:
        order = builders.interleaved_ring(length, direction)
        assert sorted(order) == list(range(length))
        return set(zip(order, order[1:] + order[:1], strict=True))

    assert steps("even_up") == {(v, u) for u, v in steps("odd_up")}


def test_builders_refuse() -> None:
    for call in (
        lambda: builders.line(1), lambda: builders.ring(1), lambda: builders.ring(1, False), lambda: builders.ring(0),
        lambda: builders.grid((1, 1), True), lambda: builders.grid((0, 4), False),
        lambda: builders.grid((-2, -2), True),
        lambda: builders.equimesh(1, 5), lambda: builders.equimesh(2, 2, ("even_up",) * 3),
        lambda: builders.equimesh(2, 2, ("up",) * 4), lambda: builders.hypercube(0), lambda: builders.hypercube(17),
        lambda: builders.kautz(1, 1), lambda: builders.kautz(4, 4), lambda: builders.kautz(4, 0),
        lambda: Network(2, [(0, 2)]), lambda: Network(2, [(-1, 0)]), lambda: Network(2, [(1, 1)]),
        lambda: Network(2, [(0, 1)], bandwidth=0.0), lambda: Network(2, [(0, 1)], bandwidth=float("nan")),
        lambda: Network(2, [(0, 1)], bandwidth=float("inf")), lambda: Network(2, [(0, 1)], latency=-1e-9),
        lambda: Network(2, [(0, 1)], latency=float("nan")), lambda: Network(0, []),
        lambda: Network(2, [(0, 1)], bandwidth=[1.0, 2.0]), lambda: Network(4, [(0, 1)], grid=(3,)),
    ):  # fmt: skip
        with pytest.raises(ValueError):  # noqa: PT011 - the messages are pinned in test_instance
            call()


def test_networks_are_immutable() -> None:
    given = np.array([1.0, 2.0])
    network = Network(2, [(0, 1), (1, 0)], given)
    given[0] = 99.0
    assert network.bandwidth.tolist() == [1.0, 2.0]
    for array in (network.src, network.dst, network.bandwidth, network.latency, network.in_degree, network.distances):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


@st.composite
def random_networks(draw: st.DrawFn) -> Network:
    nodes = draw(st.integers(2, 7))
    pairs = [(u, v) for u, v in product(range(nodes), repeat=2) if u != v]
    links = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=20))
    return Network(nodes, links, draw(st.lists(st.sampled_from([1.0, 2.0]), min_size=len(links), max_size=len(links))))


@given(network=random_networks())
@settings(derandomize=True, deadline=None)
def test_arrays_against_networkx(network: Network) -> None:
    """Degrees, adjacency, merged arcs, distances, diameter, connection and reversal, parallel links included."""
    graph = network.to_networkx()
    assert Counter(graph.edges()) == links_of(network)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    for v in range(network.nodes):
        assert (network.in_degree[v], network.out_degree[v]) == (graph.in_degree(v), graph.out_degree(v))
        _, _, pointer, links = network.in_links
        assert sorted(links[pointer[v] : pointer[v + 1]]) == [e for e in range(network.links) if network.dst[e] == v]
        _, _, pointer, links = network.out_links
        assert sorted(links[pointer[v] : pointer[v + 1]]) == [e for e in range(network.links) if network.src[e] == v]
        for w in range(network.nodes):
            assert network.distances[v, w] == lengths[v].get(w, -1)
    tail, head, capacity, arc = network.arcs
    arcs = list(zip(tail.tolist(), head.tolist(), strict=True))
    assert dict(zip(arcs, capacity.tolist(), strict=True)) == dict(links_of(network))
    assert [arcs[a] for a in arc] == list(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    pair = network.cut_off_pair()
    assert (pair is None) == nx.is_strongly_connected(graph)
    if pair is None:
        assert network.diameter == nx.diameter(nx.DiGraph(graph))
    else:
        assert not nx.has_path(graph, *pair)
        with pytest.raises(ValueError, match="not strongly connected"):
            _ = network.diameter
    mirrored = network.reversed()
    assert Counter(mirrored.to_networkx().edges()) == Counter(graph.reverse().edges())
    assert np.array_equal(mirrored.bandwidth, network.bandwidth)


def maps_links_to_links(network: Network, image: npt.NDArray[np.int64]) -> bool:
    """The definition, link by link: the multiset of (tail, head, bandwidth, latency) stays."""
    columns = (network.src, network.dst, network.bandwidth, network.latency)
    before = Counter(zip(*(column.tolist() for column in columns), strict=True))
    after = Counter((int(image[u]), int(image[v]), b, a) for u, v, b, a in before.elements())
    return sorted(image.tolist()) == list(range(network.nodes)) and before == after


@given(network=random_networks())
@settings(derandomize=True, deadline=None, max_examples=some(60))
def test_is_automorphism_against_the_definition(network: Network) -> None:
    for image in list(permutations(range(network.nodes)))[:24]:
        array = np.array(image)
        assert is_automorphism(network, array) == maps_links_to_links(network, array)


SYMMETRIC = {
    "torus 3x4": builders.grid((3, 4), True), "torus 2x5": builders.grid((2, 5), True),
    "torus 1x4": builders.grid((1, 4), True), "torus 2x3x3": builders.grid((2, 3, 3), True),
    "ring 5": builders.ring(5), "one-way ring 5": builders.ring(5, False), "ring 2": builders.ring(2),
    "hypercube 4": builders.hypercube(4), "line 2": builders.line(2), "mesh 2x2": builders.grid((2, 2), False),
}  # fmt: skip
ASYMMETRIC = {
    "mesh 2x3": builders.grid((2, 3), False),
    "equimesh 3x3": builders.equimesh(3, 3),
    "line 3": builders.line(3),
    "ring with one fast link": Network(3, [(0, 1), (1, 2), (2, 0)], [1.0, 1.0, 2.0], grid=(3,)),
    "ring with one slow hop": Network(3, [(0, 1), (1, 2), (2, 0)], 1.0, [0.0, 0.0, 1.0], grid=(3,)),
    "ring with one doubled link": Network(3, [(0, 1), (0, 1), (1, 2), (2, 0)], grid=(3,)),
    "no grid": Network(3, [(0, 1), (1, 2), (2, 0)]),
}


@pytest.mark.parametrize("name", list(SYMMETRIC))
def test_translations_are_symmetries(name: str) -> None:
    """Row v carries node 0 to v, every row maps links to links, and rows compose like coordinates add."""
    network = SYMMETRIC[name]
    rows = translations(network)
    assert rows is not None
    assert rows.shape == (network.nodes, network.nodes)
    assert rows[:, 0].tolist() == list(range(network.nodes))
    assert all(maps_links_to_links(network, row) for row in rows)
    assert {tuple(a[b]) for a in rows for b in rows} == {tuple(row) for row in rows}


@pytest.mark.parametrize("name", list(ASYMMETRIC))
def test_no_translations_where_links_differ(name: str) -> None:
    assert translations(ASYMMETRIC[name]) is None


def test_translation_by_hand() -> None:
    """2x3 grid, ids 0 1 2 / 3 4 5; one row down and one column right: 0 -> 4, 2 -> 3 (wraps), 5 -> 0."""
    assert translation((2, 3), (1, 1)).tolist() == [4, 5, 3, 1, 2, 0]


@pytest.mark.parametrize(
    ("network", "size"),
    [
        # square 8, rectangle 4, line 2; one-way ring: only the identity, as a flip turns links round
        (builders.grid((3, 3), False), 8),
        (builders.grid((3, 4), False), 4),
        (builders.line(4), 2),
        (builders.ring(5, False), 1),
        (builders.hypercube(3), 48),
        (builders.grid((4, 4), True), 8),
        # EquiMesh, all rings even_up: the transposition swaps top with left and bottom with right
        (builders.equimesh(3, 3), 2),
        # 1x4 torus: a flip along the side of 1 changes nothing and must not count twice
        (builders.grid((1, 4), True), 2),
        (Network(3, [(0, 1), (1, 2), (2, 0)]), 1),
    ],
)
def test_point_symmetries(network: Network, size: int) -> None:
    """Identity first, all distinct, all symmetries by the definition, closed under composition, hand-counted."""
    found = point_symmetries(network)
    assert found[0].tolist() == list(range(network.nodes))
    assert all(maps_links_to_links(network, image) for image in found)
    group = {tuple(image.tolist()) for image in found}
    assert {tuple(a[b].tolist()) for a in found for b in found} == group
    assert len(group) == size
    assert len(found) == size
