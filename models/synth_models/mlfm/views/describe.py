"""Solutions of the mlfm family for a person: text, the flat table and drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from synth.errors import InputError
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.solution import Phases, Rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MAX_PHASES = 40  # phases described
MAX_FLOWS = 30  # transfers described in each
MAX_DRAWN = 300  # phases drawn
MAX_ROWS = 40_000_000  # rows of the flat table
LINK_NAMES = 60  # links up to which the chart names them

IntArray = npt.NDArray[np.int64]


def _server(instance: MLFMInstance, rank: int) -> str:
    return ".".join(map(str, instance.servers[rank].tolist()))


def _leaf(instance: MLFMInstance, leaf: int) -> str:
    return f"{leaf // instance.columns}.{leaf % instance.columns}"


def _spine(instance: MLFMInstance, spine: int) -> str:
    a, b = instance.spine_columns[spine]
    return f"{a}-{b}"


def via(instance: MLFMInstance, start: int, spine: int, middle: int, second: int, end: int) -> str:
    """Leaves (``layer.column``) and spines (``column-column``) along a route, e.g. ``0.1 1-3 2.3``."""
    words = [_leaf(instance, start)]
    if spine >= 0:
        words.append(_spine(instance, spine))
        if middle >= 0:
            words += [_leaf(instance, middle), _spine(instance, second)]
        words.append(_leaf(instance, end))
    return " ".join(words)


def table(instance: MLFMInstance, solution: Phases) -> pd.DataFrame:
    """Columns ``phase,src,dst,via``; equal texts are stored once. Raises :class:`InputError` beyond ``MAX_ROWS``."""
    import pandas as pd

    if solution.phases * solution.ranks > MAX_ROWS:
        raise InputError(f"the table would have more than {MAX_ROWS} rows")
    names = [_server(instance, rank) for rank in range(instance.ranks)]
    routes: dict[int, int] = {}
    texts: list[str] = []
    columns: list[list[npt.NDArray[np.int32]]] = [[], [], [], []]
    for rows in solution.rows():
        phase, src = np.nonzero(rows.dest >= 0)
        key, inverse = _route_keys(instance, rows, phase, src)
        for one, parts in zip(*key, strict=True):
            if one not in routes:
                routes[one] = len(texts)
                texts.append(via(instance, *parts))
        number = np.array([routes[one] for one in key[0]], dtype=np.int32)
        for column, values in zip(
            columns, (phase + rows.first, src, rows.dest[phase, src], number[inverse]), strict=True
        ):
            column.append(values.astype(np.int32))
    whole: list[Any] = [np.concatenate(c) if c else np.zeros(0, np.int32) for c in columns]
    coded: Any = zip(("src", "dst", "via"), whole[1:], (names, names, texts), strict=True)
    text: dict[str, Any] = {key: pd.Categorical.from_codes(codes, categories) for key, codes, categories in coded}
    return pd.DataFrame({"phase": whole[0]} | text)


def _route_keys(instance: MLFMInstance, rows: Rows, phase: Any, src: Any) -> tuple[tuple[Any, Any], Any]:
    """The different routes among some transfers: (whole-number keys, their parts), and each transfer's place."""
    dest = rows.dest[phase, src]
    parts = np.stack(
        [
            instance.server_leaf[src],
            rows.spine[phase, src],
            rows.middle[phase, src],
            rows.second[phase, src],
            instance.server_leaf[dest],
        ],
        axis=1,
    ).astype(np.int64)
    leaves, spines = instance.leaves, len(instance.spine_columns) + 1
    key = parts[:, 0]
    for column, size in ((1, spines), (2, leaves + 1), (3, spines), (4, leaves)):
        key = key * size + parts[:, column] + (column < 4)
    different, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return (different.tolist(), parts[first].tolist()), inverse


def describe(instance: MLFMInstance, solution: Phases) -> str:
    """Per phase its worst link load and its transfers as ``src->dst`` with the leaves and spines between."""
    lines = [
        f"{instance.ranks} servers on MLFM({instance.d}); "
        "servers are layer.column.slot, leaves layer.column, spines column-column"
    ]
    for rows in solution.rows(1):
        if rows.first >= MAX_PHASES:
            lines.append(f"… {solution.phases - MAX_PHASES} more phases (--csv prints all)")
            break
        dest = rows.dest[0]
        busy = np.flatnonzero(dest >= 0)
        shown = []
        for x in busy[:MAX_FLOWS]:
            ends = int(instance.server_leaf[x]), int(instance.server_leaf[dest[x]])
            parts = [int(part[0, x]) for part in (rows.spine, rows.middle, rows.second)]
            route = via(instance, ends[0], parts[0], parts[1], parts[2], ends[1])
            between = f" ({route})" if rows.spine[0, x] >= 0 else ""
            shown.append(f"{_server(instance, x)}->{_server(instance, int(dest[x]))}{between}")
        more = f" … {len(busy) - MAX_FLOWS} more" if len(busy) > MAX_FLOWS else ""
        load = int(link_loads(instance, rows).max(initial=0))
        lines.append(f"phase {rows.first:>3} ({len(busy)} transfers, worst link {load}): {', '.join(shown)}{more}")
    return "\n".join(lines)


