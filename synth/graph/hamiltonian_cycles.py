"""Edge-disjoint Hamiltonian cycles that together are a whole network: of tori, hypercubes, circulants, and others.

Kotzig (1973) and Foregger (1978) decompose the product of two and of three cycles, Aubert and Schneider (1982) that of
any number, and with it hypercubes of even dimension (Ringel 1955); Bermond, Favaron and Maheo (1989) circulants of
degree 4. Their proofs begin with factors, one a generator, and join the cycles of two factors by exchanging the edges
of a square whose opposite edges are of one factor. So does this, without being told what the network is: the factors
that it begins with are Petersen's (1891), from an Euler tour and a bipartite edge colouring, and squares are drawn.

An exchange joins two cycles of a factor where its two edges are of different ones. Else it parts the cycle in two, or
keeps it one. It is made where the number of cycles does not grow. Complexity: O(nodes) an exchange, O(1) a
square.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import AnyIntArray, IntArray
from synth.graph.edge_colouring import edge_colours
from synth.kernels import jit

DRAWN = 4000  # squares an edge, at most


class Decomposition(NamedTuple):
    """Hamiltonian cycles: the ``nodes`` in their order, and the ``edges`` from each to the next (of the last to the
    first), shape (cycles, nodes) each."""

    nodes: IntArray
    edges: IntArray


class Factors(NamedTuple):
    """Factors of degree 2: the two ``edge`` numbers at each node, shape (factors, nodes, 2); of each node the number of
    its ``cycle`` and its ``place`` there, and of each cycle its ``length``, shape (factors, nodes)."""

    edge: IntArray
    cycle: IntArray
    place: IntArray
    length: IntArray


def hamiltonian_cycles(nodes: int, tail: AnyIntArray, head: AnyIntArray, seed: int = 0) -> Decomposition | None:
    """Hamiltonian cycles of which each edge is in exactly one, None where none are found.

    ``tail``, ``head``: the ends of every edge of an undirected multigraph without loops, shape (edges,). Every node has
    the same even degree, and there are at least three; else there are no such cycles.
    """
    degree = np.bincount(tail, minlength=nodes) + np.bincount(head, minlength=nodes)
    if nodes < 3 or not degree[0] or degree[0] % 2 or np.ptp(degree):
        return None
    count = int(degree[0]) // 2
    begin, end = _along_euler_tours(nodes, tail, head)
    colour = edge_colours(begin, end, nodes, nodes, count)
    both = np.asarray(tail, dtype=np.int64) + np.asarray(head, dtype=np.int64)
    shape = (count, nodes)
    factors = Factors(np.empty((count, nodes, 2), np.int64), *(np.zeros(shape, np.int64) for _ in range(3)))
    factors.edge[colour, begin, 0] = factors.edge[colour, end, 1] = np.arange(len(both))
    if _joined(factors, both, seed, DRAWN * len(both)) > count:
        return None
    found = _read(factors, both)
    assert is_decomposition(found, nodes, tail, head)
    return found


def is_decomposition(found: Decomposition, nodes: int, tail: AnyIntArray, head: AnyIntArray) -> bool:
    """Whether every cycle visits every node once over edges between them, and every edge is in one cycle, once."""
    if any(not np.array_equal(np.sort(row), np.arange(nodes)) for row in found.nodes):
        return False
    ends = np.sort(np.stack([tail, head]), axis=0)[:, found.edges]
    hops = np.sort(np.stack([found.nodes, np.roll(found.nodes, -1, axis=1)]), axis=0)
    return np.array_equal(np.sort(found.edges, axis=None), np.arange(len(tail))) and np.array_equal(ends, hops)


def _along_euler_tours(nodes: int, tail: AnyIntArray, head: AnyIntArray) -> tuple[IntArray, IntArray]:
    """Begin and end of every edge along closed tours, so that as many leave every node as enter it."""
    begin, end = np.array(tail, dtype=np.int64), np.array(head, dtype=np.int64)
    ends = list(zip(begin.tolist(), end.tolist(), strict=True))
    at: list[list[int]] = [[] for _ in range(nodes)]
    for e, (u, v) in enumerate(ends):
        at[u].append(e)
        at[v].append(e)
    passed = [False] * len(ends)
    for first in range(nodes):
        node = first
        while at[node]:
            e = at[node].pop()
            if not passed[e]:
                passed[e] = True
                other = sum(ends[e]) - node
                begin[e], end[e] = node, other
                node = other
    return begin, end


def _read(factors: Factors, both: IntArray) -> Decomposition:
    order = np.argsort(factors.place, axis=1)
    edges = factors.edge[np.arange(len(order))[:, None], order]  # the two of every node
    leads = both[edges[:, :, 0]] - order == np.roll(order, -1, axis=1)
    return Decomposition(order, np.where(leads, edges[:, :, 0], edges[:, :, 1]))


@jit
def _joined(factors: Factors, both: IntArray, seed: int, most: int) -> int:
    """Draw up to ``most`` squares, and exchange edges where that leaves no more cycles; how many are left at last."""
    np.random.seed(seed)
    count, nodes = factors.cycle.shape
    cycles = np.zeros(count, np.int64)
    for f in range(count):
        cycles[f] = _counted(factors, both, f)
    drawn = 0
    while count > 1 and cycles.sum() > count and drawn < most:
        drawn += 1
        a, b, u = np.random.randint(0, count), np.random.randint(0, count), np.random.randint(0, nodes)
        e = factors.edge[a, u, np.random.randint(0, 2)]
        v = both[e] - u
        f = factors.edge[b, v, np.random.randint(0, 2)]
        w = both[f] - v
        g = factors.edge[a, w, np.random.randint(0, 2)]
        x = both[g] - w
        h = factors.edge[b, x, np.random.randint(0, 2)]
        if a == b or w == u or x in (u, v) or both[h] - x != u:
            continue
        if _more(factors, a, u, v, w, x) + _more(factors, b, v, w, x, u) > 0:
            continue
        _replace(factors, a, u, e, h)
        _replace(factors, a, v, e, f)
        _replace(factors, a, w, g, f)
        _replace(factors, a, x, g, h)
        _replace(factors, b, v, f, e)
        _replace(factors, b, w, f, g)
        _replace(factors, b, x, h, g)
        _replace(factors, b, u, h, e)
        cycles[a] = _counted(factors, both, a)
        cycles[b] = _counted(factors, both, b)
    return int(cycles.sum())


@jit
def _more(factors: Factors, a: int, u: int, v: int, w: int, x: int) -> int:
    """How many cycles factor a has more with edges vw and xu for uv and wx: -1, 0 or 1."""
    cycle = factors.cycle[a, u]
    if cycle != factors.cycle[a, w]:
        return -1
    length = factors.length[a, cycle]
    forwards = (factors.place[a, v] - factors.place[a, u]) % length == 1
    return int(forwards == ((factors.place[a, x] - factors.place[a, w]) % length == 1))


@jit
def _replace(factors: Factors, a: int, node: int, old: int, new: int) -> None:
    """Give a node another edge of factor a for one of its two."""
    k = 0 if factors.edge[a, node, 0] == old else 1
    factors.edge[a, node, k] = new


@jit
def _counted(factors: Factors, both: IntArray, a: int) -> int:
    """Number the cycles of factor a and their nodes; how many there are."""
    nodes, count = factors.cycle.shape[1], 0
    for node in range(nodes):
        factors.cycle[a, node] = -1
    for first in range(nodes):
        if factors.cycle[a, first] >= 0:
            continue
        node, e, place = first, factors.edge[a, first, 0], 0
        while factors.cycle[a, node] < 0:
            factors.cycle[a, node] = count
            factors.place[a, node] = place
            node, place = both[e] - node, place + 1
            e = factors.edge[a, node, 0] if factors.edge[a, node, 1] == e else factors.edge[a, node, 1]
        factors.length[a, count] = place
        count += 1
    return count
