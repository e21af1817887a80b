"""Verify a lower bound on the end of a step, in whole picoseconds; imports no method.

``argument``:

* ``path``: ``nodes`` that come each after the one before: the sum of what they take at least.
* ``window``: ``nodes`` that all need one ``place`` (stream or port). They cannot start before the least head (longest
  path before), and behind the last of them its tail (longest path after) remains: head + all that they take + tail. A
  port is needed as long as its bytes take; the latency of one node follows its bytes, so it is part of the tail.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from synth.text import untrusted
from synth_models.step.check.durations import at_least
from synth_models.step.instance import TICKS, StepInstance


def check_bound(instance: StepInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """The faults of a bound; none when the certificate proves it."""
    try:
        argument = untrusted.choice(certificate, "argument", "path", "window")
        nodes = untrusted.whole_numbers(certificate, "nodes", 0, len(instance.nodes) - 1).tolist()
        if not nodes or len(set(nodes)) < len(nodes):
            raise ValueError("nodes are none, or one stands twice")
        proven = (_path if argument == "path" else _window)(instance, nodes) / TICKS
        stated = untrusted.number({"bound": bound}, "bound")
    except (ValueError, KeyError, TypeError) as error:
        return [f"the certificate is broken: {error}"]
    return [f"the certificate proves {proven:.17g}, not {stated:.17g}"] if stated > proven else []


def _path(instance: StepInstance, nodes: list[int]) -> int:
    for first, then in itertools.pairwise(nodes):
        if first not in instance.before[then]:
            raise ValueError(f"node {then} does not come after node {first}")
    return sum(at_least(instance, node, busy=False) for node in nodes)


def _window(instance: StepInstance, nodes: list[int]) -> int:
    shared = set(instance.places[nodes[0]]).intersection(*(instance.places[node] for node in nodes))
    if not shared:
        raise ValueError("the nodes share neither stream nor port")
    head, tail, long = _heads_and_tails(instance)
    work = [at_least(instance, node, busy=True) for node in nodes]
    behind = min(tail[node] + long[node] - busy for node, busy in zip(nodes, work, strict=True))
    return min(head[node] for node in nodes) + sum(work) + behind


def _heads_and_tails(instance: StepInstance) -> tuple[list[int], list[int], list[int]]:
    """The longest paths before and behind every node, and what it takes at least."""
    count = len(instance.nodes)
    long = [at_least(instance, node, busy=False) for node in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    waits = [len(row) for row in instance.before]
    for node, row in enumerate(instance.before):
        for other in row:
            after[other].append(node)
    head, order = [0] * count, [node for node in range(count) if not waits[node]]
    for node in order:  # grows while it is read: Kahn's order
        for other in after[node]:
            head[other] = max(head[other], head[node] + long[node])
            waits[other] -= 1
            if not waits[other]:
                order.append(other)
    tail = [0] * count
    for node in reversed(order):
        tail[node] = max((tail[other] + long[other] for other in after[node]), default=0)
    return head, tail, long
