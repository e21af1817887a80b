"""Over which ranks blocks go that go from one rank to one other, and in whose turn: edges of every block's path."""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.routes.routes_in_turn import Edges


def turns(instance: FabricInstance, origin: IntArray, goal: IntArray) -> IntArray:
    """By how many places of the group every goal is behind its origin: the nearest are sent to first."""
    place = np.zeros(instance.machine.nodes, dtype=np.int64)
    place[list(instance.members)] = np.arange(len(instance.members))
    found: IntArray = (place[goal] - place[origin]) % len(instance.members)
    return found


def straight_to_goals(instance: FabricInstance, origin: IntArray, goal: IntArray) -> Edges:
    """Every block straight to its goal."""
    return Edges(np.arange(len(origin), dtype=np.int64), origin, goal, turns(instance, origin, goal))


def step_after_step(instance: FabricInstance, origin: IntArray, goal: IntArray) -> Edges:
    """Every block straight to its goal, step after step."""
    step = turns(instance, origin, goal)
    order = np.argsort(step, kind="stable")
    return Edges(order, origin[order], goal[order], step[order])


def by_rail_then_inside(instance: FabricInstance, origin: IntArray, goal: IntArray) -> Edges:
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
