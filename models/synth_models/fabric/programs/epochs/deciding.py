"""Is there a plan of so many epochs? What is tried, in which order, and what the answer proves."""

from __future__ import annotations

from synth.errors import SizeLimitError
from synth.options import RunOptions
from synth.solvers.horizon import Decision
from synth_models.fabric.programs.epochs.counting import Counted
from synth_models.fabric.programs.epochs.greedy import greedy
from synth_models.fabric.programs.epochs.grid import MOST_EPOCHS, Grid
from synth_models.fabric.programs.epochs.insertion import Streams, ends_of, inserted
from synth_models.fabric.programs.epochs.sends import Sends, epochs_of
from synth_models.fabric.programs.epochs.ways import ways_of

STARTS = 64  # list schedules with other random numbers
ROUNDS = 8  # of insertion
ROOM = 3  # a plan by list scheduling may take so many times what counting proves
NOISES = (0.0, 0.0, 0.5, 2.0)
START_SHARE = 0.25  # of the time limit
MOST_CELLS = 200_000_000  # links times epochs that list scheduling keeps books of


class Decider:
    """Plans on one grid: a start from list scheduling, then the program, horizon by horizon."""

    def __init__(self, grid: Grid, least: Counted, options: RunOptions) -> None:
        self.grid, self.least, self.options = grid, least, options
        self.most = MOST_EPOCHS
        self.origin = "list scheduling" if grid.rule == "copied" else "insertion"
        self.known: Sends | Streams | None = None

    def epochs(self, plan: Sends | Streams) -> int:
        """Epochs that the plan takes."""
        if isinstance(plan, Sends):
            return epochs_of(self.grid, plan)
        return int(ends_of(self.grid, plan).max(initial=0))

    def start(self) -> Sends | Streams | None:
        """A plan to begin with, None if none is wanted or found."""
        if not self.options.method["start"]:
            return None
        ways = ways_of(self.grid)
        most = ROOM * self.least.epochs + 16
        if ways is None or most * self.grid.instance.machine.links > MOST_CELLS:
            return None
        if self.grid.rule == "fluid":
            self.known = inserted(
                self.grid, ways, most, self.least.epochs, self.options.seed, ROUNDS, lambda: not self._late()
            )
            return self.known
        for turn in range(STARTS):
            seed = self.options.seed * STARTS + turn
            found = greedy(self.grid, ways, most, seed, NOISES[turn % len(NOISES)])
            if found is not None and (self.known is None or self.epochs(found) < self.epochs(self.known)):
                self.known = found
                most = self.epochs(found)
            if self._late() or (self.known is not None and self.epochs(self.known) <= self.least.epochs):
                break
        return self.known

    def _late(self) -> bool:
        limit, left = self.options.time_limit_s, self.options.remaining()
        return limit is not None and left is not None and left < (1 - START_SHARE) * limit

    def decide(self, horizon: int) -> Decision:
        """A plan of at most ``horizon`` epochs, or why there is none."""
        known = self.known if self.known is not None else self.start()
        if known is not None and self.epochs(known) <= horizon:
            return Decision("feasible", known)
        raise SizeLimitError("no program yet")
