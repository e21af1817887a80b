"""What a method takes at least that hands all data from rank to rank along a chain through all members.

The latencies of a chain through all members are no less than those of a minimum spanning tree of the members, whose
edges are as long as the quicker of the two routes between their ends (Prim 1957).
"""

from __future__ import annotations

import numpy as np

from synth.graph.shortest_paths import PathTrees
from synth_models.fabric.instance import FabricInstance

CHAINS = {"allgather": 1, "reduce_scatter": 1, "broadcast": 1, "reduce": 1, "allreduce": 2}  # one after the other
ROUNDED = 1 - 1e-9  # floats here are sums of a few thousand latencies


def at_least(instance: FabricInstance, method: str) -> float:
    """Seconds that a method takes at least; 0 where nothing is known of it. Of ``ring`` the latencies of its chains."""
    chains = CHAINS.get(instance.collective, 0) if method == "ring" and instance.collectives is None else 0
    return ROUNDED * chains * chain_latency(instance) if chains else 0.0


def chain_latency(instance: FabricInstance) -> float:
    """Seconds of the least latencies of a chain through all members, infinite where there is none."""
    net, members = instance.machine.network, np.array(instance.members, dtype=np.int64)
    if len(members) < 2:
        return 0.0
    paths = PathTrees(net.nodes, np.asarray(net.src), np.asarray(net.dst))
    apart = paths.distances(np.asarray(net.latency, dtype=np.float64), members)[:, members]
    apart = np.minimum(apart, apart.T)
    found, joined, nearest = 0.0, np.zeros(len(members), dtype=bool), apart[0].copy()
    joined[0] = True
    for _ in range(len(members) - 1):
        member = int(np.argmin(np.where(joined, np.inf, nearest)))
        found += float(nearest[member])
        joined[member] = True
        nearest = np.minimum(nearest, apart[member])
    return found
