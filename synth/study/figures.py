"""A study's figures, per family: gaps, profiles, values and bounds over time, bandwidth against size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter, StrMethodFormatter

from synth.family import get_family
from synth.records.record import Record
from synth.study.bandwidth_figure import bandwidth
from synth.study.chart import Chart, natural
from synth.study.measures import performance_profile
from synth.study.table import VALUE_COUNTS
from synth.text.quantities import count, scaled
from synth.views.discrete_colours import ink
from synth.views.figure_style import MOST_LINES, current, legend_below, looks, panels

MOST_INSTANCES = 60  # on one axis
LEAST_S = 1e-3
LEAST_SPAN_S = 0.05  # what a curve over time must last to be drawn


def draw(name: str, table: pd.DataFrame, records: Sequence[Record]) -> Figure | None:
    """The figure of that name (see ``definition.FIGURES``), or None where the study has nothing to show in it. Families
    stand below one another: their instances, methods and units have nothing in common."""
    charts = _charts(name, table, records)
    if not charts:
        return None
    heights = [chart.height + (0.4 if len(charts) > 1 else 0) for chart in charts.values()]
    figure = Figure(figsize=(max(chart.width for chart in charts.values()), sum(heights)), layout="constrained")
    if len(charts) == 1:
        next(iter(charts.values())).paint(figure)
        return figure
    parts = figure.subfigures(len(charts), 1, squeeze=False, height_ratios=heights)[:, 0]
    for part, (family, chart) in zip(parts, charts.items(), strict=True):
        part.suptitle(family, fontsize=11, fontweight="bold")
        chart.paint(part)
    return figure


def by_family(name: str, table: pd.DataFrame, records: Sequence[Record]) -> dict[str, Figure]:
    """The figure of that name for every family that has something to show in it."""
    figures = {}
    for family, chart in _charts(name, table, records).items():
        figures[family] = Figure(figsize=(chart.width, chart.height), layout="constrained")
        chart.paint(figures[family])
    return figures


def _charts(name: str, table: pd.DataFrame, records: Sequence[Record]) -> dict[str, Chart]:
    drawers: dict[str, Callable[[pd.DataFrame], Chart | None]] = {
        "gaps": lambda rows: gaps(_by_group(rows)),
        "profile": profile,
        "progress": lambda rows: progress(rows, records),
        "bandwidth": lambda rows: bandwidth(_by_group(rows)),
    }
    made = {str(family): drawers[name](rows) for family, rows in table.groupby("family", sort=True)}
    return {family: chart for family, chart in made.items() if chart is not None}


def _by_group(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs that differ in their seed only have one label."""
    return rows.assign(label=rows["group"]) if "group" in rows else rows


def kept(ranked: Sequence[str]) -> tuple[list[str], str]:
    """Of labels, the best first, those that get a line, by name, and what to say of the others."""
    left = len(ranked) - MOST_LINES
    return sorted(ranked[:MOST_LINES]), f"; {left} more in table.csv" if left > 0 else ""


def _values(table: pd.DataFrame) -> Any:
    return table[table["status"].isin(VALUE_COUNTS) & table["value"].notna()]


def _by_instance(rows: Any, what: str) -> Any:
    """Rows: instance, 8 before 16; columns: label, with a remark where the values are counts. The mean where there are
    several seeds."""
    counted = (rows["evidence"] == "counted").groupby(rows["label"]).transform("any")
    labels = rows["label"].where(~counted, rows["label"] + " (counted)")
    grid: Any = rows.assign(label=labels).pivot_table(index="instance", columns="label", values=what, aggfunc="mean")
    return grid.loc[sorted(grid.index, key=natural)]


