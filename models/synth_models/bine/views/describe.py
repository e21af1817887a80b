"""Solutions of the bine family as text: per round its messages and bytes."""

from __future__ import annotations

import numpy as np

from synth.text.quantities import BYTES, shown
from synth_models.bine.instance import BineInstance
from synth_models.bine.solution import Messages

MAX_JOBS, MAX_MESSAGES = 12, 24


def describe(instance: BineInstance, messages: Messages) -> str:
    """Per job and round: messages, bytes, bytes on global links, and the first messages (``*`` marks global ones)."""
    lines = []
    for j, groups in enumerate(instance.allocations[:MAX_JOBS]):
        rows = messages.rows_of(j)
        step, src, dst = messages.round[rows], messages.src[rows], messages.dst[rows]
        size = messages.count[rows] * instance.block_bytes(len(groups)) / messages.shares
        crossed = instance.crossings(j, src, dst)
        lines.append(f"{instance.job_names[j]}: {len(groups)} ranks in {int(groups.max()) + 1} groups")
        for t in range(int(step.max(initial=-1)) + 1):
            now = np.flatnonzero(step == t)
            first = [f"{src[i]}->{dst[i]}{'*' if crossed[i] else ''}" for i in now[:MAX_MESSAGES]]
            more = f" … {len(now) - MAX_MESSAGES} more" if len(now) > MAX_MESSAGES else ""
            total, over = (shown(part[now].sum(), BYTES) for part in (size, size * crossed))
            lines.append(f"  round {t}: {len(now)} rows, {total}, {over} global: {' '.join(first)}{more}")
    if len(instance.allocations) > MAX_JOBS:
        lines.append(f"… {len(instance.allocations) - MAX_JOBS} more jobs (--csv prints all)")
    return "\n".join(lines)
