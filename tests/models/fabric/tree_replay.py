"""The oracle of routes with several sources: event by event, written from the statement of the problem.

The links of a route stand in the order of the data. As soon as all its streams are one, there is the hub. If the rest
leads to one rank, the route is an out-tree run backwards: with H the end, a link from which it takes d ticks of latency
there is occupied in [H - d - s/b, H - d). Else all of the sum is at the hub at H, and the rest is an out-tree from the
moment at which the first byte of the sum is there, which the source that sends fastest decides.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

from models.fabric.slow_replay import Replay

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule


def replay(instance: FabricInstance, schedule: Schedule) -> tuple[set[str], int]:
    """The kinds of faults, and the tick of the last arrival."""
    return _TreeReplay(instance, schedule).run()


class _TreeReplay(Replay):
    def __init__(self, instance: FabricInstance, schedule: Schedule) -> None:
        super().__init__(instance, schedule)
        able = instance.machine.abilities
        self.adds, self.copies = able.adds.tolist(), able.copies.tolist()
        self.rate = [None if math.isinf(value) else Fraction(repr(value)) for value in able.add_rate.tolist()]
        self.streams = able.streams.tolist()
        self.departures: list[tuple[int, int, int]] = []  # tick, transfer, node
        self.busy: list[tuple[int, int, int]] = []  # switch, begin, end

    def run(self) -> tuple[set[str], int]:
        faults, ticks = super().run()
        if not faults:
            for node, most in enumerate(self.streams):
                changes = sorted(
                    (tick, change) for v, a, b in self.busy if v == node for tick, change in ((a, 1), (b, -1))
                )
                now = 0
                for _, change in changes:
                    now += change
                    if most and now > most:
                        faults.add("streams")
        return faults, 0 if faults else ticks

    def sources(self, route: list[int]) -> list[int]:
        return list(dict.fromkeys(u for u, _ in map(self.ends.__getitem__, route) if not self.switch[u]))

    def cut(self, route: list[int]) -> int | None:
        """How many links lead to the hub: the fewest that hold all links out of ranks and are an in-tree of them."""
        for k in range(1, len(route) + 1):
            part, rest = route[:k], route[k:]
            if all(self.switch[self.ends[e][0]] for e in rest) and self.is_in_tree(part):
                return k
        return None

    def is_in_tree(self, part: list[int]) -> bool:
        outs, ins = (Counter(self.ends[e][side] for e in part) for side in (0, 1))
        if any(not self.switch[v] for v in ins) or any(outs[v] > 1 for v in outs):
            return False
        if any(self.switch[v] and not ins[v] for v in outs) or any(ins[v] > 1 and not self.adds[v] for v in ins):
            return False
        if not self.in_order(part):
            return False
        return len([v for v in ins if not outs[v]]) == 1

    def in_order(self, part: list[int]) -> bool:
        """Whatever comes into a node stands before what leaves it."""
        return not any(self.ends[f][1] == self.ends[e][0] for k, e in enumerate(part) for f in part[k:])

    def is_route(self, route: list[int], forks: bool | None = None) -> bool:
        if len(self.sources(route)) < 2:
            outs = Counter(self.ends[e][0] for e in route)
            anywhere = self.instance.switching.multicast
            return super().is_route(route, True) and all(outs[v] < 2 or self.copies[v] or anywhere for v in outs)
        split = self.cut(route)
        if split is None or len(set(route)) < len(route):
            return False
        rest, hub = route[split:], self.hub(route, split)
        reached = {hub}
        outs = Counter(self.ends[e][0] for e in rest)
        for e in rest:
            u, v = self.ends[e]
            if u not in reached or v in reached or not self.switch[u] or (outs[u] > 1 and not self.copies[u]):
                return False
            reached.add(v)
        return bool(rest) and all(outs[v] or not self.switch[v] for v in reached)

    def hub(self, route: list[int], split: int) -> int:
        (found,) = {self.ends[e][1] for e in route[:split]} - {self.ends[e][0] for e in route[:split]}
        return found

    def lay_out(self, i: int) -> None:
        start, _, _, route = self.transfers[i]
        before = len(self.occupied)
        if len(self.sources(route)) < 2:
            super().lay_out(i)
            self.departures.append((start, i, self.ends[route[0]][0]))
        else:
            self.gathered(i)
        outs, ins = (Counter(self.ends[e][side] for e in route) for side in (0, 1))
        for v in {*outs, *ins}:
            if self.switch[v] and (outs[v] > 1 or ins[v] > 1):
                mine = [(b, e) for _, link, b, e in self.occupied[before:] if v in self.ends[link]]
                self.busy.append((v, min(b for b, _ in mine), max(e for _, e in mine)))

    def gathered(self, i: int) -> None:
        start, piece, _, route = self.transfers[i]
        size, split = self.pieces[piece][1], self.cut(route)
        assert split is not None
        hub, rest = self.hub(route, split), route[split:]
        ins = Counter(self.ends[e][1] for e in route[:split])

        def after(e: int) -> int:
            return math.ceil(self.latency[e] * self.ticks)

        def takes(e: int) -> int:
            speed, u = self.bandwidth[e], self.ends[e][0]
            adding = ins[u] > 1 if e in route[:split] else u == hub
            if adding and (rate := self.rate[u]) is not None:
                speed = min(speed, rate)
            return math.ceil(Fraction(size) * self.ticks / speed)

        stem = rest if len({self.ends[e][0] for e in rest}) == len(rest) else []
        ways: dict[int, list[int]] = {}  # of every source until the hub, or the end of an in-tree
        for v in self.sources(route):
            way, at = [], v
            while at != hub:
                way.append(next(e for e in route[:split] if self.ends[e][0] == at))
                at = self.ends[way[-1]][1]
            ways[v] = way + stem
        needs = {v: sum(map(after, way)) + max(map(takes, way)) for v, way in ways.items()}
        whole = start + max(needs.values())
        self.departures += [(whole - needs[v], i, v) for v in ways]
        inner = set()
        for way in ways.values():
            for k, e in enumerate(way):
                if e not in inner:
                    inner.add(e)
                    begin = whole - sum(map(after, way[k:])) - takes(e)
                    self.occupied.append((i, e, begin, begin + takes(e)))
        if stem:
            self.arrivals.append((whole, i, self.ends[stem[-1]][1]))
            return
        quickest = min(max(map(takes, way)) for way in ways.values())
        stack = [(hub, whole - quickest, quickest)]
        while stack:
            at, front, slowest = stack.pop()
            for e in rest:
                if self.ends[e][0] == at:
                    self.occupied.append((i, e, front, front + takes(e)))
                    then = front + after(e), max(slowest, takes(e))
                    if self.switch[self.ends[e][1]]:
                        stack.append((self.ends[e][1], *then))
                    else:
                        self.arrivals.append((sum(then), i, self.ends[e][1]))

    def play(self) -> None:
        """Arrivals before departures of the same tick; among arrivals copies before additions."""
        whole, holds = self.at_first()
        carried: dict[int, frozenset[Any]] = {}
        events = [(tick, 0, self.transfers[i][2], i, v) for tick, i, v in self.arrivals]
        events += [(tick, 1, False, i, v) for tick, i, v in self.departures]
        several = {i for i, count in Counter(i for _, i, _ in self.departures).items() if count > 1}
        if several and not self.sums:
            self.faults.add("no sums")
        for _, leaves, _, i, v in sorted(events):
            _, p, adds, _ = self.transfers[i]
            has, everything = holds.get((p, v), frozenset()), whole[p]
            if leaves:
                if not has:
                    self.faults.add("not there")
                elif i not in several and not adds and has != everything:
                    self.faults.add("incomplete")
                if has & carried.get(i, frozenset()):
                    self.faults.add("doubled")
                carried[i] = carried.get(i, frozenset()) | has
            elif not adds:
                if carried[i] != everything:
                    self.faults.add("incomplete")
                holds[p, v] = everything
            else:
                if has & carried[i]:
                    self.faults.add("doubled")
                holds[p, v] = has | carried[i]
        for p, (b, _) in enumerate(self.pieces):
            for v in self.asked[b][2]:
                if holds.get((p, v), frozenset()) != whole[p]:
                    self.faults.add("missing")
