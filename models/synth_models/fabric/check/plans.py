"""The check of what a schedule claims beside its seconds: a number of epochs, or of steps and rounds.

Every kind of plan has a module of its own here, which replays the plan under the rules of the paper that counts so,
from the instance and the stored numbers alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from synth.method import Verdict
from synth_models.fabric.check import epochs, steps
from synth_models.fabric.check.even_pieces import check_cutting
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule

PLANS: dict[str, Callable[[FabricInstance, Schedule], Verdict]] = {
    "epochs": epochs.check_epochs,
    "cutting": check_cutting,
    "steps": steps.check_plan,
}
"""By ``kind``: the check of the plan, whose verdict has no value, its facts (what was counted) and its faults; raises
``ValueError`` on numbers that are no plan."""


def plan_verdict(instance: FabricInstance, schedule: Schedule) -> Verdict:
    """What the plan claims, replayed; nothing for a schedule without one."""
    if not schedule.plan:
        return Verdict(None)
    kind: Any = schedule.plan.get("kind")
    if not isinstance(kind, str) or kind not in PLANS:
        return Verdict(None, {}, [f"the plan is of an unknown kind: {str(kind)[:40]!r}"])
    try:
        return PLANS[kind](instance, schedule)
    except (ValueError, KeyError, TypeError) as error:
        return Verdict(None, {}, [f"the plan ({kind}) is broken: {error}"])
