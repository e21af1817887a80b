"""Is there a plan of so many epochs? What is tried, in which order, and what the answer proves."""

from __future__ import annotations

import time
from functools import cached_property

from synth.errors import SizeLimitError
from synth.options import RunOptions
from synth.solvers import mathprog
from synth.solvers.horizon import Decision
from synth_peers.teccl.programs import copied_model, fluid_model
from synth_peers.teccl.programs.counted_bound import Counted, furthest
from synth_peers.teccl.programs.exactly import streams_of
from synth_peers.teccl.programs.fluid_insertion import Streams, ends_of, inserted
from synth_peers.teccl.programs.greedy import greedy
from synth_peers.teccl.programs.grid import MOST_EPOCHS, Grid
from synth_peers.teccl.programs.sends import Sends, epochs_of
from synth_peers.teccl.programs.switch_routes import switch_routes
from synth_peers.teccl.programs.symmetric_images import Folding, folding

STARTS = 64  # list schedules with other random numbers
ROUNDS = 8  # of insertion
ROOM = 3  # a plan by list scheduling may take so many times what counting proves
NOISES = (0.0, 0.0, 0.5, 2.0)
START_SHARE = 0.25  # of the time limit
MOST_CELLS = 200_000_000  # links times epochs that list scheduling keeps books of
MOST_SENDS = 600_000  # variables of a program
Plan = Sends | Streams


class Decider:
    """Plans on one grid: a start from list scheduling, then the program, horizon by horizon."""

    def __init__(self, grid: Grid, least: Counted, options: RunOptions) -> None:
        self.grid, self.least, self.options = grid, least, options
        self.most, self.far = MOST_EPOCHS, furthest(grid)
        self.origin = "list scheduling" if grid.rule == "copied" else "insertion"

    def epochs(self, plan: Plan) -> int:
        """Epochs that the plan takes."""
        if isinstance(plan, Sends):
            return epochs_of(self.grid, plan)
        return int(ends_of(self.grid, plan).max(initial=0))

    @cached_property
    def start(self) -> Plan | None:
        """A plan to begin with, None if none is wanted or found."""
        routes = switch_routes(self.grid)
        most = ROOM * self.least.epochs + 16
        if not self.options.method["start"] or routes is None:
            return None
        if most * self.grid.instance.machine.links > MOST_CELLS:
            return None
        if self.grid.rule == "fluid":
            seed = self.options.seed
            return inserted(self.grid, routes, most, self.least.epochs, seed, ROUNDS, lambda: not self._late())
        best: Sends | None = None
        for turn in range(STARTS):
            found = greedy(self.grid, routes, most, self.options.seed * STARTS + turn, NOISES[turn % len(NOISES)])
            if found is not None and (best is None or self.epochs(found) < self.epochs(best)):
                best, most = found, self.epochs(found)
            if self._late() or (best is not None and self.epochs(best) <= self.least.epochs):
                break
        return best

    def _late(self) -> bool:
        limit, left = self.options.time_limit_s, self.options.remaining()
        late = limit is not None and left is not None and left < (1 - START_SHARE) * limit
        self.options.clock.cut |= late
        return late

    @cached_property
    def group(self) -> Folding:
        """What the program is folded by."""
        return folding(self.grid, self.options.method["fold"])

    def decide(self, horizon: int) -> Decision:
        """A plan of at most ``horizon`` epochs, or why there is none.

        Raises :class:`SizeLimitError` for a program of more than :data:`MOST_SENDS` variables.
        """
        if self.start is not None and self.epochs(self.start) <= horizon:
            return Decision("feasible", self.start, by=self.origin)
        if horizon < self.far.epochs:
            return Decision("infeasible", proof=self.far.words)
        if self.grid.rule == "fluid":
            return self._fluid(horizon)
        if len(self.group) == 1:
            return self._copied(horizon, self.group, self.options)
        folded = self._copied(horizon, self.group, _half(self.options))
        if folded.answer == "feasible":
            return folded
        found = self._copied(horizon, folding(self.grid, False), self.options)
        found.build_s += folded.build_s
        found.solve_s += folded.solve_s
        return found

    def _copied(self, horizon: int, group: Folding, options: RunOptions) -> Decision:
        variables = copied_model.size(self.grid, horizon) // len(group)
        _demand_size(variables, horizon)
        began = time.monotonic()
        cut = self.least.cut or () if options.method["cuts"] else ()
        program = copied_model.build(self.grid, horizon, group, cut, options.method["symmetry"])
        built = time.monotonic()
        result = mathprog.solve(program.model, options, bounded=True)
        found = Decision("limit", message=result.message, build_s=built - began, solve_s=time.monotonic() - built)
        if result.has_point:
            found.answer, found.solution = "feasible", program.sends()
        elif result.termination == "infeasible":
            found.answer = "infeasible" if len(group) == 1 else "restricted"
        elif result.termination == "error":
            found.answer = "error"
        return found

    def _fluid(self, horizon: int) -> Decision:
        variables = fluid_model.size(self.grid, horizon, self.group)
        _demand_size(variables, horizon)
        began = time.monotonic()
        program = fluid_model.build(self.grid, horizon, self.group)
        built = time.monotonic()
        result = mathprog.solve(program.model, self.options, bounded=True)
        found = Decision("limit", message=result.message, build_s=built - began, solve_s=time.monotonic() - built)
        if result.termination == "infeasible":
            found.answer = "infeasible"
        elif result.termination == "error":
            found.answer = "error"
        elif result.termination == "optimal":
            plan = streams_of(program)
            if plan is None:
                found.message = f"{horizon} epochs are feasible, but the solver's point is in no whole shares"
            else:
                found.answer, found.solution = "feasible", plan
        return found


def _half(options: RunOptions) -> RunOptions:
    return options.part(0.5)


def _demand_size(variables: int, horizon: int) -> None:
    if variables > MOST_SENDS:
        words = f"the program for {horizon} epochs has {variables} variables, more than {MOST_SENDS}"
        raise SizeLimitError(f"{words}; take longer epochs (tau=slow, or seconds)")
