"""Whose turn it is in ``synth tune``, and how much of the time limit it has.

Turns of one phase come before those of the next, so that what is worth most is there first, whatever ends the command.
A phase has half of the time that is left, the last one all of it, in equal shares for its turns; what a turn does not
use is shared by those behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf

from synth.clock.start_up_costs import counted_now

LEAST_S = 1.0  # that a run is given as long as as much is left of all: with less it would find nothing


@dataclass(frozen=True)
class Share:
    """Until when a turn should have ended (``due``, None: whenever it does), and all of them (``until``), by
    :func:`synth.clock.start_up_costs.counted_now`."""

    until: float | None
    due: float | None = None

    def seconds(self, runs: int = 1) -> float:
        """What a run may take where so many share what is left of the turn; 0 where too little is left of all."""
        if self.until is None:
            return inf
        now = counted_now()
        left, due = self.until - now, self.until if self.due is None else self.due
        return 0.0 if left < LEAST_S else min(left, max(LEAST_S, (due - now) / runs))


@dataclass(frozen=True)
class Turn:
    """Something to do in a phase, at its place among the sizes of its collective."""

    phase: int
    place: int
    act: Callable[[Share], None]


def in_turn(turns: Sequence[Turn], until: float | None) -> None:
    """Do all, phase by phase, in each the same place of every collective before the next."""
    ordered = sorted(turns, key=lambda turn: (turn.phase, turn.place))
    last = ordered[-1].phase if ordered else 0
    for phase, some in groupby(ordered, key=lambda turn: turn.phase):
        these = list(some)
        began = counted_now()
        ends = until if until is None or phase == last else began + max(0.0, until - began) / 2
        for done, turn in enumerate(these):
            now = counted_now()
            turn.act(Share(until, None if ends is None else now + max(0.0, ends - now) / (len(these) - done)))
