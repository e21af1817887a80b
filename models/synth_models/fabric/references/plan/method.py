"""Plans of demands that change from call to call, on one machine: a schedule and a certified bound in milliseconds.

Between equal boxes: what one box sends another is balanced over the rails, a Birkhoff–von Neumann decomposition in
whole bytes says when which box sends to which, and pieces take their turns over NVLink, rail and NVLink, all overlapped
(:mod:`synth_models.fabric.plans.demands`). Blocks of one size go in slots; small ones hop before the rail or behind.
Elsewhere blocks go straight. Bounds: cuts, prices of earlier demands (:mod:`synth_models.fabric.bounds.many_demands`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from synth.arrays import IntArray
from synth.errors import InputError, UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions, given_limit
from synth_models.fabric.bounds.many_demands import ManyDemands
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import MOST_BYTES, FabricInstance
from synth_models.fabric.plans.certified import Certified
from synth_models.fabric.plans.demands.balanced_plan import Plan, balanced_plan, schedule_of
from synth_models.fabric.plans.demands.layout import LONGEST, Layout
from synth_models.fabric.plans.demands.matrix import demand_of, read_matrix
from synth_models.fabric.plans.demands.spines import Leaves
from synth_models.fabric.plans.demands.timeline import Pieces, Placed
from synth_models.fabric.plans.pair_paths import best_paths
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.blocks import Blocks
from synth_models.fabric.problem.exact import float_above, float_below
from synth_models.fabric.references.plan.improved import placed_again
from synth_models.fabric.references.plan.one_plan import Corner, OnePlan, left_of
from synth_models.fabric.references.plan.rail_dispatch import dispatched
from synth_models.fabric.references.plan.reference_bounds import Demand, ReferenceBounds, alike
from synth_models.fabric.references.plan.relayed_plan import ENOUGH, MUCH, RelayedRoutes, relayed_plan
from synth_models.fabric.references.plan.rotation import rotated, ticks_in_turn
from synth_models.fabric.references.plan.straight_plan import StraightRoutes, straight_plan
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import MOST_TICKS, Schedule

SMALL_GAP = Fraction(1, 200)  # 0.5 %, below which no other plan is tried
MOST_STRAIGHT = 128  # ranks up to which straight plans are tried where boxes are equal,
MOST_ALONE = 1024  # and where they are not; references run up to as many
FEW_LATENCIES = 4  # for which rails are occupied, up to which blocks may hop before them or behind them
SOME_LATENCIES = 3  # and up to which they do between more ranks, where one plan is tried,
MANY_LATENCIES = 20  # or where all ranks have about as much, with a gap of
NEARLY = Fraction(1, 40)  # which nothing else is tried
BEHIND_LEAVES = Fraction(5, 100)  # and the same behind leaf switches, of more ranks than get straight plans
BALANCED, RELAYED, STRAIGHT, DIRECT, FLOW = "balanced", "relayed", "straight", "direct", "flow"
REFERENCES = ("direct", "two_step", "fast", "spread_out")
Call = Callable[[str, FabricInstance, RunOptions], Outcome]
"""How the race has another method solve an instance (:func:`synth_models.fabric.race.call`)."""


class Maker(NamedTuple):
    """What makes a ``kind`` of plan, given the best by then; behind it nothing is tried if the gap is ``enough``."""

    kind: str
    make: Callable[[Plan | None], Plan | None]
    enough: Fraction = SMALL_GAP


@dataclass(frozen=True, eq=False)
class Planned(Certified):
    """What the planner found for one demand.

    ``matrix``: the demand, bytes from rank to rank in the order of the process group, nothing on the diagonal.
    ``seconds``: the completion time, rounded up to a float. ``by``: ``balanced``, ``relayed``, ``straight``,
    ``direct``, ``two_step``, ``fast``, ``spread_out``, ``flow`` or ``slots``. ``tried``: the references that ran,
    because their lower bound did not tell that they are no quicker.
    """

    planner: Planner
    matrix: IntArray
    seconds: float
    by: str
    proven: Proven
    _made: Plan | Schedule
    tried: tuple[str, ...] = ()

    @property
    def optimal(self) -> bool:
        """Whether the schedule takes no longer than the bound, exactly."""
        plan = self._made
        return _seconds(plan) <= self.proven.seconds if isinstance(plan, Plan) else self.seconds <= self.bound

    @cached_property
    def instance(self) -> FabricInstance:
        """The demand as an instance of family ``fabric``: a block for every pair of ranks that has any bytes."""
        blocks = self.replayed.blocks
        rows = tuple(zip(blocks.origin.tolist(), blocks.goal.tolist(), blocks.bytes.tolist(), strict=True))
        return _changed(self.replayed, {"demand": rows}, blocks)

    @cached_property
    def replayed(self) -> FabricInstance:
        """The same with its blocks alone, without the rows of a file that they would be read from: to write these takes
        as long as to replay the plan."""
        machine, (row, column) = self.planner.machine, np.nonzero(self.matrix)
        node = np.array(machine.members, dtype=np.int64)
        own: dict[str, Any] = {"collective": "demand", "demand": None, "root": None}
        own |= {"bytes": int(self.matrix.sum()) or 1, "name": f"{machine.name[:90]}-demand"}
        own["source"] = f"a demand on the machine of {machine.name}"
        return _changed(machine, own, Blocks(node[row], node[column], self.matrix[row, column]))

    @cached_property
    def schedule(self) -> Schedule:
        """Transfers with exact times: a solution of the instance, as the family's check replays it."""
        return self.numbered(_numbers(self.matrix))

    def numbered(self, block: IntArray) -> Schedule:
        """The schedule where every pair of ranks has this number of a block, in the order of the process group."""
        if isinstance(self._made, Schedule):
            number = block[np.nonzero(self.matrix)]
            return replace(self._made, piece_block=number[self._made.piece_block])
        return schedule_of(self._made, self.boxed(block))

    def boxed(self, matrix: IntArray) -> IntArray:
        """A matrix in the order of the boxes instead of the process group."""
        order = self.planner.order
        found = np.empty_like(matrix)
        found[np.ix_(order, order)] = matrix
        return found


