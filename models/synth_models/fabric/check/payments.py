"""What the bytes of an operation pay at least, at prices of a byte on every link; by how its transfers pay.

A byte pays

* from a rank to a rank the shortest distance;
* from several holders, or to several wanters, the greatest over the wanters of the distance from the nearest holder, of
  a sum from the farthest;
* for each of its ends that is everyone a tree (:func:`tree_of`), where transfers pay alone and members alone forward.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.text import untrusted
from synth_models.fabric.check.windows import UNREACHABLE, Fabric, Sharing, reach_over
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE

NOT_JOINED = "some members cannot reach each other"
MOST_IN_PAIRS = 4096  # members of which all pairs' distances are found


def of_pairs(fabric: Fabric, length: IntArray, away: int = 0) -> tuple[int, BoolArray, BoolArray]:
    """What blocks from rank to rank pay together whose latency distance is ``away`` ticks or more; the nodes at which
    these begin, and at which they end. Raises ``ValueError`` where one cannot be reached."""
    blocks, needed = fabric.instance.blocks, 0
    origins, goals = np.zeros(fabric.nodes, dtype=bool), np.zeros(fabric.nodes, dtype=bool)
    pairs = np.flatnonzero((blocks.origin >= 0) & (blocks.goal >= 0))
    by_origin = pairs[np.argsort(blocks.origin[pairs], kind="stable")]
    starts, first = np.unique(blocks.origin[by_origin], return_index=True)
    for u, rows in zip(starts.tolist(), np.split(by_origin, first)[1:], strict=True):
        source = fabric.mask([u])
        if away:
            rows = rows[fabric.reach(source, fabric.delay)[blocks.goal[rows]] >= away]
        if not len(rows):
            continue
        cost = fabric.reach(source, length)[blocks.goal[rows]]
        if np.any(cost >= UNREACHABLE):
            raise ValueError(f"not every goal of rank {u} can be reached")
        needed += untrusted.exact_dot(cost, blocks.bytes[rows])
        origins[u] = True
        goals[blocks.goal[rows]] = True
    return needed, origins, goals


def of_all(fabric: Fabric, length: IntArray) -> int:
    """What all blocks pay together. Raises ``ValueError`` where one cannot be reached."""
    needed, _, _ = of_pairs(fabric, length)
    blocks, members = fabric.instance.blocks, fabric.instance.members
    wide = (blocks.origin < 0) | (blocks.goal < 0)
    if not wide.any():
        return needed
    kinds, which = np.unique(np.stack([blocks.origin, blocks.goal, blocks.sums])[:, wide], axis=1, return_inverse=True)
    holders = sorted({u for code in np.unique(kinds[0]).tolist() for u in blocks.ranks(code, members)})
    apart = {u: fabric.reach(fabric.mask([u]), length) for u in holders}
    joins = np.any(kinds[:2] == EVERYONE) and transfers_pay_alone(fabric) and not outsiders(fabric)
    tree = tree_of(fabric, length) if joins else 0
    for k, (origin, goal, adds) in enumerate(kinds.T.tolist()):
        costs = np.stack([apart[u][list(blocks.ranks(goal, members))] for u in blocks.ranks(origin, members)])
        most = int((costs.max(axis=0) if adds else costs.min(axis=0)).max())
        if most >= UNREACHABLE:
            raise ValueError(NOT_JOINED)
        size = untrusted.exact_sum(blocks.bytes[wide][which.reshape(-1) == k])
        needed += size * max(most, ((origin == EVERYONE) + (goal == EVERYONE)) * tree)
    return needed


def tree_of(fabric: Fabric, length: IntArray) -> int:
    """Length of the minimum spanning tree of the members under the lesser of the distances there and back.

    What only one has comes to all by a transfer, or several, into each: what joins all groups of members. A byte of an
    allreduce makes at least 2 (k - 1) transfers between any k groups of members (one group must be the first to know
    all, which takes a transfer from each other one or on its behalf; each other one must still be completed later).
    With groups of members nearer than x to each other, these cost x or more; summed over all x that is two trees.

    A switch that copies or adds where it cuts through is one more end of transfers, with nothing to contribute: groups
    are formed of members and such switches, and only those with a member count.
    """
    multiplying, members = _multiplying(fabric), len(fabric.members)
    if not len(multiplying) and (members > MOST_IN_PAIRS or _same_both_ways(fabric, length)):
        return _tree_both_ways(fabric, length)
    ends = np.concatenate([fabric.members, multiplying])
    one_way = np.stack([fabric.reach(fabric.mask([u]), length)[ends] for u in ends])
    apart = np.minimum(one_way, one_way.T)
    if np.any(apart[:members, :members] >= UNREACHABLE):
        raise ValueError(NOT_JOINED)
    return _spanning_tree(apart, members)


def transfers_pay_alone(fabric: Fabric) -> bool:
    """Whether no switch makes several transfers of one, or one of several."""
    switching = fabric.instance.switching
    if switching.mode == "store_and_forward":
        multiplies = switching.copies or bool(switching.adds)
    else:
        able = fabric.instance.machine.abilities
        multiplies = switching.multicast or bool(np.any(able.copies | able.adds))
    return not (multiplies and np.any(joined_nodes(fabric) & ~fabric.is_rank))


def joined_nodes(fabric: Fabric) -> BoolArray:
    """Nodes with a link in use."""
    return fabric.mask(np.concatenate([fabric.tail, fabric.head]))


def along_paths(instance: FabricInstance) -> Sharing:
    """A transfer is a path, or a tree where routes may part or meet."""
    able = instance.machine.abilities
    return "each" if instance.switching.multicast or np.any(able.copies | able.adds) else "path"


def outsiders(fabric: Fabric) -> bool:
    """Whether a rank that is no member has a link in use."""
    return bool(np.any(joined_nodes(fabric) & fabric.is_rank & ~fabric.mask(fabric.members)))


def _multiplying(fabric: Fabric) -> IntArray:
    """Switches in use that copy or add streams which pass through."""
    able = fabric.instance.machine.abilities
    return np.flatnonzero((able.copies | able.adds) & joined_nodes(fabric) & ~fabric.is_rank)


def _spanning_tree(apart: IntArray, members: int) -> int:
    """Length of the minimum spanning tree, by joining the nearest outsider again and again; of its edges, the shortest
    first, those that join two groups of which each has one of the first ``members``."""
    near, outside = apart[0].copy(), np.ones(len(apart), dtype=bool)
    from_ = np.zeros(len(apart), dtype=np.int64)
    outside[0] = False
    edges = []
    while outside.any():
        rest = np.flatnonzero(outside)
        nearest = int(rest[near[rest].argmin()])
        edges.append((int(near[nearest]), int(from_[nearest]), nearest))
        outside[nearest] = False
        closer = apart[nearest] < near
        near[closer], from_[closer] = apart[nearest][closer], nearest
    group = list(range(len(apart)))
    has_member = [v < members for v in group]

    def of(v: int) -> int:
        while group[v] != v:
            group[v] = group[group[v]]
            v = group[v]
        return v

    total = 0
    for length, u, v in sorted(edges):
        a, b = of(u), of(v)
        total += length if has_member[a] and has_member[b] else 0
        group[b] = a
        has_member[a] = has_member[a] or has_member[b]
    return total


def _same_both_ways(fabric: Fabric, length: IntArray) -> bool:
    """Whether the cheapest links there and back of any two nodes cost the same."""
    cheapest: list[dict[int, int]] = []
    for one, other in ((fabric.tail, fabric.head), (fabric.head, fabric.tail)):
        dearest_first = np.argsort(-length, kind="stable")
        pairs = (one * fabric.nodes + other)[dearest_first].tolist()
        cheapest.append(dict(zip(pairs, length[dearest_first].tolist(), strict=True)))
    return cheapest[0] == cheapest[1]


def _tree_both_ways(fabric: Fabric, length: IntArray) -> int:
    """Length of the minimum spanning tree of the members where every link can be used in both directions, which is no
    longer than the one asked for, and the same where prices are the same both ways.

    Every node goes with the member that is nearest; of links between nodes of two members the least that leads from
    one to the other makes the tree (Mehlhorn: A faster approximation algorithm for the Steiner problem in graphs,
    Information Processing Letters 1988). No distance between any two members is needed.
    """
    tail, head = np.concatenate([fabric.tail, fabric.head]), np.concatenate([fabric.head, fabric.tail])
    cost = np.concatenate([length, length])
    away = reach_over(tail, head, cost, np.where(fabric.mask(fabric.members), 0, UNREACHABLE))
    near = np.full(fabric.nodes, -1, dtype=np.int64)
    near[fabric.members] = np.arange(len(fabric.members))
    tight = np.flatnonzero((away[tail] < UNREACHABLE) & (away[tail] + cost == away[head]))
    while True:
        fresh = tight[(near[tail[tight]] >= 0) & (near[head[tight]] < 0)]
        if not len(fresh):
            break
        near[head[fresh]] = near[tail[fresh]]
    between = np.flatnonzero((near[tail] >= 0) & (near[head] >= 0) & (near[tail] != near[head]))
    over = away[tail[between]] + cost[between] + away[head[between]]
    above, joined, total = list(range(len(fabric.members))), 1, 0
    order = np.argsort(over, kind="stable")
    for u, v, price in zip(
        near[tail[between]][order].tolist(), near[head[between]][order].tolist(), over[order].tolist(), strict=True
    ):
        tops = []
        for top in (u, v):
            while above[top] != top:
                above[top] = above[above[top]]
                top = above[top]
            tops.append(top)
        if tops[0] != tops[1]:
            above[tops[0]] = tops[1]
            total, joined = total + price, joined + 1
    if joined < len(above):
        raise ValueError(NOT_JOINED)
    return total
