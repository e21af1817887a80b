"""An instance on a machine like its own whose links are faster and slower at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from synth.network import Network
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.range_faults import LEAST_BANDWIDTH, MOST_BANDWIDTH, MOST_LATENCY


def varied(instance: FabricInstance, bandwidth: float, latency: float, seed: int) -> FabricInstance:
    """The instance with every link's bandwidth and latency times a factor of its own, even between 1 - ``bandwidth``
    and 1 + ``bandwidth``, 1 - ``latency`` and 1 + ``latency``; both directions between two nodes have the same
    factors, and so have parallel links. All else, names and boxes included, stays. It lives in memory alone: its file
    would be that of the instance it was made from."""
    rng = np.random.default_rng(seed)
    machine = instance.machine
    old = machine.network
    ends = np.sort(np.stack([old.src, old.dst], axis=1), axis=1)
    pairs, which = np.unique(ends, axis=0, return_inverse=True)
    factors = 1 + np.array([[bandwidth], [latency]]) * rng.uniform(-1, 1, (2, len(pairs)))
    rates, waits = factors[:, which.reshape(-1)]
    network = Network(
        old.nodes,
        np.stack([old.src, old.dst], axis=1),
        np.clip(old.bandwidth * rates, LEAST_BANDWIDTH, MOST_BANDWIDTH),
        np.clip(old.latency * waits, 0.0, MOST_LATENCY),
        kind=old.kind,
        grid=old.grid,
    ).shown_as(old.names, old.positions)
    copy = instance.model_copy()
    for name in set(vars(copy)) - set(type(instance).model_fields):  # what was computed of the other machine
        del vars(copy)[name]
    vars(copy)["machine"] = replace(machine, network=network)
    return copy
