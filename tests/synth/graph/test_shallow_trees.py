"""Trees that share no arc, made shallower: the same arcs, spanning, never deeper; on tori nearly the diameter."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.arrays import IntArray
from synth.graph.shallow_trees import shallower
from synth.graph.torus_trees import depths, disjoint_trees


def steps_to_root(parent: list[int], v: int) -> int:
    """Steps from a node up to the root, counted one by one."""
    steps = 0
    while parent[v] >= 0:
        v, steps = parent[v], steps + 1
        assert steps < len(parent)
    assert v == 0
    return steps


def arcs(trees: IntArray) -> list[tuple[int, int]]:
    return sorted((int(u), v) for row in trees for v, u in enumerate(row.tolist()) if u >= 0)


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(3, 6), min_size=1, max_size=3), st.integers(0, 3))
def test_the_same_arcs_and_no_tree_deeper(sides: list[int], seed: int) -> None:
    """Every tree still leads from every node to the root; no arc is gained, lost or used twice."""
    before = disjoint_trees(sides)
    after = shallower(before, seed)
    assert arcs(after) == arcs(before)
    deepest = [max(steps_to_root(row.tolist(), v) for row in trees for v in range(prod(sides)))
               for trees in (before, after)]  # fmt: skip
    assert deepest[1] <= deepest[0]
    assert depths(after).max() == deepest[1]


@pytest.mark.long(after=2)
@pytest.mark.parametrize(("sides", "more"), [((4, 4), 1), ((4, 6), 1), ((4, 4, 8), 1), ((5, 5), 2), ((3, 4, 5), 2)])
def test_tori_little_deeper_than_their_diameter(sides: tuple[int, ...], more: int) -> None:
    """A neighbour of the root is one step away in one tree only, so that no two trees have shortest paths alone."""
    assert depths(shallower(disjoint_trees(sides))).max() <= sum(side // 2 for side in sides) + more


def test_two_trees_of_four_nodes_by_hand() -> None:
    """0 -> 1 -> 2 -> 3 and 0 -> 2 -> 3, 0 -> 1 … over twin arcs: the one swap that helps is into node 2."""
    trees = np.array([[-1, 0, 1, 2], [-1, 0, 0, 0]])
    found = shallower(trees)
    assert arcs(found) == arcs(trees)
    assert depths(found).max() == 2  # of all swaps: node 2 or 3 into the root


def best_by_trying_all(trees: IntArray) -> int:
    """The least depth of the deepest tree over all ways to deal out every node's arcs to the trees."""
    inner = range(1, trees.shape[1])
    best = trees.shape[1]
    for flips in product((False, True), repeat=len(inner)):
        swapped = trees.copy()
        for v, flip in zip(inner, flips, strict=True):
            if flip:
                swapped[:, v] = swapped[::-1, v]
        try:
            best = min(best, max(steps_to_root(row.tolist(), v) for row in swapped for v in range(trees.shape[1])))
        except AssertionError:  # a circle
            continue
    return best


@pytest.mark.parametrize("seed", range(4))
def test_as_shallow_as_any_on_random_pairs_of_trees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(6):
        n = int(rng.integers(3, 8))
        trees = np.array([[-1, *(int(rng.integers(0, v)) for v in range(1, n))] for _ in range(2)])
        assert depths(shallower(trees)).max() == best_by_trying_all(trees)
