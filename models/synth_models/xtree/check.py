"""The check of the xtree family: the schedule's replay, its objective and its completion time.

Imports nothing from the methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from synth.family import Verdict
from synth.replay import replay
from synth.schedule import Schedule
from synth.timing import earliest_times
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


def check_bound(instance: XTreeInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """Verify a bound on the number of timesteps from its certificate alone.

    ``binding`` names the argument: ``cut`` (with ``inside``, the nodes of one side), ``late arrivals`` (with ``node``,
    ``hops`` and ``side``), ``diameter`` (with ``pair``), ``volume``, or ``relaxation`` (with integer multipliers of an
    infeasible LP). All are recomputed here, exactly.
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
            case "late arrivals":
                proven = _late_arrivals(
                    instance, int(certificate["node"]), int(certificate["hops"]), certificate["side"]
                )
            case "volume":
                phases = 2 if instance.collective == "allreduce" else 1
                proven = -(-phases * (network.nodes - 1) * total // network.links)
            case "relaxation":
                proven = _refuted_horizon(instance, certificate) + 1
            case _:
                return [f"unknown kind of bound {binding!r}"]
    except (KeyError, TypeError, IndexError, ValueError) as error:
        return [f"the bound's certificate cannot be read: {error!r}"]
    return [] if proven >= bound else [f"the {binding} proves {proven} timesteps, not {bound:g}"]


def _late_arrivals(instance: XTreeInstance, node: int, hops: int, side: str) -> int:
    """Timesteps proven by the links into (``in``) or out of (``out``) one node, over which some chunks cannot pass in
    the first (last) ``hops - 1`` timesteps, since their nodes of origin (destination) are at least ``hops`` away."""
    network, collective = instance.topology, instance.collective
    if hops < 1 or not 0 <= node < network.nodes:
        raise ValueError("no such node or distance")
    if (side, collective) not in {
        ("in", "allgather"), ("out", "reduce_scatter"), ("in", "allreduce"), ("out", "allreduce"),
    }:  # fmt: skip
        raise ValueError(f"side {side!r} proves nothing for {collective}")
    away = network.distances[:, node] if side == "in" else network.distances[node]
    degree = np.sum(network.dst == node) if side == "in" else np.sum(network.src == node)
    far = int(np.sum(away >= hops))
    chunks = far * instance.chunks
    if collective == "allreduce":
        chunks = instance.total_chunks if far else 0
    return hops - 1 + int(-(-chunks // degree)) if chunks else 0


def _refuted_horizon(instance: XTreeInstance, certificate: Mapping[str, Any]) -> int:
    """The horizon T that the certificate's multipliers refute; raises ``ValueError`` if they do not.

    Restated from the problem, for fractional allgather schedules of T steps averaged over each node's chunks, with
    ``x[r,a,t]`` the share of r's chunks sent over arc a = (u, v) in step t and ``h[r,v,t]`` the share v holds after
    step t: (capacity) C sum_r x <= links of a; (conservation) arrivals plus before equals after, 1 at the end;
    (causality) x[r,a,t] <= h[r,u,t-1]. Nothing is at v before step dist(r, v) or is sent back to r. Multiplying the
    rows by integers (>= 0 for inequalities) and adding them gives one inequality that every schedule satisfies; if
    even the least left side over 0 <= x, h <= 1 exceeds the right side, there is no schedule.
    """
    if instance.collective == "allreduce":
        raise ValueError("the relaxation is stated for one phase")
    network = instance.topology if instance.collective == "allgather" else instance.topology.reversed()
    tail, head, links, _ = network.arcs
    n, arcs, horizon = network.nodes, len(tail), int(certificate["horizon"])
    shapes = {"capacity": (arcs, horizon), "conservation": (n, n, horizon), "causality": (n, arcs, horizon)}
    rows = {}
    for name, shape in shapes.items():
        rows[name] = np.asarray(certificate[name])
        if rows[name].shape != shape or rows[name].dtype.kind not in "iu" or np.abs(rows[name]).max() > 2**40:
            raise ValueError(f"{name} is not a whole-number array of shape {shape}")
    capacity, conservation, causality = (rows[name].astype(np.int64) for name in shapes)
    if capacity.min() < 0 or causality.min() < 0:
        raise ValueError("a multiplier of an inequality is negative")
    distance = network.distances.astype(np.int64)
    step = np.arange(1, horizon + 1)
    right = int(np.sum(capacity * links[:, None]))
    least = 0
    for r in range(n):
        q = np.where(np.arange(n)[:, None] == r, 0, conservation[r])  # the root has no row
        p = np.where(tail[:, None] == r, 0, causality[r])  # it may send from the beginning
        right += int(q[:, -1].sum())
        sends = instance.chunks * capacity + q[head] + p
        possible = (step[None, :] > distance[r][tail][:, None]) & (head[:, None] != r)
        least += int(np.minimum(sends, 0)[possible].sum())
        departures = np.zeros((n, horizon), dtype=np.int64)
        np.add.at(departures, tail, p)
        holds = q[:, 1:] - q[:, :-1] - departures[:, 1:]  # h[r,v,t] for t = 1..T-1
        possible = (step[None, :-1] >= distance[r][:, None]) & (np.arange(n)[:, None] != r)
        least += int(np.minimum(holds, 0)[possible].sum())
    if least <= right:
        raise ValueError(f"the multipliers do not refute {horizon} timesteps ({least} <= {right})")
    return horizon
