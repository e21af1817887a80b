"""Rows come out of a model as they were written: a small program with one row of each sense, solved by hand."""

from __future__ import annotations

import pyomo.environ as pyo
import pytest

from synth.options import RunOptions
from synth.solvers import mathprog
from synth.solvers.rows import add_rows, linear, ones


def test_rows_of_each_sense() -> None:
    """Least 2x + 2y + z with x + y >= 4, y <= 1, z - x == 0.5: x costs 3 with its z, so y = 1, x = 3, z = 3.5, value
    6 + 2 + 3.5 = 11.5."""
    model = pyo.ConcreteModel()
    model.x, model.y, model.z = (pyo.Var(bounds=(0, 10)) for _ in range(3))
    add_rows(
        model,
        "rows",
        [(ones([model.x, model.y]), ">=", 4), ([(1, model.y)], "<=", 1), ([(1, model.z), (-1, model.x)], "==", 0.5)],
    )
    model.cost = pyo.Objective(expr=linear([(2, model.x), (2, model.y), (1, model.z)]))
    result = mathprog.solve(model, RunOptions(solver="highs"), bounded=True)
    assert result.objective == pytest.approx(11.5)
    assert [variable.value for variable in (model.x, model.y, model.z)] == pytest.approx([3, 1, 3.5])
    assert list(model.rows) == [0, 1, 2]
