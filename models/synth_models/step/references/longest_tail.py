"""Method ``longest_tail``: list scheduling, the node with the longest path behind it first (Hu 1961)."""

from __future__ import annotations

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.step.instance import StepInstance
from synth_models.step.parts.lists import scheduled, tails
from synth_models.step.parts.order import ordered
from synth_models.step.parts.prices import quickest
from synth_models.step.solution import timetable_of


def solve(instance: StepInstance, options: RunOptions) -> Outcome:
    """O(nodes log nodes) where few nodes wait for the same place."""
    long = quickest(instance)
    order = ordered(instance.before, [0.0] * len(long))
    return Outcome("finished", timetable_of(scheduled(instance, long, tails(instance, long, order))))
