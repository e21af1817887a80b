"""What is done for a row, phase by phase, and which part of the time that is left each phase has.

The bound is asked early: it is cheap, and what is near it needs nothing more. Of few ranks the references come next,
then the first of ours for every row, then the others. Of more than :data:`MOST_PUBLISHED_FIRST` the first of ours comes
before all, and again where the clock cut it; the first reference, the others of ours and the other references follow,
and at last bounds that the clock cut. References and bounds leave to others what is behind their phase's part.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from synth.family import Family
from synth.tuning.rows import Row
from synth.tuning.turns import HALF

MOST_PUBLISHED_FIRST = 64  # ranks up to which references come first: they take no time
LITTLE, MUCH = 0.15, 0.75  # of the time that is left, for the bounds, and for ours that the clock cut
SLOWER = "not tried, proven to be slower than the best here"


class Act(Enum):
    """What a phase does with its methods."""

    OURS = auto()
    REFERENCES = auto()
    BOUND = auto()
    LONGER = auto()  # once more, where the clock cut the best of ours, or the bound


class Phase(NamedTuple):
    """Methods and what is done with them, the phase's part of the time left, and whether it yields to others."""

    act: Act
    names: list[str]
    part: float = HALF
    yields: bool = False


def phases(published: list[str], own: list[str], bounds: list[str], ranks: int) -> list[Phase]:
    """The phases of a row among so many ranks: what libraries run, ours, and its bound."""
    bound = Phase(Act.BOUND, bounds, LITTLE, yields=True)
    first, others = Phase(Act.OURS, own[:1]), Phase(Act.OURS, own[1:])
    if ranks <= MOST_PUBLISHED_FIRST:
        return [bound, Phase(Act.REFERENCES, published, yields=True), first, others]
    references = (Phase(Act.REFERENCES, names, yields=True) for names in (published[:1], published[1:]))
    longer, again = Phase(Act.LONGER, own[:1], MUCH), Phase(Act.LONGER, bounds)
    return [first, bound, longer, next(references), others, next(references), longer, again]


def not_slower(family: Family, row: Row, names: Sequence[str]) -> list[str]:
    """Those of these references among many ranks that may be quicker than the row's best schedule, as far as the family
    can tell. The others count as not tried."""
    if row.ranks <= MOST_PUBLISHED_FIRST or row.scheduled is None or not family.can("at_least"):
        return list(names)
    at_least = family.capability("at_least")
    slower = [name for name in names if at_least(row.instance, name) > row.scheduled]
    row.untried.update(dict.fromkeys(slower, SLOWER))
    return [name for name in names if name not in slower]
