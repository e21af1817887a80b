"""A whole-number program in matrix form, solved by HiGHS through scipy: for small programs of heuristics, solved by the
hundred, where only a point is wanted and building a Pyomo model would take longer than solving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.options import RunOptions

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

LIMIT, INFEASIBLE = 1, 2  # scipy's status


def whole_point(
    cost: FloatArray,
    upper: FloatArray | float,
    rows: Sequence[LinearConstraint],
    options: RunOptions,
    *,
    seconds: float | None = None,
    gap: float = 0.0,
    node_limit: int | None = None,
) -> IntArray | None:
    """A whole point from 0 to ``upper`` of small ``cost``, all shape (columns,), or None: there is none, or none was
    found within ``seconds``, the time that is left, or ``node_limit`` nodes. It proves nothing either way.

    Raises ``RuntimeError`` where the solver ended otherwise.
    """
    from scipy.optimize import Bounds, milp  # half a second to import, and often not needed

    limits: dict[str, Any] = {"mip_rel_gap": gap}
    times = [time for time in (seconds, options.remaining()) if time is not None]
    if times:
        limits["time_limit"] = max(0.01, min(times))
    if node_limit is not None:
        limits["node_limit"] = node_limit
    run: Any = milp
    result = run(
        cost, integrality=np.ones(len(cost)), bounds=Bounds(0.0, upper), constraints=list(rows), options=limits
    )
    if result.status == LIMIT and "time" in result.message.lower():
        options.clock.cut = True
    if result.x is None:
        _must_be_an_answer(result)
        return None
    point: IntArray = np.round(result.x).astype(np.int64)
    return point


def _must_be_an_answer(result: Any) -> None:
    """Raise ``RuntimeError`` unless the solver ended without a point because of a limit or because there is none.

    scipy has no status of its own for HiGHS's node limit, and none for what presolve calls unbounded or infeasible,
    which is infeasible here, where all variables have bounds."""
    known = any(words in result.message.lower() for words in ("solution limit reached", "unbounded or infeasible"))
    if result.status not in (LIMIT, INFEASIBLE) and not known:
        raise RuntimeError(f"a whole-number program failed: {result.message}")
