"""Method ``bound``: the longest path, and the work of every stream and port between its heads and its tails.

For a place and moments r and q, all nodes on it whose head (longest path before) is at least r and whose tail (after)
is at least q run one at a time: the end is at least r + their work + q. The best r and q of a place are found in
O(nodes log nodes).
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from typing import Any

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.step.instance import TICKS, StepInstance
from synth_models.step.parts.order import ordered
from synth_models.step.parts.prices import least


def solve(instance: StepInstance, options: RunOptions) -> Outcome:
    """The better of path and windows."""
    value, words, certificate = strongest(instance)
    return Outcome("finished", bound=value / TICKS, bound_proof=words, certificate=certificate)


def strongest(instance: StepInstance) -> tuple[int, str, dict[str, Any]]:
    """The bound in picoseconds, its proof in words and its certificate."""
    long, work = least(instance), least(instance, busy=True)
    order = ordered(instance.before, [0.0] * len(long))
    head, tail, came = [0] * len(long), [0] * len(long), [-1] * len(long)
    for node in order:
        for other in instance.before[node]:
            if came[node] < 0 or head[other] + long[other] > head[node]:
                head[node], came[node] = head[other] + long[other], other
    for node in reversed(order):
        for other in instance.before[node]:
            tail[other] = max(tail[other], tail[node] + long[node])
    last = max(order, key=lambda node: head[node] + long[node])
    best, path = head[last] + long[last], [last]
    while came[path[-1]] >= 0:
        path.append(came[path[-1]])
    found: tuple[int, str, dict[str, Any]]
    found = best, f"longest path: {len(path)} nodes", {"argument": "path", "nodes": path[::-1]}
    for (kind, rank, name), nodes in _served(instance).items():
        behind = [tail[node] + long[node] - work[node] for node in nodes]
        value, members = _window([head[node] for node in nodes], [work[node] for node in nodes], behind)
        if value > found[0]:
            words = f"{kind} {name} of rank {rank}: work of {len(members)} nodes, and what must come before and after"
            found = value, words, {"argument": "window", "nodes": [nodes[i] for i in members]}
    return found


def _served(instance: StepInstance) -> dict[tuple[str, int, str], list[int]]:
    """The nodes of every stream and port."""
    on: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    for node, places in enumerate(instance.places):
        for place in places:
            on[place].append(node)
    return on


def _window(heads: list[int], works: list[int], tails: list[int]) -> tuple[int, list[int]]:
    """The best r + work + q of one place, and the nodes inside: the end when nodes may be interrupted and whichever of
    those that have come has the longest tail is served (Jackson's preemptive schedule; Carlier 1982)."""
    coming = sorted(range(len(heads)), key=heads.__getitem__)
    left, waiting = list(works), list[tuple[int, int]]()
    now, came, best, critical = 0, 0, -1, 0
    while came < len(coming) or waiting:
        if not waiting:
            now = max(now, heads[coming[came]])
        while came < len(coming) and heads[coming[came]] <= now:
            heapq.heappush(waiting, (-tails[coming[came]], coming[came]))
            came += 1
        node = waiting[0][1]
        until = heads[coming[came]] if came < len(coming) else now + left[node]
        if now + left[node] > until:
            left[node] -= until - now
            now = until
            continue
        heapq.heappop(waiting)
        now += left[node]
        if now + tails[node] > best:
            best, critical = now + tails[node], tails[node]
    inside = [node for node in coming if tails[node] >= critical]
    behind = list(itertools.accumulate(works[node] for node in reversed(inside)))[::-1]
    first = max(range(len(inside)), key=lambda k: heads[inside[k]] + behind[k])
    return best, inside[first:]
