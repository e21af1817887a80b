"""The check of the xtree family: the schedule's replay, its objective and its completion time.

Imports nothing from the methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from synth_models.xtree.instance import XTreeInstance

from synth.family import Verdict
from synth.replay import replay
from synth.schedule import Schedule
from synth.timing import earliest_times


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
    facts["completion_time_s"] = timing.completion
    facts["effective_bandwidth_bytes_per_s"] = volume / timing.completion if timing.completion else None
    return Verdict(float(result.steps), facts)


def check_bound(instance: XTreeInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """Verify a bound on the number of timesteps from its certificate alone.

    ``binding`` names the argument: ``cut`` (with ``inside``, the nodes of one side, and ``crossings``, the chunks
    that must enter or leave it), ``diameter`` (with ``pair``) or ``volume``. All are recounted here.
    """
    network, total = instance.topology, instance.total_chunks
    binding = certificate.get("binding")
    try:
        match binding:
            case "cut":
                inside = np.zeros(network.nodes, dtype=bool)
                inside[np.asarray(certificate["inside"], dtype=int)] = True
                outside = network.nodes - int(inside.sum())
                enters = int(np.sum(~inside[network.src] & inside[network.dst]))
                leaves = int(np.sum(inside[network.src] & ~inside[network.dst]))
                if outside in (0, network.nodes):
                    return ["the cut separates nothing"]
                by_collective = {
                    "allgather": (outside * instance.chunks, enters),  # every outside chunk comes in
                    "reduce_scatter": (outside * instance.chunks, leaves),  # a sum for every outside chunk goes out
                    "allreduce": (total, min(enters, leaves)),  # contributions to every chunk go both ways
                }
                crossings, capacity = by_collective[instance.collective]
                proven = -(-crossings // capacity)
            case "diameter":
                proven = int(network.distances[tuple(certificate["pair"])])
            case "volume":
                phases = 2 if instance.collective == "allreduce" else 1
                proven = -(-phases * (network.nodes - 1) * total // network.links)
            case _:
                return [f"unknown kind of bound {binding!r}"]
    except (KeyError, TypeError, IndexError, ValueError) as error:
        return [f"the bound's certificate cannot be read: {error!r}"]
    return [] if proven >= bound else [f"the {binding} proves {proven} timesteps, not {bound:g}"]
