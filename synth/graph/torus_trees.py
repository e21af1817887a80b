"""Spanning out-trees of a torus that share no arc: as many as a node has arcs, 2 for each side.

By induction over the sides. A ring has two: its path upwards and its path downwards. Let H have the trees A_1 …, A_k
from its root r; r has k arcs and so one child in each, h_j in A_j. H times a ring of m >= 3 layers then has k + 2 from
(0, r); "column" h are the nodes (0, h), (1, h) …:

* B_j (one for each A_j): A_j in layer 0; up column h_j to the lower half of the layers and down it to the others; in
  every layer what A_j has below h_j, and from h_j to r.
* P+: up column r; A_1 in layer 1; from there up every column, at last into layer 0. Where B_j has the arc up column
  h_j, P+ comes to h_j from r, whose arc B_j does not need. P-: likewise down, with A_2 in layer m - 1.
* B_1 comes into layer 1, whose A_1 is P+'s, up every column, and to the other h_j from r; B_2 likewise into layer
  m - 1.

Every arc into a node other than the root is in one tree. The deepest tree has about the sum of the sides as its depth.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth.arrays import IntArray


def disjoint_trees(sides: Sequence[int]) -> IntArray:
    """Parents in the trees from node 0 of a torus, nodes row-major, shape (2 * sides, nodes), -1 for node 0. Sides of
    1 are left out. Raises ``ValueError`` for a side of 2, whose ends one arc joins each way."""
    long = [side for side in sides if side > 1]
    if not long or min(long) < 3:
        raise ValueError("every side of the torus must be at least 3 (or 1)")
    up, down = np.arange(-1, long[0] - 1), np.arange(1, long[0] + 1) % long[0]
    down[0] = -1
    found: IntArray = np.stack([up, down]).astype(np.int64)
    for side in long[1:]:
        found = _times_ring(found, side)
    order = np.arange(found.shape[1]).reshape(long)  # the last side was added as layers: layers before the rest
    layers_first = np.arange(found.shape[1]).reshape(long[1:][::-1] + long[:1])
    axes = [len(long) - 1, *range(len(long) - 2, -1, -1)]
    number = np.empty(found.shape[1], dtype=np.int64)
    number[layers_first.transpose(axes).ravel()] = order.ravel()
    parent = np.full_like(found, -1)
    for row, old in zip(parent, found, strict=True):
        child = np.flatnonzero(old >= 0)
        row[number[child]] = number[old[child]]
    return parent


def _times_ring(trees: IntArray, m: int) -> IntArray:
    """The trees of the network times a ring of ``m`` layers, node (i, h) being i * nodes + h; the root is 0."""
    trees = trees[
        np.argsort(depths(trees).max(axis=1), kind="stable")
    ]  # the two least deep are those that P+ and P- go on from
    count, n = trees.shape
    child = [int(np.flatnonzero(row == 0)[0]) for row in trees]
    parent = np.full((count + 2, m * n), -1, dtype=np.int64)
    up, down = parent[count], parent[count + 1]
    others = np.arange(1, n)
    columns = np.arange(n)
    for i in range(m):
        here, below, above = i * n, (i - 1) % m * n, (i + 1) % m * n
        up[here + columns], down[here + columns] = below + columns, above + columns
        for j, row in enumerate(trees):
            parent[j, here + others] = here + row[others]
            if not i:
                continue
            h, rising = child[j], i <= m // 2
            parent[j, here] = here + h
            parent[j, here + h] = (below if rising else above) + h
            (up if rising else down)[here + h] = here
    for mine, j, i in ((up, 0, 1), (down, 1, m - 1)):
        here = i * n
        mine[here + others] = here + trees[j, others]  # over the root of the layer, to which it came along its column
        parent[j, here + others] = others  # out of layer 0
        for k, h in enumerate(child):
            if k != j:
                parent[j, here + h] = here
    parent[:, 0] = -1
    return parent


def depths(trees: IntArray) -> IntArray:
    """Arcs from node 0 to every node in every tree, shapes as of :func:`disjoint_trees`."""
    hops = np.zeros_like(trees)
    for row, parent in zip(hops, trees, strict=True):
        at = parent.copy()
        while (at >= 0).any():
            row += at >= 0
            at = np.where(at >= 0, parent[at], -1)
    return hops
