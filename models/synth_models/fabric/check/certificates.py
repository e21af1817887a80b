"""Verify a lower bound on the completion time from its certificate, in exact arithmetic; imports no method.

Every certificate names an ``argument``, which says what some links must carry at least, ``needed``, and until when
each of them can: a link e at a price of ``c_e`` a byte carries at most ``c_e * b_e * max(0, T - h_e)`` until T, if
nothing useful crosses it in ``h_e`` seconds of latency before and behind (:mod:`synth_models.fabric.check.windows`). A
bound T is proven if together they could carry no more than what is needed until T: any earlier is then too early. The
arguments are stated in :mod:`synth_models.fabric.check.arguments`, :mod:`synth_models.fabric.check.arrivals`,
:mod:`synth_models.fabric.check.moments`, :mod:`synth_models.fabric.check.orbits`,
:mod:`synth_models.fabric.check.near_goals` and :mod:`synth_models.fabric.check.timed_prices`. Others come with the
methods that state them (:class:`synth.method.Certificates`), as those of SCCL's steps and TE-CCL's epochs do. A
certificate may come out of any file: every number is checked for its range before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from synth.method import load
from synth.plugins import added
from synth.text import untrusted
from synth_models.fabric.check.arguments import ARGUMENTS as OF_WAYS
from synth_models.fabric.check.arrivals import ARGUMENTS as OF_ARRIVALS
from synth_models.fabric.check.ends import Unproven, proven, rows_of
from synth_models.fabric.check.moments import ARGUMENTS as OF_MOMENTS
from synth_models.fabric.check.near_goals import ARGUMENTS as OF_NEAR_GOALS
from synth_models.fabric.check.orbits import ARGUMENTS as OF_ORBITS
from synth_models.fabric.check.own_part import own_part_bound
from synth_models.fabric.check.scenarios import scenarios_bound
from synth_models.fabric.check.timed_prices import ARGUMENTS as OF_TIMED_PRICES
from synth_models.fabric.instance import FabricInstance

ARGUMENTS = {**OF_WAYS, **OF_ARRIVALS, **OF_MOMENTS, **OF_ORBITS, **OF_NEAR_GOALS, **OF_TIMED_PRICES}
Derived = Callable[[FabricInstance, Mapping[str, Any], Callable[..., list[str]]], Fraction]
OF_BOUNDS: dict[str, Derived] = {
    "scenario": scenarios_bound, "whoever": scenarios_bound, "own_part": own_part_bound,
}  # fmt: skip
BROKEN = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError)


def check_bound(instance: FabricInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """The faults of a bound in seconds, and of what the certificate says of a question; none when both are proven."""
    try:
        stated = untrusted.number({"bound": bound}, "bound", 0.0)
        if not isinstance(certificate, Mapping):
            return ["the certificate is broken: it is no table"]
        if faults := _beside(instance, certificate):
            return faults
        least = proven(instance, *rows_of(instance, stated, certificate), _of_one)
    except Unproven as error:
        return [str(error)]
    except BROKEN as error:
        return [f"the certificate is broken: {error}"]
    words = f"the certificate proves {float(least):.17g} s, not {stated:.17g} s"
    return [] if Fraction(stated) <= least else [words]


def _of_one(instance: FabricInstance, stated: float, certificate: Mapping[str, Any]) -> list[str]:
    """The faults of a bound of one operation."""
    others = added.certificates("fabric").items()
    arguments = {name: one.argument for name, one in others if one.argument is not None}
    argument = untrusted.choice(certificate, "argument", *ARGUMENTS, *arguments, "nothing", *OF_BOUNDS)
    if argument in OF_BOUNDS:
        least = OF_BOUNDS[argument](instance, certificate, check_bound)
        words = f"the certificate ({argument}) proves {float(least):.17g} s, not {stated:.17g} s"
        return [] if Fraction(stated) <= least else [words]
    if argument == "nothing":
        return [] if stated == 0 else [f"the certificate proves nothing, the record states {stated:.17g} s"]
    if argument not in ARGUMENTS:
        found: list[str] = load(arguments[argument])(instance, stated, certificate)
        return found
    needed, capacity = ARGUMENTS[argument](instance, certificate)
    carried = capacity.until(Fraction(stated))
    if needed <= 0:
        return [f"nothing needs what the certificate's links carry ({argument})"]
    if carried > needed:
        return [
            f"the certificate ({argument}) does not prove {stated:.17g} s: until then its links carry "
            f"{float(carried / needed):.12g} times what has to pass them"
        ]
    return []


def _beside(instance: FabricInstance, certificate: Mapping[str, Any]) -> list[str]:
    """The faults of what a certificate has beside its argument: those of the first table that has some."""
    for name, one in added.certificates("fabric").items():
        if one.table is not None and name in certificate and instance.collectives is None:
            faults: list[str] = load(one.table)(instance, certificate[name])
            if faults:
                return faults
    return []


def refutes(options: Mapping[str, Any], bound: float, certificate: Mapping[str, Any]) -> bool:
    """Whether the certificate says that the question which the options ask has no answer; the check verifies it."""
    for name, one in added.certificates("fabric").items():
        table = certificate if certificate.get("argument") == name else certificate.get(name)
        if not one.asked or not isinstance(table, Mapping):
            continue
        if all(options.get(key) is not None and options.get(key) == table.get(key) for key in one.asked):
            return True
    return False
