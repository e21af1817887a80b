"""The one list scheduler: of all nodes that could start first, the one of the highest priority does."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from synth_models.step.instance import StepInstance
from synth_models.step.parts.order import followers


def scheduled(instance: StepInstance, long: Sequence[int], priority: Sequence[float]) -> list[int]:
    """The start of every node in picoseconds. Whenever something ends, those that are ready start in falling
    priority, as far as all their places are free."""
    count = len(long)
    waits = [len(row) for row in instance.before]
    behind = followers(instance.before)
    start, taken = [0] * count, set[tuple[str, int, str]]()
    parked: dict[tuple[str, int, str], list[tuple[float, int]]] = {}
    ready = [(-priority[node], node) for node in range(count) if not waits[node]]
    heapq.heapify(ready)
    running: list[tuple[int, int]] = []
    now = 0
    while ready or running:
        while ready:
            key = heapq.heappop(ready)
            held = next((place for place in instance.places[key[1]] if place in taken), None)
            if held is not None:
                heapq.heappush(parked.setdefault(held, []), key)
                continue
            start[key[1]] = now
            taken.update(instance.places[key[1]])
            heapq.heappush(running, (now + long[key[1]], key[1]))
        now = running[0][0]
        while running and running[0][0] == now:
            _, node = heapq.heappop(running)
            taken.difference_update(instance.places[node])
            for key in [key for place in instance.places[node] for key in parked.pop(place, ())]:
                heapq.heappush(ready, key)
            for other in behind[node]:
                waits[other] -= 1
                if not waits[other]:
                    heapq.heappush(ready, (-priority[other], other))
    return start


def tails(instance: StepInstance, long: Sequence[int], order: Sequence[int]) -> list[int]:
    """The longest path from the start of every node to the end; ``order``: each node behind those before it."""
    found = list(long)
    for node in reversed(order):
        for other in instance.before[node]:
            found[other] = max(found[other], long[other] + found[node])
    return found
