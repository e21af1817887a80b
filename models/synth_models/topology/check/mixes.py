"""The time of a mix: each schedule replayed by the check of its own family on the links that the circuits make.

The links are put together here once more, as :class:`synth_models.topology.solution.Topology` numbers them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from synth.errors import InputError
from synth.network.links_table import LinksTable, TableLink
from synth.schedule.on_links import OnLinks
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.solution import Topology


def mixed_time(instance: TopologyInstance, topology: Topology) -> tuple[float | None, dict[str, Any], list[str]]:
    """The weighted sum of the times in seconds, rounded up; the time of each; faults."""
    mix, table = (
        instance.mix or (),
        LinksTable(tuple(map(str, range(instance.nodes))), tuple(_links(instance, topology))),
    )
    if len(topology.schedules) != len(mix):
        return None, {}, [f"there are {len(topology.schedules)} schedules of {len(mix)} collectives"]
    total, times, faults = Fraction(0), list[float](), list[str]()
    for i, (asked, packed) in enumerate(zip(mix, topology.schedules, strict=True)):
        where = f"schedule {i}, {asked.collective} of {asked.bytes} bytes"
        try:
            found = OnLinks.of(table, f"mix-{i}", asked.collective, asked.bytes).replayed(packed)
        except InputError as error:
            faults.append(f"{where}: {error}")
            continue
        faults += [f"{where}: {fault}" for fault in found.faults]
        if found.value is None:
            faults += [] if found.faults else [f"{where}: it has no time"]
            continue
        times.append(found.value)
        total += Fraction(repr(asked.weight)) * Fraction(found.value)
    value = float(total)
    above = value if Fraction(value) >= total else math.nextafter(value, math.inf)
    return (None if faults else above), {"times_s": times}, faults


def _links(instance: TopologyInstance, topology: Topology) -> Iterator[TableLink]:
    own = instance.circuit_bandwidth or instance.bandwidth
    pairs = [(u, v, instance.bandwidth, instance.latency) for u, v in instance.fixed.tolist()]
    for switch, a, b in topology.circuits.tolist():
        u, v = a, b
        if instance.degree is None:
            ports = instance.switches[switch]
            u, v = int(ports.sends[a]), int(ports.receives[b])
        pairs.append((u, v, own, instance.circuit_latency))
    for number, (u, v, rate, delay) in enumerate(pairs):
        for tail, head in ((u, v),) if instance.one_way else ((u, v), (v, u)):
            if tail != head:
                yield TableLink(str(number), tail, head, rate, delay)
