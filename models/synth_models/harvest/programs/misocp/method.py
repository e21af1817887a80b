"""Method ``misocp``: globally optimal reconfiguration schedules, proven (Rahman et al., appendix A and Lemma 1).

The outer program is theirs: a shortest path over intervals. Instead of solving every interval, each one carries a lower
bound (valid for all topologies) and the time on the best topology known. The path of the lower bounds is a bound on
every schedule, the path over the known topologies is a schedule; the intervals on the former are solved, cheapest
first and only as far as needed, until the two meet; before the first, the search of ``column_generation`` looks for
good topologies. Intervals with the same steps, and those that are another one's
with all pairs reversed, are one problem. An interval takes no less time than its parts do, each on its own
topology, so bounds of short intervals carry over to long ones. What a reconfiguration before a step costs may differ
from step to step (overlap). Where it depends on what changes, the intervals do not come apart, and
:mod:`synth_models.harvest.programs.misocp.coupled_method` solves all steps as one program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from synth.arrays import SAME, SOLVED, FloatArray, IntArray
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.harvest.bounds.sequences import single_steps
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.delays import Delays, least_paid
from synth_models.harvest.parts.demands import fewest_hops
from synth_models.harvest.parts.kept_topologies import tried_topologies
from synth_models.harvest.parts.routing import route_steps
from synth_models.harvest.parts.shortest_path import shortest_schedule
from synth_models.harvest.parts.topologies import Topology
from synth_models.harvest.programs.column_generation.method import own_topologies
from synth_models.harvest.programs.misocp import coupled_method
from synth_models.harvest.programs.misocp.blocks import Block, blocks_of, reversed_blocks, reversed_links
from synth_models.harvest.programs.misocp.interval_program import IntervalProgram, certified
from synth_models.harvest.references.baselines import hold_ring
from synth_models.harvest.solution import Schedule

SEARCH = 0.1  # of the time
PRECISION = 10 * SOLVED  # relative: what solvers' tolerances may add up to over an interval


@dataclass
class Interval:
    """Steps ``first`` … ``last`` as one problem; ``is_reversed``: stated with all pairs reversed."""

    first: int
    last: int
    blocks: tuple[Block, ...]
    is_reversed: bool


@dataclass
class State:
    """All that is known: bounds per problem, topologies, and which problems admit no further progress."""

    instance: HarvestInstance
    program: IntervalProgram
    intervals: list[Interval]
    topologies: list[Topology]
    lower: dict[tuple[Block, ...], float] = field(default_factory=dict)
    closed: set[tuple[Block, ...]] = field(default_factory=set)

    def step_seconds(self) -> FloatArray:
        """Seconds of every step on every known topology, shape (steps, topologies)."""
        steps = [blocks_of(self.instance, i, i) for i in range(len(self.instance.steps))]
        return np.array([[self.program.seconds(step, t.links) for t in self.topologies] for step in steps])

    def known_for(self, interval: Interval) -> list[IntArray]:
        """The known topologies as they serve the interval's problem."""
        found = [topology.links for topology in self.topologies]
        return [reversed_links(links) for links in found] if interval.is_reversed else found

    def add(self, interval: Interval, links: IntArray) -> None:
        """A topology met while solving the interval's problem."""
        own = reversed_links(links) if interval.is_reversed else links
        if all(own.tobytes() != topology.key() for topology in self.topologies):
            self.topologies.append(Topology(f"steps {interval.first}-{interval.last}", own))

    def improve(self, interval: Interval, here: float, cutoff: float) -> None:
        """Raise the interval's bound from ``here`` towards ``cutoff`` (seconds) and take in the topologies met; an
        interval whose program says nothing new is closed."""
        answer = self.program.improve(interval.blocks, here, cutoff, self.known_for(interval))
        known = (self.lower[interval.blocks], len(self.topologies))
        self.lower[interval.blocks] = max(self.lower[interval.blocks], answer.bound)
        for links in answer.topologies:
            self.add(interval, links)
        if answer.ended == "stuck" or known == (self.lower[interval.blocks], len(self.topologies)):
            self.closed.add(interval.blocks)

    def bound_table(self) -> FloatArray:
        """Lower bounds of steps a … b, shape (steps, steps), each at least the sum of any split."""
        steps = len(self.instance.steps)
        table = np.zeros((steps, steps))
        for interval in sorted(self.intervals, key=lambda one: one.last - one.first):
            a, b = interval.first, interval.last
            parts = [table[a, c] + table[c + 1, b] for c in range(a, b)]
            table[a, b] = max([self.lower[interval.blocks], *parts])
        return table


