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
from math import prod
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import UnsupportedError
from synth.graph.symmetry import arc_images, orbits
from synth.kernels import jit
from synth.network.symmetry import translation, unit_translations
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.automorphism import automorphism
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.references.symmetric.one_origin import directions, one_origin
from synth_models.fabric.routes.search import Routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.hop_times import hop_times
from synth_models.fabric.scheduling.reservations import (
    NextFree,
    Uses,
    earliest_behind,
    new_next_free,
    reserve_behind,
    uses_of,
)
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


class Moves(NamedTuple):
    """Transfers of one origin's chunks, each after whatever brings the chunk to where it starts: ``piece``, the chunk,
    shape (transfers,); ``link[route_start[i]:route_start[i + 1]]``, the route. ``piece_bytes``: shape (chunks,)."""

    piece_bytes: IntArray
    piece: IntArray
    route_start: IntArray
    link: IntArray

    @classmethod
    def of(cls, piece_bytes: IntArray, piece: Sequence[int], routes: Sequence[IntArray]) -> Moves:
        """From a chunk and a route a transfer."""
        ends = np.cumsum([0, *map(len, routes)])
        return cls(piece_bytes, np.array(piece, dtype=np.int64), ends.astype(np.int64), np.concatenate(routes))

    def backwards(self, arrive: IntArray) -> Moves:
        """The same from the last arrival to the first, every route turned round."""
        order = np.argsort(-arrive, kind="stable")
        routes = [self.link[self.route_start[i] : self.route_start[i + 1]][::-1] for i in order.tolist()]
        return Moves.of(self.piece_bytes, self.piece[order].tolist(), routes)


class _Ends(NamedTuple):
    """Of every transfer, shape (transfers,) each: its ``chunk``, the ranks ``source`` and ``target``, and how many
    ticks it ``lasts``."""

    chunk: IntArray
    source: IntArray
    target: IntArray
    lasts: IntArray


class _Taken(NamedTuple):
    """From which tick on a chunk is ``ready`` at a node, shape (chunks, nodes), and what is ``reserved``, a resource an
    orbit of :class:`Group`."""

    ready: IntArray
    reserved: NextFree

    @classmethod
    def nothing(cls, machine: Machine, size: IntArray) -> _Taken:
        """Everything free from the beginning."""
        return cls(np.zeros((len(size), machine.nodes), dtype=np.int64), new_next_free(2 * machine.links))


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
    steps: list[tuple[Moves, bool]] = []
    seconds = 0.0
    for there in ([machine.reversed()] if back else []) + ([machine] if spreading else []):
        moves = _moves(instance, there, group, size)
        if not group.alone[moves.link].all():
            raise UnsupportedError(
                "a link is on the routes of several ranks at the same time: some symmetry leaves it where it is and "
                "moves the ranks"
            )
        steps.append((moves, there is not machine))
        seconds += _most_seconds(machine, moves)
    ticks = clock.ticks_per_second(machine, seconds)
    found: list[tuple[Moves, IntArray, bool]] = []
    taken = _Taken.nothing(machine, size)
    for moves, adds in steps:
        if adds:
            there = machine.reversed()
            moves = moves.backwards(_placed(there, group, ticks, moves, _Taken.nothing(there, size))[1])
        start, arrive = _placed(machine, group, ticks, moves, taken)
        found.append((moves, start, adds))
    part = _joined(found, size, ticks)
    return Quotient(part, group.generators, group.orders), int(arrive.max())


def _most_seconds(machine: Machine, moves: Moves) -> float:
    """Time that is enough even one after the other."""
    net = machine.network
    lasts = moves.piece_bytes[moves.piece] / np.minimum.reduceat(net.bandwidth[moves.link], moves.route_start[:-1])
    return float(lasts.sum() + net.latency[moves.link].sum())


def _joined(found: list[tuple[Moves, IntArray, bool]], size: IntArray, ticks: int) -> Schedule:
    """One schedule of several steps; what is turned round adds."""
    lengths = np.concatenate([np.diff(moves.route_start) for moves, _, _ in found])
    return Schedule(
        ticks,
        np.zeros(len(size), dtype=np.int64),
        size,
        np.concatenate([start for _, start, _ in found]),
        np.concatenate([moves.piece for moves, _, _ in found]),
        np.concatenate([np.full(len(start), adds) for _, start, adds in found]),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([moves.link for moves, _, _ in found]),
    )


