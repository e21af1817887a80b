"""How time and memory grow with the size of the machine: fitted powers, in words and drawn.

Powers are fitted to what comes on top of the smallest run of a table, whose time and memory are those of the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import offset_copy

from synth.views.figure_style import MOST_LINES, current, legend_in, looks, panels

SECONDS, MEMORY = "seconds", "memory, MB"  # the columns that every table has
BELOW_PT = 40  # room for ticks and their label between a panel and its legend
GROWN = 1.2  # times as much at the largest size as at the smallest: of less no power is fitted


@dataclass(frozen=True)
class Growth:
    """A row a run: the column ``series`` names its line, ``size`` counts its nodes; from ``fitted`` nodes on a power is
    fitted."""

    table: pd.DataFrame
    series: str
    size: str
    fitted: int

    def in_words(self) -> list[str]:
        """The fitted exponents, a sentence a line."""
        lines = []
        for name, rows in self._lines():
            powers = []
            for column, word in ((SECONDS, "time"), (MEMORY, "memory")):
                exponent = self._exponent(name, column)
                if exponent is not None:
                    powers.append(f"{word} grows as N^{exponent:.2f}")
            if powers:
                lines.append(f"`{name}`: {', '.join(powers)}, up to {rows[self.size].max()} {self.size}.")
        return lines

    def draw(self) -> Figure:
        """Two panels, time and memory over nodes, both axes logarithmic; the first lines, as can be told apart."""
        figure = plt.figure(figsize=(11, 5), layout="constrained")
        lines = self._lines()[:MOST_LINES]
        styles = looks([name for name, _ in lines])
        for axes, (column, title) in zip(panels(figure, 2), ((SECONDS, "time, s"), (MEMORY, MEMORY)), strict=True):
            for name, rows in lines:
                exponent = self._exponent(name, column)
                label = name if exponent is None else f"{name}: $N^{{{exponent:.2f}}}$"
                axes.plot(rows[self.size], rows[column], label=label, **styles[name])
            axes.set(xscale="log", yscale="log", xlabel=self.size, ylabel=title)
            nodes = self._ticks()
            axes.set_xticks(nodes, [f"{count:,}" for count in nodes])
            axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda amount, _: f"{amount:,g}"))
            axes.yaxis.set_minor_locator(NullLocator())
            below = offset_copy(axes.transAxes, figure, y=-BELOW_PT, units="points")
            at = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": below, "borderaxespad": 0}
            legend_in(figure, 0.98 if current().narrow else 0.47, 2, partial(_legend, axes, at))
        return figure

    def _ticks(self) -> list[int]:
        """Sizes of the table, the smallest first, each at least twice the one before, over wide ranges four times."""
        sizes = sorted(set(self.table[self.size].tolist()))
        apart = 2 if sizes[-1] <= 16 * sizes[0] else 4
        kept = sizes[:1]
        for size in sizes:
            if size >= apart * kept[-1]:
                kept.append(size)
        return kept

    def _lines(self) -> list[tuple[str, pd.DataFrame]]:
        ordered = self.table.groupby(self.series, sort=False)
        return [(str(name), rows.sort_values(self.size)) for name, rows in ordered]

    def _exponent(self, name: str, column: str) -> float | None:
        """Of the power of the nodes that fits best in logarithms; None where fewer than three sizes are left, or where
        next to nothing grows."""
        rows = dict(self._lines())[name]
        if rows[column].iloc[-1] < GROWN * rows[column].iloc[0]:
            return None
        more = rows[column] - self.table[column].min()
        kept = (rows[self.size] >= self.fitted) & (more > 0)
        return _slope(rows[self.size][kept], more[kept]) if kept.sum() > 2 else None


def _legend(axes: Any, at: dict[str, Any], columns: int) -> Any:
    return axes.legend(ncols=columns, **at)


def _slope(nodes: Any, values: Any) -> float:
    return float(np.polyfit(np.log(nodes), np.log(values), 1)[0])
