"""Solving one interval: how good can one topology be for its steps? Bounds stay valid, whatever ends the run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from synth.arrays import SAME, SOLVED, IntArray
from synth.errors import SizeLimitError
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers import mathprog
from synth.solvers.algebra import pyo
from synth.solvers.status import SolverResult
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.flows.flow_rows import Profile
from synth_models.harvest.parts.flows.profiles import profile
from synth_models.harvest.programs.misocp import one_port, strengthening_rows
from synth_models.harvest.programs.misocp.blocks import Block
from synth_models.harvest.programs.misocp.model import at_most, build, rate_range, relax

WIDER = 1e-5  # relative: narrowed ranges of rates are taken this much wider
GRID = 1.15  # ratio of neighbouring rates with a tangent from the start
LARGEST_DENOMINATOR = 4  # rates with small denominators are frequent answers: tangents there are exact
MOST_FLOWS = 200_000
FEWEST_LAYERS = 2
CLOSE = 1.12  # a topology within this ratio of the bound is likely to be the best


@dataclass
class Answer:
    """Proven: no topology serves the interval in less than ``bound`` seconds. ``topologies`` were met on the way (rows
    source, destination, links); ``ended`` is settled (within the gap, or the cutoff is refuted), stuck (no progress at
    the solver's precision) or time_limit."""

    bound: float
    topologies: list[IntArray] = field(default_factory=list)
    ended: Literal["settled", "stuck", "time_limit"] = "settled"


class Point(NamedTuple):
    """A step's best on a topology: ``seconds``, and behind them the limit of ``hops`` and the ``load`` of a port, in
    volumes of the pair with most."""

    seconds: float
    hops: int
    load: float


class Detail(NamedTuple):
    """How closely a program sees its steps: ``layers`` of hops, and of every block the rates with ``tangents`` and the
    smallest and largest rate (``ranges``; None: as the block has them)."""

    layers: int
    tangents: list[list[float]]
    ranges: Sequence[tuple[float, float]] | None = None


class IntervalProgram:
    """The program of intervals of one instance with the method's switches; counts its runs and their seconds."""

    def __init__(self, instance: HarvestInstance, options: RunOptions) -> None:
        self.instance, self.options = instance, options
        self.symmetry = bool(options.method.get("symmetry", True))
        self.strengthening = bool(options.method.get("strengthening", True))
        wanted = options.method.get("cone", "auto")
        self.cone = wanted == "cone" or (wanted == "auto" and options.solver == "scip")
        self.one_port = instance.ports == 1 and self.strengthening
        self.programs, self.build_s, self.solve_s = 0, 0.0, 0.0
        self._profiles: dict[tuple[Any, Any, bytes], Profile] = {}

    @property
    def form(self) -> str:
        """The program's form in words."""
        return "forced routes of one port" if self.one_port else "cone" if self.cone else "tangent cuts"

    def profile(self, block: Block, links: IntArray) -> Profile:
        """The block's profile on a topology, in loads of a pair of largest volume, computed once."""
        key = (block.pairs, block.volumes, links.tobytes())
        if key not in self._profiles:
            hops, load = profile(block.rows, links, self.instance.gpus)
            self._profiles[key] = Profile(hops, load / block.largest)
        return self._profiles[key]

    def best_points(self, blocks: Sequence[Block], links: IntArray) -> list[Point]:
        """One such step of every block on the topology; empty where a pair cannot be reached."""
        found = []
        for block in blocks:
            hops, load = self.profile(block, links)
            if not len(hops):
                return []
            seconds = self.instance.alpha + self.instance.hop_delay * hops + block.seconds * load
            best = int(seconds.argmin())
            found.append(Point(float(seconds[best]), int(hops[best]), float(load[best])))
        return found

    def seconds(self, blocks: Sequence[Block], links: IntArray) -> float:
        """The interval's time on a topology; infinite where a pair cannot be reached."""
        return _total(blocks, self.best_points(blocks, links))

    def relaxation(self, blocks: Sequence[Block]) -> float | None:
        """Lower bound (seconds) by the linear relaxation with cuts; None when it was not solved."""
        detail = Detail(self.layers(blocks, [], 0.0), first_tangents(self.instance.ports, blocks))
        model = self._model(blocks, detail, cone=False)
        relax(model)
        result, _ = mathprog.solve_lp(model, self.options, [])
        self.solve_s += result.solve_s
        return program_seconds(model, result.objective) if result.termination == "optimal" else None

    def improve(self, blocks: Sequence[Block], floor: float, cutoff: float, known: Sequence[IntArray]) -> Answer:
        """Raise the bound ``floor`` to ``cutoff`` or to the optimum, whichever is smaller (all in seconds).

        Outer approximation: solve, rate the topology found, add tangents at its rates and, where its routes are
        longer than the program counts, layers; until the topology's own time meets the bound or the cutoff is refuted.
        """
        answer = Answer(floor)
        tangents = first_tangents(self.instance.ports, blocks)
        layers = self.layers(blocks, known, floor)
        narrow = self.strengthening and not self.one_port
        ranges = self._narrowed(blocks, layers, tangents, cutoff) if narrow else None
        tolerance = self.options.relative_gap / 2
        while True:
            model = self._model(blocks, Detail(layers, tangents, ranges), self.cone)
            at_most(model, cutoff)
            result = self.solved(model, tolerance / 2)
            if result.termination == "infeasible":
                answer.bound = max(answer.bound, cutoff * (1 - SOLVED) / raised_by(model))
                return answer
            if result.bound is not None:
                answer.bound = max(answer.bound, min(program_seconds(model, result.bound), cutoff / raised_by(model)))
            points = self._rated(blocks, model, answer) if result.has_point else []
            own = _total(blocks, points)
            if points and own - answer.bound <= tolerance * own:
                return answer
            if result.termination == "limit" or self.options.out_of_time():
                answer.ended = "time_limit"
                return answer
            finer = self.finer(model, tangents, layers, points)
            if finer is None:
                answer.ended = "stuck"
                return answer
            tangents, layers = finer
            if points and own < cutoff:
                cutoff = own * (1 - tolerance / 2)
                ranges = self._narrowed(blocks, layers, tangents, cutoff) if narrow else None

    def solved(self, model: Any, gap: float) -> SolverResult:
        """The program to within a relative gap. Raises ``RuntimeError`` where the solver fails."""
        options = replace(self.options, relative_gap=gap)
        result = mathprog.solve(model, options, bounded=True, quadratic=self.cone and not self.one_port)
        self.programs += 1
        self.solve_s += result.solve_s
        if result.termination in ("error", "unbounded"):
            raise RuntimeError(result.message or "the solver failed")
        return result

    def _rated(self, blocks: Sequence[Block], model: Any, answer: Answer) -> list[Point]:
        """The program's topology rated by itself, and kept if all pairs are reached on it."""
        links = links_of(model)
        points = self.best_points(blocks, links)
        if points:
            answer.topologies.append(links)
        return points

    def finer(
        self, model: Any, tangents: list[list[float]], layers: int, points: Sequence[Point]
    ) -> tuple[list[list[float]], int] | None:
        """More tangents, or more layers, for the next program; None where neither says more about its topology."""
        refined = _refined(tangents, model, points) if not self.one_port else tangents
        longer = self._longer(layers, points)
        if refined == tangents and longer == layers:
            if self.one_port or layers >= self._most_layers():
                return None
            longer = layers + 1  # the program's routes may be longer than its topology's best ones, late hops free
        return refined, longer

    def _longer(self, layers: int, points: Sequence[Point]) -> int:
        needed = max((point.hops for point in points), default=layers + 1)
        return layers if self.one_port else min(max(layers, needed), self._most_layers())

    def _most_layers(self) -> int:
        return self.instance.gpus - 1 if self.instance.hop_delay > 0 else 1

    def layers(self, blocks: Sequence[Block], known: Sequence[IntArray], floor: float) -> int:
        """As many hops as the best known topology needs if it is close to the bound, else the fewest: they give a valid
        bound and a small program, whose topology says how many are needed."""
        best = min(known, key=lambda links: self.seconds(blocks, links), default=None)
        near = best is not None and self.seconds(blocks, best) <= CLOSE * floor
        points = self.best_points(blocks, best) if best is not None and near else []
        return min(max(FEWEST_LAYERS, *(point.hops for point in points), 0), self._most_layers())

    def _narrowed(
        self, blocks: Sequence[Block], layers: int, tangents: list[list[float]], cutoff: float
    ) -> list[tuple[float, float]]:
        """Strengthening: the smallest and largest rate of every block in the linear relaxation of topologies that take
        at most ``cutoff`` seconds, slightly widened. They bound what late routes carry, so the relaxation tightens."""
        model = self._model(blocks, Detail(layers, tangents), cone=False)
        at_most(model, cutoff)
        return self.narrowed(model, [model])[0]

    def narrowed(self, model: Any, parts: Sequence[Any]) -> list[list[tuple[float, float]]]:
        """The ranges of the rates of every part of a program whose cost is limited, by its linear relaxation."""
        found = [list(part.ranges) for part in parts]
        relax(model)
        for ranges, part in zip(found, parts, strict=True):
            for k, (least, most) in enumerate(ranges):
                if least == most:
                    continue
                for sign in (1, -1):
                    del model.objective
                    model.objective = pyo.Objective(expr=sign * part.rate[k])
                    result, _ = mathprog.solve_lp(model, self.options, [])
                    self.solve_s += result.solve_s
                    if result.termination != "optimal" or result.objective is None:
                        return found  # out of time, or nothing is left: the program itself will tell
                    if sign == 1:
                        least = max(least, result.objective * (1 - WIDER))
                    else:
                        most = min(most, -result.objective * (1 + WIDER))
                ranges[k] = (least, most)
        return found

    def _model(self, blocks: Sequence[Block], detail: Detail, cone: bool) -> Any:
        started = time.monotonic()
        demand_size(self.instance, sum(len(block.pairs) for block in blocks) * (detail.layers + 1))
        with mathprog.building():
            model = self.part(blocks, detail, cone)
            if self.symmetry:
                strengthening_rows.symmetry_breaking(model, model.links)
        self.build_s += time.monotonic() - started
        return model

    def part(self, blocks: Sequence[Block], detail: Detail, cone: bool, loops: bool = True) -> Any:
        """The program of one topology without what breaks its symmetries."""
        if self.one_port:
            model: Any = one_port.build(self.instance, blocks, loops)
            one_port.distances_differ(model)
            return model
        tangents = None if cone else detail.tangents
        model = build(self.instance, blocks, detail.layers, tangents, detail.ranges, loops)
        if self.strengthening:
            strengthening_rows.direct_or_late(model)
            strengthening_rows.moore(model)
        return model


def demand_size(instance: HarvestInstance, pairs: int) -> None:
    """Raises :class:`SizeLimitError` where flows of so many ``pairs`` (one a layer each) are too many."""
    if pairs * instance.gpus**2 > MOST_FLOWS:
        raise SizeLimitError(
            f"{pairs} pairs times layers on {instance.gpus} GPUs make more than {MOST_FLOWS} flows; "
            "try candidates, bound"
        )


def program_seconds(model: Any, value: float | None) -> float:
    """A value of the program in seconds, lowered by what the solver's tolerances may leave out: a bound stays one."""
    total = float(model.fixed_cost + model.unit * (value or 0.0))
    return total * (1 - SOLVED) / raised_by(model)


def raised_by(model: Any) -> float:
    """What times can be too large by, as a factor, because shares of the largest volume were raised; mostly 1."""
    return 1 + float(model.ports * max(block.raised for block in model.blocks))


def links_of(model: Any) -> IntArray:
    gpus = range(model.gpus)
    rows = [(u, v, round(model.links[u, v].value or 0)) for u in gpus for v in gpus if u != v]
    return np.array([(u, v, links) for u, v, links in rows if links > 0], dtype=np.int64).reshape(-1, 3)


def _total(blocks: Sequence[Block], points: Sequence[Point]) -> float:
    """The interval's time where its blocks' steps take so long; infinite where there are no points."""
    if not points:
        return float("inf")
    return sum(block.count * point.seconds for block, point in zip(blocks, points, strict=True))


def first_tangents(ports: int, blocks: Sequence[Block]) -> list[list[float]]:
    """Rates between the smallest and the largest possible: small fractions and a geometric grid."""
    found: list[list[float]] = []
    for block in blocks:
        if block.seconds == 0:
            found.append([])
            continue
        least, most = rate_range(block, ports)
        points = {most, least}
        rate = most
        while rate > least:
            points.add(rate)
            rate /= GRID
        for q in range(1, LARGEST_DENOMINATOR + 1):
            points |= {float(Fraction(p, q)) for p in range(1, int(most * q) + 1) if least <= p / q <= most}
        found.append(sorted(points))
    return found


def _refined(tangents: list[list[float]], model: Any, points: Sequence[Point]) -> list[list[float]]:
    """Tangents also at the rates of the program's point and at those its topology really allows."""
    refined = []
    for k, known in enumerate(tangents):
        if not known:  # no bytes, no time to be cut
            refined.append(known)
            continue
        wanted = [float(model.rate[k].value or 0.0)] + ([1 / points[k].load] if points else [])
        new = [r for r in wanted if r > 0 and all(abs(r / old - 1) > 1e-7 for old in known)]
        refined.append(sorted({*known, *new}))
    return refined


def certified(outcome: Outcome, counted: Outcome) -> Outcome:
    """Where counting proves as much as the programs did, its bound, words and certificate instead of theirs."""
    if outcome.bound is None or counted.bound is None or counted.bound < outcome.bound * (1 - SAME):
        return outcome
    return replace(outcome, bound=counted.bound, bound_proof=counted.bound_proof, certificate=counted.certificate)
