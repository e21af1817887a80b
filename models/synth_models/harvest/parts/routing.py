"""Schedules from the topologies chosen for the steps: routes every step at the hop limit that suits its bytes best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.flows.flow_rows import FlowRows, Profile
from synth_models.harvest.parts.flows.profiles import profile, routes, step_time
from synth_models.harvest.parts.topologies import Topology
from synth_models.harvest.solution import Schedule

MAX_ROWS = 20_000_000


def route_steps(
    instance: HarvestInstance, chosen: Sequence[Topology], known: Sequence[Profile | None] | None = None
) -> Schedule:
    """The schedule that runs step i on ``chosen[i]``; ``known[i]`` is its profile where there is one already.

    Raises :class:`UnsupportedError` when a step cannot run on its topology or the flows are too many to write down.
    """
    numbers: dict[bytes, int] = {}
    kept: list[IntArray] = []
    parts: list[FlowRows] = []
    flows: dict[tuple[bytes, bytes, int], FlowRows] = {}
    rows = 0
    for i, topology in enumerate(chosen):
        found = known[i] if known is not None else None
        if found is None:
            found = profile(instance.demands[i], topology.links, instance.gpus)
        _, hops = step_time(instance, i, found)
        if hops == 0:
            raise UnsupportedError(f"step {i} has a pair that cannot be reached on {topology.name}")
        rows += len(instance.demands[i])
        if rows > MAX_ROWS:
            raise UnsupportedError(f"more than {MAX_ROWS} flow rows")
        key = (instance.demands[i].tobytes(), topology.key(), hops)
        if key not in flows:
            flows[key] = routes(instance.demands[i], topology.links, instance.gpus, hops)
        rows += len(flows[key].share) - len(instance.demands[i])
        parts.append(flows[key])
        if numbers.setdefault(topology.key(), len(kept)) == len(kept):
            kept.append(topology.links)
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ("pair", "hop", "src", "dst", "share")
    }
    return Schedule(
        tuple(kept),
        np.array([numbers[topology.key()] for topology in chosen], dtype=np.int64),
        np.cumsum([0, *(len(part.share) for part in parts)], dtype=np.int64),
        **columns,
    )
