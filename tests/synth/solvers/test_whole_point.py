"""A whole point of small programs, against trying all points; and that a program that fails is no "none"."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import LinearConstraint

from synth.options import RunOptions
from synth.solvers.whole_point import whole_point


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_best_of_all_points(seed: int) -> None:
    """Programs of three columns up to 3 and two rows, some of them without a point."""
    random = np.random.default_rng(seed)
    cost, rows = random.integers(-4, 5, 3).astype(float), random.integers(-3, 4, (2, 3)).astype(float)
    low = random.integers(-4, 7, 2).astype(float)
    high = low + random.integers(0, 2, 2)
    points = [np.array(p) for p in product(range(4), repeat=3) if np.all((low <= rows @ p) & (rows @ p <= high))]
    found = whole_point(cost, np.full(3, 3.0), [LinearConstraint(rows, low, high)], RunOptions())
    assert (found is None) == (not points)
    if found is not None:
        assert any(np.array_equal(found, point) for point in points)
        assert cost @ found == pytest.approx(min(cost @ point for point in points))


def test_a_solver_that_fails_is_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failed:
        x, status, message = None, 4, "numerical trouble"

    monkeypatch.setattr("scipy.optimize.milp", lambda *_, **__: Failed())
    with pytest.raises(RuntimeError, match="numerical trouble"):
        whole_point(np.zeros(1), 1.0, [], RunOptions())
