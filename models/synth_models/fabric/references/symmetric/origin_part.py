"""A quotient's making: the group of a machine, one origin's transfers, and start times modulo the group.

Boxes: the origin, rank r of box b, sends its chunks through its own NIC to rank r of the boxes b + 1, b + 2, … in turn,
and whoever has got one sends it to all other ranks of its box. Moved by the shifts of boxes and of ranks within boxes,
every NIC and every port into a box's switch works like the origin's. Tori: as in
:mod:`.one_origin`. What is summed up is the same backwards; an allreduce is both, for
equal shares.

Complexity: one origin's hops, and the machine's links a generator; nothing grows with the square of the ranks but the
greedy search on tori, which looks through all ranks a send.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.clock.deadline import SLACK_S, OutOfTime, left
from synth.errors import UnsupportedError
from synth.graph.symmetry import arc_images, orbits
from synth.network.symmetry import translation, unit_translations
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.automorphism import automorphism
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.references.symmetric.one_origin import NOBODY, directions, one_origin
from synth_models.fabric.routes.search import Routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.hop_times import hop_times
from synth_models.fabric.scheduling.list_scheduling import followers_of, list_scheduled_in_order
from synth_models.fabric.scheduling.reservations import Uses, uses_of
from synth_models.fabric.scheduling.reversal import joined, reversed_in_time
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Quotient, Schedule

BROKEN = "the machine's symmetry is broken, or it has none that carries every rank to every other one"


class Group(NamedTuple):
    """``generators``, shape (generators, nodes), ``orders``; ``moves``: the same of links, shape (generators, links).

    A hop over a link takes the link's ``orbit``, shape (links,), and the ``port`` of that, the orbit of its group of
    links (-1: none), shape (links,). ``alone``: no element but the identity leaves the link, or its group, where it
    is."""

    generators: IntArray
    orders: IntArray
    moves: IntArray
    orbit: IntArray
    port: IntArray
    alone: BoolArray


def group_of(instance: FabricInstance) -> Group:
    """The shifts of a torus, or of boxes and of ranks within boxes. Raises :class:`UnsupportedError`."""
    machine, members = instance.machine, len(instance.members)
    if instance.switching.mode == "store_and_forward" and machine.is_switch.any():
        raise UnsupportedError("symmetric makes quotients for switches that cut through only")
    found = _grid_shifts(instance) or _box_shifts(instance)
    if prod(order for _, order in found) != members:
        raise UnsupportedError(BROKEN)
    net = machine.network
    images = np.array([image for image, _ in found], dtype=np.int64).reshape(len(found), machine.nodes)
    moves = [arc_images(image, net.src, net.dst, (machine.group >= 0, net.bandwidth, net.latency)) for image in images]
    kept = [move for move in moves if move is not None]
    if len(kept) < len(found) or not _is_group(images, [order for _, order in found]):
        raise UnsupportedError(BROKEN)
    orders = np.array([order for _, order in found], dtype=np.int64)
    return Group(images, orders, np.array(kept), *_modulo(machine, kept, members))


def _modulo(machine: Machine, moves: list[IntArray], members: int) -> tuple[IntArray, IntArray, BoolArray]:
    """``orbit``, ``port`` and ``alone`` of :class:`Group`. Raises :class:`UnsupportedError` where a generator tears a
    group of links apart."""
    groups, grouped = np.arange(int(machine.group.max(initial=-1)) + 1), machine.group >= 0
    of_groups = []
    for move in moves:
        image = groups.copy()
        image[machine.group[grouped]] = machine.group[move[grouped]]
        if np.any(image[machine.group[grouped]] != machine.group[move[grouped]]):
            raise UnsupportedError(BROKEN)
        of_groups.append(image)
    link, group = orbits(machine.links, moves), orbits(len(groups), of_groups)
    alone = np.bincount(link)[link] == members
    port = np.full(machine.links, -1, dtype=np.int64)
    if len(group):
        of_link = group[machine.group[grouped]]
        port[link[grouped]] = of_link
        alone[grouped] &= np.bincount(group)[of_link] == members
    return link, port, alone


def _grid_shifts(instance: FabricInstance) -> list[tuple[IntArray, int]]:
    """A step along every axis of a torus, ring or hypercube that is whole and in use, and the axis's length."""
    machine = instance.machine
    sides = machine.network.grid
    if sides is None or machine.is_switch.any() or len(instance.members) < machine.nodes:
        return []
    return list(zip(unit_translations(machine.network), (side for side in sides if side > 1), strict=False))


