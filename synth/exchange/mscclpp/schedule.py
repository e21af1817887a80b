"""The schedule of a plan: what went from GPU to GPU in its replay, as transfers of pieces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import InputError
from synth.exchange.mscclpp.plan import Plan
from synth.exchange.mscclpp.replay import Replay
from synth.exchange.mscclpp.syncs import End
from synth.exchange.transfers import Raised, Transfers
from synth.schedule.collective import ROOTED

GIVES = ("signal", "rlxsignal", "pws", "pwsf")
TAKES = ("wait", "rlxwait")


def transfers(
    plan: Plan, collective: str | None = None, root: int | None = None, part_bytes: int | None = None
) -> Transfers:
    """The schedule of a plan that :func:`synth.exchange.mscclpp.faults` finds nothing wrong with, otherwise raises
    :class:`InputError` with the faults; ``UnsupportedError`` as there.

    A plan is of any size: a part counts as ``part_bytes`` (without, 16 bytes a chunk), cut into its chunks at whole
    bytes; raises :class:`InputError` where that leaves chunks without a byte. Start and end are the numbers of the
    operation that moves a piece and of the one that uses it, in one order that the plan allows.
    """
    return raised(plan, collective, root, part_bytes).transfers


def raised(plan: Plan, collective: str | None = None, root: int | None = None, part_bytes: int | None = None) -> Raised:
    """The same with what each transfer waits for."""
    replay = Replay(plan, collective, root)
    wrong = replay.run()
    if wrong:
        raise InputError(wrong)
    goal, ranks = replay.goal, len(plan.gpus)
    each = goal.each
    size = each * 16 if part_bytes is None else part_bytes
    if size < each:
        raise InputError(f"{each} chunks of a part that has {size} bytes")
    runs = sorted(_runs(replay, ranks))
    ends = (end for run in runs for end in (run.low, run.high))
    bounds = np.array(sorted({*range(0, each * _parts(goal.collective, ranks) + 1, each), *ends}), dtype=np.int64)
    rows: list[tuple[int, int, int, bool, int, int]] = []
    for began, move, low, high, src, dst in runs:
        used = replay.used.get(move, began + 1)
        pieces = range(int(np.searchsorted(bounds, low)), int(np.searchsorted(bounds, high)))
        rows += [(piece, src, dst, move in replay.adding, began, used) for piece in pieces]
    piece, sender, receiver, adds, start, end_of = np.array(rows, dtype=np.int64).reshape(-1, 6).T.copy()
    moved = np.zeros(len(bounds) - 1, dtype=bool)
    moved[piece] = True
    part = bounds[:-1] // each
    offset, end = ((units - part * each) * size // each for units in (bounds[:-1], bounds[1:]))
    kept = np.isin(part, np.unique(part[moved]))
    number = np.cumsum(kept) - 1
    move_of = [move for _, move in _by_transfer(runs, bounds)]
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
    )
    return Raised(made, *_spread(block_order(replay), move_of))


def _together(replay: Replay, move_of: list[int]) -> IntArray | None:
    """The streams that a switch adds or copies; ``move_of``: the move of every transfer."""
    if not replay.together:
        return None
    return np.array([replay.together.get(move, -1) for move in move_of], dtype=np.int64)


def _by_transfer(runs: list[_Run], bounds: IntArray) -> Iterator[tuple[int, int]]:
    """The piece and the move of every transfer."""
    for run in runs:
        for piece in range(int(np.searchsorted(bounds, run.low)), int(np.searchsorted(bounds, run.high))):
            yield piece, run.move


def _spread(rows: list[list[int]], move: list[int]) -> tuple[IntArray, IntArray]:
    """Rows of moves as rows of transfers, ``move`` being the move of each."""
    of: list[list[int]] = [[] for _ in rows]
    for transfer, number in enumerate(move):
        of[number].append(transfer)
    found = [[transfer for other in rows[number] for transfer in of[other]] for number in move]
    start = np.concatenate([[0], np.cumsum([len(row) for row in found])]).astype(np.int64)
    return start, np.array([transfer for row in found for transfer in row], dtype=np.int64)


def block_order(replay: Replay) -> list[list[int]]:
    """For every move the moves that its thread block has waited for when it makes it: of each of its channels those
    that the last signal it took stands behind. (Semaphores and barriers within a GPU are not followed.)"""
    made: dict[tuple[int, int], list[int]] = defaultdict(list)  # by thread block and place in it
    for move, place in enumerate(replay.by):
        made[place].append(move)
    signals = _signals(replay, made)
    rows: list[list[int]] = [[] for _ in replay.moves]
    for block in replay.syncs.blocks:
        taken: dict[End, int] = defaultdict(int)
        known: dict[End, list[int]] = {}
        for k, op in enumerate(replay.syncs.ops(block)):
            for channel in op.channels if op.name in TAKES else ():
                end = block.rank, op.channel_type, channel
                given = signals[replay.syncs.other[end]][taken[end]]
                taken[end] += 1
                known[end] = given or known.get(end, [])
            for move in made[block.entry, k]:
                if replay.moves[move][0] == block.rank:
                    rows[move] = [other for several in known.values() for other in several]
    return rows


def _signals(replay: Replay, made: Mapping[tuple[int, int], list[int]]) -> Mapping[End, list[list[int]]]:
    """Of every end of a channel its signals in order: the moves to the peer that the thread block has made since the
    last one. ``made``: the moves by thread block and place in it."""
    found: dict[End, list[list[int]]] = defaultdict(list)
    for block in replay.syncs.blocks:
        since: dict[int, list[int]] = defaultdict(list)  # by peer
        for k, op in enumerate(replay.syncs.ops(block)):
            for move in made.get((block.entry, k), ()):
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
