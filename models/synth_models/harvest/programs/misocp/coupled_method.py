"""``misocp`` where delays depend on what changes: one program over all steps at once.

Intervals do not come apart then, so the outer program has nothing to choose from. The program's topologies are rated
by themselves and join those that are known; over these the best schedule is a shortest path. Tangents and layers are
added at the topologies met, as for an interval, until the bound meets the schedule.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from synth.arrays import SOLVED, FloatArray, IntArray
from synth.errors import SizeLimitError
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers import mathprog
from synth_models.harvest.bounds.sequences import single_steps
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.delays import Delays
from synth_models.harvest.parts.kept_topologies import tried_topologies
from synth_models.harvest.parts.routing import route_steps
from synth_models.harvest.parts.shortest_path import shortest_schedule
from synth_models.harvest.parts.topologies import Topology
from synth_models.harvest.programs.misocp import coupled_steps, strengthening_rows
from synth_models.harvest.programs.misocp.blocks import Block, blocks_of
from synth_models.harvest.programs.misocp.interval_program import (
    Detail,
    IntervalProgram,
    Point,
    certified,
    demand_size,
    first_tangents,
    links_of,
    program_seconds,
    raised_by,
)
from synth_models.harvest.programs.misocp.model import at_most
from synth_models.harvest.references.baselines import hold_ring
from synth_models.harvest.solution import Schedule

SHARE = 0.9  # of the time is for the programs: a solver takes a little more than it may, and its bound must not be lost


@dataclass
class Found:
    """What is proven, what ended the search, and why where that is not plain."""

    bound: float
    ended: Literal["optimal", "time_limit", "finished"] | None = None
    why: str = ""


@dataclass
class Steps:
    """The steps' programs, refined as far as they are, and the topologies known."""

    instance: HarvestInstance
    program: IntervalProgram
    blocks: list[tuple[Block, ...]]
    topologies: list[Topology] = field(default_factory=list)
    tangents: list[list[list[float]]] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)

    def seconds(self) -> FloatArray:
        """Seconds of every step on every known topology, shape (steps, topologies)."""
        return np.array([[self.program.seconds(step, t.links) for t in self.topologies] for step in self.blocks])

    def begin(self, chosen: Sequence[IntArray]) -> None:
        """The first tangents, and as many layers as the steps of a schedule on these topologies need."""
        ports, program = self.instance.ports, self.program
        self.tangents = [first_tangents(ports, step) for step in self.blocks]
        self.layers = [program.layers(step, [one], np.inf) for step, one in zip(self.blocks, chosen, strict=True)]

    def model(self, value: float, cutoff: float) -> Any:
        """The program of all steps for schedules that take at most ``cutoff`` seconds; one of ``value`` is known. Rates
        are narrowed as for an interval."""
        program, sizes = self.program, zip(self.blocks, self.layers, strict=True)
        demand_size(self.instance, sum(len(block.pairs) * (layers + 1) for step, layers in sizes for block in step))
        ranges: Sequence[Any] = [None] * len(self.blocks)
        if program.strengthening and not program.one_port:
            model = self._build(value, cutoff, False, ranges)
            ranges = program.narrowed(model, list(model.step.values()))
        return self._build(value, cutoff, program.cone, ranges)

    def _build(self, value: float, cutoff: float, cone: bool, ranges: Sequence[Any]) -> Any:
        started, program = time.monotonic(), self.program
        with mathprog.building():
            details = map(Detail, self.layers, self.tangents, ranges)
            parts = [program.part(step, own, cone, loops=False) for step, own in zip(self.blocks, details, strict=True)]
            model = coupled_steps.build(self.instance, parts, value)
            if program.strengthening and self.instance.delay_by_ports is None:
                coupled_steps.some_circuit(model)
            if program.symmetry:
                strengthening_rows.symmetry_breaking(model, model.step[0].links)
            at_most(model, cutoff)
        program.build_s += time.monotonic() - started
        return model

    def met(self, model: Any) -> list[list[Point]]:
        """Every step's best on the program's topology for it (empty where it does not reach a pair); all of these
        topologies are known from now on."""
        keys = {topology.key() for topology in self.topologies}
        points = []
        for i, step in enumerate(self.blocks):
            links = links_of(model.step[i])
            points.append(self.program.best_points(step, links))
            if links.tobytes() not in keys:
                keys.add(links.tobytes())
                self.topologies.append(Topology(f"step {i}, program {self.program.programs}", links))
        return points

    def refine(self, model: Any, points: Sequence[Sequence[Point]]) -> bool:
        """Tangents and layers at what the program said; False where there are none to be added."""
        found = False
        for i, own in enumerate(points):
            finer = self.program.finer(model.step[i], self.tangents[i], self.layers[i], own)
            if finer is not None:
                self.tangents[i], self.layers[i] = finer
                found = True
        return found


