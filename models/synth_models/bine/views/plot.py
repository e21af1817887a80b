"""Solutions of the bine family as drawings: bytes between groups and per round."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from synth.text.quantities import BYTES, scaled
from synth.views.figure_style import legend_below, panels
from synth.views.occupancy import folded
from synth_models.bine.check.links import pair_bytes, torus_links
from synth_models.bine.instance import BineInstance
from synth_models.bine.solution import Messages


def plot(instance: BineInstance, messages: Messages, title: str) -> Figure:
    """Bytes between groups (on a torus: per link) of the first job, and bytes per round, global ones apart."""
    figure = Figure(figsize=(12, 5), layout="constrained")
    figure.suptitle(title)
    left, right = panels(figure, 2)
    groups, rows = instance.allocations[0], messages.rows_of(0)
    step, src, dst = messages.round[rows], messages.src[rows], messages.dst[rows]
    size = messages.count[rows] * instance.block_bytes(len(groups)) / messages.shares
    matrix: Any
    if instance.torus is not None:
        matrix = torus_links(instance.torus, src, dst, size).reshape(2 * len(instance.torus), -1)
        labels = ("rank", "direction: +, − of each dimension")
    else:
        matrix, labels = pair_bytes(instance, 0, src, dst, size), ("to group", "from group")
    scale, unit = scaled(BYTES, float(np.max(matrix)))
    extent = (-0.5, matrix.shape[1] - 0.5, matrix.shape[0] - 0.5, -0.5)
    image = left.imshow(folded(matrix / scale), cmap="viridis", aspect="auto", interpolation="nearest", extent=extent)
    left.set_xlabel(labels[0])
    left.set_ylabel(labels[1])
    for axis in (left.xaxis, left.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    left.set_title(f"{instance.job_names[0]}: bytes on global links")
    figure.colorbar(image, ax=left, label=unit)
    rounds = int(step.max(initial=0)) + 1
    crossed = instance.crossings(0, src, dst) > 0
    inside = np.bincount(step[~crossed], size[~crossed], rounds)
    across = np.bincount(step[crossed], size[crossed], rounds)
    scale, unit = scaled(BYTES, float(np.max(across + inside)))
    bars = [
        right.bar(range(rounds), across / scale, label="between groups"),
        right.bar(range(rounds), inside / scale, bottom=across / scale, label="inside groups", hatch="//", alpha=0.7),
    ]
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.set_xlabel("round")
    right.set_ylabel(f"sent, {unit}")
    legend_below(figure, bars)
    return figure
