"""A schedule drawn: the time of every step, split by cause, above the topologies in the order of their use."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from synth.arrays import IntArray
from synth.text.quantities import SECONDS, scaled
from synth.views.figure_style import current, legend_below
from synth_models.harvest.check.changes import changes_of
from synth_models.harvest.check.replay import StepTimes, step_times
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.solution import Schedule
from synth_models.harvest.views.describe import shape_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_DRAWN = 8
NARROW_COLUMNS = 2  # of topologies
_COLOURS = {"reconfiguration": "#ee6677", "alpha": "#4477aa", "hops": "#66ccee", "bytes": "#228833"}
_HATCHES = {"reconfiguration": "xx", "alpha": "", "hops": "..", "bytes": "//"}  # apart in grey too
_ARROW = {
    "arrowstyle": "-|>",
    "color": "#555555",
    "mutation_scale": 6,
    "connectionstyle": "arc3,rad=0.08",
    "shrinkA": 2,
    "shrinkB": 2,
}


def plot(instance: HarvestInstance, schedule: Schedule, title: str) -> Figure:
    """Above: the time of every step, split. Below: the topologies in the order of use, GPUs on a circle."""
    starts = [0, *np.flatnonzero(changes_of(instance, schedule).differ).tolist()]
    drawn = list(pairwise([*starts, len(instance.steps)]))[:MAX_DRAWN]
    columns = min(len(drawn), NARROW_COLUMNS) if current().narrow else len(drawn)
    rows = -(-len(drawn) // columns)
    figure = Figure(figsize=(12, 7.5) if rows == 1 else (12, 6 + 5 * rows), layout="constrained")
    more = f"; {len(starts) - MAX_DRAWN} more topologies not drawn" if len(starts) > MAX_DRAWN else ""
    figure.suptitle(f"{title}{more}")
    grid = figure.add_gridspec(1 + rows, columns, height_ratios=(1.1, *[1] * rows))
    _bars(figure, figure.add_subplot(grid[0, :]), step_times(instance, schedule))
    for place, (first, end) in enumerate(drawn):
        axes = figure.add_subplot(grid[1 + place // columns, place % columns])
        links = schedule.topologies[schedule.topology_of_step[first]]
        _circle(axes, links, instance.gpus)
        steps = f"step {first}" if end - first == 1 else f"steps {first}–{end - 1}"
        axes.set_title(f"{steps}: {shape_of(links, instance.gpus)}", fontsize=8)
    return figure


def _bars(figure: Figure, axes: Axes, times: StepTimes) -> None:
    parts = (times.reconfiguration, times.alpha, times.delta, times.bandwidth)
    size, unit = scaled(SECONDS, float(np.max(sum(parts))))
    bottom = np.zeros(len(times.alpha))
    for (name, colour), part in zip(_COLOURS.items(), parts, strict=True):
        axes.bar(np.arange(len(bottom)), part / size, bottom=bottom, label=name, color=colour, hatch=_HATCHES[name],
                 edgecolor="white", linewidth=0.3)  # fmt: skip
        bottom += part / size
    axes.set_xlabel("step")
    axes.set_ylabel(f"time ({unit})")
    axes.set_xticks(range(0, len(bottom), max(1, len(bottom) // 20)))
    legend_below(figure, axes.get_legend_handles_labels()[0], len(_COLOURS))


def _circle(axes: Axes, links: IntArray, gpus: int) -> None:
    angle = np.pi / 2 - 2 * np.pi * np.arange(gpus) / gpus
    x, y = np.cos(angle), np.sin(angle)
    for u, v, count in links.tolist():
        axes.annotate("", (x[v], y[v]), (x[u], y[u]), arrowprops={**_ARROW, "lw": 0.6 * count})
    axes.plot(x, y, "o", color=_COLOURS["alpha"], markersize=4 if gpus <= 32 else 1.5)
    if gpus <= 16:
        for u in range(gpus):
            axes.text(1.15 * x[u], 1.15 * y[u], str(u), ha="center", va="center", fontsize=8)
    axes.set_aspect("equal")
    axes.set_xlim(-1.3, 1.3)
    axes.set_ylim(-1.3, 1.3)
    axes.axis("off")
