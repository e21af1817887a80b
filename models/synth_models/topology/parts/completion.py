"""Circuits made a solution: with a routing for the load, with a schedule of every collective for a mix.

A collective is scheduled by the methods of its own family that are quickest here, each within its share of the time,
until one is as good as its bound on these links. Where a mix has several, every one has the same part of the time.
"""

from __future__ import annotations

from synth.arrays import IntArray
from synth.method import load
from synth.options import RunOptions
from synth.schedule.on_links import OnLinks
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.parts.links import links_of
from synth_models.topology.parts.routing import routed
from synth_models.topology.solution import Topology

METHODS = ("flow", "bfb", "forest", "ring", "pull")  # the first that knows a collective is as good as any, in most
SHARE = 0.6  # of what is left of a collective's time, for the next method
NEAR = 1e-4  # (time - bound) / time of a schedule that needs no other beside it
BOUND = 0.1  # of a collective's time, for its bound


def completed(instance: TopologyInstance, circuits: IntArray, options: RunOptions) -> Topology | None:
    """The solution of these circuits for the objective; None where nodes are apart or a collective has no schedule."""
    if instance.objective != "mix":
        found = routed(instance, circuits, options)
        return None if found is None else found[1]
    if routed(instance, circuits, options, exact=False) is None:
        return None
    mix, schedules = instance.mix or (), []
    table = links_of(instance, circuits)
    for i, asked in enumerate(mix):
        part = options.part(1 / (len(mix) - i))
        best = scheduled(OnLinks.of(table, f"mix-{i}", asked.collective, asked.bytes), part)
        if best is None:
            return None
        schedules.append(best[1])
    return Topology(circuits, schedules=tuple(schedules))


def scheduled(asked: OnLinks, options: RunOptions) -> tuple[float, dict[str, object]] | None:
    """The best schedule that is found in time, with its seconds, as it is stored; None without one."""
    bound = asked.solved("bound", options.part(BOUND)).bound or 0.0
    best: tuple[float, dict[str, object]] | None = None
    for name in METHODS:
        if (best is not None and options.out_of_time()) or not asked.knows(name):
            continue
        found = asked.solved(name, options.part(SHARE)).solution
        value = None if found is None else load(asked.family.check)(asked.instance, found).value
        if value is not None and (best is None or value < best[0]):
            best = value, dict(asked.packed(found))
        if best is not None and best[0] - bound <= NEAR * best[0]:
            break
    return best
