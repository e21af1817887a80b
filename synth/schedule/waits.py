"""What moves wait for: for what brings their piece, for what is added where they start, and for what they say.

A copy waits for the move that first brings its piece to its source, of several the first that can be made. A partial
sum waits for all that is added at its source; where the sums of a piece go round in a circle of ranks, as in an
exchange, for what was stated before it and holds nothing that its target has by then. The copy of a sum leaves a rank
once all is added there.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

Piece = tuple[int, int]  # block and number
Place = tuple[Piece, int]  # a piece at a rank
SHOWN = 8  # moves of a circle that a message names


class Sent(NamedTuple):
    """Moves by their columns; ``after``: what each says that it waits for, None where it says nothing."""

    piece: Sequence[Piece]
    source: Sequence[int]
    target: Sequence[int]
    adds: Sequence[bool]
    after: Sequence[Sequence[int] | None]


class Waits:
    """What every move waits for (``waits``), and an ``order`` of all in which nobody comes before what it waits for.

    ``holder``: of every block the rank that holds it at first, less than 0 where everybody has a contribution.
    ``missing``: the moves that never begin; only without any are the others of use.
    """

    def __init__(self, sent: Sent, holder: Sequence[int]) -> None:
        self.sent, self.holder = sent, holder
        count = len(sent.source)
        self.brought, self.added = defaultdict[Place, list[int]](list), defaultdict[Place, list[int]](list)
        for i in range(count):
            (self.added if sent.adds[i] else self.brought)[sent.piece[i], sent.target[i]].append(i)
        self.came: dict[Place, int] = {}  # the move that first brings a piece to a rank, -1 where it is at first
        for piece in set(sent.piece):
            if holder[piece[0]] >= 0:
                self.came[piece, holder[piece[0]]] = -1
        self.needs: list[Place | None] = []  # where a copy's piece must have come
        self.hard: list[set[int]] = []  # moves that it waits for, all of them
        self._demand()
        self.waits: list[list[int]] = [[] for _ in range(count)]
        self.order: list[int] = []
        self.missing = self._in_order()

    def _demand(self) -> None:
        """What each move needs."""
        sent = self.sent
        exchanged = self._exchanged()
        held: dict[Place, int] = {}  # whose contributions are there by the moves so far, a bit a rank
        brings: dict[int, int] = {}  # the same of every sum that is sent in an exchange
        sums_sent = {(sent.piece[i], sent.source[i]) for i in range(len(sent.source)) if sent.adds[i]}
        for i, after in enumerate(sent.after):
            place = sent.piece[i], sent.source[i]
            here = self.added.get(place, [])
            if sent.adds[i]:
                self.needs.append(None)
                if sent.piece[i] in exchanged:
                    target = sent.piece[i], sent.target[i]
                    there = held.setdefault(target, 1 << sent.target[i])
                    if after is None:
                        after = [k for k in here[: bisect_left(here, i)] if not brings[k] & there]
                    brings[i] = 1 << sent.source[i]
                    for k in after:
                        brings[i] |= brings.get(k, 0)
                    held[target] = there | brings[i]
                self.hard.append(set(here if after is None else after))
                continue
            sums = self.holder[place[0][0]] < 0
            made_here = sums and bool(here) and (place not in sums_sent or not self.brought.get(place))
            self.needs.append(None if made_here else place)
            self.hard.append({*(after or ()), *(here if made_here else ())})

    def _exchanged(self) -> set[Piece]:
        """The pieces whose partial sums go round in a circle of ranks: not all of them can wait for all others."""
        below = defaultdict[Piece, defaultdict[int, set[int]]](lambda: defaultdict(set))
        for piece, adds, source, target in zip(*self.sent[:1], self.sent.adds, *self.sent[1:3], strict=True):
            if adds:
                below[piece][source].add(target)
        return {piece for piece, heads in below.items() if _has_circle(heads)}

    def _in_order(self) -> list[int]:
        """Make ``waits`` and ``order``, of moves that can be made the least number first; returns the others."""
        sent, came, count = self.sent, self.came, len(self.hard)
        open_waits = [len(waits) for waits in self.hard]
        followers, wanted = defaultdict[int, list[int]](list), defaultdict[Place, list[int]](list)
        for i, need in enumerate(self.needs):
            for k in self.hard[i]:
                followers[k].append(i)
            if need is not None and need not in came:
                wanted[need].append(i)
                open_waits[i] += 1
        heap = [i for i in range(count) if not open_waits[i]]
        never = set(range(count))
        while heap:
            i = heapq.heappop(heap)
            never.remove(i)
            self.order.append(i)
            need, place = self.needs[i], (sent.piece[i], sent.target[i])
            self.waits[i] = sorted(self.hard[i] | ({came[need]} - {-1} if need is not None else set()))
            ready = list(followers.get(i, ()))
            if not sent.adds[i] and place not in came:
                came[place] = i
                ready += wanted.pop(place, [])
            for k in ready:
                open_waits[k] -= 1
                if not open_waits[k]:
                    heapq.heappush(heap, k)
        return sorted(never)

    def never_there(self) -> Iterator[tuple[int, Place]]:
        """The moves whose piece comes from nowhere, each with piece and rank."""
        for i in self.missing:
            need = self.needs[i]
            if need is not None and need not in self.came and not self.brought.get(need):
                yield i, need

    def circles(self) -> Iterator[list[int]]:
        """Moves that wait for each other, from each one's to what it waits for."""
        never, seen = set(self.missing), set[int]()
        for first in self.missing:
            walk: list[int] = []
            at: int | None = first
            while at is not None and at not in seen:
                seen.add(at)
                walk.append(at)
                at = self._blocker(at, never)
            if at is not None and at in walk:
                yield walk[walk.index(at) :]

    def _blocker(self, i: int, never: set[int]) -> int | None:
        """A move that this one waits for in vain; None where its piece comes from nowhere."""
        need = self.needs[i]
        if need is not None and need not in self.came:
            return next(iter(self.brought.get(need, ())), None)
        return next((k for k in sorted(self.hard[i]) if k in never), None)


def _has_circle(heads: dict[int, set[int]]) -> bool:
    """Whether the arrows from ranks to their heads close a circle."""
    into = defaultdict[int, int](int)
    for targets in heads.values():
        for target in targets:
            into[target] += 1
    left = [rank for rank in heads if not into[rank]]
    for rank in left:
        for target in heads.get(rank, ()):
            into[target] -= 1
            if not into[target]:
                left.append(target)
    return any(into.values())
