"""A schedule as an animation: the ring, and per step the circuits."""

from __future__ import annotations

import numpy as np

from synth.frames import Frames, circle
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.solution import Solution, StepCount


def frames(instance: OpTreeInstance, solution: Solution) -> Frames | None:
    """Items are the nodes' data; a circuit is drawn as a chord. None for a plan that only counts its steps."""
    if isinstance(solution, StepCount):
        return None
    nodes = np.arange(instance.nodes, dtype=np.int64)
    order = np.argsort(solution.step, kind="stable")
    return Frames(
        positions=circle(instance.nodes),
        names=[str(v) for v in nodes],
        step=solution.step[order].astype(np.int64),
        src=solution.src[order].astype(np.int64),
        dst=solution.dst[order].astype(np.int64),
        item=solution.origin[order].astype(np.int64),
        items=[f"data of {v}" for v in nodes],
        links=np.stack([nodes, (nodes + 1) % instance.nodes], axis=1),
        held=np.stack([nodes, nodes], axis=1),
    )
