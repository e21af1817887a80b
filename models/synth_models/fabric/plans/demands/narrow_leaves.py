"""The plan of a demand between equal boxes behind leaf switches whose links to the spines carry less than their boxes.

What goes from one leaf switch to another shares a link up and a link down. A Birkhoff-von Neumann decomposition of the
bytes between links up and links down says when which two belong together, so that neither waits for the other; of the
pairs of boxes that share both, each sends a little in turn, so that no NIC is asked for twice at once. What stays below
a leaf switch, or in its box, goes in between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit
from synth_models.fabric.plans.demands.balanced_plan import Plan, in_turn, rounded, turns_inside, within_boxes
from synth_models.fabric.plans.demands.decomposition import decomposed
from synth_models.fabric.plans.demands.layout import Layout
from synth_models.fabric.plans.demands.rails import Parts, on_rails
from synth_models.fabric.plans.demands.timeline import Pieces, between_boxes, placed

ROUNDS = 8  # in which the pairs of boxes between two leaf switches take turns,
HALVED = 5  # the last of them cut in halves so many times, so that all links end together
CELLS = 32  # of the time, that no piece in a box is longer than,
FINE = 128  # and none below a leaf switch: those fit into what is left on NICs,
BEHIND = 4  # th of the time at most after the turn at which they would go if links to spines did not come first: less
# where their NICs would have too little time
NEAR = 2  # links that a way below one leaf switch occupies: those of two NICs


class Crossing(NamedTuple):
    """Which pairs of boxes share links between leaf switches, on rail 0: ``up`` and ``down`` number these links, shape
    (boxes, boxes), -1 where two boxes are at one leaf switch; ``wide``: how many NICs' bytes the narrowest carries."""

    up: IntArray
    down: IntArray
    wide: float


def crossing(layout: Layout) -> Crossing | None:
    """The links between leaf switches, None where there are none, or more than a link up and a link down on a way."""
    boxes, size, routes = layout.boxes, layout.size, layout.routes
    first = np.arange(boxes * boxes) * size
    count = np.diff(routes.used)[first]
    count[:: boxes + 1] = 0  # no way at all
    far = (count == NEAR + 1) | (
        count == NEAR + 2
    )  # where only one link leads on from each link up, that one is enough
    if not far.any() or np.any(count > NEAR + 2):
        return None
    at, last = routes.used[first[far]] + 1, routes.used[first[far] + 1] - 2
    up, down = np.full(boxes * boxes, -1, dtype=np.int64), np.full(boxes * boxes, -1, dtype=np.int64)
    up[far] = np.unique(routes.resource[at], return_inverse=True)[1]
    down[far] = np.unique(routes.resource[last], return_inverse=True)[1]
    slowest = np.maximum(routes.per_byte[at], routes.per_byte[last])
    wide = float((routes.per_byte[at - 1] / slowest).min())
    return Crossing(up.reshape(boxes, boxes), down.reshape(boxes, boxes), wide)


