"""The picture that the page of findings opens with: published figures over ours, a row a finding."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from synth.findings.evidence import Shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = (
    "The published figure over ours, for every finding that has both: the dot is the median of its cases, the line "
    "leads from the least to the most. Right of 1 ours is lower."
)


def ratios(one: Shown) -> list[float]:
    """The published figure over ours, of every case that has both."""
    return sorted(ratio for held in one.held if (ratio := held.ratio) is not None and ratio > 0)


def draw(told: Sequence[Shown]) -> Figure | None:
    """A row a finding, the largest ratio on top; None where no finding has any."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    rows = sorted(((one.finding.name, ratios(one)) for one in told if ratios(one)), key=lambda row: max(row[1]))
    if not rows:
        return None
    figure = Figure(figsize=(7.5, 1.0 + 0.2 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for number, (_, values) in enumerate(rows):
        axes.plot([values[0], values[-1]], [number, number], color="#1f6fb4", linewidth=2, alpha=0.5)
        axes.plot(median(values), number, "o", color="#000000", markersize=4)
    axes.axvline(1.0, color="#767676", linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    least, most = min(values[0] for _, values in rows), max(values[-1] for _, values in rows)
    axes.set_xticks([tick for tick in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if least / 2 <= tick <= 2 * most])
    axes.xaxis.minorticks_off()
    axes.set_yticks(range(len(rows)), [f"{name} ({len(values)})" for name, values in rows], fontsize=7)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.grid(axis="x", linewidth=0.4, alpha=0.5)
    axes.set_xlabel("published figure / ours")
    return figure
