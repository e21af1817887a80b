"""Circuits made a solution: with a routing for the load, with a schedule of every collective for a mix.

A collective is scheduled by the methods of its own family that are quickest here, each within its share of the time,
until one takes no longer than the bytes that it moves at the rate of all links. Where a mix has several collectives,
every one has the same part of the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from synth.arrays import IntArray
from synth.method import load
from synth.options import RunOptions
from synth.schedule.on_links import OnLinks
from synth_models.topology.instance import Mixed, TopologyInstance
from synth_models.topology.parts.folds import Folded
from synth_models.topology.parts.links import links_of
from synth_models.topology.parts.routing import folds_of, routed
from synth_models.topology.solution import Topology

METHODS = ("flow", "bfb", "forest", "ring", "pull")  # the first that knows a collective is as good as any, in most
SHARE = 0.9  # of what is left of a collective's time, for the next method
NEAR = 2e-4  # (time - floor) / time of a schedule that needs no other beside it


def completed(instance: TopologyInstance, circuits: IntArray, options: RunOptions) -> Topology | None:
    """The solution of these circuits for the objective; None where nodes are apart or a collective has no schedule."""
    if instance.objective != "mix":
        found = routed(instance, circuits, options)
        return None if found is None else found[1]
    folds = folds_of(instance, circuits)
    if (folds.away < 0).any():
        return None
    mix, schedules = instance.mix or (), list[Mapping[str, Any]]()
    table = links_of(instance, circuits)
    for i, asked in enumerate(mix):
        part = options.part(1 / (len(mix) - i))
        one = OnLinks.of(table, f"mix-{i}", asked.collective, asked.bytes)
        best = _scheduled(one, _floor(instance, folds, asked), part)
        if best is None:
            return None
        schedules.append(best)
    return Topology(circuits, schedules=tuple(schedules))


def _floor(instance: TopologyInstance, folds: Folded, asked: Mixed) -> float:
    """Seconds that the bytes take at the rate of all links, and one latency: no schedule on them takes less."""
    n, arcs = instance.nodes, folds.arcs
    times = {"alltoall": float(folds.weight @ folds.away.sum(axis=1)) / n, "allreduce": 2.0 * (n - 1)}
    times |= dict.fromkeys(("gather", "scatter"), (n - 1) / n)
    rate = instance.bandwidth * float(arcs.rate.sum()) / arcs.unit
    return times.get(asked.collective, n - 1.0) * asked.bytes / rate + min(instance.latency, instance.circuit_latency)


def _scheduled(asked: OnLinks, floor: float, options: RunOptions) -> Mapping[str, Any] | None:
    """The best schedule that is found in time, as it is stored; None without one."""
    least, best = math.inf, None
    for name in METHODS:
        if (best is not None and options.out_of_time()) or not asked.knows(name):
            continue
        found = asked.solved(name, options.part(SHARE)).solution
        value = None if found is None else load(asked.family.check)(asked.instance, found).value
        if value is not None and value < least:
            least, best = value, asked.packed(found)
        if least - floor <= NEAR * least:
            break
    return best
