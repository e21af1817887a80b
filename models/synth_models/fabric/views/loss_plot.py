"""A machine drawn, its links and switches coloured by what their loss costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.views.positions import positions

LEAST = 0.001  # the smallest loss that has a colour of its own
PARTED, UNKNOWN = "black", "#bbbbbb"


def plot_losses(
    machine: Machine, of_pair: Mapping[tuple[int, int], float], of_node: Mapping[int, float], title: str
) -> Figure:
    """The picture. ``of_pair``, ``of_node``: losses as shares of the whole machine's time, infinite where the ranks are
    parted (black); what is not known is grey. A link's two directions are one line, its worse loss drawn."""
    figure = Figure(figsize=(10, 8), layout="constrained")
    axes = figure.subplots()
    place = positions(machine)
    finite = [loss for loss in (*of_pair.values(), *of_node.values()) if math.isfinite(loss)]
    scale, colours = LogNorm(LEAST, max(10 * LEAST, *finite, LEAST)), colormaps["plasma_r"]

    def colour(loss: float | None) -> Any:
        if loss is None:
            return UNKNOWN
        return PARTED if math.isinf(loss) else colours(scale(max(loss, LEAST)))

    lines: dict[frozenset[int], float | None] = {}
    for u, v in zip(machine.network.src.tolist(), machine.network.dst.tolist(), strict=True):
        loss = of_pair.get((u, v))
        known = [one for one in (lines.get(frozenset((u, v))), loss) if one is not None]
        lines[frozenset((u, v))] = max(known, default=None)
    ordered = sorted(lines.items(), key=lambda line: -1.0 if line[1] is None else line[1])
    ends = [[place[v] for v in pair] for pair, _ in ordered]
    axes.add_collection(LineCollection(ends, colors=[colour(loss) for _, loss in ordered], linewidths=2.2))
    small = machine.nodes > 40
    for v in range(machine.nodes):
        marker = "s" if machine.is_switch[v] else "o"
        edge = colour(of_node.get(v)) if machine.is_switch[v] else "black"
        width = 2.2 if machine.is_switch[v] else 0.8
        how: dict[str, Any] = dict(s=90 if small else 170, marker=marker, color="white", linewidth=width, zorder=3)
        axes.scatter(*place[v], edgecolor=[edge], **how)
        words: dict[str, Any] = dict(ha="center", va="center", fontsize=4 if small else 6, parse_math=False)
        axes.text(*place[v], machine.names[v], zorder=4, **words)
    axes.margins(0.08)
    axes.set_aspect("equal")
    axes.axis("off")
    parted = any(math.isinf(loss) for loss in (*of_pair.values(), *of_node.values()))
    axes.set_title(title + ("; black: without it the ranks are parted" if parted else ""), parse_math=False)
    label = "longer than the whole machine by this share when it fails (squares: switches)"
    figure.colorbar(ScalarMappable(scale, colours), ax=axes, label=label, shrink=0.7)
    return figure
