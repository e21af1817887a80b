"""Spanning out-trees that share no arc, made shallower: trees exchange the arcs by which they come into a node.

If two trees swap their arcs into one node, they still share no arc, and both still span as long as neither arc comes
from below the node in its new tree. Swaps are tried at random; one is kept where the sum of 2^depth over all nodes and
trees does not grow, so that the deepest come up first and level moves lead out of dead ends.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.graph.rows import rows_by
from synth.graph.torus_trees import depths
from synth.kernels import jit

TRIES = 48  # swaps a round, for every node of every tree
MOST_ROUNDS = 12
IDLE = 2  # rounds in a row that lower no tree, after which the search ends
MOST_EXPONENT = 60


def shallower(trees: IntArray, seed: int = 0) -> IntArray:
    """Return trees of the same arcs, none deeper than the deepest of these; shape (trees, nodes) as they: the parent
    of every node, -1 for the root. Time is O(tries depth) and the nodes that each swap moves."""
    parent = trees.copy()
    depth = depths(parent)
    inner = np.flatnonzero(parent[0] >= 0)
    if len(parent) < 2 or not len(inner):
        return parent
    count = parent.shape[1]
    pairs = np.unique(parent[:, inner] * count + inner)
    start, order = rows_by(pairs // count, count)
    child = (pairs % count)[order]
    weight = np.exp2(np.minimum(np.arange(count) - depth.max(), MOST_EXPONENT).astype(float))
    rng = np.random.default_rng(seed)
    found, least, idle = trees.copy(), _deepest(depth), 0
    for _ in range(MOST_ROUNDS):
        tries = TRIES * parent.size
        node, one = rng.choice(inner, tries), rng.integers(len(parent), size=tries)
        other = (one + rng.integers(1, len(parent), size=tries)) % len(parent)
        _swap(parent, depth, start, child, weight, np.stack([node, one, other], axis=1))
        idle += 1
        if _deepest(depth) < least:
            found, least, idle = parent.copy(), _deepest(depth), 0
        if idle == IDLE:
            break
    return found


def _deepest(depth: IntArray) -> tuple[int, int]:
    """The depth of the deepest tree, and that of all trees together."""
    return int(depth.max()), int(depth.max(axis=1).sum())


@jit
def _swap(
    parent: IntArray, depth: IntArray, start: IntArray, child: IntArray, weight: FloatArray, tries: IntArray
) -> None:
    """Try to swap the arcs into a node of two trees, for rows of (node, tree, tree). ``child``: of node v, in any tree,
    from ``start[v]`` to ``start[v + 1]``."""
    stack = np.empty(parent.shape[1], dtype=np.int64)
    for k in range(len(tries)):
        v, a, b = tries[k, 0], tries[k, 1], tries[k, 2]
        deeper = (depth[a, parent[b, v]] + 1 - depth[a, v], depth[b, parent[a, v]] + 1 - depth[b, v])
        if min(deeper) > 0 or _below(parent[a], v, parent[b, v]) or _below(parent[b], v, parent[a, v]):
            continue
        more = 0.0
        for moves in (False, True):  # first what it is worth
            for t, by in ((a, deeper[0]), (b, deeper[1])):
                stack[0], left = v, 1
                while left:
                    left -= 1
                    u = stack[left]
                    if moves:
                        depth[t, u] += by
                    else:
                        more += weight[depth[t, u] + by] - weight[depth[t, u]]
                    for i in range(start[u], start[u + 1]):
                        if parent[t, child[i]] == u:
                            stack[left] = child[i]
                            left += 1
            if more > 0:
                break
        if more <= 0:
            parent[a, v], parent[b, v] = parent[b, v], parent[a, v]


@jit
def _below(parent: IntArray, above: int, node: int) -> bool:
    """Whether a node is below another in a tree, or the same."""
    while node >= 0 and node != above:
        node = parent[node]
    return node == above
