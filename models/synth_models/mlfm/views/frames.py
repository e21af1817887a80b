"""A schedule as an animation: the servers on a circle, and per phase the transfers with their routes."""

from __future__ import annotations

import numpy as np

from synth.views.frames import Frames, circle
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.solution import Phases, table

MOST_TRANSFERS = 500_000  # beyond it no table is made for an animation


def frames(instance: MLFMInstance, solution: Phases) -> Frames | None:
    """Items are routes: the leaves and spines in between. Servers stand in rank order, a colour per leaf."""
    if instance.ranks**2 > MOST_TRANSFERS:
        return None
    rows = table(instance, solution)
    names = [instance.server_name(rank) for rank in range(instance.ranks)]
    number = {name: rank for rank, name in enumerate(names)}
    routes = list(dict.fromkeys(rows["via"].astype(str)))
    place = {route: index for index, route in enumerate(routes)}
    phase = rows["phase"].to_numpy(dtype=np.int64)
    order = np.argsort(phase, kind="stable")
    return Frames(
        positions=circle(instance.ranks),
        names=names,
        step=(phase - phase.min(initial=1) + 1)[order],
        src=np.array([number[name] for name in rows["src"].astype(str)], dtype=np.int64)[order],
        dst=np.array([number[name] for name in rows["dst"].astype(str)], dtype=np.int64)[order],
        item=np.array([place[route] for route in rows["via"].astype(str)], dtype=np.int64)[order],
        items=routes,
        groups=instance.server_leaf.astype(np.int64),
    )
