"""scipy's ``linprog`` by HiGHS, which ends with the limit now in force."""

from __future__ import annotations

import math
from typing import Any

from synth.clock.deadline import OutOfTime, left

LIMIT, TIME = 1, "Time limit"  # scipy's status for time and iterations, and how its message tells them apart
LEAST_S = 0.01
INTERIOR = "highs-ipm"
PREPARING_S = 5e-6  # per entry of the matrices: what HiGHS takes, at most, before its interior point method begins


def linprog(*words: Any, options: dict[str, Any] | None = None, **more: Any) -> Any:
    """As :func:`scipy.optimize.linprog`. Raises :class:`OutOfTime` where the time limit ended it, or leaves an interior
    point method too little to begin: HiGHS takes a limit that has passed before the first step of that for none."""
    from scipy.optimize import linprog as solve  # half a second to import, and often not needed

    seconds = left()
    if more.get("method") == INTERIOR and seconds <= PREPARING_S * _entries(*words, **more):
        raise OutOfTime
    limits = {} if seconds == math.inf else {"time_limit": max(LEAST_S, seconds)}
    run: Any = solve
    found = run(*words, options={**(options or {}), **limits}, **more)
    if limits and found.status == LIMIT and TIME in found.message:
        raise OutOfTime
    return found


def _entries(cost: Any, A_ub: Any = None, b_ub: Any = None, A_eq: Any = None, *_: Any, **__: Any) -> int:
    """How many numbers the program's matrices hold."""
    from numpy import size

    return sum(int(getattr(matrix, "nnz", size(matrix))) for matrix in (cost, A_ub, A_eq) if matrix is not None)
