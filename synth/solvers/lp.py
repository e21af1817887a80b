"""scipy's ``linprog`` by HiGHS, which ends with the limit now in force."""

from __future__ import annotations

import math
from typing import Any

from synth.clock.deadline import OutOfTime, left

LIMIT, TIME = 1, "Time limit"  # scipy's status for time and iterations, and how its message tells them apart
LEAST_S = 0.01


def linprog(*words: Any, options: dict[str, Any] | None = None, **more: Any) -> Any:
    """As :func:`scipy.optimize.linprog`. Raises :class:`OutOfTime` where the time limit ended it."""
    from scipy.optimize import linprog as solve  # half a second to import, and often not needed

    seconds = left()
    limits = {} if seconds == math.inf else {"time_limit": max(LEAST_S, seconds)}
    run: Any = solve
    found = run(*words, options={**(options or {}), **limits}, **more)
    if limits and found.status == LIMIT and TIME in found.message:
        raise OutOfTime
    return found
