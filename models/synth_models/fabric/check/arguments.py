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

``partition`` (allreduce): ``part`` of every node, each part with a member; ``late`` members (default: all). Let the
late ones be in k parts. What these contribute to a byte crosses from part to part at least parts + k - 2 times, not
before one of them is ready (one-way gossip, Harary and Schwenk 1974): one part is the first to know all, after a
crossing out of each other of the k, and every other one is completed later.

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
from synth_models.fabric.check.payments import (
    MOST_IN_PAIRS,
    NOT_JOINED,
    along_paths,
    of_pairs,
    outsiders,
    transfers_pay_alone,
    tree_of,
)
from synth_models.fabric.check.windows import HIGHEST_PRICE, UNREACHABLE, Capacity, Fabric, capacity_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact

MOST_ROWS = 20_000  # of shares

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
    fabric, blocks = Fabric(instance), instance.blocks
    length = _lengths(fabric, certificate)
    if np.any(blocks.origin < 0) or np.any(blocks.goal < 0):
        raise ValueError(f"prices prove nothing for {instance.collective}")
    needed, origins, goals = of_pairs(fabric, length, _ticks(fabric, certificate, "away_ticks"))
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
    """What the messages of an allreduce pay, each for its own way, or no more than that."""
    must_be_allreduce(instance)
    fabric = Fabric(instance)
    passing = instance.special_switches and instance.switching.mode == "cut_through"
    if not transfers_pay_alone(fabric) and not passing:
        raise ValueError("gossip proves nothing where all switches copy")
    if outsiders(fabric):
        raise ValueError("gossip proves nothing where ranks outside the group forward")
    length = _lengths(fabric, certificate)
    everyone = fabric.mask(fabric.members)
    capacity, _ = capacity_of(fabric, length, *fabric.windows(everyone, everyone), along_paths(instance))
    return 2 * instance.bytes * tree_of(fabric, length), capacity


def partition(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What crosses between the parts of all nodes."""
    must_be_allreduce(instance)
    fabric = Fabric(instance)
    part = untrusted.whole_numbers(certificate, "part", 0, fabric.nodes - 1, (fabric.nodes,))
    parts = np.unique(part)
    if not np.array_equal(np.unique(part[fabric.members]), parts):
        raise ValueError("a part has no member")
    everyone = fabric.mask(fabric.members)
    late = fabric.mask(_members(fabric, certificate, "late")) if "late" in certificate else everyone
    if not late.any():
        raise ValueError("nobody is late")
    price = (part[fabric.tail] != part[fabric.head]).astype(np.int64)
    capacity, _ = capacity_of(fabric, price, *fabric.windows(late, everyone), along_paths(instance))
    return (len(parts) + len(np.unique(part[late])) - 2) * instance.bytes, capacity


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
    if not transfers_pay_alone(fabric) or outsiders(fabric):
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
    if outsiders(fabric):
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


def must_be_allreduce(instance: FabricInstance) -> None:
    if instance.collective != "allreduce":
        raise ValueError(f"this argument proves nothing for {instance.collective}")


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
