"""A quick lower bound on the completion time, by which the search knows when to stop. It is no bound of the record."""

from __future__ import annotations

import numpy as np

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.references.pull.routing_state import Routing

ROUNDED = 1 - 1e-9


def quick_lower_bound(instance: FabricInstance, routing: Routing) -> float:
    """Seconds that no schedule is below: what must enter, or leave, one member, over all its links at once, after the
    latency of the quickest route in or out. Of an allreduce at least all bytes enter and leave every member: of every
    piece either its contribution leaves and the sum enters, or it forms the sum itself from what enters."""
    machine, blocks = instance.machine, instance.blocks
    net = machine.network
    into, out = np.zeros(machine.nodes), np.zeros(machine.nodes)
    members = list(instance.members)
    for origin, goal, size in zip(blocks.origin.tolist(), blocks.goal.tolist(), blocks.bytes.tolist(), strict=True):
        for ends, end, other in ((into, goal, origin), (out, origin, goal)):
            if end == EVERYONE:
                ends[members] += size
                if other != EVERYONE:
                    ends[other] -= size  # it has it, or needs to send it to nobody
            else:
                ends[end] += size
    latency = np.add.reduceat(net.latency[routing.links], routing.row[:-1]) if len(routing.source) else np.zeros(0)
    best = 0.0
    for ends, side, near in ((into, net.dst, routing.target), (out, net.src, routing.source)):
        rate = np.bincount(side, weights=net.bandwidth, minlength=machine.nodes)
        first = np.full(len(routing.ranks), np.inf)
        np.minimum.at(first, near, latency)
        for place, rank in enumerate(routing.ranks.tolist()):
            if ends[rank] > 0 and rate[rank] > 0:
                best = max(best, first[place] + ends[rank] / rate[rank])
    return float(best) * ROUNDED
