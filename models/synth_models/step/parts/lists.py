"""The one list scheduler: of all nodes that could start first, the one of the highest priority does."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from synth_models.step.instance import StepInstance
from synth_models.step.parts.order import followers


def scheduled(instance: StepInstance, long: Sequence[int], priority: Sequence[float]) -> list[int]:
    """The start of every node in picoseconds. Whenever something ends, those that are ready start in falling
    priority, as far as all their places are free; what takes no time goes first, with all that it lets start."""
    count = len(long)
    waits = [len(row) for row in instance.before]
    behind = followers(instance.before)
    start, taken = [0] * count, set[tuple[str, int, str]]()
    parked: dict[tuple[str, int, str], list[tuple[bool, float, int]]] = {}
    ready = [(long[node] > 0, -priority[node], node) for node in range(count) if not waits[node]]
    heapq.heapify(ready)
    running: list[tuple[int, int]] = []
    now = 0

    def ended(node: int) -> None:
        for other in behind[node]:
            waits[other] -= 1
            if not waits[other]:
                heapq.heappush(ready, (long[other] > 0, -priority[other], other))

    while ready or running:
        while ready:
            key = heapq.heappop(ready)
            node = key[2]
            held = next((place for place in instance.places[node] if place in taken), None)
            if held is not None:
                heapq.heappush(parked.setdefault(held, []), key)
                continue
            start[node] = now
            if not long[node]:
                ended(node)
                continue
            taken.update(instance.places[node])
            heapq.heappush(running, (now + long[node], node))
        if not running:
            break
        now = running[0][0]
        while running and running[0][0] == now:
            _, node = heapq.heappop(running)
            taken.difference_update(instance.places[node])
            for key in [key for place in instance.places[node] for key in parked.pop(place, ())]:
                heapq.heappush(ready, key)
            ended(node)
    return start


def tails(instance: StepInstance, long: Sequence[int], order: Sequence[int]) -> list[int]:
    """The longest path from the start of every node to the end; ``order``: each node behind those before it."""
    found = list(long)
    for node in reversed(order):
        for other in instance.before[node]:
            found[other] = max(found[other], long[other] + found[node])
    return found
