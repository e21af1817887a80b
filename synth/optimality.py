"""When a value is proven best, and how far it is from that: the one place that says so.

Values and bounds are exact rationals in the instance's own units (whole steps; bytes; ticks of a clock that suits all
bandwidths and latencies), each rounded to a double: values to the nearest or up, bounds down. So a value meets its
bound where no double lies between them. Anything else is a gap, however small.
"""

from __future__ import annotations

import math

WITHIN = 1e-4  # relative gap at which solvers stop by default


def meets(value: float, bound: float) -> bool:
    """Whether value and bound are equal, or neighbours among the doubles: what rounding one exact number leaves."""
    return value == bound or math.nextafter(bound, value) == value


def exceeds(bound: float | None, value: float | None) -> bool:
    """Whether a bound lies above a value by more than a solver's tolerance: one millionth of it, in any unit. False
    when either is missing."""
    return bound is not None and value is not None and bound - value > 1e-6 * max(abs(value), abs(bound) * 1e-3)


def gap(value: float | None, bound: float | None) -> float | None:
    """Relative gap ``(value - bound) / |value|``; 0 only where they meet (:func:`meets`).

    None when either is missing or the value lies below the bound (a published count that no schedule can have). A bound
    above the value within a solver's tolerance leaves the difference as a gap: it is no exact proof.
    """
    if value is None or bound is None or exceeds(bound, value):
        return None
    if meets(value, bound):
        return 0.0
    return abs(value - bound) / abs(value) if value else math.inf
