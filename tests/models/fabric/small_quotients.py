"""Small machines with a regular group, schedules of one origin drawn at random, and the oracle for their quotients.

Ranks are the elements of Z_a x Z_b; a *step* is a difference of two ranks with a route between every such pair. The
oracle is the statement: all elements listed, each an automorphism, every transfer of every rank listed one by one, and
the ordinary check of that list.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product
from math import ceil, prod
from typing import Any

import numpy as np
from models.fabric.small_machines import machine, schedule_of

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.solution import Quotient, Schedule

Place = tuple[int, int]
Image = tuple[int, ...]
Row = tuple[int, int, list[int], bool]  # start, piece, route, adds
TICKS = 10


@dataclass(frozen=True)
class Regular:
    """``instance`` of a machine on which Z_a x Z_b (``sides``) acts; ``hops[step]``: for a difference of ranks the
    route from any rank, as a list of links; ``generators``, ``orders`` of the group."""

    instance: FabricInstance
    sides: Place
    routes: dict[Place, Callable[[Place], list[int]]]
    generators: np.ndarray
    orders: np.ndarray

    def rank(self, place: Place) -> int:
        return place[0] % self.sides[0] * self.sides[1] + place[1] % self.sides[1]


def torus(rng: random.Random, collective: str, share: int) -> Regular:
    """A torus (or ring) whose links differ by axis and direction, some twice, some behind one port a rank."""
    a, b = rng.choice([(1, 3), (1, 5), (2, 3), (3, 3), (2, 4), (1, 4)])
    steps = [step for step in ((0, 1), (0, -1), (1, 0), (-1, 0)) if (a if step[0] else b) > 1]
    kinds = [(step, rng.choice([1, 2, 5]), rng.choice([0, 1])) for step in steps]
    kinds += [kind for kind in kinds if rng.random() < 0.3]  # parallel links
    port = rng.random() < 0.4
    if port:  # so that what is turned round in time keeps its order on the port
        kinds = [(step, bandwidth, kinds[0][2]) for step, bandwidth, _ in kinds]
    links, first = [], {}
    for number, (step, bandwidth, latency) in enumerate(kinds):
        for u in product(range(a), range(b)):
            v = ((u[0] + step[0]) % a, (u[1] + step[1]) % b)
            group = f"port{u}" if port and number < 2 else None
            first[number, u] = len(links)
            links.append((u[0] * b + u[1], v[0] * b + v[1], float(bandwidth), float(latency), group))
    net = machine(a * b, links, collective=collective, bytes=share * a * b)
    chosen = {step: [n for n, kind in enumerate(kinds) if kind[0] == step] for step in steps}
    routes = {step: _single(first, rng.choice(found)) for step, found in chosen.items()}
    at = np.arange(a * b).reshape(a, b)
    generators = np.stack([np.roll(at, -1, axis=0).ravel(), np.roll(at, -1, axis=1).ravel()])
    return Regular(net, (a, b), routes, generators, np.array([a, b]))


def _single(first: dict[Any, int], number: int) -> Callable[[Place], list[int]]:
    return lambda place: [first[number, place]]


def boxes(rng: random.Random, collective: str, share: int) -> Regular:
    """Boxes of ranks behind a switch each, and a rail switch for the ranks of one place in all boxes."""
    a, b = rng.choice([(2, 2), (3, 2), (2, 3), (4, 2)])
    rates, delays = [float(rng.choice([1, 2, 5])) for _ in range(2)], [float(rng.choice([0, 1])) for _ in range(2)]
    links, number = [], {}
    for u in product(range(a), range(b)):
        rank = u[0] * b + u[1]
        for level, switch in enumerate((a * b + u[0], a * b + a + u[1])):
            for way, ends in enumerate(((rank, switch), (switch, rank))):
                number[u, level, way] = len(links)
                links.append((*ends, rates[level], delays[level]))
    nodes = a * b + a + b
    net = machine(nodes, links, range(a * b, nodes), collective=collective, bytes=share * a * b)
    routes = {(0, j): _over(number, 0, (0, j), (a, b)) for j in range(1, b)}
    routes |= {(i, 0): _over(number, 1, (i, 0), (a, b)) for i in range(1, a)}
    at, box, rail = np.arange(a * b).reshape(a, b), np.arange(a) + a * b, np.arange(b) + a * b + a
    generators = np.stack(
        [
            np.concatenate([np.roll(at, -1, axis=0).ravel(), np.roll(box, -1), rail]),
            np.concatenate([np.roll(at, -1, axis=1).ravel(), box, np.roll(rail, -1)]),
        ]
    )
    return Regular(net, (a, b), routes, generators, np.array([a, b]))


def _over(number: dict[Any, int], level: int, step: Place, sides: Place) -> Callable[[Place], list[int]]:
    def route(u: Place) -> list[int]:
        v = ((u[0] + step[0]) % sides[0], (u[1] + step[1]) % sides[1])
        return [number[u, level, 0], number[v, level, 1]]

    return route


def drawn(rng: random.Random, found: Regular, pieces: list[int]) -> Quotient:
    """A quotient whose transfers keep all rules: whoever has a piece of the origin's sends it by any step to one that
    lacks it, some time after the links of that step are free everywhere."""
    collective = found.instance.collective
    spread = _spread(rng, found, pieces)
    rows = spread
    if collective != "allgather":
        back = _reversed(found)
        mirrored = _spread(rng, back, pieces)
        last = max(_arrival(back, row, pieces) for row in mirrored)
        ends = [last - _arrival(back, row, pieces) for row in mirrored]
        rows = [(end, p, route[::-1], True) for end, (_, p, route, _) in zip(ends, mirrored, strict=True)]
        if collective == "allreduce":
            rows += [(start + last, piece, route, False) for start, piece, route, _ in spread]
    part = schedule_of([(0, size) for size in pieces], sorted(rows, key=lambda row: row[0]), TICKS)
    return Quotient(part, found.generators.copy(), found.orders.copy())


def _reversed(found: Regular) -> Regular:
    """The same machine with time running backwards: step d leads over the links of the route from the other end."""
    flipped: dict[Place, Callable[[Place], list[int]]] = {}
    for (i, j), route in found.routes.items():
        flipped[-i, -j] = _backwards(route, (i, j), found.sides)
    return Regular(found.instance, found.sides, flipped, found.generators, found.orders)


def _backwards(route: Callable[[Place], list[int]], step: Place, sides: Place) -> Callable[[Place], list[int]]:
    def backwards(u: Place) -> list[int]:
        return route(((u[0] - step[0]) % sides[0], (u[1] - step[1]) % sides[1]))[::-1]

    return backwards


def _lasts(found: Regular, link: int, size: int) -> int:
    rate = exact(float(found.instance.machine.network.bandwidth[link]))
    return ceil(size * TICKS / rate)


def _delay(found: Regular, link: int) -> int:
    return ceil(exact(float(found.instance.machine.network.latency[link])) * TICKS)


def _arrival(found: Regular, row: Row, pieces: list[int]) -> int:
    start, piece, route, _ = row
    return start + sum(_delay(found, e) for e in route) + max(_lasts(found, e, pieces[piece]) for e in route)


def _spread(rng: random.Random, found: Regular, pieces: list[int]) -> list[Row]:
    """One after the other over all links of a step or port: nothing of two transfers overlaps on what they share."""
    a, b = found.sides
    have: dict[tuple[int, Place], int] = {(p, (0, 0)): 0 for p in range(len(pieces))}
    free = dict.fromkeys(found.routes, 0)
    shared = bool((found.instance.machine.group >= 0).any())
    rows: list[Row] = []
    wanted = {(p, v) for p in range(len(pieces)) for v in product(range(a), range(b))}
    while wanted - set(have):
        choices = [
            (p, u, step)
            for (p, u) in have
            for step in found.routes
            if (p, ((u[0] + step[0]) % a, (u[1] + step[1]) % b)) not in have
        ]
        p, u, step = rng.choice(choices)
        level = [other for other in free if shared or (other[0] == 0) == (step[0] == 0)]
        start = max(have[p, u], *(free[other] for other in level)) + rng.choice([0, 0, 0, 1, 7])
        route = found.routes[step](u)
        row = (start, p, route, False)
        rows.append(row)
        v = ((u[0] + step[0]) % a, (u[1] + step[1]) % b)
        have[p, v] = _arrival(found, row, pieces)
        for other in level:
            free[other] = start + max(_lasts(found, e, pieces[p]) for e in route)
    return rows


def whole_of(instance: FabricInstance, quotient: Quotient) -> Schedule | None:
    """All transfers one by one, None where the group is not what it is said to be; from the statement alone."""
    elements = _elements(instance, quotient)
    if elements is None:
        return None
    part, members = quotient.part, instance.members
    pieces, transfers = [], []
    for j, element in enumerate(elements[member] for member in members):
        move = _links(instance, element)
        if move is None:
            return None
        first = len(pieces)
        pieces += [(j if instance.collective != "allreduce" else 0, int(size)) for size in part.piece_bytes]
        for i, (begin, end) in enumerate(pairwise(part.route_start.tolist())):
            route = [move[e] for e in part.link[begin:end].tolist()]
            transfers.append((int(part.start[i]), first + int(part.piece[i]), route, bool(part.adds[i])))
    return schedule_of(pieces, transfers, part.ticks_per_s)


def _elements(instance: FabricInstance, quotient: Quotient) -> dict[int, Image] | None:
    """The element that carries the first member to each, by member."""
    nodes, members = instance.machine.nodes, instance.members
    images = [tuple(image) for image in quotient.generators.tolist()]
    orders, same = quotient.orders.tolist(), tuple(range(nodes))
    if any(sorted(image) != list(same) for image in images) or any(order < 1 for order in orders):
        return None
    if prod(orders) != len(members) or not _is_group(images, orders):
        return None
    if not all(_keeps_kinds(instance, image) for image in images):
        return None
    products = [_product(images, powers, nodes) for powers in product(*map(range, orders))]
    found = {element[members[0]]: element for element in products}
    return found if set(found) == set(members) else None


def _keeps_kinds(instance: FabricInstance, image: Image) -> bool:
    """Whether members go to members and switches to switches."""
    kinds = [2 if v in instance.members else int(s) for v, s in enumerate(instance.machine.is_switch)]
    return all(kinds[there] == kind for there, kind in zip(image, kinds, strict=True))


def _is_group(images: list[Image], orders: list[int]) -> bool:
    """Whether the generators commute and come back after their orders."""
    same = tuple(range(len(images[0]))) if images else ()
    for image, order in zip(images, orders, strict=True):
        if _product([image], (order,), len(image)) != same:
            return False
        if any(_after(image, other) != _after(other, image) for other in images):
            return False
    return True


def _product(images: list[Image], powers: tuple[int, ...], nodes: int) -> Image:
    element = tuple(range(nodes))
    for image, power in zip(images, powers, strict=True):
        for _ in range(power):
            element = _after(image, element)
    return element


def _after(image: Image, element: Image) -> Image:
    return tuple(image[v] for v in element)


def _links(instance: FabricInstance, element: Image) -> list[int] | None:
    """Where the element carries every link: the i-th parallel one of a kind to the i-th. None where it cannot."""
    machine, net = instance.machine, instance.machine.network
    rows = list(zip(net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), net.latency.tolist(), strict=True))
    keys = [(*row, group >= 0) for row, group in zip(rows, machine.group.tolist(), strict=True)]
    by_key: dict[Any, list[int]] = {}
    for e, key in enumerate(keys):
        by_key.setdefault(key, []).append(e)
    move = [-1] * len(keys)
    for (u, v, *kind), there in by_key.items():
        images = by_key.get((element[u], element[v], *kind), [])
        if len(images) != len(there):
            return None
        for e, image in zip(there, images, strict=True):
            move[e] = image
    group = machine.group.tolist()
    pairs = {(group[e], group[f]) for e, f in enumerate(move)}
    one_to_one = len({a for a, _ in pairs}) == len(pairs) == len({b for _, b in pairs})
    return move if one_to_one or not pairs else None


def judged(instance: FabricInstance, quotient: Quotient) -> float | None:
    """The time of the whole schedule where it is one, by the ordinary check; None where it is none."""
    whole = whole_of(instance, quotient)
    return None if whole is None else check_schedule(instance, whole).value
