"""Method ``two_step`` (reference): over the sender's own rail first, then inside the goal's box.

What libraries for mixtures of experts do (DeepEP, 2025): rank g of a box sends what is for another box to rank g there,
which hands it on over NVLink. Only the sender's NIC carries what it sends: ranks that send much hold up all.
Complexity: two transfers a block and chunk.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.out_trees import empty, refusal
from synth_models.fabric.references.pair_paths import best_paths, turns
from synth_models.fabric.scheduling.routes_in_turn import Edges

KNOWN = ("alltoall", "demand")


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``two_step``."""
    refused = refusal(instance, KNOWN, "two_step")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    found = edges(instance, instance.blocks.origin, instance.blocks.goal)
    return best_paths(instance, options, "rail, then NVLink", found)


def edges(instance: FabricInstance, origin: IntArray, goal: IntArray) -> Edges:
    """Every block over the rank of the goal's box that has the origin's place there, if that is not on the way."""
    boxes = instance.boxes
    rank_at = np.full((len(boxes), max(map(len, boxes))), -1, dtype=np.int64)
    box, place = np.zeros((2, instance.machine.nodes), dtype=np.int64)
    for b, ranks in enumerate(boxes):
        rank_at[b, : len(ranks)] = ranks
        box[list(ranks)], place[list(ranks)] = b, np.arange(len(ranks))
    relay = rank_at[box[goal], place[origin]]
    relayed = (box[origin] != box[goal]) & (relay >= 0) & (relay != goal)
    piece = np.repeat(np.arange(len(origin), dtype=np.int64), 1 + relayed)
    source, target = origin[piece], goal[piece]
    first = np.flatnonzero(piece[:-1] == piece[1:])
    target[first] = source[first + 1] = relay[relayed]
    return Edges(piece, source, target, turns(instance, origin, goal)[piece])
