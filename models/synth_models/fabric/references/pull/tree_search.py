"""Trees for the pieces of one cut: built greedily, improved by local search, read out as transfers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.clock.deadline import demand_time, left
from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.rows import picked
from synth_models.fabric.references.pull.event_driven import spread
from synth_models.fabric.references.pull.neighbourhood_search import build, improve
from synth_models.fabric.references.pull.routing_state import (
    Routing,
    RoutingState,
    distances,
    lag_of,
    reserve_route,
)
from synth_models.fabric.references.pull.tree_growth import (
    FULL,
    PieceArrays,
    TreeState,
    TreeTransfers,
    new_labels,
    new_transfers,
    put,
)
from synth_models.fabric.references.pull.tuned import MOST_GUIDED, MOST_PULLED
from synth_models.fabric.scheduling.chunks import cut
from synth_models.fabric.scheduling.interval_reservations import new_intervals
from synth_models.fabric.solution import Schedule

NO_PRICE = np.zeros(0)
NO_DISTANCES = np.zeros((0, 0), dtype=np.int64)
FOREVER = 2**62


@dataclass(frozen=True, eq=False)
class Pieces:
    """``block``, ``size`` (bytes), ``origin`` and ``goal`` (numbers of ranks of the routing, goal -1: all members), and
    ``kind``, the row of ``sizes``; shape (pieces,) each."""

    block: IntArray
    size: IntArray
    origin: IntArray
    goal: IntArray
    kind: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, routing: Routing, block: Any, size: Any, origin: Any, goal: Any) -> Pieces:
        """Of node numbers."""
        place = np.full(int(routing.ranks.max(initial=0)) + 1, -1, dtype=np.int64)
        place[routing.ranks] = np.arange(len(routing.ranks))
        sizes, kind = np.unique(np.asarray(size, dtype=np.int64), return_inverse=True)
        goals = np.asarray(goal, dtype=np.int64)
        return cls(
            np.asarray(block, dtype=np.int64), np.asarray(size, dtype=np.int64), place[np.asarray(origin)],
            np.where(goals == EVERYONE, -1, place[np.maximum(goals, 0)]), kind.reshape(-1).astype(np.int64), sizes,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.block)


def cut_blocks(sizes: IntArray, chunks: int) -> tuple[IntArray, IntArray]:
    """Every block in ``chunks`` pieces, fewer where bytes are fewer: block and bytes of every piece."""
    rows = [cut(int(size), chunks) for size in sizes]
    block = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    return block.astype(np.int64), np.array([n for row in rows for n in row], dtype=np.int64)


@dataclass(eq=False)
class Timetable:
    """Transfers over routes of a routing, in no order: ``piece``, ``route``, ``start`` and ``lag`` (ticks from start to
    arrival) in its direction of time, shape (transfers,); ``completion`` in ticks."""

    piece: IntArray
    route: IntArray
    start: IntArray
    lag: IntArray
    completion: int

    def reversed(self, end: int) -> Timetable:
        """Read from the end: the start is what was the arrival, ``end`` ticks being the whole time."""
        return Timetable(self.piece, self.route, end - self.start - self.lag, self.lag, end)


class TreeSearch:
    """Pieces on a routing, and the trees found so far (none before :meth:`begin`)."""

    def __init__(self, instance: FabricInstance, routing: Routing, pieces: Pieces) -> None:
        self.instance, self.routing, self.pieces = instance, routing, pieces
        self.state = routing.state(routing.table(pieces.sizes))
        self.arrays = PieceArrays(pieces.origin, pieces.goal, pieces.kind)
        single = bool(np.any(pieces.goal >= 0))
        guided = single and len(routing.ranks) <= MOST_GUIDED
        self.toward = (
            distances(self.state, int(np.argmin(pieces.sizes)), len(routing.ranks)) if guided else NO_DISTANCES
        )
        self.finish = np.zeros(len(pieces), dtype=np.int64)
        self.completion = -1
        members = int(np.sum(routing.is_member))
        deliveries = int(np.sum(np.where(pieces.goal < 0, members - 1, 1)))
        self.deliveries = deliveries
        # relays only grow trees: the greedy lets those alone pull that want a piece
        self.wide = not single and len(pieces) * len(routing.ranks) <= MOST_PULLED and members == len(routing.ranks)
        self.apart: IntArray | None = None
        self.room = 64 + 2 * deliveries + 8 * len(routing.ranks) + len(pieces)

    def _empty(self) -> TreeState:
        """Nothing reserved, with the room that there is now."""
        width = int(np.diff(self.routing.row).max(initial=1)) * 2
        return TreeState(
            self.state,
            new_intervals(self.routing.resources, 4 * self.room * width // 2 + 1024),
            new_transfers(len(self.pieces), self.room),
            new_labels(len(self.routing.ranks)),
            self.arrays,
            self.routing.is_member,
            self.toward,
        )

    def begin(self, order: IntArray, seed: int, cutoff: int = FOREVER) -> int:
        """Grow all trees in this order, from nothing. Returns the completion in ticks, negative if given up."""
        while True:
            self.tree = self._empty()
            _seeded(seed)
            self.completion = build(self.tree, order, self.finish, NO_PRICE, cutoff, left())
            demand_time()
            if self.completion != FULL:
                return self.completion
            self.room *= 2

    def spread(self, seed: int, patience: float) -> Timetable | None:
        """The event-driven greedy, for pieces that all members want; None if it cannot reach all of them."""
        count = len(self.routing.ranks)
        if self.apart is None:
            self.apart = distances(self.state, int(np.argmax(self.pieces.sizes)), count)
        looks = 4096 if len(self.pieces) * count < 100_000 else 256
        for slack in (patience, 1e18):
            piece, route, start = spread(
                self.state, self.arrays, self.routing.is_member, self.apart, slack, looks, self.routing.resources,
                seed, left(),
            )  # fmt: skip
            demand_time()
            if len(piece) == self.deliveries:
                lag = _lag_of_all(self.state, route, self.pieces.kind[piece])
                return Timetable(piece, route, start, lag, int((start + lag).max(initial=0)))
        return None

    def load(self, timetable: Timetable) -> None:
        """Go on from these transfers, with times in the routing's direction."""
        self.tree = self._empty()
        self.finish[:] = 0
        np.maximum.at(self.finish, timetable.piece, timetable.start + timetable.lag)
        _load(self.tree, timetable.piece, timetable.route, timetable.start)
        self.completion = timetable.completion

    def improve(self, rounds: int, most: int, bound: int, seed: int) -> int:
        """Large-neighbourhood search; returns the rounds made. See :func:`improve`."""
        before = self.timetable()
        self.completion, made = improve(
            self.tree, self.finish, rounds, min(most, len(self.pieces)), bound, seed, left()
        )
        if self.completion < 0:  # memory was full: back to before, with more of it
            self.room *= 2
            self.load(before)
        return int(made)

    def timetable(self) -> Timetable:
        """What has been found."""
        piece, route, start, lag = _read(self.state, self.tree.transfers, self.arrays.kind)
        return Timetable(piece, route, start, lag, self.completion)