def _box_shifts(instance: FabricInstance) -> list[tuple[IntArray, int]]:
    """Every box to the next, and every rank to the next one of its box."""
    boxes = _boxes(instance)
    if len({len(box) for box in boxes}) != 1:
        raise UnsupportedError(BROKEN)
    place = np.arange(len(instance.members)).reshape(len(boxes), -1)
    found = []
    for axis, order in enumerate(place.shape):
        if order > 1:
            image = automorphism(
                instance.machine, np.concatenate(boxes).astype(np.int64), np.roll(place, -1, axis).ravel()
            )
            if image is None:
                raise UnsupportedError(BROKEN)
            found.append((image[0], order))
    return found


def _boxes(instance: FabricInstance) -> list[tuple[int, ...]]:
    """The boxes in the machine's order, whatever the group's is, from the origin's on, each from the rank that has the
    origin's place. Where every rank is a box, those of the group in its order."""
    boxes = instance.boxes
    if max(map(len, boxes)) == 1:
        return boxes
    origin = instance.members[0]
    ordered = sorted(tuple(sorted(box)) for box in boxes)
    home = next(b for b, box in enumerate(ordered) if origin in box)
    by = ordered[home].index(origin)
    return [(*box[by:], *box[:by]) for box in (*ordered[home:], *ordered[:home])]


def _is_group(images: IntArray, orders: Sequence[int]) -> bool:
    """Whether the generators commute and have these orders."""
    for k, (image, order) in enumerate(zip(images, orders, strict=True)):
        if any(not np.array_equal(image[other], other[image]) for other in images[:k]):
            return False
        power = np.arange(len(image))
        for _ in range(order):
            power = image[power]
        if not np.array_equal(power, np.arange(len(image))):
            return False
    return True


