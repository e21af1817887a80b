"""What is to be moved, in no order of time: over which routes, and after which others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth_models.fabric.problem.rows import Rows, picked, rows_of, starts
from synth_models.fabric.solution import Schedule


@dataclass(frozen=True)
class Transfers:
    """What is to be moved, in no order of time. All arrays are int64 unless said otherwise.

    ``piece_block``, ``piece_bytes``: shape (pieces,). ``piece``, ``adds`` (bool), ``priority`` (the least goes first):
    shape (transfers,). ``link[route_start[i]:route_start[i + 1]]``: the route of transfer i, from a rank to a rank (or
    an out-tree to several). ``before[before_start[i]:before_start[i + 1]]``: the transfers that must have arrived at
    the rank where i starts; where ``anywhere``, those that never come there must have arrived where they end.
    """

    piece_block: IntArray
    piece_bytes: IntArray
    piece: IntArray
    adds: BoolArray
    priority: IntArray
    route_start: IntArray
    link: IntArray
    before_start: IntArray
    before: IntArray
    anywhere: bool = field(default=False, kw_only=True)

    @classmethod
    def of(
        cls,
        piece_block: Any,
        piece_bytes: Any,
        piece: Any,
        routes: Sequence[Sequence[int]],
        before: Sequence[Sequence[int]],
        priority: Any = None,
        adds: Any = False,
    ) -> Transfers:
        """From lists: a route and a list of predecessors per transfer. All else as in :meth:`of_rows`."""
        rows = piece_block, piece_bytes, piece, rows_of(routes)
        return cls.of_rows(*rows, before=rows_of(before), priority=priority, adds=adds)

    @classmethod
    def of_rows(
        cls,
        piece_block: Any,
        piece_bytes: Any,
        piece: Any,
        routes: Rows,
        *,
        before: Rows | IntArray | None = None,
        priority: Any = None,
        adds: Any = False,
    ) -> Transfers:
        """From arrays: the ``routes`` as rows of links; ``before``: rows of the transfers that each waits for, or the
        one (less than 0: none), shape (transfers,), or nothing. ``piece_block``, ``priority``, ``adds``: of each, or
        one for all; by default transfers go in their order and add nothing."""
        count = len(piece)
        if before is None:
            before = np.full(count, -1, dtype=np.int64)
        waits = before if isinstance(before, tuple) else (starts(before >= 0), before[before >= 0])
        order = np.arange(count) if priority is None else priority
        return cls(
            _each(piece_block, len(piece_bytes), np.int64),
            np.asarray(piece_bytes, dtype=np.int64),
            np.asarray(piece, dtype=np.int64),
            _each(adds, count, bool),
            _each(order, count, np.int64),
            *(np.asarray(column, dtype=np.int64) for column in (*routes, *waits)),
        )

    @classmethod
    def of_schedule(cls, schedule: Schedule, before: Rows | None = None, priority: Any = None) -> Transfers:
        """What a schedule moves, without its times, in the order of its starts unless said otherwise."""
        return cls.of_rows(
            schedule.piece_block, schedule.piece_bytes, schedule.piece, (schedule.route_start, schedule.link),
            before=before, priority=schedule.start if priority is None else priority, adds=schedule.adds,
        )  # fmt: skip

    def taken(self, chosen: IntArray) -> Transfers:
        """The transfers of these numbers, in this order, without what they wait for among the others."""
        number = np.full(len(self.piece), -1, dtype=np.int64)
        number[chosen] = np.arange(len(chosen))
        routes, waits = picked((self.route_start, self.link), chosen), picked((self.before_start, self.before), chosen)
        kept = number[waits[1]] >= 0
        lengths = np.bincount(np.repeat(np.arange(len(chosen)), np.diff(waits[0]))[kept], minlength=len(chosen))
        rows = self.piece_block, self.piece_bytes, self.piece[chosen], routes
        before, others = (starts(lengths), number[waits[1]][kept]), (self.priority[chosen], self.adds[chosen])
        return Transfers.of_rows(*rows, before=before, priority=others[0], adds=others[1])


def _each(value: Any, count: int, kind: Any) -> Any:
    """Of every transfer the same, or what is given for each."""
    given = np.asarray(value, dtype=kind)
    return given if given.ndim else np.full(count, given)
