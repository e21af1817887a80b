"""Decompositions into Hamiltonian cycles, each checked from the definition, over many sides and jumps."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import gcd, prod

import networkx as nx
import numpy as np
import pytest
from examples import some, some_of
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.graph.hamiltonian_cycles import hamiltonian_cycles, is_decomposition

Edges = list[tuple[int, int]]


def torus(*sides: int) -> Edges:
    """Every node to the next along each side, nodes row-major; a side of 2 gives one edge."""
    number = {cell: k for k, cell in enumerate(product(*map(range, sides)))}
    edges = []
    for cell in number:
        for axis, side in enumerate(sides):
            if side > 2 or cell[axis] == 0:
                after = (*cell[:axis], (cell[axis] + 1) % side, *cell[axis + 1 :])
                edges.append((number[cell], number[after]))
    return edges


def circulant(nodes: int, *jumps: int) -> Edges:
    return [(u, (u + jump) % nodes) for u in range(nodes) for jump in jumps]


def decompose(nodes: int, edges: Edges, cycles: int) -> None:
    """The cycles, looked at with nothing but networkx and counters."""
    tail, head = np.array(edges, dtype=np.int64).T
    found = hamiltonian_cycles(nodes, tail, head)
    assert found is not None
    assert found.nodes.shape == found.edges.shape == (cycles, nodes)
    used = Counter[tuple[int, ...]]()
    for order in found.nodes.tolist():
        graph = nx.Graph(list(zip(order, [*order[1:], order[0]], strict=True)))
        assert nx.is_connected(graph)
        assert len(graph) == graph.number_of_edges() == nodes
        used.update(tuple(sorted(edge)) for edge in graph.edges)
    assert used == Counter(tuple(sorted(edge)) for edge in edges)
    assert is_decomposition(found, nodes, tail, head)


@pytest.mark.parametrize(("rows", "cols"), some_of(product(range(3, 11), repeat=2)))
def test_tori_of_two_sides(rows: int, cols: int) -> None:
    decompose(rows * cols, torus(rows, cols), 2)


@pytest.mark.parametrize("sides", [(3, 64), (4, 64), (16, 16), (5, 51), (32, 32), (3, 3, 3), (3, 4, 5), (8, 8, 4),
                                   (3, 3, 3, 3), (5, 3, 4, 4), (3, 3, 3, 3, 3), (4, 4, 2, 2)])  # fmt: skip
def test_other_tori(sides: tuple[int, ...]) -> None:
    """Two sides of 2 are a ring of 4."""
    decompose(prod(sides), torus(*sides), (2 * len(sides) - sides.count(2)) // 2)


@settings(max_examples=some(60), deadline=None)
@given(st.lists(st.integers(3, 9), min_size=2, max_size=4).filter(lambda sides: prod(sides) <= 1000))
def test_tori_of_any_sides(sides: list[int]) -> None:
    decompose(prod(sides), torus(*sides), len(sides))


@pytest.mark.parametrize("dimension", [2, 4, 6, 8, 10])
def test_hypercubes_of_even_dimension(dimension: int) -> None:
    decompose(2**dimension, torus(*[2] * dimension), dimension // 2)


@pytest.mark.parametrize(("dimension", "times"), [(3, 4), (5, 2), (7, 2)])
def test_hypercubes_of_odd_dimension(dimension: int, times: int) -> None:
    """Every edge twice makes the degree even; of the cube three cycles do not do so."""
    decompose(2**dimension, times * torus(*[2] * dimension), dimension * times // 2)


@settings(max_examples=some(80), deadline=None)
@given(st.integers(7, 200), st.data())
def test_circulants(nodes: int, data: st.DataObject) -> None:
    jumps = data.draw(st.lists(st.integers(1, (nodes - 1) // 2), min_size=2, max_size=3, unique=True))
    if gcd(nodes, *jumps) == 1:
        decompose(nodes, circulant(nodes, *jumps), len(jumps))


@pytest.mark.parametrize("seed", some_of(range(8)))
def test_numbers_do_not_matter(seed: int) -> None:
    """The network is known from its edges: nodes and edges in any order, edges with their ends in any order."""
    rng = np.random.default_rng(seed)
    name = rng.permutation(60).tolist()
    edges = [(name[u], name[v]) if rng.random() < 0.5 else (name[v], name[u]) for u, v in torus(5, 3, 4)]
    decompose(60, [edges[k] for k in rng.permutation(len(edges))], 3)


@pytest.mark.parametrize("edges", [
    [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)],  # two triangles
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)],  # a path
    [(u, v) for u in range(6) for v in range(u)],  # complete, of odd degree
    2 * torus(2, 2, 2),
])  # fmt: skip
def test_where_there_are_none(edges: Edges) -> None:
    """Of the cube twice: a cycle leaves out a perfect matching, and the cube's four factorisations into three of these
    each hold one whose complement is two squares."""
    tail, head = np.array(edges, dtype=np.int64).T
    assert hamiltonian_cycles(int(max(tail.max(), head.max())) + 1, tail, head) is None


def test_what_is_no_decomposition() -> None:
    tail, head = np.array(torus(3, 3), dtype=np.int64).T
    found = hamiltonian_cycles(9, tail, head)
    assert found is not None
    for part in range(2):
        for row, at in ((0, 3), (1, 7)):
            broken = type(found)(found.nodes.copy(), found.edges.copy())
            broken[part][row, at] = broken[part][row, at - 1]
            assert not is_decomposition(broken, 9, tail, head)
    twice = type(found)(found.nodes[[0, 0]], found.edges[[0, 0]])
    assert not is_decomposition(twice, 9, tail, head)
