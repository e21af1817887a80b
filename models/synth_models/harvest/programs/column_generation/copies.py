"""Intervals whose patterns fall apart into copies of a smaller one, on fewer GPUs.

Shifts by 128, 256 and 512 of 1,024 GPUs, say, join each GPU to seven others only. A topology for these eight serves all
GPUs, once for each copy. So it is sought for one copy, with the copy's own renumberings: few GPUs leave room for
topologies of little symmetry.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from synth.arrays import IntArray
from synth.instance import parse
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.programs.column_generation.lifts import Lift

NEVER_CHANGED = 1e3  # seconds of a change, so that one topology is sought


def copies(patterns: Sequence[IntArray], lift: Lift) -> IntArray | None:
    """The GPUs of every part that patterns (pairs, 3) do not join to others, shape (parts, GPUs of a part), each in the
    order in which the lift's renumberings lead the first part there; None where there is one part. The lift leads from
    every GPU to every other."""
    src, dst = np.concatenate(patterns)[:, :2].T
    graph = csr_array((np.ones(len(src)), (src, dst)), shape=(lift.gpus, lift.gpus))
    count, part = connected_components(graph, directed=False)
    if count == 1:
        return None
    first = np.flatnonzero(part == part[lift.sources[0]])
    leads = lift.moved[lift.by[np.unique(part, return_index=True)[1]]]
    found: IntArray = leads[:, first]
    return found


def one_copy(instance: HarvestInstance, first: int, last: int, gpus: IntArray) -> HarvestInstance:
    """Steps ``first`` to ``last`` among these GPUs alone, on one topology."""
    place = np.full(instance.gpus, -1, dtype=np.int64)
    place[gpus] = np.arange(len(gpus))
    steps = []
    for step in range(first, last + 1):
        rows = instance.demands[step]
        rows = rows[place[rows[:, 0]] >= 0]
        ends = place[rows[:, :2]].tolist()
        steps.append({"bytes": instance.steps[step].bytes, "pairs": ends, "volumes": rows[:, 2].tolist()})
    stated = {
        "format": "synth-instance/1",
        "family": "harvest",
        "name": "copy",
        "source": "steps of another instance",
        "gpus": len(gpus),
        "ports": instance.ports,
        "port_bandwidth": instance.port_bandwidth,
        "alpha": instance.alpha,
        "delta": instance.delta,
        "latency": instance.latency,
        "reconfiguration_delay": NEVER_CHANGED,
        "steps": steps,
    }
    return parse(stated, HarvestInstance, "copy")


def in_all_copies(links: IntArray, parts: IntArray) -> IntArray:
    """A topology (source, destination, parallel links) of the first part's GPUs, in every part."""
    ends = parts[:, links[:, :2]]  # (parts, links, 2)
    count = np.broadcast_to(links[:, 2], ends.shape[:2])
    found: IntArray = np.concatenate([ends, count[..., None]], axis=2).reshape(-1, 3)
    return found[np.lexsort((found[:, 1], found[:, 0]))]
