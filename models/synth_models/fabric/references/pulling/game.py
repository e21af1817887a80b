"""One way to cut an instance into pieces, and trees for them: built greedily, improved, read out as transfers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synth.deadline import demand_time, left
from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.parts.chunks import cut
from synth_models.fabric.parts.collective import EVERYONE
from synth_models.fabric.references.pulling.board import Board, distances, lag_of
from synth_models.fabric.references.pulling.book import new_book
from synth_models.fabric.references.pulling.grow import new_labels, new_slots, put, reserve
from synth_models.fabric.references.pulling.search import build, improve
from synth_models.fabric.references.pulling.spread import spread
from synth_models.fabric.solution import BoolArray, IntArray, Schedule

MOST_PULLED = 20_000_000  # pieces times ranks of the event-driven greedy
MOST_GUIDED = 1200  # ranks up to which distances between all of them are known
NO_PRICE = np.zeros(0)
NOWHERE = np.zeros((0, 0), dtype=np.int64)
FOREVER = 2**62


@dataclass(frozen=True, eq=False)
class Pieces:
    """``block``, ``size`` (bytes), ``origin`` and ``goal`` (numbers of ranks on the board, goal -1: all members), and
    ``kind``, the row of ``sizes``; shape (pieces,) each."""

    block: IntArray
    size: IntArray
    origin: IntArray
    goal: IntArray
    kind: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, board: Board, block: Any, size: Any, origin: Any, goal: Any) -> Pieces:
        """Of node numbers."""
        place = np.full(int(board.ranks.max(initial=0)) + 1, -1, dtype=np.int64)
        place[board.ranks] = np.arange(len(board.ranks))
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
class Moves:
    """Transfers on a board, in no order: ``piece``, ``route``, ``start`` and ``lag`` (ticks from start to arrival) as
    the board is played, shape (transfers,); ``completion`` in ticks."""

    piece: IntArray
    route: IntArray
    start: IntArray
    lag: IntArray
    completion: int

    def backwards(self, end: int) -> Moves:
        """Read from the end: the start is what was the arrival, ``end`` ticks being the whole time."""
        return Moves(self.piece, self.route, end - self.start - self.lag, self.lag, end)


class Game:
    """A board with pieces on it, and the trees found so far (none before :meth:`begin`)."""

    def __init__(self, instance: FabricInstance, board: Board, pieces: Pieces) -> None:
        self.instance, self.board, self.pieces = instance, board, pieces
        self.field = board.kernel(board.table(pieces.sizes))
        self.labels = new_labels(len(board.ranks))
        self.given = (pieces.origin, pieces.goal, pieces.kind)
        single = bool(np.any(pieces.goal >= 0))
        guided = single and len(board.ranks) <= MOST_GUIDED
        self.toward = distances(self.field, int(np.argmin(pieces.sizes)), len(board.ranks)) if guided else NOWHERE
        self.finish = np.zeros(len(pieces), dtype=np.int64)
        self.completion = -1
        members = int(np.sum(board.is_member))
        deliveries = int(np.sum(np.where(pieces.goal < 0, members - 1, 1)))
        self.deliveries = deliveries
        # relays only grow trees: the greedy lets those alone pull that want a piece
        self.wide = not single and len(pieces) * len(board.ranks) <= MOST_PULLED and members == len(board.ranks)
        self.apart: IntArray | None = None
        self.room = 64 + 2 * deliveries + 8 * len(board.ranks) + len(pieces)

    def begin(self, order: IntArray, seed: int, cutoff: int = FOREVER) -> int:
        """Grow all trees in this order, from nothing. Returns the completion in ticks, negative if given up."""
        width = int(np.diff(self.board.row).max(initial=1)) * 2
        while True:
            self.book = new_book(self.board.resources, 4 * self.room * width // 2 + 1024)
            self.slots = new_slots(len(self.pieces), self.room)
            _seeded(seed)
            self.completion = build(
                self.field, self.book, self.slots, self.labels, self.given, order, self.finish, self.board.is_member,
                NO_PRICE, self.toward, cutoff, left(),
            )  # fmt: skip
            demand_time()
            if self.completion != -3:
                return self.completion
            self.room *= 2

    def spread(self, seed: int, patience: float) -> Moves | None:
        """The event-driven greedy, for pieces that all members want; None if it cannot reach all of them."""
        count = len(self.board.ranks)
        if self.apart is None:
            self.apart = distances(self.field, int(np.argmax(self.pieces.sizes)), count)
        looks = 4096 if len(self.pieces) * count < 100_000 else 256
        for slack in (patience, 1e18):
            piece, route, start = spread(
                self.field,
                self.given,
                self.board.is_member,
                self.apart,
                slack,
                looks,
                self.board.resources,
                seed,
                left(),
            )
            demand_time()
            if len(piece) == self.deliveries:
                lag = _lag_of_all(self.field, route, self.pieces.kind[piece])
                return Moves(piece, route, start, lag, int((start + lag).max(initial=0)))
        return None

    def load(self, moves: Moves) -> None:
        """Go on from these transfers, with times as the board is played."""
        width = int(np.diff(self.board.row).max(initial=1)) * 2
        self.book = new_book(self.board.resources, 4 * self.room * width // 2 + 1024)
        self.slots = new_slots(len(self.pieces), self.room)
        self.finish[:] = 0
        np.maximum.at(self.finish, moves.piece, moves.start + moves.lag)
        _load(self.field, self.book, self.slots, self.given, moves.piece, moves.route, moves.start)
        self.completion = moves.completion

    def improve(self, rounds: int, most: int, bound: int, seed: int) -> int:
        """Large-neighbourhood search; returns the rounds made. See :func:`improve`."""
        before = self.moves()
        self.completion, made = improve(
            self.field, self.book, self.slots, self.labels, self.given, self.finish, self.board.is_member,
            self.toward, rounds, min(most, len(self.pieces)), bound, seed, self.board.resources,
            left(),
        )  # fmt: skip
        if self.completion < 0:  # memory was full: back to before, with more of it
            self.room *= 2
            self.load(before)
        return int(made)

    def moves(self) -> Moves:
        """What has been found."""
        piece, route, start, lag = _read(self.field, self.slots, self.given)
        return Moves(piece, route, start, lag, self.completion)


def schedule_of(board: Board, pieces: Pieces, moves: Moves, adds: BoolArray) -> Schedule:
    """Moves with forward times as a solution, in order of their starts; hop by hop where switches store and forward,
    the hops of a transfer together (a switch passes on what came last)."""
    order = np.lexsort((moves.route, moves.piece, moves.start))
    piece, route, start, adding = moves.piece[order], moves.route[order], moves.start[order], adds[order]
    length = np.diff(board.row)[route]
    row = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    at = np.arange(row[-1]) - np.repeat(row[:-1] - board.row[:-1][route], length)
    link = board.links[at]
    if board.hop_by_hop:
        took = board.latency[link] + _durations(board, pieces, link, np.repeat(piece, length))
        before = np.cumsum(took) - took
        offset = before - np.repeat(before[row[:-1]], length) if len(link) else before
        start, piece, adding = np.repeat(start, length) + offset, np.repeat(piece, length), np.repeat(adding, length)
        row = np.arange(len(link) + 1, dtype=np.int64)
    return Schedule(board.ticks, pieces.block, pieces.size, start, piece, adding, row, link)


def _durations(board: Board, pieces: Pieces, link: IntArray, piece: IntArray) -> IntArray:
    found: IntArray = board.table(pieces.sizes)[board.link_row[link], pieces.kind[piece]]
    return found


@jit
def _load(board: Any, book: Any, slots: Any, pieces: Any, piece: Any, route: Any, start: Any) -> None:
    for i in range(len(piece)):
        put(slots, piece[i], route[i], start[i])
        reserve(board, book, route[i], pieces[2][piece[i]], start[i])


@jit
def _lag_of_all(board: Any, route: Any, kind: Any) -> Any:
    found = np.zeros(len(route), dtype=np.int64)
    for i in range(len(route)):
        found[i] = lag_of(board, route[i], kind[i])
    return found


@jit
def _seeded(seed: Any) -> None:
    np.random.seed(seed)


@jit
def _read(board: Any, slots: Any, pieces: Any) -> Any:
    route, start, following, first, _ = slots
    count = 0
    for p in range(len(first)):
        i = first[p]
        while i >= 0:
            count += 1
            i = following[i]
    out = np.zeros((4, count), dtype=np.int64)
    count = 0
    for p in range(len(first)):
        i = first[p]
        while i >= 0:
            out[0, count], out[1, count], out[2, count] = p, route[i], start[i]
            out[3, count] = lag_of(board, route[i], pieces[2][p])
            count += 1
            i = following[i]
    return out[0], out[1], out[2], out[3]