def _moves(instance: FabricInstance, machine: Machine, group: Group, size: IntArray) -> Moves:
    """What the origin's chunks do on a machine, which may be the reversed one."""
    if len(group.orders) and machine.network.grid is not None and not machine.is_switch.any():
        return _on_grid(instance, machine, size)
    return _over_boxes(instance, machine, group, size)


def _on_grid(instance: FabricInstance, machine: Machine, size: IntArray) -> Moves:
    """What node 0 would send, carried to the origin."""
    net, sides = machine.network, machine.network.grid
    assert sides is not None
    there = translation(sides, tuple(map(int, np.unravel_index(instance.members[0], sides))))
    link = directions(net)
    kind = link[0]
    seconds = float(size.max()) / net.bandwidth[kind]
    sends = one_origin(net.dst[link].astype(np.int64), seconds, net.latency[kind].astype(float), len(size))
    chunk, source, direction, _ = sends
    return Moves(size, chunk, np.arange(len(chunk) + 1, dtype=np.int64), link[there[source], direction])


def _over_boxes(instance: FabricInstance, machine: Machine, group: Group, size: IntArray) -> Moves:
    """The own box first, then the other boxes in turn; what has come there goes on to its box at once."""
    boxes = np.array(_boxes(instance), dtype=np.int64)
    routes = _routes(machine, int(boxes[0, 0]), [*boxes[0, 1:].tolist(), *boxes[1:, 0].tolist()], int(size.max()))
    inside, between = routes[: boxes.shape[1] - 1], routes[boxes.shape[1] - 1 :]
    chunk, links = [], []
    for c in range(len(size)):
        chunk += [c] * len(inside)
        links += inside
    for route in between:
        inside = [group.moves[0][one] for one in inside]
        for c in range(len(size)):
            chunk += [c] * (1 + len(inside))
            links += [route, *inside]
    return Moves.of(size, chunk, links)


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


def _placed(machine: Machine, group: Group, ticks: int, moves: Moves, taken: _Taken) -> tuple[IntArray, IntArray]:
    """Start and arrival of every transfer in ticks; what is ``taken`` goes on from what it holds."""
    hops = hop_times(machine, moves, ticks, hop_by_hop=False)
    uses = uses_of(moves.route_start, group.orbit[moves.link], group.port, hops.offset, hops.duration, False)
    if _takes_twice(uses):
        raise UnsupportedError("a route takes two links that a symmetry maps onto each other")
    first, last = moves.route_start[:-1], moves.route_start[1:] - 1
    net = machine.network
    source, target = net.src[moves.link[first]].astype(np.int64), net.dst[moves.link[last]].astype(np.int64)
    ends = _Ends(moves.piece, source, target, hops.arrival[last])
    start = _one_by_one(uses, ends, taken.reserved, taken.ready)
    return start, start + ends.lasts


def _takes_twice(uses: Uses) -> bool:
    """Whether a transfer needs something at two moments that are closer than the time for which it needs it."""
    transfer = np.repeat(np.arange(len(uses.row) - 1), np.diff(uses.row))
    order = np.lexsort((uses.offset, uses.resource, transfer))
    same = (np.diff(transfer[order]) == 0) & (np.diff(uses.resource[order]) == 0)
    return bool(np.any(same & (np.diff(uses.offset[order]) < uses.duration[order][:-1])))


@jit
def _one_by_one(uses: Uses, ends: _Ends, reserved: NextFree, ready: IntArray) -> IntArray:
    """The start of each in turn: as soon as its chunk is there and all that its route takes has been left for good."""
    start = np.empty(len(ends.chunk), dtype=np.int64)
    for i in range(len(ends.chunk)):
        c, v = ends.chunk[i], ends.target[i]
        start[i], _ = earliest_behind(reserved, uses, i, ready[c, ends.source[i]])
        reserve_behind(reserved, uses, i, start[i])
        ready[c, v] = max(ready[c, v], start[i] + ends.lasts[i])
    return start
