"""Drawings of wavelength use and of how far items have come."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from synth.views.discrete_colours import colour_bar, discrete
from synth.views.figure_style import legend_below, panels
from synth_models.optree.check.counts import count_steps
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.solution import Circuits, Solution, StepCount

CHART_ROWS = 600  # link-wavelengths that are still drawn one by one


def plot(instance: OpTreeInstance, solution: Solution, title: str) -> Figure:
    """How node 0's item spreads, how long circuits are, and which item every link and wavelength carries; for a plan
    the steps of its stages."""
    figure = Figure(figsize=(15, 7), layout="constrained")
    figure.suptitle(title)
    if isinstance(solution, StepCount):
        _draw_plan(figure.subplots(1, 1), instance, solution)
        return figure
    axes = panels(figure, 2)
    if instance.grid is None:
        _draw_spread(axes[0], instance, solution)
    else:
        _draw_arrivals(figure, axes[0], instance, solution)
    if 2 * instance.nodes * instance.wavelengths <= CHART_ROWS and solution.steps <= 200 and instance.grid is None:
        _draw_use(figure, axes[1], instance, solution)
    else:
        _draw_lengths(figure, axes[1], instance, solution)
    return figure


def _draw_plan(axes: Any, instance: OpTreeInstance, plan: StepCount) -> None:
    counted = count_steps(instance.nodes, instance.wavelengths, plan.algorithm, plan.numbers)
    steps = counted.facts.get("stage_steps", [counted.steps])
    labels = (
        [f"stage {j + 1}: {m} groups" for j, m in enumerate(plan.numbers)]
        if plan.algorithm == "stages"
        else [plan.algorithm]
    )
    axes.bar(labels, steps, color="tab:blue")
    axes.set_ylabel("steps")
    axes.set_title(f"{counted.steps} steps, circuits up to {counted.longest} hops")


def _draw_spread(axes: Any, instance: OpTreeInstance, circuits: Circuits) -> None:
    """Arrivals of node 0's item: place on the ring (as distance from node 0) against step."""
    nodes = instance.nodes
    mine = np.flatnonzero(circuits.origin == 0)
    hops = circuits.hops(instance)
    away = (circuits.dst[mine].astype(int) + nodes // 2 - 1) % nodes - (nodes // 2 - 1)
    sign = np.where(circuits.direction[mine] == 0, 1, -1)
    colours = colormaps["viridis"](np.sqrt(hops[mine] / max(1, hops[mine].max(initial=1))))
    for place, step, length, turn, colour in zip(away, circuits.step[mine], hops[mine], sign, colours, strict=True):
        axes.plot([place - turn * length, place], [step - 1, step], color=colour, linewidth=1.0)
    axes.scatter(away, circuits.step[mine], s=8, color="black", zorder=3)
    axes.scatter([0], [0], s=30, color="tab:red", zorder=3)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("nodes from the item's origin, clockwise to the right")
    axes.set_ylabel("step")
    axes.set_title("Way of node 0's item (one line per circuit)")


def _draw_arrivals(figure: Figure, axes: Any, instance: OpTreeInstance, circuits: Circuits) -> None:
    """The step in which every node of a grid receives node 0's item; a third dimension as boards side by side."""
    mine = circuits.origin == 0
    first = np.zeros(instance.nodes)
    order = np.argsort(-circuits.step[mine], kind="stable")  # the first of several arrivals is written last
    first[circuits.dst[mine][order]] = circuits.step[mine][order]
    first[0] = 0
    sides = [dimension.side for dimension in instance.dimensions]
    boards = first.reshape(-1, *([1] * (2 - len(sides)) + sides[-2:]))
    gap = np.full((boards.shape[1], 1), np.nan)
    picture = np.concatenate([part for board in boards for part in (board, gap)][:-1], axis=1)
    image = axes.imshow(picture, cmap="viridis", interpolation="nearest")
    axes.grid(False)
    if len(boards) > 1:
        axes.set_xticks([])
    axes.set_xlabel("last dimension" + ("; boards of the first side by side" if len(sides) > 2 else ""))
    figure.colorbar(image, ax=axes, label="step", shrink=0.7)
    axes.set_title("When node 0's item arrives")


def _draw_lengths(figure: Figure, axes: Any, instance: OpTreeInstance, circuits: Circuits) -> None:
    """Mean and longest circuit, and share of wavelength-hops in use, per step."""
    hops = circuits.hops(instance)
    count = np.bincount(circuits.step, minlength=circuits.steps + 1)[1:]
    total = np.bincount(circuits.step, weights=hops, minlength=circuits.steps + 1)[1:]
    longest = np.zeros(circuits.steps, dtype=int)
    np.maximum.at(longest, circuits.step - 1, hops)
    steps = np.arange(1, circuits.steps + 1)
    lines = axes.plot(steps, longest, "o-", label="longest circuit", markersize=3)
    lines += axes.plot(steps, total / np.maximum(count, 1), "s--", label="mean circuit", markersize=3)
    axes.set_xlabel("step")
    axes.set_ylabel("hops")
    axes.set_ylim(bottom=0)
    share = axes.twinx()
    share.bar(steps, total / (instance.directed_links * instance.wavelengths), color="tab:grey", alpha=0.3)
    share.set_ylabel("share of wavelength-hops in use (bars)")
    share.set_ylim(0, 1.02)
    legend_below(figure, lines)
    axes.set_title(f"{len(circuits)} circuits")


def _draw_use(figure: Figure, axes: Any, instance: OpTreeInstance, circuits: Circuits) -> None:
    """A chart of (direction, link, wavelength) against step, coloured by the item's origin."""
    nodes, wavelengths = instance.nodes, instance.wavelengths
    chart = np.full((2, nodes, wavelengths, circuits.steps), np.nan)
    hops = circuits.hops(instance)
    for i in range(len(circuits)):
        first = circuits.src[i] if circuits.direction[i] == 0 else circuits.dst[i]
        links = (first + np.arange(hops[i])) % nodes
        chart[circuits.direction[i], links, circuits.wavelength[i], circuits.step[i] - 1] = circuits.origin[i]
    rows = 2 * nodes * wavelengths
    cmap, norm = colours = discrete(nodes)
    axes.imshow(
        chart.reshape(rows, circuits.steps),
        aspect="auto",
        interpolation="nearest",
        cmap=cmap,
        norm=norm,
        extent=(0.5, circuits.steps + 0.5, rows - 0.5, -0.5),
    )
    axes.axhline(rows / 2 - 0.5, color="black", linewidth=1)
    axes.set_xlabel("step")
    axes.set_ylabel("link and wavelength; clockwise above the line, counterclockwise below")
    axes.set_title(f"{len(circuits)} circuits; white: idle")
    colour_bar(figure, axes, colours, "origin of the item")
