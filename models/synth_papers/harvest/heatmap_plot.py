"""Heatmaps of speed-ups over message size and reconfiguration delay, one colour scale per figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from synth.arrays import FloatArray
from synth.views.figure_style import current

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE_TICKS = {2.0**10: "1 KiB", 2.0**15: "32 KiB", 2.0**20: "1 MiB", 2.0**25: "32 MiB", 2.0**30: "1 GiB"}
DELAY_TICKS = {1e-8: "10 ns", 1e-7: "100 ns", 1e-6: "1 µs", 1e-5: "10 µs", 1e-4: "100 µs", 1e-3: "1 ms", 1e-2: "10 ms"}
GAIN = 1.01  # a speed-up of less than this (1 %) is drawn as none
LEVELS = (1.5, 2.0, 4.0, 10.0, 30.0)
BRIGHT = 10.0  # from this level on the map is so bright that its line and label are dark


def draw(
    panels: Sequence[Sequence[tuple[str, FloatArray]]],
    sizes: FloatArray,
    delays: FloatArray,
    title: str,
    *,
    least: float = 1.0,
    most: float = 32.0,
    levels: Sequence[float] = (),
) -> Figure:
    """A figure of rows of (title, speed-ups of shape (sizes, delays)).

    Colours are logarithmic from ``least`` to ``most``, or one between two ``levels``, the same in all panels, and
    lighter in grey too where the speed-up is larger. The thick line is a speed-up of 1.01 (of 1 where ``least`` is
    smaller), the thin ones carry their numbers.
    """
    from matplotlib.colors import BoundaryNorm, LogNorm, Normalize
    from matplotlib.figure import Figure as NewFigure

    panels = _two_a_row(panels) if current().narrow else panels
    rows, columns = len(panels), max(len(row) for row in panels)
    figure = NewFigure(figsize=(1.2 + 3.6 * columns, 1.0 + 2.7 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    norm: Normalize = BoundaryNorm(levels, 256, extend="max") if len(levels) else LogNorm(least, most)
    for row, line in zip(grid, panels, strict=True):
        for axes in row[len(line) :]:
            axes.set_visible(False)
        for axes, (name, values) in zip(row, line, strict=False):
            mesh = axes.pcolormesh(_edges(sizes), _edges(delays), values.T, norm=norm, cmap="viridis")
            mesh.set_rasterized(True)
            _lines(axes, sizes, delays, values, losses=least < 1)
            whose, _, what = name.partition(": ")
            axes.set_title(f"{whose}\n{what}{', ' if what else ''}largest {_short(values.max())}×", fontsize=9)
            _ticks(axes)
    for axes in grid[-1]:
        axes.set_xlabel("message size")
    for axes in grid[:, 0]:
        axes.set_ylabel("reconfiguration delay")
    bar = figure.colorbar(mesh, ax=grid, extend="max" if least >= 1 else "both", shrink=0.8, label="speed-up")
    marks = [mark for mark in (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16, 32, 64) if least <= mark <= most]
    marks = list(levels) or marks
    bar.set_ticks(marks, labels=[f"{mark:g}×" if mark >= 1 else f"1/{1 / mark:g}×" for mark in marks])
    bar.ax.minorticks_off()
    figure.suptitle(title, fontsize=11)
    return figure


def _two_a_row(panels: Sequence[Sequence[tuple[str, FloatArray]]]) -> list[list[tuple[str, FloatArray]]]:
    every = [panel for row in panels for panel in row]
    return [every[first : first + 2] for first in range(0, len(every), 2)]


def _lines(axes: Axes, sizes: FloatArray, delays: FloatArray, values: FloatArray, *, losses: bool) -> None:
    limit = 1.0 if losses else GAIN
    if values.min() < limit < values.max():
        axes.contour(sizes, delays, values.T, levels=[limit], colors="black" if losses else "white", linewidths=2)
    inside = [level for level in LEVELS if max(limit, values.min()) < level < values.max()]
    if inside:
        colours = ["0.25" if losses or level >= BRIGHT else "0.9" for level in inside]
        drawn = axes.contour(sizes, delays, values.T, levels=inside, colors=colours, linewidths=0.7)
        axes.clabel(drawn, fmt=lambda level: f"{level:g}×", fontsize=7, colors=colours)


def _ticks(axes: Axes) -> None:
    axes.grid(False)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(list(SIZE_TICKS), labels=list(SIZE_TICKS.values()), fontsize=7)
    axes.set_yticks(list(DELAY_TICKS), labels=list(DELAY_TICKS.values()), fontsize=8)
    axes.minorticks_off()


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _edges(points: FloatArray) -> FloatArray:
    """Borders of the cells around points that are evenly spaced in the logarithm."""
    half = (points[1] / points[0]) ** 0.5
    return np.concatenate([points / half, points[-1:] * half])
