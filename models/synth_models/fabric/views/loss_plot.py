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
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, NullLocator

from synth.views.nodes import node_look
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.views.positions import positions

LEAST = 0.001  # the smallest loss that has a colour of its own
SIDES = (45, -45, 90, -90, 0)  # degrees at which a name may stand beside its node, those first that others leave equal
PARTED, UNKNOWN = "black", "#bbbbbb"


def plot_losses(
    machine: Machine, of_pair: Mapping[tuple[int, int], float], of_node: Mapping[int, float], title: str
) -> Figure:
    """The picture. ``of_pair``, ``of_node``: losses as shares of the whole machine's time, infinite where the ranks are
    parted (black); what is not known is grey. A link's two directions are one line, its worse loss drawn."""
    figure = Figure(figsize=(10, 8), layout="constrained")
    axes = figure.subplots()
    known = [loss for loss in (*of_pair.values(), *of_node.values()) if math.isfinite(loss)]
    colours = ScalarMappable(LogNorm(LEAST, max(10 * LEAST, *known, LEAST)), colormaps["plasma_r"])
    place = positions(machine)
    _draw_links(axes, machine, place, of_pair, colours)
    _draw_nodes(axes, machine, place, of_node, colours)
    axes.margins(0.08)
    axes.set_aspect("equal")
    axes.axis("off")
    parted = any(math.isinf(loss) for loss in (*of_pair.values(), *of_node.values()))
    axes.set_title(title + ("; black: without it the ranks are parted" if parted else ""), parse_math=False)
    words = FuncFormatter(lambda loss, _: f"{100 * loss:g} %")
    bar = figure.colorbar(colours, ax=axes, label="time lost when a link or a square fails", shrink=0.7, format=words)
    bar.ax.yaxis.set_minor_locator(NullLocator())
    return figure


def _colour(loss: float | None, colours: ScalarMappable) -> Any:
    if loss is None:
        return UNKNOWN
    seen: Any = max(loss, LEAST)
    return PARTED if math.isinf(loss) else colours.to_rgba(seen)


def _draw_links(
    axes: Any, machine: Machine, place: Any, of_pair: Mapping[tuple[int, int], float], colours: ScalarMappable
) -> None:
    """A line for both directions, the worst loss on top."""
    lines: dict[frozenset[int], float | None] = {}
    for u, v in zip(machine.network.src.tolist(), machine.network.dst.tolist(), strict=True):
        both = lines.get(frozenset((u, v))), of_pair.get((u, v))
        lines[frozenset((u, v))] = max((loss for loss in both if loss is not None), default=None)
    ordered = sorted(lines.items(), key=lambda line: -1.0 if line[1] is None else line[1])
    ends = [[place[v] for v in pair] for pair, _ in ordered]
    axes.add_collection(LineCollection(ends, colors=[_colour(loss, colours) for _, loss in ordered], linewidths=2.2))


def _draw_nodes(axes: Any, machine: Machine, place: Any, of_node: Mapping[int, float], colours: ScalarMappable) -> None:
    """Squares for switches, their rims coloured; circles for ranks; names beside them."""
    small = machine.nodes > 40
    side, look = _sides(machine, place), node_look(place, 7.0)
    across = min(look.across, 9.5 if small else 13.0)
    for v in range(machine.nodes):
        switch = bool(machine.is_switch[v])
        rim = _colour(of_node.get(v), colours) if switch else "black"
        how: dict[str, Any] = dict(s=across**2, color="white", linewidth=2 * look.line if switch else 0.8, zorder=3)
        axes.scatter(*place[v], edgecolor=[rim], marker="s" if switch else "o", **how)
        size = 4 if small else 6 if machine.nodes > 12 else 10
        beside = _beside(side[v], away=4 if small else 7)
        name = axes.annotate(machine.names[v], place[v], fontsize=size, zorder=4, parse_math=False, **beside)
        name.set_path_effects([withStroke(linewidth=2, foreground="white")])


def _sides(machine: Machine, place: Any) -> list[int]:
    """The angle, of :data:`SIDES`, at which every node's name stands: for nodes of one height the one from which their
    links keep furthest."""
    of_node: list[list[float]] = [[] for _ in range(machine.nodes)]
    for u, v in zip(machine.network.src.tolist(), machine.network.dst.tolist(), strict=True):
        x, y = place[v][0] - place[u][0], place[v][1] - place[u][1]
        of_node[u].append(math.degrees(math.atan2(y, x)))
        of_node[v].append(math.degrees(math.atan2(-y, -x)))
    heights = [round(float(at[1]), 3) for at in place]
    best: dict[float, int] = {}
    for height in set(heights):
        links = [angle for v, mine in enumerate(of_node) if heights[v] == height for angle in mine]
        best[height] = max(SIDES, key=lambda side: min((_apart(side, link) for link in links), default=0.0))
    return [best[height] for height in heights]


def _apart(one: float, other: float) -> float:
    """Degrees between two directions."""
    return abs((one - other + 180) % 360 - 180)


def _beside(side: int, away: int) -> dict[str, Any]:
    """Where a name stands that is ``away`` points off its node at this angle."""
    if side == 0:
        at, where = (away + 2, 0), {"ha": "left", "va": "center"}
    else:
        straight = side in (90, -90)
        at = (0 if straight else away // 2, away + 2 if side > 0 else -away - 2)
        where = {"ha": "center" if straight else "left", "va": "bottom" if side > 0 else "top"}
    return {"textcoords": "offset points", "xytext": at, **where}
