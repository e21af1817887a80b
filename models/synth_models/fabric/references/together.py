"""Method ``together`` (reference, ours): several collectives side by side on the shared links.

Each has the best schedule that is found for it alone (:mod:`synth_models.fabric.race`); the transfers of all are timed
again (:mod:`synth_models.fabric.plans.joint_timing`). Never slower than one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.joint_timing import of_schedules
from synth_models.fabric.scheduling.chunks import hurried
from synth_models.fabric.solution import Schedule


def propose(instance: FabricInstance, options: RunOptions, schedules: Sequence[Schedule]) -> Outcome:
    """Method ``together``, of a schedule for each collective alone."""
    best = of_schedules(instance, options, schedules)
    words = f"{best.told}, of each one's own schedule; best of {best.tried} schedules"
    return Outcome("finished", best.best, message=words + hurried(options))
