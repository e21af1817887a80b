"""The picture of a library's page: how near to closed the instances of every family are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from synth.library.best_known import Row

NAME = "pictures/library.png"
CLOSED, WIDER, UNKNOWN = "closed", "20 % or more", "no value or no bound"
GAPS = (("gap below 1 %", 0.01), ("1 to 5 %", 0.05), ("5 to 20 %", 0.2))  # what each is called, and below what it ends
CLASSES = (CLOSED, *(name for name, _ in GAPS), WIDER, UNKNOWN)
COLOURS = ("#08306b", "#2171b5", "#6baed6", "#bdd7e7", "#fdae6b", "#ffffff")  # apart in grey, too
LEAST_LABELLED = 0.035  # of the axis: what a number needs


def gap_class(row: Row) -> str:
    """Which of :data:`CLASSES` an instance is in."""
    if row.status == CLOSED:
        return CLOSED
    if not (row.value and row.bound):
        return UNKNOWN
    return next((name for name, end in GAPS if float(row.gap) < end), WIDER)


def counts(rows: Sequence[Row]) -> dict[str, Counter[str]]:
    """How many instances of every family, in the order of their names, are in which of :data:`CLASSES`."""
    return {
        one: Counter(gap_class(row) for row in rows if row.family == one) for one in sorted({r.family for r in rows})
    }


def draw(rows: Sequence[Row]) -> Any:
    """Return a figure: a bar a family, cut into the shares of its instances in each of :data:`CLASSES`."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    from synth.views.figure_style import legend_below

    found = counts(rows)
    names = [f"{family} ({own.total()})" for family, own in found.items()]
    figure = Figure(figsize=(7.5, 1.1 + 0.36 * len(found)), layout="constrained")
    axes = figure.subplots()
    left = [0.0] * len(found)
    for one, colour in zip(CLASSES, COLOURS, strict=True):
        shares = [own[one] / own.total() for own in found.values()]
        hatch = "////" if one == UNKNOWN else None
        bars = axes.barh(
            names, shares, left=left, color=colour, edgecolor="#404040", linewidth=0.5, hatch=hatch, label=one
        )
        labels = [
            str(own[one]) if share >= LEAST_LABELLED else "" for own, share in zip(found.values(), shares, strict=True)
        ]
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if hatch else None
        written = axes.bar_label(bars, labels=labels, label_type="center", fontsize=8, bbox=box)
        for text in written:
            text.set_color("white" if one in CLASSES[:2] else "black")
            text.set_visible(bool(text.get_text()))
        left = [start + share for start, share in zip(left, shares, strict=True)]
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="share of the family's instances", title="How near value and bound are, by family")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.spines[["top", "right"]].set_visible(False)
    legend_below(figure, axes.get_legend_handles_labels()[0], 6, fontsize="small", handlelength=1.2, columnspacing=1.0)
    return figure
