"""The least time of tiny traffic, by a search over all schedules: at most four ranks and six blocks, sent whole.

Written from the statement alone. Ranks are joined by links that take whole ticks: ``per_byte`` for each byte, then
``latency`` until all of it has arrived. Of a block in mode ``any`` a rank has all or nothing. Of a sum it has a set of
contributions, sends all of them at once, and adds what comes; what is complete may also replace what is there. Before
``ready`` a rank has nothing of its own. Something may leave just before something else arrives that is not to go along.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import combinations, count
from typing import NamedTuple

MOST_STATES = 20_000


class TooLarge(Exception):
    """The search was given up."""


class Link(NamedTuple):
    """``per_byte``, ``latency``: ticks."""

    src: int
    dst: int
    per_byte: int
    latency: int


class Block(NamedTuple):
    """``sums``: every holder has a contribution instead of a copy."""

    bytes: int
    holders: frozenset[int]
    sums: bool
    wanters: frozenset[int]


class Flight(NamedTuple):
    """``left``: ticks until it arrives. ``bits``: the contributions that are added there, all of them if ``copy``."""

    left: int
    block: int
    rank: int
    bits: int
    copy: bool


class State(NamedTuple):
    """``has``: contributions, a bit each, of every block at every rank; ``before``: what they were before what has just
    arrived; ``busy``: ticks until each link is free."""

    has: tuple[int, ...]
    before: tuple[int, ...]
    flights: tuple[Flight, ...]
    busy: tuple[int, ...]


def least_ticks(
    ranks: int, links: Sequence[Link], blocks: Sequence[Block], ready: Sequence[int], most_states: int = MOST_STATES,
    below: float = float("inf"),
) -> int | None:  # fmt: skip
    """The least ticks until all is where it is wanted; None where it never is, or not in less than ``below``. Raises
    :class:`TooLarge`."""
    return _Search(ranks, links, blocks, ready, most_states).run(below)


class _Search:
    def __init__(
        self, ranks: int, links: Sequence[Link], blocks: Sequence[Block], ready: Sequence[int], most_states: int
    ) -> None:
        self.ranks, self.links, self.blocks, self.ready, self.most = ranks, links, blocks, ready, most_states
        self.whole = [sum(1 << v for v in block.holders) if block.sums else 1 for block in blocks]
        self.away = [self.distances(block.bytes) for block in blocks]
        self.sides = [frozenset(side) for n in range(1, ranks) for side in combinations(range(ranks), n)]
        alike = [[b for b, other in enumerate(blocks) if other == block] for block in dict.fromkeys(blocks)]
        self.alike = [same for same in alike if len(same) > 1]

    def renamed(self, state: State) -> State:
        """The state with alike blocks in an order that their states alone decide."""
        if not self.alike:
            return state
        n, order = self.ranks, list(range(len(self.blocks)))
        flying: list[list[tuple[int, ...]]] = [[] for _ in order]
        for f in state.flights:
            flying[f.block].append((f.left, f.rank, f.bits, f.copy))
        for same in self.alike:
            rows = sorted(
                same, key=lambda b: (state.has[b * n : b * n + n], state.before[b * n : b * n + n], sorted(flying[b]))
            )
            for place, b in zip(same, rows, strict=True):
                order[place] = b
        place_of = {b: place for place, b in enumerate(order)}
        has = tuple(x for b in order for x in state.has[b * n : b * n + n])
        before = tuple(x for b in order for x in state.before[b * n : b * n + n])
        flights = tuple(sorted(f._replace(block=place_of[f.block]) for f in state.flights))
        return State(has, before, flights, state.busy)

    def into(self, state: State, side: frozenset[int]) -> float:
        """No more than the ticks until all has come into some ranks that is not under way to them: whole blocks, one
        after the other on every link, each as small as the smallest."""
        missing = []
        for b, block in enumerate(self.blocks):
            whole = self.whole[b]
            if all(state.has[b * self.ranks + w] == whole for w in block.wanters & side) or not block.wanters & side:
                continue
            inside = 0
            for v in side:
                inside |= state.has[b * self.ranks + v] | self.own(b, v)
            for f in state.flights:
                inside |= f.bits if f.block == b and f.rank in side else 0
            if inside != whole:
                missing.append(block.bytes)
        if not missing:
            return 0.0
        links = [(busy, link) for busy, link in zip(state.busy, self.links, strict=True)
                 if link.dst in side and link.src not in side]  # fmt: skip
        ends = [busy + k * min(missing) * link.per_byte + link.latency
                for busy, link in links for k in range(1, len(missing) + 1)]  # fmt: skip
        return sorted(ends)[len(missing) - 1] if ends else float("inf")

    def distances(self, size: int) -> list[list[float]]:
        far = [[0.0 if u == v else float("inf") for v in range(self.ranks)] for u in range(self.ranks)]
        for link in self.links:
            far[link.src][link.dst] = min(far[link.src][link.dst], size * link.per_byte + link.latency)
        for w in range(self.ranks):
            for u in range(self.ranks):
                for v in range(self.ranks):
                    far[u][v] = min(far[u][v], far[u][w] + far[w][v])
        return far

    def own(self, block: int, rank: int) -> int:
        """What a rank has of a block from the moment on at which it is ready."""
        if rank not in self.blocks[block].holders:
            return 0
        return 1 << rank if self.blocks[block].sums else 1

    def left(self, state: State, now: int) -> float:
        """No more than the ticks that are left."""
        least = 0.0
        coming = [0.0] * self.ranks
        for b, block in enumerate(self.blocks):
            for w in block.wanters:
                has = state.has[b * self.ranks + w]
                if has == self.whole[b]:
                    continue
                flying = [flight for flight in state.flights if flight.block == b and flight.rank == w]
                if not flying and has | self.own(b, w) != self.whole[b]:
                    coming[w] += block.bytes
                for bit in (1 << v for v in range(self.ranks)):
                    if not self.whole[b] & bit or has & bit:
                        continue
                    there = [self.away[b][v][w] for v in range(self.ranks) if state.has[b * self.ranks + v] & bit]
                    there += [f.left + self.away[b][f.rank][w] for f in state.flights if f.block == b and f.bits & bit]
                    there += [
                        max(0, self.ready[v] - now) + self.away[b][v][w]
                        for v in range(self.ranks)
                        if self.own(b, v) & bit
                    ]
                    least = max(least, min(there, default=float("inf")))
        for w, size in enumerate(coming):
            if size:
                into = [link for link in self.links if link.dst == w]
                rate = sum(1 / link.per_byte for link in into)
                if not rate:
                    return float("inf")
                free = min(busy for busy, link in zip(state.busy, self.links, strict=True) if link.dst == w)
                least = max(least, free + min(link.latency for link in into) + size / rate - 1e-9)
        for side in self.sides:
            least = max(least, self.into(state, side))
        return least

    def done(self, state: State) -> bool:
        return all(
            state.has[b * self.ranks + w] == self.whole[b] for b, block in enumerate(self.blocks) for w in block.wanters
        )

    def sends(self, state: State, e: int) -> Iterator[State]:
        """What may start on a link now."""
        link = self.links[e]
        if state.busy[e]:
            return
        for b, block in enumerate(self.blocks):
            at, to = b * self.ranks + link.src, b * self.ranks + link.dst
            takes = block.bytes * link.per_byte
            when = takes + link.latency
            there = state.has[to]
            onto = [f for f in state.flights if f.block == b and f.rank == link.dst]
            if there == self.whole[b] or any(f.copy and f.left <= when for f in onto):
                continue
            for bits in {state.has[at], state.before[at]} - {0}:
                whole = bits == self.whole[b]
                kinds = ([True] if whole else []) + ([False] if block.sums else [])
                for copy in kinds:
                    if not copy and (there & bits or any(not f.copy and f.bits & bits for f in onto)):
                        continue
                    flights = tuple(sorted((*state.flights, Flight(when, b, link.dst, bits, copy))))
                    busy = (*state.busy[:e], takes, *state.busy[e + 1 :])
                    yield State(state.has, state.before, flights, busy)

    def later(self, state: State, now: int) -> tuple[State, int] | None:
        """The state at the next moment at which something arrives, is free or is ready; None where a contribution
        would be added twice, or nothing happens any more."""
        moments = [flight.left for flight in state.flights] + [busy for busy in state.busy if busy]
        moments += [moment - now for moment in self.ready if moment > now]
        if not moments:
            return None
        step = min(moments)
        has = list(state.has)
        for flight in sorted(state.flights, key=lambda flight: not flight.copy):
            at = flight.block * self.ranks + flight.rank
            if flight.left > step:
                continue
            if flight.copy:
                has[at] = self.whole[flight.block]
            elif has[at] & flight.bits:
                return None
            else:
                has[at] |= flight.bits
        self.become_ready(has, now + step, now)
        flights = tuple(sorted(f._replace(left=f.left - step) for f in state.flights if f.left > step))
        return State(tuple(has), state.has, flights, tuple(max(0, busy - step) for busy in state.busy)), now + step

    def become_ready(self, has: list[int], now: int, before: int) -> None:
        for b in range(len(self.blocks)):
            for v in range(self.ranks):
                if before < self.ready[v] <= now:
                    has[b * self.ranks + v] |= self.own(b, v)

    def run(self, below: float) -> int | None:
        has = [0] * (len(self.blocks) * self.ranks)
        self.become_ready(has, 0, -1)
        state = State(tuple(has), tuple(has), (), (0,) * len(self.links))
        order, last = count(), max(self.ready, default=0)
        heap = [(self.left(state, 0), 0, next(order), 0, state, 0)]
        seen: set[tuple[State, int, int]] = set()
        best: dict[tuple[State, int], int] = {}
        while heap:
            estimate, _, _, now, state, e = heapq.heappop(heap)
            state = self.renamed(state)
            if e == 0:
                key = state, min(now, last)
                if best.get(key, now + 1) <= now:
                    continue
                best[key] = now
                if self.done(state):
                    return now
            elif (state, now, e) in seen:
                continue
            else:
                seen.add((state, now, e))
            if len(best) + len(seen) > self.most:
                raise TooLarge
            if e < len(self.links):
                for new in [state, *self.sends(state, e)]:
                    rest = max(estimate, now + self.left(new, now))
                    if rest < below:
                        heapq.heappush(heap, (rest, -now, -next(order), now, new, e + 1))
                continue
            found = self.later(state, now)
            if found is not None:
                new, then = found
                rest = then + self.left(new, then)
                if rest < below:
                    heapq.heappush(heap, (rest, -then, -next(order), then, new, 0))
        return None