def link_loads(instance: MLFMInstance, rows: Rows) -> IntArray:
    """Flows on every link in every phase, up-links then down-links, shape (phases, 2 * leaves * (d + 1))."""
    columns, half = instance.columns, instance.leaves * instance.columns
    phase, src = np.nonzero((rows.dest >= 0) & (rows.spine >= 0))
    start, end = instance.server_leaf[src], instance.server_leaf[rows.dest[phase, src]]
    one, middle, two = (part[phase, src].astype(np.int64) for part in (rows.spine, rows.middle, rows.second))
    sums = instance.spine_columns.sum(axis=1)
    halfway = np.where(middle >= 0, middle, end)
    hops = [(start, one, halfway, np.ones(len(src), bool)), (middle, two, end, middle >= 0)]
    loads = np.zeros((len(rows.dest), 2 * half), dtype=np.int64)
    for tail, spine, head, real in hops:
        up = tail * columns + sums[spine] - tail % columns
        down = half + head * columns + sums[spine] - head % columns
        for link in (up, down):
            np.add.at(loads, (phase[real], link[real]), 1)
    return loads


def plot(instance: MLFMInstance, solution: Phases, title: str) -> Figure:
    """The machine with the job's servers, the table of destinations, and every link's load in every phase."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(17, 7), layout="constrained")
    figure.suptitle(title)
    left, centre, right = figure.subplots(1, 3, width_ratios=(1.1, 1, 1.3))
    rows = next(iter(solution.rows(max(1, min(MAX_DRAWN, solution.phases)))), None)
    _draw_machine(left, instance)
    if rows is not None:
        _draw_table(figure, centre, instance, rows, solution.phases)
        _draw_loads(figure, right, instance, rows)
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
    shown = np.where(rows.dest >= 0, rows.dest, np.nan).astype(float)
    extent = (-0.5, instance.ranks - 0.5, len(shown) - 0.5, -0.5)
    image = axes.imshow(shown, aspect="auto", interpolation="nearest", cmap="turbo", vmin=0, extent=extent)
    axes.set_xlabel("rank that sends")
    axes.set_ylabel("phase")
    axes.set_title(
        "destinations; white: idle" + (f" (first {len(shown)} of {phases} phases)" if len(shown) < phases else "")
    )
    figure.colorbar(image, ax=axes, label="rank that receives", shrink=0.7)


def _draw_loads(figure: Figure, axes: Any, instance: MLFMInstance, rows: Rows) -> None:
    from matplotlib.colors import BoundaryNorm

    loads = link_loads(instance, rows)
    links = np.flatnonzero(loads.any(axis=0))
    most = int(loads.max(initial=1))
    chart = loads[:, links].T.astype(float)
    norm = BoundaryNorm(np.arange(-0.5, max(2, most) + 1.5), 256)
    if len(links):
        extent = (-0.5, chart.shape[1] - 0.5, len(links) - 0.5, -0.5)
        image = axes.imshow(chart, aspect="auto", interpolation="nearest", cmap="magma_r", norm=norm, extent=extent)
        figure.colorbar(image, ax=axes, label="flows on the link", shrink=0.7, ticks=range(max(2, most) + 1))
    if len(links) <= LINK_NAMES:
        axes.set_yticks(range(len(links)), [_link_name(instance, int(e)) for e in links], fontsize=6)
    mean = float(np.maximum(1, loads.max(axis=1, initial=0)).mean())
    axes.set_xlabel("phase")
    axes.set_ylabel("" if len(links) <= LINK_NAMES else "link (up-links first)")
    axes.set_title(f"{len(links)} links in use; mean worst load {mean:.3g}")


def _link_name(instance: MLFMInstance, link: int) -> str:
    half = instance.leaves * instance.columns
    leaf, column = divmod(link % half, instance.columns)
    a, b = sorted((leaf % instance.columns, column))
    return f"{_leaf(instance, leaf)}→{a}-{b}" if link < half else f"{a}-{b}→{_leaf(instance, leaf)}"
