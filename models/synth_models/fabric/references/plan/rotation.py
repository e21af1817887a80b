"""The plan of blocks of about one size between equal boxes: in every slot, each box sends to the one that is so many
boxes ahead, rank to rank.

A slot lasts as long as the largest block takes on a rail. First come blocks that hop behind their rail, then those that
do neither, last those that hop before it: all in one slot are as far ahead among the boxes and in their box, so that no
two meet on a link. Where a box sends or receives nothing but largest blocks, and there is time for the hops, no plan is
quicker.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.plans.demands.timeline import Pieces, Placed
from synth_models.fabric.references.plan.relayed_plan import RelayedRoutes, placed_in_order
from synth_models.fabric.references.plan.straight_plan import cut_blocks


def ticks_in_turn(found: RelayedRoutes, demand: IntArray) -> int:
    """Ticks until the last slot is over and its blocks have arrived."""
    boxes, size = found.boxes, found.size
    amounts = demand.reshape(boxes, size, boxes, size).max(axis=(1, 3))
    np.fill_diagonal(amounts, 0)
    rail = found.route[0, size]
    return (boxes - 1) * size * int(amounts.max()) * found.per_byte[0] + int(found.routes.latency[rail])


def rotated(found: RelayedRoutes, demand: IntArray) -> tuple[Pieces, Placed]:
    """Pieces, whole blocks, and transfers of a demand, bytes from rank to rank in the order of the layout."""
    boxes, size = found.boxes, found.size
    largest = max(int(demand.max()), 1)
    pieces = cut_blocks(demand, size, largest, largest)
    (b, g), (c, h) = np.divmod(pieces.origin, size), np.divmod(pieces.goal, size)
    boxes_ahead, ahead = (c - b) % boxes, (h - g) % size
    behind = (boxes_ahead > 0) & (ahead > 0) & (2 * ahead < size + boxes_ahead % 2)
    before = (boxes_ahead > 0) & (ahead > 0) & ~behind
    first, last = np.where(before, b * size + h, pieces.origin), np.where(behind, c * size + g, pieces.goal)
    turn = np.where(before, size + ahead, np.where(behind, ahead, size)) * boxes + boxes_ahead
    return pieces, placed_in_order(found, pieces, first, last, turn)
