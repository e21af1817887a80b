"""What every plan with a certified bound says of the two: the gap, and what the check finds."""

from __future__ import annotations

from abc import ABC, abstractmethod

from synth.method import Verdict
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.solution import Schedule


class Certified(ABC):
    """``seconds``: the completion time, rounded up to a float; ``proven``: the lower bound."""

    seconds: float
    proven: Proven

    @property
    @abstractmethod
    def instance(self) -> FabricInstance:
        """What is planned, as an instance of family ``fabric``."""

    @property
    @abstractmethod
    def schedule(self) -> Schedule:
        """Transfers with exact times: a solution of the instance."""

    @property
    def replayed(self) -> FabricInstance:
        """The instance as the check reads it."""
        return self.instance

    @property
    def bound(self) -> float:
        """The lower bound in seconds, rounded down to a float."""
        return float_below(self.proven.seconds)

    @property
    def gap(self) -> float:
        """(seconds - bound) / seconds; 0 where nothing has to move."""
        return (self.seconds - self.bound) / self.seconds if self.seconds else 0.0

    def check(self) -> Verdict:
        """Replay the schedule and verify the bound's certificate, both from the instance alone."""
        verdict = check_schedule(self.replayed, self.schedule)
        verdict.faults += check_bound(self.replayed, self.bound, self.proven.certificate())
        if verdict.ok and verdict.value != self.seconds:
            verdict.faults.append(f"the replay ends at {verdict.value} s, the plan says {self.seconds} s")
        return verdict
