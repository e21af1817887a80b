"""Replay a schedule from the instance alone: its faults, its objective and its completion time."""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.method import Verdict
from synth.schedule import Schedule
from synth.schedule.quotient import QuotientSchedule
from synth.schedule.replay import replay
from synth.schedule.replay_quotient import replay_quotient
from synth.schedule.timing import completion_of_quotient, earliest_times
from synth_models.xtree.instance import XTreeInstance


def check_schedule(instance: XTreeInstance, schedule: Schedule | QuotientSchedule) -> Verdict:
    """Replay the schedule, or node 0's part of it once its symmetries are verified; the value is its number of
    timesteps, facts are its use of links and its time.

    ``completion_time_s`` is the alpha-beta time on the real links, ``effective_bandwidth`` the bytes every node ends
    (allgather) or begins with (reductions), ``N * C * chunk_bytes``, over that time.
    """
    if isinstance(schedule, QuotientSchedule):
        result = replay_quotient(instance.topology, instance.task, schedule)
    else:
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
    if isinstance(schedule, QuotientSchedule):
        facts["replayed_transfers"] = len(schedule.part)
        completion = completion_of_quotient(instance.topology, instance.task, schedule, instance.chunk_bytes)
    else:
        completion = earliest_times(instance.topology, instance.task, schedule, instance.chunk_bytes).completion
    volume = instance.total_chunks * instance.chunk_bytes
    if 0 < completion < np.inf:
        facts["completion_time_s"] = completion
        facts["effective_bandwidth_bytes_per_s"] = volume / completion
    return Verdict(float(result.steps), facts)
