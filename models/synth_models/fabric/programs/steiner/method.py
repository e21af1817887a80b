"""``steiner``: trees that part and meet in switches, packed by column generation, cut into chunks and pipelined.

What leaves a rank parts at switches that copy, what comes to one meets at switches that add, and an allreduce may turn
round in a switch that does both (a hub: NVLS in one shot, SHARP). Where each block's least tree is found exactly
(:mod:`synth_models.fabric.programs.steiner.pricing`), the program's dual proves that no packing of trees is faster as a
fluid; that is no bound on other schedules, and the message says so. For short messages the trees of least latency, in
one piece or a few, stand beside the packing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.bounds.cuts import quick_cut
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.out_trees import empty, refusal
from synth_models.fabric.programs.steiner.column_generation import Fluid, Generation
from synth_models.fabric.programs.steiner.model import SCALE, Column
from synth_models.fabric.programs.steiner.tree_transfers import depth
from synth_models.fabric.programs.steiner.tuned import MOST_CHUNKS, MOST_MEMBERS, MOST_TRANSFERS
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

KNOWN = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")
LEAST_SHARE = 1e-6  # of a block that a tree gets


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Schedule of pieces along packed Steiner trees; :class:`synth_models.fabric.solution.Schedule`."""
    refused = refusal(instance, KNOWN, "steiner", MOST_MEMBERS)
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    if instance.switching.mode == "store_and_forward":
        return Outcome("unsupported", message="steiner packs trees through switches; these store what they forward")
    if instance.relay and len(instance.members) < len(instance.machine.ranks):
        return Outcome("unsupported", message="steiner knows no ranks that only forward: set relay to false")
    began = time.monotonic()
    generation = Generation(instance)
    fluid = generation.fluid(options.part(0.5))
    if fluid is None:
        return Outcome("unsupported", message="no trees join all ranks")
    variants = [_variant(instance, columns, share) for columns, share in _kinds(instance, generation, fluid)]
    found = chunks.most_promising(instance, options, variants, quick_cut(instance).seconds)
    assert found is not None
    number, count, schedule = found
    words = f"{_words(fluid)}; {'packed' if number else 'nearest'} trees, {chunks.in_words(count)} a tree"
    return Outcome("finished", schedule, message=words + chunks.hurried(options), solve_s=time.monotonic() - began)


def _words(fluid: Fluid) -> str:
    used = int((fluid.packing.share > LEAST_SHARE).sum())
    said = f"fluid {fluid.packing.seconds:.9g} s, {used} trees of {len(fluid.columns)} priced in {fluid.rounds} rounds"
    if fluid.least is None:
        return f"{said} by nearest terminals, which proves nothing of other trees"
    return f"{said} exactly; no packing of trees takes less than {float(fluid.least):.9g} s, which bounds trees only"


def _kinds(
    instance: FabricInstance, generation: Generation, fluid: Fluid
) -> list[tuple[Sequence[Column], Sequence[float]]]:
    """Of every block the tree by which it is done soonest alone, and the packing."""
    used = np.flatnonzero(fluid.packing.share > LEAST_SHARE).tolist()
    net = instance.machine.network
    late = net.latency + 1.0 / net.bandwidth
    prices = np.rint(late / late.max() * SCALE).astype(np.int64) + 1
    nearest: dict[int, tuple[float, Column]] = {}
    for _, column in generation.priced(prices):
        seconds = chunks.seconds(instance, _timed(instance, [column], [1.0], 1))
        if column.block not in nearest or seconds < nearest[column.block][0]:
            nearest[column.block] = float(seconds), column
    trees = [nearest[b][1] for b in range(len(instance.blocks))]
    return [
        (trees, [1.0] * len(trees)),
        ([fluid.columns[k] for k in used], [float(fluid.packing.share[k]) for k in used]),
    ]


def _variant(instance: FabricInstance, columns: Sequence[Column], share: Sequence[float]) -> chunks.Variant:
    amount = sum(len(column.hops) for column in columns)
    most = max(1, min(MOST_CHUNKS, int(instance.blocks.bytes.max()) // len(instance.members)))
    make = partial(_timed, instance, columns, share)
    return chunks.Variant(make, 1, most, lambda count: amount * count, MOST_TRANSFERS)


def _timed(instance: FabricInstance, columns: Sequence[Column], share: Sequence[float], count: int) -> Schedule:
    """Every tree's share of its block in ``count`` chunks, chunk after chunk of all trees."""
    sizes = instance.blocks.bytes
    cut = [[0] * count for _ in columns]
    for block in {column.block for column in columns}:
        mine = [k for k, column in enumerate(columns) if column.block == block]
        part = np.array([share[k] for k in mine]) / sum(share[k] for k in mine)
        ends = np.rint(np.cumsum(np.tile(part / count, count)) * int(sizes[block])).astype(np.int64)
        ends[-1] = sizes[block]
        for at, size in enumerate(np.diff(ends, prepend=0).tolist()):
            cut[mine[at % len(mine)]][at // len(mine)] = size
    rows = _Rows()
    for chunk in range(count):
        for k, column in enumerate(columns):
            if cut[k][chunk] > 0:
                rows.tree(column, cut[k][chunk], chunk)
    order = np.argsort(np.argsort(np.array(rows.rank), kind="stable"))
    transfers = Transfers.of(rows.block, rows.size, rows.piece, rows.route, rows.before, order, np.array(rows.adds))
    return timed(instance, transfers)


class _Rows:
    """Transfers as they are listed; ``rank``: whose turn it is, the least first."""

    def __init__(self) -> None:
        self.block: list[int] = []
        self.size: list[int] = []
        self.piece: list[int] = []
        self.route: list[tuple[int, ...]] = []
        self.before: list[list[int]] = []
        self.adds: list[bool] = []
        self.rank: list[int] = []

    def tree(self, column: Column, size: int, chunk: int) -> None:
        """All hops of a tree for one piece."""
        self.block.append(column.block)
        self.size.append(size)
        first = len(self.route)
        for hop, behind in zip(column.hops, depth(column.hops), strict=True):
            self.piece.append(len(self.block) - 1)
            self.route.append(hop.route)
            self.before.append([first + j for j in hop.before])
            self.adds.append(hop.adds)
            self.rank.append(chunk + behind)
