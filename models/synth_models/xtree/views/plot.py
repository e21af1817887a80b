"""A drawing of a schedule's use of links."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.ticker import MaxNLocator

from synth.network import Network
from synth.schedule import Schedule
from synth.schedule.quotient import listed
from synth.views.discrete_colours import colour_bar, discrete, ink
from synth.views.figure_style import current, panels
from synth.views.nodes import node_look
from synth.views.occupancy import folded
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.solution import Solution
from synth_models.xtree.views.positions import positions

NUMBERED_LINKS, NUMBERED_STEPS = 64, 24  # up to which cells bear their chunk's number
NAMED_LINKS = 64
PANEL_IN = 5.5


def plot(instance: XTreeInstance, schedule: Solution, title: str) -> Figure:
    """The network with links coloured by use, and a link x timestep chart coloured by the chunk's origin."""
    network = instance.topology
    schedule = listed(network, schedule)
    figure = Figure(figsize=(15, 7), layout="constrained")
    figure.suptitle(title)
    left, right = panels(figure, 2)
    _draw_network(figure, left, network, schedule)
    _draw_chart(figure, right, instance, schedule)
    return figure


def _draw_network(figure: Figure, axes: Any, network: Network, schedule: Schedule) -> None:
    place = positions(network)
    steps = max(1, schedule.steps)
    use = np.bincount(schedule.link, minlength=network.links) / steps
    colours, scale = colormaps["viridis_r"], Normalize(0, 1)
    look = node_look(place, PANEL_IN, 8 if network.names is None else 6)
    if network.links <= 1500:
        order: dict[tuple[int, int], int] = {}
        for e in range(network.links):
            pair = (int(network.src[e]), int(network.dst[e]))
            order[pair] = order.get(pair, 0) + 1
            away = place[pair[1]] - place[pair[0]]
            bend = 0.08 + 0.14 * (order[pair] - 1) + (0.12 if np.hypot(*away) > 1.5 else 0.0)
            style: dict[str, Any] = dict(
                connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>", mutation_scale=look.arrow, linewidth=look.line,
                shrinkA=look.across / 2, shrinkB=look.across / 2,
            )  # fmt: skip
            ends = tuple(place[pair[0]]), tuple(place[pair[1]])
            axes.add_patch(FancyArrowPatch(*ends, color=colours(scale(use[e])), **style))
    else:  # straight lines where arrows would be a blot
        segments = np.stack([place[network.src], place[network.dst]], axis=1)
        axes.add_collection(LineCollection(list(segments), colors=colours(scale(use)), linewidths=0.6))
    axes.scatter(place[:, 0], place[:, 1], s=look.area, color="white", edgecolor="black", zorder=3)
    if network.nodes <= 80:
        for v in range(network.nodes):
            if (how := look.name(v, network.name(v))) is not None:
                axes.text(place[v, 0], place[v, 1], network.name(v), zorder=4, **how)
    axes.margins(0.12)
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_title(f"{network.kind}: {network.nodes} nodes, {network.links} links")
    figure.colorbar(ScalarMappable(scale, colours), ax=axes, label="share of timesteps in use", shrink=0.7)


def _draw_chart(figure: Figure, axes: Any, instance: XTreeInstance, schedule: Schedule) -> None:
    """Rows are links, columns timesteps; the colour is the node whose chunk a link carries, the number is the chunk."""
    network = instance.topology
    chart = np.full((network.links, max(1, schedule.steps)), np.nan)
    chart[schedule.link, schedule.step - 1] = schedule.chunk // instance.chunks
    order = np.lexsort((network.dst, network.src))
    extent = (0.5, chart.shape[1] + 0.5, network.links - 0.5, -0.5)
    cmap, norm = colours = discrete(network.nodes)
    axes.imshow(folded(chart[order]), extent=extent, aspect="auto", interpolation="nearest", cmap=cmap, norm=norm)
    numbered = network.links <= NUMBERED_LINKS // (2 if current().narrow else 1) and schedule.steps <= NUMBERED_STEPS
    if numbered:
        row = np.argsort(order)[schedule.link]
        for x, y, chunk in zip(schedule.step.tolist(), row.tolist(), schedule.chunk.tolist(), strict=True):
            origin, part = divmod(chunk, instance.chunks)
            words: dict[str, Any] = dict(ha="center", va="center", fontsize=6, color=ink(cmap(origin)))
            axes.text(x, y, f"{origin}.{part}" if instance.chunks > 1 else str(origin), **words)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("timestep")
    axes.set_ylabel("link")
    if network.links <= NAMED_LINKS:
        name = network.name
        ends = [f"{name(network.src[e])}→{name(network.dst[e])}" for e in order]
        axes.set_yticks(range(network.links), ends, fontsize=6, parse_math=False)
    number = "; number: origin.chunk" if instance.chunks > 1 else "; number: origin"
    axes.set_title(f"{len(schedule)} transfers{number if numbered else ''}; white: idle")
    colour_bar(figure, axes, colours, "node the chunk belongs to", [network.name(v) for v in range(network.nodes)])