class Planner:
    """Plan demands on the machine of an instance of family ``fabric``, between the ranks of its process group.

    ``machine``: an instance of any collective. ``call``: how to have references make schedules. The
    first plan on a machine finds its routes and compiles kernels; what later ones need is kept.
    """

    def __init__(self, machine: FabricInstance, call: Call) -> None:
        self.machine, self._call = machine, call
        boxes = [rank for box in machine.boxes for rank in box]
        self._node = np.array(boxes, dtype=np.int64)
        place = {rank: k for k, rank in enumerate(boxes)}
        self.order = np.array([place[rank] for rank in machine.members], dtype=np.int64)
        self._layout: Layout | None = None
        self.why_straight: str | None = None
        try:
            self._layout = Layout.of(machine)
        except UnsupportedError as error:
            self.why_straight = str(error)
        self._bounds = ManyDemands(machine, self._node, machine.boxes)
        self._references = ReferenceBounds(machine, self._layout)

    @property
    def resources(self) -> int:
        """Links and groups of the machine."""
        return self.machine.machine.links + len(self.machine.machine.group_names)

    @property
    def ranks(self) -> tuple[str, ...]:
        """Names of the ranks, in the order of a demand's rows and columns."""
        return tuple(self.machine.machine.names[rank] for rank in self.machine.members)

    def plan(self, demand: npt.ArrayLike, better: bool = False, time_limit: str | float | None = 60.0) -> Planned:
        """Plan a demand: whole bytes from every rank (row) to every rank (column); what stands on the diagonal stays.

        ``better``: let method ``flow`` look for a better schedule too, within ``time_limit``; the prices that it proves
        its bound with are kept for later demands. Raises :class:`InputError` naming the first wrong cells.
        """
        matrix, boxed = self._read(demand)
        found = self._compared(self._by_pieces(matrix, boxed), boxed)
        return self._improved(found, boxed, given_limit(time_limit)) if better else found

    def _read(self, demand: npt.ArrayLike) -> tuple[IntArray, IntArray]:
        """The demand without its diagonal, in the order of the process group and in that of the boxes."""
        matrix = read_matrix(demand, len(self._node))
        np.fill_diagonal(matrix, 0)
        boxed = np.empty_like(matrix)
        boxed[np.ix_(self.order, self.order)] = matrix
        return matrix, boxed

    def _by_pieces(self, matrix: IntArray, boxed: IntArray) -> Planned:
        """The plan of a demand without the references, whose schedules no fixed plan can be made of."""
        proven = self._bounds.strongest(boxed)
        if not matrix.any():
            return Planned(self, matrix, 0.0, BALANCED, proven, _nothing())
        return self._quickest(Planned(self, matrix, math.inf, STRAIGHT, proven, _nothing()), boxed)

    def _compared(self, found: Planned, boxed: IntArray, instance: FabricInstance | None = None) -> Planned:
        """What was found, or a quicker schedule of a reference whose lower bound is less. ``instance``: whose blocks
        are the demand in another order."""
        if len(self._node) > MOST_ALONE or self._is_near(found):
            return found
        node, (row, column) = np.array(self.machine.members, dtype=np.int64), np.nonzero(found.matrix)
        demand = Demand(node[row], node[column], found.matrix[row, column], found.matrix, boxed)
        if instance is not None:
            own = instance.blocks
            demand = replace(demand, origin=own.origin, goal=own.goal, size=own.bytes)
        directly: Transfers | None = None
        for name in REFERENCES:
            with suppress(UnsupportedError):
                least = self._references.least(name, demand, found.seconds)
                if name == "two_step" and alike(self._references.sent, directly):
                    continue  # the same as ``direct``, which either ran or was too slow
                directly = self._references.sent if name == "direct" else directly
                if least < found.seconds and (found.by != name or instance is not None):
                    outcome = self._reference(name, instance or found.instance)
                    found = replace(self._replaced(found, outcome, name, instance), tried=(*found.tried, name))
        return found

    def _is_near(self, found: Planned) -> bool:
        """Whether no reference runs: at the bound, and between many ranks behind leaf switches near it."""
        near = len(self._node) > MOST_STRAIGHT and found.gap <= BEHIND_LEAVES
        return found.optimal or (near and self._leaves is not None)

    def _reference(self, name: str, instance: FabricInstance) -> Outcome:
        """What a reference makes, without its own search where what it sends is known."""
        options, sent = RunOptions(None).started_now(), self._references.sent
        if sent is None or name not in ("direct", "two_step") or self._references.others:
            return self._call(name, instance, options)
        return best_paths(instance, options, name, sent)

    def learn(self, certificate: Mapping[str, Any] | None) -> bool:
        """Keep the prices of a bound's certificate for any demand on this machine: they bound others too. False where
        it holds none."""
        return self._bounds.learn(certificate)

    def one_plan(self, demands: Sequence[npt.ArrayLike], near: Fraction = Fraction(0)) -> OnePlan:
        """One fixed plan for all these demands, with what each loses by it, certified. With ``near`` for all demands,
        too, of which every number differs from one of theirs by that share at most, 0 <= near < 1. Raises
        :class:`InputError`, and :class:`UnsupportedError` where switches store."""
        if not 0 <= near < 1:
            raise InputError(f"near = {near}: must be a share of at least 0 and below 1")
        read = [self._read(demand)[0] for demand in demands]
        if not read:
            raise InputError("there is no demand")
        lower, upper = ([_scaled(matrix, share) for matrix in read] for share in (1 - near, 1 + near))
        largest = self._by_pieces(*self._read(np.max(upper, axis=0)))
        pairs = [(self._only_bound(less), self._only_bound(more)) for less, more in zip(lower, upper, strict=True)]
        corners = tuple(_corner(largest, less, more) for less, more in pairs)
        mixture = self._bounds.mixture([less.boxed(less.matrix) for less, _ in pairs])
        faults = [words for k, (less, _) in enumerate(pairs) for words in _mixed_faults(less, mixture.proven[k])]
        verdict = largest.check()
        verdict.faults += faults
        return OnePlan(largest.seconds, largest.schedule, corners, float_below(mixture.seconds), verdict)

    def _only_bound(self, demand: IntArray) -> Planned:
        """A demand and its bound, without a plan."""
        matrix, boxed = self._read(demand)
        return Planned(self, matrix, math.inf, STRAIGHT, self._bounds.strongest(boxed), _nothing())

    @cached_property
    def _straight(self) -> StraightRoutes | None:
        """The way of every pair of ranks; None where a plan of ours has no clock, or switches store."""
        try:
            return StraightRoutes.of(self.machine, self._node) if len(self._node) <= self._most_straight else None
        except UnsupportedError:
            return None

    @cached_property
    def _relayed(self) -> RelayedRoutes | None:
        """Direct routes between the ranks of several equal boxes; None where a plan of ours has no clock for them."""
        if self._layout is None or self._layout.boxes < 2:
            return None
        try:
            return RelayedRoutes.of(self.machine, self._layout, self._straight)
        except UnsupportedError:
            return None

    @cached_property
    def _leaves(self) -> Leaves | None:
        """The links between leaf switches; None where boxes are not behind such."""
        return None if self._layout is None else Leaves.of(self.machine, self._layout)

    @cached_property
    def _longest(self) -> Fraction:
        """Seconds for which the machine's ticks have room for certain."""
        return Fraction(clock.ROOM, clock.ticks_per_second(self.machine.machine, LONGEST))

    @property
    def _most_straight(self) -> int:
        return MOST_ALONE if self._layout is None else MOST_STRAIGHT

    def _quickest(self, empty: Planned, boxed: IntArray) -> Planned:
        """The quicker of a balanced and a straight plan; the second only where it can be. Where neither is possible,
        or takes longer than the machine's ticks count, what method ``direct`` makes."""
        best: Plan | None = None
        by, all_made, bound = BALANCED, list[tuple[str, Plan]](), empty.proven.seconds
        enough = SMALL_GAP
        for kind, make, small in self._makers(boxed, empty.proven) if bound <= self._longest else ():
            if best is None or _seconds(best) * (1 - enough) > bound:
                made = _countable(make(best))
                all_made += [] if made is None else [(kind, made)]
                if made is not None and (best is None or made.ticks < best.ticks):
                    best, by, enough = made, kind, small
        for kind, made in all_made if len(boxed) <= MOST_STRAIGHT else ():
            if best is not None and _seconds(best) * (1 - MUCH) > bound:
                again = placed_again(made, self.resources)
                best, by = (again, kind) if again.ticks < best.ticks else (best, by)
        if best is None:
            return self._replaced(empty, self._call(DIRECT, empty.instance, RunOptions(None).started_now()), DIRECT)
        return replace(empty, seconds=float_above(_seconds(best)), by=by, _made=best)

    def _makers(self, boxed: IntArray, proven: Proven) -> list[Maker]:
        """The kinds of plans in the order in which they are tried, given the bound of the demand."""
        layout, found = self._layout, list[Maker]()
        if layout is not None:
            found.append(Maker(BALANCED, lambda best: balanced_plan(layout, boxed)))
            over = self._leaves
            if over is not None:
                enough = SMALL_GAP if len(boxed) <= MOST_STRAIGHT else BEHIND_LEAVES
                found.insert(0, Maker(BALANCED, lambda best: over.plan(boxed), enough))
        relayed = self._relayed
        if relayed is None:
            straight = self._straight
            return [*found, Maker(STRAIGHT, lambda best: _straight(straight, boxed, best))] if straight else found
        ticks, latency = relayed.ticks_of(boxed)
        of_boxes = self._bounds.of_boxes(boxed, proven).seconds * relayed.ticks_per_s
        above = math.ceil(proven.seconds * relayed.ticks_per_s)
        turns = Maker(RELAYED, lambda best: _plan(relayed, rotated(relayed, boxed)))
        if ticks_in_turn(relayed, boxed) == math.ceil(of_boxes):
            return [turns, *found]
        narrow = [turns] if math.ceil(of_boxes) < above else []
        own = Maker(RELAYED, lambda best: _plan(relayed, relayed_plan(relayed, boxed, above)), ENOUGH)
        if len(boxed) > MOST_STRAIGHT:
            busy = Maker(RELAYED, lambda best: _plan(relayed, dispatched(relayed, boxed, of_boxes)), ENOUGH)
            if ticks < SOME_LATENCIES * latency:
                return [busy, own, *narrow]
            found = [busy._replace(enough=NEARLY), *found] if ticks < MANY_LATENCIES * latency else found
        elif ticks < FEW_LATENCIES * latency:
            found = [own, *found] if ticks < latency else [*found, own]
        return [*found, *narrow]

    def _replaced(self, found: Planned, outcome: Outcome, by: str, on: FabricInstance | None = None) -> Planned:
        """What was found, or what a method made of it, or of the instance ``on``, where that is quicker."""
        if outcome.solution is None:
            return found
        made: Schedule = outcome.solution
        seconds = float_above(chunks.seconds(self.machine, made))
        if seconds >= found.seconds:
            return found
        if on is not None:
            block = demand_of(on, np.array(self.machine.members, dtype=np.int64))[1][np.nonzero(found.matrix)]
            made = replace(made, piece_block=np.argsort(block)[made.piece_block])
        return replace(found, seconds=seconds, by=by, _made=made)

    def _improved(self, found: Planned, boxed: IntArray, time_limit: float | None) -> Planned:
        """The better of what was found and what ``flow`` finds, and the stronger bound."""
        options = RunOptions(time_limit).started_now()
        with options.in_time():
            outcome = self._call(FLOW, found.instance, options)
        self.learn(outcome.certificate)
        by = (outcome.made_by or (FLOW,))[0]
        return self._replaced(replace(found, proven=self._bounds.strongest(boxed)), outcome, by)


