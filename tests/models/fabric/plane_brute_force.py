"""The least time of a tiny re-shard behind switches, by a search over all schedules of whole blocks.

Written from the statement alone. A plane is a switch with a link to and one from each of its ranks, all of one rate and
latency: a send takes its sender's link and its receiver's for ``per_byte`` ticks a byte, and all has arrived
``latency`` ticks after. A rank has all of a block or nothing, and any rank may hand on what it has got.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple


class TooLarge(Exception):
    """The search was given up."""


class Plane(NamedTuple):
    """``latency``: of a whole route, in ticks."""

    ranks: tuple[int, ...]
    per_byte: int
    latency: int


class Block(NamedTuple):
    """``wanters``: those that hold it not."""

    bytes: int
    holders: frozenset[int]
    wanters: frozenset[int]


Port = tuple[int, int, int]  # plane, rank, out (0) or in (1)
Timed = tuple[tuple[int, tuple[int, ...]], ...]  # ticks that are left, of what
Held = frozenset[tuple[int, ...]]  # block, rank
State = tuple[Held, Timed, Timed, int]  # what is held, flies and is busy; the first send that may start at this moment


def least_ticks(planes: Sequence[Plane], blocks: Sequence[Block], most_states: int) -> int:
    """The least ticks until everybody has what it wants. Raises :class:`TooLarge`."""
    pairs = [(z, u, v) for z, plane in enumerate(planes) for u in plane.ranks for v in plane.ranks if u != v]
    sends = [(b, *pair) for b in range(len(blocks)) for pair in pairs]
    has: Held = frozenset((b, rank) for b, block in enumerate(blocks) for rank in block.holders)
    goal: Held = frozenset((b, rank) for b, block in enumerate(blocks) for rank in block.wanters)
    number = count()
    queue: list[tuple[float, int, int, State]] = [(0.0, next(number), 0, (has, (), (), 0))]
    seen = set[State]()
    while queue:
        _, _, now, state = heapq.heappop(queue)
        has, flights, busy, first = state
        if goal <= has:
            return now
        if state in seen:
            continue
        seen.add(state)
        if len(seen) > most_states:
            raise TooLarge
        taken, coming = {port for _, port in busy}, {key for _, key in flights}
        found = list[tuple[int, State]]()
        for k in range(first, len(sends)):
            b, z, u, v = sends[k]
            ports = (z, u, 0), (z, v, 1)
            if (b, u) in has and (b, v) not in has and (b, v) not in coming and not taken & {*ports}:
                ticks = blocks[b].bytes * planes[z].per_byte
                later = tuple(sorted([*flights, (ticks + planes[z].latency, (b, v))]))
                found.append((now, (has, later, tuple(sorted([*busy, *((ticks, port) for port in ports)])), k + 1)))
        events = [left for left, _ in (*flights, *busy)]
        if events:
            step = min(events)
            arrived = frozenset((key[0], key[1]) for left, key in flights if left == step)
            rest = [tuple((left - step, key) for left, key in row if left > step) for row in (flights, busy)]
            found.append((now + step, (has | arrived, rest[0], rest[1], 0)))
        for moment, after in found:
            heapq.heappush(queue, (moment + _left(planes, blocks, after, goal), -next(number), moment, after))
    raise AssertionError("some wanter is behind no plane")


def _left(planes: Sequence[Plane], blocks: Sequence[Block], after: State, goal: Held) -> float:
    """No more than the ticks that are left: of what flies, and of what must still enter or leave each rank."""
    has, flights, busy, _ = after
    there = has | {key for _, key in flights}
    ends: dict[tuple[int, int], list[int]] = {}  # sizes of blocks that must still leave (0) or enter (1) a rank
    for b, rank in goal - there:
        ends.setdefault((rank, 1), []).append(blocks[b].bytes)
    for b in {b for b, _ in goal - there}:
        owners = [rank for other, rank in there if other == b]
        if len(owners) == 1:
            ends.setdefault((owners[0], 0), []).append(blocks[b].bytes)
    least = float(max((left for left, key in flights if key in goal), default=0))
    for (rank, way), sizes in ends.items():
        mine = [(z, plane) for z, plane in enumerate(planes) if rank in plane.ranks]
        rate = sum(1.0 / plane.per_byte for _, plane in mine)
        taken = sum(left / planes[z].per_byte for left, (z, other, side) in busy if (other, side) == (rank, way))
        least = max(least, (sum(sizes) + taken) / rate + min(plane.latency for _, plane in mine))
    return least * (1.0 - 1e-9)
