"""Verify a lower bound that holds for every topology of a plant, in whole numbers; imports no method.

``argument``:

* ``levels``: the sum of hops is at least so much (:mod:`synth_models.topology.check.levels`). Every unit crosses as
  many arcs as its path has hops, so the largest load is at least that sum over the most rate there can be. ``lengths``
  of a fixed link and of a circuit, where given: the same of the sum of lengths, every rate times its length.
* ``cut``: ``inside`` lists nodes. Each sends a unit to every node outside, over the arcs that lead out: those of the
  fixed links, and of the circuits as many as the ports on both sides allow.
* ``mix``: an argument a collective (:mod:`synth_models.topology.check.mix_bounds`).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from synth.text import untrusted
from synth_models.topology.check.leaving import listed, most_leaving
from synth_models.topology.check.levels import least_hops
from synth_models.topology.check.mix_bounds import least_mix
from synth_models.topology.instance import TopologyInstance

LONGEST = 8  # length of a link


def check_bound(instance: TopologyInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """The faults of a bound on the load or on the hops; none when the certificate proves it."""
    try:
        proven = _proven(instance, certificate)
        stated = untrusted.number({"bound": bound}, "bound")
    except (ValueError, KeyError, TypeError) as error:
        return [f"the certificate is broken: {error}"]
    if stated > float(proven):  # the float next to an exact fraction is what a bound may say
        return [f"the certificate proves {float(proven):.17g}, not {stated:.17g}"]
    return []


def _levels(instance: TopologyInstance, certificate: Mapping[str, Any]) -> Fraction:
    """The least sum of lengths, over what all arcs can carry of lengths at a load of 1."""
    given = certificate if "lengths" in certificate else {"lengths": [1, 1]}
    inside, circuit = map(int, untrusted.whole_numbers(given, "lengths", 1, LONGEST, (2,)))
    fixed = len(instance.fixed) * (1 if instance.one_way else 2)
    return Fraction(least_hops(instance, inside, circuit)) / (fixed * inside + (instance.most_rate - fixed) * circuit)


def _proven(instance: TopologyInstance, certificate: Mapping[str, Any]) -> Fraction:
    """What the certificate proves of the objective. Raises ``ValueError`` where that is nothing."""
    argument = untrusted.choice(certificate, "argument", "levels", "cut", "mix")
    if argument == "mix":
        return least_mix(instance, certificate)
    if instance.objective == "mix":
        raise ValueError("a mix is bounded by the argument mix")
    if argument == "levels":
        return _levels(instance, certificate) if instance.objective == "load" else Fraction(least_hops(instance))
    if instance.objective != "load":
        raise ValueError("a cut bounds the load, not the hops")
    inside = listed(instance, certificate)
    here = int(inside.sum())
    return here * (instance.nodes - here) / most_leaving(instance, inside)
