"""The arguments that a bound's certificate may use, each restated from the problem; nothing is taken from a method.

An argument reads a certificate and returns what is needed (bytes times price) and the capacity that has to provide it.

``cut``: ``inside`` (nodes), ``origins`` (members inside), ``goals`` (members outside). Every byte of a block that only
origins hold (of a sum: to which an origin contributes) and that is wanted at a goal crosses a link out of ``inside`` at
least once, however switches forward; of a group's transfer at most its size is counted.

``prices``: ``length`` (price of a byte on every link), ``away_ticks`` at ``ticks_per_s`` (blocks from rank to rank
whose latency distance is less are left out). Every byte travels from its origin to its goal, so its links cost at
least the shortest distance.

``shares``: ``length``, and rows for the block ``of`` and all of the same holders and wanters: a ``wanter`` and, of a
sum, a ``holder``, with a share of ``length`` for them; the shares of a block add up to no more. Every byte crosses, for
each row, all links of some path from a holder (of a sum: this one) to the wanter, and pays all rows' shares.

``gossip`` (allreduce): ``length``. Every byte costs at least twice the minimum spanning tree of the members under the
lesser of the distances there and back, if every transfer from member to member pays its own way.

``partition`` (allreduce): ``part`` of every node, each part with a member. Every byte crosses from part to part at
least 2 (parts - 1) times (one-way gossip, Harary and Schwenk 1974).

``senders`` (allreduce): ``length``. Every byte makes at least 2 (N - 1) transfers from member to member whose sender is
ready, each of which pays at least the least price from a member to another through switches; a link serves them from
when such a sender can reach it.

``sum_rates`` (allreduce): ``length``. Of every byte a sum leaves a switch at its rate of adding, or members exchange at
least 2 (N - 1) messages; either way something enters each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.text import untrusted
from synth_models.fabric.check.windows import (
    HIGHEST_PRICE,
    UNREACHABLE,
    Capacity,
    Fabric,
    Sharing,
    capacity_of,
    reach_over,
)
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact

NOT_JOINED = "some members cannot reach each other"
MOST_ROWS = 20_000  # of shares
MOST_IN_PAIRS = 4096  # members of which all pairs' distances are found

Needed = tuple[Fraction | int, Capacity]
Argument = Callable[[FabricInstance, Mapping[str, Any]], Needed]


def cut(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What must leave a set of nodes."""
    fabric = Fabric(instance)
    inside = fabric.mask(_nodes(fabric, certificate, "inside"))
    origins, goals = (fabric.mask(_members(fabric, certificate, key)) for key in ("origins", "goals"))
    if np.any(origins & ~inside) or np.any(goals & inside):
        raise ValueError("an origin lies outside, or a goal inside")
    if not origins.any() or not goals.any():
        raise ValueError("there are no origins or no goals")
    blocks = instance.blocks
    some, every = among(instance, blocks.origin, origins)
    begins = np.where(blocks.sums, some, every)
    ends, _ = among(instance, blocks.goal, goals)
    price = (inside[fabric.tail] & ~inside[fabric.head]).astype(np.int64)
    capacity, _ = capacity_of(fabric, price, *fabric.windows(origins, goals), "once")
    return untrusted.exact_sum(blocks.bytes[begins & ends]), capacity


