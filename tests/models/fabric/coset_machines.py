"""Machines on which an abelian group acts regularly, with switches, ports and other ranks that elements leave where
they are, any way of switching, nodes and groups in any order; and quotients on them, one transfer after the other.

A class of nodes (or ports) is the cosets of a subgroup: one for each element (the members), one for all, or between. A
class of links is the orbit of one link.
"""

from __future__ import annotations

import random
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from models.fabric.small_machines import machine, schedule_of

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Quotient

Element = tuple[int, ...]
Node = tuple[int, frozenset[Element]]  # its class and coset
SIDES: list[Element] = [(2,), (3,), (4,), (2, 2), (2, 3), (1, 3), (2, 4), (2, 2, 2)]
SWITCHING: list[dict[str, Any]] = [
    {},
    {"multicast": True},
    {"mode": "store_and_forward"},
    {"mode": "store_and_forward", "buffer": True},
    {"mode": "store_and_forward", "copies": False},
]
TICKS = 10


class Acted(NamedTuple):
    """An instance and the group that acts on it."""

    instance: FabricInstance
    generators: np.ndarray
    orders: np.ndarray


def acted_on(rng: random.Random, collective: str) -> Acted | None:
    """A machine of this kind; None where its ranks do not all reach each other."""
    sides = rng.choice(SIDES)
    elements = list(product(*map(range, sides)))
    members: list[Node] = [(0, frozenset([g])) for g in elements]
    switches = [node for k in range(rng.choice([0, 1, 2])) for node in _cosets(rng, sides, 1 + k)]
    others = _cosets(rng, sides, 3) if rng.random() < 0.2 else []
    nodes = members + others + switches
    rows = _links(rng, sides, [members[0], members[0], *switches, *others], nodes)
    rng.shuffle(rows)
    number = dict(zip(nodes, rng.sample(range(len(nodes)), len(nodes)), strict=True))
    links = [(number[u], number[v], rate, delay, port and f"port{sorted(port[1])}") for u, v, rate, delay, port in rows]
    keys = {"collective": collective, "bytes": len(members) * rng.choice([1, 3]), "switching": rng.choice(SWITCHING)}
    ranks = rng.sample([number[v] for v in members], len(members))
    try:
        net = machine(len(nodes), links, [number[v] for v in switches], ranks=ranks, relay=True, **keys)
    except ValueError:
        return None
    return Acted(net, np.array([_image(nodes, number, sides, axis) for axis in range(len(sides))]), np.array(sides))


def _image(nodes: list[Node], number: dict[Node, int], sides: Element, axis: int) -> list[int]:
    """Where a step along an axis moves every node."""
    image, unit = [0] * len(nodes), tuple(int(axis == k) for k in range(len(sides)))
    for v in nodes:
        image[number[v]] = number[_moved(v, unit, sides)]
    return image


def _moved(node: Node, by: Element, sides: Element) -> Node:
    return node[0], frozenset(tuple((a + b) % s for a, b, s in zip(g, by, sides, strict=True)) for g in node[1])


def _cosets(rng: random.Random, sides: Element, number: int) -> list[Node]:
    """A class of nodes: the cosets of the subgroup that some axes, or a diagonal of all, generate."""
    steps = [tuple(int(axis == k) for k in range(len(sides))) for axis in range(len(sides)) if rng.random() < 0.4]
    steps += [(1,) * len(sides)] if rng.random() < 0.2 else []
    found: Node = (number, frozenset([(0,) * len(sides)]))
    for _ in range(8 * len(steps)):
        for step in steps:
            found = number, found[1] | _moved(found, step, sides)[1]
    return list(dict.fromkeys(_moved(found, g, sides) for g in product(*map(range, sides))))