def solve(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """Method ``misocp``; parameters ``symmetry``, ``strengthening``, ``cone``.

    Raises :class:`SizeLimitError` where a program has too many flows.
    """
    if instance.delay_varies:
        return coupled_method.solve(instance, options)
    hold_ring(instance, options, "the first schedule")
    delays = Delays(instance, ())
    program = IntervalProgram(instance, options)
    intervals = _intervals(instance)
    state = State(instance, program, intervals, tried_topologies(instance))
    for one in intervals:
        state.lower.setdefault(one.blocks, _trivial_bound(instance, one.blocks))
    _relax(state, options)
    termination: Literal["optimal", "time_limit", "finished"]
    searched = False
    while True:
        cost = state.step_seconds()
        value, chosen = shortest_schedule(cost, delays.before)
        table = state.bound_table()
        bound, path = _bound_path(table, [float(seconds) for seconds in least_paid(instance)])
        options.progress.note(value, bound)
        words = f"the best schedule so far, after {program.programs} programs"
        options.held.offer(partial(_routed, state, chosen), value, words)
        options.held.offer_bound(min(bound, value), _proof(program, options.solver or "highs"), None)
        if value - bound <= options.relative_gap * value:
            termination = "optimal"
            break
        if options.out_of_time():
            termination = "time_limit"
            break
        following = _next(state, path, cost, options.relative_gap / 2)
        if following is None:
            termination = "finished"
            break
        if not searched and not program.one_port:
            searched = True
            state.topologies += own_topologies(instance, _a_share(options))
            continue
        here = table[following.first, following.last]
        target = value * (1 - options.relative_gap / 2)
        state.improve(following, here, here + target - bound)
    schedule = _routed(state, chosen)
    message = f"{program.programs} programs for {len(state.lower)} different intervals of {len(intervals)}"
    if termination == "finished":
        message += f"; {_left_over(state, path, (value - bound) / value, options.relative_gap)}"
    proof = _proof(program, options.solver or "highs")
    outcome = Outcome(termination, schedule, min(bound, value), proof, None, message, program.build_s, program.solve_s)
    return certified(outcome, single_steps(instance))


def _left_over(state: State, path: Sequence[tuple[int, int]], gap: float, wanted: float) -> str:
    """Why nothing is left to try at a relative ``gap`` above the ``wanted`` one, in words."""
    if gap <= wanted + PRECISION:
        return "the gap left is below what the solver's precision settles"
    stuck = [one for one in state.intervals if (one.first, one.last) in path and one.blocks in state.closed]
    share = min((min(block.share.values()) for one in stuck for block in one.blocks), default=1.0)
    words = f"a gap of {100 * gap:.3g} % stays open: for {len(stuck)} of the intervals that the bound is made of, the "
    words += "solver's topology meets the bound within its tolerance alone, and takes longer when it is rated"
    if share < PRECISION:
        words += f" (the smallest volume there is {share:.1e} of the largest)"
    return words


def _routed(state: State, chosen: IntArray) -> Schedule:
    """The schedule that runs step i on topology ``chosen[i]``."""
    return route_steps(state.instance, [state.topologies[t] for t in chosen])


def _a_share(options: RunOptions) -> RunOptions:
    """Of the time that is left, what a search for topologies may take before the programs: a good schedule to begin
    with tells them what to refute."""
    return options.part(SEARCH)


def _proof(program: IntervalProgram, solver: str) -> str:
    words = f"each a program over all topologies ({program.form}), {solver}"
    return f"shortest path over lower bounds of all intervals; {words}"


def _intervals(instance: HarvestInstance) -> list[Interval]:
    found, steps = [], len(instance.steps)
    for first in range(steps):
        for last in range(first, steps):
            blocks = blocks_of(instance, first, last)
            other = reversed_blocks(blocks)
            found.append(Interval(first, last, min(blocks, other), other < blocks))
    return found


def _trivial_bound(instance: HarvestInstance, blocks: Sequence[Block]) -> float:
    """The fewest hops and all ports for every step."""
    total = 0.0
    for block in blocks:
        hops = fewest_hops(block.rows, instance.ports)
        seconds = block.seconds * block.degree / instance.ports
        total += block.count * (instance.alpha + instance.hop_delay * hops + seconds)
    return total


def _relax(state: State, options: RunOptions) -> None:
    """Linear relaxations of all intervals of several steps, short ones first."""
    for blocks in sorted(state.lower, key=len):
        if len(blocks) > 1 and not options.out_of_time():
            state.lower[blocks] = max(state.lower[blocks], state.program.relaxation(blocks) or 0.0)


def _bound_path(table: FloatArray, paid: Sequence[float]) -> tuple[float, list[tuple[int, int]]]:
    """The cheapest way to cut the steps into intervals (first, last) at these prices; ``paid[i]`` for beginning one
    with step i."""
    steps = len(table)
    total, came_from = np.full(steps + 1, np.inf), np.zeros(steps + 1, dtype=np.int64)
    total[0] = 0.0
    for b in range(1, steps + 1):
        through = [total[a] + paid[a] + table[a, b - 1] for a in range(b)]
        came_from[b] = int(np.argmin(through))
        total[b] = through[came_from[b]]
    path, b = [], steps
    while b:
        path.append((int(came_from[b]), b - 1))
        b = int(came_from[b])
    return float(total[steps]), path[::-1]


def _next(state: State, path: Sequence[tuple[int, int]], cost: FloatArray, tolerance: float) -> Interval | None:
    """The interval on the path to be solved next: fewest different steps, then the largest gap; None: all are settled
    to within ``tolerance`` (relative), which is how far a program settles them."""
    on_path = [one for one in state.intervals if (one.first, one.last) in path and one.blocks not in state.closed]
    open_ones = []
    for interval in on_path:
        upper = float(cost[interval.first : interval.last + 1].sum(axis=0).min())
        gap = upper - state.lower[interval.blocks]
        if gap > (tolerance + SAME) * upper:
            open_ones.append((len(interval.blocks), -gap, interval))
    return min(open_ones, key=lambda one: one[:2])[2] if open_ones else None
