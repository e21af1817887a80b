"""Birkhoff–von Neumann decomposition of a square matrix of bytes, in exact whole numbers.

The matrix is filled up until all rows and columns have the sum of the largest one, R; it is then R times a convex
combination of permutations (Birkhoff 1946; for switches Inukai 1979). Permutations are taken out one after the other,
each for as long as its smallest entry lasts: first those of entries of at least a power of two, which keeps them few
(Solstice, Liu et al., CoNEXT 2015). The stages together last R: the busiest sender or receiver needs as long.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit


class Stages(NamedTuple):
    """``target[k, b]``: whom sender b sends to in stage k; ``length[k]``: bytes for which stage k lasts."""

    target: IntArray
    length: IntArray


@jit
def filled_up(matrix: IntArray) -> IntArray:
    """The matrix with so much added that all its rows and columns have the largest of their sums."""
    n = len(matrix)
    filled = matrix.copy()
    rows, columns = matrix.sum(axis=1), matrix.sum(axis=0)
    most = np.int64(0)
    for k in range(n):
        most = max(most, rows[k], columns[k])
    r, c = 0, 0
    while r < n and c < n:
        more = min(most - rows[r], most - columns[c])
        filled[r, c] += more
        rows[r] += more
        columns[c] += more
        if rows[r] == most:
            r += 1
        else:
            c += 1
    return filled


@jit
def decomposed(matrix: IntArray) -> Stages:
    """Permutations and lengths whose sum is :func:`filled_up` of the matrix, at most (n - 1)^2 + 1 of them.

    Complexity: a stage takes at most n augmentations of O(n^2).
    """
    n = len(matrix)
    left = filled_up(matrix)
    rest = left[0].sum() if n else np.int64(0)
    most = n * n + 2
    target, length = np.zeros((most, n), dtype=np.int64), np.zeros(most, dtype=np.int64)
    of_row, of_column = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    least: Any = np.int64(1)
    count = 0
    while least * 2 <= rest:
        least *= 2
    while rest > 0:
        if not _matched(left, least, of_row, of_column):
            least //= 2
            continue
        lasts = rest
        for r in range(n):
            lasts = min(lasts, left[r, of_row[r]])
        for r in range(n):
            target[count, r] = of_row[r]
            left[r, of_row[r]] -= lasts
        length[count] = lasts
        rest -= lasts
        count += 1
    return Stages(target[:count], length[:count])


@jit
def _matched(left: IntArray, least: int, of_row: IntArray, of_column: IntArray) -> bool:
    """Complete the matching over entries of at least ``least``, after entries below it have been taken out of it;
    False if there is no perfect one (the largest is then kept)."""
    n = len(left)
    for r in range(n):
        if of_row[r] >= 0 and left[r, of_row[r]] < least:
            of_column[of_row[r]] = -1
            of_row[r] = -1
    came, queue = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    perfect = True
    for r in range(n):
        perfect = perfect and (of_row[r] >= 0 or _augmented(left, least, of_row, of_column, r, came, queue))
    return perfect


@jit
def _augmented(
    left: IntArray, least: int, of_row: IntArray, of_column: IntArray, root: int, came: IntArray, queue: IntArray
) -> bool:
    """Match one more row, by breadth-first search for an augmenting path; False if there is none."""
    n = len(left)
    came[:] = -1
    queue[0] = root
    head, tail = 0, 1
    while head < tail:
        r = queue[head]
        head += 1
        for c in range(n):
            if came[c] >= 0 or left[r, c] < least:
                continue
            came[c] = r
            if of_column[c] >= 0:
                queue[tail] = of_column[c]
                tail += 1
                continue
            while True:
                row = came[c]
                before = of_row[row]
                of_row[row], of_column[c] = c, row
                if row == root:
                    return True
                c = before
    return False
