"""Everything straight from where it begins to everybody, placed cell by cell: for ``hierarchical`` and ``slots``.

A piece that begins at a rank goes from there to every other in a transfer of its own, what has the farthest to go
first. Where links carry all pairs of ranks evenly (a balanced dragonfly: Kim, Dally, Scott, Abts, 2008), every rank
receives all the time and no piece waits for another rank: that suits short messages, which otherwise pay latency
twice. A broadcast's root first deals a piece to every other rank (scatter, then allgather), an allreduce sums up
pieces at every rank and is its own spreading with time reversed. Each of the N (N - 1) transfers a chunk finds its
place among the gaps of all its links (:mod:`synth_models.fabric.scheduling.cells`); what goes equally far goes in no
order, so that no link is wanted by all at the same time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.near_groups import even_routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.from_afar import farthest_first
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.mirrored import mirrored, there_and_back, timed_one_way
from synth_models.fabric.scheduling.moves import pieces_of
from synth_models.fabric.scheduling.reversal import reversed_instance
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

REDUCTIONS = ("reduce_scatter", "reduce")
MANY = 300_000  # blocks, of which a flow is found slowly
MANY_ALONE = 64  # ranks that are boxes of their own


class Crowd(NamedTuple):
    """Whether blocks are very ``many``, all ``small`` (a latency is longer than any of them takes on a link), and ranks
    many that are ``alone`` in their boxes, behind switches."""

    many: bool
    small: bool
    alone: bool

    @classmethod
    def of(cls, instance: FabricInstance) -> Crowd:
        """What an instance has."""
        net, blocks = instance.machine.network, instance.blocks
        small = bool(blocks.bytes.max(initial=0) <= net.bandwidth.min() * net.latency.max(initial=0.0))
        alone = len(instance.boxes) == len(instance.members) >= MANY_ALONE and bool(instance.machine.is_switch.any())
        return cls(len(blocks) >= MANY, small, alone)

    @property
    def straight(self) -> bool:
        """Whether to send blocks straight from rank to rank before any other way is looked for."""
        return self.alone or (self.many and self.small)


def straight(instance: FabricInstance, count: int) -> Schedule | None:
    """The schedule in ``count`` chunks of a block; where one rank has everything, of what each other is dealt, and in
    an allreduce of what each adds up. None where a reduction cannot be had by reversing time."""
    there = reversed_instance(instance) if instance.collective in REDUCTIONS else instance
    members, sizes = np.array(there.members, dtype=np.int64), there.blocks.bytes.tolist()
    root = there.the_root
    if instance.collective == "allreduce":
        cut = [chunks.in_step(there, sizes[0], count * len(members))]
        holder = np.resize(members, len(cut[0]))
        return there_and_back(there, _transfers(there, cut, holder))
    if root is not None:
        cut = [chunks.in_step(there, sizes[0], count * (len(members) - 1))]
        return timed_one_way(instance, there, _transfers(there, cut, members[members != root], root))
    cut = [chunks.equal(size, count) for size in sizes]
    transfers = _transfers(there, cut, np.repeat(there.blocks.origin, [len(row) for row in cut]))
    found = timed(there, transfers, in_cells=True)
    return found if there is instance else mirrored(there, transfers, found)


def straight_pairs(instance: FabricInstance) -> Schedule:
    """Blocks of one goal each straight to it. Raises :class:`UnsupportedError` where no direct route leads there."""
    blocks = instance.blocks
    number = np.arange(len(blocks), dtype=np.int64)
    routes = even_routes(instance, blocks.origin, blocks.goal, blocks.bytes)
    transfers = Transfers.of_rows(number, blocks.bytes, number, routes, priority=0)
    return timed(instance, farthest_first(instance, transfers, True), in_cells=True, rounded=True)


def _transfers(
    instance: FabricInstance, sizes: list[list[int]], holder: IntArray, root: int | None = None
) -> Transfers:
    """Every piece from its holder to all other members, holders in turn; a ``root`` deals them the pieces first."""
    block, size = pieces_of(sizes)
    members, piece = np.array(instance.members, dtype=np.int64), np.arange(len(block), dtype=np.int64)
    dealt = 0 if root is None else len(block)
    holder = np.resize(holder, len(block))
    source, target, moved = (x.ravel() for x in np.broadcast_arrays(holder[:, None], members, piece[:, None]))
    wanted = (source != target) & (target != (-1 if root is None else root))
    source = np.concatenate([np.full(dealt, root if dealt else 0), source[wanted]])
    target = np.concatenate([holder[:dealt], target[wanted]])
    moved = np.concatenate([piece[:dealt], moved[wanted]])
    after = np.concatenate([np.full(dealt, -1), moved[dealt:]]) if dealt else None
    routes = even_routes(instance, source, target, size[moved])
    transfers = Transfers.of_rows(block, size, moved, routes, before=after, priority=0)
    return farthest_first(instance, transfers)
