"""Rows of unequal lengths, one behind the other in one array: routes, and what transfers wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from synth.arrays import IntArray

Rows = tuple[IntArray, IntArray]  # ``start`` and ``flat``: row i is ``flat[start[i]:start[i + 1]]``


def starts(lengths: Any) -> IntArray:
    """Where rows of these lengths begin, and where the last one ends; shape (rows + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def rows_of(lists: Sequence[Sequence[int]]) -> Rows:
    """Lists as rows."""
    return starts([len(row) for row in lists]), np.array([value for row in lists for value in row], dtype=np.int64)


def picked(rows: Rows, chosen: IntArray) -> Rows:
    """The rows of these numbers, in this order."""
    start, flat = rows
    lengths = np.diff(start)[chosen]
    made = starts(lengths)
    return made, flat[np.arange(made[-1]) + np.repeat(start[chosen] - made[:-1], lengths)]
