"""Circuits made a solution: with a routing for the load, with a schedule of every collective for a mix.

Collectives are scheduled by methods of their own family. Each is first scheduled by one that is quick. Then the one for
which a better schedule would save most of the value is tried by the next method, until all take no longer than their
bytes at the rate of all links, or the time is over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
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
SHARE = 0.9  # of the time that is left, for a method that is to improve a schedule
NEAR = 2e-4  # (time - floor) / time of a schedule that needs no other beside it


@dataclass
class _Part:
    """A collective of a mix: ``floor`` [s] is what no schedule of it is below, ``least`` [s] the time of ``best``, as
    it is stored; ``left`` are methods that were not tried yet."""

    asked: OnLinks
    weight: float
    floor: float
    least: float = math.inf
    best: Mapping[str, Any] | None = None
    left: list[str] = field(default_factory=list)

    @property
    def worth(self) -> float:
        """What a better schedule could save of the value at most; 0 where none is to be tried."""
        near = self.least - self.floor <= NEAR * self.least < math.inf
        return 0.0 if near or not self.left else self.weight * (self.least - self.floor)

    def improve(self, options: RunOptions) -> None:
        """Try the next method."""
        found = self.asked.solved(self.left.pop(0), options).solution
        value = None if found is None else load(self.asked.family.check)(self.asked.instance, found).value
        if value is not None and value < self.least:
            self.least, self.best = value, self.asked.packed(found)


def completed(instance: TopologyInstance, circuits: IntArray, options: RunOptions) -> Topology | None:
    """The solution of these circuits for the objective; None where nodes are apart or a collective has no schedule."""
    if instance.objective != "mix":
        flow = routed(instance, circuits, options)
        return None if flow is None else flow[1]
    folds = folds_of(instance, circuits)
    if (folds.away < 0).any():
        return None
    parts, table = list[_Part](), links_of(instance, circuits)
    for i, asked in enumerate(instance.mix or ()):
        one = OnLinks.of(table, f"mix-{i}", asked.collective, asked.bytes)
        left = [name for name in METHODS if one.knows(name)]
        parts.append(_Part(one, asked.weight, _floor(instance, folds, asked), left=left))
    for i, part in enumerate(parts):
        part.improve(options.part(1 / (len(parts) - i)))
    found = _solution(circuits, parts, options)
    while (next_one := max(parts, key=lambda part: part.worth)).worth and not options.out_of_time():
        next_one.improve(options.part(SHARE))
        found = _solution(circuits, parts, options)
    return found


def _solution(circuits: IntArray, parts: list[_Part], options: RunOptions) -> Topology | None:
    """The circuits with the best schedules so far, which the run holds; None where some collective has none."""
    schedules = tuple(part.best for part in parts if part.best is not None)
    if len(schedules) < len(parts):
        return None
    found = Topology(circuits, schedules=schedules)
    options.held.offer(
        lambda: found, sum(part.weight * part.least for part in parts), "the best schedules so far stand in"
    )
    return found


def _floor(instance: TopologyInstance, folds: Folded, asked: Mixed) -> float:
    """Seconds that the bytes take at the rate of all links, and one latency: no schedule on them takes less."""
    n, arcs = instance.nodes, folds.arcs
    times = {"alltoall": float(folds.weight @ folds.away.sum(axis=1)) / n, "allreduce": 2.0 * (n - 1)}
    times |= dict.fromkeys(("gather", "scatter"), (n - 1) / n)
    rate = instance.bandwidth * float(arcs.rate.sum()) / arcs.unit
    return times.get(asked.collective, n - 1.0) * asked.bytes / rate + min(instance.latency, instance.circuit_latency)
