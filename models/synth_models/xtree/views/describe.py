"""Schedules for people: a text per timestep and a drawing of link use."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from synth.network import Network
from synth.schedule.schedule import Schedule
from synth_models.xtree.instance import XTreeInstance

MAX_LINES = 60


def describe(instance: XTreeInstance, schedule: Schedule) -> str:
    """Per timestep the transfers as ``src->dst:origin.chunk`` (``+`` marks a partial sum that is added)."""
    network, lines = instance.topology, []
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


def positions(network: Network) -> Any:
    """Where to draw every node, shape (nodes, 2): given, by grid coordinates, or by a spring layout with a seed."""
    if network.positions is not None:
        return np.asarray(network.positions)
    if network.kind == "ring" or (network.grid is not None and network.kind == "hypercube" and network.nodes <= 2):
        angle = 2 * np.pi * np.arange(network.nodes) / network.nodes
        return np.stack([np.sin(angle), np.cos(angle)], axis=1) * max(1.0, network.nodes / 6)
    if network.grid is not None and len(network.grid) <= 2:
        coordinates = np.unravel_index(np.arange(network.nodes), network.grid)
        rows = coordinates[0] if len(network.grid) == 2 else np.zeros(network.nodes)
        return np.stack([coordinates[-1], -rows], axis=1).astype(float)
    layout = nx.kamada_kawai_layout(nx.Graph(network.to_networkx())) if network.nodes <= 128 else nx.circular_layout(
        network.to_networkx()
    )  # fmt: skip
    return np.array([layout[v] for v in range(network.nodes)]) * max(1.0, network.nodes**0.5)


def plot(instance: XTreeInstance, schedule: Schedule, title: str) -> Figure:
    """The network with links coloured by use, and a link x timestep chart coloured by the chunk's origin."""
    network = instance.topology
    figure = Figure(figsize=(15, 7), layout="constrained")
    figure.suptitle(title)
    left, right = figure.subplots(1, 2)
    _draw_network(figure, left, network, schedule)
    _draw_chart(figure, right, instance, schedule)
    return figure


def _draw_network(figure: Figure, axes: Any, network: Network, schedule: Schedule) -> None:
    place = positions(network)
    steps = max(1, schedule.steps)
    use = np.bincount(schedule.link, minlength=network.links) / steps
    colours, scale = figure_colours("viridis_r"), Normalize(0, 1)
    if network.links <= 1500:
        order: dict[tuple[int, int], int] = {}
        for e in range(network.links):
            pair = (int(network.src[e]), int(network.dst[e]))
            order[pair] = order.get(pair, 0) + 1
            away = place[pair[1]] - place[pair[0]]
            bend = 0.08 + 0.14 * (order[pair] - 1) + (0.12 if np.hypot(*away) > 1.5 else 0.0)
            axes.add_patch(
                FancyArrowPatch(
                    tuple(place[pair[0]]), tuple(place[pair[1]]), connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>",
                    mutation_scale=9, linewidth=1.6, color=colours(scale(use[e])), shrinkA=7, shrinkB=7,
                )
            )  # fmt: skip
    else:  # straight lines where arrows would be a blot
        segments = np.stack([place[network.src], place[network.dst]], axis=1)
        axes.add_collection(LineCollection(list(segments), colors=colours(scale(use)), linewidths=0.6))
    size = 170 if network.nodes <= 80 else 20
    axes.scatter(place[:, 0], place[:, 1], s=size, color="white", edgecolor="black", zorder=3)
    if network.nodes <= 80:
        for v in range(network.nodes):
            axes.text(place[v, 0], place[v, 1], str(v), ha="center", va="center", fontsize=8, zorder=4)
    axes.margins(0.12)
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_title(f"{network.kind}: {network.nodes} nodes, {network.links} links")
    from matplotlib.cm import ScalarMappable

    figure.colorbar(ScalarMappable(scale, colours), ax=axes, label="share of timesteps in use", shrink=0.7)


def _draw_chart(figure: Figure, axes: Any, instance: XTreeInstance, schedule: Schedule) -> None:
    network = instance.topology
    chart = np.full((network.links, max(1, schedule.steps)), np.nan)
    chart[schedule.link, schedule.step - 1] = schedule.chunk // instance.chunks
    order = np.lexsort((network.dst, network.src))
    image = axes.imshow(
        chart[order], aspect="auto", interpolation="nearest", cmap=figure_colours("turbo"), vmin=0,
        vmax=max(1, network.nodes - 1), extent=(0.5, chart.shape[1] + 0.5, network.links - 0.5, -0.5),
    )  # fmt: skip
    axes.set_xlabel("timestep")
    axes.set_ylabel("link")
    if network.links <= 64:
        axes.set_yticks(range(network.links), [f"{network.src[e]}→{network.dst[e]}" for e in order], fontsize=6)
    axes.set_title(f"{len(schedule)} transfers; white: idle")
    figure.colorbar(image, ax=axes, label="node the chunk belongs to", shrink=0.7)


def figure_colours(name: str) -> Any:
    """A matplotlib colour map by name."""
    from matplotlib import colormaps

    return colormaps[name]