def leaf_plan(layout: Layout, demand: IntArray, over: Crossing) -> Plan:
    """The plan of a demand, bytes from rank to rank in the order of the layout, shape (ranks, ranks)."""
    boxes, size, routes = layout.boxes, layout.size, layout.routes
    box = np.arange(boxes * size) // size
    far = over.up[np.ix_(box, box)] >= 0
    parts, fullest = on_rails(np.where(far, demand, 0), boxes, size)
    links = max(int(over.up.max()), int(over.down.max())) + 1
    shared = np.zeros((links, links), dtype=np.int64)
    there = over.up >= 0
    np.add.at(shared, (over.up[there], over.down[there]), fullest[there])
    stages = decomposed(shared)
    turns = int(int(stages.length.sum()) / over.wide)
    begin = np.cumsum(stages.length) - stages.length
    pieces = _between_leaves(
        parts, over.up, over.down, _rank(over), shared, stages.target, stages.length, begin, _marks()
    )
    pieces = pieces._replace(turn=(pieces.turn / over.wide).astype(np.int64))
    near_parts, near = on_rails(np.where(far, 0, demand), boxes, size)
    near_stages = decomposed(rounded(near))
    length = int(near_stages.length.sum())
    cuts = np.arange(1, FINE, dtype=np.int64) * length // FINE
    local = between_boxes(near_parts, near_stages, cuts, boxes, size)
    until = max(turns, length, turns_inside(layout, demand))
    late = np.minimum(until // BEHIND, until - _fuller(fullest + near, local, size))
    local = local._replace(turn=local.turn * until // max(length, 1) + np.maximum(late, 0))
    inside = within_boxes(layout, demand, until, CELLS)
    pieces = in_turn(in_turn(pieces, local), inside)
    transfers = placed(pieces, layout, int(pieces.turn.max(initial=0)))
    return Plan(pieces, transfers, routes, int(transfers.end.max(initial=0)), layout.ticks_per_s)


def _fuller(fullest: IntArray, pieces: Pieces, size: int) -> IntArray:
    """Bytes over the fuller of the two NICs of every piece, given those of every pair of boxes."""
    one, other = fullest.sum(axis=1)[pieces.origin // size], fullest.sum(axis=0)[pieces.goal // size]
    found: IntArray = np.maximum(one, other)
    return found


def _marks() -> FloatArray:
    """Where rounds begin and end, as shares of what a pair of boxes sends: evenly, at the end more and more closely."""
    even = np.arange(ROUNDS) / ROUNDS
    return np.array([*even, *(1 - 0.5**k / ROUNDS for k in range(1, HALVED + 1)), 1.0])


def _rank(over: Crossing) -> IntArray:
    """The place of every pair of boxes among those that share its links, shape (boxes, boxes): neighbours have other
    boxes at both ends."""
    boxes = len(over.up)
    b, c = np.divmod(np.arange(boxes * boxes), boxes)
    found = np.zeros(boxes * boxes, dtype=np.int64)
    order = np.lexsort((b, (c - b) % boxes, over.down.reshape(-1), over.up.reshape(-1)))
    key = np.stack([over.up.reshape(-1)[order], over.down.reshape(-1)[order]])
    new = np.append(True, (np.diff(key, axis=1) != 0).any(axis=0))
    place = np.arange(boxes * boxes)
    found[order] = place - np.maximum.accumulate(np.where(new, place, 0))
    return found.reshape(boxes, boxes)


@jit
def _between_leaves(
    parts: Parts, up: IntArray, down: IntArray, rank: IntArray, shared: IntArray, target: IntArray, length: IntArray,
    begin: IntArray, marks: FloatArray,
) -> Pieces:  # fmt: skip
    """The parts between leaf switches, cut into so many rounds a pair of boxes and at the ends of the stages in which
    its links belong together, each with its turn in bytes of such a link."""
    boxes, count = len(up), len(length)
    size = (len(parts.row) - 1) // (boxes * boxes)
    rounds = len(marks) - 1
    most = len(parts.bytes) + boxes * boxes * size * (rounds + 1)
    pieces = Pieces(
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64),
        np.zeros(most, np.int64),
    )  # fmt: skip
    pairs = np.zeros(shared.shape, np.int64)
    for b in range(boxes):
        for c in range(boxes):
            if up[b, c] >= 0:
                pairs[up[b, c], down[b, c]] += 1
    top = 0
    for b in range(boxes):
        for c in range(boxes):
            u, d = up[b, c], down[b, c]
            if u < 0:
                continue
            for q in range(size):
                k = (b * boxes + c) * size + q
                total = np.int64(0)
                for p in range(parts.row[k], parts.row[k + 1]):
                    total += parts.bytes[p]
                gone, turn_round = np.int64(0), 0
                for p in range(parts.row[k], parts.row[k + 1]):
                    left = parts.bytes[p]
                    while left > 0:
                        while turn_round + 1 < rounds and int(total * marks[turn_round + 1]) <= gone:
                            turn_round += 1
                        ends = int(total * marks[turn_round + 1]) if turn_round + 1 < rounds else total
                        taken = min(left, ends - gone)
                        wide = marks[turn_round + 1] - marks[turn_round]
                        place = marks[turn_round] + wide * (rank[b, c] + 0.5) / pairs[u, d]
                        pieces.origin[top], pieces.goal[top], pieces.rail[top] = parts.origin[p], parts.goal[p], q
                        pieces.bytes[top], pieces.turn[top] = taken, np.int64(place * shared[u, d])
                        top += 1
                        left -= taken
                        gone += taken
    # from places among the bytes of two links to the stages in which these belong together
    for n in range(top):
        b, c = pieces.origin[n] // size, pieces.goal[n] // size
        u, d, at = up[b, c], down[b, c], pieces.turn[n]
        for s in range(count):
            if target[s, u] == d:
                if at < length[s]:
                    pieces.turn[n] = begin[s] + at
                    break
                at -= length[s]
    return Pieces(pieces.origin[:top], pieces.goal[:top], pieces.rail[:top], pieces.bytes[:top], pieces.turn[:top])
