"""The check of a quotient's group, and of the links modulo it: from the generators and the machine alone, exactly.

**Why the quotient decides.** Verified first: every generator permutes the nodes, members to members, switches to
switches, and the links with their bandwidth, latency and group; generators commute; each to the power of its order is
the identity; the orders' product is the number of members N, and the products of powers carry the origin to N
different members. Then these products are a group G of N elements, and to every member v belongs exactly one g with
g(origin) = v. So

* the block of v moves on the image of the machine under g as the origin's block does on the machine: it is sent only
  where it is, and ends everywhere it must (contributions likewise), iff the origin's does;
* a link f is used by a transfer of v iff f = g(e) for a link e of the origin's transfer. Let s be the number of
  elements that leave e where it is (N over the links in e's orbit). The elements that carry e to f are s as well, and
  so many transfers occupy f at the same ticks; every transfer lasts a tick, so s must be 1. Then a hop over e occupies
  f once, by g's image of its transfer, and no two transfers meet anywhere iff no two hops of the origin's over links of
  one orbit overlap (hops of one transfer too, since different elements carry different links to f);
* groups of links in the same way, but that hops of one transfer over links of one group are the same image's.

Every condition is necessary as well, so nothing that is right is refused. Shares no code with the methods, nor with
what lists a quotient's transfers.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from math import prod
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.check.occupancy import Clash, Taken, overlapping
from synth_models.fabric.check.route_hops import Hops
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE, Blocks
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.solution import MOST_GENERATORS, Quotient, Schedule

OF_ORIGIN = {"allgather": "broadcast", "reduce_scatter": "reduce", "allreduce": "allreduce"}


class Orbits(NamedTuple):
    """Orbits under the group, and how many links or groups each has: of links, shape (links,); of groups of links,
    shape (groups,)."""

    link: IntArray
    links: IntArray
    group: IntArray
    groups: IntArray


def of_origin(instance: FabricInstance) -> FabricInstance:
    """What the origin's block alone asks for: its broadcast, its sum, or an allreduce of its share."""
    one, blocks, origin = copy(instance), instance.blocks, instance.members[0]
    share = instance.bytes // len(instance.members)
    begin = EVERYONE if np.any(blocks.origin == EVERYONE) else origin
    goal = EVERYONE if np.any(blocks.goal == EVERYONE) else origin
    holds, wants, size = (np.array([value], dtype=np.int64) for value in (begin, goal, share))
    one.__dict__.update(
        collective=OF_ORIGIN[instance.collective],
        bytes=share,
        root=origin if instance.collective != "allreduce" else None,
        members=instance.members,
        machine=instance.machine,
        blocks=Blocks(holds, wants, size),
    )
    return one


def group_faults(instance: FabricInstance, quotient: Quotient) -> Iterator[str]:
    """What is wrong with the group; the first fault of each kind ends it, since the others would follow from it."""
    fault = _not_alike(instance) or _no_permutations(instance, quotient) or _no_group(instance, quotient)
    if fault is None:
        for i, image in enumerate(quotient.generators):
            if (words := _no_symmetry(instance.machine, image)) is not None:
                fault = f"generator {i} {words}"
                break
    if fault is not None:
        yield f"the quotient: {fault}"


def orbits_of(machine: Machine, generators: IntArray) -> Orbits:
    """The orbits under generators without :func:`group_faults`."""
    moved = [_moved_links(machine, image) for image in generators]
    links = [image for image in moved if image is not None]
    link = _components(links, machine.links)
    groups = [_moved_groups(machine, image) for image in links]
    group = _components(groups, _groups(machine))
    return Orbits(link, np.bincount(link)[link], group, np.bincount(group)[group] if len(group) else group)


