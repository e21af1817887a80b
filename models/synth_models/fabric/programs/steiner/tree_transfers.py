"""From trees to transfers: what one stream out of a rank reaches over switches is one transfer; behind a rank begins
another. Trees on the reversed machine are read backwards, as sums; two trees of one switch are joined there to a hub.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.programs.steiner.pricing import Tree
from synth_models.fabric.scheduling.gathering import parts_from_its_hub


class Hop(NamedTuple):
    """A transfer of a tree: ``route`` (links in the order of the data), the hops that it waits for, and whether what
    it brings is added."""

    route: tuple[int, ...]
    before: tuple[int, ...]
    adds: bool


class _Part(NamedTuple):
    """A transfer of an out-tree: ``route``, the hop that brings the piece to its source (-1: none), the ranks at its
    ends."""

    route: tuple[int, ...]
    after: int
    ends: tuple[int, ...]


def spreading(machine: Machine, tree: Tree) -> list[Hop]:
    """The transfers of an out-tree from a rank."""
    return [Hop(part.route, (part.after,) * (part.after >= 0), False) for part in _parts(machine, tree)]


def summing(there: Machine, tree: Tree) -> list[Hop]:
    """The transfers of an in-tree to a rank, which is an out-tree of the reversed machine ``there``."""
    return _backwards(_parts(there, tree))


def _backwards(parts: Sequence[_Part]) -> list[Hop]:
    count = len(parts)
    after: list[list[int]] = [[] for _ in parts]
    for k, part in enumerate(parts):
        if part.after >= 0:
            after[part.after].append(count - 1 - k)
    return [Hop(parts[k].route[::-1], tuple(after[k]), True) for k in range(count - 1, -1, -1)]


def up_and_down(machine: Machine, there: Machine, up: Tree, down: Tree) -> list[Hop] | None:
    """Sums to the root of both trees, ``up`` on the reversed machine ``there``, and copies from it; over a hub if that
    is a switch. None where a stream would pass a node twice, the same link lead there and away, or the sum back to
    where all had met before."""
    if not machine.is_switch[up.node]:
        sums = summing(there, up)
        last = tuple(k for k, hop in enumerate(sums) if int(machine.network.dst[hop.route[-1]]) == up.node)
        return sums + _behind(spreading(machine, down), len(sums), last)
    try:
        first, second = _parts(there, up), _parts(machine, down)
    except ValueError:
        return None
    route = first[0].route[::-1] + second[0].route
    if len(first[0].ends) < 2 or not parts_from_its_hub(machine, route):
        return None
    sums = _backwards(first)[:-1]
    count = len(sums)
    before = tuple(len(first) - 1 - k for k, part in enumerate(first) if part.after == 0)
    hub = Hop(route, before, False)
    rest = [Hop(part.route, (count + part.after,), False) for part in second[1:]]
    return [*sums, hub, *rest]


def _behind(hops: Sequence[Hop], count: int, last: tuple[int, ...]) -> list[Hop]:
    """Hops that follow ``count`` others; those that waited for nothing wait for ``last``."""
    return [hop._replace(before=tuple(count + k for k in hop.before) or last) for hop in hops]


def _parts(machine: Machine, tree: Tree) -> list[_Part]:
    """The transfers of an out-tree, each behind the one that brings what it sends. From a switch all streams are the
    first one. Raises ``ValueError`` where these pass a node twice."""
    found: list[_Part] = []
    waiting: list[tuple[Sequence[tuple[int, Tree]], int]] = []
    if machine.is_switch[tree.node]:
        waiting.append((tree.below, -1))
    else:
        waiting += [([stream], -1) for stream in tree.below]
    while waiting:
        streams, after = waiting.pop(0)
        route, ends = _one_transfer(machine, streams)
        heads = machine.network.dst[route].tolist()
        if len(set(heads)) < len(heads):  # streams of one node over the same switch: a path to each end instead
            if machine.is_switch[tree.node] and after < 0:
                raise ValueError("streams of a hub pass a node twice")
            paths = [path for stream in streams for path in _paths(machine, stream)]
            for path, end in paths:
                waiting += [([stream], len(found)) for stream in end.below]
                found.append(_Part(_without_detours(machine, path), after, (end.node,)))
            continue
        waiting += [([stream], len(found)) for end in ends for stream in end.below]
        found.append(_Part(tuple(route), after, tuple(end.node for end in ends)))
    return found


def _one_transfer(machine: Machine, streams: Sequence[tuple[int, Tree]]) -> tuple[list[int], list[Tree]]:
    """The links until ranks, the nearest first, and what hangs at these ranks."""
    route, ends, open_ = [], [], list(streams)
    while open_:
        link, tree = open_.pop(0)
        route.append(link)
        if machine.is_switch[tree.node]:
            open_ += tree.below
        else:
            ends.append(tree)
    return route, ends


def _without_detours(machine: Machine, path: Sequence[int]) -> tuple[int, ...]:
    """The path that leaves every node as it does for the last time; a stream may have met others on a way round."""
    found: list[int] = []
    for e in path:
        tails = machine.network.src[found].tolist()
        if int(machine.network.src[e]) in tails:
            del found[tails.index(int(machine.network.src[e])) :]
        found.append(e)
    return tuple(found)


def _paths(machine: Machine, stream: tuple[int, Tree]) -> list[tuple[list[int], Tree]]:
    """The path to every rank at which a stream ends."""
    link, tree = stream
    if not machine.is_switch[tree.node]:
        return [([link], tree)]
    return [([link, *path], end) for below in tree.below for path, end in _paths(machine, below)]


def seconds_a_byte(machine: Machine, hops: Sequence[Hop]) -> dict[int, float]:
    """Seconds for which a byte of these transfers occupies links, by number, and groups, behind the links."""
    net, rate = machine.network, machine.abilities.add_rate
    load: dict[int, float] = {}
    for hop in hops:
        tails, heads = net.src[list(hop.route)].tolist(), net.dst[list(hop.route)].tolist()
        ranks = [k for k, u in enumerate(tails) if not machine.is_switch[u]]
        hub = _hub(tails, heads, ranks) if len(ranks) > 1 else -1
        for k, e in enumerate(hop.route):
            u = tails[k]
            is_sum = len(ranks) > 1 and (u == hub or heads[:k].count(u) > 1)
            speed = min(float(net.bandwidth[e]), float(rate[u])) if is_sum else float(net.bandwidth[e])
            for resource in (e, machine.links + int(machine.group[e])) if machine.group[e] >= 0 else (e,):
                load[resource] = load.get(resource, 0.0) + 1 / speed
    return load


def _hub(tails: Sequence[int], heads: Sequence[int], ranks: Sequence[int]) -> int:
    """Where the streams of several ranks have become one."""
    left: set[int] = set()
    for k, (u, v) in enumerate(zip(tails, heads, strict=True)):
        left.discard(u)
        left.add(v)
        if k >= ranks[-1] and len(left) == 1:
            return v
    return -1


def depth(hops: Sequence[Hop]) -> list[int]:
    """How many hops come before each, at most."""
    found = np.zeros(len(hops), dtype=np.int64)
    for k, hop in enumerate(hops):
        found[k] = max((int(found[j]) + 1 for j in hop.before), default=0)
    return [int(value) for value in found]