def origin_part(instance: FabricInstance, group: Group, count: int) -> tuple[Quotient, int]:
    """The quotient whose origin's block is cut into ``count`` chunks, and the ticks that it takes."""
    machine, members = instance.machine, len(instance.members)
    size = np.array(chunks.equal(instance.bytes // members, count), dtype=np.int64)
    spreading, back = instance.collective != "reduce_scatter", instance.collective != "allgather"
    seconds, steps = 0.0, list[Transfers]()
    for there in ([machine.reversed()] if back else []) + ([machine] if spreading else []):
        steps.append(_transfers(instance, there, group, size))
        if not group.alone[steps[-1].link].all():
            raise UnsupportedError(
                "a link is on the routes of several ranks at the same time: some symmetry leaves it where it is and "
                "moves the ranks"
            )
        seconds += _most_seconds(machine, steps[-1])
    ticks = clock.ticks_per_second(machine, seconds)
    made = _summing(machine.reversed(), group, ticks, steps[0]) if back else steps[0]
    made = joined(machine, made, steps[1]) if len(steps) > 1 else made
    start, arrive = _placed(machine, group, ticks, made)
    rows = made.piece_block, size, start, made.piece, made.adds, made.route_start, made.link
    return Quotient(Schedule(ticks, *rows), group.generators, group.orders), int(arrive.max())


def _most_seconds(machine: Machine, transfers: Transfers) -> float:
    """Time that is enough even one after the other."""
    net = machine.network
    sizes = transfers.piece_bytes[transfers.piece]
    lasts = sizes / np.minimum.reduceat(net.bandwidth[transfers.link], transfers.route_start[:-1])
    return float(lasts.sum() + net.latency[transfers.link].sum())


def _summing(there: Machine, group: Group, ticks: int, spread: Transfers) -> Transfers:
    """What sums up as ``spread`` spreads on the reversed machine: first what arrives there last."""
    order = np.argsort(-_placed(there, group, ticks, spread)[1], kind="stable")
    found = reversed_in_time(spread).taken(order)
    return replace(found, adds=np.ones(len(order), dtype=bool), priority=spread.priority)


def _transfers(instance: FabricInstance, machine: Machine, group: Group, size: IntArray) -> Transfers:
    """How the origin's chunks spread on a machine, which may be the reversed one."""
    if len(group.orders) and machine.network.grid is not None and not machine.is_switch.any():
        return _on_grid(instance, machine, size)
    return _over_boxes(instance, machine, group, size)


def _on_grid(instance: FabricInstance, machine: Machine, size: IntArray) -> Transfers:
    """What node 0 would send, carried to the origin."""
    net, sides = machine.network, machine.network.grid
    assert sides is not None
    there = translation(sides, tuple(map(int, np.unravel_index(instance.members[0], sides))))
    link = directions(net)
    kind = link[0]
    seconds = float(size.max()) / net.bandwidth[kind]
    sends = one_origin(net.dst[link].astype(np.int64), seconds, net.latency[kind].astype(float), len(size))
    routes = np.arange(len(sends.chunk) + 1), link[there[sends.source], sends.direction]
    return Transfers.of_rows(0, size, sends.chunk, routes, before=sends.after)


def _over_boxes(instance: FabricInstance, machine: Machine, group: Group, size: IntArray) -> Transfers:
    """The own box first, then the other boxes in turn; what has come there goes on to its box at once."""
    boxes = np.array(_boxes(instance), dtype=np.int64)
    routes = _routes(machine, int(boxes[0, 0]), [*boxes[0, 1:].tolist(), *boxes[1:, 0].tolist()], int(size.max()))
    inside, between = routes[: boxes.shape[1] - 1], routes[boxes.shape[1] - 1 :]
    chunk, links, after = list[int](), list[IntArray](), list[int]()
    for c in range(len(size)):
        chunk += [c] * len(inside)
        links += inside
        after += [NOBODY] * len(inside)
    for route in between:
        inside = [group.moves[0][one] for one in inside]
        for c in range(len(size)):
            after += [NOBODY] + [len(chunk)] * len(inside)
            chunk += [c] * (1 + len(inside))
            links += [route, *inside]
    rows = starts([len(route) for route in links]), np.concatenate(links)
    return Transfers.of_rows(0, size, chunk, rows, before=np.array(after))


def _routes(machine: Machine, origin: int, targets: Sequence[int], size: int) -> list[IntArray]:
    """The route to every target over switches alone that is quickest for so many bytes. Raises
    :class:`UnsupportedError` where there is none."""
    routes = Routes(machine, size)
    found = []
    for target in targets:
        route = routes.direct(origin, target)
        if route is None:
            raise UnsupportedError(f"no route over switches alone leads from rank {origin} to rank {target}")
        found.append(np.array(route, dtype=np.int64))
    return found


def _placed(machine: Machine, group: Group, ticks: int, transfers: Transfers) -> tuple[IntArray, IntArray]:
    """Start and arrival of every transfer in ticks, where the images of a link are one."""
    hops = hop_times(machine, transfers, ticks, hop_by_hop=False)
    orbits_of_links = group.orbit[transfers.link]
    uses = uses_of(transfers.route_start, orbits_of_links, group.port, hops.offset, hops.duration, False)
    if _takes_twice(uses):
        raise UnsupportedError("a route takes two links that a symmetry maps onto each other")
    followers, missing = followers_of(machine, transfers, hops), np.diff(transfers.before_start)
    order = np.argsort(transfers.priority, kind="stable")
    resources = 2 * machine.links
    start, in_time = list_scheduled_in_order(uses, resources, followers, order, missing, left() + SLACK_S)
    if not in_time:
        raise OutOfTime
    return start, start + hops.arrival[transfers.route_start[1:] - 1]


def _takes_twice(uses: Uses) -> bool:
    """Whether a transfer needs something at two moments that are closer than the time for which it needs it."""
    transfer = np.repeat(np.arange(len(uses.row) - 1), np.diff(uses.row))
    order = np.lexsort((uses.offset, uses.resource, transfer))
    same = (np.diff(transfer[order]) == 0) & (np.diff(uses.resource[order]) == 0)
    return bool(np.any(same & (np.diff(uses.offset[order]) < uses.duration[order][:-1])))
