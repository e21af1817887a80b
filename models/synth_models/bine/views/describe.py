"""Plans for people: a text per round and a drawing of bytes between groups and per round."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from synth_models.bine.check.links import pair_bytes, torus_links
from synth_models.bine.instance import BineInstance
from synth_models.bine.solution import Plan

MAX_JOBS, MAX_MESSAGES = 12, 24


def describe(instance: BineInstance, plan: Plan) -> str:
    """Per job and round: messages, bytes, bytes on global links, and the first messages (``*`` marks global ones)."""
    lines = []
    for j, groups in enumerate(instance.allocations[:MAX_JOBS]):
        rows = plan.rows_of(j)
        step, src, dst = plan.round[rows], plan.src[rows], plan.dst[rows]
        size = plan.count[rows] * instance.block_bytes(len(groups)) / plan.shares
        crossed = instance.crossings(j, src, dst)
        lines.append(f"{instance.job_names[j]}: {len(groups)} ranks in {int(groups.max()) + 1} groups")
        for t in range(int(step.max(initial=-1)) + 1):
            now = np.flatnonzero(step == t)
            shown = [f"{src[i]}->{dst[i]}{'*' if crossed[i] else ''}" for i in now[:MAX_MESSAGES]]
            more = f" … {len(now) - MAX_MESSAGES} more" if len(now) > MAX_MESSAGES else ""
            total, over = size[now].sum(), (size * crossed)[now].sum()
            lines.append(f"  round {t}: {len(now)} rows, {total:g} bytes, {over:g} global: {' '.join(shown)}{more}")
    if len(instance.allocations) > MAX_JOBS:
        lines.append(f"… {len(instance.allocations) - MAX_JOBS} more jobs (--csv prints all)")
    return "\n".join(lines)


def plot(instance: BineInstance, plan: Plan, title: str) -> Figure:
    """Bytes between groups (on a torus: per link) of the first job, and bytes per round, global ones apart."""
    figure = Figure(figsize=(12, 5), layout="constrained")
    figure.suptitle(title)
    left, right = figure.subplots(1, 2)
    groups, rows = instance.allocations[0], plan.rows_of(0)
    step, src, dst = plan.round[rows], plan.src[rows], plan.dst[rows]
    size = plan.count[rows] * instance.block_bytes(len(groups)) / plan.shares
    matrix: Any
    if instance.torus is not None:
        matrix = torus_links(instance.torus, src, dst, size).reshape(2 * len(instance.torus), -1)
        labels = ("rank", "direction: +, − of each dimension")
    else:
        matrix, labels = pair_bytes(instance, 0, src, dst, size), ("to group", "from group")
    image = left.imshow(matrix, cmap="viridis", aspect="auto", interpolation="nearest")
    left.set_xlabel(labels[0])
    left.set_ylabel(labels[1])
    for axis in (left.xaxis, left.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    left.set_title(f"{instance.job_names[0]}: bytes on global links")
    figure.colorbar(image, ax=left, label="bytes")
    rounds = int(step.max(initial=0)) + 1
    crossed = instance.crossings(0, src, dst) > 0
    inside = np.bincount(step[~crossed], size[~crossed], rounds)
    across = np.bincount(step[crossed], size[crossed], rounds)
    right.bar(range(rounds), across, label="between groups")
    right.bar(range(rounds), inside, bottom=across, label="inside groups")
    right.set_xlabel("round")
    right.set_ylabel("bytes sent")
    right.legend()
    return figure
