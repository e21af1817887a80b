"""The check of the step family: durations counted again, order, streams and ports; imports no method."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from synth.method import Verdict
from synth_models.step.check.durations import taken
from synth_models.step.instance import TICKS, Computation, StepInstance, size
from synth_models.step.solution import Timetable

SHOWN = 4  # faults of each kind
Span = tuple[int, int, int]  # start, end, node


def check_step(instance: StepInstance, timetable: Timetable) -> Verdict:
    """Check a timetable; the value is the end of the last node in seconds.

    Facts: ranks, nodes, ``compute_s`` of the busiest rank (time in which some stream of it computes) and
    ``exposed_s``: the end less that, the time in which this rank computes nothing."""
    start = timetable.start.tolist()
    end = [
        at + taken(instance, i, how)
        for i, (at, how) in enumerate(zip(start, timetable.algorithm.tolist(), strict=True))
    ]
    names = [node.name for node in instance.nodes]
    early = [
        f"{names[i]} starts at {start[i]} ps, {names[k]} ends at {end[k]}"
        for i, before in enumerate(instance.before)
        for k in before
        if start[i] < end[k]
    ]
    spans: dict[tuple[str, int, str], list[Span]] = defaultdict(list)
    for i, places in enumerate(instance.places):
        for place in places:
            spans[place].append((start[i], end[i], i))
    both = []
    for (kind, rank, name), rows in spans.items():
        last = -1, -1  # end, node
        for at, until, i in sorted(rows):
            if at < last[0]:
                both.append(f"{kind} {name} of rank {rank} serves {names[last[1]]} and {names[i]} at once")
            last = max(last, (until, i))
    last_end = max(end)
    faults = _few(early) + _few(both)
    facts: dict[str, Any] = {"ranks": size(instance), "nodes": len(names)}
    busy = _computing(instance, start, end)
    facts |= {"compute_s": busy / TICKS, "exposed_s": (last_end - busy) / TICKS}
    return Verdict(None if faults else last_end / TICKS, facts, faults)


def _computing(instance: StepInstance, start: list[int], end: list[int]) -> int:
    """How long the busiest rank computes on some stream."""
    of: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for i, node in enumerate(instance.nodes):
        if isinstance(node, Computation):
            of[node.rank].append((start[i], end[i]))
    most = 0
    for rows in of.values():
        total, until = 0, 0
        for at, to in sorted(rows):
            total += max(0, to - max(at, until))
            until = max(until, to)
        most = max(most, total)
    return most


def _few(faults: list[str]) -> list[str]:
    return faults if len(faults) <= SHOWN else [*faults[:SHOWN], f"and {len(faults) - SHOWN} more of this kind"]
