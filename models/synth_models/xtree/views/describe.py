"""Schedules for people: a text per timestep."""

from __future__ import annotations

import numpy as np

from synth.schedule import Schedule
from synth_models.xtree.instance import XTreeInstance

MAX_LINES = 60
LEGEND = "a transfer reads src->dst:origin.chunk, the node the chunk belongs to and its number there"


def describe(instance: XTreeInstance, schedule: Schedule) -> str:
    """Per timestep the transfers as ``src->dst:origin.chunk`` (``+`` marks a partial sum that is added)."""
    network = instance.topology
    lines = [LEGEND + ("; + is added to what is there" if schedule.adds.any() else "")]
    ordered = schedule.sorted()
    for step in range(1, schedule.steps + 1):
        now = np.flatnonzero(ordered.step == step)
        shown = []
        for i in now[:MAX_LINES]:
            e, (origin, chunk) = ordered.link[i], divmod(int(ordered.chunk[i]), instance.chunks)
            plus = "+" if ordered.adds[i] else ""
            shown.append(f"{network.src[e]}->{network.dst[e]}:{plus}{origin}.{chunk}")
        more = f" … {len(now) - MAX_LINES} more" if len(now) > MAX_LINES else ""
        lines.append(f"step {step:>3} ({len(now)} of {network.links} links): {' '.join(shown)}{more}")
        if step == MAX_LINES and schedule.steps > MAX_LINES:
            lines.append(f"… {schedule.steps - MAX_LINES} more timesteps (--csv prints all)")
            break
    return "\n".join(lines)
