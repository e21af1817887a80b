"""Messages from moves that somebody states (:class:`synth.schedule.moves.Moves`): their rounds are found where none are
given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from synth.errors import Fault, InputError, UnsupportedError
from synth.schedule.moves import Moves, fault
from synth.schedule.stated import NOBODY, Ground, Hops, Stated, settled, understood
from synth_models.bine.instance import BineInstance
from synth_models.bine.solution import Messages

REDUCTIONS = ("reduce", "reduce_scatter", "allreduce")


def schedule(instance: BineInstance, moves: Moves) -> Messages:
    """The moves as messages: in a round a rank sends to one rank and receives from one, blocks that go from a rank to a
    rank in a round together; each move as early as that allows, in the order in which they were stated, those with a
    round (from 0 on) in it. Raises :class:`InputError` with all that is wrong with them, and
    :class:`UnsupportedError` for several jobs."""
    if len(instance.allocations) > 1:
        raise UnsupportedError(f"moves are of one job; the instance has {len(instance.allocations)}")
    if moves.pieces not in (None, 1):
        raise InputError([Fault("pieces", "must be left out: the instance says the blocks", moves.pieces, True)])
    ground = _ground(instance, len(instance.allocations[0]))
    stated = understood(moves, ground)
    _demand_ranks(moves, stated)
    hops = settled(moves, ground, stated, lambda earliest: _placed(stated, earliest), 0)
    rows = [
        (step, int(not adds), *ends, block)
        for row, (block, _), adds, path in zip(hops, stated.piece, stated.adds, stated.path, strict=True)
        for (step, _), ends in zip(row, pairwise(path), strict=True)
    ]
    return _messages(sorted(rows), len(ground.holder))


def _ground(instance: BineInstance, ranks: int) -> Ground:
    """What the instance asks of its one job: blocks as the family numbers them."""
    count, collective = instance.blocks(ranks), instance.collective

    def block(key: object) -> int:
        if collective == "alltoall":
            if isinstance(key, tuple) and len(key) == 2:
                return int(key[0]) * ranks + int(key[1])
            raise ValueError("must be the pair (from, to)")
        number = 0 if key is None and count == 1 else key
        if not isinstance(number, int) or not number < count:
            raise ValueError(f"must be a block's number, 0..{count - 1}" if count > 1 else "must be left out")
        return number

    holder = [instance.root] * count
    if collective in REDUCTIONS:
        holder = [NOBODY] * count
    elif collective in ("gather", "allgather"):
        holder = [number % ranks for number in range(count)]
    elif collective == "alltoall":
        holder = [number // ranks for number in range(count)]
    names, adds = [str(rank) for rank in range(ranks)], collective in ("reduce", "reduce_scatter")
    return Ground(names, frozenset(range(ranks)), block, holder, [1] * count, adds)


def _demand_ranks(moves: Moves, stated: Stated) -> None:
    """Raises :class:`InputError` for moves over links, of which there are none, and for sums over ranks in between."""
    faults = []
    for i, (path, links) in enumerate(zip(stated.path, stated.links, strict=True)):
        if links is not None:
            faults.append(fault(moves, i, "links", "there are none: messages go from rank to rank", links))
        if any(a == b for a, b in pairwise(path)):
            faults.append(fault(moves, i, "via", "names a rank twice in a row", path[1:-1]))
        elif stated.adds[i] and len(path) > 2:
            words = "leads over other ranks, where a partial sum would be added: send it rank by rank"
            faults.append(fault(moves, i, "via", words, path[1:-1]))
    if faults:
        raise InputError(faults)


def _placed(stated: Stated, earliest: Sequence[int]) -> list[Hops]:
    """Of every move the round and the target of every hop; those that say their round first."""
    sends: dict[tuple[int, int], int] = {}  # round and rank: to whom
    receives: dict[tuple[int, int], int] = {}  # round and rank: from whom
    hops: list[Hops] = [[] for _ in stated.path]

    def take(i: int, begin: int, kept: bool) -> None:
        for source, target in pairwise(stated.path[i]):
            step = begin
            while not kept and not (
                sends.get((step, source), target) == target and receives.get((step, target), source) == source
            ):
                step += 1
            sends[step, source], receives[step, target] = target, source
            hops[i].append((step, target))
            begin, kept = step + 1, False

    for i, start in enumerate(stated.start):
        if start is not None:
            take(i, round(start), True)
    for i in stated.order:
        if not hops[i]:
            take(i, max([earliest[i], *(hops[k][-1][0] + 1 for k in stated.waits[i])]), False)
    return hops


def _messages(rows: Sequence[tuple[int, ...]], blocks: int) -> Messages:
    """Rows of round, whether it is copied, ends and block, sorted: blocks one behind the other as one row."""
    runs: list[list[int]] = []
    for *key, block in rows:
        if runs and runs[-1][:4] == key and block == runs[-1][4] + runs[-1][5]:
            runs[-1][5] += 1
        else:
            runs.append([*key, block, 1])
    step, copies, src, dst, first, count = np.array(runs, dtype=np.int64).reshape(-1, 6).T
    return Messages(
        round=step, src=src, dst=dst, first=first, count=count, adds=copies == 0, job=np.zeros_like(step),
        layout=np.arange(blocks, dtype=np.int64), starts=np.array([0, blocks], dtype=np.int64),
    )  # fmt: skip
