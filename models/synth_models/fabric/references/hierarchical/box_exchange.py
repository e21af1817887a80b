"""Allreduce by exchanges: every rank of a row sends what it has to all others of the row at once, and all add up.

The rows are the rails between boxes, then the boxes (``everything``: two latencies, and everybody's whole buffer
over every rail); or each rank of a box first adds up a share of the buffer for its box, exchanges that along its rail,
and hands the sum to its box (``shares``). What :mod:`synth_models.fabric.references.recursive_doubling` does with
whole buffers in pairs, here in rows; the way of short messages in NCCL's and MSCCL++'s one-shot and two-shot kernels.
In an exchange everybody must have sent before anything arrives, so pieces are so small that a rank sends one to its
whole row within the latency; where the times show otherwise, there is no schedule.

On B boxes of g ranks, latencies a between and i inside boxes, NICs of b bytes/s: ``a + i + (B - 1) M / b``, and
``a + 2 i + (B - 1) M / (g b)``. Complexity: N (B + g) transfers a piece, and a share of that.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.references.hierarchical.box_rails import Rails
from synth_models.fabric.references.hierarchical.box_sends import SHARES
from synth_models.fabric.routes.box_routes import PairRoutes
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.reversal import arrivals
from synth_models.fabric.scheduling.switch_sums import meet_in_switches
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

ADDING, EXCHANGING, BETWEEN, HANDING = range(4)  # stages: into a share's rank, in a box, between boxes, out of it again


class _WaitingSends:
    """Transfers as they are added, of which all have the same number of predecessors or none."""

    def __init__(self) -> None:
        self.rows: list[tuple[IntArray, ...]] = []
        self.before: list[IntArray] = []  # shape (transfers, predecessors) each
        self.count = 0

    def add(
        self, piece: IntArray, ends: tuple[IntArray, IntArray], step: IntArray, stage: int, before: IntArray
    ) -> IntArray:
        """Note transfers; their numbers."""
        self.rows.append((piece, *ends, step, np.full_like(piece, stage)))
        self.before.append(before)
        self.count += len(piece)
        return np.arange(self.count - len(piece), self.count)

    def columns(self) -> tuple[IntArray, ...]:
        """Piece, source, target, step and stage of all."""
        return tuple(np.concatenate(column) for column in zip(*self.rows, strict=True))

    def waits(self) -> tuple[IntArray, IntArray]:
        """``before_start`` and ``before``."""
        lengths = np.concatenate([np.full(len(rows), rows.shape[1]) for rows in self.before])
        return starts(lengths), np.concatenate([rows.reshape(-1) for rows in self.before])


def exchanged(instance: FabricInstance, sizes: list[int], way: str) -> Schedule | None:
    """Allreduce of pieces of these sizes; None where boxes are unequal or a rail does not join them all, where a rank
    would receive before it has sent, and where switches on the way store and add."""
    routes = PairRoutes(instance, instance.boxes, max(sizes))
    rails = Rails.of(routes, instance.boxes)
    if np.ptp(rails.size) or not np.array_equal(rails.enters[rails.rank.T], _own_rail(rails)):
        return None
    sends = _shared(rails, len(sizes)) if way == SHARES else _everything(rails, len(sizes))
    piece, source, target, step, stage = sends.columns()
    route, before = routes.of(source, target), sends.waits()
    transfers = Transfers.of_rows(0, sizes, piece, route, before=before, priority=step, adds=stage != HANDING)
    if meet_in_switches(instance, transfers):
        return None
    schedule = timed(instance, transfers)
    start = schedule.start
    if instance.switching.mode == "store_and_forward":
        start = start[transfers.route_start[:-1]]
    came, nodes = arrivals(instance, transfers, schedule), instance.machine.nodes
    return schedule if _all_sent_first(start, came, piece * nodes, source, target, stage) else None


def _own_rail(rails: Rails) -> IntArray:
    """Where what a rank holds enters every box if it keeps to its rail, shape (width, boxes, boxes)."""
    width, count = rails.rank.shape[1], len(rails.size)
    found: IntArray = np.broadcast_to(rails.rank.T[:, None, :], (width, count, count))
    return found


def _all_sent_first(
    start: IntArray, came: IntArray, piece: IntArray, source: IntArray, target: IntArray, stage: IntArray
) -> bool:
    """Whether in every exchange each rank begins its last send of a piece before anything of it arrives there."""
    for exchange in (EXCHANGING, BETWEEN):
        mine: BoolArray = stage == exchange
        ranks, at = np.unique((piece + source)[mine], return_inverse=True)
        last = np.zeros(len(ranks), dtype=np.int64)
        np.maximum.at(last, at.reshape(-1), start[mine])
        first = np.full(len(ranks), np.iinfo(np.int64).max)
        np.minimum.at(first, np.searchsorted(ranks, (piece + target)[mine]), came[mine])
        if np.any(last >= first):
            return False
    return True


def _shared(rails: Rails, pieces: int) -> _WaitingSends:
    count, width = rails.rank.shape
    sends, nothing = _WaitingSends(), np.zeros((pieces * count, 0), dtype=np.int64)
    piece, box = (column.reshape(-1) for column in np.meshgrid(np.arange(pieces), np.arange(count), indexing="ij"))
    rail, turn = piece % width, piece // width * (count + width)
    own = rails.rank[box, rail]
    others = [rails.rank[box, (rail + k) % width] for k in range(1, width)]
    added = [sends.add(piece, (other, own), turn, ADDING, nothing) for other in others]
    summed = np.stack(added, axis=1) if added else nothing
    sent = [
        sends.add(piece, (own, rails.rank[(box + k) % count, rail]), turn + k, BETWEEN, summed) for k in range(1, count)
    ]
    came = [sent[k - 1][piece * count + (box - k) % count] for k in range(1, count)]
    complete = np.concatenate([summed, np.stack(came, axis=1)], axis=1)
    for k, other in enumerate(others):
        sends.add(piece, (own, other), turn + count + k, HANDING, complete)
    return sends


def _everything(rails: Rails, pieces: int) -> _WaitingSends:
    count, width = rails.rank.shape
    sends, nothing = _WaitingSends(), np.zeros((pieces * count * width, 0), dtype=np.int64)
    grid = np.meshgrid(np.arange(pieces), np.arange(count), np.arange(width), indexing="ij")
    piece, box, number = (column.reshape(-1) for column in grid)
    own, turn = rails.rank[box, number], piece * (count + width)
    sent = [
        sends.add(piece, (own, rails.rank[(box + k) % count, number]), turn + k, BETWEEN, nothing)
        for k in range(1, count)
    ]
    came = np.stack(
        [sent[k - 1][(piece * count + (box - k) % count) * width + number] for k in range(1, count)], axis=1
    )
    for k in range(1, width):
        sends.add(piece, (own, rails.rank[box, (number + k) % width]), turn + count + k, EXCHANGING, came)
    return sends
