"""What each collective of a mix takes at least on every topology of a plant, in exact numbers.

``parts`` of the certificate names an argument a collective:

* ``traffic``: bytes times hops over the rate of all arcs. An all-to-all crosses as many arcs as its paths have hops.
  Of an allreduce every byte takes 2 (n - 1) messages: n - 1 before the first node has the sum, one for each other node
  behind that. An allgather, a reduce_scatter and what has a root take a message for each node that gets or gives.
* ``cut``: what must leave the nodes of ``inside``, over the most that arcs out of them can have.
* ``depth``: some node is at least so many hops from some other one; where there is a root, from node 0, or to node 0
  where that alone gets something.

The first two take a latency more: the last byte has to arrive. A number in a file means the decimal that stands there.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

from synth.arrays import BoolArray
from synth.text import untrusted
from synth_models.topology.check.leaving import listed, most_leaving
from synth_models.topology.check.levels import least_depth, least_hops
from synth_models.topology.instance import Mixed, TopologyInstance

_ROOT: dict[str, Literal["from", "to"]] = {"broadcast": "from", "scatter": "from", "reduce": "to", "gather": "to"}


def least_mix(instance: TopologyInstance, certificate: Mapping[str, Any]) -> Fraction:
    """The least weighted sum of times, in seconds. Raises ``ValueError`` for what proves none."""
    if instance.objective != "mix" or instance.mix is None:
        raise ValueError("the argument mix is for the objective mix")
    parts = certificate["parts"]
    if not isinstance(parts, list) or len(parts) != len(instance.mix) or not all(isinstance(p, dict) for p in parts):
        raise ValueError(f"parts does not list {len(instance.mix)} arguments")
    pairs = zip(instance.mix, parts, strict=True)
    return sum(
        (Fraction(repr(asked.weight)) * _least_time(instance, asked, part) for asked, part in pairs), Fraction(0)
    )


def _least_time(instance: TopologyInstance, asked: Mixed, part: Mapping[str, Any]) -> Fraction:
    argument = untrusted.choice(part, "argument", "traffic", "cut", "depth")
    delay = least_latency(instance)
    if argument == "depth":
        return delay * least_depth(instance, _ROOT.get(asked.collective))
    rate = Fraction(repr(instance.bandwidth))
    if argument == "traffic":
        return _traffic(instance, asked) / (rate * instance.most_rate) + delay
    inside = listed(instance, part)
    amount = _across(asked, inside)
    return amount / (rate * most_leaving(instance, inside)) + delay if amount else Fraction(0)


def least_latency(instance: TopologyInstance) -> Fraction:
    """The least latency in seconds of an arc that there may be."""
    circuits = instance.most_arcs - len(instance.fixed) * (1 if instance.one_way else 2)
    kinds = ((len(instance.fixed), instance.latency), (circuits, instance.circuit_latency))
    return min(Fraction(repr(delay)) for many, delay in kinds if many)


def _traffic(instance: TopologyInstance, asked: Mixed) -> Fraction:
    """Bytes times hops."""
    n, size = instance.nodes, Fraction(asked.bytes)
    match asked.collective:
        case "alltoall":
            return least_hops(instance) * size / n
        case "allreduce":
            return 2 * (n - 1) * size
        case "gather" | "scatter":
            return (n - 1) * size / n
    return (n - 1) * size


def _across(asked: Mixed, inside: BoolArray) -> Fraction:
    """Bytes that must leave the nodes inside."""
    n, here, size = len(inside), int(inside.sum()), Fraction(asked.bytes)
    within = bool(inside[0])
    match asked.collective:
        case "alltoall":
            return here * (n - here) * size / n
        case "allgather":
            return here * size / n
        case "reduce_scatter":
            return (n - here) * size / n
        case "allreduce":
            return size
        case "broadcast":
            return size * within
        case "reduce":
            return size * (not within)
        case "gather":
            return here * size / n * (not within)
    return (n - here) * size / n * within