def propose(instance: FabricInstance, options: RunOptions, planner: Planner) -> Outcome:
    """Method ``plan``; ``planner``: that of the instance's machine."""
    try:
        matrix, block = demand_of(instance, np.array(instance.members, dtype=np.int64))
    except UnsupportedError as error:
        return Outcome("unsupported", message=str(error))
    matrix, boxed = planner._read(matrix)
    alone = planner._by_pieces(matrix, boxed)
    if len(instance.blocks):
        options.held.offer(lambda: alone.numbered(block), alone.seconds, alone.by)
    found = planner._compared(alone, boxed, instance)
    schedule = found.numbered(block)
    words = f"{found.by}, {schedule.transfers} transfers"
    proven = found.proven
    made_by = (found.by,) if found.by in REFERENCES else None
    return Outcome("finished", schedule, found.bound, str(proven), proven.certificate(), words, made_by=made_by)


def _changed(instance: FabricInstance, own: Mapping[str, Any], blocks: Blocks) -> FabricInstance:
    """The instance with other values and blocks on the same machine; not validated again, as the matrix has been."""
    made = BaseModel.model_copy(instance, update=own)
    made._file = made._sha256 = None
    for computed in ("operations", "parts", "on_time", "all_blocks"):
        made.__dict__.pop(computed, None)
    made.__dict__["blocks"] = blocks
    return made


