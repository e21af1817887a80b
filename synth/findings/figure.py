"""Pictures of findings: all of them, published figures over ours, and the cases of one as shares of the published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from synth.findings.evidence import Held, Shown
from synth.reproduction.printed import below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = (
    "The published figure over ours, for every finding that has both: the dot is the median of its cases, the line "
    "leads from the least to the most. Right of 1 ours is lower."
)
CASES_CAPTION = "Ours and the proven bound as shares of the published figure, which is the dashed line."
WITHOUT_BOUND = "Ours as a share of the published figure, which is the dashed line."
FEWEST = 4  # cases that make a picture: of fewer the table is one
NAMED = 24  # cases that stand beside their rows; more are sorted and counted


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


def draw_cases(one: Shown) -> Figure | None:
    """A row a case: ours as a dot, the bound as a tick, both over the published figure; None where the table says as
    much: of few cases, and where all are alike."""
    from matplotlib.figure import Figure

    cases = sorted((held for held in one.held if held.printed and held.value), key=_share)
    if len(cases) < FEWEST or not below(_share(cases[0]), _share(cases[-1])):
        return None
    named = len(cases) <= NAMED
    figure = Figure(figsize=(7.5, 1.1 + 0.24 * len(cases) if named else 3.6), layout="constrained")
    axes = figure.subplots()
    size = 5 if named else 3
    axes.plot([_share(held) for held in cases], range(len(cases)), "o", color="#1f6fb4", markersize=size, label="ours")
    if one.on_bound:
        bounds = [held.least / held.printed if held.least and held.printed else math.nan for held in cases]
        axes.plot(bounds, range(len(cases)), "|", color="#000000", markersize=2 * size - 1, label="bound")
    axes.axvline(1.0, color="#767676", linewidth=0.8, linestyle="--", label="published")
    _scale(axes, _share(cases[0]), _share(cases[-1]))
    if named:
        axes.set_yticks(range(len(cases)), [held.case.what for held in cases], fontsize=8)
    else:
        axes.set_yticks(())
        axes.set_ylabel(f"{len(cases)} cases, sorted")
    axes.set_ylim(-0.7, len(cases) - 0.3)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1 + 0.4 / figure.get_figheight()), ncols=3, frameon=False)
    return figure


def _scale(axes: Any, least: float, most: float) -> None:
    """The axis of shares: logarithmic where they are far apart."""
    from matplotlib.ticker import FuncFormatter

    if most > 3 * least:
        axes.set_xscale("log")
        axes.set_xticks([tick for tick in (0.05, 0.1, 0.2, 0.5, 1, 2, 5) if least < tick <= most or tick == 1])
        axes.xaxis.minorticks_off()
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(axis="x", linewidth=0.4, alpha=0.5)
    axes.set_xlabel("share of the published figure")


def _share(held: Held) -> float:
    assert held.value is not None
    assert held.printed is not None
    return held.value / held.printed