def _matrix(grid: Any, title: str, baseline: float, percent: bool) -> Chart:
    """Instances x labels with the number written into every cell."""
    if len(grid) > MOST_INSTANCES:
        title += f", the first {MOST_INSTANCES} of {len(grid)} instances"
    grid = grid.iloc[:MOST_INSTANCES]
    numbers = grid.to_numpy(dtype=float) * (100 if percent else 1)
    top = max(float(np.nanmax(numbers, initial=baseline)), baseline + 1e-6)
    scale = LogNorm(baseline, top) if baseline > 0 and top > 3 * baseline else Normalize(baseline, top)

    def paint(figure: FigureBase) -> None:
        axes = figure.subplots()
        axes.pcolormesh(np.ma.masked_invalid(numbers), cmap="YlOrRd", norm=scale, linewidth=0)
        axes.invert_yaxis()
        axes.set_yticks(np.arange(len(grid)) + 0.5, list(grid.index), fontsize=8)
        axes.set_xticks(np.arange(grid.shape[1]) + 0.5, list(grid.columns), rotation=90, fontsize=8)
        for (y, x), number in np.ndenumerate(numbers):
            if np.isfinite(number):
                text = ("0" if number < 5e-3 else f"{number:.1f}") if percent else f"{number:.3g}"
                colour = ink(colormaps["YlOrRd"](float(scale(number))))
                axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=7.5, color=colour)
        axes.set_title(title, fontsize=10, loc="left")

    longest = max(len(str(name)) for name in grid.index)
    return Chart(max(4.6, 1.2 + 0.07 * longest + 0.6 * grid.shape[1]), 1.5 + 0.25 * len(grid), paint)


def gaps(table: pd.DataFrame) -> Chart | None:
    """Gap to the best proven bound, per instance and label, in percent; where nobody proved a bound, the value over the
    best known one (which says the same of who is better)."""
    rows = _values(table)
    bounded = rows[rows["gap"].notna() & np.isfinite(rows["gap"])]
    if not bounded.empty:
        return _matrix(_by_instance(bounded, "gap"), "Gap to the best proven bound [%]", 0.0, True)
    rows = rows[rows["ratio_to_best"].notna()]
    if rows["label"].nunique() < 2:
        return None
    return _matrix(_by_instance(rows, "ratio_to_best"), "Value over best known value [×], no bound proven", 1.0, False)


def _by_run(rows: Any, what: str) -> Any:
    """Rows: an instance and a seed; columns: groups of runs that differ in their seed only."""
    return rows.pivot_table(index=["instance", "seed"], columns="group", values=what, aggfunc="min")


def profile(table: pd.DataFrame) -> Chart | None:
    """Performance profiles: time of the runs that proved their value best, and value over best value; a row of the
    profile is an instance with a seed."""
    rows = _values(table)
    rows = rows[rows["evidence"] == "replayed"]
    solved = rows[rows["solved"].astype(bool)].assign(time=lambda r: r["total_s"].clip(lower=LEAST_S))
    charts = []
    if solved["group"].nunique() > 1:
        charts.append(("time / least time (runs proven within the gap)", _by_run(solved, "time")))
    if rows["group"].nunique() > 1 and rows["ratio_to_best"].notna().any():
        charts.append(("value / best value", _by_run(rows, "ratio_to_best")))
    if not charts:
        return None
    ranked = rows.groupby("group")["ratio_to_best"].agg(["count", "mean"])
    ranked = ranked.sort_values(["count", "mean"], ascending=[False, True])
    chosen, others = kept([str(name) for name in ranked.index])
    styles = looks(chosen)

    def paint(figure: FigureBase) -> None:
        for axes, (what, costs) in zip(panels(figure, len(charts)), charts, strict=True):
            _profile(axes, what, costs, styles)
            axes.set_title(f"{len(chosen)} of {len(ranked)} methods{others}" if others else "", fontsize=9, loc="left")
        legend_below(figure, [Line2D([], [], label=label, **style) for label, style in styles.items()], fontsize=8)

    return Chart(0.6 + 4.4 * len(charts), 4.0, paint)


