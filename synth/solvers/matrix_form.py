"""A Pyomo model with linear rows as arrays, for solvers that take a matrix instead of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.arrays import FloatArray


@dataclass(frozen=True)
class MatrixForm:
    """Minimise ``cost @ x + offset`` such that ``row_lower <= rows @ x <= row_upper`` and ``lower <= x <= upper``, and
    ``x[whole == 1]`` is whole. Shapes: ``rows`` (rows, variables), sparse; ``row_*`` (rows,), the others (variables,);
    a bound that is not there is infinite."""

    variables: Sequence[Any]  # Pyomo's, in the order of the columns
    constraints: Sequence[Any]  # the same of the rows
    cost: FloatArray
    offset: float
    rows: Any
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    whole: npt.NDArray[np.int8]

    def put(self, point: Sequence[float]) -> None:
        """Give the model's variables the values of a point, shape (variables,)."""
        for variable, value in zip(self.variables, point, strict=True):
            variable.set_value(float(value), skip_validation=True)


def matrix_form(model: Any) -> MatrixForm:
    """The model as arrays. Raises what Pyomo raises on rows that are not linear."""
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    form = LinearStandardFormCompiler().write(model, mixed_form=True)
    has_cost = bool(form.objectives)
    side, kind = np.array(form.rhs, float), np.array([row.bound_type for row in form.rows], int)  # 1 <=, -1 >=, 0 ==
    ends = np.array([x.bounds for x in form.columns], float).reshape(-1, 2)  # no bound is None: not a number here
    return MatrixForm(
        form.columns,
        [row.constraint for row in form.rows],
        form.c.toarray()[0] if has_cost else np.zeros(len(form.columns)),
        float(form.c_offset[0]) if has_cost else 0.0,
        form.A,
        np.where(kind == 1, -np.inf, side),
        np.where(kind == -1, np.inf, side),
        np.nan_to_num(ends[:, 0], nan=-np.inf, neginf=-np.inf, posinf=np.inf),
        np.nan_to_num(ends[:, 1], nan=np.inf, neginf=-np.inf, posinf=np.inf),
        np.array([x.is_integer() or x.is_binary() for x in form.columns], np.int8),
    )
