"""By way of leaders over groups of near boxes, for ``hierarchical``: a broadcast in three sends from box to box, and
pieces of everyone in two.

The root deals its pieces out to boxes of other groups, one after the other. The leader of a piece sends it once to
every other group and to its own group's boxes; who gets it for a group hands it to the rest of that group. So links
between groups carry every piece once into each group, which suits leaf switches that are oversubscribed. One level of
leaders is from Karp, Sahay, Santos and Schauser ("Optimal broadcast and summation in the LogP model", SPAA 1993).

What everyone spreads goes once into every other group, to the box that has its own box's place there, and from each
of these boxes to the others of the group: a box sends as much as if it went straight to all, and links between groups
carry a piece once a group instead of once a box.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth.arrays import SAME, FloatArray, IntArray
from synth.graph.max_flow import MaximumFlow
from synth_models.fabric.plans.out_trees import Edge
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.references.hierarchical.box_rails import Rails
from synth_models.fabric.references.hierarchical.box_sends import Collected, Rounds, Sends, at_home
from synth_models.fabric.references.hierarchical.box_trees import NOBODY
from synth_models.fabric.routes.near_boxes import Groups, around, near_boxes, places


def groups_of_boxes(seconds: FloatArray) -> list[list[int]]:
    """The boxes by innermost group of near ones, from seconds between boxes, shape (boxes, boxes); empty unless there
    are several groups, some of several boxes."""
    order = around(seconds)
    found = [order[place].tolist() for place in map(places, _innermost(near_boxes(seconds, order)))]
    return found if len(found) > 1 and max(map(len, found)) > 1 else []


def leave_narrowly(machine: Machine, boxes: Sequence[Sequence[int]], groups: Sequence[Sequence[int]]) -> bool:
    """Whether less leads out of the first group than out of its boxes."""
    if not groups:
        return False
    alone = sum(_out_of(machine, boxes[box]) for box in groups[0])
    return _out_of(machine, [rank for box in groups[0] for rank in boxes[box]]) < (1 - SAME) * alone


def _out_of(machine: Machine, inside: Sequence[int]) -> int:
    """What links can carry from these ranks to all others, in parts of the fastest link as fine as 64 bits hold."""
    net, within = machine.network, np.isin(machine.ranks, inside)
    source, sink = net.nodes, net.nodes + 1
    tail = np.concatenate([net.src, np.full(int(within.sum()), source), machine.ranks[~within]])
    head = np.concatenate([net.dst, machine.ranks[within], np.full(int((~within).sum()), sink)])
    parts = 2**61 // (net.links * (len(machine.ranks) + 1))
    wide = np.rint(net.bandwidth / net.bandwidth.max() * parts).astype(np.int64)
    free = np.full(len(machine.ranks), int(wide.sum()), dtype=np.int64)
    return int(MaximumFlow(net.nodes + 2, tail, head, np.concatenate([wide, free]), source, sink).value)


def led_by_groups(rails: Rails, root: int, pieces: int, rounds: Rounds, groups: Sequence[Sequence[int]]) -> Sends:
    """From the root to the ranks of its box in turn, each along its rail to a leader, from there once to every group of
    boxes, and on in each; inside boxes to all. Without ``groups`` every box is one: which boxes are near depends on the
    size of pieces and on the direction of links."""
    groups = groups or [[box] for box in range(len(rails.size))]
    home = int(rails.box[root])
    width = int(rails.size[home])
    piece = np.arange(pieces, dtype=np.int64)
    turn, begin = piece // width, rails.rank[home, piece % width]
    sends = Collected(rails, chain=False)
    first = at_home(sends, root, begin, turn, rounds.inside)
    leaders = _leaders(groups, home)
    for k, leader in enumerate(leaders):
        mine = np.flatnonzero(turn % len(leaders) == k)
        brought, at = {home: first[mine]}, {home: begin[mine]}
        for source, target, wait in _edges(groups, home, leader, rounds.farthest):
            box = np.full(len(mine), target)
            _, at[target] = rails.between(at[source], box, turn[mine])
            step = turn[mine] + wait
            brought[target] = sends.to_the_box(mine, at[source], brought[source], box, step, turn[mine])
    return sends.all()


def once_a_group(rails: Rails, holder: IntArray, chunk: IntArray, groups: Sequence[Sequence[int]]) -> Sends:
    """From the holder of every piece along its rail to one box of every other group and to its own group's boxes, from
    those boxes to the others of their groups; inside boxes to all. Straight to all boxes where groups are not alike."""
    sizes = set(map(len, groups))
    near = np.array(groups if len(sizes) == 1 else [[box] for box in range(len(rails.size))], dtype=np.int64)
    count, size = near.shape
    place = np.argsort(near.reshape(-1))[rails.box[holder]]
    group, member = place // size, place % size
    piece = np.arange(len(holder), dtype=np.int64)
    step = chunk * count * size
    sends = Collected(rails, chain=False)
    at = [holder] * count  # of every group, counted from the holder's on, the rank that pieces come to first
    brought = [sends.into_the_box(piece, holder, np.full_like(piece, NOBODY), step)] * count
    for k in range(1, count * size):
        beside, ahead = divmod(k, count)
        box, first = near[(group + ahead) % count, (member + beside) % size], ahead if beside else 0
        came = sends.to_the_box(piece, at[first], brought[first], box, step + k, chunk)
        if not beside:
            (_, at[ahead]), brought[ahead] = rails.between(holder, box, chunk), came
    return sends.all()


def _leaders(groups: Sequence[Sequence[int]], home: int) -> list[int]:
    """The boxes of all groups but that of ``home``, one of each group after the other."""
    others = [list(group) for group in groups if home not in group]
    return [group[k] for k in range(max(map(len, others))) for group in others if k < len(group)]


def _edges(groups: Sequence[Sequence[int]], home: int, leader: int, on_the_way: int) -> list[Edge]:
    """The tree over boxes of a leader's pieces: from box, to box, rounds after the piece left the root. In every group
    it comes to the box that has the leader's place in its own, so that all boxes of a group have as much to hand on."""
    own = next(group for group in groups if leader in group)
    position = list(own).index(leader)
    edges = [(home, leader, 0)]
    began, others = on_the_way, [group for group in groups if group is not own]
    here = others.index(next(group for group in others if home in group))
    for group in (*others[here:], *others[:here]):  # the root's boxes hand on more than others
        able = [box for box in group if box != home]
        if able:
            gate = able[position % len(able)]
            edges.append((leader, gate, began))
            later = began + on_the_way
            edges += [(gate, box, later + k) for k, box in enumerate(box for box in able if box != gate)]
            began += 1
    edges += [(leader, box, began + k) for k, box in enumerate(box for box in own if box != leader)]
    return sorted(edges, key=_wait)


def _innermost(groups: Groups) -> list[Groups]:
    """The groups that hold boxes alone."""
    if isinstance(groups, int):
        return [groups]
    if all(isinstance(part, int) for part in groups):
        return [groups]
    return [inner for part in groups for inner in _innermost(part)]


def _wait(edge: Edge) -> int:
    _, _, wait = edge
    return wait
