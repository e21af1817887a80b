"""Replay a schedule from the instance alone: its faults, its objective and its completion time."""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.family import Verdict
from synth.schedule import Schedule
from synth.schedule.replay import replay
from synth.schedule.timing import earliest_times
from synth_models.xtree.instance import XTreeInstance


def check_schedule(instance: XTreeInstance, schedule: Schedule) -> Verdict:
    """Replay the schedule; the value is its number of timesteps, facts are its use of links and its time.

    ``completion_time_s`` is the alpha-beta time on the real links, ``effective_bandwidth`` the bytes every node ends
    (allgather) or begins with (reductions), ``N * C * chunk_bytes``, over that time.
    """
    result = replay(instance.topology, instance.task, schedule)
    faults = list(result.faults)
    if result.fault_count > len(faults):
        faults.append(f"and {result.fault_count - len(faults)} more faults")
    facts: dict[str, Any] = {"timesteps": result.steps, "transfers": result.transfers}
    if faults:
        return Verdict(None, facts, faults)
    facts["redundant_transfers"] = result.redundant
    slots = instance.topology.links * result.steps
    facts["link_use"] = round(result.transfers / slots, 6) if slots else 0.0
    timing = earliest_times(instance.topology, instance.task, schedule, instance.chunk_bytes)
    volume = instance.total_chunks * instance.chunk_bytes
    if 0 < timing.completion < np.inf:
        facts["completion_time_s"] = timing.completion
        facts["effective_bandwidth_bytes_per_s"] = volume / timing.completion
    return Verdict(float(result.steps), facts)
