"""Solutions of the mlfm family as drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from synth.views.discrete_colours import colour_bar, discrete
from synth.views.figure_style import panels
from synth.views.occupancy import folded
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.column_phases import Rows
from synth_models.mlfm.solution import Phases
from synth_models.mlfm.views.describe import link_loads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_DRAWN = 300  # phases drawn
LINK_NAMES = 60  # links up to which the chart names them


def plot(instance: MLFMInstance, solution: Phases, title: str) -> Figure:
    """The machine with the job's servers, the table of destinations, and every link's load in every phase."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(17, 7), layout="constrained")
    figure.suptitle(title)
    left, centre, right = panels(figure, 3, width_ratios=(1.1, 1, 1.3))
    rows = next(iter(solution.rows(max(1, min(MAX_DRAWN, solution.phases)))), None)
    _draw_machine(left, instance)
    if rows is not None:
        _draw_table(figure, centre, instance, rows, solution.phases)
        _draw_loads(figure, right, instance, rows, solution.phases)
    return figure


def _draw_machine(axes: Any, instance: MLFMInstance) -> None:
    """Leaves in their layers and columns, one dot per slot; failed parts in red."""
    from matplotlib.patches import Rectangle

    d, columns = instance.d, instance.columns
    used = {tuple(server) for server in instance.servers.tolist()}
    dead_leaves, dead_servers = set(instance.failed.leaves), set(instance.failed.servers)
    side = int(np.ceil(d**0.5))
    dots: dict[str, list[tuple[float, float]]] = {}
    for i in range(d):
        for j in range(columns):
            edge = "red" if (i, j) in dead_leaves else "black"
            axes.add_patch(Rectangle((j - 0.4, i - 0.4), 0.8, 0.8, fill=False, edgecolor=edge, linewidth=0.8))
            for k in range(d):
                colour = "tab:blue" if (i, j, k) in used else "lightgrey"
                colour = "red" if (i, j, k) in dead_servers else colour
                place = (j - 0.4 + 0.8 * (k % side + 0.5) / side, i - 0.4 + 0.8 * (k // side + 0.5) / side)
                dots.setdefault(colour, []).append(place)
    for colour, places in dots.items():
        axes.scatter(*zip(*places, strict=True), s=max(2.0, 900 / (columns * side) ** 1.3), color=colour)
    for a, b in instance.failed.spines:
        axes.annotate("", (b, d - 0.3), (a, d - 0.3), arrowprops={"arrowstyle": "-", "color": "red"})
        axes.text((a + b) / 2, d - 0.25, f"spine {a}-{b}", color="red", ha="center", fontsize=8)
    for link in instance.failed.links:
        (i, j), (a, b) = link.leaf, link.spine
        axes.text(j, i + 0.42, f"no link to {a}-{b}", color="red", ha="center", fontsize=8)
    axes.set_xlim(-0.6, columns - 0.4)
    axes.set_ylim(-0.6, d)
    axes.set_xticks(range(columns))
    axes.set_yticks(range(d))
    axes.set_xlabel("column")
    axes.set_ylabel("layer")
    axes.set_title(f"MLFM({d}): {instance.ranks} servers of the job (blue), red: failed")
    axes.set_aspect("equal")


def _draw_table(figure: Figure, axes: Any, instance: MLFMInstance, rows: Rows, phases: int) -> None:
    from matplotlib.ticker import MaxNLocator

    shown = np.where(rows.dest >= 0, rows.dest, np.nan).astype(float)
    first = f" (first {len(shown)} of {phases} phases)" if len(shown) < phases else ""
    extent = (-0.5, instance.ranks - 0.5, len(shown) - 0.5, -0.5)
    cmap, norm = colours = discrete(instance.ranks)
    axes.imshow(folded(shown), aspect="auto", interpolation="nearest", cmap=cmap, norm=norm, extent=extent)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("rank that sends")
    axes.set_ylabel("phase")
    axes.set_title(f"destinations; white: idle{first}")
    colour_bar(figure, axes, colours, "rank that receives")


def _draw_loads(figure: Figure, axes: Any, instance: MLFMInstance, rows: Rows, phases: int) -> None:
    from matplotlib.colors import BoundaryNorm
    from matplotlib.ticker import MaxNLocator

    loads = link_loads(instance, rows)
    links = np.flatnonzero(loads.any(axis=0))
    most = int(loads.max(initial=1))
    chart = loads[:, links].T.astype(float)
    norm = BoundaryNorm(np.arange(-0.5, max(2, most) + 1.5), 256)
    if len(links):
        extent = (-0.5, chart.shape[1] - 0.5, len(links) - 0.5, -0.5)
        style: dict[str, Any] = dict(aspect="auto", interpolation="nearest", cmap="magma_r", norm=norm)
        image = axes.imshow(folded(chart), extent=extent, **style)
        figure.colorbar(image, ax=axes, label="flows on the link", shrink=0.7, ticks=range(max(2, most) + 1))
    if len(links) <= LINK_NAMES:
        axes.set_yticks(range(len(links)), [instance.link_name(int(e)) for e in links], fontsize=6)
    mean = float(np.maximum(1, loads.max(axis=1, initial=0)).mean())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("phase")
    axes.set_ylabel("" if len(links) <= LINK_NAMES else "link (up-links first)")
    first = f" in the first {len(loads)} of {phases} phases" if len(loads) < phases else ""
    axes.set_title(f"{len(links)} links in use{first}; mean worst load {mean:.3g}")
