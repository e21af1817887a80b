"""Edge colourings of bipartite multigraphs against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from synth.graph.edge_colouring import edge_colours


@pytest.mark.parametrize("seed", range(10))
def test_edge_colours_are_proper_and_as_few_as_the_degree(seed: int) -> None:
    """Random bipartite multigraphs: no vertex meets a colour twice, with as many colours as the largest degree."""
    random = np.random.default_rng(seed)
    left, right = random.integers(0, 12, 150), random.integers(0, 9, 150)
    degree = int(max(np.bincount(left).max(), np.bincount(right).max()))
    colour = edge_colours(left, right, 12, 9, degree)
    assert colour.min() >= 0
    assert colour.max() < degree
    for side in (left, right):
        assert len({(v, c) for v, c in zip(side.tolist(), colour.tolist(), strict=True)}) == len(side)
    with pytest.raises(ValueError, match="more edges than there are colours"):
        edge_colours(left, right, 12, 9, degree - 1)
