"""Whose turn it is in ``synth tune``, and how much of the time limit it has.

Turns of one phase come before those of the next, so that what is worth most is there first, whatever ends the command.
A phase has a part of the time that is left, the last one all of it, in equal shares for its turns; what a turn does not
use is shared by those behind it. A turn that nothing is left to do for has no share. References and bounds *yield*:
once their phase's time is over, no further run of them begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf

from synth.clock.start_up_costs import counted_now

HALF = 0.5
LEAST_S = 1.0  # that a run is given as long as as much is left of all: with less it would find nothing


@dataclass(frozen=True)
class Share:
    """Until when a turn should have ended (``due``, None: whenever it does), from when on no run of its phase begins
    (``ends``), and until when all turns are over, by :func:`synth.clock.start_up_costs.counted_now`."""

    until: float | None
    due: float | None = None
    ends: float | None = None

    def seconds(self, runs: int = 1) -> float:
        """What a run may take where so many share what is left of the turn; 0 where too little is left of all, or
        nothing of the phase."""
        if self.until is None:
            return inf
        now = counted_now()
        left, due = self.until - now, self.until if self.due is None else self.due
        if left < LEAST_S or (self.ends is not None and now >= self.ends):
            return 0.0
        return min(left, max(LEAST_S, (due - now) / runs))


@dataclass(frozen=True)
class Turn:
    """Something to do in a phase, at its place among the sizes of its collective, unless it is not ``wanted`` when the
    phase begins. ``part``: of the time that is left, for the phase. ``yields``: no run begins after that."""

    phase: int
    place: int
    act: Callable[[Share], None]
    part: float = HALF
    yields: bool = False
    wanted: Callable[[], bool] | None = None


def in_turn(turns: Sequence[Turn], until: float | None) -> None:
    """Do all, phase by phase, in each the same place of every collective before the next."""
    ordered = sorted(turns, key=lambda turn: (turn.phase, turn.place))
    last = ordered[-1].phase if ordered else 0
    for phase, some in groupby(ordered, key=lambda turn: turn.phase):
        these = [turn for turn in some if turn.wanted is None or turn.wanted()]
        began = counted_now()
        part = max((turn.part for turn in these), default=0.0)
        ends = until if until is None or phase == last else began + max(0.0, until - began) * part
        for done, turn in enumerate(these):
            now = counted_now()
            due = None if ends is None else now + max(0.0, ends - now) / (len(these) - done)
            turn.act(Share(until, due, ends if turn.yields else None))
