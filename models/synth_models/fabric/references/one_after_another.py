"""Method ``one_after_another`` (reference): several collectives as libraries run them today.

Each collective has the best schedule that our methods and those in use find for it alone
(:mod:`synth_models.fabric.race`). It begins when it is released and every one before it that shares a rank or a link
with it has ended; groups that share neither run side by side. Of few collectives all orders are tried.
"""

from __future__ import annotations

from collections.abc import Sequence

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.plans.joint_timing import in_every_order
from synth_models.fabric.solution import Schedule


def propose(instance: FabricInstance, options: RunOptions, schedules: Sequence[Schedule]) -> Outcome:
    """Method ``one_after_another``, of a schedule for each collective alone."""
    best = in_every_order(Incumbent(instance, options), schedules)
    return Outcome("finished", best.best, message=best.told)
