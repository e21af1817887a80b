"""Verify lower bounds on the number of timesteps from their certificates, in exact arithmetic.

The theorems are stated and proven in ``bounds/timestep_bounds.py`` and ``bounds/relaxation.py``; here they are
recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.network import Network
from synth.text.untrusted import choice, exact_dot, exact_sum, whole, whole_numbers
from synth_models.xtree.check.chunk_times import check_chunk_times
from synth_models.xtree.instance import XTreeInstance

MULTIPLIER = 2**40  # of a row of the relaxation, at most


def check_bound(instance: XTreeInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """Verify a bound on the number of timesteps from its certificate alone.

    ``binding`` names the argument: ``cut`` (with ``inside``, the nodes of one side), ``late arrivals`` (with ``node``,
    ``hops`` and ``side``), ``diameter`` (with ``pair``), ``volume``, or ``relaxation`` (with integer multipliers of an
    infeasible LP). All are recomputed here, exactly. ``chunk_times`` states a bound in seconds beside it
    (``chunk_times.py``), which is verified too.
    """
    if "chunk_times" in certificate:
        faults = check_chunk_times(instance, certificate["chunk_times"], _proven)
        if faults:
            return faults
    return _proven(instance, bound, certificate)


def _proven(instance: XTreeInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """The faults of the bound on timesteps."""
    network, total = instance.topology, instance.total_chunks
    binding = certificate.get("binding")
    try:
        match binding if isinstance(binding, str) else None:
            case "cut":
                proven = _cut(instance, whole_numbers(certificate, "inside", 0, network.nodes - 1))
            case "diameter":
                u, v = whole_numbers(certificate, "pair", 0, network.nodes - 1, (2,))
                proven = int(network.hops_from(int(u))[v])
            case "late arrivals":
                node, hops = whole(certificate, "node", 0, network.nodes - 1), whole(certificate, "hops", 1)
                proven = _late_arrivals(instance, node, hops, choice(certificate, "side", "in", "out"))
            case "volume":
                phases = 2 if instance.collective == "allreduce" else 1
                proven = -(-phases * (network.nodes - 1) * total // network.links)
            case "relaxation":
                if instance.collective == "allreduce":
                    return ["the relaxation is stated for one phase"]
                reversed_network = network if instance.collective == "allgather" else network.reversed()
                proven = refuted_horizon(reversed_network, instance.chunks, certificate) + 1
            case _:
                return [f"unknown kind of bound {binding!r}"]
    except ValueError as error:
        return [f"the bound's certificate cannot be verified: {error}"]
    return [] if proven >= bound else [f"the {binding} proves {proven} timesteps, not {bound:g}"]


def bound_words(instance: XTreeInstance, certificate: Mapping[str, Any]) -> str | None:
    """What a verified certificate proves, in words; None for the relaxation, whose words hold an LP's value."""
    network = instance.topology
    match certificate["binding"]:
        case "cut":
            nodes = sorted(set(whole_numbers(certificate, "inside", 0, network.nodes - 1).tolist()))
            inside = np.isin(np.arange(network.nodes), nodes)
            enters = int(np.sum(~inside[network.src] & inside[network.dst]))
            leaves = int(np.sum(inside[network.src] & ~inside[network.dst]))
            into = instance.collective == "allgather" or (instance.collective == "allreduce" and enters <= leaves)
            crossings = (network.nodes - len(nodes)) * instance.chunks
            crossings = instance.total_chunks if instance.collective == "allreduce" else crossings
            what = f"node {nodes[0]}" if len(nodes) == 1 else f"a set of {len(nodes)} nodes"
            way = f"{enters} links into" if into else f"{leaves} links out of"
            return f"cut: {crossings} chunks must pass the {way} {what}"
        case "late arrivals":
            node, hops = whole(certificate, "node", 0, network.nodes - 1), whole(certificate, "hops", 1)
            into = certificate["side"] == "in"
            away = network.hops_to(node) if into else network.hops_from(node)
            degree = int(np.sum((network.dst if into else network.src) == node))
            chunks = int(np.sum(away >= hops)) * instance.chunks
            chunks = instance.total_chunks if instance.collective == "allreduce" else chunks
            way, end = ("into", "start") if into else ("out of", "end")
            words = f"late arrivals: {chunks} chunks pass the {degree} links {way} node {node}, "
            return words + f"none of them within {hops - 1} timesteps of the {end}"
        case "diameter":
            u, v = whole_numbers(certificate, "pair", 0, network.nodes - 1, (2,)).tolist()
            return f"diameter: node {v} is {network.hops_from(u)[v]} hops from node {u}"
        case "volume":
            phases = 2 if instance.collective == "allreduce" else 1
            transfers = phases * (network.nodes - 1) * instance.total_chunks
            return f"volume: {transfers} transfers over {network.links} links"
    return None


