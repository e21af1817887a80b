"""The incumbent: the quickest schedule so far, who made it, the bound that would settle it, and the clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from synth.method import Outcome
from synth.options import RELATIVE_GAP, RunOptions
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.serial import end_seconds
from synth_models.fabric.problem.exact import float_above, float_below
from synth_models.fabric.problem.several import objective_of
from synth_models.fabric.scheduling.chunks import seconds
from synth_models.fabric.scheduling.one_plan import worst_seconds
from synth_models.fabric.solution import Schedule

CLOSE = 1e-6  # gap to a bound at which nothing more is looked for, unless the user allows more than is usual


def measured(instance: FabricInstance, schedule: Schedule) -> Fraction:
    """What is minimised, in seconds: when a schedule ends, in the worst of several scenarios, or of several collectives
    what the instance asks for."""
    if instance.scenarios is not None:
        return worst_seconds(instance, schedule)
    if instance.collectives is None:
        return seconds(instance, schedule)
    return objective_of(end_seconds(instance, schedule), instance.collectives, instance.objective)


@dataclass(eq=False)
class Incumbent:
    """The quickest schedule so far, ``best``, its seconds, ``time``, and in words what made it, ``told``.

    ``made_by``: the method that lent it and behind that those of its parts; None: the method that runs. ``least``: a
    lower bound in seconds; ``proven``: the same with its certificate, where there is one. ``tried``: how many schedules
    were offered; ``times``: the best seconds by ``told``; ``hurried``: whether the time limit ended a search. ``lent``:
    what other methods handed over, the best or not.
    """

    instance: FabricInstance
    options: RunOptions
    least: Fraction = Fraction(0)
    proven: Proven | None = None
    best: Schedule | None = None
    time: Fraction | None = None
    told: str = ""
    made_by: tuple[str, ...] | None = None
    tried: int = 0
    hurried: bool = False
    times: dict[str, Fraction] = field(default_factory=dict)
    lent: list[Outcome] = field(default_factory=list)

    def offer(self, schedule: Schedule | None, told: str, made_by: tuple[str, ...] | None = None) -> bool:
        """Keep it if it is the quickest."""
        if schedule is None:
            return False
        self.tried += 1
        took = measured(self.instance, schedule)
        if told not in self.times or took < self.times[told]:
            self.times[told] = took
        if self.time is not None and took >= self.time:
            return False
        self.best, self.time, self.told, self.made_by = schedule, took, told, made_by
        self.options.progress.note(float_above(took), None if self.proven is None else float_below(self.proven.seconds))
        self.options.held.offer(lambda: schedule, float_above(took), told, made_by)
        return True

    def prove(self, proven: Proven) -> None:
        """Take over a certified bound; the run holds it too."""
        self.proven, self.least = proven, max(self.least, proven.seconds)
        self.options.held.offer_bound(float_below(proven.seconds), str(proven), proven.certificate())

    @property
    def gap(self) -> float:
        """How far above the bound is near enough: what the user allows, of a bound without certificate only if that is
        more than usual."""
        allowed = self.options.relative_gap
        return allowed if self.proven is not None or allowed > RELATIVE_GAP else CLOSE

    @property
    def settled(self) -> bool:
        """Whether nothing can be quicker by more than the :attr:`gap`."""
        return self._meets(self.least)

    @property
    def optimal(self) -> bool:
        """The same by the bound with a certificate: the quick one may be higher, where no time was left to prove."""
        return self._meets(Fraction(0) if self.proven is None else self.proven.seconds)

    def _meets(self, bound: Fraction) -> bool:
        return self.time is not None and self.time - bound <= Fraction(self.gap) * self.time

    def over(self) -> bool:
        """Whether to stop: at the bound, or at the time limit if there is a schedule."""
        if self.best is not None and not self.settled and self.options.out_of_time():
            self.hurried = True
        return self.settled or self.hurried
