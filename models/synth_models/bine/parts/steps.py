"""Collecting the rows of a pattern, and the pieces that blocks make when they are not moved together."""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth_models.bine.solution import Steps


class Rows:
    """Rows of one job, added a batch at a time; scalars are spread over the batch."""

    def __init__(self) -> None:
        self.parts: list[tuple[Any, ...]] = []

    def add(self, step: Any, src: Any, dst: Any, first: Any, count: Any, adds: Any = False) -> None:
        """Append one row per entry of the longest argument, none where one is empty."""
        given = (np.atleast_1d(np.asarray(c, dtype=np.int64)) for c in (step, src, dst, first, count))
        columns = np.broadcast_arrays(*given)
        self.parts.append((*columns, np.full(columns[0].shape, adds)))

    def finish(self, layout: IntArray, shares: int = 1) -> Steps:
        """All rows with something to carry, ordered by round."""
        step, src, dst, first, count, adds = (np.concatenate(column) for column in zip(*self.parts, strict=True))
        order = np.argsort(step, kind="stable")
        order = order[count[order] > 0]
        step, src, dst, first, count, adds = (column[order] for column in (step, src, dst, first, count, adds))
        return Steps(step, src, dst, first, count, adds, np.asarray(layout, dtype=np.int64), shares)


def in_pieces(steps: Steps) -> Steps:
    """The same messages with blocks left in the order of their ids: one row per run of neighbouring ids."""
    owner = np.repeat(np.arange(len(steps)), steps.count)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(steps.count) - steps.count, steps.count)
    ids = steps.layout[steps.first[owner] + offset]
    order = np.lexsort((ids, owner))
    ids, owner = ids[order], owner[order]
    begin = np.ones(len(ids), dtype=bool)
    begin[1:] = (owner[1:] != owner[:-1]) | (ids[1:] != ids[:-1] + 1)
    at = np.flatnonzero(begin)
    rows = owner[at]
    ends = (steps.round[rows], steps.src[rows], steps.dst[rows])
    runs = (ids[at], np.diff(np.append(at, len(ids))), steps.adds[rows])
    return Steps(*ends, *runs, np.arange(len(steps.layout), dtype=np.int64), steps.shares)
