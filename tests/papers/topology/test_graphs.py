"""The page's own counting, and that every order of Graph Golf that it quotes is a plant."""

from __future__ import annotations

import pytest

import synth
from synth_papers.topology.graphs import PRINTED, Row, _least_depth


@pytest.mark.parametrize(
    ("nodes", "degree", "one_way", "depth"),
    [(8, 4, False, 2), (10, 3, False, 2), (11, 3, False, 3), (1024, 4, True, 5), (341, 4, True, 4), (2, 1, True, 1)],
)
def test_the_least_hops_to_the_farthest(nodes: int, degree: int, one_way: bool, depth: int) -> None:
    """By hand: 1 + 3 + 6 nodes lie within two hops of degree 3, 1 + 4 + 16 + 64 + 256 within four one way."""
    assert _least_depth(Row(nodes, degree, one_way, (), {})) == depth


def test_no_printed_mean_is_below_the_bound() -> None:
    for key, stated in PRINTED.within("golf").items():
        nodes, degree = map(int, key.split("-"))
        instance = synth.make("topology", nodes=nodes, degree=degree, objective="hops")
        bound = synth.solve(instance, "bound").bound
        assert bound is not None
        assert bound / (nodes * (nodes - 1)) <= stated.number + 5e-4
