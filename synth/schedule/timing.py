"""Completion times of schedules under the alpha-beta model, on links of any speed.

A transfer over link ``e`` takes ``latency[e] + bytes / bandwidth[e]`` seconds and occupies the link for all of them
(as in TACOS). Steps give the order on every link and which arrivals a transfer may build on; nothing else
synchronises, so each transfer starts as soon as its link is free and its chunk has fully arrived. A partial sum is sent
as it was when its transfer started: later addends go into a second buffer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import BoolArray, FloatArray, Int32Array, IntArray
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
    start[order], end[order] = _played(network, collective, schedule, order, duration)
    return Timing(start, end, float(end.max()) if len(end) else 0.0)


def completion_of_quotient(
    network: Network, collective: Collective, schedule: QuotientSchedule, chunk_bytes: float
) -> float:
    """When a schedule that passes :func:`synth.schedule.replay_quotient.replay_quotient` ends, in seconds. Images of a
    transfer start at the same time, so node 0's part shows it, with one lane for all links of an orbit."""
    orbit, part = orbits(network, collective, schedule), schedule.part
    order = np.argsort(part.step, kind="stable")
    duration = network.latency + chunk_bytes / network.bandwidth
    _, end = _played(network, of_node_0(collective), part, order, duration, orbit)
    return float(end.max()) if len(end) else 0.0


def _played(
    network: Network,
    collective: Collective,
    schedule: Schedule,
    order: IntArray,
    duration: FloatArray,
    lane: IntArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """:func:`_run` of the transfers in this order. At the start every owner holds its chunks; in a reduction nobody
    holds a finished one. Links of one ``lane`` carry one transfer at a time (each link its own, if not given)."""
    lane = np.arange(network.links) if lane is None else lane
    held = np.zeros((collective.nodes, collective.chunks), dtype=np.bool_)
    if not collective.reduces:
        held[collective.owner, np.arange(collective.chunks)] = True
    step, link, chunk, adds = schedule.step, schedule.link, schedule.chunk, schedule.adds
    ends = network.src, network.dst
    return _run(*ends, lane, duration, held, step[order], link[order], chunk[order], adds[order])


@jit
def _run(
    src: Int32Array,
    dst: Int32Array,
    lane: IntArray,
    duration: FloatArray,
    copied: BoolArray,
    step: Int32Array,
    link: Int32Array,
    chunk: Int32Array,
    adds: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """Start and end of every transfer, which come in the order of their steps. Changes ``copied``."""
    count = len(step)
    start, end = np.empty(count), np.empty(count)
    available = np.zeros(copied.shape)
    link_free = np.zeros(len(src))
    begin = 0
    while begin < count:
        stop = begin
        while stop < count and step[stop] == step[begin]:
            e = link[stop]
            start[stop] = max(available[src[e], chunk[stop]], link_free[lane[e]])
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
    return start, end
