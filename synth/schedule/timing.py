"""Completion times of schedules under the alpha-beta model, on links of any speed.

A transfer over link ``e`` takes ``latency[e] + bytes / bandwidth[e]`` seconds and occupies the link for all of them
(as in TACOS). Steps give the order on every link and which arrivals a transfer may build on; nothing else
synchronises, so each transfer starts as soon as its link is free and its chunk has fully arrived. A partial sum is sent
as it was when its transfer started: later addends go into a second buffer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synth.arrays import FloatArray
from synth.kernels import jit
from synth.network import Network
from synth.schedule.collective import Collective
from synth.schedule.quotient import QuotientSchedule
from synth.schedule.replay_quotient import of_node_0, orbits
from synth.schedule.schedule import Schedule


@dataclass(frozen=True)
class Timing:
    """Start and end of every transfer in seconds, shape (transfers,), and the time at which the last one ends."""

    start: FloatArray
    end: FloatArray
    completion: float


def earliest_times(network: Network, collective: Collective, schedule: Schedule, chunk_bytes: float) -> Timing:
    """The as-soon-as-possible times of a schedule that passes :func:`synth.schedule.replay.replay`."""
    order = np.argsort(schedule.step, kind="stable")
    start, end = np.empty(len(schedule)), np.empty(len(schedule))
    duration = network.latency + chunk_bytes / network.bandwidth
    start[order], end[order], _, _ = _played(network, collective, schedule, order, duration, np.empty(0))
    return Timing(start, end, float(end.max()) if len(end) else 0.0)


def completion_of_quotient(
    network: Network, collective: Collective, schedule: QuotientSchedule, chunk_bytes: float
) -> float:
    """When a schedule that passes :func:`synth.schedule.replay_quotient.replay_quotient` ends, in seconds. Images of a
    transfer start at the same time, so node 0's part shows it, with one lane for all links of an orbit."""
    orbit, part = orbits(network, collective, schedule), schedule.part
    order = np.argsort(part.step, kind="stable")
    duration = network.latency + chunk_bytes / network.bandwidth
    _, end, _, _ = _played(network, of_node_0(collective), part, order, duration, np.empty(0), orbit)
    return float(end.max()) if len(end) else 0.0


def timed_faults(
    network: Network, collective: Collective, schedule: Schedule, chunk_bytes: float, start: FloatArray
) -> list[str]:
    """What is wrong with given start times (shape (transfers,), seconds): chunks sent before they have fully arrived
    and links that would carry two chunks at once. Ties within one part in 10^9 are allowed."""
    start = np.asarray(start, dtype=float)
    if start.shape != schedule.step.shape:
        raise ValueError("one start time per transfer")
    order = np.argsort(schedule.step, kind="stable")
    duration = network.latency + chunk_bytes / network.bandwidth
    _, _, ready, free = _played(network, collective, schedule, order, duration, start[order])
    faults = []
    for place, i in enumerate(order):
        slack = 1e-9 * max(abs(start[i]), float(duration.max()))
        where = (
            f"step {schedule.step[i]}, link {schedule.link[i]}: chunk {schedule.chunk[i]} starts at {start[i]:.9g} s"
        )
        if not np.isfinite(start[i]):
            faults.append(f"{where}, which is no time")
            continue
        if not start[i] >= ready[place] - slack:
            faults.append(f"{where} but has fully arrived only at {ready[place]:.9g} s")
        if not start[i] >= free[place] - slack:
            faults.append(f"{where} but the link is busy until {free[place]:.9g} s")
    return faults


def _played(
    network: Network,
    collective: Collective,
    schedule: Schedule,
    order: Any,
    duration: FloatArray,
    given: FloatArray,
    lane: Any = None,
) -> Any:
    """:func:`_run` of the transfers in this order. At the start every owner holds its chunks; in a reduction nobody
    holds a finished one. Links of one ``lane`` carry one transfer at a time (each link its own, if not given)."""
    lane = np.arange(network.links) if lane is None else lane
    held = np.zeros((collective.nodes, collective.chunks), dtype=np.bool_)
    if not collective.reduces:
        held[collective.owner, np.arange(collective.chunks)] = True
    columns = (column[order] for column in (schedule.step, schedule.link, schedule.chunk, schedule.adds))
    return _run(network.src, network.dst, lane, duration, held, given, *columns)


@jit
def _run(
    src: Any, dst: Any, lane: Any, duration: Any, copied: Any, given: Any, step: Any, link: Any, chunk: Any, adds: Any
) -> Any:
    """Times in step order; with ``given`` start times, what each transfer had to wait for instead."""
    count = len(step)
    start, end = np.empty(count), np.empty(count)
    ready, free = np.empty(count), np.empty(count)
    available = np.zeros(copied.shape)
    link_free = np.zeros(len(src))
    begin = 0
    while begin < count:
        stop = begin
        while stop < count and step[stop] == step[begin]:
            e = link[stop]
            ready[stop], free[stop] = available[src[e], chunk[stop]], link_free[lane[e]]
            start[stop] = given[stop] if len(given) else max(ready[stop], free[stop])
            end[stop] = start[stop] + duration[e]
            link_free[lane[e]] = end[stop]
            stop += 1
        for i in range(begin, stop):
            v, k = dst[link[i]], chunk[i]
            if adds[i]:
                available[v, k] = max(available[v, k], end[i])
            elif copied[v, k]:
                available[v, k] = min(available[v, k], end[i])
            else:
                available[v, k], copied[v, k] = end[i], True
        begin = stop
    return start, end, ready, free
