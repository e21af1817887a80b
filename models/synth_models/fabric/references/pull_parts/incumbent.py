"""The best schedule so far, and the clock that all searches share."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.scheduling.chunks import seconds
from synth_models.fabric.scheduling.list_scheduling import Transfers, timed
from synth_models.fabric.scheduling.renumbered import waits_of
from synth_models.fabric.scheduling.switch_sums import meet_in_switches
from synth_models.fabric.solution import Schedule

CLOSE = 1e-6  # what is this close to the lower bound is not searched on


@dataclass(eq=False)
class Incumbent:
    """Keeps the quickest schedule. ``told``: what it came from; ``tried``: how many there were; ``hurried``: whether
    the time limit ended a search before its count of rounds did."""

    instance: FabricInstance
    options: RunOptions
    lower_bound: float = 0.0
    best: Schedule | None = None
    time: Fraction | None = None
    told: str = ""
    tried: int = 0
    hurried: bool = False
    times: dict[str, Fraction] = field(default_factory=dict)

    def offer(self, schedule: Schedule, told: str) -> bool:
        """Keep it if it is the quickest."""
        self.tried += 1
        schedule = summed_up_again(self.instance, schedule)
        time = seconds(self.instance, schedule)
        if told not in self.times or time < self.times[told]:
            self.times[told] = time
        if self.time is not None and time >= self.time:
            return False
        self.best, self.time, self.told = schedule, time, told
        self.options.progress.note(float(time))
        self.options.held.offer(lambda: schedule, float(time), told)
        return True

    @property
    def settled(self) -> bool:
        """Whether nothing can be quicker."""
        return self.time is not None and float(self.time) <= self.lower_bound * (1 + CLOSE)

    def over(self) -> bool:
        """Whether to stop: at the bound, or at the time limit if there is a schedule."""
        if self.best is not None and not self.settled and self.options.out_of_time():
            self.hurried = True
        return self.settled or self.hurried


def summed_up_again(instance: FabricInstance, schedule: Schedule) -> Schedule:
    """The schedule; where its sums pass switches that store and add, which the searches take for such that only store,
    timed again as in-trees, in the order of its starts."""
    if not meet_in_switches(instance, schedule):
        return schedule
    start, before = waits_of(instance, schedule)
    assert start is not None
    waiting = np.repeat(np.arange(schedule.transfers), np.diff(start))
    copied = np.zeros(schedule.transfers, dtype=bool)
    copied[waiting[~schedule.adds[before]]] = True
    kept = ~schedule.adds[waiting] & ~(copied[waiting] & schedule.adds[before])
    lengths = np.bincount(waiting[kept], minlength=schedule.transfers)
    order = np.empty(schedule.transfers, dtype=np.int64)
    order[np.argsort(schedule.start, kind="stable")] = np.arange(schedule.transfers)
    moves = Transfers(
        schedule.piece_block, schedule.piece_bytes, schedule.piece, schedule.adds, order, schedule.route_start,
        schedule.link, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), before[kept],
    )  # fmt: skip
    return timed(instance, moves)