def solve(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """Least time over all topologies of all steps at once; parameters as for
    :func:`synth_models.harvest.programs.misocp.method.solve`.

    Raises :class:`SizeLimitError` where the flows of all steps together are too many.
    """
    hold_ring(instance, options, "the first schedule")
    program = IntervalProgram(instance, options.part(SHARE))
    steps = Steps(instance, program, [blocks_of(instance, i, i) for i in range(len(instance.steps))])
    steps.topologies = tried_topologies(instance)
    counted = single_steps(instance)
    assert counted.bound is not None
    options.held.offer_bound(counted.bound, counted.bound_proof, counted.certificate)
    found = Found(counted.bound)
    while True:
        value, chosen = shortest_schedule(steps.seconds(), Delays(instance, steps.topologies).before)
        options.progress.note(value, found.bound)
        words = f"the best schedule so far, after {program.programs} programs"
        options.held.offer(partial(_routed, steps, chosen), value, words)
        if found.bound > counted.bound:
            options.held.offer_bound(min(found.bound, value), _proof(program), None)
        if value - found.bound <= options.relative_gap * value:
            found.ended = "optimal"
        elif program.options.out_of_time():
            found.ended = "time_limit"
        if found.ended is not None:
            break
        _improve(steps, found, value, [steps.topologies[t].links for t in chosen])
    message = f"{program.programs} programs over all {len(steps.blocks)} steps"
    if found.ended == "finished":
        message += f"; a gap of {100 * (value - found.bound) / value:.3g} % stays open: {found.why}"
    bound = min(found.bound, value)
    schedule = _routed(steps, chosen)
    outcome = Outcome(found.ended, schedule, bound, _proof(program), None, message, program.build_s, program.solve_s)
    return certified(outcome, counted)


def _improve(steps: Steps, found: Found, value: float, chosen: Sequence[IntArray]) -> None:
    """One program more: raises the bound towards ``value``, that of a schedule on the ``chosen`` topologies, and takes
    in the topologies met."""
    program, gap = steps.program, steps.program.options.relative_gap
    if not steps.layers:
        steps.begin(chosen)
    cutoff = value * (1 - gap / 2)
    try:
        model = steps.model(value, cutoff)
    except SizeLimitError as error:
        if not program.programs:
            raise
        found.ended, found.why = "finished", str(error)
        return
    known = (found.bound, len(steps.topologies))
    result = program.solved(model, gap / 4)
    slack = SOLVED * coupled_steps.dearest(model)  # whole numbers hold to about that
    if result.termination == "infeasible":
        found.bound = max(found.bound, cutoff * (1 - SOLVED) / raised_by(model) - slack)
    elif result.bound is not None:
        found.bound = max(found.bound, min(program_seconds(model, result.bound), cutoff / raised_by(model)) - slack)
    refined = result.has_point and steps.refine(model, steps.met(model))
    if not refined and known == (found.bound, len(steps.topologies)) and result.termination != "limit":
        found.ended = "finished"
        found.why = "the solver's topologies meet the bound within its tolerance alone, and take longer when rated"


def _routed(steps: Steps, chosen: IntArray) -> Schedule:
    """The schedule that runs step i on topology ``chosen[i]``."""
    return route_steps(steps.instance, [steps.topologies[t] for t in chosen])


def _proof(program: IntervalProgram) -> str:
    return f"one program over all steps and all topologies ({program.form}), {program.options.solver or 'highs'}"
