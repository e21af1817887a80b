"""Schedules put together: the transfers of several on one machine, none before its release, at new start times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.order import in_order
from synth_models.fabric.problem.ready import moments
from synth_models.fabric.problem.rows import rows_of, starts
from synth_models.fabric.problem.several import links_in
from synth_models.fabric.routes.search import Routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling import moves as moving
from synth_models.fabric.scheduling.gates import Stages, Waiting, started, with_stages
from synth_models.fabric.scheduling.gathering import gathering
from synth_models.fabric.scheduling.hop_times import hop_times
from synth_models.fabric.scheduling.list_scheduling import followers_of, most_seconds
from synth_models.fabric.scheduling.renumbered import waits_of
from synth_models.fabric.scheduling.reservations import uses_of
from synth_models.fabric.scheduling.reversal import arrivals
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule


@dataclass(frozen=True, eq=False)
class Together:
    """The transfers of the schedules of all collectives, on the links of the whole machine.

    ``of``: the collective of every transfer; ``begins``, ``ends``: when each starts and has arrived in its own
    schedule, in seconds; ``known``: how many transfers have brought its piece to where it starts by then. Shape
    (transfers,) each. ``release``: of every collective, in seconds, exactly.
    """

    instance: FabricInstance
    transfers: Transfers
    of: IntArray
    begins: np.ndarray
    ends: np.ndarray
    known: IntArray
    release: tuple[Fraction, ...]

    @classmethod
    def from_schedules(cls, instance: FabricInstance, schedules: Sequence[Schedule]) -> Together | None:
        """The schedules of all ``instance.parts``. None where a route branches or meets another, or switches store."""
        if instance.switching.mode == "store_and_forward" and instance.machine.is_switch.any():
            return None
        rows: list[Transfers] = []
        begins, ends, of = [], [], []
        blocks = pieces = transfers = links = 0
        for number, (part, made) in enumerate(zip(instance.parts, schedules, strict=True)):
            if gathering(part.machine, made.route_start, made.link).any():
                return None
            before = waits_of(part, made)
            if before is None:
                return None
            own = Transfers.of_schedule(made, before)
            begins.append(made.start / made.ticks_per_s)
            ends.append(arrivals(part, own, made) / made.ticks_per_s)
            of.append(np.full(made.transfers, number, dtype=np.int64))
            rows.append(
                replace(
                    own,
                    piece_block=own.piece_block + blocks,
                    piece=own.piece + pieces,
                    link=links_in(instance.machine, part.machine)[own.link],
                    before=own.before + transfers,
                )
            )
            blocks += len(part.blocks)
            pieces += len(made.piece_block)
            transfers += made.transfers
            links += len(made.link)
        assert instance.collectives is not None
        whole = _joined(rows)
        release = tuple(exact(one.release) for one in instance.collectives)
        known = np.diff(whole.before_start)
        return cls(instance, whole, np.concatenate(of), np.concatenate(begins), np.concatenate(ends), known, release)

    def in_chunks(self, count: int) -> Together | None:
        """Every piece cut into so many chunks that all go the same way; None where a piece has fewer bytes."""
        old = self.transfers
        if not len(old.piece_bytes) or int(old.piece_bytes.min()) < count:
            return None
        sizes = np.array([chunks.cut(size, count) for size in old.piece_bytes.tolist()], dtype=np.int64)
        number = np.arange(sizes.size).reshape(count, -1)
        moves = moving.in_chunks(
            old, number, np.tile(old.piece_block, count), sizes.T.reshape(-1), lambda step, _: step
        )
        step = np.repeat(np.arange(count) / count, len(old.piece))
        took = np.tile(self.ends - self.begins, count)
        return replace(
            self,
            transfers=moves,
            of=np.tile(self.of, count),
            begins=np.tile(self.begins, count) + step * took,
            ends=np.tile(self.ends, count) - (1 - 1 / count - step) * took,
            known=np.tile(self.known, count),
        )

    def rerouted(self) -> Together:
        """Every transfer on the least used of its equally quick routes, in the order in which they start if each
        collective takes equally long; where none is as short as its own it keeps that."""
        old, net = self.transfers, self.instance.machine.network
        routes = Routes.of(self.instance, int(np.median(old.piece_bytes)) if len(old.piece_bytes) else 1)
        last = np.zeros(len(self.release))
        np.maximum.at(last, self.of, self.ends)
        source, goal = net.src[old.link[old.route_start[:-1]]], net.dst[old.link[old.route_start[1:] - 1]]
        found: list[tuple[int, ...]] = [()] * len(old.piece)
        for i in np.argsort(self.begins / np.maximum(last[self.of], 1e-300), kind="stable").tolist():
            own = tuple(old.link[old.route_start[i] : old.route_start[i + 1]].tolist())
            new = routes.direct(int(source[i]), int(goal[i])) or own
            found[i] = new if len(new) <= len(own) else own
            routes.take(found[i], int(old.piece_bytes[old.piece[i]]))
        start, links = rows_of(found)
        return replace(self, transfers=replace(old, route_start=start, link=links))

    def timed(self, priority: IntArray, in_gaps: bool) -> Schedule | None:
        """All transfers in this order of priority; None where a sum would take in what comes to it too early, or a
        whole one would take the place of a part that comes later."""
        moves = replace(self.transfers, priority=np.asarray(priority, dtype=np.int64))
        made = self._timed(moves, in_gaps)
        return made if not moves.adds.any() or self._sums_stay(made) else None

    def _timed(self, moves: Transfers, in_gaps: bool) -> Schedule:
        """As :func:`synth_models.fabric.scheduling.list_scheduling.timed`, with a moment before which each transfer
        does not start, and what a rank has itself behind what the rank wants of collectives before."""
        machine, late = self.instance.machine, self._late_moments
        last = max([*self.release, *late.values()], default=Fraction(0))
        ticks = clock.ticks_per_second(machine, most_seconds(self.instance, moves) + float(last))
        hops = hop_times(machine, moves, ticks, False)
        uses = uses_of(moves.route_start, moves.link, machine.group, hops.offset, hops.duration, in_gaps)
        resources, missing = machine.links + len(machine.group_names), np.diff(moves.before_start)
        first = np.array([_whole(moment * ticks) for moment in self.release], dtype=np.int64)[self.of]
        first = np.where(missing == 0, first, 0)
        source = machine.network.src[moves.link[moves.route_start[:-1]]].astype(np.int64)
        for (number, rank), moment in late.items():
            chosen = self._own & (self.of == number) & (source == rank)
            first[chosen] = np.maximum(first[chosen], _whole(moment * ticks))
        waiting = Waiting(uses, resources, followers_of(machine, moves, hops), missing)
        stages, moments_of_stages = self._stages(source, hops.arrival[moves.route_start[1:] - 1])
        priority = moves.priority
        if moments_of_stages:
            waiting = with_stages(waiting, stages)
            extra = len(waiting.missing) - len(priority)
            priority = np.concatenate([priority, np.full(extra, priority.min(initial=0) - 1)])
            first = np.concatenate([first, [_whole(moment * ticks) for moment in moments_of_stages]]).astype(np.int64)
            assert len(first) == len(waiting.missing) == len(self.of) + extra
        start = started(waiting, priority, first, in_gaps)[: len(self.of)]
        route = moves.route_start, moves.link
        return Schedule(ticks, moves.piece_block, moves.piece_bytes, start, moves.piece, moves.adds, *route)

    @cached_property
    def _late_moments(self) -> dict[tuple[int, int], Fraction]:
        """The moments of ranks that are not ready when their collective is released, by collective and rank."""
        collectives = self.instance.collectives or ()
        return {(k, rank): when for k, one in enumerate(collectives) for rank, when in moments(one.ready).items()}

    @cached_property
    def _own(self) -> BoolArray:
        """Which transfers bring something of the rank that they leave."""
        moves, blocks = self.transfers, self.instance.all_blocks[0]
        origin = blocks.origin[moves.piece_block[moves.piece]]
        source = self.instance.machine.network.src[moves.link[moves.route_start[:-1]]]
        found: BoolArray = (origin == EVERYONE) | blocks.mean(origin, source, self.instance.members)
        return found

    def _stages(self, source: IntArray, arrival: IntArray) -> tuple[Stages, list[Fraction]]:
        """A stage for every rank of a collective that comes after another of which the rank wants something, and the
        moment before which the rank has not its own part of that."""
        moves, blocks = self.transfers, self.instance.all_blocks[0]
        target = self.instance.machine.network.dst[moves.link[moves.route_start[1:] - 1]]
        goal = blocks.goal[moves.piece_block[moves.piece]]
        rows: list[tuple[IntArray, IntArray]] = []
        found: list[Fraction] = []
        for number, before in self._pairs():
            there = (self.of == before) & ((goal == EVERYONE) | blocks.mean(goal, target, self.instance.members))
            members = (set(self.instance.parts[k].members) for k in (number, before))
            for rank in sorted(set.intersection(*members)):
                coming = np.flatnonzero(there & (target == rank))
                leaving = np.flatnonzero(self._own & (self.of == number) & (source == rank))
                if len(coming) and len(leaving):
                    rows.append((coming, leaving))
                    found.append(max(self.release[before], self._late_moments.get((before, rank), Fraction(0))))
        none = np.zeros(0, dtype=np.int64)
        coming, leaving = (np.concatenate([none, *(row[k] for row in rows)]) for k in (0, 1))
        of_coming, of_leaving = (
            np.repeat(np.arange(len(rows)), [len(row[k]) for row in rows]).astype(np.int64) for k in (0, 1)
        )
        return Stages(coming, of_coming, arrival[coming], leaving, of_leaving), found

    def _pairs(self) -> list[tuple[int, int]]:
        """The collectives with those that they come after, at once or by way of others."""
        after = [one.after or () for one in self.instance.collectives or ()]
        before: list[set[int]] = [set() for _ in after]
        for number in in_order(after, range(len(after))):
            before[number] = set(after[number]).union(*(before[k] for k in after[number]))
        return [(number, k) for number, row in enumerate(before) for k in sorted(row)]

    @cached_property
    def _goals(self) -> IntArray:
        """Where each transfer brings its piece: node and piece as one number."""
        moves, net = self.transfers, self.instance.machine.network
        ends = net.dst[moves.link[moves.route_start[1:] - 1]].astype(np.int64)
        return ends + moves.piece * self.instance.machine.nodes

    @cached_property
    def _late(self) -> int:
        """How many parts come behind the whole sum in the schedules as they were."""
        return _behind(self._goals, self.ends, self.transfers.adds)

    def _sums_stay(self, made: Schedule) -> bool:
        """Whether no more than before has come to where a transfer starts, and nothing is added to a whole sum."""
        moves, goal = replace(self.transfers, priority=made.start), self._goals
        came = arrivals(self.instance, moves, made)
        if _behind(goal, came, moves.adds) > self._late:
            return False
        net = self.instance.machine.network
        source = (
            net.src[moves.link[moves.route_start[:-1]]].astype(np.int64) + moves.piece * self.instance.machine.nodes
        )
        order = np.lexsort((came, goal))
        keys = np.stack([goal[order], came[order]])
        first = np.searchsorted(keys[0], source, "left")
        last = np.searchsorted(keys[0], source, "right")
        by_now = np.array(
            [np.searchsorted(keys[1, a:b], t, "right") for a, b, t in zip(first, last, made.start, strict=True)]
        )
        adds = np.zeros(len(moves.piece_block), dtype=bool)
        adds[moves.piece[moves.adds]] = True
        return bool(np.all(by_now[adds[moves.piece]] <= self.known[adds[moves.piece]]))


def _behind(goal: IntArray, came: Any, adds: BoolArray) -> int:
    """How many parts of sums come to a place (``goal``) where a whole one is by then."""
    places, place = np.unique(goal, return_inverse=True)
    never = np.inf if came.dtype.kind == "f" else np.iinfo(came.dtype).max
    whole = np.full(len(places), never, dtype=came.dtype)
    np.minimum.at(whole, place[~adds], came[~adds])
    return int(np.count_nonzero(came[adds] >= whole[place[adds]]))


def _joined(rows: Sequence[Transfers]) -> Transfers:
    """All transfers one after the other."""

    def all_of(column: Callable[[Transfers], Any]) -> Any:
        return np.concatenate([column(row) for row in rows])

    routes = starts(all_of(lambda row: np.diff(row.route_start))), all_of(lambda row: row.link)
    before = starts(all_of(lambda row: np.diff(row.before_start))), all_of(lambda row: row.before)
    block, size, piece = (all_of(attrgetter(name)) for name in ("piece_block", "piece_bytes", "piece"))
    adds, priority = all_of(lambda row: row.adds), all_of(lambda row: row.priority)
    return Transfers.of_rows(block, size, piece, routes, before=before, priority=priority, adds=adds)


def _whole(value: Fraction) -> int:
    """The least whole number that is no less."""
    return -(-value.numerator // value.denominator)
