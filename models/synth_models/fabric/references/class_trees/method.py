"""Method ``class_trees`` (reference, ours): blocks with several holders and wanters, in pieces, each over a tree.

Blocks are cut into pieces of about one size. The trees of all pieces are grown at prices of links
(:mod:`.growth`), and timed by list scheduling, piece after piece of every block in turn. The ``rule`` says which trees
there are: ``trees`` all; the others are what is done today: ``direct``, the first holder sends to every wanter;
``balanced``, the holder with least to do; ``box_copy``, one copy to every box, which spreads it; ``gather``, all to the
first holder, which broadcasts all to everyone that wants anything. Where rails are not joined, a rank of the sender's
box on the wanter's rail relays (NCCL's PXN): the next one for ``direct``, else the one with least to do. Complexity:
rounds x pieces x wanters x senders x ranks of a box. Guarantee: none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.bounds.traffic_cuts import side_cuts
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.plans.out_trees import empty
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.problem.rows import picked, rows_of, starts
from synth_models.fabric.references.class_trees.chains import (
    all_reached,
    hops_before,
    hops_behind,
    waited_for,
)
from synth_models.fabric.references.class_trees.growth import Plant, Rules, Work, grow
from synth_models.fabric.references.class_trees.ports import Ports
from synth_models.fabric.scheduling.list_scheduling import timed_at_once
from synth_models.fabric.scheduling.transfers import Transfers

MOST_TRANSFERS = 70_000  # of a schedule, as far as a piece a block allows
MANY = 512  # ranks from which on trees are grown again once only
LOOKED_AT = 16  # senders for each island between so many,
STEEP_OF_MANY, AWAY_OF_MANY = 24.0, 1.5  # exponent of prices, and what a send to a port of another pair counts
LEAD = 0.2  # of all turns, by which a hop is earlier for each that waits for it
MOST_PARTS = 4096  # of a block
RULES = {
    "trees": Rules(True, True, False, True, 3),
    "direct": Rules(False, False, True, False, 0),
    "balanced": Rules(False, False, False, False, 0),
    "box_copy": Rules(False, False, False, True, 0),
    "gather": Rules(True, False, False, True, 0),
}


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``class_trees``."""
    if instance.traffic is None or any(instance.blocks.sums) or instance.ready is not None:
        return Outcome("unsupported", message="class_trees takes traffic without sums, all ranks ready at once")
    if instance.switching.mode != "cut_through":
        return Outcome("unsupported", message="class_trees takes switches that cut through")
    if not len(instance.blocks):
        return empty(instance)
    rule = options.method.get("rule") or "trees"
    incumbent = Incumbent(instance, options)
    ports = Ports.of(instance)
    transfers = trees(instance, ports, rule, options.method.get("transfers") or MOST_TRANSFERS)
    incumbent.offer(timed_at_once(instance, transfers), f"class_trees, {rule}, {len(transfers.piece)} transfers")
    least = side_cuts(instance)
    return Outcome(
        "finished", incumbent.best, float_below(least.seconds), str(least), least.certificate(), message=incumbent.told
    )


class Pieces(NamedTuple):
    """``block``, ``bytes``, ``turn`` of every piece; holders and wanters of every block, places in the group."""

    block: IntArray
    bytes: IntArray
    turn: IntArray
    holders: Sequence[Sequence[int]]
    wanters: Sequence[Sequence[int]]


def pieces_of(instance: FabricInstance, most: int) -> Pieces:
    """Every block in equal pieces, as many as ``most`` transfers allow."""
    blocks, members = instance.blocks, instance.members
    place = {rank: k for k, rank in enumerate(members)}
    ends = [
        [tuple(place[r] for r in blocks.ranks(code, members)) for code in codes.tolist()]
        for codes in (blocks.origin, blocks.goal)
    ]
    wanted = np.array([len(row) for row in ends[1]])
    each = max(1.0, float((blocks.bytes * (wanted + 1.0)).sum()) / most)
    parts = np.clip(np.rint(blocks.bytes / each).astype(np.int64), 1, np.minimum(blocks.bytes, MOST_PARTS))
    block = np.repeat(np.arange(len(parts)), parts)
    number = np.arange(len(block)) - np.repeat(starts(parts)[:-1], parts)
    size, count = blocks.bytes[block], parts[block]
    bytes_ = size // count + (number < size % count)
    turn = (number * 2 + 1) / (2.0 * count)
    order = np.lexsort((block, turn))
    return Pieces(block[order], bytes_[order], turn[order], *ends)


