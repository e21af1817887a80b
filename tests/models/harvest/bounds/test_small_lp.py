"""Programs that grow by rows and change their cost, against solving each state anew by SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

from synth_models.harvest.bounds.small_lp import GrowingProgram, minimise


@pytest.mark.parametrize("seed", range(20))
def test_every_state_is_the_program_solved_anew(seed: int) -> None:
    random = np.random.default_rng(seed)
    columns = int(random.integers(1, 8))
    cost, least = random.integers(0, 5, columns).astype(float), random.integers(-3, 3, columns).astype(float)
    program = GrowingProgram(cost, least)
    matrix, right = np.zeros((0, columns)), np.zeros(0)
    total: dict[str, Any] = {}
    if seed % 2:
        total = {"A_eq": np.ones((1, columns)), "b_eq": [float(least.sum() + 5)]}
        program.add(csr_array(np.ones((1, columns))), np.array(total["b_eq"]), equal=True)
    for _ in range(6):
        if random.random() < 0.3:
            cost = random.integers(0, 5, columns).astype(float)
            program.aim(cost)
        else:  # rows and right sides that leave a point: x = least + 5 fits all of them, and the total without others
            rows = random.integers(-2, 6, (int(random.integers(0, 4)), columns)).astype(float)
            added = np.minimum(rows @ least + random.integers(-3, 6, len(rows)), rows @ (least + 5 / columns))
            matrix, right = np.vstack([matrix, rows]), np.concatenate([right, added])
            program.add(csr_array(rows), added)
        found = program.minimise()
        bounds = [(low, None) for low in least]
        direct = linprog(cost, A_ub=-matrix, b_ub=-right, bounds=bounds, **total)
        assert found is not None
        assert found.value == pytest.approx(direct.fun, abs=1e-7)
        assert cost @ found.point == pytest.approx(direct.fun, abs=1e-7)
        assert (matrix @ found.point >= right - 1e-7).all()
        of_rows = found.multipliers[len(total) // 2 :]
        assert (of_rows >= -1e-9).all()
        if not total:  # what the multipliers prove is the value
            reduced = cost - of_rows @ matrix
            assert (reduced >= -1e-7).all()
            assert of_rows @ right + reduced @ least == pytest.approx(direct.fun, abs=1e-6)


def test_no_optimum_is_none() -> None:
    """Without a point, and where the cost falls without end."""
    one = csr_array(np.array([[-1.0]]))
    assert minimise(np.ones(1), one, np.ones(1), np.zeros(1)) is None
    assert minimise(-np.ones(1), csr_array(np.array([[1.0]])), np.ones(1), np.zeros(1)) is None
