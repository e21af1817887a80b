"""The schedule that suits the size: several routings, sizes of pieces and rules of priority, the best kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.clock import start_up_costs
from synth.clock.start_up_costs import counted_now
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.programs.flow.busiest_first import critical_order, looks
from synth_models.fabric.programs.flow.flow_routes import FlowPaths, link_seconds
from synth_models.fabric.programs.flow.orders import Busiest, Order, Rule
from synth_models.fabric.programs.flow.pieces import PathShares, Pieces, cut, planned, transfers
from synth_models.fabric.programs.flow.priority_rules import priorities
from synth_models.fabric.programs.flow.tuned import (
    AS_LONG,
    BUSIEST,
    CLOSE,
    CLOSE_OF_MANY,
    FIRST_SHARE,
    GAIN,
    IDLE,
    LOOKS_PER_S,
    MANY,
    MOST_SECONDS,
    MOST_SHARE_OF_TIME,
    MOST_TIMED,
    MOST_TRANSFERS,
    RULES,
    SHARE_OF_LOOKS,
    WORSE,
)
from synth_models.fabric.scheduling.insertion import Bookings, improved, ranked
from synth_models.fabric.scheduling.list_scheduling import completion, timed
from synth_models.fabric.solution import Schedule


@dataclass(frozen=True, eq=False)
class Draft:
    """Start ticks of bookings, what they would take in seconds, and how they were made."""

    bookings: Bookings
    start: IntArray
    seconds: float
    words: str

    @cached_property
    def schedule(self) -> Schedule:
        """The bookings as a schedule."""
        return self.bookings.schedule(self.start)

    @property
    def handicap(self) -> int:
        """Pieces: of two that take about as long, the one with fewer is better."""
        return len(self.bookings.transfers.piece_block)

    def beats(self, other: Draft | None) -> bool:
        """Faster, and clearly so if it needs more pieces."""
        if other is None:
            return True
        return self.seconds < other.seconds * (1 - GAIN if self.handicap > other.handicap else 1.0)


@dataclass(eq=False)
class _DraftSearch:
    instance: FabricInstance
    options: RunOptions
    least_s: float
    until: float
    best: Draft | None = None
    looks_per_s: float = LOOKS_PER_S  # as measured last
    takes: float = 0.0  # seconds of the next draft at most, by the last

    @property
    def over(self) -> bool:
        """Whether the best is good enough, or there is no time for more. The first try is always made."""
        best = self.best
        if best is None:
            return False
        if best.seconds <= (CLOSE if len(best.start) < MANY else CLOSE_OF_MANY) * self.least_s:
            return True
        late = counted_now() > self.until
        self.options.clock.cut |= late
        return late

    @property
    def left(self) -> float:
        """Seconds left for tries."""
        return max(0.0, self.until - counted_now())

    def fits(self, seconds: float) -> bool:
        """Whether what takes so long ends before the time for tries does."""
        late = seconds > self.left
        self.options.clock.cut |= late
        return not late

    def keep(self, draft: Draft) -> bool:
        """Keep a draft if it is the best; whether it is."""
        better = draft.beats(self.best)
        if better:
            self.best = draft
            self.options.progress.note(draft.seconds)
            self.options.held.offer(lambda: draft.schedule, draft.seconds, draft.words)
        return better

    def draft(self, bookings: Bookings, start: IntArray, words: str) -> Draft:
        """Start ticks as a draft."""
        return Draft(bookings, start, bookings.end(start) / bookings.ticks_per_s, words)

    def first(self, pieces: Pieces, order: Order, words: str) -> Draft | None:
        """The pieces in one order; None where to find the order takes too long."""
        begun, amount, before = counted_now(), looks(pieces), start_up_costs.not_counted()
        if isinstance(order, Busiest) and amount > self.looks_per_s * SHARE_OF_LOOKS * self.left:
            self.options.clock.cut = True
            return None
        moves = transfers(pieces, priorities(pieces, order, self.options.seed) if isinstance(order, Rule) else None)
        bookings = Bookings.of(self.instance, moves)
        words = f"{words}, {order.name}"
        if isinstance(order, Busiest):
            found = critical_order(pieces, bookings, order, self.options.seed)
            if start_up_costs.not_counted() == before:  # else it is no measure of the next
                self.looks_per_s = amount / max(counted_now() - begun, 1e-3)
            return self.draft(bookings, bookings.placed(ranked(found)), words)
        draft = self.draft(bookings, bookings.placed(moves.priority), words)
        if len(pieces.piece) > MOST_TIMED or self.over:
            return draft
        schedule = timed(self.instance, moves, bookings.ticks_per_s)
        if completion(self.instance, schedule) >= bookings.end(draft.start):
            return draft
        hop_by_hop = self.instance.switching.mode == "store_and_forward"
        start = schedule.start[moves.route_start[:-1]] if hop_by_hop else schedule.start
        return self.draft(bookings, start, words)

    def sizes(self, named: _NamedShares) -> None:
        """First drafts of a plan, in smaller and smaller pieces while these gain."""
        worse = 0
        for pieces, size in _sizes(self.instance, named.plan, self.options.method.get("chunks")):
            if self.best is not None and self.best.seconds <= named.needs_s * CLOSE:
                return
            best = self._best_order(pieces, f"{named.name}, pieces of at most {size} bytes")
            kept = best is not None and (best is self.best or self.keep(best))
            worse = 0 if kept else worse + 1
            if self.over or worse == WORSE:
                return

    def _best_order(self, pieces: Pieces, words: str) -> Draft | None:
        """The best draft of these pieces. The first of all is kept at once: another is not begun where it would not end
        in time."""
        best: Draft | None = None
        first = self.best is None
        for order in (*RULES, *BUSIEST):
            near = best is not None and best.seconds <= CLOSE * self.least_s
            if near or (not first and self.over) or (self.best is not None and not self.options.fits(self.takes)):
                continue
            begun = counted_now()
            draft = self.first(pieces, order, words)
            self.takes = AS_LONG * (counted_now() - begun)
            if draft is None:
                continue
            if best is None or draft.seconds < best.seconds:
                best = draft
            if self.best is None:
                self.keep(draft)
        return best


def best_draft(
    instance: FabricInstance, routings: Sequence[tuple[str, FlowPaths]], least_s: float, options: RunOptions
) -> Draft:
    """The best draft found within a part of the time limit; at least one is always made. ``least_s`` is a time that
    no schedule beats."""
    left = options.remaining()
    seconds = MOST_SECONDS if left is None else min(MOST_SECONDS, MOST_SHARE_OF_TIME * left)
    search = _DraftSearch(instance, options, least_s, counted_now() + FIRST_SHARE * seconds)
    first_until, plans = search.until, _plans(instance, routings)
    for number, one in enumerate(plans):
        search.until = counted_now() + (first_until - counted_now()) * 1.5 / max(1.5, len(plans) - number)
        if not search.over:
            search.sizes(one)
    search.until = first_until + (1 - FIRST_SHARE) * seconds
    _improve(search)
    assert search.best is not None
    return search.best


def _improve(search: _DraftSearch) -> None:
    """Forward and backward improvement of the best draft, then repeatedly, perturbed at random."""
    assert search.best is not None
    _improve_one(search, search.best, search.best.start)
    generator = np.random.default_rng(search.options.seed)
    idle = 0
    while not search.over and idle < IDLE:
        best = search.best
        count = len(best.start)
        shaken = generator.random(count) < 10.0 ** generator.uniform(-2, 0)
        reach = float(best.bookings.end(best.start)) * 10.0 ** generator.uniform(-2.5, -0.5)
        order = best.start + np.where(shaken, generator.normal(0.0, reach, count), 0.0)
        idle = 0 if _improve_one(search, best, best.bookings.placed(ranked(order))) else idle + 1


def _improve_one(search: _DraftSearch, draft: Draft, start: IntArray) -> bool:
    if search.over or not search.fits(search.takes):
        return False
    bookings = draft.bookings
    goal = math.floor(CLOSE * search.least_s * bookings.ticks_per_s)
    found = search.draft(bookings, improved(bookings, start, search.until, goal), draft.words)
    return found.seconds < draft.seconds and search.keep(found)


class _NamedShares(NamedTuple):
    """A plan, and the seconds that its fullest link or group needs."""

    name: str
    plan: PathShares
    needs_s: float


def _plans(instance: FabricInstance, routings: Sequence[tuple[str, FlowPaths]]) -> list[_NamedShares]:
    """Every routing, split as its shares say and one route a pair; those first whose fullest link and longest path
    together need least."""
    found = []
    for name, routes in routings:
        found.append((name, planned(instance, routes)))
        if len(routes) > len(instance.blocks):
            found.append((f"{name}, one a pair", planned(instance, routes, whole=True)))
    plans = [_NamedShares(name, plan, _fullest(instance, plan)) for name, plan in found]
    return sorted(plans, key=lambda one: one.needs_s + _furthest(instance, one.plan))


def _furthest(instance: FabricInstance, plan: PathShares) -> float:
    """The largest latency of a path that carries something, s."""
    routes = plan.routes
    latency = np.add.reduceat(instance.machine.network.latency[routes.link], routes.start[:-1])
    return float(latency[plan.path].max(initial=0.0))


def _fullest(instance: FabricInstance, plan: PathShares) -> float:
    amount = np.bincount(plan.path, plan.bytes, len(plan.routes)).astype(np.float64)
    return float(link_seconds(instance.machine, plan.routes, amount).max(initial=0.0))


def _sizes(instance: FabricInstance, plan: PathShares, given: int | None) -> Iterator[tuple[Pieces, int]]:
    """The plan in pieces of the largest block's bytes, half of them, and so on."""
    largest = int(instance.blocks.bytes.max(initial=1))
    hops = np.diff(plan.first_hop)[plan.path]
    count, before = given or 1, -1
    while True:
        size = -(-largest // count)
        amount = int(np.sum(np.maximum(1, -(-plan.bytes // size)) * hops))
        if amount > MOST_TRANSFERS and before >= 0:
            return
        if amount > before:
            yield cut(plan, size), size
        if given is not None or size <= 1:
            return
        before, count = amount, count * 2
