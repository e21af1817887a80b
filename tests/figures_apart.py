"""What holds of every figure that people read, tried on the figure itself."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

MOST = 6
LEAST_GREY = 0.12  # of lightness between two lines of the same dashes and marker


def can_be_told_apart(figure: Figure) -> None:
    """At most six lines a panel besides the bound's, any two apart without their colours; no legend over a panel; no
    ticks in powers of ten."""
    FigureCanvasAgg(figure).draw()
    for axes in figure.axes:
        ticks = [tick.get_text() for tick in (*axes.get_xticklabels(), *axes.get_yticklabels())]
        assert not [text for text in ticks if "^{" in text], ticks
        lines = [line for line in axes.get_lines() if len(line.get_xdata()) > 1 and not _is_bound(line)]
        labelled = [line for line in lines if not str(line.get_label()).startswith("_")] or lines
        assert len({_look(line) for line in labelled}) <= MOST, axes.get_title()
        by_label: dict[Any, Any] = {_name(line): line for line in labelled}
        for one, other in combinations(by_label.values(), 2):
            assert _look(one)[:2] != _look(other)[:2] or abs(_grey(one) - _grey(other)) > LEAST_GREY, axes.get_title()
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend() is not None)]
    for legend in legends:
        box = legend.get_window_extent()
        for axes in figure.axes:
            data = axes.get_window_extent()
            assert not box.padded(-1).overlaps(data.padded(-1)), f"a legend over {axes.get_title()!r}"


def _is_bound(line: Any) -> bool:
    return str(line.get_label()) == "bound"


def _name(line: Any) -> Any:
    """A line's label; without one its look: lines alike in all are parts of one drawing."""
    label = str(line.get_label())
    return _look(line) if label.startswith("_") else label


def _look(line: Any) -> tuple[str, str, str]:
    return str(line.get_linestyle()) + str(line._unscaled_dash_pattern), str(line.get_marker()), str(line.get_color())


def _grey(line: Any) -> float:
    return float(np.dot(to_rgb(line.get_color()), (0.299, 0.587, 0.114)))
