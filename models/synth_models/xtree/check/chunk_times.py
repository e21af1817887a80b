"""Verify a lower bound on the seconds in which any number of chunks can be moved. Imports no method.

What is to be moved are ``D = C * chunk_bytes`` bytes of every node; they may be cut into any number ``c`` of equal
chunks. A transfer over link ``e`` then takes ``t_e(c) = latency_e + D / (c * bandwidth_e)`` seconds, at least the least
``t(c)`` of all links. Give a transfer that starts at ``s`` the timestep ``1 + floor(s / t(c))``. Two transfers of a
link, and one that hands on what another brought, start ``t(c)`` apart at least, so they get timesteps in order: this is
a schedule, and it takes ``T(c)`` timesteps at least, the fewest for c chunks. Its last transfer starts at
``(T(c) - 1) t(c)`` or later, so **the time is at least** ``T(c) * t(c)``, on links of any speeds and without barriers.

``T(c)`` has a certificate each (``certificates.py``) for c = 1, 2, … K. For all numbers beyond, with ``r`` timesteps a
chunk that the least degree or the number of links asks for, ``T(c) >= r c``, so the time is at least
``r (c * latency_e + D / bandwidth_e)`` for some link e: at least the least of these at c = K + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from synth.text.untrusted import whole
from synth_models.xtree.instance import XTreeInstance

MOST_COUNTS = 1000
Certified = Callable[[XTreeInstance, float, Mapping[str, Any]], list[str]]


def cut_into(instance: XTreeInstance, chunks: int) -> XTreeInstance:
    """The instance with the same bytes a node in so many chunks. Raises ``ValueError`` where these are too many."""
    raw = instance.model_dump(mode="json")
    return XTreeInstance(**raw | {"chunks": chunks, "chunk_bytes": node_bytes(instance) / chunks})


def node_bytes(instance: XTreeInstance) -> float:
    """Bytes of a node's data (its shard, in a reduction)."""
    return instance.chunks * instance.chunk_bytes


def least_seconds(instance: XTreeInstance, timesteps: Mapping[int, int], every: bool) -> Fraction:
    """The bound in seconds of these fewest timesteps by number of chunks, 1 to K; ``every``: for all numbers."""
    times = [at_count(instance, chunks, steps) for chunks, steps in timesteps.items()]
    return min([*times, beyond(instance, len(timesteps))] if every else times)


def at_count(instance: XTreeInstance, chunks: int, timesteps: int) -> Fraction:
    """Seconds that so many timesteps take at least where a node's data are cut into so many chunks."""
    return timesteps * _transfer(instance, chunks)


def beyond(instance: XTreeInstance, chunks: int) -> Fraction:
    """Seconds that any number above ``chunks`` takes at least."""
    return _per_chunk(instance) * (chunks + 1) * _transfer(instance, chunks + 1)


def _transfer(instance: XTreeInstance, chunks: int) -> Fraction:
    """Seconds of the quickest transfer of a chunk where a node's data are cut into so many."""
    network, size = instance.topology, instance.chunks * Fraction(instance.chunk_bytes)
    links = set(zip(network.latency.tolist(), network.bandwidth.tolist(), strict=True))
    return min(Fraction(latency) + size / (chunks * Fraction(rate)) for latency, rate in links)


def _per_chunk(instance: XTreeInstance) -> Fraction:
    """Timesteps that a chunk of every node takes at least: what enters or leaves a node, and all transfers."""
    network, collective = instance.topology, instance.collective
    nodes = network.nodes
    degrees = [int(network.in_degree.min())] if collective != "reduce_scatter" else []
    degrees += [int(network.out_degree.min())] if collective != "allgather" else []
    into = nodes if collective == "allreduce" else nodes - 1
    phases = 2 if collective == "allreduce" else 1
    return max(Fraction(into, min(degrees)), Fraction(phases * (nodes - 1) * nodes, network.links))


def check_chunk_times(instance: XTreeInstance, stated: Any, certified: Certified) -> list[str]:
    """The faults of ``chunk_times`` of a certificate: ``least_seconds``, ``counts`` (of each number of chunks from 1 on
    its ``timesteps`` and their ``certificate``) and ``beyond``, whether it is stated for all numbers."""
    if not isinstance(stated, Mapping) or not isinstance(counts := stated.get("counts"), list):
        return ["chunk_times: no list of counts"]
    seconds, every = stated.get("least_seconds"), stated.get("beyond")
    if not isinstance(seconds, float) or not isinstance(every, bool) or not 1 <= len(counts) <= MOST_COUNTS:
        return [f"chunk_times: needs least_seconds, beyond and 1 to {MOST_COUNTS} counts"]
    timesteps: dict[int, int] = {}
    try:
        for chunks, one in enumerate(counts, 1):
            if not isinstance(one, Mapping) or not isinstance(one.get("certificate"), Mapping):
                raise ValueError(f"{chunks} chunks: no certificate")
            timesteps[chunks] = whole(one, "timesteps", 0)
            faults = certified(cut_into(instance, chunks), float(timesteps[chunks]), one["certificate"])
            if faults:
                return [f"chunk_times, {chunks} chunks: {fault}" for fault in faults]
        proven = least_seconds(instance, timesteps, every)
        if not seconds <= float(proven):  # nan too
            return [f"chunk_times: {float(proven):.9g} s are proven, not {seconds:.9g} s"]
    except (ValueError, OverflowError) as error:
        return [f"chunk_times: {error}"]
    return []
