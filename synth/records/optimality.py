"""When a value is proven best, how far it is from that, and when a question has no answer: the one place that says so.

Values and bounds are exact rationals in the instance's own units (whole steps; bytes; ticks of a clock that suits all
bandwidths and latencies), each rounded to a double: values to the nearest or up, bounds down. So a value meets its
bound where no double lies between them. Anything else is a gap, however small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from synth.arrays import SOLVED
from synth.errors import InputError
from synth.family import get_family
from synth.text.untrusted import is_finite


def meets(value: float, bound: float) -> bool:
    """Whether value and bound are equal, or neighbours among the doubles: what rounding one exact number leaves."""
    return value == bound or math.nextafter(bound, value) == value


def exceeds(bound: float | None, value: float | None) -> bool:
    """Whether a bound lies above a value by more than a solver's tolerance: one millionth of it, in any unit. False
    when either is missing."""
    return bound is not None and value is not None and bound - value > SOLVED * max(abs(value), abs(bound) * 1e-3)


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


def is_refuted(data: Mapping[str, Any], bound: float | None, certificate: Mapping[str, Any] | None) -> bool:
    """Whether the record's question asks for a value below the bound that its certificate proves, or the certificate
    refutes that question itself (the family's ``refutes``). The certificate itself is the check's to verify."""
    given = data["options"].get("method")
    if certificate is None or bound is None or not isinstance(given, Mapping):
        return False
    try:
        family = get_family(data["family"])
        parameters = family.method(data["method"]).parameters
    except InputError:
        return False
    limits: list[Any] = [given.get(parameter.name) for parameter in parameters if parameter.at_most]
    if any(is_finite(most) and most < bound for most in limits):
        return True
    return family.can("refutes") and bool(family.capability("refutes")(given, bound, certificate))
