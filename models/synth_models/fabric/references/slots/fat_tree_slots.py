"""An alltoall on a balanced fat tree in slots in which every member sends and receives one block: part of ``flow``.

A slot is a difference of places: of groups of boxes, of leaf switches in a group, and of members at a leaf switch.
What leaves a leaf switch in a slot goes to one other, and each member's block through a spine switch of its own: so the
spines of a rearrangeable network (Benes: Mathematical theory of connecting networks, 1965) are found without a search.

Where a link to a spine carries c blocks in the time in which a member sends one, c members take turns within the slot,
each in a ``phase`` of its own. Members receive in the phases of their senders, so slots that change the phase by as
much follow each other. Where such a link takes k slots for one block, k slots in turn use different spines. The time
is that of as many blocks as a member sends and a part: no more than four of them (c > 1), or k - 1. That is why blocks
then go in pieces.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.balanced_fat_tree import BalancedFatTree
from synth_models.fabric.problem.rows import picked, starts
from synth_models.fabric.routes.box_routes import PairRoutes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.moves import pieces_of
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

SLACK = 1e-9  # of a ratio of bandwidths
PIECES, MOST_TRANSFERS = 4, 100_000  # of a block where the first or last slots leave some ranks idle; of all


class Slots(NamedTuple):
    """In which slot what goes from rank to rank is, how many ``parts`` of a slot it begins ``later``, and through which
    spine it goes, -1 for none. ``whole``: whether all links carry one block in one slot."""

    slot: IntArray
    later: IntArray
    spine: IntArray
    parts: int
    whole: bool


def fat_tree_slots(instance: FabricInstance) -> Schedule | None:
    """Blocks from rank to rank, each in its slot; None where the machine is no balanced fat tree, or has too few spines
    for all members to send at the same time. Slots follow each other as closely as links allow. Raises
    :class:`UnsupportedError` where a pair of ranks in a box has no route."""
    blocks = instance.blocks
    tree = BalancedFatTree.of(instance.machine, instance.boxes) if instance.collective == "alltoall" else None
    found = None if tree is None else slots(tree, blocks.origin, blocks.goal)
    if tree is None or found is None:
        return None
    count = 1 if found.whole else max(1, min(PIECES, MOST_TRANSFERS // len(blocks), int(blocks.bytes.min())))
    sizes = [chunks.equal(size, count) for size in blocks.bytes.tolist()]
    block, size = (np.array(row, dtype=np.int64) for row in pieces_of(sizes))
    number = np.arange(len(block), dtype=np.int64)
    begin = (found.slot[block] * count + number % count) * found.parts + found.later[block]
    priority = np.empty(len(block), dtype=np.int64)
    priority[np.argsort(begin, kind="stable")] = number
    routes = picked(_routes(instance, tree, found.spine), block)
    transfers = Transfers.of_rows(block, size, number, routes, priority=priority)
    return timed(instance, transfers, in_order=True)


def slots(tree: BalancedFatTree, source: IntArray, target: IntArray) -> Slots | None:
    """The slot of what goes from each ``source`` to its ``target``, two different ranks: shape as theirs. None where
    there are too few spines. What stays in a box has slots beside those of the others."""
    groups, leaves, boxes, places = tree.sides
    members = boxes * places
    turns = _turns(members, tree.to_spine.shape[2], tree.streams)
    if turns is None:
        return None
    phases, classes = turns
    port, counts = tree.box + boxes * tree.place, (groups, leaves, members)
    sides = (tree.group, tree.leaf, port)
    moved = [(side[target] - side[source]) % count for side, count in zip(sides, counts, strict=True)]
    offset = np.ravel_multi_index(moved, counts)

    group, leaf, step = np.indices(counts).reshape(3, -1)
    inside, near = (group == 0) & (step % boxes == 0), (group == 0) & (leaf == 0)
    shift = step % phases
    order = np.lexsort((shift, near, inside))
    slot = np.empty(len(order), dtype=np.int64)
    slot[order] = np.arange(len(order))
    slot[inside] -= int((~inside).sum())
    later = np.where(inside, 0, shift + np.where(near, 2 * phases - 2, 0))
    first_spine = slot % classes * (members // phases)
    spine = np.where((near | inside)[offset], -1, first_spine[offset] + port[source] // phases)
    return Slots(slot[offset], later[offset] + port[source] % phases, spine, phases, phases == classes == 1)


def _turns(members: int, spines: int, streams: float) -> tuple[int, int] | None:
    """In how many phases the members at a leaf switch take turns in a slot, and in how many slots its links to spines
    take turns; None where not all can send at the same time."""
    if streams < 1:
        classes = math.ceil(1 / streams - SLACK)
        return (1, classes) if spines >= members * classes else None
    most = math.floor(streams + SLACK)
    known = [phases for phases in range(1, most + 1) if spines * phases >= members and members % phases == 0]
    return (known[0], 1) if known else None


def _routes(instance: FabricInstance, tree: BalancedFatTree, spine: IntArray) -> tuple[IntArray, IntArray]:
    """``route_start`` (blocks + 1,) and ``link`` of every block: in its box the quickest way, elsewhere over the leaf
    switches, and over a ``spine`` where that is not -1."""
    source, target = instance.blocks.origin, instance.blocks.goal
    table, inside = tree.ways(source, target, spine), ~tree.apart(source, target)
    start, link = PairRoutes(instance, instance.boxes, 1).of(source[inside], target[inside])
    length = np.diff(start)
    wide = max(table.shape[1], int(length.max(initial=0)))
    table = np.pad(table, ((0, 0), (0, wide - table.shape[1])), constant_values=-1)
    row = np.full((len(length), wide), -1, dtype=np.int64)
    row[np.arange(wide) < length[:, None]] = link
    table[inside] = row
    used = table >= 0
    return starts(used.sum(axis=1)), table[used]
