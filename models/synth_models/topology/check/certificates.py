"""Verify a lower bound that holds for every topology of a plant, in whole numbers; imports no method.

``argument``:

* ``levels``: the sum of hops is at least so much (:mod:`synth_models.topology.check.levels`). Every unit crosses as
  many arcs as its path has hops, so the largest load is at least that sum over the most arcs there can be.
* ``cut``: ``inside`` lists nodes. Each sends a unit to every node outside, over the arcs that lead out: those of the
  fixed links, and of the circuits as many as the ports on both sides allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from synth.text import untrusted
from synth_models.topology.check.levels import least_hops
from synth_models.topology.instance import TopologyInstance


def check_bound(instance: TopologyInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """The faults of a bound on the load or on the hops; none when the certificate proves it."""
    try:
        argument = untrusted.choice(certificate, "argument", "levels", "cut")
        proven = Fraction(least_hops(instance)) if argument == "levels" else _cut_load(instance, certificate)
        if instance.objective == "load" and argument == "levels":
            proven /= instance.most_arcs
        stated = untrusted.number({"bound": bound}, "bound")
    except (ValueError, KeyError, TypeError) as error:
        return [f"the certificate is broken: {error}"]
    if stated > float(proven):  # the float next to an exact fraction is what a bound may say
        return [f"the certificate proves {float(proven):.17g}, not {stated:.17g}"]
    return []


def _cut_load(instance: TopologyInstance, certificate: Mapping[str, Any]) -> Fraction:
    """What the nodes inside send out, over the most arcs that may lead out."""
    if instance.objective != "load":
        raise ValueError("a cut bounds the load, not the hops")
    n = instance.nodes
    listed = untrusted.whole_numbers(certificate, "inside", 0, n - 1)
    inside = np.zeros(n, dtype=bool)
    inside[listed] = True
    if inside.sum() != len(listed) or not 0 < len(listed) < n:
        raise ValueError("inside does not list some of the nodes, each once")
    return Fraction(len(listed) * (n - len(listed)), _most_leaving(instance, inside))


def _most_leaving(instance: TopologyInstance, inside: np.ndarray[Any, Any]) -> int:
    """The most arcs from inside to outside; ValueError where there can be none."""
    u, v = inside[instance.fixed].T if len(instance.fixed) else (np.zeros(0, bool),) * 2
    arcs = int((u & ~v).sum()) + (0 if instance.one_way else int((v & ~u).sum()))
    for switch in instance.switches:
        sends, receives = inside[switch.sends], inside[switch.receives]
        arcs += min(int(sends.sum()), int((~receives).sum()))
        arcs += 0 if instance.one_way else min(int((~sends).sum()), int(receives.sum()))
    if instance.degree is not None:
        out, into = instance.free
        arcs += min(int(out[inside].sum()), int(into[~inside].sum()))
    if not arcs:
        raise ValueError("no arc can lead out of the cut")
    return arcs
