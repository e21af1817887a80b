"""Exact least completion times of tiny instances with given pieces, under cut-through switching: the oracle of bounds
and methods.

Written from the statement of the problem, by a search over all schedules (best first, moment by moment: which
transfers start now?). Time counts in the greatest common divisor of all durations and latencies: push every transfer of
a best schedule to the left as long as its completion and its order allow, and every start is a sum and difference of
these. What is found is the least over continuous time, or what schedules come as close to as one likes: in a reduction
a rank may start to send just before something arrives that is not to go with it.

Of several collectives it is the last end: each piece stays with the ranks of its own group, and none of it starts
before its release. What a rank has of its own comes to it, as if it arrived, when it is ready and has all that it wants
of the collectives before.

A bound over every way to cut is at most this; so is a bound for these pieces; a method that uses these pieces takes at
least this long.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import chain, combinations, count, product
from typing import Any

import numpy as np

from synth_models.fabric.instance import FabricInstance

MOST_STATES = 20_000  # about a minute
MOST_OPEN = 20  # choices kept open for each of them, for each of 1,000 of few: many transfers may start at once

Flight = tuple[int, int, int, int]  # ticks until it arrives, piece, rank, contributions (-1: a copy)
Busy = tuple[int, int, int]  # resource, ticks until it is occupied, ticks until it is free
State = tuple[tuple[int, ...], tuple[Flight, ...], tuple[Busy, ...]]


class TooLarge(Exception):
    """The search was given up."""


def least_seconds(
    instance: FabricInstance,
    pieces: Sequence[Sequence[int]] | None = None,
    pruned: bool = True,
    most_states: int = MOST_STATES,
) -> Fraction:
    """The least completion time in seconds. ``pieces``: the bytes of the pieces of every block (default: one each).

    ``pruned=False`` searches without estimates of what is left, to test them. Raises :class:`TooLarge`.
    """
    return best_schedule(instance, pieces, pruned, most_states)[0]


def best_schedule(
    instance: FabricInstance,
    pieces: Sequence[Sequence[int]] | None = None,
    pruned: bool = True,
    most_states: int = MOST_STATES,
) -> tuple[Fraction, Fraction, list[tuple[int, int, list[int], bool]]]:
    """The same with a schedule: seconds, seconds a tick, and rows (start, piece, links, adds)."""
    search = _Search(instance, pieces, pruned, most_states)
    ticks, rows = search.run()
    return ticks * search.unit, search.unit, rows


@dataclass(frozen=True)
class _Move:
    """A piece from a rank to others over a route: its intervals on resources and its arrivals, from its start."""

    piece: int
    source: int
    taken: tuple[Busy, ...]
    arrives: tuple[tuple[int, int], ...]  # rank, ticks
    links: tuple[int, ...]
    may_wait: bool = False  # for a transfer that starts later but is on a common link earlier


class _Search:
    def __init__(
        self, instance: FabricInstance, pieces: Sequence[Sequence[int]] | None, pruned: bool, most_states: int
    ) -> None:
        assert instance.switching.mode == "cut_through"
        self.pruned, self.most_states = pruned, most_states
        machine, (blocks, collective) = instance.machine, instance.all_blocks
        self.ends = list(zip(machine.network.src.tolist(), machine.network.dst.tolist(), strict=True))
        self.switch = machine.is_switch.tolist()
        self.group = machine.group.tolist()
        self.nodes = machine.nodes
        self.multicast = instance.switching.multicast
        sizes = [[int(n)] for n in blocks.bytes] if pieces is None else [list(row) for row in pieces]
        assert [sum(row) for row in sizes] == blocks.bytes.tolist()
        self.size = [n for row in sizes for n in row]
        of_block = [b for b, row in enumerate(sizes) for _ in row]
        self.origin = [int(blocks.origin[b]) for b in of_block]
        self.goal = [int(blocks.goal[b]) for b in of_block]
        own = [collective[b] for b in of_block]
        self.members = [list(instance.parts[c].members) for c in own]  # of every piece
        self.sums = any(origin < 0 for origin in self.origin)
        self.to_one = all(goal >= 0 for goal in self.goal)
        self.full = [
            (1 << len(group)) - 1 if origin < 0 else 1 for group, origin in zip(self.members, self.origin, strict=True)
        ]
        self.sent = 2 * (max(self.full, default=0) + 1)  # of a rank that has sent on what only one rank wants
        outside = {*range(self.nodes)} - set(np.flatnonzero(machine.is_switch).tolist())
        self.foreign = [set() if instance.relay else outside - set(group) for group in self.members]
        release = [Fraction(repr(one.release)) for one in instance.collectives or ()] or [Fraction(0)]
        bandwidth = [Fraction(repr(b)) for b in machine.network.bandwidth.tolist()]
        latency = [Fraction(repr(a)) for a in machine.network.latency.tolist()]
        exact = {(p, e): Fraction(self.size[p]) / b for p in range(len(self.size)) for e, b in enumerate(bandwidth)}
        rows = [(0, instance.ready)] if instance.collectives is None else enumerate(
            one.ready for one in instance.collectives
        )  # fmt: skip
        ready = {(c, rank): Fraction(repr(moment)) for c, row in rows for rank, moment in row or () if moment}
        self.unit = reduce(_common, [*exact.values(), *latency, *release, *ready.values()], Fraction(0)) or Fraction(1)
        self.ready = {key: int(moment / self.unit) for key, moment in ready.items()}
        self.collective = own
        self.after = [tuple(one.after or ()) for one in instance.collectives or ()] or [()]
        self.duration = {key: int(value / self.unit) for key, value in exact.items()}
        self.latency = [int(value / self.unit) for value in latency]
        self.release = [int(release[c] / self.unit) for c in own]
        self.last_release = max([*self.release, *self.ready.values()], default=0)
        self.bandwidth = [b * self.unit for b in bandwidth]
        self.moves = self.all_moves()
        self.cuts = self.all_cuts()
        self.away = [self.distances(p) for p in range(len(self.size))]
        self.estimates: dict[Any, float] = {}  # by what everybody has and what is under way

    # what can be done

    def all_moves(self) -> list[_Move]:
        trees = [tree for u in range(self.nodes) if not self.switch[u] for tree in self.routes(u)]
        found = [
            self.move(p, u, tree)
            for p, foreign in enumerate(self.foreign)
            for u, tree in trees
            if u not in foreign and not foreign & set(tree)
        ]
        earliest: dict[int, int] = {}  # the least offset at which anybody uses a resource
        for move in found:
            for r, begin, _ in move.taken:
                earliest[r] = min(begin, earliest.get(r, begin))
        return [replace(m, may_wait=any(begin > earliest[r] for r, begin, _ in m.taken)) for m in found]

    def routes(self, source: int) -> Iterator[tuple[int, dict[int, int]]]:
        """Every path, or with multicast every out-tree, from a rank through switches to ranks: the link into every
        node that is reached."""
        others = [v for v in range(self.nodes) if v != source]
        into = {v: [e for e, (u, w) in enumerate(self.ends) if w == v] for v in others}
        for reached in chain.from_iterable(combinations(others, n) for n in range(1, self.nodes)):
            for links in product(*(into[v] for v in reached)):
                tree = dict(zip(reached, links, strict=True))
                tails = [self.ends[e][0] for e in links]
                inner = set(tails) - {source}
                if any(u not in tree or not self.switch[u] for u in inner):
                    continue
                if any(self.switch[v] and v not in inner for v in reached):
                    continue
                if not self.multicast and len(set(tails)) < len(tails):
                    continue
                if all(self.leads(tree, source, v) for v in reached):
                    yield source, tree

    def leads(self, tree: dict[int, int], source: int, node: int) -> bool:
        for _ in tree:
            node = self.ends[tree[node]][0]
            if node == source:
                return True
        return False

    def move(self, piece: int, source: int, tree: dict[int, int]) -> _Move:
        taken: list[Busy] = []
        arrives, depth = [], {}
        for node, e in tree.items():
            way, at = [e], self.ends[e][0]
            while at != source:
                way.append(tree[at])
                at = self.ends[tree[at]][0]
            depth[e] = len(way)
            offset = sum(self.latency[f] for f in way[1:])
            end = offset + self.duration[piece, e]
            taken.append((e, offset, end))
            if self.group[e] >= 0:
                taken.append((len(self.ends) + self.group[e], offset, end))
            if not self.switch[node]:
                arrives.append((node, offset + self.latency[e] + max(self.duration[piece, f] for f in way)))
        return _Move(piece, source, tuple(taken), tuple(arrives), tuple(sorted(depth, key=depth.__getitem__)))

    # what is left at least

    def all_cuts(self) -> list[tuple[int, int, int, int]]:
        """Node sets, as the bits of a number, with the ticks a byte (a fraction) that can come in and the least latency
        on the way in."""
        found = []
        for inside in chain.from_iterable(combinations(range(self.nodes), n) for n in range(1, self.nodes)):
            links = [e for e, (u, v) in enumerate(self.ends) if v in inside and u not in inside]
            if links and any(not self.switch[v] for v in inside):
                rate = sum((self.bandwidth[e] for e in links), Fraction(0))
                nodes = sum(1 << v for v in inside)
                found.append((nodes, rate.denominator, rate.numerator, min(map(self.latency.__getitem__, links))))
        return found

    def distances(self, piece: int) -> list[list[float]]:
        away = [[0.0 if u == v else math.inf for v in range(self.nodes)] for u in range(self.nodes)]
        for m in self.moves:
            if m.piece == piece:
                for v, ticks in m.arrives:
                    away[m.source][v] = min(away[m.source][v], ticks)
        for w, u, v in product(range(self.nodes), repeat=3):
            away[u][v] = min(away[u][v], away[u][w] + away[w][v])
        return away

    def wanting(self, piece: int) -> list[int]:
        return self.members[piece] if self.goal[piece] < 0 else [self.goal[piece]]

    def left(self, state: State) -> float:
        """A lower bound on the ticks until everything is where it is wanted."""
        has, flights, _ = state
        found = self.estimates.get((has, flights))
        if found is None:
            found = self.estimates[has, flights] = self.estimate(has, flights)
        return found

    def estimate(self, has: tuple[int, ...], flights: tuple[Flight, ...]) -> float:
        least = float(max((when for when, *_ in flights), default=0))
        if not self.pruned:
            return least
        lacking = []  # of every piece the nodes that lack some of it, those that have or await each part, and its bytes
        for p, full in enumerate(self.full):
            held = has[p * self.nodes : (p + 1) * self.nodes]
            without = [v for v in self.wanting(p) if held[v] != full]
            if not without:
                continue
            away, flying = self.away[p], [(when, u, brings) for when, q, u, brings in flights if q == p]
            holders = set()
            bits = full
            while bits:
                bit = bits & -bits
                bits ^= bit
                near, nodes = [], 0
                for u, there in enumerate(held):
                    if there & bit:
                        near.append((0, away[u]))
                        nodes |= 1 << u
                for when, u, brings in flying:
                    if brings & bit:
                        near.append((when, away[u]))
                        nodes |= 1 << u
                if not near:  # nobody has it yet
                    owner = self.owner(p, bit)
                    near.append((0, away[owner]))
                    nodes |= 1 << owner
                for v in without:
                    if not held[v] & bit:
                        least = max(least, min([when + row[v] for when, row in near], default=math.inf))
                holders.add(nodes)
            lacking.append((sum(1 << v for v in without), holders, self.size[p]))
        most = sum(size for _, _, size in lacking)
        for inside, ticks_up, ticks_down, latency in self.cuts:
            if -(-most * ticks_up // ticks_down) + latency <= least:
                continue
            amount = 0
            for wanted, holders, size in lacking:
                if wanted & inside and not all(nodes & inside for nodes in holders):
                    amount += size
            if amount:
                least = max(least, -(-amount * ticks_up // ticks_down) + latency)
        return least

    # the search

    def run(self) -> tuple[int, list[tuple[int, int, list[int], bool]]]:
        n = self.nodes
        has = [0] * (len(self.size) * n)
        for p, origin in enumerate(self.origin):
            if origin >= 0:
                has[p * n + origin] = 1
            else:
                for bit, v in enumerate(self.members[p]):
                    has[p * n + v] = 1 << bit
        later = []
        begun = list(has)
        for index, value in enumerate(begun):
            p, v = divmod(index, n)
            when = self.ready.get((self.collective[p], v), 0)
            if value and (when or self.after[self.collective[p]]):
                has[index] = 0
                if not self.after[self.collective[p]]:
                    later.append((when, p, v, value if self.origin[p] < 0 else -1))
        self.begun = begun
        self.become_ready(has, 0)
        state: State = (tuple(has), tuple(sorted(later)), ())
        order = count()
        # estimate, minus time, tie-break, time, state, next move to decide about, what can be sent now, what is new,
        # and the moves so far
        heap: list[tuple[float, int, int, int, State, int, Any, Any, Any]] = []
        heapq.heappush(heap, (self.left(state), 0, 0, 0, state, 0, self.offers(has, has, []), (), None))
        reached: dict[Any, int] = {}
        while heap:
            if len(heap) > MOST_OPEN * max(self.most_states, 1000):
                raise TooLarge
            estimate, _, _, now, state, at, offers, fresh, trail = heapq.heappop(heap)
            if at == 0:
                key = state, fresh, min(now, self.last_release)  # what is not released yet waits for a moment
                if reached.get(key, now + 1) <= now:
                    continue
                reached[key] = now
                if len(reached) > self.most_states:
                    raise TooLarge
                if self.done(state):
                    return now, self.told(trail)
            for number in range(at, len(self.moves)):
                m = self.moves[number]
                choices = list(self.starts(m, state, offers, now))
                if not choices:
                    continue
                for new, value, adds in choices:  # start it now, in one way or another, or not
                    said = offers | {(m.piece, m.source): self.nested(offers[m.piece, m.source], value)}
                    rest = max(estimate, now + self.left(new))
                    entry = (rest, -now, -next(order), now, new, number + 1, said, fresh, (trail, now, m, adds))
                    heapq.heappush(heap, entry)
                heapq.heappush(heap, (estimate, -now, next(order), now, state, number + 1, offers, fresh, trail))
                break
            else:
                self.advance(heap, reached, -next(order), now, state, trail)
        raise ValueError("there is no schedule")

    def owner(self, p: int, bit: int) -> int:
        return self.origin[p] if self.origin[p] >= 0 else self.members[p][bit.bit_length() - 1]

    def become_ready(self, has: list[int], now: int) -> list[Flight]:
        """Give every rank its own part of what comes after others if it has ended these; as if it arrived."""
        found = []
        for index, value in enumerate(self.begun):
            p, v = divmod(index, self.nodes)
            c = self.collective[p]
            if not value or not self.after[c] or has[index] & (value | self.sent) or now < self.ready.get((c, v), 0):
                continue
            if all(self.ended(has, other, v) for other in self.after[c]):
                has[index] |= value
                found.append((1, p, v, value if self.origin[p] < 0 else -1))
        return found

    def ended(self, has: Sequence[int], collective: int, v: int) -> bool:
        """Whether a rank has all that it wants of a collective."""
        pieces = [p for p, c in enumerate(self.collective) if c == collective and v in self.wanting(p)]
        return all(has[p * self.nodes + v] == self.full[p] for p in pieces if self.origin[p] != v)

    def told(self, trail: Any) -> list[tuple[int, int, list[int], bool]]:
        rows = []
        while trail:
            trail, start, m, adds = trail
            rows.append((start, m.piece, list(m.links), adds))
        return rows[::-1]

    def done(self, state: State) -> bool:
        has, flights, _ = state
        return not flights and all(
            has[p * self.nodes + v] == self.full[p] for p in range(len(self.size)) for v in self.wanting(p)
        )

    def offers(self, before: Sequence[int], after: Sequence[int], fresh: list[Flight]) -> dict[tuple[int, int], Any]:
        """What can be sent from where at this moment, and whether it is new: with or without some of what arrives."""
        found: dict[tuple[int, int], Any] = {}
        arrived: dict[tuple[int, int], list[int]] = {}
        for _, p, v, brings in fresh:
            arrived.setdefault((p, v), []).append(brings)
        for index, value in enumerate(after):
            if (value or before[index]) and not value & self.sent:
                p, v = divmod(index, self.nodes)
                mine = arrived.get((p, v), [])
                values = {value}
                if self.sums:
                    for some in chain.from_iterable(combinations(mine, k) for k in range(len(mine) + 1)):
                        values.add(reduce(lambda a, b, p=p: self.full[p] if b < 0 else a | b, some, before[index]))
                found[p, v] = tuple(sorted(values - {0})), bool(mine)
        return found

    @staticmethod
    def nested(offer: Any, value: int) -> Any:
        values, is_new = offer
        return tuple(x for x in values if x & value in (x, value)), is_new

    def starts(
        self, m: _Move, state: State, offers: dict[tuple[int, int], Any], now: int
    ) -> Iterator[tuple[State, int, bool]]:
        """The states after this move has started now, and what it brings."""
        has, flights, busy = state
        values, is_new = offers.get((m.piece, m.source), ((), False))
        if not values:
            return
        at, full = m.piece * self.nodes, self.full[m.piece]
        if now < self.release[m.piece]:
            return
        if self.to_one and (
            m.source == self.goal[m.piece]
            or len(m.arrives) > 1
            or any(flight[1:3] == (m.piece, m.source) for flight in flights)
        ):
            return  # every rank sends a piece once, over a path, with all that it ever gets
        tight = now == self.release[m.piece] or is_new or m.may_wait or (self.sums and not self.to_one)
        for r, begin, end in m.taken:
            for other, first, last in busy:
                if other == r:
                    if begin < last and first < end:
                        return
                    tight = tight or begin == last
        if not tight:
            return
        for value in values:
            if self.to_one and value != has[at + m.source]:
                continue
            for copies in (False, True) if self.sums else (True,):
                if copies and value != full:
                    continue
                if copies and self.to_one and self.sums:
                    continue
                if self.useless(m, value, copies, has, flights):
                    continue
                brings = -1 if copies else value
                now_has = has
                if self.to_one:  # what a rank has sent is of no more use to it
                    now_has = (*has[: at + m.source], self.sent, *has[at + m.source + 1 :])
                flying = tuple(sorted((*flights, *((when, m.piece, v, brings) for v, when in m.arrives))))
                yield (
                    (now_has, flying, tuple(sorted((*busy, *m.taken)))),
                    value,
                    not copies and self.origin[m.piece] < 0,
                )

    def useless(self, m: _Move, value: int, copies: bool, has: tuple[int, ...], flights: tuple[Flight, ...]) -> bool:
        """Some receiver has it all, or gets it all by then, or would add twice."""
        for v, when in m.arrives:
            there = has[m.piece * self.nodes + v]
            if there == self.full[m.piece] or (not self.sums and any(f[1:3] == (m.piece, v) for f in flights)):
                return True
            if there & self.sent or (not copies and there & value):
                return True
            if not copies and any(f[1:3] == (m.piece, v) and f[3] > 0 and f[3] & value for f in flights):
                return True
            if any(f[1:3] == (m.piece, v) and f[3] < 0 and f[0] <= when for f in flights):
                return True
        return False

    def advance(self, heap: list[Any], reached: dict[Any, int], order: int, now: int, state: State, trail: Any) -> None:
        """One tick on."""
        before, flights, busy = state
        has = list(before)
        arrived = [flight for flight in flights if flight[0] == 1]
        if not flights and now >= self.last_release:
            return  # nothing is under way: whoever waits now waits for ever
        for _, p, v, brings in sorted(arrived, key=lambda flight: flight[3] >= 0):  # copies first
            at = p * self.nodes + v
            if brings < 0:
                has[at] = self.full[p]
            elif has[at] & brings:
                return
            else:
                has[at] |= brings
        arrived += self.become_ready(has, now + 1)
        new: State = (
            tuple(has),
            tuple((when - 1, *rest) for when, *rest in flights if when > 1),  # type: ignore[misc]
            tuple((r, max(0, begin - 1), end - 1) for r, begin, end in busy if end > 0),
        )
        fresh = tuple((p, v, brings, before[p * self.nodes + v]) for _, p, v, brings in arrived)
        rest = self.left(new)
        if reached.get((new, fresh, min(now + 1, self.last_release)), now + 2) > now + 1 and rest < math.inf:
            offers = self.offers(before, has, arrived)
            heapq.heappush(heap, (now + 1 + rest, -now - 1, order, now + 1, new, 0, offers, fresh, trail))


def _common(a: Fraction, b: Fraction) -> Fraction:
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)
