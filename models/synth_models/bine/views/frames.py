"""Messages as an animation: the first job's ranks by group, and per round its messages."""

from __future__ import annotations

import numpy as np

from synth.views.frames import Frames, circle
from synth_models.bine.instance import BineInstance
from synth_models.bine.solution import Messages


def frames(instance: BineInstance, messages: Messages) -> Frames:
    """Ranks stand round their group; a title per round says how many bytes cross between groups."""
    groups, rows = instance.allocations[0], messages.rows_of(0)
    step, src, dst = messages.round[rows], messages.src[rows], messages.dst[rows]
    size = messages.count[rows] * instance.block_bytes(len(groups)) / messages.shares
    over = size * instance.crossings(0, src, dst)
    keys, inverse = np.unique(np.stack([step, src, dst], axis=1), axis=0, return_inverse=True)
    sizes = np.bincount(inverse.ravel(), size, len(keys))
    texts = [f"{bytes_:.10g} bytes" for bytes_ in sizes]
    items = list(dict.fromkeys(texts))
    return Frames(
        positions=_by_group(groups),
        names=[str(rank) for rank in range(len(groups))],
        step=keys[:, 0] + 1,
        src=keys[:, 1],
        dst=keys[:, 2],
        item=np.array([items.index(text) for text in texts], dtype=np.int64),
        items=items,
        groups=np.asarray(groups, dtype=np.int64),
        titles=[
            f"round {r}: {over[step == r].sum():.10g} of {size[step == r].sum():.10g} bytes between groups"
            for r in range(int(step.max(initial=-1)) + 1)
        ],
    )


def _by_group(groups: np.ndarray) -> np.ndarray:
    """Small circles on a large one, shape (ranks, 2)."""
    count = int(groups.max()) + 1
    if count == 1:
        return circle(len(groups))
    centres, places = circle(count), np.zeros((len(groups), 2))
    if count == 2:
        centres = centres[:, ::-1]
    radius = min(0.8, 2.2 / count)
    for g in range(count):
        members = np.flatnonzero(groups == g)
        places[members] = centres[g] * 1.5 + radius * (circle(len(members)) if len(members) > 1 else 0)
    return places
