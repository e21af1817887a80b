"""Pictures of what is in use when, such that nothing in use is ever drawn as idle, however much there is of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from synth.arrays import FloatArray

LEAST = 1e-6  # the share that a bin has at least in which anything is in use
ROWS, COLUMNS = 500, 700  # cells of a picture that have a pixel each


def busy_share(row: Any, begin: Any, end: Any, rows: int, horizon: float, bins: int = COLUMNS) -> FloatArray:
    """The share of every time bin in which a row is in use; shape (rows, bins), at most 1, 0 only where nothing is.

    ``row``, ``begin``, ``end``: shape (n,), intervals [begin, end) in any unit within [0, horizon]; those of one row do
    not overlap. The horizon is > 0 and divided into equal bins.
    """
    row = np.asarray(row, dtype=np.int64)
    begin, end = (np.asarray(values, dtype=np.float64) * (bins / horizon) for values in (begin, end))
    there = end > begin
    row, begin, end = row[there], np.clip(begin[there], 0, bins), np.clip(end[there], 0, bins)
    slope, touched = np.zeros((rows, bins + 2)), np.zeros((rows, bins + 2), dtype=np.int64)
    for sign, at in ((1.0, begin), (-1.0, end)):  # use up to a time, as a sum of ramps
        first = np.minimum(at.astype(np.int64), bins)
        np.add.at(slope, (row, first), sign * (first + 1 - at))
        np.add.at(slope, (row, first + 1), sign * (at - first))
    np.add.at(touched, (row, np.minimum(begin.astype(np.int64), bins - 1)), 1)
    np.add.at(touched, (row, np.maximum(np.ceil(end).astype(np.int64), 1)), -1)
    share = np.clip(np.cumsum(slope, axis=1), LEAST, 1.0)
    found: FloatArray = np.where(np.cumsum(touched, axis=1) > 0, share, 0.0)[:, :bins]
    return found


def folded(chart: npt.NDArray[Any], rows: int = ROWS, columns: int = COLUMNS) -> npt.NDArray[Any]:
    """A chart of at most so many cells: each is the largest of the cells in its place, NaN (idle) only if all are. An
    image of more cells than pixels would show some and drop the others."""
    for axis, most in ((0, rows), (1, columns)):
        cells = chart.shape[axis]
        if cells > most:
            chart = np.fmax.reduceat(chart, np.arange(most) * cells // most, axis=axis)
    return chart
