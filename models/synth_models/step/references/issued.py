"""Method ``issued``: as the program does it today: every stream in the order of issue, all collectives of a rank on
one stream in that order, by rings. O(nodes log nodes)."""

from __future__ import annotations

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.step.instance import Computation, StepInstance
from synth_models.step.parts.order import ordered
from synth_models.step.parts.prices import durations
from synth_models.step.solution import timetable_of


def solve(instance: StepInstance, options: RunOptions) -> Outcome:
    """Each node when what it comes after, and what was issued before it on its stream, has ended."""
    order = ordered(instance.before, list(range(len(instance.nodes))))
    long = durations(instance, ["ring"] * len(order))
    start, free = [0] * len(order), dict[tuple[str, int, str], int]()
    for node in order:
        one = instance.nodes[node]
        places = instance.places[node]
        if not isinstance(one, Computation):
            places = tuple(("port", rank, "") for rank in one.ranks)
        before = [start[other] + long[other] for other in instance.before[node]]
        start[node] = max([0, *before, *(free.get(place, 0) for place in places)])
        free |= dict.fromkeys(places, start[node] + long[node])
    ring = [0 if isinstance(node, Computation) else 1 for node in instance.nodes]
    return Outcome("finished", timetable_of(start, ring))