def schedule_of(routing: Routing, pieces: Pieces, timetable: Timetable, adds: BoolArray) -> Schedule:
    """A timetable with forward times as a solution, in order of starts; hop by hop where switches store and forward,
    the hops of a transfer together (a switch passes on what came last)."""
    order = np.lexsort((timetable.route, timetable.piece, timetable.start))
    piece, route, start, adding = timetable.piece[order], timetable.route[order], timetable.start[order], adds[order]
    row, link = picked((routing.row, routing.links), route)
    if routing.hop_by_hop:
        length = np.diff(row)
        took = routing.latency[link] + _durations(routing, pieces, link, np.repeat(piece, length))
        before = np.cumsum(took) - took
        offset = before - np.repeat(before[row[:-1]], length) if len(link) else before
        start, piece, adding = np.repeat(start, length) + offset, np.repeat(piece, length), np.repeat(adding, length)
        row = np.arange(len(link) + 1, dtype=np.int64)
    return Schedule(routing.ticks, pieces.block, pieces.size, start, piece, adding, row, link)


def _durations(routing: Routing, pieces: Pieces, link: IntArray, piece: IntArray) -> IntArray:
    found: IntArray = routing.table(pieces.sizes)[routing.link_row[link], pieces.kind[piece]]
    return found


@jit
def _load(tree: TreeState, piece: IntArray, route: IntArray, start: IntArray) -> None:
    for i in range(len(piece)):
        put(tree.transfers, piece[i], route[i], start[i])
        reserve_route(tree.routing, tree.reserved, route[i], tree.pieces.kind[piece[i]], start[i])


@jit
def _lag_of_all(routing: RoutingState, route: IntArray, kind: IntArray) -> IntArray:
    found = np.zeros(len(route), dtype=np.int64)
    for i in range(len(route)):
        found[i] = lag_of(routing, route[i], kind[i])
    return found


@jit
def _seeded(seed: int) -> None:
    np.random.seed(seed)


@jit
def _read(
    routing: RoutingState, transfers: TreeTransfers, kind: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Piece, route, start and lag of every transfer, those of a piece together."""
    routes, starts, following, first = transfers.route, transfers.start, transfers.following, transfers.first
    count = 0
    for p in range(len(first)):
        i = first[p]
        while i >= 0:
            count += 1
            i = following[i]
    piece, route = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    start, lag = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    count = 0
    for p in range(len(first)):
        i = first[p]
        while i >= 0:
            piece[count], route[count], start[count] = p, routes[i], starts[i]
            lag[count] = lag_of(routing, route[count], kind[p])
            count += 1
            i = following[i]
    return piece, route, start, lag
