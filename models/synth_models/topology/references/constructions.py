"""Graphs that are made from smaller ones, as the direct-connect paper does (Zhao et al., NSDI 2025, section 4).

* ``complete_bipartite``: two halves, every node joined to all of the other one.
* ``line_graph``: a node for every arc, an arc for every two that follow each other, so degrees stay and nodes are
  ``degree`` times as many; again and again. One way.
* ``cartesian_power``: nodes are words, joined where they differ in one letter, by letters that are joined. Of complete
  graphs that is a Hamming graph, of two nodes a hypercube, of rings a torus.
* ``degree_expansion``: several copies of every node, joined where the nodes are; nodes and degree grow alike.

Bases are complete graphs, complete bipartite ones, rings, the circulants of degree 4 and the generalised Kautz graphs
of :mod:`synth_models.topology.references.published`, and powers and expansions of them; of all that fit the one of
least hops is taken. Two-way links of a base are two arcs of a one-way graph. A node's arcs have one order wherever it
stands, so that shifts of a base remain symmetries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.topology.instance import Budget, TopologyInstance
from synth_models.topology.parts.circulants import least_diameter_steps
from synth_models.topology.parts.completion import completed
from synth_models.topology.parts.kernels import UNREACHED, hop_sum


class Graph(NamedTuple):
    """A graph of a name as in the paper; ``heads``: where the arcs of each node lead, shape (nodes, degree)."""

    name: str
    heads: IntArray

    @property
    def hops(self) -> int:
        """The sum over all pairs; a huge number where some node is out of reach."""
        nodes, degree = self.heads.shape
        return hop_sum(np.arange(nodes + 1) * degree, self.heads.ravel(), np.arange(nodes))


def complete_bipartite(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """Method ``complete_bipartite``."""
    plant = _budget(instance)
    return _best(instance, options, [_bipartite(plant.degree)] if plant.nodes == 2 * plant.degree else [])


def line_graph(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """Method ``line_graph``."""
    plant = _budget(instance)
    if not plant.one_way:
        raise UnsupportedError("the links of a line graph lead one way")
    return _best(instance, options, _line_graphs(plant.nodes, plant.degree))


def cartesian_power(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """Method ``cartesian_power``."""
    plant = _budget(instance)
    return _best(instance, options, _powers(plant.nodes, plant.degree, plant.one_way))


def degree_expansion(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """Method ``degree_expansion``."""
    plant = _budget(instance)
    return _best(instance, options, _expansions(plant.nodes, plant.degree, plant.one_way))


def _simple(nodes: int, degree: int, one_way: bool) -> Iterator[Graph]:
    """Bases in closed form."""
    node = np.arange(nodes)[:, None]
    if nodes == degree + 1:
        yield Graph(f"K{nodes}", (node + np.arange(1, nodes)) % nodes)
    if nodes == 2 * degree:
        yield _bipartite(degree)
    if degree == 2 and nodes > 2:
        yield Graph(f"BiRing({nodes})", (node + np.array([1, -1])) % nodes)
    if degree == 4 and nodes > 4:
        m, after = least_diameter_steps(nodes)
        yield Graph(f"C({nodes},{{{m},{after}}})", (node + np.array([m, after, -m, -after])) % nodes)
    if one_way and degree == 1:
        yield Graph(f"UniRing({nodes})", (node + 1) % nodes)
    if one_way and nodes > degree + 1:
        yield Graph(f"Pi({degree},{nodes})", (-degree * node - np.arange(1, degree + 1)) % nodes)


def _bipartite(degree: int) -> Graph:
    """Even nodes are one half."""
    steps = np.arange(1, 2 * degree, 2)
    return Graph(f"K{degree},{degree}", (np.arange(2 * degree)[:, None] + steps) % (2 * degree))


def _powers(nodes: int, degree: int, one_way: bool) -> Iterator[Graph]:
    """Cartesian powers of bases."""
    for power in range(2, degree + 1):
        letters = round(nodes ** (1 / power))
        if letters**power != nodes or degree % power:
            continue
        for base in _simple(letters, degree // power, one_way):
            node, heads = np.arange(nodes), []
            for place in range(power):
                weight = letters**place
                letter = node // weight % letters
                heads.append(node[:, None] + (base.heads[letter] - letter[:, None]) * weight)
            yield Graph(f"{base.name}^{power}", np.concatenate(heads, axis=1))


def _expansions(nodes: int, degree: int, one_way: bool) -> Iterator[Graph]:
    """Copies of the nodes of bases and of powers, node ``copy * nodes + node``."""
    for copies in range(2, degree + 1):
        if nodes % copies or degree % copies:
            continue
        few = nodes // copies, degree // copies, one_way
        for base in (*_simple(*few), *_powers(*few)):
            heads = (base.heads[:, None] + np.arange(copies)[:, None] * few[0]).reshape(few[0], degree)
            yield Graph(f"{base.name}*{copies}", np.tile(heads, (copies, 1)))


def _line_graphs(nodes: int, degree: int) -> Iterator[Graph]:
    """Line graphs of line graphs of bases, powers and expansions."""
    times, few = 1, nodes
    while degree > 1 and few % degree == 0:
        few //= degree
        of = few, degree, False  # a line graph of a generalised Kautz graph is the next one
        for base in (*_simple(*of), *_powers(*of), *_expansions(*of)):
            heads = base.heads
            for _ in range(times):  # arc a * degree + k is the k-th of node a
                heads = heads.reshape(-1, 1) * degree + np.arange(degree)
            yield Graph(f"L{times if times > 1 else ''}({base.name})", heads)
        times += 1


def _best(instance: TopologyInstance, options: RunOptions, graphs: Iterable[Graph]) -> Outcome:
    """The graph of least hops, routed."""
    found = min(graphs, key=lambda graph: graph.hops, default=None)
    if found is None or found.hops >= UNREACHED:
        raise UnsupportedError("no such graph has these nodes and this degree")
    nodes, degree = found.heads.shape
    pairs = np.stack([np.repeat(np.arange(nodes), degree), found.heads.ravel()], axis=1)
    kept = pairs[:, 0] != pairs[:, 1] if instance.one_way else pairs[:, 0] < pairs[:, 1]
    circuits = np.concatenate([np.zeros((int(kept.sum()), 1), dtype=np.int64), pairs[kept]], axis=1)
    done = completed(instance, circuits, options)
    if done is None:
        raise UnsupportedError(f"has no schedule on {found.name}")
    return Outcome("finished", done, message=found.name)


def _budget(instance: TopologyInstance) -> Budget:
    plant = instance.plant
    if not isinstance(plant, Budget) or plant.links:
        raise UnsupportedError("is of nodes of a degree without fixed links")
    return plant
