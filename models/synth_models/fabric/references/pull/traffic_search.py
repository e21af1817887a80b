"""``pull`` for blocks with several holders and wanters: trees grown at the load so far, then some grown again.

Pieces of all blocks grow their trees one after the other, where travel and load cost least
(:mod:`synth_models.fabric.plans.block_trees`), in several numbers of pieces and with several habits. Of the best, a few
pieces, those over the busiest links more often, lose their trees and grow others; what is not slower is kept. All
transfers are timed by list scheduling. The same seed gives the same schedule unless the time limit ends the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from synth.errors import UnsupportedError
from synth.method import Outcome
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.plans.block_trees import (
    Habit,
    Piece,
    Roads,
    Tree,
    add_load,
    grown,
    pieces_of,
    schedules_of,
    too_many,
    transfers_of,
)
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.references.pull.tuned import (
    FINER,
    HABITS,
    MOST_TREES,
    MOST_TREES_A_BLOCK,
    REGROWN,
    TREE_ROUNDS,
    TREE_WORK,
)
from synth_models.fabric.scheduling.chunks import seconds
from synth_models.fabric.solution import Schedule


@dataclass
class _Draft:
    """Trees of all pieces, in the order of their turns, and the schedule made of them."""

    roads: Roads
    parts: int
    pieces: list[Piece]
    trees: list[Tree]
    order: list[int]
    schedule: Schedule
    time: Fraction


def propose(incumbent: Incumbent) -> Outcome:
    """Offer what the search finds; raises :class:`UnsupportedError` where no trees lead to all wanters."""
    instance = incumbent.instance
    message = too_many(instance)
    if message is not None:
        return Outcome("unsupported", message=message)
    incumbent.least = max(incumbent.least, quick_bound(instance))
    random = np.random.default_rng(incumbent.options.seed)
    best, parts, worse = None, 1, 0
    while worse < 2 and not incumbent.over():
        found = _first(incumbent, parts, random)
        if found is None:
            raise UnsupportedError("no tree of direct routes leads from the holders of some block to its wanters")
        worse = 0 if best is None or found.time < best.time * Fraction(FINER) else worse + 1
        best = found if best is None or found.time < best.time else best
        parts *= 2
        if (
            parts > min(MOST_TREES_A_BLOCK, int(instance.blocks.bytes.max()))
            or parts * len(instance.blocks) > MOST_TREES
        ):
            break
    if best is not None:
        _improved(incumbent, best, random)
    words = f"{incumbent.told}; best of {incumbent.tried} schedules"
    if incumbent.hurried:
        words += "; the time limit ended the search, so that another run may find another schedule"
    return Outcome("finished", incumbent.best, message=words)


def _first(incumbent: Incumbent, parts: int, random: np.random.Generator) -> _Draft | None:
    """The best of all habits in so many parts a block."""
    instance = incumbent.instance
    roads = Roads.of(instance, max(1, int(np.median(instance.blocks.bytes)) // parts))
    pieces, best = pieces_of(roads, parts), None
    for habit in HABITS:
        if best is not None and incumbent.over():
            break
        order = _turns(pieces, random)
        load, trees = roads.no_load(), dict[int, Tree]()
        for p in sorted(range(len(pieces)), key=lambda p: order[p]):
            tree = grown(roads, pieces[p], load, habit, _root(pieces[p], p))
            if tree is None:
                return None
            trees[p] = tree
        made = _timed(incumbent, roads, parts, pieces, [trees[p] for p in range(len(pieces))], order)
        best = made if best is None or made.time < best.time else best
    return best


def _turns(pieces: Sequence[Piece], random: np.random.Generator) -> list[int]:
    """The turn of every piece: the first parts of all blocks, the largest blocks first, then the second parts."""
    part, seen = [], dict[int, int]()
    for piece in pieces:
        seen[piece.block] = seen.get(piece.block, -1) + 1
        part.append(seen[piece.block])
    keys = sorted(range(len(pieces)), key=lambda p: (part[p], -pieces[p].bytes, random.random()))
    turn = [0] * len(pieces)
    for place, p in enumerate(keys):
        turn[p] = place
    return turn


def _root(piece: Piece, number: int) -> int:
    """Where a sum is formed: the wanters take turns."""
    return piece.wanters[number % len(piece.wanters)]


def _timed(
    incumbent: Incumbent, roads: Roads, parts: int, pieces: list[Piece], trees: list[Tree], order: list[int]
) -> _Draft:
    """The quickest schedule of these trees, offered."""
    transfers = transfers_of(roads, pieces, trees, order)
    made = list(schedules_of(incumbent.instance, transfers))
    schedule = min(made, key=lambda one: seconds(incumbent.instance, one))
    incumbent.offer(schedule, f"trees of {parts} piece{'s' if parts > 1 else ''} a block")
    return _Draft(roads, parts, pieces, trees, order, schedule, seconds(incumbent.instance, schedule))


def _improved(incumbent: Incumbent, draft: _Draft, random: np.random.Generator) -> None:
    """Grow a few trees again, round by round."""
    roads, pieces = draft.roads, draft.pieces
    load = roads.no_load()
    for piece, tree in zip(pieces, draft.trees, strict=True):
        add_load(roads, piece, tree, load, 1.0)
    deliveries = sum(len(tree.gather) + len(tree.spread) for tree in draft.trees)
    for _ in range(min(TREE_ROUNDS, TREE_WORK // max(1, deliveries))):
        if incumbent.over():
            return
        chosen = _chosen(draft, load, random)
        trees, order, trial = list(draft.trees), list(draft.order), load.copy()
        for p in chosen:
            add_load(roads, pieces[p], trees[p], trial, -1.0)
        habit = Habit(float(random.choice([0.1, 0.5, 1.0, 2.0, 5.0])), float(random.random()))
        for p in random.permutation(chosen).tolist():
            root = int(random.choice(pieces[p].wanters)) if pieces[p].sums else None
            other = grown(roads, pieces[p], trial, habit, root)
            if other is None:
                break
            trees[p] = other
        else:
            if random.random() < 0.5:
                a, b = random.choice(len(pieces), 2)
                order[a], order[b] = order[b], order[a]
            made = _timed(incumbent, roads, draft.parts, pieces, trees, order)
            if made.time <= draft.time:
                draft, load = made, trial


def _chosen(draft: _Draft, load: np.ndarray, random: np.random.Generator) -> list[int]:
    """Pieces to grow again: half by chance, half of those over the busiest link."""
    count = max(1, int(REGROWN * len(draft.pieces)))
    busiest = int(load.argmax())
    there = [
        p
        for p, tree in enumerate(draft.trees)
        if any(
            (draft.roads.resource[list(draft.roads.routes[k])] == busiest).any() for k in (*tree.gather, *tree.spread)
        )
    ]
    some = random.choice(there, min(len(there), -(-count // 2)), replace=False).tolist() if there else []
    return sorted({*some, *random.choice(len(draft.pieces), count // 2 + 1).tolist()})
