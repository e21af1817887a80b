"""Steps have no player: their timeline is the figure."""

from __future__ import annotations

from synth_models.step.instance import StepInstance
from synth_models.step.solution import Timetable


def frames(instance: StepInstance, timetable: Timetable) -> None:
    """None: nothing moves from node to node step by step."""
