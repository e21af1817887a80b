"""Numbers of an instance as exact fractions: a number in a file means the decimal that is written there.

``7e-07`` is 7/10^7, not the nearest binary fraction, so that times and bounds come out as the fractions one expects.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache


@lru_cache(4096, typed=True)  # a machine has few numbers, and each is asked for often
def exact(value: float) -> Fraction:
    """The shortest decimal that reads back as ``value``, exactly. Raises ``ValueError`` for what is not finite."""
    if not math.isfinite(value):
        raise ValueError(f"not a finite number: {value}")
    return Fraction(value) if isinstance(value, int) else Fraction(repr(float(value)))


def float_below(value: Fraction) -> float:
    """The largest float that is at most ``value`` (what a bound is stored as)."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


def float_above(value: Fraction) -> float:
    """The least float that is at least ``value`` (what a time is stored as)."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)
