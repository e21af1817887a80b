"""A schedule drawn: when which link is occupied, and the machine with its links by use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from synth.arrays import FloatArray, IntArray
from synth.text.quantities import SECONDS, count, scaled
from synth.views.discrete_colours import colour_bar, discrete, ink
from synth.views.figure_style import current, panels
from synth.views.nodes import EM, PANEL, node_look
from synth.views.occupancy import busy_share
from synth_models.fabric.check.route_hops import Hops, hops_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Quotient, Schedule, expanded
from synth_models.fabric.views.positions import positions

MAX_ROWS = 64  # links in the chart: the busiest
MAX_BARS = 4_000  # hops that are drawn one by one
LEAST_BAR = 300  # of them, the shortest takes at least this part of the time: below it is too narrow to be seen
USE = LinearSegmentedColormap.from_list("use", ["#c9dcf0", "#08306b"])  # its lightest colour is not that of idle
LEAST_NUMBERED = 45  # a bar that takes at least this part of the time bears its piece's number
NUMBER_PT = 6
PIECE = "piece"
MAX_NODES = 80  # of a machine that is drawn
MAX_ARROWS = 800
PANEL_IN = 4.5  # of the machine


class Bars(NamedTuple):
    """One hop each, shape (hops,): ``begin`` and ``end`` in the axis' unit, the ``row`` of its link, ``whose`` data it
    carries (a number up to ``most``, ``label`` in words), and which ``part`` of that data."""

    begin: FloatArray
    end: FloatArray
    row: IntArray
    label: str
    whose: IntArray
    most: int
    part: IntArray


def plot(instance: FabricInstance, schedule: Schedule | Quotient, title: str) -> Figure:
    """A chart of the links over time (the busiest where there are many), coloured by whose data a piece is (where there
    is only one block, by piece), and where bars would be too narrow by the share of each moment in use; beside it a
    machine of up to 80 nodes, links coloured by the share of the whole time in use. Raises :class:`InputError` for a
    quotient of too many transfers."""
    schedule = expanded(instance, schedule)
    hops = hops_of(instance, schedule)
    drawn = instance.machine.nodes <= MAX_NODES
    figure = Figure(figsize=(15 if drawn else 11, 7), layout="constrained")
    figure.suptitle(title)
    axes = panels(figure, 2, width_ratios=(2, 3)) if drawn else panels(figure, 1)
    took = hops.ticks[hops.span]
    busy = np.zeros(instance.machine.links, dtype=np.int64)
    np.add.at(busy, schedule.link, took)
    end = int(hops.arrive.max(initial=0)) if not hops.wrong_count else 0
    if drawn:
        _draw_machine(figure, axes[0], instance, busy / max(end, 1))
    _draw_chart(figure, axes[-1], instance, schedule, hops, busy, end)
    return figure


def _draw_machine(figure: Figure, axes: Any, instance: FabricInstance, use: FloatArray) -> None:
    machine, network = instance.machine, instance.machine.network
    place = positions(machine)
    colours, scale = colormaps["viridis_r"], Normalize(0, 1)
    look = node_look(place, PANEL_IN, 6)
    if network.links <= MAX_ARROWS:
        order: dict[tuple[int, int], int] = {}
        for e in range(network.links):
            pair = (int(network.src[e]), int(network.dst[e]))
            order[pair] = order.get(pair, 0) + 1
            style: dict[str, Any] = dict(
                connectionstyle=f"arc3,rad={0.08 + 0.14 * (order[pair] - 1)}",
                arrowstyle="-|>",
                mutation_scale=look.arrow,
                linewidth=look.line,
                shrinkA=look.across / 2,
                shrinkB=look.across / 2,
            )
            ends = tuple(place[pair[0]]), tuple(place[pair[1]])
            axes.add_patch(FancyArrowPatch(*ends, color=colours(scale(use[e])), **style))
    else:  # straight lines where arrows would be a blot
        segments = np.stack([place[network.src], place[network.dst]], axis=1)
        axes.add_collection(LineCollection(list(segments), colors=colours(scale(use)), linewidths=0.6))
    for kind, marker in ((machine.is_switch, "s"), (~machine.is_switch, "o")):
        how: dict[str, Any] = dict(color="white", edgecolor="black", linewidth=look.line * 0.8, zorder=3)
        axes.scatter(place[kind, 0], place[kind, 1], s=look.area, marker=marker, **how)
    for v in range(machine.nodes):
        if (written := look.name(v, machine.names[v])) is not None:
            axes.text(place[v, 0], place[v, 1], machine.names[v], zorder=4, **written)
    axes.margins(0.12)
    axes.set_aspect("equal")
    axes.axis("off")
    switches = int(machine.is_switch.sum())
    squares = f"{switches} switches (squares), " if switches else ""
    axes.set_title(f"{machine.nodes - switches} ranks, {squares}{machine.links} links")
    figure.colorbar(ScalarMappable(scale, colours), ax=axes, label="share of time in use", shrink=0.7)


def _draw_chart(
    figure: Figure, axes: Any, instance: FabricInstance, schedule: Schedule, hops: Hops, busy: Any, end: int
) -> None:
    machine, network = instance.machine, instance.machine.network
    factor, unit = scaled(SECONDS, end / schedule.ticks_per_s)
    rows = np.argsort(-busy, kind="stable")[:MAX_ROWS]
    rows = rows[np.lexsort((network.dst[rows], network.src[rows]))]
    row_of = np.full(machine.links, -1, dtype=np.int64)
    row_of[rows] = np.arange(len(rows))
    of = np.flatnonzero(row_of[schedule.link] >= 0) if end else np.zeros(0, dtype=np.int64)
    row, begin, took = row_of[schedule.link[of]], hops.begin[of], hops.ticks[hops.span[of]]
    parts = [f"{count(schedule.transfers)} transfers; white: idle"]
    length = end / schedule.ticks_per_s / factor
    if len(of) <= MAX_BARS and int(took.min(initial=end)) * LEAST_BAR >= end:
        at = np.stack([begin, begin + took]) / schedule.ticks_per_s / factor
        part = _parts(schedule)[schedule.piece[hops.owner[of]]]
        bars = Bars(at[0], at[1], row, *_owners(instance, schedule, hops, of), part)
        if _draw_bars(figure, axes, machine.names, bars, length):
            parts.append("number: piece of its data")
    else:  # bars too narrow to be seen
        share = np.ma.masked_equal(busy_share(row, begin, begin + took, len(rows), end), 0)
        label, extent = "share of a moment in use", (0, length, len(rows) - 0.5, -0.5)
        style: dict[str, Any] = dict(cmap=USE, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        image = axes.imshow(share, extent=extent, **style)
        figure.colorbar(image, ax=axes, label=label, shrink=0.7)
        parts.append(f"a moment is {length / share.shape[1]:.3g} {unit}")
    axes.set_xlim(0, max(length, 1e-12))
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel("link")
    names = machine.names
    small: dict[str, Any] = {"fontsize": 6, "parse_math": False}  # a name may hold a $
    axes.set_yticks(range(len(rows)), [f"{names[network.src[e]]}→{names[network.dst[e]]}" for e in rows], **small)
    if machine.links > len(rows):
        parts.append(f"the {len(rows)} busiest of {count(machine.links)} links")
    axes.set_title("; ".join(parts))


def _draw_bars(figure: Figure, axes: Any, names: Sequence[str], bars: Bars, length: float) -> bool:
    """Every bar in the colour of whose data it carries, with the number of its piece where there is room for it;
    whether any has one. ``length``: of the whole time, in the bars' unit."""
    low, high = bars.row - 0.4, bars.row + 0.4
    ends = ((bars.begin, low), (bars.end, low), (bars.end, high), (bars.begin, high))
    corners = np.stack([np.stack(xy, axis=1) for xy in ends], axis=1)
    cmap, _ = colours = discrete(bars.most + 1)
    axes.add_collection(PolyCollection(list(corners), facecolors=cmap(bars.whose), edgecolors="white", linewidths=0.3))
    colour_bar(figure, axes, colours, bars.label, names if bars.label != PIECE else ())
    needed = (len(str(int(bars.part.max(initial=0)))) + 1) * EM * NUMBER_PT  # points
    numbered = min(LEAST_NUMBERED, 72 * PANEL * float(current().width_in or figure.get_figwidth()) / needed)
    wide = np.flatnonzero((bars.end - bars.begin) * numbered >= length)
    low_rows = current().narrow and int(bars.row.max(initial=0)) > MAX_ROWS // 2
    if bars.label == PIECE or int(bars.part.max(initial=0)) == 0 or low_rows:  # the colour says all, or no room
        return False
    for i in wide.tolist():
        words: dict[str, Any] = dict(ha="center", va="center", fontsize=NUMBER_PT, color=ink(cmap(int(bars.whose[i]))))
        axes.text((bars.begin[i] + bars.end[i]) / 2, bars.row[i], str(int(bars.part[i])), **words)
    return len(wide) > 0


def _parts(schedule: Schedule) -> Any:
    """The number of every piece among those of its block, from 0 on; shape (pieces,)."""
    order = np.argsort(schedule.piece_block, kind="stable")
    block = schedule.piece_block[order]
    part = np.zeros(len(block), dtype=np.int64)
    part[order] = np.arange(len(block)) - np.searchsorted(block, block)
    return part


def _owners(instance: FabricInstance, schedule: Schedule, hops: Hops, of: Any) -> tuple[str, Any, int]:
    """Whose data these hops carry: in words, as a number each, and the largest there is."""
    block = schedule.piece_block[schedule.piece[hops.owner[of]]]
    if instance.collectives is not None:
        return "collective", instance.all_blocks[1][block], max(len(instance.parts) - 1, 0)
    if len(instance.blocks) == 1:
        return PIECE, schedule.piece[hops.owner[of]], len(schedule.piece_block) - 1
    if instance.blocks.sets:
        return "block", block, len(instance.blocks) - 1
    if np.any(instance.blocks.origin < 0):
        return "rank whose sum it is", instance.blocks.goal[block], max(instance.members)
    return "rank whose data it is", instance.blocks.origin[block], max(instance.members)
