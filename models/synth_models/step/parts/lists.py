"""The one list scheduler: of all nodes that could start first, the one of the highest priority does."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from synth_models.step.instance import StepInstance
from synth_models.step.parts.order import followers


@dataclass
class _Ready:
    """What could start now, by priority. ``waits``: how many each node still waits for; keys: what takes no time first,
    then falling priority, then the number."""

    behind: list[list[int]]
    waits: list[int]
    long: Sequence[int]
    priority: Sequence[float]
    keys: list[tuple[bool, float, int]]

    def ended(self, node: int) -> None:
        """Let those start that waited for this node last."""
        for other in self.behind[node]:
            self.waits[other] -= 1
            if not self.waits[other]:
                self.add(other)

    def add(self, node: int) -> None:
        heapq.heappush(self.keys, (self.long[node] > 0, -self.priority[node], node))


@dataclass(frozen=True)
class _Backwards:
    """A step that runs from its end to its beginning."""

    before: Sequence[Sequence[int]]
    places: Sequence[Sequence[tuple[str, int, str]]]


def from_the_end(instance: StepInstance, long: Sequence[int], priority: Sequence[float]) -> list[int]:
    """The start of every node, all placed from the end to the beginning as :func:`scheduled` does the other way
    round: what lies near the end early there, so what has a long path behind it as late as it may be."""
    start = scheduled(_Backwards(followers(instance.before), instance.places), long, priority)
    last = max(at + duration for at, duration in zip(start, long, strict=True))
    return [last - at - duration for at, duration in zip(start, long, strict=True)]


def scheduled(instance: StepInstance | _Backwards, long: Sequence[int], priority: Sequence[float]) -> list[int]:
    """The start of every node in picoseconds. Whenever something ends, those that are ready start in falling
    priority, as far as all their places are free; what takes no time goes first, with all that it lets start."""
    ready = _Ready(followers(instance.before), [len(row) for row in instance.before], long, priority, [])
    start, taken = [0] * len(long), set[tuple[str, int, str]]()
    parked: dict[tuple[str, int, str], list[tuple[bool, float, int]]] = {}
    running: list[tuple[int, int]] = []
    now = 0
    for node in [node for node, many in enumerate(ready.waits) if not many]:
        ready.add(node)
    while ready.keys or running:
        while ready.keys:
            key = heapq.heappop(ready.keys)
            node = key[2]
            held = next((place for place in instance.places[node] if place in taken), None)
            if held is not None:
                heapq.heappush(parked.setdefault(held, []), key)
                continue
            start[node] = now
            if long[node]:
                taken.update(instance.places[node])
                heapq.heappush(running, (now + long[node], node))
            else:
                ready.ended(node)
        now = running[0][0] if running else now
        while running and running[0][0] == now:
            _, node = heapq.heappop(running)
            taken.difference_update(instance.places[node])
            for place in instance.places[node]:
                for key in parked.pop(place, ()):
                    heapq.heappush(ready.keys, key)
            ready.ended(node)
    return start


def tails(instance: StepInstance, long: Sequence[int], order: Sequence[int]) -> list[int]:
    """The longest path from the start of every node to the end; ``order``: each node behind those before it."""
    found = list(long)
    for node in reversed(order):
        for other in instance.before[node]:
            found[other] = max(found[other], long[other] + found[node])
    return found
