"""A schedule as an animation: the ring or grid, and per step the circuits."""

from __future__ import annotations

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.views.frames import Frames, circle
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.solution import Solution, StepCount


def frames(instance: OpTreeInstance, solution: Solution) -> Frames | None:
    """Items are the nodes' data; a circuit is drawn as a chord. None for a plan that only counts its steps."""
    if isinstance(solution, StepCount):
        return None
    nodes = np.arange(instance.nodes, dtype=np.int64)
    order = np.argsort(solution.step, kind="stable")
    return Frames(
        positions=circle(instance.nodes) if instance.grid is None else places(instance),
        names=[str(v) for v in nodes],
        step=solution.step[order].astype(np.int64),
        src=solution.src[order].astype(np.int64),
        dst=solution.dst[order].astype(np.int64),
        item=solution.origin[order].astype(np.int64),
        items=[f"data of {v}" for v in nodes],
        links=links(instance),
        held=np.stack([nodes, nodes], axis=1),
    )


def places(instance: OpTreeInstance) -> FloatArray:
    """A grid in the plane, rows from the top, a third dimension as boards side by side; shape (nodes, 2)."""
    nodes = np.arange(instance.nodes)
    x, y = np.zeros(len(nodes)), np.zeros(len(nodes))
    width = 1.0
    for k, (side, stride, _) in enumerate(reversed(instance.dimensions)):
        place = nodes // stride % side
        if k == 1:
            y -= place
        else:
            x += place * width
            width *= side + 1
    return np.stack([x, y], axis=1)


def links(instance: OpTreeInstance) -> IntArray:
    """Every link once, upwards; shape (links, 2)."""
    rows = [
        (v, to)
        for dimension in instance.dimensions
        for v in range(instance.nodes)
        if (to := dimension.moved(v, 1)) is not None
    ]
    return np.array(rows, dtype=np.int64)
