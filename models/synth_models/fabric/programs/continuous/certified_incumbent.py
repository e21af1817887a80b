"""The incumbent, the certified bound that would settle it, and what the solver has proven so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from synth.errors import SizeLimitError, UnsupportedError
from synth.family import Outcome, get_family
from synth.options import RunOptions
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_above, float_below
from synth_models.fabric.problem.reach import knows
from synth_models.fabric.programs.flow import method as flow
from synth_models.fabric.programs.forest import method as forest
from synth_models.fabric.references import bfb
from synth_models.fabric.scheduling.chunks import seconds
from synth_models.fabric.solution import Schedule


def _epochs(instance: FabricInstance, options: RunOptions) -> Outcome:
    """``epochs`` (:mod:`synth_peers.teccl`) with its own defaults."""
    method = get_family("fabric").method("epochs")
    defaults = {parameter.name: parameter.default for parameter in method.parameters}
    return method.load()(instance, replace(options, method=defaults, solver=None))


OTHERS: dict[str, Callable[[FabricInstance, RunOptions], Outcome]] = {  # beside pull
    "forest": forest.solve,
    "flow": flow.solve,
    "bfb": bfb.solve,
    "epochs": _epochs,
}


@dataclass
class CertifiedIncumbent:
    """The best schedule so far, ``best``, its seconds, ``time``, and what made it, ``told``.

    ``proven``: the certified bound. By number of even pieces a block, in seconds: ``cuttings``, the solver's bound on
    schedules of such pieces, and ``exactly``, the value of a schedule of such pieces that the solver calls optimal.
    """

    instance: FabricInstance
    options: RunOptions
    proven: Proven
    best: Schedule | None = None
    time: Fraction | None = None
    told: str = ""
    cuttings: dict[int, Fraction] = field(default_factory=dict)
    exactly: dict[int, Fraction] = field(default_factory=dict)

    def offer(self, schedule: Schedule | None, told: str) -> bool:
        """Keep it if it is the quickest."""
        if schedule is None:
            return False
        took = seconds(self.instance, schedule)
        if self.time is not None and took >= self.time:
            return False
        self.best, self.time, self.told = schedule, took, told
        self.options.progress.note(float_above(took), float_below(self.proven.seconds))
        self.options.held.offer(lambda: schedule, float_above(took), told)
        return True

    @property
    def settled(self) -> bool:
        """Whether nothing can be quicker by more than the gap that the user allows."""
        return self.time is not None and self.time - self.proven.seconds <= Fraction(self.gap) * self.time

    @property
    def gap(self) -> float:
        """What the user allows."""
        return self.options.relative_gap

    def over(self) -> bool:
        """Whether to stop."""
        return self.settled or self.options.out_of_time()


def offer_other_methods(incumbent: CertifiedIncumbent, share: Callable[[], RunOptions]) -> None:
    """Offer the schedules of the other methods; ``share()`` gives each its part of the time."""
    for name, method in OTHERS.items():
        if incumbent.settled or (incumbent.best is not None and incumbent.options.out_of_time()):
            return
        if not knows(name, incumbent.instance.collective):
            continue
        part = share()
        found: Schedule | None = None
        try:
            with part.in_time():
                found = method(incumbent.instance, part).solution
        except (UnsupportedError, SizeLimitError):
            continue
        if found is None and part.held.solution is not None:
            found = part.held.solution()
        incumbent.offer(found, f"the schedule of {name}")
