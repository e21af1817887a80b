"""What bounds are compared with: every cut, every partition, every path, tried one by one in fractions.

Written from the problem's statement; shares nothing with the bounds or their check.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

from models.fabric.small_machines import machine
from scipy.optimize import linprog

from synth_models.fabric.instance import FabricInstance

UNICAST = ("alltoall", "gather", "scatter")


def drawn(chooser: random.Random, collectives: tuple[str, ...], **options: Any) -> FabricInstance:
    """A random instance on two to four ranks and up to two switches whose collective can be done. ``latency``: largest,
    ``groups``: whether there are some, ``switches``: at most, ``switching``."""
    while True:
        ranks, switches = chooser.randint(2, 4), chooser.randint(0, options.get("switches", 2))
        nodes = ranks + switches
        links: list[tuple[Any, ...]] = []
        for u in range(nodes):
            for v in range(nodes):
                if u != v and chooser.random() < 0.55:
                    group = chooser.choice(["a", "b"]) if options.get("groups") and chooser.random() < 0.4 else None
                    late = chooser.choice([1, 1, 2, 3]) * options.get("latency", 0.0)
                    links.append((u, v, chooser.choice([1.0, 2.0, 3.0, 5.0]), late, group))
        try:
            return machine(
                nodes,
                links,
                range(ranks, nodes),
                collective=chooser.choice(collectives),
                bytes=12 * chooser.choice([1, 10, 100, 1000]),
                switching=options.get("switching", {}),
            )
        except ValueError:
            continue


def links_of(instance: FabricInstance) -> list[tuple[int, int, Fraction, int]]:
    """(from, to, bandwidth, group) of every link."""
    machine = instance.machine
    net = machine.network
    return [
        (int(net.src[e]), int(net.dst[e]), Fraction(repr(float(net.bandwidth[e]))), int(machine.group[e]))
        for e in range(net.links)
    ]


def wants(instance: FabricInstance) -> Iterator[tuple[set[int], set[int], int]]:
    """Of every block: who can give it (all of them must, in a reduction), who wants it, and its bytes."""
    blocks, everyone = instance.blocks, set(instance.members)
    for b in range(len(blocks)):
        origin, goal = int(blocks.origin[b]), int(blocks.goal[b])
        yield everyone if origin < 0 else {origin}, everyone if goal < 0 else {goal}, int(blocks.bytes[b])


def strongest_cut(instance: FabricInstance) -> Fraction:
    """The largest quotient, over all node sets, of what must leave the set and what can in a second."""
    links, needs, best = links_of(instance), list(wants(instance)), Fraction(0)
    nodes = range(instance.machine.nodes)
    for size in range(1, len(nodes)):
        for chosen in combinations(nodes, size):
            inside = set(chosen)
            volume = sum(n for gives, takes, n in needs if gives & inside and takes - inside)
            crossing = [(b, g) for u, v, b, g in links if u in inside and v not in inside]
            if volume:
                shared = {g for _, g in crossing if g >= 0}
                rate = sum(b for b, g in crossing if g < 0) + sum(max(b for b, h in crossing if h == g) for g in shared)
                best = max(best, volume / rate)
    return best


def partitions(items: list[int]) -> Iterator[list[set[int]]]:
    """All ways to cut the items into parts."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [{items[0]}, *rest]
        for i in range(len(rest)):
            yield [*rest[:i], rest[i] | {items[0]}, *rest[i + 1 :]]


def strongest_partition(instance: FabricInstance) -> Fraction:
    """The largest 2 (k - 1) M / (bandwidth between parts) over all partitions of all nodes into parts with a member."""
    links, best = links_of(instance), Fraction(0)
    for parts in partitions(list(range(instance.machine.nodes))):
        if len(parts) > 1 and all(part & set(instance.members) for part in parts):
            rate = sum(b for u, v, b, _ in links if not any(u in part and v in part for part in parts))
            best = max(best, Fraction(2 * (len(parts) - 1) * instance.bytes) / rate)
    return best


def concurrent_flow(instance: FabricInstance) -> float:
    """Least time of a fluid that sends every block over any simple paths (linear program over all paths)."""
    links = links_of(instance)
    out: dict[int, list[tuple[int, int]]] = {}
    for e, (u, v, _, _) in enumerate(links):
        out.setdefault(u, []).append((e, v))

    def paths(at: int, goal: int, seen: frozenset[int]) -> Iterator[list[int]]:
        if at == goal:
            yield []
            return
        for e, v in out.get(at, []):
            if v not in seen:
                for rest in paths(v, goal, seen | {v}):
                    yield [e, *rest]

    blocks = instance.blocks
    columns = []
    for b in range(len(blocks)):
        origin, goal = int(blocks.origin[b]), int(blocks.goal[b])
        columns += [(b, path) for path in paths(origin, goal, frozenset({origin}))]
    cost = [0.0] * len(columns) + [1.0]
    load = [[0.0] * len(cost) for _ in links]
    sent = [[0.0] * len(cost) for _ in range(len(blocks))]
    for j, (b, path) in enumerate(columns):
        sent[b][j] = 1.0
        for e in path:
            load[e][j] = 1.0
    for e, (_, _, rate, _) in enumerate(links):
        load[e][-1] = -float(rate)
    result = linprog(cost, A_ub=load, b_ub=[0.0] * len(links), A_eq=sent, b_eq=[float(n) for n in blocks.bytes])
    return float(result.fun)
