"""Bandwidth against size: bytes / time in GB/s, and beside it the share of the bound that is reached."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, PercentFormatter

from synth.study.chart import Chart, natural
from synth.study.table import VALUE_COUNTS, plain_name
from synth.text.quantities import count
from synth.views.discrete_colours import ink
from synth.views.figure_style import BOUND, MOST_LINES, current, legend_below, looks, size_axis, size_word

MOST_SERIES = 12  # each has a row of panels
MOST_MAPS = 3  # one below another that have room on a page for the names of all methods
GIGA = 1e9
_MARK = re.compile(r"\s*#[0-9a-f]+$")  # of a series whose words do not tell it apart
_SIZE = re.compile(r"[-_ ]*[0-9]+(?:[KMGT]i?)?B\b")


class Curves(NamedTuple):
    """One series: its ``title``; ``value``: rows sizes [bytes], columns labels, each the mean time [s] over seeds;
    ``bound``: sizes to the greatest proven bound [s]."""

    title: str
    value: pd.DataFrame
    bound: pd.Series


def bandwidth(table: pd.DataFrame) -> Chart | None:
    """A row of two panels per series of instances that differ in size only. Left: bytes / time against bytes, and the
    bound's, above which nobody can come. Right: bound / time. Where more than six methods ran, six have a line, those
    that are best at some size first, and the right panel is a map with all of them (with
    these six where more than three stand one below another)."""
    rows: Any = table[table["series"].ne("") & table["size_bytes"].notna()]
    several = rows.groupby("series")["size_bytes"].transform("nunique") > 1
    rows = rows[several & rows["status"].isin(VALUE_COUNTS) & rows["value"].gt(0)]
    if rows.empty:
        return None
    series = [_curves(str(name), rows[rows["series"] == name]) for name in
              sorted(rows["series"].unique(), key=natural)[:MOST_SERIES]]  # fmt: skip
    order = ranked([one.value for one in series])
    lines = leading([one.value for one in series], MOST_LINES)
    styles = looks(sorted(lines))
    columns = 1 if current().narrow else 2
    mapped = lines if columns == 1 and len(series) > MOST_MAPS else order
    tall = max(3.0, 1.0 + 0.22 * len(order)) if len(order) > MOST_LINES else 3.0

    def paint(figure: FigureBase) -> None:
        grid = np.ravel(figure.subplots(len(series) * 2 // columns, columns, squeeze=False))
        for left, right, curves in zip(grid[::2], grid[1::2], series, strict=True):
            _rates(left, curves, styles)
            if len(order) > MOST_LINES:
                _map(right, curves, mapped)
            else:
                _shares(right, curves, styles)
        handles = [Line2D([], [], label=label, **style) for label, style in styles.items()]
        if any(len(curves.bound) for curves in series):
            handles.append(Line2D([], [], **BOUND))
        legend_below(figure, handles, 4, fontsize=8)

    return Chart(4.6 * columns, (tall + 0.2) * len(series) * 2 // columns + 0.5, paint)


def _curves(name: str, rows: Any) -> Curves:
    bounds = rows.groupby("size_bytes")["best_bound"].max().dropna()
    held: Any = rows.pivot_table(index="size_bytes", columns="label", values="value", aggfunc="mean")
    return Curves(title_of(name, rows["instance"]), held, bounds[bounds > 0])


def title_of(series: str, instances: Sequence[str]) -> str:
    """The machine and collective in words. Where they do not tell the series apart, what its instances' names share
    but for the size; never a hash."""
    words = _MARK.sub("", series)
    if words == series:
        return words
    names = {_SIZE.sub("", plain_name(str(name))) for name in instances}
    return min(names, key=lambda name: (len(name), name))


def ranked(values: Sequence[pd.DataFrame]) -> list[str]:
    """All labels of frames of values (rows sizes, columns labels), those first that are closest to the best most of the
    time (geometric mean of value over best; a size without value counts as four times the best)."""
    ratios = pd.concat([one.div(one.min(axis=1), axis=0).reset_index(drop=True) for one in values])
    mean = np.log(ratios.fillna(4.0)).mean()
    return [str(label) for label in mean.sort_values(kind="stable").index]


def leading(values: Sequence[pd.DataFrame], most: int, counted: Collection[str] = ()) -> list[str]:
    """At most so many of :func:`ranked`: first those that are best at some size, those at most sizes first;
    ``counted``: those that cannot be the best."""
    order = ranked(values)
    able = [one.reindex(columns=[name for name in order if name not in counted]).dropna(how="all") for one in values]
    best = pd.concat([one.idxmin(axis=1) for one in able])
    wins = best.value_counts().reindex(order, fill_value=0)
    return sorted(order, key=lambda label: -int(wins[label]))[:most]


def _rates(axes: Any, curves: Curves, styles: dict[str, Any]) -> None:
    """Algorithmic bandwidth (bytes / time), as nccl-tests print algbw."""
    for label, style in styles.items():
        if label in curves.value:
            times = curves.value[label].dropna()
            axes.plot(times.index, times.index / times / GIGA, **style)
    if len(curves.bound):
        axes.plot(curves.bound.index, curves.bound.index / curves.bound / GIGA, **BOUND)
    axes.set_title(curves.title, fontsize=9, loc="left", parse_math=False)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(lambda height, _: count(round(height, 9)))
    _dress(axes, curves, "algbw [GB/s]")


def _shares(axes: Any, curves: Curves, styles: dict[str, Any]) -> None:
    """How much of the bandwidth that the bound allows is reached."""
    for label, style in styles.items():
        if label in curves.value and len(curves.bound):
            share = (curves.bound / curves.value[label]).dropna()
            axes.plot(share.index, share, **style)
    if len(curves.bound):
        axes.axhline(1.0, **BOUND)
    else:
        axes.text(0.5, 0.5, "no bound proven", ha="center", va="center", transform=axes.transAxes, fontsize=9)
    axes.set_ylim(0, 1.05)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    _dress(axes, curves, "share of the bound")


def _dress(axes: Any, curves: Curves, label: str) -> None:
    size_axis(axes, curves.value.index.tolist())
    axes.set_xlabel("size", fontsize=9)
    axes.set_ylabel(label, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3)


def _map(axes: Any, curves: Curves, ranked: Sequence[str]) -> None:
    """Share of the bound in percent (without one: of the best value), a row a method, a column a size."""
    base = curves.bound.reindex(curves.value.index) if len(curves.bound) else curves.value.min(axis=1)
    held = [label for label in ranked if label in curves.value]
    cells = np.array([(base / curves.value[label]).to_numpy(dtype=float) for label in held])
    axes.pcolormesh(np.ma.masked_invalid(cells), cmap="YlGnBu", vmin=0, vmax=1, linewidth=0)
    axes.invert_yaxis()
    axes.set_yticks(np.arange(len(held)) + 0.5, held, fontsize=7)
    sizes = [size_word(float(size)) for size in curves.value.index]
    axes.set_xticks(np.arange(len(sizes)) + 0.5, sizes, fontsize=7)
    for (y, x), share in np.ndenumerate(cells):
        if np.isfinite(share):
            colour = ink(colormaps["YlGnBu"](float(min(share, 1.0))))
            axes.text(x + 0.5, y + 0.5, f"{100 * share:.0f}", ha="center", va="center", fontsize=7, color=colour)
    of = "the bound" if len(curves.bound) else "the best value"
    axes.set_title(f"share of {of} [%]", fontsize=9, loc="left")
