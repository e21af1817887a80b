"""Schedules of trees for blocks with several holders and wanters, in as many pieces a block as take least time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from synth.arrays import FloatArray
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.block_trees import (
    Habit,
    Piece,
    Roads,
    Tree,
    grown,
    pieces_of,
    schedules_of,
    too_many,
    transfers_of,
)
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.scheduling.chunks import hurried
from synth_models.fabric.solution import Schedule

Toll = Callable[[Roads, Piece], FloatArray]
MOST_PIECES = 4000  # that all blocks are cut into
MOST_PARTS = 64  # of a block


def best_trees(
    instance: FabricInstance,
    options: RunOptions,
    name: str,
    habits: Sequence[Habit],
    toll: Toll | None = None,
) -> Outcome:
    """The best over habits and numbers of pieces: 1, 2, 4 …, until twice as many are no quicker. ``toll``: what routes
    cost a piece beside their seconds."""
    message = too_many(instance)
    if message is not None:
        return Outcome("unsupported", message=message)
    incumbent, parts, before = Incumbent(instance, options), 1, None
    while parts == 1 or not options.out_of_time():
        roads = Roads.of(instance, max(1, int(np.median(instance.blocks.bytes)) // parts))
        for habit in habits:
            for schedule in _made(roads, parts, habit, toll):
                incumbent.offer(schedule, f"{name}, {parts} piece{'s' if parts > 1 else ''} a block")
        parts *= 2
        large = parts > min(MOST_PARTS, int(instance.blocks.bytes.max())) or parts * len(instance.blocks) > MOST_PIECES
        if large or (before is not None and incumbent.time == before):
            break
        before = incumbent.time
    return Outcome("finished", incumbent.best, message=incumbent.told + hurried(options))


def _made(roads: Roads, parts: int, habit: Habit, toll: Toll | None) -> Iterator[Schedule]:
    """Schedules of one habit, every block in so many pieces. Raises :class:`UnsupportedError`."""
    pieces, load, trees = pieces_of(roads, parts), roads.no_load(), list[Tree]()
    for number, piece in enumerate(pieces):
        roots, costs = _roots(roads, piece, number if habit.crowd else 0), None if toll is None else toll(roads, piece)
        tree = next(filter(None, (grown(roads, piece, load, habit, root, costs) for root in roots)), None)
        if tree is None:
            raise UnsupportedError("no tree of direct routes leads from the holders of some block to its wanters")
        trees.append(tree)
    order = _in_turn([piece.block for piece in pieces])
    yield from schedules_of(roads.instance, transfers_of(roads, pieces, trees, order))


def _roots(roads: Roads, piece: Piece, first: int) -> Sequence[int]:
    """Places where a sum may be formed, the likeliest first: a wanter, or else a rank that they all are reached
    from."""
    if not piece.sums:
        return piece.wanters[:1]
    turn = first % len(piece.wanters)
    others = (place for place in range(len(roads.ranks)) if place not in piece.wanters)
    return [*piece.wanters[turn:], *piece.wanters[:turn], *others]


def _in_turn(blocks: Sequence[int]) -> list[int]:
    """The turn of every piece: the first pieces of all blocks, then the second."""
    seen: dict[int, int] = {}
    part = []
    for block in blocks:
        part.append(seen.get(block, 0))
        seen[block] = part[-1] + 1
    turn = [0] * len(blocks)
    for place, p in enumerate(sorted(range(len(blocks)), key=lambda p: (part[p], p))):
        turn[p] = place
    return turn
