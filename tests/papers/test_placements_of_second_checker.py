"""The second checker's least of all placements against all placements, on hypercubes of 4 and 8 corners."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from two_checkers import verify


def by_trying(ways: tuple[tuple[int, tuple[int, ...]], ...], weights: tuple[int, ...]) -> int:
    ranks = len(ways[0][1])
    edges = [(v, v ^ (1 << j), w) for j, w in enumerate(weights) for v in range(ranks) if v < v ^ (1 << j)]
    return max(
        sum(w * weight for u, v, w in edges for weight, part in ways if part[at[u]] == part[at[v]])
        for at in permutations(range(ranks))
    )


@pytest.mark.parametrize("seed", range(10))
def test_four_ranks(seed: int) -> None:
    rng = random.Random(seed)
    fine = tuple(rng.randrange(3) for _ in range(4))
    ways = ((rng.randint(1, 3), tuple(x // 2 for x in fine)), (rng.randint(1, 3), fine))
    weights = (rng.randint(1, 4), rng.randint(1, 4))
    assert verify.most_inside(ways, weights) == by_trying(ways, weights)


@pytest.mark.long
@pytest.mark.parametrize("parts", [(0, 0, 0, 1, 1, 1, 2, 2), (0, 0, 0, 0, 0, 1, 1, 2)])
def test_eight_ranks(parts: tuple[int, ...]) -> None:
    assert verify.most_inside(((2, parts),), (4, 2, 1)) == by_trying(((2, parts),), (4, 2, 1))
