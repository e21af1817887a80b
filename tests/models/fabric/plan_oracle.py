"""One plan for several scenarios, by the letter of its statement: how long a schedule's plan takes, and the least worst
time of tiny instances with one piece a block, by a search over all plans.

Neither shares anything with the check or with bounds. The search lets a rank take in what has come to it in any order,
whatever links take; so it finds no more than the least over real plans.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, combinations
from typing import Any, NamedTuple

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule

MOST_STEPS = 60_000


class TooLarge(Exception):
    """The search was given up."""


def ends(instance: FabricInstance, schedule: Schedule) -> list[int]:
    """The tick at which each scenario ends: moments grow until every sentence of the statement holds."""
    machine, ticks = instance.machine, schedule.ticks_per_s
    src, dst, group = (row.tolist() for row in (machine.network.src, machine.network.dst, machine.group))
    bandwidth = [Fraction(repr(value)) for value in machine.network.bandwidth.tolist()]
    latency = [math.ceil(Fraction(repr(value)) * ticks) for value in machine.network.latency.tolist()]
    cuts, links = schedule.route_start.tolist(), schedule.link.tolist()
    moves = []
    for i, (start, piece) in enumerate(zip(schedule.start.tolist(), schedule.piece.tolist(), strict=True)):
        route, at, taken = links[cuts[i] : cuts[i + 1]], 0, []
        size = int(schedule.piece_bytes[piece])
        for e in route:
            long = math.ceil(size * ticks / bandwidth[e])
            taken += [(key, at, at + long) for key in ((e,), ("group", group[e])) if key != ("group", -1)]
            at += latency[e]
        longest = max(end - begin for _, begin, end in taken)
        moves.append((start, i, piece, src[route[0]], dst[route[-1]], taken, at + longest))
    moves.sort()
    found = []
    for row in instance.scenarios or ():
        ready = {rank: math.ceil(Fraction(repr(moment)) * ticks) for rank, moment in row}
        begin, grows = [0] * len(moves), True
        while grows:
            grows = False
            for j, least in enumerate(_least(instance, schedule, moves, ready, begin)):
                if least > begin[j]:
                    begin[j], grows = least, True
        origins = instance.blocks.origin.tolist()
        goals = [goal for origin, goal in zip(origins, instance.blocks.goal.tolist(), strict=True) if origin < 0]
        wanting = instance.members if -1 in goals else goals
        come = [begin[j] + move[-1] for j, move in enumerate(moves)]
        found.append(max([0, *come, *(ready.get(rank, 0) for rank in wanting)]))
    return found


def _least(
    instance: FabricInstance, schedule: Schedule, moves: list[Any], ready: dict[int, int], begin: list[int]
) -> Iterator[int]:
    """For each transfer the moment before which it may not start, if the others start when they do."""
    for j, (start, _, piece, u, _, taken, _) in enumerate(moves):
        origin = int(instance.blocks.origin[schedule.piece_block[piece]])
        moments = [ready.get(u, 0)] if origin in (u, -1) else [0]
        to_here = [(m[0] + m[-1], m[1], i) for i, m in enumerate(moves) if (m[2], m[4]) == (piece, u)]
        before = sorted(row for row in to_here if row[0] <= start)
        if origin != u:
            moments += [begin[i] + moves[i][-1] for *_, i in (before if origin < 0 else before[:1])]
        for i in range(j):
            for key, _, end in moves[i][5]:
                moments += [begin[i] + end - at for other, at, _ in taken if other == key]
        yield max(moments)


class Way(NamedTuple):
    """A route from a rank to a rank: links (and groups) with offset and end of what it takes there, and its length."""

    source: int
    target: int
    taken: tuple[tuple[Any, Fraction, Fraction], ...]
    arrives: Fraction


class Move(NamedTuple):
    """What a plan says next: a piece, its way, which of what has come to the source it takes in first, what it carries,
    and whether that is added."""

    piece: int
    way: Way
    takes: tuple[int, ...]
    value: int
    adds: bool


def least_worst(instance: FabricInstance, above: Fraction) -> Fraction:
    """The least worst end of all plans with one piece a block, or ``above`` if none is better. Raises
    :class:`TooLarge`."""
    return _Plans(instance).best(above)


class _Plans:
    def __init__(self, instance: FabricInstance) -> None:
        self.members, blocks, machine = list(instance.members), instance.blocks, instance.machine
        self.origin, self.goal = blocks.origin.tolist(), blocks.goal.tolist()
        ready = [{rank: Fraction(repr(moment)) for rank, moment in row} for row in instance.scenarios or ()]
        self.ready = {rank: tuple(row.get(rank, Fraction(0)) for row in ready) for rank in range(machine.nodes)}
        self.none = tuple(Fraction(0) for _ in ready)
        self.full = [(1 << len(self.members)) - 1 if origin < 0 else 1 for origin in self.origin]
        self.ways = [list(self._ways(instance, int(size))) for size in blocks.bytes]
        self.steps = 0

    def _ways(self, instance: FabricInstance, size: int) -> Iterator[Way]:
        machine = instance.machine
        net, is_switch = machine.network, machine.is_switch.tolist()
        ranks = [v for v in range(machine.nodes) if not is_switch[v] and (instance.relay or v in self.members)]
        open_: list[list[int]] = [[e] for e in range(machine.links) if int(net.src[e]) in ranks]
        while open_:
            route = open_.pop()
            head = int(net.dst[route[-1]])
            if not is_switch[head]:
                if head in ranks:
                    at, taken, longest = Fraction(0), [], Fraction(0)
                    for e in route:
                        long = size / Fraction(repr(float(net.bandwidth[e])))
                        keys = [("link", e)] + ([("group", int(machine.group[e]))] if machine.group[e] >= 0 else [])
                        taken += [(key, at, at + long) for key in keys]
                        at, longest = at + Fraction(repr(float(net.latency[e]))), max(longest, long)
                    yield Way(int(net.src[route[0]]), head, tuple(taken), at + longest)
                continue
            seen = {int(net.src[e]) for e in route} | {head}
            open_ += [[*route, e] for e in range(machine.links) if net.src[e] == head and int(net.dst[e]) not in seen]

    def best(self, above: Fraction) -> Fraction:
        self.found = above
        held: dict[tuple[int, int], int] = {}
        for p, origin in enumerate(self.origin):
            for bit, rank in enumerate(self.members):
                if origin < 0:
                    held[p, rank] = 1 << bit
            if origin >= 0:
                held[p, origin] = 1
        self._go(held, {}, {}, {}, self.none, None)
        return self.found

    def _go(self, held: Any, there: Any, coming: Any, free: Any, end: Any, last: Move | None) -> None:
        """``held``: what each rank has of each piece, ``there``: since when, ``coming``: (value, adds, when) of what
        has been sent to it, ``free``: of links, ``end``: of all so far; moments by scenario."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooLarge
        if max(end) >= self.found:
            return
        if self._complete(held, coming):
            wanting = [v for p, o in enumerate(self.origin) if o < 0 for v in self._wanting(p)]
            worst = max([*end, *(moment for v in wanting for moment in self.ready[v])])
            self.found = min(self.found, worst)
            return
        for p in range(len(self.full)):
            for way in self.ways[p]:
                for move in self._moves(p, way, held, coming):
                    if last is None or not self._earlier(move, last):
                        self._made(move, held, there, coming, free, end)

    def _earlier(self, move: Move, last: Move) -> bool:
        """Whether the plan is the same as with this move before the last one, and comes in that order elsewhere."""
        if move.piece == last.piece and move.way.source in (last.way.target, last.way.source):
            return False
        if {key for key, *_ in move.way.taken} & {key for key, *_ in last.way.taken}:
            return False
        return (move.piece, move.way.source, move.way.target) < (last.piece, last.way.source, last.way.target)

    def _moves(self, p: int, way: Way, held: Any, coming: Any) -> Iterator[Move]:
        mine, key = coming.get((p, way.source), ()), (p, way.source)
        target = held.get((p, way.target), 0)
        for some in chain.from_iterable(combinations(range(len(mine)), k) for k in range(len(mine) + 1)):
            if self.origin[p] >= 0 and len(some) > 1:
                continue
            value = held.get(key, 0)
            for k in some:
                brings, adds, _ = mine[k]
                value = brings if not adds else -1 if value < 0 or value & brings else value | brings
            if value <= 0:
                continue
            if self.origin[p] >= 0:
                if not target and not coming.get((p, way.target)):
                    yield Move(p, way, some, value, False)
                continue
            await_ = coming.get((p, way.target), ())
            whole = any(not adds for _, adds, _ in await_)
            if not whole and not value & target and not any(value & brings for brings, _, _ in await_):
                yield Move(p, way, some, value, True)
            if value == self.full[p] and not whole and target != value:
                yield Move(p, way, some, value, False)

    def _made(self, move: Move, held: Any, there: Any, coming: Any, free: Any, end: Any) -> None:
        p, way, key = move.piece, move.way, (move.piece, move.way.source)
        mine = coming.get(key, ())
        since = there.get(key, self.none)
        for k in move.takes:
            since = tuple(map(max, since, mine[k][2]))
        own = self.origin[p] in (way.source, -1)
        now = tuple(map(max, since, self.ready[way.source])) if own else since
        for resource, at, _ in way.taken:
            if resource in free:
                now = tuple(max(a, b - at) for a, b in zip(now, free[resource], strict=True))
        then = tuple(a + way.arrives for a in now)
        left = tuple(one for k, one in enumerate(mine) if k not in move.takes)
        to = (p, way.target)
        self._go(
            held | {key: move.value},
            there | {key: since},
            coming | {key: left, to: (*(left if to == key else coming.get(to, ())), (move.value, move.adds, then))},
            free | {resource: tuple(a + stop for a in now) for resource, _, stop in way.taken},
            tuple(map(max, end, then)),
            move,
        )

    def _wanting(self, p: int) -> list[int]:
        return self.members if self.goal[p] < 0 else [self.goal[p]]

    def _complete(self, held: Any, coming: Any) -> bool:
        for p, full in enumerate(self.full):
            for v in self._wanting(p):
                value = held.get((p, v), 0)
                for brings, adds, _ in coming.get((p, v), ()):
                    value = value | brings if adds else brings
                if value != full:
                    return False
        return True
