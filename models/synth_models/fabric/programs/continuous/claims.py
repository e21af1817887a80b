"""The incumbent of ``continuous`` beside what the solver has proven so far."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from fractions import Fraction

from synth.options import RunOptions
from synth_models.fabric.plans.incumbent import Incumbent


@dataclass(eq=False)
class Claims(Incumbent):
    """By number of even pieces a block, in seconds: ``cuttings``, the solver's bound on schedules of such pieces, and
    ``exactly``, the value of a schedule of such pieces that the solver calls optimal."""

    cuttings: dict[int, Fraction] = field(default_factory=dict)
    exactly: dict[int, Fraction] = field(default_factory=dict)

    @classmethod
    def of(cls, incumbent: Incumbent) -> Claims:
        """The incumbent of the race, and nothing claimed."""
        return cls(**{one.name: getattr(incumbent, one.name) for one in fields(Incumbent)})

    def for_options(self, options: RunOptions) -> Claims:
        """The same problem and bound without a schedule, for a search that starts from another one."""
        return Claims(self.instance, options, self.least, self.proven)