def trees(instance: FabricInstance, ports: Ports, rule: str, most: int) -> Transfers:
    """The transfers of trees under this rule. Raises :class:`UnsupportedError` where some wanter is not reached."""
    pieces = pieces_of(instance, most)
    holders, wanters = [list(row) for row in pieces.holders], [list(row) for row in pieces.wanters]
    plant = _plant(instance, ports, holders, wanters)
    load = np.zeros(instance.machine.links + len(instance.machine.group_names))

    def of(held: Sequence[Sequence[int]], asked: Sequence[Sequence[int]]) -> Work:
        rows = (picked(rows_of(ranks), pieces.block) for ranks in (held, asked))
        return Work(pieces.bytes.astype(float), *next(rows), *next(rows))

    def grown(work: Work, rules: Rules) -> Sends:
        return Sends(*grow(plant, work, rules, load))

    wanted = of(holders, wanters)
    if rule != "gather":
        rules = RULES[rule]
        if len(ports.island) > MANY and rule == "trees":
            rules = rules._replace(rounds=1, senders=LOOKED_AT, steep=STEEP_OF_MANY, away=AWAY_OF_MANY)
        return _transfers(ports, pieces, wanted, [grown(wanted, rules)])
    first, everyone = [[holders[0][0]]] * len(holders), sorted({rank for row in wanters for rank in row})
    gathered = grown(of(holders, first), RULES["balanced"])
    spread = grown(of(first, [everyone] * len(holders)), RULES[rule])
    return _transfers(ports, pieces, wanted, [gathered, spread])


class Sends(NamedTuple):
    """Ports out and in of every send, and where those of a piece begin, shape (pieces + 1,)."""

    out: IntArray
    into: IntArray
    begins: IntArray

    @property
    def piece(self) -> IntArray:
        """The piece of every send."""
        return np.repeat(np.arange(len(self.begins) - 1), np.diff(self.begins))


def _plant(
    instance: FabricInstance, ports: Ports, holders: Sequence[Sequence[int]], wanters: Sequence[Sequence[int]]
) -> Plant:
    """The machine as the kernel takes it."""
    machine, islands = instance.machine, np.arange(int(ports.island.max()) + 1)
    resource, link = ports.resources(machine)
    planes = range(int(ports.plane.max()) + 1)
    inside = [len(np.unique(ports.island[ports.rank[ports.plane == plane]])) == 1 for plane in planes]
    held, asked = (list({rank for row in rows for rank in row}) for rows in (holders, wanters))
    return Plant(
        ports.rank, ports.plane, ports.first, ports.island, resource,
        np.where(link < 0, 0.0, 1.0 / machine.network.bandwidth[link]), np.array(inside, dtype=bool),
        starts(np.bincount(ports.island)), np.argsort(ports.island, kind="stable").astype(np.int64),
        *ports.pairs(np.isin(ports.rank, held), np.isin(islands, ports.island[asked])),
    )  # fmt: skip


def _transfers(ports: Ports, pieces: Pieces, work: Work, phases: Sequence[Sends]) -> Transfers:
    """The sends as transfers, each behind the last one that brought the piece to its sender."""
    piece = np.concatenate([sends.piece for sends in phases])
    out, into = (np.concatenate([sends[way] for sends in phases]) for way in (0, 1))
    source, target, ranks = ports.rank[out], ports.rank[into], len(ports.island)
    order = np.argsort(piece, kind="stable")
    if not all_reached(work, order, piece, target, ranks):
        raise UnsupportedError("some wanter shares no plane of switches with a rank that may have what it wants")
    before = waited_for(order, piece, source, target, ranks)
    turn = pieces.turn[piece] - LEAD * hops_behind(before)
    urgent = np.argsort(np.lexsort((-hops_before(before), pieces.bytes[piece], turn)), kind="stable")
    routes = ports.routes(out, into, piece)
    return Transfers.of_rows(pieces.block, pieces.bytes, piece, routes, before=before, priority=urgent)
