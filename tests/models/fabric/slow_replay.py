"""The oracle of the replay: plain Python and fractions, event by event, written from the statement of the problem.

A tick lasts 1/ticks_per_s seconds. A transfer of n bytes occupies a link of b bytes/s for n/b seconds, rounded up to
whole ticks, after the latencies (rounded up) of the links before; numbers in a file mean the decimals that stand there.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule


def replay(instance: FabricInstance, schedule: Schedule) -> tuple[set[str], int]:
    """The kinds of faults, and the tick of the last arrival."""
    return Replay(instance, schedule).run()


def asked(instance: FabricInstance) -> list[tuple[frozenset[int], bool, frozenset[int]]]:
    """Of every block who holds it, whether these are contributions to a sum, and who wants it."""
    if instance.traffic is not None:
        rows = [
            (frozenset(r.holders), r.mode == "sum" and len(r.holders) > 1, frozenset(r.wanters))
            for r in instance.traffic
        ]
        return [(h, adds, w) for h, adds, w in rows if adds or w - h]
    everyone = frozenset(instance.members)
    pairs = zip(instance.blocks.origin.tolist(), instance.blocks.goal.tolist(), strict=True)
    return [(everyone if u < 0 else frozenset([u]), u < 0, everyone if v < 0 else frozenset([v])) for u, v in pairs]


class Replay:
    def __init__(self, instance: FabricInstance, schedule: Schedule) -> None:
        self.instance = instance
        machine = instance.machine
        self.ends = list(zip(machine.network.src.tolist(), machine.network.dst.tolist(), strict=True))
        self.bandwidth = [Fraction(repr(value)) for value in machine.network.bandwidth.tolist()]
        self.latency = [Fraction(repr(value)) for value in machine.network.latency.tolist()]
        self.group = machine.group.tolist()
        self.switch = machine.is_switch.tolist()
        self.ticks = int(schedule.ticks_per_s)
        self.pieces = list(zip(schedule.piece_block.tolist(), schedule.piece_bytes.tolist(), strict=True))
        cuts = schedule.route_start.tolist()
        links = schedule.link.tolist()
        self.transfers = [
            (start, piece, bool(adds), links[a:b])
            for start, piece, adds, a, b in zip(
                schedule.start.tolist(), schedule.piece.tolist(), schedule.adds.tolist(), cuts, cuts[1:], strict=False
            )
        ]
        self.faults: set[str] = set()
        self.ready = {rank: math.ceil(Fraction(repr(moment)) * self.ticks) for rank, moment in instance.ready or ()}
        self.asked = asked(instance)
        self.is_sum = [self.asked[block][1] for block, _ in self.pieces]
        self.sums = any(adds for _, adds, _ in self.asked)

    def run(self) -> tuple[set[str], int]:
        for b, size in enumerate(self.instance.blocks.bytes.tolist()):
            if sum(s for block, s in self.pieces if block == b) != size:
                self.faults.add("cut")
        for start, piece, adds, route in self.transfers:
            if adds and not self.is_sum[piece]:
                self.faults.add("adds")
            if not self.is_route(route):
                self.faults.add("route")
            assert start >= 0
        if self.faults:
            return self.faults, 0
        self.occupied: list[tuple[int, int, int, int]] = []  # transfer, link, begin, end
        self.arrivals: list[tuple[int, int, int]] = []  # tick, transfer, node
        for i in range(len(self.transfers)):
            self.lay_out(i)
        for (i, e, b1, e1), (j, f, b2, e2) in combinations(self.occupied, 2):
            together = b1 < e2 and b2 < e1
            if together and e == f:
                self.faults.add("link")
            if together and i != j and self.group[e] == self.group[f] >= 0:
                self.faults.add("group")
        if self.faults:
            return self.faults, 0
        self.play()
        goals = {v for holders, adds, wanters in self.asked if adds for v in holders & wanters}
        own = [self.ready.get(rank, 0) for rank in goals]  # what they add themselves is there, too
        return self.faults, max([tick for tick, _, _ in self.arrivals] + own, default=0)

    def is_route(self, route: list[int], forks: bool | None = None) -> bool:
        switching = self.instance.switching
        forks = switching.multicast if forks is None else forks
        if switching.mode == "store_and_forward":
            return len(route) == 1
        source = self.ends[route[0]][0]
        if self.switch[source]:
            return False
        reached, left = [source], set()
        for k, e in enumerate(route):
            u, v = self.ends[e]
            if u not in reached or v in reached:
                return False
            if u != source and not self.switch[u]:
                return False
            if not forks and k and self.ends[route[k - 1]][1] != u:
                return False
            reached.append(v)
            left.add(u)
        return all(v in left or not self.switch[v] for v in reached)

    def lay_out(self, i: int) -> None:
        """When each link is occupied, and where and when the transfer arrives."""
        start, piece, _, route = self.transfers[i]
        size = self.pieces[piece][1]
        parent = {self.ends[e][1]: e for e in route}
        leaves = set(parent) - {self.ends[e][0] for e in route}
        for e in route:
            way = [e]
            while self.ends[way[0]][0] in parent:
                way.insert(0, parent[self.ends[way[0]][0]])
            begin = start + sum(math.ceil(self.latency[f] * self.ticks) for f in way[:-1])
            takes = [math.ceil(Fraction(size) * self.ticks / self.bandwidth[f]) for f in way]
            self.occupied.append((i, e, begin, begin + takes[-1]))
            if self.ends[e][1] in leaves:
                arrival = start + sum(math.ceil(self.latency[f] * self.ticks) for f in way) + max(takes)
                self.arrivals.append((arrival, i, self.ends[e][1]))

    def at_first(self) -> tuple[list[frozenset[Any]], dict[tuple[int, int], frozenset[Any]]]:
        """All that every piece can be, and what every rank holds of each at the beginning."""
        holds: dict[tuple[int, int], frozenset[Any]] = {}
        whole = []
        for p, (b, _) in enumerate(self.pieces):
            holders, adds, _ = self.asked[b]
            whole.append(holders if adds else frozenset(["it"]))
            holds |= {(p, v): frozenset([v]) if adds else whole[-1] for v in holders}
        return whole, holds

    def play(self) -> None:
        """What becomes ready before what arrives, that before starts of the same tick; of arrivals copies before
        additions."""
        switching = self.instance.switching
        whole, owned = self.at_first()
        holds: dict[tuple[int, int], frozenset[Any]] = {}
        due = sorted(owned, key=lambda place: self.ready.get(place[1], 0))
        carried: dict[int, frozenset[Any]] = {}
        came: dict[tuple[int, int], list[int]] = {}  # (piece, switch): ticks of arrivals that can still leave
        arrived_at = {(i, v): tick for tick, i, v in self.arrivals}
        used: set[int] = set()
        events: list[tuple[int, int, bool, int, int]] = [
            (tick, 0, self.transfers[i][2], i, v) for tick, i, v in self.arrivals
        ]
        events += [(row[0], 1, False, i, self.ends[row[3][0]][0]) for i, row in enumerate(self.transfers)]
        for tick, starts, _, i, v in [*sorted(events), (math.inf, 2, False, 0, 0)]:
            while due and self.ready.get(due[0][1], 0) <= tick:
                place = due.pop(0)
                holds[place] = holds.get(place, frozenset()) | owned[place]
            if starts == 2:
                break
            _, p, adds, _ = self.transfers[i]
            everything = whole[p]
            if not starts:
                if self.switch[v]:
                    came.setdefault((p, v), []).append(tick)
                elif not adds:
                    holds[p, v] = everything
                else:
                    if holds.get((p, v), frozenset()) & carried[i]:
                        self.faults.add("doubled")
                    holds[p, v] = holds.get((p, v), frozenset()) | carried[i]
                continue
            value: frozenset[Any]
            if not self.switch[v]:
                value = holds.get((p, v), frozenset())
            elif self.is_sum[p]:
                earlier = [j for j in range(i) if self.transfers[j][1] == p and (j, v) in arrived_at]
                feeder = earlier[-1] if earlier else None
                if (
                    feeder is None
                    or arrived_at[feeder, v] > tick
                    or (arrived_at[feeder, v] < tick and not switching.buffer)
                ):
                    value = frozenset()
                else:
                    value = carried[feeder]
                    if feeder in used and not switching.copies:
                        self.faults.add("left twice")
                    used.add(feeder)
            else:
                parcels = came.get((p, v), [])
                now = [t for t in parcels if switching.buffer or t == tick]
                value = everything if now else frozenset()
                if now and not switching.copies:
                    parcels.remove(now[0])
                elif not now:
                    self.faults.add("not there or left twice")
            if not value:
                self.faults.add("not there")
            elif not adds and value != everything:
                self.faults.add("incomplete")
            carried[i] = value if adds else everything
        for p, (b, _) in enumerate(self.pieces):
            for v in self.asked[b][2]:
                if holds.get((p, v), frozenset()) != whole[p]:
                    self.faults.add("missing")