def _profile(axes: Any, what: str, costs: Any, styles: dict[str, Any]) -> None:
    right = 1.05
    for label, (taus, shares) in performance_profile(costs).items():
        if label in styles:
            right = max(right, float(taus[-1]))
            apart = max(1, len(taus) // 8)
            axes.step(taus, shares, where="post", label=label, markevery=apart, **styles[label])
    for line in axes.get_lines():  # every curve ends at the same right edge
        taus, shares = line.get_data()
        line.set_data(np.append(taus, right * 1.05), np.append(shares, shares[-1]))
    if right > 3:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(1.0, right * 1.05)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(f"{what} ≤ τ", fontsize=9)
    axes.set_ylabel(f"share of {len(costs.dropna(how='all'))} instances and seeds", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3)


def progress(table: pd.DataFrame, records: Sequence[Record]) -> Chart | None:
    """Incumbent and bound over time of the programs that took longest, up to six instances on which something
    happened on the way."""
    chosen = _longest(table, records)
    if not chosen:
        return None
    columns = 1 if current().narrow else min(2, len(chosen))
    lines = -(-len(chosen) // columns)
    names = sorted({label for _, curves in chosen for label, _ in curves})
    styles = looks(names) if len(names) <= MOST_LINES else {}
    objective = get_family(str(table["family"].iloc[0])).objective

    def paint(figure: FigureBase) -> None:
        all_axes = list(np.ravel(figure.subplots(lines, columns, squeeze=False)))
        for axes, (instance, curves) in zip(all_axes, chosen, strict=False):
            own = styles or looks(sorted({label for label, _ in curves}))
            _progress(axes, instance, curves, objective.unit, own)
            if not styles:  # too many methods for one legend: each panel has its own, below its axis
                axes.legend(fontsize=7, framealpha=0, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)
        for axes in all_axes[len(chosen) :]:
            axes.set_visible(False)
        figure.supylabel("value (marked), bound (thin, no marks)", fontsize=9)
        legend_below(figure, [Line2D([], [], label=label, **style) for label, style in styles.items()], fontsize=8)

    return Chart(0.6 + 4.4 * columns, 3.2 * lines + 0.4, paint)


def _longest(table: pd.DataFrame, records: Sequence[Record]) -> list[tuple[str, list[tuple[str, list[Any]]]]]:
    """Up to six instances with up to six curves (label, rows of progress) each, those that took longest first."""
    of_path = {record.path.as_posix(): record for record in records if record.path is not None}
    rows: Any = table[table["status"].isin(VALUE_COUNTS) & (table["kind"] == "program")]
    charts: dict[str, list[tuple[str, list[Any]]]] = {}
    for row in rows.sort_values("total_s", ascending=False).to_dict("records"):
        record = next((r for path, r in of_path.items() if path.endswith("/" + row["record"])), None)
        steps = _curves(record.data.get("progress") or []) if record is not None else []
        if len(steps) > 2 and steps[-1][0] - steps[0][0] > LEAST_SPAN_S:
            charts.setdefault(row["instance"], []).append((row["label"], steps))
    return [(instance, curves[:MOST_LINES]) for instance, curves in list(charts.items())[:6]]


def _progress(axes: Any, instance: str, curves: Sequence[Any], unit: str, styles: dict[str, Any]) -> None:
    end = max(steps[-1][0] for _, steps in curves)
    highest = max(height for _, steps in curves for step in steps for height in step[1:] if height is not None)
    factor, name = scaled(unit, highest)
    for label, steps in curves:
        seconds = np.maximum([*(step[0] for step in steps), end], LEAST_S)
        thin = {"marker": "", "linewidth": 0.8}
        for column, style in ((1, {"label": label}), (2, thin)):
            heights = [np.nan if step[column] is None else step[column] / factor for step in [*steps, steps[-1]]]
            axes.step(seconds, heights, where="post", **{**styles[label], **style})
    axes.set_title(instance, fontsize=9)
    if end > 10 * max(LEAST_S, min(steps[0][0] for _, steps in curves)):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(EngFormatter("s"))
    axes.yaxis.set_major_formatter(lambda height, _: count(round(height, 9)))
    axes.set_xlabel("time", fontsize=9)
    axes.set_ylabel(name, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3)


def _curves(steps: Sequence[Any]) -> list[Any]:
    """Rows of a record's progress without bounds below 0, which would only squash the rest, and without rows that
    say nothing."""
    kept = [(at, value, bound if bound is not None and bound >= 0 else None) for at, value, bound in steps]
    return [step for step in kept if step[1:] != (None, None)]
