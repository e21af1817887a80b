"""Spanning trees packed into undirected capacities: allreduce where links come in equal opposite pairs.

A piece goes up and down one tree and uses every tree edge once each way, so the rate is the greatest k such that k
spanning trees fit the capacities: the least, over partitions P of the nodes, of the capacity between the parts over
|P| - 1 (Nash-Williams 1961, Tutte 1961). Amounts z on the edges are k trees exactly if z(E) = k (n - 1) and
z(E[X]) <= k (|X| - 1) for all node sets X, a polymatroid: edge by edge as much as fits is as much as fits at all.
How much fits is counted as in the pebble game (Lee and Streinu, Pebble game algorithms and sparse graphs, 2008): every
node has k pebbles, every unit of an edge lies on a pebble of one of its ends, and an edge takes what can be collected
free on its two ends beyond k, by a maximum flow that moves units to their other ends. At the end all free pebbles are
collected on the root: every other node is then entered by k units, and Edmonds' theorem packs out-trees from the root.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.graph.max_flow import augment, of_matrix, reached
from synth_models.fabric.programs.forest.tree_packing import Trees, pack_trees, shallower


def spanning_trees(capacity: IntArray) -> tuple[Trees, Fraction, int]:
    """Trees, their rate in units of ``capacity`` (symmetric, shape (n, n)), and how many copies make up that rate.

    Raises ``ValueError`` where the nodes are not joined.
    """
    n = len(capacity)
    ratio = Fraction(int(np.triu(capacity).sum()), n - 1)
    while True:
        if ratio == 0:
            raise ValueError("the nodes are not joined")
        scaled = capacity * ratio.denominator
        shrink = math.gcd(ratio.numerator, *np.unique(scaled).tolist())
        scaled, k = scaled // shrink, ratio.numerator // shrink
        game = _PebbleGame(scaled, k)
        game.fill()
        if game.laid == k * (n - 1):
            break
        ratio = game.strength(capacity)
    root = _middle(capacity)
    game.free(root)
    demand = np.zeros(n, dtype=np.int64)
    demand[root] = k
    trees = shallower(pack_trees(game.entering, demand), game.entering)
    return trees, ratio, k


def _middle(capacity: IntArray) -> int:
    """A node from which the farthest is nearest."""
    n = len(capacity)
    far = np.where(capacity > 0, 1, n)
    np.fill_diagonal(far, 0)
    for v in range(n):
        far = np.minimum(far, far[:, v : v + 1] + far[v])
    return int(np.lexsort((far.sum(axis=1), far.max(axis=1)))[0])


class _PebbleGame:
    """``entering[u, v]``: units of the edge between u and v that lie on pebbles of v."""

    def __init__(self, capacity: IntArray, k: int) -> None:
        self.capacity, self.k, self.n = capacity, k, len(capacity)
        self.entering = np.zeros_like(capacity)

    @property
    def laid(self) -> int:
        return int(self.entering.sum())

    def _collect(self, ends: tuple[int, ...]) -> tuple[int, BoolArray]:
        """Move units so that as many pebbles as can be are free on ``ends``; how many, and what can be reached."""
        n = self.n
        free = self.k - self.entering.sum(axis=0)
        net = np.zeros((n + 2, n + 2), dtype=np.int64)
        net[:n, :n] = self.entering.T  # what lies on v can be laid on its other end
        for v in ends:
            net[n, v] = self.k - int(free[v])
        net[:n, n + 1] = free
        net[list(ends), n + 1] = 0
        for v in ends:
            net[:n, v][list(ends)] = 0
        network = of_matrix(net)
        tail = network.head.reshape(-1, 2)[:, ::-1].reshape(-1)
        moved = net.copy()
        got = augment(network, n, n + 1, len(ends) * self.k)
        moved[tail, network.head] -= network.room
        moved = moved[:n, :n]  # from v to w: a unit between them leaves v's pebbles for w's
        positive = np.maximum(moved, 0)
        self.entering = self.entering - positive.T + positive
        return got + int(free[list(ends)].sum()), reached(network, n)

    def fill(self) -> None:
        """Lay as much as fits, edge by edge."""
        for u, v in np.argwhere(np.triu(self.capacity) > 0).tolist():
            amount = min(int(self.capacity[u, v]), self._collect((u, v))[0] - self.k)
            free = self.k - int(self.entering[:, v].sum())
            self.entering[u, v] += min(amount, free)
            self.entering[v, u] += amount - min(amount, free)

    def strength(self, capacity: IntArray) -> Fraction:
        """The ratio of the partition that keeps more from fitting: parts that are full, with full edges between."""
        label = np.arange(self.n)
        both = self.entering + self.entering.T
        for u, v in np.argwhere(np.triu(self.capacity - both) > 0).tolist():
            if label[u] == label[v]:
                continue
            _, reached = self._collect((u, v))
            reached[[u, v]] = True
            label[np.isin(label, np.unique(label[np.flatnonzero(reached[: self.n])]))] = label[u]
        parts = len(np.unique(label))
        between = int(np.triu(capacity * (label[:, None] != label[None, :])).sum())
        return Fraction(between, parts - 1)

    def free(self, root: int) -> None:
        """Collect all free pebbles on the root, so that nothing enters it."""
        self._collect((root,))
