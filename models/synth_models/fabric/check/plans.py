"""The check of what a schedule claims beside its seconds: a number of epochs, or of steps and rounds.

Every kind of plan has a check of its own, which replays the plan under the rules of the paper that counts so, from the
instance and the stored numbers alone: here, or with the method that makes such plans (``synth.certificates``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from synth.method import Verdict, load
from synth.plugins import added
from synth_models.fabric.check.even_pieces import check_cutting
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule

PLANS: dict[str, Callable[[FabricInstance, Schedule], Verdict]] = {
    "cutting": check_cutting,
}
"""By ``kind``: the check of the plan, whose verdict has no value, its facts (what was counted) and its faults; raises
``ValueError`` on numbers that are no plan."""


def plan_verdict(instance: FabricInstance, schedule: Schedule) -> Verdict:
    """What the plan claims, replayed; nothing for a schedule without one."""
    if not schedule.plan:
        return Verdict(None)
    kind: Any = schedule.plan.get("kind")
    check = _check_of(kind) if isinstance(kind, str) else None
    if check is None:
        return Verdict(None, {}, [f"the plan is of an unknown kind: {str(kind)[:40]!r}"])
    try:
        return check(instance, schedule)
    except (ValueError, KeyError, TypeError) as error:
        return Verdict(None, {}, [f"the plan ({kind}) is broken: {error}"])


def _check_of(kind: str) -> Callable[[FabricInstance, Schedule], Verdict] | None:
    """The check of plans of this kind, ours or one that was added."""
    if kind in PLANS:
        return PLANS[kind]
    other = added.certificates("fabric").get(kind)
    return load(other.plan) if other is not None and other.plan is not None else None
