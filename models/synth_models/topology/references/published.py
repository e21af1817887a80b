"""Topologies as published; each is routed as well as time allows.

* ``torus``: the cubes stand as a block as near to a cube as their number allows, its lines closed to rings.
* ``twisted``: the torus in which a line that leaves the block comes back shifted by half of sides that are no shorter
  (Camarero, Martinez, Beivide, IEEE TC 2013; the twisted tori of TPU v4, Jouppi et al., ISCA 2023, shift by half of
  the longer ones). All blocks and shifts are tried and the best one is kept.
* ``circulant``: node u is joined to u ± s. Of degree 4 s = m, m + 1 with m = ceil((sqrt(2 n - 1) - 1) / 2); else s are
  powers of the root of n.
* ``de_bruijn``: u -> d u + r mod n, r = 0 … d - 1 (Imase and Itoh, IEEE TC 1981); ``kautz``: u -> -d u - r mod n,
  r = 1 … d (Imase and Itoh 1983). One way; what would lead from a node to itself is left out.
* ``random_regular``: a random graph of the degree (Jellyfish, Singla et al., NSDI 2012).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.topology.instance import Budget, Cubes, TopologyInstance, lines
from synth_models.topology.parts.arcs import arcs_of
from synth_models.topology.parts.circulants import least_diameter_steps
from synth_models.topology.parts.completion import completed
from synth_models.topology.parts.kernels import hop_sum
from synth_models.topology.parts.routing import routed


def torus(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """Method ``torus``."""
    plant = _cubes(instance)
    return _outcome(instance, options, block_circuits(plant, min(blocks(plant), key=_longest), ()))


def twisted(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """Method ``twisted``. Shifts are symmetries, so the hops of one node, or what it sends by trees, tell all."""
    plant = _cubes(instance)
    best: tuple[Fraction, IntArray] | None = None
    for block in blocks(plant):
        length = [b * side for b, side in zip(block, plant.sides, strict=True)]
        order = sorted(range(len(block)), key=lambda axis: length[axis])
        pairs = [(i, j) for i, j in combinations(order, 2) if block[j] % 2 == 0]
        for chosen in product((False, True), repeat=len(pairs)):
            twists = [pair for pair, there in zip(pairs, chosen, strict=True) if there]
            circuits = block_circuits(plant, block, twists)
            cost = _cost(instance, circuits, options) if twists else None
            if cost is not None and (best is None or cost < best[0]):
                best = cost, circuits
    if best is None:
        raise UnsupportedError("no block of these cubes has an even side to shift by half, so none is twisted")
    return _outcome(instance, options, best[1])


def _cost(instance: TopologyInstance, circuits: IntArray, options: RunOptions) -> Fraction | None:
    """The hops from node 0, or the load by trees alone; None where nodes are apart."""
    if instance.objective == "hops":
        arcs = arcs_of(instance, circuits)
        return Fraction(hop_sum(arcs.start, arcs.head, np.zeros(1, dtype=np.int64)))
    found = routed(instance, circuits, options, exact=False)
    return None if found is None else found[0]


def circulant(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """Method ``circulant``."""
    plant = _budget(instance, one_way=False)
    n, half = plant.nodes, plant.degree // 2
    if plant.degree % 2 and n % 2:
        raise UnsupportedError("a circulant of odd degree needs an even number of nodes")
    steps = [max(1, round(n ** (i / max(1, half)))) for i in range(half)]
    if half == 2:
        steps = list(least_diameter_steps(n))
    node = np.arange(n)
    ends = [(node, (node + step) % n) for step in steps]
    if plant.degree % 2:
        ends.append((node[: n // 2], node[: n // 2] + n // 2))
    return _outcome(instance, options, _pairs(ends))


def de_bruijn(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """Method ``de_bruijn``."""
    plant = _budget(instance, one_way=True)
    node = np.arange(plant.nodes)
    ends = [(node, (plant.degree * node + r) % plant.nodes) for r in range(plant.degree)]
    return _outcome(instance, options, _pairs(ends))


def kautz(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """Method ``kautz``."""
    plant = _budget(instance, one_way=True)
    node = np.arange(plant.nodes)
    ends = [(node, (-plant.degree * node - r) % plant.nodes) for r in range(1, plant.degree + 1)]
    return _outcome(instance, options, _pairs(ends))


def random_regular(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """Method ``random_regular``."""
    import networkx as nx

    plant = _budget(instance, one_way=False)
    if plant.nodes * plant.degree % 2 or plant.degree >= plant.nodes:
        raise UnsupportedError("a regular graph needs an even number of ports and more nodes than ports of one")
    graph = nx.random_regular_graph(plant.degree, plant.nodes, seed=options.seed)
    ends = np.array(sorted(map(sorted, graph.edges)), dtype=np.int64)
    return _outcome(instance, options, _pairs([(ends[:, 0], ends[:, 1])]))


def blocks(plant: Cubes) -> Iterator[tuple[int, ...]]:
    """How the cubes may stand as a block: how many along each axis, ascending."""
    sides = [side for side in range(1, plant.cubes + 1) if plant.cubes % side == 0]
    for block in product(sides, repeat=len(plant.sides)):
        if prod(block) == plant.cubes and list(block) == sorted(block):
            yield block


def block_circuits(plant: Cubes, block: Sequence[int], twists: Sequence[tuple[int, int]]) -> IntArray:
    """The circuits of a torus of cubes, failed switches left out; ``twists`` (i, j): closing a ring of axis i shifts by
    half of axis j."""
    coordinates = np.stack(np.unravel_index(np.arange(plant.cubes), block), axis=1)
    found = []
    for switch, (axis, _, _) in enumerate(lines(plant.sides)):
        if switch in plant.failed:
            continue
        there = coordinates.copy()
        closing = there[:, axis] == block[axis] - 1
        there[:, axis] = (there[:, axis] + 1) % block[axis]
        for i, j in twists:
            if i == axis:
                there[closing, j] = (there[closing, j] + block[j] // 2) % block[j]
        cubes = np.ravel_multi_index(tuple(there.T), tuple(block))
        found.append(np.stack([np.full(plant.cubes, switch), np.arange(plant.cubes), cubes], axis=1))
    return np.concatenate(found).astype(np.int64)


def _longest(block: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(block, reverse=True))


def _cubes(instance: TopologyInstance) -> Cubes:
    if not isinstance(instance.plant, Cubes):
        raise UnsupportedError("is of cubes")
    return instance.plant


def _budget(instance: TopologyInstance, one_way: bool) -> Budget:
    plant = instance.plant
    if not isinstance(plant, Budget) or plant.links or plant.one_way != one_way:
        raise UnsupportedError(
            f"is of nodes of a degree without fixed links, links {'one way' if one_way else 'two-way'}"
        )
    return plant


def _pairs(ends: Sequence[tuple[IntArray, IntArray]]) -> IntArray:
    """Circuits that join these nodes, without loops, shape (circuits, 3)."""
    u, v = (np.concatenate([pair[end] for pair in ends]) for end in (0, 1))
    kept = u != v
    return np.stack([np.zeros(int(kept.sum()), dtype=np.int64), u[kept], v[kept]], axis=1)


def _outcome(instance: TopologyInstance, options: RunOptions, circuits: IntArray) -> Outcome:
    """The topology with what the objective asks for, or that its nodes are not all joined."""
    found = completed(instance, circuits, options)
    if found is None:
        raise UnsupportedError("leaves nodes that no path joins")
    return Outcome("finished", found)