def _cut(instance: XTreeInstance, nodes: IntArray) -> int:
    """Timesteps proven by the links between a node set and the others."""
    network = instance.topology
    inside = np.zeros(network.nodes, dtype=bool)
    inside[nodes] = True
    outside = network.nodes - int(inside.sum())
    if outside in (0, network.nodes):
        raise ValueError("the cut separates nothing")
    enters = int(np.sum(~inside[network.src] & inside[network.dst]))
    leaves = int(np.sum(inside[network.src] & ~inside[network.dst]))
    by_collective = {
        "allgather": (outside * instance.chunks, enters),  # every outside chunk comes in
        "reduce_scatter": (outside * instance.chunks, leaves),  # a sum for every outside chunk goes out
        "allreduce": (instance.total_chunks, min(enters, leaves)),  # contributions to every chunk go both ways
    }
    crossings, capacity = by_collective[instance.collective]
    return -(-crossings // capacity)


def _late_arrivals(instance: XTreeInstance, node: int, hops: int, side: str) -> int:
    """Timesteps proven by the links into (``in``) or out of (``out``) one node, over which some chunks cannot pass in
    the first (last) ``hops - 1`` timesteps, since their nodes of origin (destination) are at least ``hops`` away."""
    network, collective = instance.topology, instance.collective
    if (side, collective) in {("in", "reduce_scatter"), ("out", "allgather")}:
        raise ValueError(f"side {side!r} proves nothing for {collective}")
    away = network.hops_to(node) if side == "in" else network.hops_from(node)
    degree = int(np.sum(network.dst == node) if side == "in" else np.sum(network.src == node))
    far = int(np.sum(away >= hops))
    chunks = far * instance.chunks
    if collective == "allreduce":
        chunks = instance.total_chunks if far else 0
    return hops - 1 + -(-chunks // degree) if chunks else 0


def refuted_horizon(network: Network, chunks: int, certificate: Mapping[str, Any]) -> int:
    """The horizon T that the certificate's multipliers refute for an allgather of ``chunks`` chunks per node; raises
    ``ValueError`` if they do not.

    Restated from the problem, for fractional allgather schedules of T steps averaged over each node's chunks, with
    ``x[r,a,t]`` the share of r's chunks sent over arc a = (u, v) in step t and ``h[r,v,t]`` the share v holds after
    step t: (capacity) C sum_r x <= links of a; (conservation) arrivals plus before equals after, 1 at the end;
    (causality) x[r,a,t] <= h[r,u,t-1]. Nothing is at v before step dist(r, v) or is sent back to r. Multiplying the
    rows by integers (>= 0 for inequalities) and adding them gives one inequality that every schedule satisfies; if
    even the least left side over 0 <= x, h <= 1 exceeds the right side, there is no schedule.

    Exact: no term exceeds 2^62 (``MULTIPLIER`` times 10^5 chunks, or times a node's arcs), sums are unbounded.
    """
    tail, head, links, _ = network.arcs
    n, arcs, horizon = network.nodes, len(tail), whole(certificate, "horizon", 1)
    capacity = whole_numbers(certificate, "capacity", 0, MULTIPLIER, (arcs, horizon))
    conservation = whole_numbers(certificate, "conservation", -MULTIPLIER, MULTIPLIER, (n, n, horizon))
    causality = whole_numbers(certificate, "causality", 0, MULTIPLIER, (n, arcs, horizon))
    distance = network.distances.astype(np.int64)
    step = np.arange(1, horizon + 1)
    right = exact_dot(capacity, np.broadcast_to(links[:, None], capacity.shape))
    least = 0
    for r in range(n):
        q = np.where(np.arange(n)[:, None] == r, 0, conservation[r])  # the root has no row
        p = np.where(tail[:, None] == r, 0, causality[r])  # it may send from the beginning
        right += exact_sum(q[:, -1])
        sends = chunks * capacity + q[head] + p
        possible = (step[None, :] > distance[r][tail][:, None]) & (head[:, None] != r)
        least += exact_sum(np.minimum(sends, 0)[possible])
        departures = np.zeros((n, horizon), dtype=np.int64)
        np.add.at(departures, tail, p)
        holds = q[:, 1:] - q[:, :-1] - departures[:, 1:]  # h[r,v,t] for t = 1..T-1
        possible = (step[None, :-1] >= distance[r][:, None]) & (np.arange(n)[:, None] != r)
        least += exact_sum(np.minimum(holds, 0)[possible])
    if least <= right:
        raise ValueError(f"the multipliers do not refute {horizon} timesteps ({least} <= {right})")
    return horizon