def prices(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What blocks from rank to rank pay on their shortest ways."""
    fabric = Fabric(instance)
    length = _lengths(fabric, certificate)
    blocks = instance.blocks
    if np.any(blocks.origin < 0) or np.any(blocks.goal < 0):
        raise ValueError(f"prices prove nothing for {instance.collective}")
    away = _ticks(fabric, certificate, "away_ticks")
    needed, origins, goals = 0, np.zeros(fabric.nodes, dtype=bool), np.zeros(fabric.nodes, dtype=bool)
    by_origin = np.argsort(blocks.origin, kind="stable")
    starts, first = np.unique(blocks.origin[by_origin], return_index=True)
    for u, rows in zip(starts.tolist(), np.split(by_origin, first[1:]), strict=True):
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
    capacity, _ = capacity_of(fabric, length, *fabric.windows(origins, goals), "path")
    return needed, capacity


def shares(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What blocks pay for all their wanters together."""
    fabric, blocks, members = Fabric(instance), instance.blocks, instance.members
    length = _lengths(fabric, certificate)
    rows = certificate["rows"]
    if not isinstance(rows, (list, tuple)) or not 0 < len(rows) <= MOST_ROWS:
        raise ValueError(f"there are not 1..{MOST_ROWS} rows")
    left: dict[tuple[int, ...], IntArray] = {}
    needed, origins, goals = 0, np.zeros(fabric.nodes, dtype=bool), np.zeros(fabric.nodes, dtype=bool)
    for row in rows:
        b = untrusted.whole(row, "of", 0, len(blocks) - 1)
        holders, wanters = (blocks.ranks(int(codes[b]), members) for codes in (blocks.origin, blocks.goal))
        wanter = _one_of(row, "wanter", wanters)
        sources = [_one_of(row, "holder", holders)] if blocks.sums[b] else list(holders)
        part = untrusted.whole_numbers(row, "length", 0, HIGHEST_PRICE, (len(fabric.tail),))
        alike = blocks.origin == blocks.origin[b], blocks.goal == blocks.goal[b], blocks.sums == blocks.sums[b]
        kind = int(blocks.origin[b]), int(blocks.goal[b]), int(blocks.sums[b])
        left[kind] = left.get(kind, length) - part
        if left[kind].min(initial=0) < 0:
            raise ValueError(f"the shares of block {b} add up to more than the prices")
        pays = int(fabric.reach(fabric.mask(sources), part)[wanter])
        if pays >= UNREACHABLE:
            raise ValueError(f"not every wanter of block {b} can be reached")
        needed += pays * untrusted.exact_sum(blocks.bytes[np.logical_and.reduce(alike)])
        origins[sources], goals[wanter] = True, True
    capacity, _ = capacity_of(fabric, length, *fabric.windows(origins, goals), along_paths(instance))
    return needed, capacity


def among(instance: FabricInstance, codes: IntArray, nodes: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Whether some, and whether all, of the ranks that each entry of a block's ``origin`` or ``goal`` means are among
    these nodes."""
    some = nodes[np.maximum(codes, 0)]
    every = some.copy()
    for code in np.unique(codes[codes < 0]).tolist():
        meant = nodes[list(instance.blocks.ranks(code, instance.members))]
        some[codes == code], every[codes == code] = meant.any(), meant.all()
    return some, every


def _one_of(row: Mapping[str, Any], key: str, ranks: Sequence[int]) -> int:
    found = untrusted.whole(row, key, 0, max(ranks))
    if found not in ranks:
        raise ValueError(f"rank {found} is no {key} of its block")
    return found


def gossip(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What the messages of an allreduce pay, each for its own way, or no more than that.

    A byte makes at least 2 (k - 1) transfers between any k groups of members (one group must be the first to know all,
    which takes a transfer from each other one or on its behalf; each other one must still be completed later). With
    groups of members nearer than x to each other, these cost x or more; summed over all x that is two spanning trees.

    A switch that copies or adds where it cuts through is one more end of transfers, with nothing to contribute: groups
    are formed of members and such switches, and only those with a member count.
    """
    must_be_allreduce(instance)
    fabric = Fabric(instance)
    passing = instance.special_switches and instance.switching.mode == "cut_through"
    if not transfers_pay_alone(fabric) and not passing:
        raise ValueError("gossip proves nothing where all switches copy")
    if np.any(joined_nodes(fabric) & fabric.is_rank & ~fabric.mask(fabric.members)):
        raise ValueError("gossip proves nothing where ranks outside the group forward")
    length = _lengths(fabric, certificate)
    everyone = fabric.mask(fabric.members)
    capacity, _ = capacity_of(fabric, length, *fabric.windows(everyone, everyone), along_paths(instance))
    multiplying, members = _multiplying(fabric), len(fabric.members)
    if not len(multiplying) and (members > MOST_IN_PAIRS or _same_both_ways(fabric, length)):
        return 2 * instance.bytes * _tree_both_ways(fabric, length), capacity
    ends = np.concatenate([fabric.members, multiplying])
    one_way = np.stack([fabric.reach(fabric.mask([u]), length)[ends] for u in ends])
    apart = np.minimum(one_way, one_way.T)
    if np.any(apart[:members, :members] >= UNREACHABLE):
        raise ValueError(NOT_JOINED)
    return 2 * instance.bytes * spanning_tree(apart, members), capacity


def partition(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What crosses between the parts of all nodes."""
    must_be_allreduce(instance)
    fabric = Fabric(instance)
    part = untrusted.whole_numbers(certificate, "part", 0, fabric.nodes - 1, (fabric.nodes,))
    parts = np.unique(part)
    if not np.array_equal(np.unique(part[fabric.members]), parts):
        raise ValueError("a part has no member")
    everyone = fabric.mask(fabric.members)
    price = (part[fabric.tail] != part[fabric.head]).astype(np.int64)
    capacity, _ = capacity_of(fabric, price, *fabric.windows(everyone, everyone), along_paths(instance))
    return 2 * (len(parts) - 1) * instance.bytes, capacity


def senders(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What transfers pay whose senders are ready.

    Let w be the member that is ready last. Of every other member some first transfer carries what it contributes, after
    it is ready; let k of these N - 1 carry what w contributes, too, and hence leave after all are ready. Whoever has
    the contributions of w and one of these k got them together or adds them up, so from then on they travel together:
    the transfers that carry those of w are one-way gossip in which k + 1 members' news come to all N. One member is the
    first to know all of it, after a first transfer by each other of the k + 1; all N - 1 others are completed by later
    ones. These are k + N - 1 at least, and N - 1 - k first transfers do not carry what w contributes.
    """
    must_be_allreduce(instance)
    fabric = Fabric(instance)
    if not transfers_pay_alone(fabric) or np.any(joined_nodes(fabric) & fabric.is_rank & ~fabric.mask(fabric.members)):
        raise ValueError("senders proves nothing where switches copy or add, or ranks outside the group forward")
    if not 1 < len(fabric.members) <= MOST_IN_PAIRS:
        raise ValueError(f"senders is about 2..{MOST_IN_PAIRS} members")
    length = _lengths(fabric, certificate)
    least = UNREACHABLE
    for u in fabric.members.tolist():
        apart = fabric.reach(fabric.mask([u]), length, only_switches=True)[fabric.members]
        least = min(least, int(apart[fabric.members != u].min()))
    if least >= UNREACHABLE:
        raise ValueError(NOT_JOINED)
    first = np.full(fabric.nodes, UNREACHABLE, dtype=np.int64)
    own = np.flatnonzero(fabric.is_rank[fabric.tail])
    into = own[~fabric.is_rank[fabric.head[own]]]
    np.minimum.at(first, fabric.head[into], fabric.begins[fabric.tail[into]] + fabric.delay[into])
    begin = fabric.reach_from(first, fabric.delay, only_switches=True)[fabric.tail]
    begin[own] = fabric.begins[fabric.tail[own]]
    _, left = fabric.windows(fabric.mask(fabric.members), fabric.mask(fabric.members))
    capacity, _ = capacity_of(fabric, length, begin, left, "path")
    return 2 * (len(fabric.members) - 1) * instance.bytes * least, capacity


def sum_rates(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What sums in switches pay, or ranks that do without.

    If a switch adds some byte, a link out of it is occupied at the rate of adding, and something enters every member;
    if none does, whatever enters a member is one rank's message, of which gossip takes 2 (N - 1).
    """
    must_be_allreduce(instance)
    fabric = Fabric(instance)
    if instance.switching.mode != "cut_through" or len(fabric.members) < 2:
        raise ValueError("sum_rates is about several members and switches that cut through")
    if np.any(joined_nodes(fabric) & fabric.is_rank & ~fabric.mask(fabric.members)):
        raise ValueError("sum_rates proves nothing where ranks outside the group forward")
    length, machine = _lengths(fabric, certificate), instance.machine
    entering = [length[fabric.head == v].tolist() for v in fabric.members]
    if not all(entering):
        raise ValueError(NOT_JOINED)
    least = [min(row) for row in entering]
    more = [Fraction(min(least) * (len(least) - 2))]
    for e in np.flatnonzero(machine.abilities.adds[fabric.tail] & ~fabric.is_rank[fabric.tail]).tolist():
        rate = float(machine.abilities.add_rate[fabric.tail[e]])
        speed = exact(float(machine.network.bandwidth[e]))
        more.append(length[e].item() * (speed / min(speed, exact(rate)) - 1) if np.isfinite(rate) else Fraction(0))
    everyone = fabric.mask(fabric.members)
    capacity, _ = capacity_of(fabric, length, *fabric.windows(everyone, everyone), along_paths(instance))
    return instance.bytes * (sum(least) + min(more)), capacity


ARGUMENTS: dict[str, Argument] = {
    "cut": cut, "prices": prices, "shares": shares, "gossip": gossip, "partition": partition, "senders": senders,
    "sum_rates": sum_rates,
}  # fmt: skip


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


def must_be_allreduce(instance: FabricInstance) -> None:
    if instance.collective != "allreduce":
        raise ValueError(f"this argument proves nothing for {instance.collective}")


def _multiplying(fabric: Fabric) -> IntArray:
    """Switches in use that copy or add streams which pass through."""
    able = fabric.instance.machine.abilities
    return np.flatnonzero((able.copies | able.adds) & joined_nodes(fabric) & ~fabric.is_rank)


def spanning_tree(apart: IntArray, members: int) -> int:
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


def _nodes(fabric: Fabric, certificate: Mapping[str, Any], key: str) -> IntArray:
    found = untrusted.whole_numbers(certificate, key, 0, fabric.nodes - 1)
    if len(np.unique(found)) < len(found):
        raise ValueError(f"{key} names a node twice")
    return found


def _members(fabric: Fabric, certificate: Mapping[str, Any], key: str) -> IntArray:
    found = _nodes(fabric, certificate, key)
    if not fabric.mask(fabric.members)[found].all():
        raise ValueError(f"{key} names a node that is no member")
    return found


def _lengths(fabric: Fabric, certificate: Mapping[str, Any]) -> IntArray:
    return untrusted.whole_numbers(certificate, "length", 0, HIGHEST_PRICE, (len(fabric.tail),))


def _ticks(fabric: Fabric, certificate: Mapping[str, Any], key: str) -> int:
    """A time of the certificate in the fabric's ticks, rounded up."""
    per_s = untrusted.whole(certificate, "ticks_per_s", 1, 10**18)
    return -(-untrusted.whole(certificate, key, 0, 2**61) * fabric.ticks_per_s // per_s)
