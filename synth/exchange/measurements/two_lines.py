"""Whether one latency and bandwidth explain a series, and two of them, below and above a size, where they do not.

A sample is explained where its time is within 10 % of the line, or within three times the noise, which is told from
how neighbouring sizes scatter, so that a line through the wrong places is no noise. Two lines are what a library that
changes its protocol or algorithm at a size shows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray
from synth.errors import Fault, InputError
from synth.exchange.measurements.fitting import Fit, first_residuals, fitted
from synth.exchange.measurements.series import FEWEST_SIZES, Algorithm, Series, checked

TOLERANCE = 0.1
NOISES = 3.0
ENOUGH = 0.9  # of the samples explained
GAIN = 0.05  # of the samples: what two lines must explain more
MOST_WRONG = 0.5  # in logarithms, from which on a sample is wrong and no matter how much


class TwoLines(NamedTuple):
    """``small`` fits sizes up to ``last`` bytes, ``large`` those from ``first`` on; ``one`` line explains that part of
    the samples, ``both`` that one."""

    small: Fit
    large: Fit
    last: int
    first: int
    one: float
    both: float


def explained(series: Series, fit: Fit) -> float:
    """The part of the samples that the fit of this one series explains."""
    residual = _residual(fit)
    return float(np.mean(np.abs(residual) <= _tolerance(series, residual)))


def two_lines(series: Series, fit: Fit, algorithm: Algorithm) -> TwoLines | None:
    """Two lines where the fit of the series explains too little and they explain more; else None."""
    sizes = np.unique(series.size)
    one = explained(series, fit)
    if one >= ENOUGH or len(sizes) < 2 * FEWEST_SIZES:
        return None
    tolerance = _tolerance(series, _residual(fit))
    wrong: dict[int, float] = {}
    for first in sizes[FEWEST_SIZES : len(sizes) - FEWEST_SIZES + 1].tolist():
        halves = _halves(series, first)
        residual = np.concatenate([first_residuals(half, algorithm) for half in halves])
        wrong[first] = float(np.minimum(np.abs(residual), MOST_WRONG).sum())
    first = min(wrong, key=lambda size: wrong[size])
    small, large = (fitted([half], algorithm) for half in _halves(series, first))
    both = float(np.mean(np.abs(np.concatenate([_residual(small), _residual(large)])) <= tolerance))
    last = int(sizes[sizes < first].max())
    return TwoLines(small, large, last, first, one, both) if both >= one + GAIN else None


def _halves(series: Series, first: int) -> tuple[Series, Series]:
    """The samples below a size, and from it on."""
    below = series.size < first
    return part_of(series, below), part_of(series, ~below)


def of_sizes(series: Series, least: int | None, most: int | None, fewest: int = FEWEST_SIZES) -> Series:
    """The samples of sizes ``least`` to ``most`` (None: any), of the other place too. Raises :class:`InputError` where
    fewer than ``fewest`` are left."""
    if least is None and most is None:
        return series
    low, high = least or 0, most if most is not None else int(series.size.max())
    kept = (series.size >= low) & (series.size <= high)
    if not kept.any():
        words = f"leave none of the sizes {series.size.min()} to {series.size.max()}"
        raise InputError([Fault("--from, --to", words)], series.source)
    aside = series.aside
    if aside is not None:
        aside = part_of(aside, (aside.size >= low) & (aside.size <= high))
    return checked(replace(part_of(series, kept), aside=aside), fewest)


def part_of(series: Series, mask: BoolArray) -> Series:
    """The samples of a mask, shape (samples,)."""
    return replace(series, size=series.size[mask], seconds=series.seconds[mask], lines=series.lines[mask])


def _residual(fit: Fit) -> FloatArray:
    """Logarithms of measured over fitted times."""
    found: FloatArray = np.log1p(fit.residuals[0].relative)
    return found


def _tolerance(series: Series, residual: FloatArray) -> float:
    """How far a sample may be off, in logarithms: the noise by the median of second differences over sizes."""
    ordered = residual[np.argsort(series.size, kind="stable")]
    bends = np.abs(np.diff(ordered, 2))
    noise = 1.4826 * float(np.median(bends)) / np.sqrt(6) if len(bends) else 0.0
    return max(TOLERANCE, NOISES * noise)
