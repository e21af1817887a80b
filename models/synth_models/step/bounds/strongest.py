"""Method ``bound``: the longest path, and the work of every stream and port between its heads and its tails.

For a place and moments r and q, all nodes on it whose head (longest path before) is at least r and whose tail (after)
is at least q run one at a time: the end is at least r + their work + q. Every r is tried, at most :data:`MOST_HEADS`
of a place, with all q: O(heads * nodes log nodes).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.step.instance import TICKS, StepInstance
from synth_models.step.parts.order import ordered
from synth_models.step.parts.prices import least

MOST_HEADS = 2000


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
    """The best r + work + q of one place, and the nodes inside."""
    head, work, tail = (np.array(rows, dtype=np.int64) for rows in (heads, works, tails))
    by_tail = np.argsort(-tail, kind="stable")
    moments = np.unique(head)
    if len(moments) > MOST_HEADS:
        moments = moments[np.linspace(0, len(moments) - 1, MOST_HEADS).astype(np.int64)]
    best, members = -1, np.zeros(0, dtype=np.int64)
    for moment in moments.tolist():
        inside = by_tail[head[by_tail] >= moment]
        ends = moment + np.cumsum(work[inside]) + tail[inside]
        most = int(ends.argmax())
        if ends[most] > best:
            best, members = int(ends[most]), inside[: most + 1]
    return best, members.tolist()
