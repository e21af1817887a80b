"""The most that can lead out of some nodes, over fixed links and over what circuits the ports on both sides allow."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import BoolArray
from synth.text import untrusted
from synth_models.topology.instance import TopologyInstance


def listed(instance: TopologyInstance, certificate: Mapping[str, Any]) -> BoolArray:
    """The nodes of ``inside``, shape (nodes,). Raises ``ValueError`` where it does not list some, each once."""
    n = instance.nodes
    numbers = untrusted.whole_numbers(certificate, "inside", 0, n - 1)
    inside = np.zeros(n, dtype=bool)
    inside[numbers] = True
    if inside.sum() != len(numbers) or not 0 < len(numbers) < n:
        raise ValueError("inside does not list some of the nodes, each once")
    return inside


def most_leaving(instance: TopologyInstance, inside: BoolArray) -> Fraction:
    """The most rate from inside to outside, of a fixed link 1; ``ValueError`` where there can be none."""
    u, v = inside[instance.fixed].T if len(instance.fixed) else (np.zeros(0, bool),) * 2
    fixed = int((u & ~v).sum()) + (0 if instance.one_way else int((v & ~u).sum()))
    arcs = 0
    for switch in instance.switches:
        sends, receives = inside[switch.sends], inside[switch.receives]
        arcs += min(int(sends.sum()), int((~receives).sum()))
        arcs += 0 if instance.one_way else min(int((~sends).sum()), int(receives.sum()))
    if instance.degree is not None:
        out, into = instance.free
        arcs += min(int(out[inside].sum()), int(into[~inside].sum()))
    if not fixed + arcs:
        raise ValueError("no arc can lead out of the cut")
    return fixed + arcs * Fraction(instance.weights[1], instance.weights[0])