def stays(instance: FabricInstance, part: Schedule, orbits: Orbits) -> Iterator[str]:
    """Links and groups that are used and that other elements than the identity leave where they are."""
    members, used = len(instance.members), np.unique(part.link)
    for e in used[orbits.links[used] < members].tolist():
        yield _too_often(f"link {e}", members // int(orbits.links[e]))
    groups = np.unique(instance.machine.group[used])
    groups = groups[groups >= 0]
    for g in groups[orbits.groups[groups] < members].tolist():
        yield _too_often(f"group {g}", members // int(orbits.groups[g]))


def clashes_modulo(instance: FabricInstance, part: Schedule, hops: Hops, orbits: Orbits) -> tuple[int, list[Clash]]:
    """As :func:`synth_models.fabric.check.occupancy.clashes`, of the whole schedule, for links without :func:`stays`:
    hops of the origin's transfers that overlap on one orbit."""
    row, group = np.arange(len(hops.owner), dtype=np.int32), instance.machine.group[part.link]
    taken = [Taken(orbits.link[part.link].astype(np.int32), int(orbits.link.max(initial=-1)) + 1, row, False)]
    if np.any(group >= 0):
        orbit = np.where(group >= 0, orbits.group[np.maximum(group, 0)], -1).astype(np.int32)
        pair = hops.owner.astype(np.int64) * _groups(instance.machine) + group
        owner = np.unique(pair, return_inverse=True)[1].reshape(-1).astype(np.int32)
        taken.append(Taken(orbit, int(orbits.group.max()) + 1, owner, True))
    return overlapping(hops, taken)


def _too_often(thing: str, times: int) -> str:
    return f"the quotient: {thing} is used, but {times} elements leave it where it is: it would carry as many at a time"


def _not_alike(instance: FabricInstance) -> str | None:
    """Why the collective does not ask the same of every member, or None."""
    blocks, members = instance.blocks, np.array(instance.members, dtype=np.int64)
    if instance.collective not in OF_ORIGIN:
        return f"{instance.collective} does not ask the same of every rank: only {', '.join(OF_ORIGIN)} do"
    if len(members) < 2:
        return "there is one rank only"
    if instance.machine.abilities.streams.any():
        return "switches copy or add a limited number of streams, which only schedules with all transfers show"
    if instance.collective == "allreduce":
        if instance.bytes % len(members):
            return f"{instance.bytes} bytes are not {len(members)} equal shares"
        return None
    whose = blocks.origin if instance.collective == "allgather" else blocks.goal
    if not np.array_equal(whose, members) or len(np.unique(blocks.bytes)) != 1:
        return "the blocks are not one of equal size for every rank"
    return None


def _no_permutations(instance: FabricInstance, quotient: Quotient) -> str | None:
    """Why the generators are no permutations of the nodes that keep members and switches, or None."""
    machine, generators, orders = instance.machine, quotient.generators, quotient.orders
    for name, array in (("generators", generators), ("orders", orders)):
        if not isinstance(array, np.ndarray) or array.dtype != np.int64:
            return f"{name} are no 64-bit whole numbers"
    if orders.ndim != 1 or len(orders) > MOST_GENERATORS:
        return f"orders have shape {orders.shape}, not one row of at most {MOST_GENERATORS}"
    if generators.shape != (len(orders), machine.nodes):
        return f"generators have shape {generators.shape}, not {(len(orders), machine.nodes)}"
    kind = machine.is_switch.astype(np.int64)
    kind[list(instance.members)] = 2
    for i, image in enumerate(generators):
        if image.min(initial=0) < 0 or image.max(initial=0) >= machine.nodes:
            return f"generator {i} names a node that does not exist (0..{machine.nodes - 1})"
        if len(np.unique(image)) != machine.nodes:
            return f"generator {i} is no permutation of the nodes"
        if np.any(kind[image] != kind):
            v = int(np.flatnonzero(kind[image] != kind)[0])
            return f"generator {i} moves node {v} to node {image[v]}, which is not of its kind"
    return None


def _no_group(instance: FabricInstance, quotient: Quotient) -> str | None:
    """Why the products of powers are no group that carries the origin to every member exactly once, or None."""
    generators, orders = quotient.generators, quotient.orders.tolist()
    if min(orders, default=1) < 1 or prod(orders) != len(instance.members):
        return f"the orders {orders} do not make as many elements as there are ranks, {len(instance.members)}"
    for i, one in enumerate(generators):
        for j, other in enumerate(generators[:i]):
            if not np.array_equal(one[other], other[one]):
                return f"generators {j} and {i} do not commute"
    reached = np.array(instance.members[:1], dtype=np.int64)
    for i, (image, order) in enumerate(zip(generators, orders, strict=True)):
        if not np.array_equal(_power(image, order), np.arange(len(image))):
            return f"generator {i} does not come back after {order} times"
        rows = np.empty((order, len(reached)), dtype=np.int64)
        for k in range(order):
            rows[k] = reached if k == 0 else image[rows[k - 1]]
        reached = rows.reshape(-1)
    if not np.array_equal(np.sort(reached), np.sort(instance.members)):
        return f"the elements do not carry rank {instance.members[0]} to every rank once"
    return None


def _power(image: IntArray, exponent: int) -> IntArray:
    """The permutation so many times."""
    result, square = np.arange(len(image)), image
    while exponent:
        if exponent & 1:
            result = square[result]
        square, exponent = square[square], exponent >> 1
    return result


def _no_symmetry(machine: Machine, image: IntArray) -> str | None:
    """Why a permutation of the nodes does not map links and groups onto each other, or None."""
    links = _moved_links(machine, image)
    if links is None:
        return "does not map the links onto links of the same bandwidth and latency"
    able = machine.abilities
    if any(np.any(row != row[image]) for row in (able.copies, able.adds, able.add_rate)):
        return "maps switches onto others that copy or add otherwise"
    groups = _moved_groups(machine, links)
    grouped = machine.group >= 0
    if np.any(groups[machine.group[grouped]] != machine.group[links[grouped]]):
        return "tears a group of links apart"
    if len(np.unique(groups)) != len(groups):
        return "maps two groups of links onto one"
    return None


def _moved_links(machine: Machine, image: IntArray) -> IntArray | None:
    """Where every link goes: of the parallel links of a kind the i-th to the i-th. None where there is no such link."""
    net = machine.network
    kind = np.unique(net.bandwidth, return_inverse=True)[1].reshape(-1), np.unique(net.latency, return_inverse=True)[1]
    columns = machine.group >= 0, kind[0], kind[1].reshape(-1)
    tail, head = net.src.astype(np.int64), net.dst.astype(np.int64)
    there = tail * machine.nodes + head
    from_ = image[tail] * machine.nodes + image[head]
    before = np.lexsort((*columns, there))  # stable: parallel links of a kind stand in the order of their numbers
    after = np.lexsort((*columns, from_))
    if not np.array_equal(there[before], from_[after]):
        return None
    if any(not np.array_equal(column[before], column[after]) for column in columns):
        return None
    moved = np.empty(machine.links, dtype=np.int64)
    moved[after] = before
    return moved


def _moved_groups(machine: Machine, links: IntArray) -> IntArray:
    """Where every group goes that has links, by one of them; others stay."""
    moved = np.arange(_groups(machine), dtype=np.int64)
    grouped = np.flatnonzero(machine.group >= 0)
    moved[machine.group[grouped]] = machine.group[links[grouped]]
    return moved


def _groups(machine: Machine) -> int:
    return int(machine.group.max(initial=-1)) + 1


def _components(maps: list[IntArray], count: int) -> IntArray:
    """The orbit of each of ``count`` things under permutations of them."""
    if not maps or not count:
        return np.arange(count, dtype=np.int64)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    here = np.tile(np.arange(count), len(maps))
    graph = coo_array((np.ones(len(here), dtype=np.int8), (here, np.concatenate(maps))), shape=(count, count))
    label: IntArray = connected_components(graph.tocsr(), directed=False)[1].astype(np.int64)
    return label