def _links(rng: random.Random, sides: Element, tails: list[Node], nodes: list[Node]) -> list[Any]:
    """Orbits of links there and back between each of these nodes and two others, some behind ports."""
    members = [coset for number, coset in nodes if number == 0]
    ports = [(4, coset) for coset in members] if rng.random() < 0.7 else _cosets(rng, sides, 4)
    rows = []
    for u in tails:
        for v in rng.sample(nodes, 2):
            for ends in ((u, v), (v, u)) if u != v else ():
                rows += _orbit(rng, sides, ends, rng.choice(ports) if rng.random() < 0.15 else None)
    return rows


def _orbit(rng: random.Random, sides: Element, ends: tuple[Node, Node], port: Node | None) -> list[Any]:
    """All images of one link: from, to, bandwidth, latency, port."""
    kind = rng.choice([1.0, 1.0, 2.0, 5.0]), rng.choice([0.0, 1.0])
    moved = (tuple(v and _moved(v, g, sides) for v in (*ends, port)) for g in product(*map(range, sides)))
    return [(u, v, *kind, p) for u, v, p in dict.fromkeys(moved)]


def one_after_the_other(rng: random.Random, found: Acted) -> Quotient | None:
    """A quotient whose transfers begin when all before them have ended everywhere; mostly a schedule, but for links and
    ports that elements leave where they are. None where nothing leads on."""
    instance = found.instance
    share = instance.bytes // len(instance.members)
    rows: list[tuple[int, int, list[int], bool]] = []
    if instance.collective != "allgather":
        back = _spread(rng, instance, share, True)
        last = max((end for *_, end in back or ()), default=0)
        rows += [(last - end, 0, route[::-1], True) for _, route, end in reversed(back or [])]
    if instance.collective != "reduce_scatter":
        first = max((start for start, *_ in rows), default=-1000) + 1000
        rows += [(first + start, 0, route, False) for start, route, _ in _spread(rng, instance, share, False) or []]
    return Quotient(schedule_of([(0, share)], rows, TICKS), found.generators, found.orders) if rows else None


def _spread(
    rng: random.Random, instance: FabricInstance, share: int, backwards: bool
) -> list[tuple[int, list[int], int]] | None:
    """From the first member to all others: start, route and arrival of every transfer; None where nothing leads on."""
    net, stores = instance.machine.network, instance.switching.mode == "store_and_forward"
    tail, head = (net.dst, net.src) if backwards else (net.src, net.dst)
    lasts = np.ceil(share * TICKS / net.bandwidth).astype(int)  # exact for these bandwidths
    late = np.ceil(net.latency * TICKS).astype(int)
    have, now, rows = [instance.members[0]], 0, list[tuple[int, list[int], int]]()
    while set(instance.members) - set(have):
        routes = [route for u in have for route in _routes(instance, tail, head, u, have)]
        if not routes:
            return None
        route = rng.choice(routes)
        have.append(int(head[route[-1]]))
        if instance.switching.multicast and not backwards and len(route) == 2:
            fork = _fork(route, routes, head)
            have.append(int(head[fork[-1]]))
            route += [e for e in fork if e not in route]
        for hop in [[e] for e in route] if stores else [route]:
            end = now + int(late[hop].sum() + lasts[hop].max())
            rows.append((now, hop, end))
            now = end
    return rows


def _fork(route: list[int], routes: list[list[int]], head: Any) -> list[int]:
    """Another route over the first link to another rank, or the route itself."""
    return next((one for one in routes if one[0] == route[0] and head[one[-1]] != head[route[-1]]), route)


def _routes(instance: FabricInstance, tail: Any, head: Any, start: int, have: list[int]) -> list[list[int]]:
    """All routes over at most two switches from a rank to ranks that have nothing yet."""
    is_switch, found, open_ = instance.machine.is_switch, list[list[int]](), [(list[int](), start, {start})]
    while open_:
        route, at, seen = open_.pop()
        for e in np.flatnonzero(tail == at).tolist():
            v = int(head[e])
            if is_switch[v] and v not in seen and len(route) < 2:
                open_.append(([*route, e], v, seen | {v}))
            elif not is_switch[v] and v not in have:
                found.append([*route, e])
    return found
