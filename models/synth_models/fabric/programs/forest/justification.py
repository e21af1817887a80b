"""A schedule pushed to its end and back to its beginning, which closes gaps that its order left open.

Right- and left-justification (Li and Willis 1992; Valls, Ballestin and Quintanilla, Justification and RCPSP, 2005):
first every transfer, the last to end first, is moved as late as the others allow within the schedule, then, the first
to start first, as early. Neither step makes the schedule longer, but for switches where a route's links differ in
latency and bandwidth, so the better of before and after is for the caller to keep.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.scheduling.list_scheduling import Transfers, timed, waiting_for
from synth_models.fabric.solution import Schedule


def justified(instance: FabricInstance, transfers: Transfers, schedule: Schedule) -> Transfers:
    """The transfers with the priorities of the pushed schedule, to be timed in order."""
    there = _reversed_transfers(transfers, -_ends(instance, transfers, schedule))
    reversed_one = reversed_instance(instance)
    late = timed(reversed_one, there, schedule.ticks_per_s, in_order=True)
    return replace(transfers, priority=-_ends(reversed_one, there, late))


def reversed_instance(instance: FabricInstance) -> FabricInstance:
    """The instance on the machine with all links reversed; for timing only."""
    found = instance.model_copy()
    found.__dict__["machine"] = instance.machine.reversed()
    return found


def _reversed_transfers(transfers: Transfers, priority: IntArray) -> Transfers:
    """Every route from its end to its beginning, and every transfer after those that waited for it; nothing adds."""
    lengths = np.diff(transfers.route_start)
    within = np.arange(len(transfers.link), dtype=np.int64) - np.repeat(transfers.route_start[:-1], lengths)
    link = transfers.link[np.repeat(transfers.route_start[1:], lengths) - 1 - within]
    before_start, before = waiting_for(transfers)
    adds = np.zeros_like(transfers.adds)
    return replace(transfers, adds=adds, priority=priority, link=link, before_start=before_start, before=before)


def _ends(instance: FabricInstance, transfers: Transfers, schedule: Schedule) -> IntArray:
    """Ticks at which the transfers have arrived, roughly (exact where floats are)."""
    net, ticks = instance.machine.network, schedule.ticks_per_s
    first = transfers.route_start[:-1]
    start = schedule.start if schedule.transfers == len(first) else schedule.start[first]
    amount = np.repeat(transfers.piece_bytes[transfers.piece], np.diff(transfers.route_start))
    took = amount / net.bandwidth[transfers.link] * ticks
    latency = net.latency[transfers.link] * ticks
    if instance.switching.mode == "store_and_forward":
        length = np.add.reduceat(took + latency, first)
    else:
        length = np.add.reduceat(latency, first) + np.maximum.reduceat(took, first)
    return start + np.maximum(length, 1).astype(np.int64)
