"""A study's figures: gaps, ratios, performance profiles and gaps over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from synth.record import Record
from synth.study.measures import performance_profile
from synth.study.table import VALUE_COUNTS

MOST_INSTANCES = 60  # on one axis
LEAST_S = 1e-3
LEAST_SPAN_S = 0.05  # what a curve over time must last to be drawn


def draw(name: str, table: pd.DataFrame, records: Sequence[Record]) -> Figure | None:
    """The figure of that name (see ``definition.FIGURES``), or None where the study has nothing to show in it."""
    drawers: dict[str, Callable[[pd.DataFrame], Figure | None]] = {
        "gaps": gaps,
        "ratios": ratios,
        "profile": profile,
        "progress": lambda rows: progress(rows, records),
    }
    return drawers[name](table)


def _colours(labels: Sequence[str]) -> dict[str, Any]:
    palette = colormaps["tab10"] if len(labels) <= 10 else colormaps["tab20"]
    return {label: palette(index % palette.N) for index, label in enumerate(labels)}


def _values(table: pd.DataFrame) -> Any:
    return table[table["status"].isin(VALUE_COUNTS) & table["value"].notna()]


def _by_instance(rows: Any, what: str, reduce: str = "min") -> Any:
    """Rows: family/instance; columns: label, with a remark where the values are counts."""
    counted = (rows["evidence"] == "counted").groupby(rows["label"]).transform("any")
    labels = rows["label"].where(~counted, rows["label"] + " (counted)")
    return rows.assign(label=labels).pivot_table(
        index=["family", "instance"], columns="label", values=what, aggfunc=reduce
    )


def _matrix(grid: Any, title: str, what: str, baseline: float, percent: bool) -> Figure:
    """Instances x labels with the number written into every cell."""
    grid = grid.iloc[:MOST_INSTANCES]
    if percent:
        grid = 100 * grid
    height = 1.6 + 0.24 * len(grid)
    figure = Figure(figsize=(3.2 + 0.95 * grid.shape[1] + 1.2, height), layout="constrained")
    axes = figure.subplots()
    numbers = grid.to_numpy(dtype=float)
    top = max(float(np.nanmax(numbers, initial=baseline)), baseline + 1e-6)
    scale = LogNorm(baseline, top) if baseline > 0 and top > 3 * baseline else Normalize(baseline, top)
    image = axes.imshow(numbers, cmap="YlOrRd", norm=scale, aspect="auto")
    several = grid.index.get_level_values(0).nunique() > 1
    names = [f"{family}/{instance}" if several else instance for family, instance in grid.index]
    axes.set_yticks(range(len(grid)), names, fontsize=7)
    axes.set_xticks(range(grid.shape[1]), list(grid.columns), rotation=35, ha="right", fontsize=8)
    for (y, x), number in np.ndenumerate(numbers):
        if np.isfinite(number):
            text = ("0" if number < 5e-3 else f"{number:.1f}") if percent else f"{number:.3g}"
            dark = float(scale(number)) > 0.6
            axes.text(x, y, text, ha="center", va="center", fontsize=6.5, color="white" if dark else "black")
    figure.colorbar(image, ax=axes, label=what, shrink=min(1.0, 3 / height))
    axes.set_title(title, fontsize=10)
    return figure


def gaps(table: pd.DataFrame) -> Figure | None:
    """Gap to the best proven bound, per instance and label, in percent."""
    rows = _values(table)
    rows = rows[rows["gap"].notna() & np.isfinite(rows["gap"])]
    if rows.empty:
        return None
    return _matrix(_by_instance(rows, "gap"), "Gap to the best proven bound [%]", "gap [%]", 0.0, True)


def ratios(table: pd.DataFrame) -> Figure | None:
    """Value over the best known value, per instance and label."""
    rows = _values(table)
    rows = rows[rows["ratio_to_best"].notna()]
    if rows.empty or rows["label"].nunique() < 2:
        return None
    return _matrix(_by_instance(rows, "ratio_to_best"), "Value over best known value", "ratio", 1.0, False)


def profile(table: pd.DataFrame) -> Figure | None:
    """Performance profiles: time of the runs that proved their value best, and value over best value."""
    rows = _values(table)
    rows = rows[rows["evidence"] == "replayed"]
    solved = rows[rows["solved"].astype(bool)].assign(time=lambda r: r["total_s"].clip(lower=LEAST_S))
    charts = []
    if solved["label"].nunique() > 1:
        charts.append(("time / least time (runs proven within the gap)", _by_instance(solved, "time")))
    if rows["label"].nunique() > 1 and rows["ratio_to_best"].notna().any():
        charts.append(("value / best value", _by_instance(rows, "ratio_to_best")))
    if not charts:
        return None
    figure = Figure(figsize=(6.2 * len(charts), 4.2), layout="constrained")
    colours = _colours(sorted(rows["label"].unique()))
    for axes, (what, costs) in zip(figure.subplots(1, len(charts), squeeze=False)[0], charts, strict=True):
        right = 1.05
        for label, (taus, shares) in performance_profile(costs).items():
            right = max(right, float(taus[-1]))
            axes.step(taus, shares, where="post", label=label, color=colours[label])
        for line in axes.get_lines():  # every curve ends at the same right edge
            taus, shares = line.get_data()
            line.set_data(np.append(taus, right * 1.05), np.append(shares, shares[-1]))
        if right > 3:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(1.0, right * 1.05)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel(f"{what} ≤ τ")
        axes.set_ylabel(f"share of {len(costs.dropna(how='all'))} instances")
        axes.grid(alpha=0.3)
    handles = [Line2D([], [], color=colour, label=label) for label, colour in colours.items()]
    figure.legend(handles=handles, fontsize=7, loc="outside right upper")
    return figure


def progress(table: pd.DataFrame, records: Sequence[Record]) -> Figure | None:
    """Incumbent and bound over time of the programs that took longest, up to six instances on which something
    happened on the way."""
    of_path = {record.path.as_posix(): record for record in records if record.path is not None}
    rows: Any = table[table["status"].isin(VALUE_COUNTS) & (table["kind"] == "program")]
    charts: dict[tuple[str, str], list[tuple[str, list[Any]]]] = {}
    for row in rows.sort_values("total_s", ascending=False).to_dict("records"):
        record = next((r for path, r in of_path.items() if path.endswith("/" + row["record"])), None)
        steps = _curves(record.data.get("progress") or []) if record is not None else []
        if len(steps) > 2 and steps[-1][0] - steps[0][0] > LEAST_SPAN_S:
            charts.setdefault((row["family"], row["instance"]), []).append((row["label"], steps))
    chosen = list(charts.items())[:6]
    if not chosen:
        return None
    lines = (len(chosen) + 2) // 3
    figure = Figure(figsize=(5.2 * min(3, len(chosen)), 3.4 * lines), layout="constrained")
    axes_list = list(np.ravel(figure.subplots(lines, min(3, len(chosen)), squeeze=False)))
    colours = _colours(sorted({label for _, curves in chosen for label, _ in curves}))
    for axes, ((_, instance), curves) in zip(axes_list, chosen, strict=False):
        end = max(steps[-1][0] for _, steps in curves[:6])
        for label, steps in curves[:6]:
            seconds = np.maximum([*(step[0] for step in steps), end], LEAST_S)
            for column, style in ((1, "-"), (2, "--")):
                heights = [np.nan if step[column] is None else step[column] for step in [*steps, steps[-1]]]
                look = {"color": colours[label], "marker": ".", "markersize": 3}
                axes.step(seconds, heights, style, where="post", label=label if column == 1 else None, **look)
        axes.set_title(instance, fontsize=9)
        if end > 10 * max(LEAST_S, min(steps[0][0] for _, steps in curves[:6])):
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.set_xlabel("seconds")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    for axes in axes_list[len(chosen) :]:
        axes.set_visible(False)
    axes_list[0].set_ylabel(f"incumbent (full), bound (dashed) [{table['unit'].iloc[0]}]")
    return figure


def _curves(steps: Sequence[Any]) -> list[Any]:
    """Rows of a record's progress without bounds below 0, which would only squash the rest, and without rows that
    say nothing."""
    kept = [(at, value, bound if bound is not None and bound >= 0 else None) for at, value, bound in steps]
    return [step for step in kept if step[1:] != (None, None)]
