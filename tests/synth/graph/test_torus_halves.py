"""Halves of a torus: every pair has a node in each, each is connected and as shallow as is said."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from synth.graph.torus_halves import halves, steps_along


def search(beside: list[set[int]], sources: list[int], inside: set[int]) -> dict[int, int]:
    """Steps from the nearest source, by breadth-first search."""
    steps = dict.fromkeys(sources, 0)
    queue = deque(sources)
    while queue:
        here = queue.popleft()
        for there in beside[here] & inside - steps.keys():
            steps[there] = steps[here] + 1
            queue.append(there)
    return steps


@pytest.mark.parametrize("sides", [(4, 4, 4), (4, 4, 8), (4, 5, 6), (5, 7, 4), (6, 6, 6)])
def test_pairs_halves_and_steps(sides: tuple[int, ...]) -> None:
    """And in fewer steps than a sum at one node and its way back: two diameters."""
    found = halves(sides)
    assert found is not None
    nodes = range(int(np.prod(sides)))
    beside = [set(row) for row in steps_along(sides).tolist()]
    at = [np.unravel_index(v, sides) for v in nodes]
    for v in nodes:
        for w in beside[v]:
            apart = sorted(abs(int(a) - int(b)) for a, b in zip(at[v], at[w], strict=True))
            assert apart[:2] == [0, 0]
            assert apart[2] in (1, *(side - 1 for side in sides))
        assert len(beside[v]) == 6
        assert found.partner[v] in beside[v]
        assert found.partner[found.partner[v]] == v
        assert found.half[v] + found.half[found.partner[v]] == 1
    for half, root in enumerate(found.root.tolist()):
        inside = {v for v in nodes if found.half[v] == half}
        assert search(beside, [root], inside) == {v: int(found.away[v]) for v in inside}
    assert search(beside, found.root.tolist(), set(nodes)) == dict(enumerate(found.near.tolist()))
    assert found.steps < 2 * sum(side // 2 for side in sides)


@pytest.mark.parametrize("sides", [(5, 5, 5), (3, 4, 4), (4, 4), (8,), (4, 4, 4, 4)])
def test_no_even_side_or_not_three(sides: tuple[int, ...]) -> None:
    """There are none."""
    assert halves(sides) is None


def test_a_pod() -> None:
    """8 x 8 x 16: 24 steps, where two diameters are 32."""
    found = halves((8, 8, 16))
    assert found is not None
    assert found.steps == 24
