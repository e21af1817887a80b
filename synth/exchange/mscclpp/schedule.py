"""The schedule of a plan: what went from GPU to GPU in its replay, as transfers of pieces."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import InputError
from synth.exchange.collector import collecting_seldom
from synth.exchange.moves_from_algorithm import MOST_MOVES, repeated
from synth.exchange.mscclpp.loops import loops_alone, passes_of, replays, unrolled
from synth.exchange.mscclpp.plan import GIVES, TAKES, ExecutionPlan, Op
from synth.exchange.mscclpp.replay import Replay
from synth.exchange.mscclpp.syncs import Block, End
from synth.exchange.transfers import Raised, Transfers
from synth.schedule.collective import ROOTED

MOST_FOLLOWED = 512  # passes


def transfers(
    plan: ExecutionPlan, collective: str | None = None, root: int | None = None, part_bytes: int | None = None
) -> Transfers:
    """The schedule of a plan that :func:`synth.exchange.mscclpp.faults` finds nothing wrong with, otherwise raises
    :class:`InputError` with the faults; ``UnsupportedError`` as there.

    A plan is of any size: a part counts as ``part_bytes`` (without, 16 bytes a chunk), cut into its chunks at whole
    bytes; raises :class:`InputError` where that leaves chunks without a byte. Start and end are the numbers of the
    operation that moves a piece and of the one that uses it, in one order that the plan allows.
    """
    return raised(plan, collective, root, part_bytes).transfers


def raised(
    plan: ExecutionPlan, collective: str | None = None, root: int | None = None, part_bytes: int | None = None
) -> Raised:
    """The same with what each transfer waits for."""
    return raised_of(replayed(plan, collective, root), part_bytes)


class Replayed(NamedTuple):
    """A ``plan`` with its ``replay`` in one pass of its loops."""

    plan: ExecutionPlan
    replay: Replay

    def passes(self, part_bytes: int) -> int:
        """How many passes its loops make over parts of so many bytes. Raises as
        :func:`synth.exchange.mscclpp.loops.passes_of`."""
        return passes_of(self.plan, Fraction(part_bytes * self.plan.units, self.replay.goal.each))


def replayed(plan: ExecutionPlan, collective: str | None = None, root: int | None = None) -> Replayed:
    """The plan with its replay, for several sizes of its parts. Raises as :func:`transfers`."""
    wrong, replay = replays(plan, collective, root)
    if wrong:
        raise InputError(wrong)
    return Replayed(plan, replay)


@collecting_seldom()
def raised_of(found: Replayed, part_bytes: int | None = None) -> Raised:
    """What a plan that has been replayed moves, as :func:`raised`; loops make as many passes as the size asks for, and
    fewer, of larger slices, where they would be more than :data:`MOST_FOLLOWED` or :data:`MOST_MOVES` moves."""
    plan, replay = found
    each = replay.goal.each
    size = each * 16 if part_bytes is None else part_bytes
    if size < each:
        raise InputError(f"{each} chunks of a part that has {size} bytes")
    most = min(MOST_FOLLOWED, size // each, max(1, MOST_MOVES // max(1, len(replay.moves))))
    passes = min(found.passes(size), most)
    if passes == 1:
        return _raised(replay, size)[0]
    if loops_alone(plan):
        return repeated(*_once(replay, size), passes)
    whole = Replay(unrolled(plan, passes), replay.goal.collective, replay.goal.root)
    whole.run()
    return _raised(whole, size)[0]


def _once(replay: Replay, size: int) -> tuple[Raised, tuple[IntArray, IntArray]]:
    """What a replay has moved of parts of so many bytes, and for every transfer, as rows, those that its thread block
    has waited for by its end."""
    found, by_its_end, move_of = _raised(replay, size)
    return found, _spread(by_its_end, move_of)


def _raised(replay: Replay, size: int) -> tuple[Raised, list[IntArray], list[int]]:
    """What a replay has moved of parts of so many bytes; for every move those that its thread block has waited for by
    its end; and the move of every transfer."""
    plan = replay.plan
    goal, ranks, each = replay.goal, len(plan.gpus), replay.goal.each
    runs = sorted(_runs(replay, ranks))
    lows, highs = [run.low for run in runs], [run.high for run in runs]
    cuts = {*range(0, each * _parts(goal.collective, ranks) + 1, each), *lows, *highs}
    bounds = np.array(sorted(cuts), dtype=np.int64)
    rows: list[tuple[int, int, int, bool, int, int]] = []
    move_of: list[int] = []  # of every transfer
    first, last = np.searchsorted(bounds, lows).tolist(), np.searchsorted(bounds, highs).tolist()  # pieces
    for (began, move, _, _, src, dst), low, high in zip(runs, first, last, strict=True):
        used = replay.used.get(move, began + 1)
        rows += [(piece, src, dst, move in replay.adding, began, used) for piece in range(low, high)]
        move_of += [move] * (high - low)
    piece, sender, receiver, adds, start, end_of = np.array(rows, dtype=np.int64).reshape(-1, 6).T.copy()
    moved = np.zeros(len(bounds) - 1, dtype=bool)
    moved[piece] = True
    part = bounds[:-1] // each
    offset, end = ((units - part * each) * size // each for units in (bounds[:-1], bounds[1:]))
    kept = np.isin(part, np.unique(part[moved]))
    number = np.cumsum(kept) - 1
    made = Transfers(
        name=plan.name,
        collective=goal.collective,
        ranks=ranks,
        root=goal.root if goal.collective in ROOTED else None,
        part_bytes=size,
        piece_part=part[kept],
        piece_offset=offset[kept],
        piece_bytes=end[kept] - offset[kept],
        piece=number[piece],
        src=sender,
        dst=receiver,
        adds=adds.astype(bool),
        start_s=start.astype(float),
        end_s=end_of.astype(float),
        channel_hint=np.full(len(piece), -1, dtype=np.int64),
        together=_together(replay, move_of),
        wants=None if goal.wants is None else goal.wants * size // each,
    )
    when_made, by_its_end = block_order(replay)
    block = np.array([replay.by[move][0] for move in move_of], dtype=np.int64)
    return Raised(made, *_spread(when_made, move_of), block, plan.packets), by_its_end, move_of


def _together(replay: Replay, move_of: list[int]) -> IntArray | None:
    """The streams that a switch adds or copies; ``move_of``: the move of every transfer."""
    if not replay.together:
        return None
    return np.array([replay.together.get(move, -1) for move in move_of], dtype=np.int64)


def _spread(rows: list[IntArray], move: list[int]) -> tuple[IntArray, IntArray]:
    """Rows of moves as rows of transfers, ``move`` being the move of each."""
    order = np.argsort(move, kind="stable")
    begin = np.searchsorted(np.array(move)[order], np.arange(len(rows) + 1))
    size = np.diff(begin)  # transfers of every move
    found = [rows[number] for number in move]
    moves = np.concatenate([order[:0], *found])
    last = np.cumsum(size[moves])
    start = np.concatenate([[0], np.concatenate([[0], last])[np.cumsum([len(row) for row in found], dtype=np.int64)]])
    at = np.repeat(begin[moves] - (last - size[moves]), size[moves]) + np.arange(last[-1] if len(last) else 0)
    return start.astype(np.int64), order[at].astype(np.int64)


class _Taken(NamedTuple):
    """The signals that have been taken over one end of a channel, and the moves that the last of them stands behind."""

    number: int
    moves: list[int]


@dataclass(frozen=True, eq=False)
class _Known:
    """What thread blocks that met have waited for: by end of a channel the signals that have been taken over it."""

    taken: Mapping[End, _Taken] = field(default_factory=dict)

    @cached_property
    def moves(self) -> IntArray:
        """The moves that all those signals stand behind, end after end."""
        return np.array([move for one in self.taken.values() for move in one.moves], dtype=np.int64)

    @cached_property
    def span(self) -> Mapping[End, tuple[int, int]]:
        """Where the moves of every end stand among all."""
        last = list(accumulate(len(one.moves) for one in self.taken.values()))
        return dict(zip(self.taken, zip([0, *last], last, strict=False), strict=True))

    def without(self, ends: Iterable[End]) -> IntArray:
        """The moves but for those of some ends."""
        spans = [self.span[end] for end in ends if end in self.taken]
        if not spans:
            return self.moves
        left = np.ones(len(self.moves), dtype=bool)
        for low, high in spans:
            left[low:high] = False
        return self.moves[left]


@dataclass(eq=False)
class _Walk:
    """A thread block on its way through its operations: what it knew when it last met others (``met``), what it has
    waited for itself since (``own``), and all that as one row."""

    block: Block
    next: int = 0
    met: _Known = field(default_factory=_Known)
    own: dict[End, _Taken] = field(default_factory=dict)
    row: IntArray | None = None

    def take(self, end: End, signals: list[list[int]]) -> None:
        """One more signal over an end; ``signals``: all that are given over its other end, in order."""
        last = self.own.get(end) or self.met.taken.get(end, _Taken(0, []))  # nobody else takes signals over this end
        given = signals[last.number]
        self.own[end], self.row = _Taken(last.number + 1, given or last.moves), None

    def learn(self, joint: _Known) -> None:
        """All that those know who met."""
        self.met, self.own, self.row = joint, {}, None

    @property
    def known(self) -> _Known:
        """What it has waited for until now."""
        return _joint([self]) if self.own else self.met

    def waits(self) -> IntArray:
        """The moves that are over when this thread block goes on."""
        if self.row is None:
            own = [move for one in self.own.values() for move in one.moves]
            self.row = np.concatenate([self.met.without(self.own), np.array(own, dtype=np.int64)])
        return self.row


def _joint(walks: Sequence[_Walk], more: Sequence[_Known] = ()) -> _Known:
    """What all of them know together."""
    found: dict[End, _Taken] = {}
    several = {id(one): one.taken for one in (*(walk.met for walk in walks), *more)}  # many share what they met with
    for taken in (*several.values(), *(walk.own for walk in walks)):
        for end, one in taken.items():
            if end not in found or found[end].number < one.number:
                found[end] = one
    return _Known(found)


def block_order(replay: Replay) -> tuple[list[IntArray], list[IntArray]]:
    """For every move the moves that its thread block has waited for when it makes it: of each of its channels those
    that the last signal it took stands behind; and what thread blocks that it met at a barrier, or whose release of a
    semaphore it acquired, had waited for until then. And for every move those that its thread block has waited for by
    its end."""
    made: dict[tuple[int, int], list[int]] = defaultdict(list)  # by thread block and place in it
    for move, place in enumerate(replay.by):
        made[place].append(move)
    order = _Order(replay, made)
    order.walk()
    return order.rows, order.ends


class _Order:
    """All thread blocks on their way, each as far as barriers and semaphores let it."""

    def __init__(self, replay: Replay, made: Mapping[tuple[int, int], list[int]]) -> None:
        self.replay, self.made, self.signals = replay, made, _signals(replay, made)
        self.rows: list[IntArray] = [np.zeros(0, dtype=np.int64)] * len(replay.moves)
        self.ends = list(self.rows)
        self.met: dict[tuple[int, int], list[_Walk]] = defaultdict(list)
        gpus = replay.plan.gpus
        self.free = {(rank, k): first for rank, gpu in enumerate(gpus) for k, first in enumerate(gpu.semaphores)}
        self.released: dict[tuple[int, int], deque[_Known]] = defaultdict(deque)

    def walk(self) -> None:
        """To the end of all thread blocks, which the replay has found to end."""
        walks, moving = [_Walk(block) for block in self.replay.syncs.blocks], True
        while moving:
            moving = sum(self._on(one) for one in walks) > 0
        last = {one.block.entry: one.waits() for one in walks}
        for move, (entry, _) in enumerate(self.replay.by):
            if self.replay.moves[move][0] == self.replay.syncs.by_entry[entry].rank:
                self.ends[move] = last[entry]

    def _on(self, one: _Walk) -> bool:
        ops, before = self.replay.syncs.ops(one.block), one.next
        while one.next < len(ops):
            op = ops[one.next]
            if op.name == "barrier":
                self._meet(one, op)
                break
            if op.name == "sem_acquire" and not self._acquired(one, op):
                break
            if op.name == "sem_release":
                for semaphore in op.semaphores:
                    self.released[one.block.rank, semaphore].append(one.known)
            for channel in op.channels if op.name in TAKES else ():
                end = (one.block.rank, op.channel_type, channel)
                one.take(end, self.signals[self.replay.syncs.other[end]])
            for move in self.made.get((one.block.entry, one.next), ()) if op.src else ():
                if self.replay.moves[move][0] == one.block.rank:
                    self.rows[move] = one.waits()
            one.next += 1
        return one.next > before

    def _meet(self, one: _Walk, op: Op) -> None:
        there = self.met[one.block.rank, op.barrier]
        if one not in there:
            there.append(one)
        if len(there) < op.parties:
            return
        joint = _joint(there)
        for other in there:
            other.learn(joint)
            other.next += 1
        there.clear()

    def _acquired(self, one: _Walk, op: Op) -> bool:
        keys = [(one.block.rank, semaphore) for semaphore in op.semaphores]
        if any(not self.free[key] and not self.released[key] for key in keys):
            return False
        for key in keys:
            if self.free[key]:
                self.free[key] -= 1
            else:
                one.learn(_joint([one], [self.released[key].popleft()]))
        return True


def _signals(replay: Replay, made: Mapping[tuple[int, int], list[int]]) -> Mapping[End, list[list[int]]]:
    """Of every end of a channel its signals in order: the moves to the peer that the thread block has made since the
    last one. ``made``: the moves by thread block and place in it."""
    found: dict[End, list[list[int]]] = defaultdict(list)
    for block in replay.syncs.blocks:
        since: dict[int, list[int]] = defaultdict(list)  # by peer
        for k, op in enumerate(replay.syncs.ops(block)):
            for move in made.get((block.entry, k), ()) if op.src else ():
                since[replay.moves[move][1]].append(move)
            for channel in op.channels if op.name in GIVES else ():
                peer = replay.plan.gpus[block.rank].peers[op.channel_type][channel]
                found[block.rank, op.channel_type, channel].append(since.pop(peer, []))
    return found


class _Run(NamedTuple):
    """Units that follow each other in one part and go in one move: the operation that moves them, the move's number,
    the first unit and the one behind the last, sender and receiver."""

    began: int
    move: int
    low: int
    high: int
    src: int
    dst: int


def _runs(replay: Replay, ranks: int) -> Iterator[_Run]:
    goal, each = replay.goal, replay.goal.each
    for k, (src, dst, values) in enumerate(replay.moves):
        items = [-1 if value is None else _unit(goal.collective, goal.root, value[0], each, ranks) for value in values]
        first = 0
        for i in range(1, len(items) + 1):
            if i == len(items) or items[i] != items[i - 1] + 1 or items[i] % each == 0:
                yield _Run(replay.began[k], k, items[first], items[first] + i - first, src, dst)
                first = i


def _parts(collective: str, ranks: int) -> int:
    if collective == "alltoall":
        return ranks * ranks
    return 1 if collective in ("broadcast", "reduce", "allreduce") else ranks


def _unit(collective: str, root: int, item: int, each: int, ranks: int) -> int:
    """The place of an item of the replay among the units of all parts in turn."""
    if collective in ("scatter", "broadcast"):
        return item - root * each * (ranks if collective == "scatter" else 1)
    return item
