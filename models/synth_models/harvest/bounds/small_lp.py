"""Small linear programs by HiGHS through SciPy, without a modelling layer (thousands of them make one bound)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scipy.optimize import linprog
from scipy.sparse import csr_array

from synth_models.harvest.solution import FloatArray

_linprog: Any = linprog  # its published types reject sparse matrices


@dataclass(frozen=True)
class Minimum:
    """An optimal point, its value and the multipliers (>= 0) of the rows."""

    point: FloatArray
    value: float
    multipliers: FloatArray


def minimise(
    cost: FloatArray,
    matrix: csr_array[Any],
    right: FloatArray,
    least: FloatArray,
    equal: FloatArray | None = None,
    equal_right: float = 0.0,
) -> Minimum | None:
    """Minimise ``cost @ x`` over ``matrix @ x >= right``, ``x >= least`` and up to one equation; None if it failed."""
    result = _linprog(
        cost,
        A_ub=-matrix,
        b_ub=-right,
        bounds=[(low, None) for low in least.tolist()],
        method="highs",
        A_eq=None if equal is None else equal[None, :],
        b_eq=None if equal is None else [equal_right],
    )
    if result.status != 0:
        return None
    return Minimum(result.x, float(result.fun), -result.ineqlin.marginals)
