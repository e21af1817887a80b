"""Shallow spanning trees that load all edges of a symmetric network alike.

Where the links between two nodes come in equal opposite numbers, an allreduce may send every chunk up and down one
tree: each tree edge carries it once each way, so what counts is how many trees use an edge. The packing of spanning
trees (Nash-Williams 1961, Tutte 1961) says how low the most loaded edge can get; here it is approached by local search
from shortest-path trees, which keeps the trees as shallow as they are allowed to be: what is left of the time beyond
the load is the way up and down one tree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import Int32Array, IntArray
from synth.errors import UnsupportedError
from synth.kernels import jit
from synth.network import Network

MOVES = 6  # tried per tree and node


@dataclass(frozen=True)
class Edges:
    """The undirected edges of a symmetric network.

    ``neighbour`` and ``edge``, shape (nodes, most neighbours), -1 where there is none; ``capacity``, shape (edges,),
    the links each way; ``links``, shape (2, edges, most capacity), their ids from the lower node up and back.
    """

    neighbour: Int32Array
    edge: Int32Array
    capacity: Int32Array
    links: Int32Array


def edges_of(network: Network) -> Edges:
    """The edges of a network. Raises :class:`UnsupportedError` where links do not come in equal opposite numbers."""
    between: dict[tuple[int, int], list[int]] = {}
    for e, (u, v) in enumerate(zip(network.src.tolist(), network.dst.tolist(), strict=True)):
        between.setdefault((u, v), []).append(e)
    if any(len(between.get((v, u), ())) != len(ids) for (u, v), ids in between.items()):
        raise UnsupportedError("forest needs as many links from v to u as from u to v, for all nodes u and v")
    pairs = sorted(pair for pair in between if pair[0] < pair[1])
    most = max(len(ids) for ids in between.values())
    links = np.full((2, len(pairs), most), -1, np.int32)
    degree = np.zeros(network.nodes, np.int64)
    width = int(np.bincount(np.array(pairs).ravel()).max())
    neighbour, edge = (np.full((network.nodes, width), -1, np.int32) for _ in range(2))
    for number, (u, v) in enumerate(pairs):
        links[0, number, : len(between[u, v])] = between[u, v]
        links[1, number, : len(between[v, u])] = between[v, u]
        for a, b in ((u, v), (v, u)):
            neighbour[a, degree[a]], edge[a, degree[a]] = b, number
            degree[a] += 1
    capacity = np.array([len(between[pair]) for pair in pairs], np.int32)
    return Edges(neighbour, edge, capacity, links)


def balanced_trees(
    network: Network, edges: Edges, roots: Int32Array, height: int, random: np.random.Generator
) -> Int32Array:
    """A spanning tree per root, shape (trees, nodes): each node's parent, -1 at the root.

    Trees begin as shortest-path trees, each node at the parent whose edge is loaded least; then nodes move, at random,
    to parents over less loaded edges as long as no tree gets higher than ``height`` by it. Loads count by capacity.
    """
    numbers = random.integers(2**31, size=2)
    parent: Int32Array
    parent, load = _shortest(
        network.distances,
        edges.neighbour,
        edges.edge,
        edges.capacity,
        roots,
        random.permutation(len(roots)),
        numbers[0],
    )
    moves = MOVES * parent.size
    _level(parent, roots, edges.neighbour, edges.edge, edges.capacity, load, height, moves, numbers[1])
    return parent


def tree_links(edges: Edges, parent: Int32Array) -> tuple[Int32Array, Int32Array]:
    """Links over which every node sends up and receives, each of shape (trees, nodes), -1 at the root; parallel links
    take turns."""
    up, down = np.full(parent.shape, -1, np.int32), np.full(parent.shape, -1, np.int32)
    trees, nodes = np.nonzero(parent >= 0)
    heads = parent[trees, nodes]
    slot = np.argmax(edges.neighbour[nodes] == heads[:, None], axis=1)
    number = edges.edge[nodes, slot]
    order = np.argsort(number, kind="stable")
    counts = np.bincount(number, minlength=len(edges.capacity))
    turn = np.empty(len(number), np.int64)
    turn[order] = np.arange(len(number)) - np.repeat(np.cumsum(counts) - counts, counts)
    which = turn % edges.capacity[number]
    back = (nodes > heads).astype(np.int64)  # links of an edge are stored from the lower node up first
    up[trees, nodes] = edges.links[back, number, which]
    down[trees, nodes] = edges.links[1 - back, number, which]
    return up, down


@jit
def _shortest(
    distance: Int32Array,
    neighbour: Int32Array,
    edge: Int32Array,
    capacity: Int32Array,
    roots: Int32Array,
    order: IntArray,
    seed: int,
) -> tuple[Int32Array, IntArray]:
    np.random.seed(seed)
    nodes, width = neighbour.shape
    parent = np.full((len(roots), nodes), -1, np.int32)
    load = np.zeros(len(capacity), np.int64)
    for t in order:
        root = roots[t]
        for v in np.random.permutation(nodes):
            if v == root:
                continue
            best, least, ties = -1, 0.0, 0
            for j in range(width):
                w = neighbour[v, j]
                if w < 0 or distance[root, w] != distance[root, v] - 1:
                    continue
                now = load[edge[v, j]] / capacity[edge[v, j]]
                if best < 0 or now < least:
                    best, least, ties = j, now, 1
                elif now == least:
                    ties += 1
                    if np.random.randint(ties) == 0:
                        best = j
            parent[t, v] = neighbour[v, best]
            load[edge[v, best]] += 1
    return parent, load


@jit
def _level(
    parent: Int32Array,
    roots: Int32Array,
    neighbour: Int32Array,
    edge: Int32Array,
    capacity: Int32Array,
    load: IntArray,
    height: int,
    moves: int,
    seed: int,
) -> None:
    np.random.seed(seed)
    trees, nodes = parent.shape
    width = neighbour.shape[1]
    for _ in range(moves):
        t, v, j = np.random.randint(trees), np.random.randint(nodes), np.random.randint(width)
        w = neighbour[v, j]
        if v == roots[t] or w < 0 or w == parent[t, v]:
            continue
        new, old = edge[v, j], -1
        for i in range(width):
            if neighbour[v, i] == parent[t, v]:
                old = edge[v, i]
        gain = load[old] * capacity[new] - (load[new] + 1) * capacity[old]
        if gain < 0 or (gain == 0 and np.random.random() < 0.5):
            continue
        depth, x = 0, w
        while x >= 0 and x != v:
            x = parent[t, x]
            depth += 1
        if x == v:
            continue  # the new parent hangs below
        below = 0
        for x in range(nodes):
            y, hops = x, 0
            while y >= 0 and y != v:
                y = parent[t, y]
                hops += 1
            if y == v:
                below = max(below, hops)
        if depth + below > height:
            continue
        parent[t, v] = w
        load[new] += 1
        load[old] -= 1