def _straight(routes: StraightRoutes, matrix: IntArray, best: Plan | None) -> Plan | None:
    """The straight plan, None where it cannot be quicker than the ``best``."""
    below = np.iinfo(np.int64).max if best is None else best.ticks
    return _plan(routes, straight_plan(routes, matrix, below))


def _plan(routes: StraightRoutes | RelayedRoutes, made: tuple[Pieces, Placed] | None) -> Plan | None:
    """Pieces and their transfers, if there are any, as a plan."""
    if made is None:
        return None
    pieces, transfers = made
    return Plan(pieces, transfers, routes.routes, int(transfers.end.max(initial=0)), routes.ticks_per_s)


def _countable(plan: Plan | None) -> Plan | None:
    """The plan, None where it ends beyond the ticks that a record states."""
    return plan if plan is not None and plan.transfers.end.min(initial=0) >= 0 and plan.ticks <= MOST_TICKS else None


def _seconds(plan: Plan) -> Fraction:
    return Fraction(plan.ticks, plan.ticks_per_s)


def _scaled(matrix: IntArray, share: Fraction) -> IntArray:
    """A share of every number, rounded towards the whole; at most what :func:`read_matrix` refuses."""
    above, below = share.numerator, share.denominator
    numbers = [above * number for number in matrix.reshape(-1).tolist()]
    rounded = [number // below if share > 1 else -(-number // below) for number in numbers]
    found: IntArray = np.array([min(number, 2 * MOST_BYTES) for number in rounded], dtype=np.int64)
    return found.reshape(matrix.shape)


def _corner(largest: Planned, less: Planned, more: Planned) -> Corner:
    """A demand ``more`` under the plan of a larger one, beside the bound of ``less``: what lies between takes no longer
    than the first, and has at least the bound of the second."""
    plan = largest._made
    if isinstance(plan, Plan):
        left = left_of(plan, more.boxed(more.matrix))
        schedule = schedule_of(left, more.boxed(_numbers(more.matrix)))
    elif more.matrix.any():
        raise UnsupportedError("there is no fixed plan for several demands where switches store")
    else:
        schedule = plan
    verdict = check_schedule(more.instance, schedule)
    verdict.faults += check_bound(less.instance, less.bound, less.proven.certificate())
    return Corner(schedule, math.inf if verdict.value is None else verdict.value, less.bound, verdict)


def _mixed_faults(less: Planned, proven: Sequence[Proven]) -> list[str]:
    """What the check finds wrong with the arguments of a mixture, each alone."""
    return [
        words
        for one in proven
        if one.seconds
        for words in check_bound(less.instance, float_below(one.seconds), one.certificate())
    ]


def _numbers(matrix: IntArray) -> IntArray:
    """Numbers of the pairs of ranks that have any bytes, row after row; -1 for others."""
    there = matrix > 0
    return np.where(there, np.cumsum(there.reshape(-1)).reshape(matrix.shape) - 1, -1).astype(np.int64)


def _nothing() -> Schedule:
    none = np.zeros(0, dtype=np.int64)
    return Schedule(1, none, none, none, none, none.astype(bool), np.zeros(1, dtype=np.int64), none)
