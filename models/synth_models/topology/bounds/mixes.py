"""The strongest bound on the time of a mix: for every collective traffic, cuts and depth, whichever is most.

What each argument says and why stands in ``check/mix_bounds.py``, which counts again with code of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray
from synth_models.topology.instance import Mixed, TopologyInstance


class Cut(NamedTuple):
    """Nodes inside by name, and the most rate that leads out of them, of a fixed link 1."""

    name: str
    inside: BoolArray
    rate: Fraction


class Counted(NamedTuple):
    """What bounds a mix: the least sum of hops, the hops that some node is at least from another one, one from node 0
    and node 0 from one, and cuts."""

    hops: int
    depth: int
    depth_from_first: int
    depth_to_first: int
    cuts: Sequence[Cut]


def strongest_mix(instance: TopologyInstance, counted: Counted) -> tuple[Fraction, str, dict[str, Any]]:
    """The bound in seconds, its proof in words and its certificate."""
    total, words, parts = Fraction(0), list[str](), list[dict[str, Any]]()
    for asked in instance.mix or ():
        seconds, name, part = max(_arguments(instance, asked, counted), key=lambda one: one[0])
        total += Fraction(str(asked.weight)) * seconds
        words.append(f"{asked.collective} by {name}")
        parts.append(part)
    return total, "; ".join(words), {"argument": "mix", "parts": parts}


def _arguments(
    instance: TopologyInstance, asked: Mixed, counted: Counted
) -> Iterator[tuple[Fraction, str, dict[str, Any]]]:
    delays = [instance.latency] * bool(len(instance.fixed))
    delays += [instance.circuit_latency] * (instance.most_arcs > len(instance.fixed) * (1 if instance.one_way else 2))
    delay, rate = min(Fraction(str(delay)) for delay in delays), Fraction(str(instance.bandwidth))
    hops = counted.depth
    if asked.rooted:
        hops = counted.depth_to_first if asked.collective in ("reduce", "gather") else counted.depth_from_first
    yield hops * delay, "depth", {"argument": "depth"}
    yield (
        _traffic(asked, instance.nodes, counted.hops) / rate / instance.most_rate + delay,
        "traffic",
        {"argument": "traffic"},
    )
    for cut in counted.cuts:
        amount = _leaving(asked, cut.inside)
        if amount:
            nodes = np.flatnonzero(cut.inside).tolist()
            yield amount / rate / cut.rate + delay, f"the cut around {cut.name}", {"argument": "cut", "inside": nodes}


def _traffic(asked: Mixed, n: int, hops: int) -> Fraction:
    """Bytes times hops."""
    receivers = {"alltoall": Fraction(hops, n), "allreduce": Fraction(2 * n - 2)}
    receivers |= dict.fromkeys(("gather", "scatter"), Fraction(n - 1, n))
    return asked.bytes * receivers.get(asked.collective, Fraction(n - 1))


def _leaving(asked: Mixed, inside: BoolArray) -> Fraction:
    """Bytes that must leave the nodes inside, of which node 0 is the root of what has one."""
    n, here = len(inside), int(np.count_nonzero(inside))
    of_here, of_others, root = Fraction(here, n), Fraction(n - here, n), bool(inside[0])
    shares = {
        "alltoall": here * of_others,
        "allgather": of_here,
        "reduce_scatter": of_others,
        "allreduce": Fraction(1),
        "broadcast": Fraction(root),
        "reduce": Fraction(not root),
        "gather": Fraction(0) if root else of_here,
        "scatter": of_others if root else Fraction(0),
    }
    return asked.bytes * shares[asked.collective]
