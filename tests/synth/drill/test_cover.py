"""The smallest cover against all subsets of tiny ones."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from examples import some_of

from synth.drill.cover import smallest
from synth.options import RunOptions


def fewest(covered: list[frozenset[int]]) -> int:
    """By all subsets, the small ones first."""
    wanted = frozenset().union(*covered)
    for count in range(len(covered) + 1):
        for chosen in combinations(covered, count):
            if wanted <= frozenset().union(*chosen):
                return count
    raise AssertionError


@pytest.mark.parametrize("seed", some_of(range(40)))
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_as_few_as_any_subset(seed: int, solver: str) -> None:
    if solver == "scip":
        pytest.importorskip("pyscipopt")
    chooser = random.Random(seed)
    failures = chooser.randint(0, 8)
    covered = [
        frozenset(f for f in range(failures) if chooser.random() < chooser.choice([0.1, 0.3, 0.6]))
        for _ in range(chooser.randint(1, 9))
    ]
    taken, proven = smallest(covered, RunOptions(20.0, solver=solver))
    assert proven
    assert len(taken) == len(set(taken)) == fewest(covered)
    assert frozenset().union(*covered) == frozenset().union(*(covered[c] for c in taken))
