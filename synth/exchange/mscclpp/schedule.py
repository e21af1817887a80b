"""The schedule of a plan: what went from GPU to GPU in its replay, as transfers of pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from synth.errors import InputError
from synth.exchange.mscclpp.plan import Plan
from synth.exchange.mscclpp.replay import Replay
from synth.exchange.transfers import Transfers
from synth.schedule.collective import ROOTED


def transfers(
    plan: Plan, collective: str | None = None, root: int | None = None, part_bytes: int | None = None
) -> Transfers:
    """The schedule of a plan that :func:`synth.exchange.mscclpp.faults` finds nothing wrong with, otherwise raises
    :class:`InputError` with the faults; ``UnsupportedError`` as there.

    A plan is of any size: a part counts as ``part_bytes`` (without, 16 bytes a chunk), cut into its chunks at whole
    bytes; raises :class:`InputError` where that leaves chunks without a byte. Start and end are the numbers of the
    operation that moves a piece and of the one that uses it, in one order that the plan allows.
    """
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
    return Transfers(
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
    )


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
