"""A step in words: its end, and what its critical path waits for."""

from __future__ import annotations

from synth_models.step.check.durations import taken
from synth_models.step.check.replay import check_step
from synth_models.step.instance import TICKS, Computation, StepInstance
from synth_models.step.solution import Timetable

MOST = 8  # nodes told


def critical(instance: StepInstance, timetable: Timetable) -> list[tuple[int, int]]:
    """Nodes and their durations in picoseconds, back from the last end: each ends when the next starts and the next
    comes after it, or shares a place with it."""
    start = timetable.start.tolist()
    long = [taken(instance, i, how) for i, how in enumerate(timetable.algorithm.tolist())]
    ending: dict[int, list[int]] = {}
    for i, at in enumerate(start):
        ending.setdefault(at + long[i], []).append(i)
    node = max(range(len(start)), key=lambda i: start[i] + long[i])
    way, seen = [node], {node}
    while start[node]:
        places = set(instance.places[node])
        before = [i for i in ending.get(start[node], ()) if i not in seen]
        tied = [i for i in before if i in instance.before[node] or places & set(instance.places[i])]
        if not tied:
            break
        node = tied[0]
        seen.add(node)
        way.append(node)
    return [(i, long[i]) for i in way[::-1]]


def describe(instance: StepInstance, timetable: Timetable) -> str:
    """Exposed communication, the shares of the critical path that compute and communicate, its longest nodes."""
    way = critical(instance, timetable)
    whole = sum(long for _, long in way) or 1
    of = sum(long for i, long in way if isinstance(instance.nodes[i], Computation))
    facts = check_step(instance, timetable).facts
    told = [
        f"exposed communication: {facts['exposed_s'] * 1e3:.6g} ms; "
        f"the busiest of {facts['ranks']} ranks computes {facts['compute_s'] * 1e3:.6g} ms",
        f"critical path: {len(way)} nodes, {whole / TICKS * 1e3:.6g} ms: "
        f"{100 * of / whole:.1f} % computes, {100 * (whole - of) / whole:.1f} % waits for collectives",
    ]
    if begin := int(timetable.start[way[0][0]]):
        told.append(f"  it begins at {begin / TICKS * 1e3:.6g} ms, though nothing holds it")
    for i, long in sorted(way, key=lambda row: -row[1])[:MOST]:
        node = instance.nodes[i]
        verb = "computes" if isinstance(node, Computation) else f"waits for the {node.collective}"
        told.append(f"  {100 * long / whole:.1f} % {verb} {node.name}")
    return "\n".join(told)
