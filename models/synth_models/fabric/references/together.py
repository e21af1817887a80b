"""Method ``together`` (reference, ours): several collectives side by side on the shared links.

Each has the best schedule that is found for it alone (:mod:`synth_models.fabric.references.one_after_another`); the
transfers of all are timed anew (:mod:`synth_models.fabric.references.joint_timing`). Never slower than one after the
other.
"""

from __future__ import annotations

from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.joint_timing import of_schedules
from synth_models.fabric.references.one_after_another import best_of_each
from synth_models.fabric.scheduling.chunks import hurried

MOST_TIMED = 30_000  # transfers of all collectives, so that they are timed anew in many ways


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``together``."""
    if instance.collectives is None:
        return Outcome("unsupported", message="there is one collective only")
    schedules = list(best_of_each(instance, options, MOST_TIMED // len(instance.parts)))
    best = of_schedules(instance, options, [made for made, _ in schedules])
    told = ", ".join(dict.fromkeys(name for _, name in schedules))
    words = f"{best.words}, of each one's own schedule ({told}); best of {best.tried} schedules"
    return Outcome("finished", best.schedule, message=words + hurried(options))
