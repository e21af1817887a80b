"""Least completion times of tiny machines whose switches copy and add, for given pieces: the oracle of their bounds.

Written from the statement of the problem. A transfer is any tree: out of one rank, into one rank, or into a switch that
adds and out of it again (a hub); where switches store, it is a link. The search puts one transfer after the other in
the order of their starts, each as early as its links, its switches' streams and what its sources hold allow, or as
early as that after any arrival at a source. Times are whole ticks, chosen so that nothing is rounded.

What is found is a schedule, so no bound may exceed it, whether the search was ended or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from models.fabric.small_machines import schedule_of

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule

Contributions = frozenset[Any]
MOST_LOOKS = 100_000  # at moves, of all states together
UNTIL_THE_FIRST = 20  # times as many states may be seen until there is a schedule
WHOLE: Contributions = frozenset(["it"])


@dataclass(frozen=True)
class Move:
    """A piece over a tree. Ticks count from its start: ``leaves`` its sources, ``taken`` (resource, begin, end),
    ``streams`` (switch, begin, end), ``arrives`` at its ends."""

    piece: int
    links: tuple[int, ...]
    leaves: tuple[tuple[int, int], ...]
    taken: tuple[tuple[int, int, int], ...]
    streams: tuple[tuple[int, int, int], ...]
    arrives: tuple[tuple[int, int], ...]

    @property
    def lasts(self) -> int:
        """Until the last arrival."""
        return max(tick for _, tick in self.arrives)


Placed = tuple[int, Move, bool]  # start, what, whether receivers add it to what they hold


@dataclass(frozen=True)
class Found:
    """``seconds`` of the best schedule, None if there is none below the limit; whether the search saw all."""

    seconds: Fraction | None
    schedule: Schedule | None
    complete: bool


def least(instance: FabricInstance, pieces: list[list[int]] | None = None, most_states: int = 2000) -> Found:
    """The quickest schedule found. ``pieces``: bytes of the pieces of every block (default: one each)."""
    return _Search(instance, pieces, most_states).run()


class _Search:
    def __init__(self, instance: FabricInstance, pieces: list[list[int]] | None, most_states: int) -> None:
        machine, blocks = instance.machine, instance.blocks
        self.nodes = machine.nodes
        self.stores = instance.switching.mode == "store_and_forward"
        self.forks_anywhere = instance.switching.multicast
        self.ends = list(zip(machine.network.src.tolist(), machine.network.dst.tolist(), strict=True))
        self.switch, self.group = machine.is_switch.tolist(), machine.group.tolist()
        able = machine.abilities
        self.adds, self.copies = able.adds.tolist(), able.copies.tolist()
        self.most_streams = able.streams.tolist()
        self.add_rate = [None if math.isinf(rate) else Fraction(repr(rate)) for rate in able.add_rate.tolist()]
        self.bandwidth = [Fraction(repr(value)) for value in machine.network.bandwidth.tolist()]
        sizes = [[int(n)] for n in blocks.bytes] if pieces is None else pieces
        assert [sum(row) for row in sizes] == blocks.bytes.tolist()
        self.pieces = [(b, n) for b, row in enumerate(sizes) for n in row]
        latency = [Fraction(repr(value)) for value in machine.network.latency.tolist()]
        rates = {*self.bandwidth, *(rate for rate in self.add_rate if rate)}
        exact = [Fraction(n) / rate for _, n in self.pieces for rate in rates]
        self.ticks = math.lcm(*(value.denominator for value in (*exact, *latency)))
        self.latency = [int(value * self.ticks) for value in latency]
        self.members = list(instance.members)
        self.sums = any(origin < 0 for origin in blocks.origin.tolist())
        self.full: Contributions = frozenset(self.members) if self.sums else WHOLE
        self.begins = {
            (p, v): frozenset([v]) if self.sums else WHOLE
            for p, (b, _) in enumerate(self.pieces)
            for v in (self.members if self.sums else [int(blocks.origin[b])])
        }
        goals = [int(blocks.goal[b]) for b, _ in self.pieces]
        self.wanted = [(p, v) for p, goal in enumerate(goals) for v in (self.members if goal < 0 else [goal])]
        self.moves = list(self.all_moves())
        self.most_states = min(most_states, 100 + MOST_LOOKS // len(self.moves))
        self.soonest = {
            key: min((t for m in self.moves if m.piece == key[0] for v, t in m.arrives if v == key[1]), default=0)
            for key in self.wanted
        }

    # every tree

    def all_moves(self) -> Iterator[Move]:
        for p in range(len(self.pieces)):
            if self.stores:
                yield from (self.stored(p, e) for e in range(len(self.ends)))
                continue
            for u in (v for v in range(self.nodes) if not self.switch[v]):
                for tree in self.trees(u, False):
                    yield self.spread(p, tree)
            if self.sums:
                for hub in (v for v in range(self.nodes) if self.switch[v] and self.adds[v]):
                    ups = [tree for tree in self.trees(hub, True) if sum(self.ends[e][1] == hub for e in tree) > 1]
                    for up in ups:
                        for down in self.trees(hub, False):
                            if not set(up) & set(down):
                                yield self.gathered(p, up[::-1], down, hub)

    def trees(self, root: int, backwards: bool) -> Iterator[tuple[int, ...]]:
        """All trees out of a node (or into it) whose inner nodes are switches, nearest links first."""
        ends = [(v, u) for u, v in self.ends] if backwards else self.ends
        may = self.adds if backwards else self.copies

        def grown(open_: tuple[int, ...], used: frozenset[int], links: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if not open_:
                yield links
                return
            node, rest = open_[0], open_[1:]
            away = [e for e, (u, v) in enumerate(ends) if u == node and v not in used]
            several = may[node] or (self.forks_anywhere and not backwards)
            for count in range(1, len(away) + 1 if several else 2):
                for chosen in combinations(away, count):
                    heads = [ends[e][1] for e in chosen]
                    if len(set(heads)) == count:
                        inner = tuple(v for v in heads if self.switch[v])
                        yield from grown(rest + inner, used | set(heads), links + chosen)

        yield from grown((root,), frozenset([root]), ())

    def takes(self, piece: int, e: int, is_sum: bool) -> int:
        speed, rate = self.bandwidth[e], self.add_rate[self.ends[e][0]]
        if is_sum and rate is not None:
            speed = min(speed, rate)
        return int(Fraction(self.pieces[piece][1]) / speed * self.ticks)

    def stored(self, piece: int, e: int) -> Move:
        (u, v), takes = self.ends[e], self.takes(piece, e, False)
        return self.made(piece, (e,), [(u, 0)], [(e, 0, takes)], [(v, self.latency[e] + takes)])

    def spread(self, piece: int, tree: tuple[int, ...]) -> Move:
        """A link serves after the latencies before it; an end has all after all latencies and the longest service."""
        front, longest = {self.ends[tree[0]][0]: 0}, {self.ends[tree[0]][0]: 0}
        busy, arrives = [], []
        for e in tree:
            (u, v), takes = self.ends[e], self.takes(piece, e, False)
            busy.append((e, front[u], front[u] + takes))
            front[v], longest[v] = front[u] + self.latency[e], max(longest[u], takes)
            if not self.switch[v]:
                arrives.append((v, front[v] + longest[v]))
        return self.made(piece, tree, [(self.ends[tree[0]][0], 0)], busy, arrives)

    def gathered(self, piece: int, up: tuple[int, ...], down: tuple[int, ...], hub: int) -> Move:
        """All streams end together; behind the hub the sum goes on when the quickest source's first byte is there."""
        ins = [self.ends[e][1] for e in up]
        takes = {e: self.takes(piece, e, ins.count(self.ends[e][0]) > 1) for e in up}
        takes |= {e: self.takes(piece, e, self.ends[e][0] == hub) for e in down}
        path = len({self.ends[e][0] for e in down}) == len(down)
        tail = list(down) if path else []  # one rank at the end: all meets there, at tick 0
        onward = {self.ends[e][0]: e for e in up}
        busy, leaves, arrives = [], [], []
        for e in up:
            way, at = [e], self.ends[e][1]
            while at != hub:
                way.append(onward[at])
                at = self.ends[way[-1]][1]
            way += tail
            away = sum(self.latency[f] for f in way)
            busy.append((e, -away - takes[e], -away))
            if not self.switch[self.ends[e][0]]:
                leaves.append((self.ends[e][0], -away - max(takes[f] for f in way)))
        if path:
            for k, e in enumerate(tail):
                away = sum(self.latency[f] for f in tail[k:])
                busy.append((e, -away - takes[e], -away))
            arrives.append((self.ends[tail[-1]][1], 0))
        else:
            quickest = min(-t - sum(self.latency[f] for f in self.way_up(v, onward, hub)) for v, t in leaves)
            front, longest = {hub: -quickest}, {hub: quickest}
            for e in down:
                u, v = self.ends[e]
                busy.append((e, front[u], front[u] + takes[e]))
                front[v], longest[v] = front[u] + self.latency[e], max(longest[u], takes[e])
                if not self.switch[v]:
                    arrives.append((v, front[v] + longest[v]))
        first = min(t for _, t in leaves)
        return self.made(
            piece,
            up + down,
            [(v, t - first) for v, t in leaves],
            [(e, b - first, t - first) for e, b, t in busy],
            [(v, t - first) for v, t in arrives],
        )

    def way_up(self, v: int, onward: dict[int, int], hub: int) -> list[int]:
        way = []
        while v != hub:
            way.append(onward[v])
            v = self.ends[onward[v]][1]
        return way

    def made(self, piece: int, links: Any, leaves: Any, busy: Any, arrives: Any) -> Move:
        taken = list(busy)
        groups: dict[int, list[tuple[int, int, int]]] = {}
        for e, begin, end in busy:
            if self.group[e] >= 0:
                groups.setdefault(len(self.ends) + self.group[e], []).append((e, begin, end))
        for resource, rows in groups.items():
            taken += [(resource, begin, end) for _, begin, end in rows]
        streams = []
        for v in range(self.nodes):
            outs, ins = (sum(self.ends[e][side] == v for e in links) for side in (0, 1))
            if self.switch[v] and (outs > 1 or ins > 1) and self.most_streams[v]:
                mine = [(begin, end) for e, begin, end in busy if v in self.ends[e]]
                streams.append((v, min(b for b, _ in mine), max(e for _, e in mine)))
        return Move(piece, tuple(links), tuple(leaves), tuple(taken), tuple(streams), tuple(arrives))

    # the search

    def run(self) -> Found:
        self.best: tuple[int, tuple[Placed, ...]] | None = None
        self.seen: set[frozenset[Placed]] = set()
        self.dive((), 0)
        if self.best is None:
            return Found(None, None, len(self.seen) < self.most_states)
        ticks, placed = self.best
        rows = [(start, m.piece, m.links, adds) for start, m, adds in placed]
        made = schedule_of(self.pieces, rows, self.ticks)
        return Found(Fraction(ticks, self.ticks), made, len(self.seen) < self.most_states)

    def dive(self, placed: tuple[Placed, ...], now: int) -> None:
        key = frozenset(placed)
        if key in self.seen or len(self.seen) >= self.most_states * (1 if self.best else UNTIL_THE_FIRST):
            return
        self.seen.add(key)
        holds, fine = self.replayed(placed)
        end = max((start + m.lasts for start, m, _ in placed), default=0)
        if self.best is not None and end >= self.best[0]:
            return
        lacking = [at for at in self.wanted if self.value(holds, at, end) != self.full]
        if not lacking:
            if fine:
                self.best = end, placed
            return
        if self.best is not None and any(now + self.soonest[at] >= self.best[0] for at in lacking):
            return
        choices = []
        for m in self.moves:
            for start in self.starts(m, placed, holds, now):
                choices += self.chosen(m, start, holds)
        for _, _, start, m, adds in sorted(choices, key=lambda row: row[:3]):
            self.dive((*placed, (start, m, adds)), start)

    def chosen(
        self, m: Move, start: int, holds: dict[tuple[int, int], list[tuple[int, bool, Contributions]]]
    ) -> Iterator[tuple[int, int, int, Move, bool]]:
        """The ways in which a move may bring something then, the quickest and most useful first."""
        if self.best is not None and start + m.lasts >= self.best[0]:
            return
        parts = [self.value(holds, (m.piece, v), start + after) for v, after in m.leaves]
        brings = frozenset().union(*parts)
        if not all(parts) or sum(map(len, parts)) > len(brings):
            return
        last = 2**62
        there = [self.value(holds, (m.piece, v), last) for v, _ in m.arrives]
        if any(value == self.full for value in there):
            return
        useful = sum((m.piece, v) in self.wanted for v, _ in m.arrives)
        if self.stores and any(value | brings != self.full for value in there):
            useful = -useful  # parts of a sum meet in a switch rather than at a goal
        if brings == self.full:
            yield -useful * len(brings), start + m.lasts, start, m, False
        elif not any(value & brings for value in there):
            yield -useful * len(brings), start + m.lasts, start, m, True

    def starts(self, m: Move, placed: tuple[Placed, ...], holds: Any, now: int) -> list[int]:
        """As early as it fits, and as early as it fits after each arrival at a source."""
        wishes = {now}
        for v, after in m.leaves:
            wishes |= {tick - after for tick, _, _ in holds.get((m.piece, v), []) if tick - after > now}
        return sorted({self.fit(m, placed, wish) for wish in wishes})

    def fit(self, m: Move, placed: tuple[Placed, ...], start: int) -> int:
        moved = True
        while moved:
            moved = False
            for other, n, _ in placed:
                for r, b1, e1 in m.taken:
                    for s, b2, e2 in n.taken:
                        if r == s and start + b1 < other + e2 and other + b2 < start + e1:
                            start, moved = other + e2 - b1, True
            for v, b1, e1 in m.streams:
                busy = sorted(other + e for other, n, _ in placed for w, b, e in n.streams if w == v
                              and start + b1 < other + e and other + b < start + e1)  # fmt: skip
                if len(busy) >= self.most_streams[v]:
                    start, moved = busy[0] - b1, True
        return start

    def value(self, holds: Any, at: tuple[int, int], tick: int) -> Contributions:
        """What a node holds of a piece: copies replace, sums are added."""
        value = self.begins.get(at, frozenset())
        for when, adds, brings in holds.get(at, []):
            if when <= tick:
                value = value | brings if adds else self.full
        return value

    def replayed(self, placed: tuple[Placed, ...]) -> tuple[Any, bool]:
        """Arrivals (tick, adds, contributions) by piece and node in order, and whether all of it is in order: nobody
        sends what it has not, no contribution counts twice."""
        holds: dict[tuple[int, int], list[tuple[int, bool, Contributions]]] = {}
        events = [(start + t, 1, i, v) for i, (start, m, _) in enumerate(placed) for v, t in m.leaves]
        events += [(start + t, 0, i, v) for i, (start, m, _) in enumerate(placed) for v, t in m.arrives]
        carried: list[Contributions] = [frozenset()] * len(placed)
        fine = True
        for tick, leaves, i, v in sorted(events, key=lambda row: (row[0], row[1], placed[row[2]][2])):
            _, m, adds = placed[i]
            has = self.value(holds, (m.piece, v), tick)
            if leaves:
                fine &= bool(has) and not has & carried[i]
                carried[i] = carried[i] | has
            else:
                fine &= not (adds and has & carried[i]) and (adds or carried[i] == self.full)
                holds.setdefault((m.piece, v), []).append((tick, adds, carried[i]))
        return holds, fine
