"""Trees of a torus that share no arc: spanning, along neighbours, no arc twice, as many as arcs leave the root."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.graph.torus_trees import depths, disjoint_trees


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(3, 7), min_size=1, max_size=4).filter(lambda sides: prod(sides) <= 700))
def test_every_arc_into_another_node_is_in_one_tree(sides: list[int]) -> None:
    """Each of the 2 d trees brings every node in from a neighbour on the torus and leads back to node 0 in at most as
    many steps as the sides add up to; together they use each arc once, but for those into the root."""
    trees = disjoint_trees(sides)
    count = prod(sides)
    assert trees.shape == (2 * len(sides), count)
    place = np.stack(np.unravel_index(np.arange(count), sides), axis=1)
    used = set()
    for parent in trees:
        assert parent[0] == -1
        for v in range(1, count):
            away = np.abs(place[v] - place[parent[v]])
            assert sorted(np.minimum(away, np.array(sides) - away))[-2:] in ([0, 1], [1])
            used.add((int(parent[v]), v))
            u, steps = v, 0
            while u:
                u, steps = int(parent[u]), steps + 1
                assert steps <= sum(sides)
    assert len(used) == 2 * len(sides) * (count - 1)


def test_a_ring_of_four_by_hand() -> None:
    """Upwards 0 1 2 3 and downwards 0 3 2 1; sides of 1 do not count; two nodes have one arc each way, not two."""
    assert disjoint_trees([4]).tolist() == [[-1, 0, 1, 2], [-1, 2, 3, 0]]
    assert disjoint_trees([1, 4, 1]).tolist() == disjoint_trees([4]).tolist()
    assert depths(disjoint_trees([4])).tolist() == [[0, 1, 2, 3], [0, 3, 2, 1]]
    for sides in ([2], [3, 2], [1]):
        with pytest.raises(ValueError, match="at least 3"):
            disjoint_trees(sides)
