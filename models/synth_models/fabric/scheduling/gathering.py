"""Times of transfers with several sources: in-trees into one rank, and hubs from which the sum goes on to several.

The semantics are those of :mod:`synth_models.fabric.check.gathered_hops`; nothing is shared with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.scheduling.reservations import Uses


class Routed(Protocol):
    """Transfers by their routes."""

    @property
    def route_start(self) -> IntArray:
        """Shape (transfers + 1,)."""

    @property
    def link(self) -> IntArray:
        """Shape (links of routes,)."""


class HopTimes(NamedTuple):
    """Of every link of a route, in ticks after the transfer's start, shape (links of routes,): ``offset`` until it is
    occupied; ``arrival`` until what crosses it has arrived whole behind it; ``duration`` of its use; ``leaves``, when
    the link's tail must hold what it sends if that is a source, else -1."""

    offset: IntArray
    arrival: IntArray
    duration: IntArray
    leaves: IntArray


def gathering(machine: Machine, route_start: IntArray, link: IntArray) -> BoolArray:
    """Which transfers have several sources, shape (transfers,); only machines whose switches add have such."""
    count = len(route_start) - 1
    if not machine.abilities.adds.any() or not count:
        return np.zeros(count, dtype=bool)
    from_rank = (~machine.is_switch[machine.network.src[link]]).astype(np.int64)
    several: BoolArray = np.add.reduceat(from_rank, route_start[:-1]) > 1
    return several


def gathered(
    machine: Machine, ticks_per_s: int, moved: Routed, size: IntArray, chosen: IntArray, times: HopTimes
) -> None:
    """Fill ``times`` of the ``chosen`` transfers, whose links' ``duration`` is there; that of sums out of switches
    which add more slowly than the link carries is raised. ``size``: bytes, of every link of a route.

    Raises ``ValueError`` for routes that are no in-tree, continued by an out-tree or not.
    """
    net, rate = machine.network, machine.abilities.add_rate
    latency, route_start, link = clock.latencies(machine, ticks_per_s), moved.route_start, moved.link
    for i in chosen.tolist():
        at = slice(route_start[i], route_start[i + 1])
        route = link[at]
        tails, heads = net.src[route].tolist(), net.dst[route].tolist()
        split = _hub_at(tails, heads, machine.is_switch)
        if split is None:
            raise ValueError(f"transfer {i}: the links of its several sources do not meet in one place")
        sums = [k for k, u in enumerate(tails[:split]) if heads[:k].count(u) > 1]
        sums += [k for k in range(split, len(route)) if tails[k] == heads[split - 1]]
        for k in sums:
            if rate[tails[k]] < net.bandwidth[route[k]]:
                ticks = clock.ticks_for(int(size[at][k]), ticks_per_s, float(rate[tails[k]]))
                times.duration[at][k] = max(ticks, times.duration[at][k])
        forks = len(set(tails[split:])) < len(route) - split
        _fill(tails, heads, machine.is_switch, split if forks else len(route), latency[route], at, times)


def _hub_at(tails: list[int], heads: list[int], is_switch: BoolArray) -> int | None:
    """How many of the links lead to the hub, where all streams are one."""
    last = max(k for k, u in enumerate(tails) if not is_switch[u])
    open_ends: set[int] = set()
    for k, (u, v) in enumerate(zip(tails, heads, strict=True)):
        open_ends.discard(u)
        open_ends.add(v)
        if k >= last and len(open_ends) == 1:
            return k + 1
    return None


def parts_from_its_hub(machine: Machine, route: Sequence[int]) -> bool:
    """Whether behind the switch where all streams of a route are one the sum enters every node once, that switch not
    again, over links that lead there for the first time."""
    net, links = machine.network, list(route)
    tails, heads = net.src[links].tolist(), net.dst[links].tolist()
    split = _hub_at(tails, heads, machine.is_switch)
    if split is None:
        return False
    entered = [heads[split - 1], *heads[split:]]
    return len(set(entered)) == len(entered) and not set(links[:split]) & set(links[split:])


def _fill(
    tails: list[int],
    heads: list[int],
    is_switch: BoolArray,
    split: int,
    latency: IntArray,
    at: slice,
    times: HopTimes,
) -> None:
    """Times of one route, of which ``split`` links are an in-tree and the others an out-tree."""
    takes = times.duration[at].tolist()
    delay, longest = [0] * len(tails), [0] * len(tails)
    below: dict[int, int] = {}  # the link out of a node
    for k in range(split - 1, -1, -1):
        then = below.get(heads[k])
        delay[k] = int(latency[k]) + (0 if then is None else delay[then])
        longest[k] = max(takes[k], 0 if then is None else longest[then])
        below[tails[k]] = k
    sources = [k for k in range(split) if not is_switch[tails[k]]]
    whole = max(delay[k] + longest[k] for k in sources)
    quickest = min(longest[k] for k in sources)
    into: dict[int, int] = {}
    for k, (u, v) in enumerate(zip(tails, heads, strict=True)):
        if k < split:
            begin, arrival = whole - delay[k] - takes[k], whole
        else:
            front = delay[into[u]] if u in into else whole - quickest
            delay[k], longest[k] = front + int(latency[k]), max(longest[into[u]] if u in into else quickest, takes[k])
            begin, arrival = front, delay[k] + longest[k]
            into[v] = k
        times.offset[at][k], times.arrival[at][k] = begin, arrival
        times.leaves[at][k] = whole - delay[k] - longest[k] if k in sources else -1


def with_streams(machine: Machine, uses: Uses, resources: int, moved: Routed, times: HopTimes) -> tuple[Uses, int]:
    """``uses`` and number of resources with the streams of switches that copy or add a limited number at once: each is
    a resource, and transfers take those of a switch in turn."""
    net, limit = machine.network, machine.abilities.streams
    owner = np.repeat(np.arange(len(moved.route_start) - 1), np.diff(moved.route_start))
    parts: list[tuple[IntArray, ...]] = []
    for node in np.flatnonzero(limit > 0).tolist():
        sides = [side[moved.link] == node for side in (net.src, net.dst)]
        several = np.logical_or(*(np.bincount(owner[side], minlength=len(uses.row) - 1) > 1 for side in sides))
        rows = np.flatnonzero(np.logical_or(*sides) & several[owner])
        number, which = np.unique(owner[rows], return_inverse=True)
        begin, end = np.full(len(number), 2**62, dtype=np.int64), np.zeros(len(number), dtype=np.int64)
        np.minimum.at(begin, which, times.offset[rows])
        np.maximum.at(end, which, times.offset[rows] + times.duration[rows])
        lane = resources + np.arange(len(number)) % limit[node]
        resources += int(limit[node])
        parts.append((number, lane, begin, end - begin))
    rows_of = [np.repeat(np.arange(len(uses.row) - 1), np.diff(uses.row)), *(part[0] for part in parts)]
    order = np.argsort(np.concatenate(rows_of), kind="stable")
    counts = np.bincount(np.concatenate(rows_of), minlength=len(uses.row) - 1)
    whole = (
        np.concatenate([old, *(part[k] for part in parts)])[order].astype(np.int64)
        for k, old in enumerate((uses.resource, uses.offset, uses.duration), 1)
    )
    return Uses(starts(counts), *whole), resources
