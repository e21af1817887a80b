"""What methods answer when an instance's budgets forbid circuits they need."""

from __future__ import annotations

from synth.errors import UnsupportedError
from synth.method import Outcome
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.solution import EXPLICIT_NODES


def refuse_unmeetable(instance: OpTreeInstance) -> Outcome | None:
    """``infeasible``, naming the budget, when no schedule at all can meet it (see ``OpTreeInstance.budget_fault``)."""
    fault = instance.budget_fault
    return None if fault is None else Outcome("infeasible", message=f"{instance.name}: {fault}")


def require_hops(instance: OpTreeInstance, hops: int, what: str) -> None:
    """Raise :class:`UnsupportedError`, naming the budget, when ``what`` needs circuits longer than allowed."""
    if hops > instance.max_hops:
        raise UnsupportedError(
            f"{what} needs circuits of {hops} hops, the {instance.limiting_budget} allows {instance.max_hops}; "
            "relay keeps to any length"
        )


def require_explicit_size(instance: OpTreeInstance, most: int = EXPLICIT_NODES) -> None:
    """Raise :class:`UnsupportedError` on rings too large for an explicit schedule."""
    if instance.nodes > most:
        raise UnsupportedError(
            f"explicit schedules are made up to {most} nodes, not {instance.nodes}; stages counts steps"
        )


def require_ring(instance: OpTreeInstance, what: str) -> None:
    """Raise :class:`UnsupportedError` on a torus or mesh."""
    if instance.grid is not None:
        raise UnsupportedError(f"{what} is stated for one ring; bound, optree, relay and time_expanded take grids")
