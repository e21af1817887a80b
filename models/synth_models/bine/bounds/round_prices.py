"""Prices of rounds: a lower bound on the crossings of a tree in T rounds, the dual of the flow in ``programs/tree``.

Let a part (a group) hold x informed ranks before round t, i ranks of it enter in that round (are informed from outside)
and o of its informed ranks inform others outside. A crossing leaves one part and enters another, so over all parts the
sums of i and o are equal in every round, and any price m_t on their difference adds nothing to the cost of a tree:

    crossings = sum over parts and rounds of  i + m_t (i - o).

Every part alone takes at least what it would take if it could choose x freely: the informed of the part double at most,
so from x to y informed ranks, d = y - 2x, at least max(0, d) enter. Where p = 2^T every informed rank must inform
another in every round (they double at most, p = 2^T in the end), so i - o = d exactly, for prices of any sign. Where
p < 2^T ranks may be idle: then i - o >= d, which is enough for prices m_t >= 0. So the least cost of

    sum over rounds of  max(0, d) + m_t d

from 0 informed ranks (the root's part: 1) to the whole part, a shortest path over (round, informed ranks), summed over
parts and rounded up, is a bound. A reduce is a broadcast backwards. The best prices are found by Kelley's cutting
planes: the bound is concave in the prices, and each part's shortest path gives a row. They are rounded to multiples of
1/scale, for which everything is whole numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.arrays import SOLVED, FloatArray, IntArray
from synth.kernels import jit
from synth.options import RunOptions
from synth.solvers.lp import linprog

SCALE = 2**20
MOST_PART, MOST_ROUNDS = 4096, 64  # beyond these only prices of zero are tried, which count parts
HIGHEST = 2000.0  # of a price: twice that of the following round while ranks double; the check takes below 2048
ITERATIONS = 300
_NEVER = 2**62
_linprog: Any = linprog


def best_prices(sizes: npt.NDArray[Any], root: int, rounds: int, options: RunOptions) -> tuple[int, list[int]]:
    """Crossings that no tree in ``rounds`` rounds over parts of these sizes can do with less, from a rank of part
    ``root``, and the prices times :data:`SCALE` that prove it, one a round."""
    zero = [0] * rounds
    if len(sizes) == 1 or int(sizes.max()) > MOST_PART or rounds > MOST_ROUNDS:
        return len(sizes) - 1, zero
    parts = Counter((int(size), int(part == root)) for part, size in enumerate(sizes))
    lowest = -HIGHEST if int(sizes.sum()) == 1 << rounds else 0.0
    best, chosen = len(sizes) - 1, zero
    prices, tried = np.zeros(rounds, dtype=np.int64), np.zeros(rounds, dtype=np.int64)
    least, rows, right = -math.inf, list[FloatArray](), list[float]()
    for _ in range(ITERATIONS):
        total = _cut(parts, tried, rows, right)
        if total > least:
            least, prices = total, tried
            if -(-total // SCALE) > best:
                best, chosen = -(-total // SCALE), tried.tolist()
        found = _linprog(
            -np.array([0.0] * rounds + [float(many) for many in parts.values()]),
            A_ub=np.array(rows),
            b_ub=np.array(right),
            bounds=[(lowest, HIGHEST)] * rounds + [(-1e9, 1e9)] * len(parts),
            method="highs",
        )
        most = -float(found.fun) if found.status == 0 else -math.inf  # of all prices
        if best >= math.ceil(most - SOLVED) or most * SCALE - least < 1.0 or options.out_of_time():
            break
        near = np.rint(found.x[:rounds] * SCALE).astype(np.int64)
        tried = near if not np.array_equal(near, tried) else (near + prices) // 2
    return best, chosen


def _cut(parts: Counter[tuple[int, int]], prices: IntArray, rows: list[FloatArray], right: list[float]) -> int:
    """Append the row and right side that every part's cheapest path at these prices gives; their cost, times SCALE."""
    total, rounds = 0, len(prices)
    for k, ((size, start), many) in enumerate(parts.items()):
        value, balance, entered = _cheapest(size, start, prices, SCALE)
        total += many * int(value)
        row = np.zeros(rounds + len(parts))
        row[:rounds], row[rounds + k] = -balance, 1.0
        rows.append(row)
        right.append(float(entered))
    return total


@jit
def _cheapest(size: int, start: int, prices: IntArray, scale: int) -> tuple[int, IntArray, int]:
    """Least cost of a part, times ``scale``; of a cheapest path d in every round, and how many enter."""
    rounds = len(prices)
    cost = np.full(size + 1, _NEVER)
    cost[start] = 0
    came = np.zeros((rounds, size + 1), dtype=np.int64)
    for t in range(rounds):
        following = np.full(size + 1, _NEVER)
        for x in range(size + 1):
            if cost[x] == _NEVER:
                continue
            for y in range(x, size + 1):
                d = y - 2 * x
                paid = cost[x] + max(0, d) * scale + prices[t] * d
                if paid < following[y]:
                    following[y] = paid
                    came[t, y] = x
        cost = following
    balance, entered, y = np.zeros(rounds, dtype=np.int64), 0, size
    for t in range(rounds - 1, -1, -1):
        x = came[t, y]
        balance[t] = y - 2 * x
        entered += max(0, y - 2 * x)
        y = x
    return cost[size], balance, entered
