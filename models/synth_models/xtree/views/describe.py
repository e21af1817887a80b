"""Schedules for people: a text per timestep."""

from __future__ import annotations

import numpy as np

from synth.schedule.quotient import QuotientSchedule
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.solution import Solution

MAX_LINES = 60
LEGEND = "a transfer reads src->dst:origin.chunk, the node the chunk belongs to and its number there"


def describe(instance: XTreeInstance, schedule: Solution) -> str:
    """Per timestep the transfers as ``src->dst:origin.chunk`` (``+`` marks a partial sum that is added)."""
    network, name = instance.topology, instance.topology.name
    if isinstance(schedule, QuotientSchedule):
        whole = schedule.transfers(network.nodes)
        lines = [f"node 0's chunks; {len(schedule.generators)} symmetries carry them to all others: {whole} transfers"]
        return "\n".join([*lines, describe(instance, schedule.part)])
    lines = [LEGEND + ("; + is added to what is there" if schedule.adds.any() else "")]
    ordered = schedule.sorted()
    for step in range(1, schedule.steps + 1):
        now = np.flatnonzero(ordered.step == step)
        shown = []
        for i in now[:MAX_LINES]:
            e, (origin, chunk) = ordered.link[i], divmod(int(ordered.chunk[i]), instance.chunks)
            plus = "+" if ordered.adds[i] else ""
            shown.append(f"{name(network.src[e])}->{name(network.dst[e])}:{plus}{name(origin)}.{chunk}")
        more = f" … {len(now) - MAX_LINES} more" if len(now) > MAX_LINES else ""
        lines.append(f"step {step:>3} ({len(now)} of {network.links} links): {' '.join(shown)}{more}")
        if step == MAX_LINES and schedule.steps > MAX_LINES:
            lines.append(f"… {schedule.steps - MAX_LINES} more timesteps (--csv prints all)")
            break
    return "\n".join(lines)
