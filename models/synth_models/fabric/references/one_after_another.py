"""Method ``one_after_another`` (reference): several collectives as libraries run them today.

Each collective has the best schedule that our methods and those in use find for it alone. It begins when it is released
and every one before it that shares a rank or a link with it has ended; groups that share neither run side by side. Of
few collectives all orders are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from synth.clock.deadline import OutOfTime
from synth.errors import UnsupportedError
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.reach import knows
from synth_models.fabric.references import hierarchical, pull
from synth_models.fabric.references.in_use import IN_USE
from synth_models.fabric.references.joint_timing import FOR_PARTS, Best, in_every_order
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.solution import Schedule, expanded

EACH = 0.4  # of a collective's time that is left, for every method
NO_LIMIT = 10**12  # transfers


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``one_after_another``."""
    if instance.collectives is None:
        return Outcome("unsupported", message="there is one collective only: nothing comes after another")
    schedules = list(best_of_each(instance, options))
    best = in_every_order(Best(instance, options), [made for made, _ in schedules])
    told = ", ".join(dict.fromkeys(name for _, name in schedules))
    return Outcome("finished", best.schedule, message=f"{best.words}; each by the best method for it ({told})")


def best_of_each(instance: FabricInstance, options: RunOptions, most: int = NO_LIMIT) -> Iterator[tuple[Schedule, str]]:
    """The quickest schedule that is found for every collective alone, and the method that found it; one of ``most``
    transfers counts as if it took twice as long, for timing it again takes long."""
    count = len(instance.parts)
    for number, part in enumerate(instance.parts):
        share = FOR_PARTS / (FOR_PARTS * (count - number) + 1 - FOR_PARTS)
        yield _best_alone(part, options.part(share), most)


def _ours() -> dict[str, Callable[[FabricInstance, RunOptions], Outcome]]:
    """Our methods; programs load their solvers, which one collective does not need."""
    from synth_models.fabric.programs.flow import method as flow
    from synth_models.fabric.programs.forest import method as forest

    return {"hierarchical": hierarchical.solve, "forest": forest.solve, "flow": flow.solve, "pull": pull.solve}


class _Alone(NamedTuple):
    """A schedule of one collective, its seconds, and those that it counts as for its transfers."""

    counted: Fraction
    seconds: Fraction
    schedule: Schedule
    method: str


def _best_alone(part: FabricInstance, options: RunOptions, most: int) -> tuple[Schedule, str]:
    """Raises :class:`UnsupportedError` where no method has a schedule, :class:`OutOfTime` where none is in time."""
    least = quick_bound(part)
    best: _Alone | None = None
    for name, run in {**_ours(), **IN_USE}.items():
        if best is not None and (options.out_of_time() or best.seconds * Fraction(1 - options.relative_gap) <= least):
            break
        if not knows(name, part.collective):
            continue
        own, found = options.part(EACH), Outcome("time_limit")
        try:
            with own.in_time():
                found = run(part, own)
        except UnsupportedError:
            continue
        found.take_over(own.held)
        if found.solution is not None:
            made = expanded(part, found.solution)
            seconds = chunks.seconds(part, made)
            one = _Alone(seconds * (1 + Fraction(made.transfers) / Fraction(most)), seconds, made, name)
            best = min(best or one, one, key=lambda one: one.counted)
    if best is None and options.out_of_time():
        raise OutOfTime
    if best is None:
        raise UnsupportedError(f"no method has a schedule for {part.collective} alone")
    return best.schedule, best.method
