"""A topology for a page: fixed links, and circuits as moves of one step."""

from __future__ import annotations

import numpy as np

from synth.views.frames import Frames, circle
from synth_models.topology.instance import Cubes, TopologyInstance
from synth_models.topology.solution import Topology, joined


def frames(instance: TopologyInstance, topology: Topology) -> Frames:
    """One step, in which every circuit is a move; nodes of a cube have one colour."""
    ends, n = joined(instance, topology.circuits), instance.nodes
    many = len(ends)
    cube = (
        np.arange(n) // (n // instance.plant.cubes)
        if isinstance(instance.plant, Cubes)
        else np.zeros(0, dtype=np.int64)
    )
    return Frames(
        positions=circle(n),
        names=[str(node) for node in range(n)],
        step=np.ones(many, dtype=np.int64),
        src=ends[:, 0],
        dst=ends[:, 1],
        item=np.full(many, -1, dtype=np.int64),
        links=instance.fixed,
        titles=[f"{many} circuits"],
        groups=cube,
    )
