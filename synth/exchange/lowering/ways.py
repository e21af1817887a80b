"""Which pieces go the same way, so that one thread block a rank can take them on: the rings of several rings, and the
trees of several trees.

Pieces of one way have, together, one rank behind and one before every rank; where a piece branches, those of its way
make the very same moves. Complexity: moves times ways.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.exchange.transfers import Transfers

MOST_WAYS = 32  # more are no help: an executor has as many channels
MOST_MOVES = 2**17


class _Line(NamedTuple):
    """A ring or a part of one: its number, and of a rank the one ``after`` and the one ``before`` it."""

    number: int
    after: dict[int, int]
    before: dict[int, int]


def ways(t: Transfers) -> IntArray:
    """The way of every piece, numbered from 0 in the order of the first moves; shape (pieces,). All of one where there
    would be more than :data:`MOST_WAYS`."""
    found = np.zeros(len(t.piece_part), dtype=np.int64)
    if len(t.piece) > MOST_MOVES:
        return found
    moves: dict[int, set[tuple[int, int]]] = {}
    for piece, src, dst in zip(t.piece.tolist(), t.src.tolist(), t.dst.tolist(), strict=True):
        moves.setdefault(piece, set()).add((src, dst))
    trees: dict[frozenset[tuple[int, int]], int] = {}
    lines: list[_Line] = []
    count = 0
    for piece, pairs in moves.items():
        if not _is_line(pairs):
            key = frozenset(pairs)
            if key not in trees:
                trees[key], count = count, count + 1
            found[piece] = trees[key]
        else:
            fitting = next((line for line in lines if _fits(pairs, line.after, line.before)), None)
            if fitting is None:
                fitting, count = _Line(count, {}, {}), count + 1
                lines.append(fitting)
            fitting.after.update(pairs)
            fitting.before.update((dst, src) for src, dst in pairs)
            found[piece] = fitting.number
        if count > MOST_WAYS:
            return np.zeros(len(t.piece_part), dtype=np.int64)
    return found


def _is_line(pairs: set[tuple[int, int]]) -> bool:
    """Whether no rank sends to two, or receives from two."""
    return len({src for src, _ in pairs}) == len(pairs) == len({dst for _, dst in pairs})


def _fits(pairs: set[tuple[int, int]], ahead: dict[int, int], behind: dict[int, int]) -> bool:
    """Whether the moves go where the others of a line go."""
    return all(ahead.get(src, dst) == dst and behind.get(dst, src) == src for src, dst in pairs)
