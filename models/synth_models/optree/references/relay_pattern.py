"""One item's way round the ring under a budget of wavelength-hops per step: the heart of ``relay``.

All items follow the same way, rotated, so a step may use at most as many hops of one item per direction as there are
wavelengths (``capacities``). The way is mirror-symmetric, so half
of it is planned: the *middle gap*, whose two ends move towards each other, and the gaps left behind the clockwise
frontier; clockwise and counterclockwise hops of the half together are the clockwise hops of the whole.

Step by step the prices of the remaining steps are computed again
(:class:`synth_models.optree.parts.carrying_cost.Prices`), and a knapsack over all gaps chooses the new holders that
leave the cheapest rest for exactly the hops of this step.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isqrt
from typing import NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit
from synth.options import RunOptions
from synth_models.optree.parts.carrying_cost import Prices, price
from synth_models.optree.parts.cutting_planes import INFINITE

RESOLVES = 24  # how often, at most, prices are computed again while planning
FEWER_HOPS = 10  # capacities that are tried in a step whose circuits do not fit
Fits = Callable[[list[int]], bool]


Ends = tuple[list[int], list[int]]
"""Ascending hops of the circuits from the two ends of a gap."""


class Reception(NamedTuple):
    """Item 0 goes from ``src`` to ``dst``, offsets from its origin, over so many hops."""

    step: int
    src: int
    dst: int
    hops: int
    clockwise: bool


@dataclass
class Pattern:
    """Receptions of item 0. If ``mirrored``, those on its clockwise half and the middle, whose mirror images give the
    other half; a reception at ``N/2`` has none."""

    nodes: int
    rows: list[Reception] = field(default_factory=list)
    mirrored: bool = True

    @property
    def steps(self) -> int:
        """The last step of a reception."""
        return max((row.step for row in self.rows), default=0)

    def whole(self) -> list[Reception]:
        """All N-1 receptions of item 0."""
        n = self.nodes
        if not self.mirrored:
            return self.rows
        mirrored = [Reception(t, -u % n, -v % n, h, not cw) for t, u, v, h, cw in self.rows if 2 * v != n]
        return self.rows + mirrored


def usable_hops(capacity: int, max_hops: int) -> int:
    """Circuits worth considering: a step whose hops all go into leaps to 1, 2, 3, … reaches sqrt(8 * capacity)."""
    return max(1, min(max_hops, 8 + 4 * isqrt(8 * capacity), capacity))


def find_pattern(
    nodes: int, capacities: list[int], max_hops: int, options: RunOptions, fits: Fits | None = None
) -> Pattern | None:
    """A pattern with at most ``capacities[t]`` hops per direction in step ``t+1``, or None if none is found.

    ``fits`` tells whether circuits of these hops, from every node, can have wavelengths: a step whose circuits do not
    fit gets fewer hops, up to ``FEWER_HOPS``.
    """
    horizon, reach = len(capacities), usable_hops(max(capacities), max_hops)
    plan = _Plan(Pattern(nodes), nodes)
    prices: FloatArray = np.full(horizon, 1 / horizon)
    every = max(1, -(-horizon // RESOLVES))
    for step in range(1, horizon + 1):
        if options.out_of_time():
            return None
        if (step - 1) % every == 0 and (counts := plan.gap_counts()):
            renewed = _renewed(prices[step - 1 - horizon :], counts, reach)
            if renewed.cost > 2 * max(capacities) + 1e-6:
                return None  # even a mixture of ways does not fit: this horizon is lost
            prices, resolved = renewed.prices, step
        later = renewed.rest[step - resolved + 1]  # gaps only shrink, so this covers them until prices are renewed
        lengths = [length for _, length in plan.gaps]
        chosen = _choose_fitting(later, capacities[step - 1], reach, plan.middle, lengths, fits)
        if chosen is None:
            return None
        plan.receive(step, chosen)
    return plan.pattern if plan.filled else None


@dataclass
class _Plan:
    """What is planned of a way: its receptions, and the gaps that they leave.

    ``middle`` is the length of the middle gap and ``start`` the node at its clockwise end; ``gaps`` are those behind
    the clockwise frontier: the node at the counterclockwise end, and the length.
    """

    pattern: Pattern
    middle: int
    start: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)

    @property
    def filled(self) -> bool:
        """Whether no gap is left."""
        return not self.gaps and self.middle <= 1

    def gap_counts(self) -> dict[int, int]:
        """How many gaps of each length there are on the whole ring."""
        counts = {self.middle: 1} if self.middle > 1 else {}
        for _, length in self.gaps:
            counts[length] = counts.get(length, 0) + 2
        return counts

    def receive(self, step: int, chosen: Sequence[Ends]) -> None:
        """Add the receptions of a step; the middle gap's are the last."""
        nodes, rows = self.pattern.nodes, self.pattern.rows
        left: list[tuple[int, int]] = []
        for (node, length), (ahead, behind) in zip([*self.gaps, (self.start, self.middle)], chosen, strict=True):
            for hops in ahead:
                rows.append(Reception(step, node, (node + hops) % nodes, hops, True))
            for hops in behind:
                rows.append(Reception(step, (node + length) % nodes, (node + length - hops) % nodes, hops, False))
            stops = [0, *ahead]
            if node == self.start and length == self.middle:
                self.start, self.middle = node + stops[-1], max(0, length - 2 * stops[-1])
            else:
                stops += [*[length - hops for hops in reversed(behind)], length]
            left += [(node + a, b - a) for a, b in itertools.pairwise(stops) if b - a > 1]
        self.gaps = left


class _Renewed(NamedTuple):
    """Prices of the remaining steps, what all gaps cost at them at least if the steps' prices add up to 1, and the
    least cost ``rest[t, length]`` of a gap from the t-th of these steps on."""

    prices: FloatArray
    cost: float
    rest: FloatArray


def _renewed(prices: FloatArray, counts: dict[int, int], reach: int) -> _Renewed:
    """Compute the prices of the remaining steps again, from the ones so far, shape (steps,)."""
    search = Prices(counts, len(prices), reach)
    search.best = prices / prices.sum()
    search.settle(40, 0.002)
    prices = 0.97 * search.best + 0.03 / len(prices)
    rest, _, _ = price(max(counts), prices, reach)
    return _Renewed(prices, search.cost, rest)


def _choose_fitting(
    later: FloatArray, capacity: int, reach: int, middle: int, gaps: list[int], fits: Fits | None
) -> list[Ends] | None:
    """:func:`_choose` with the most hops with which the circuits fit; with the fewest tried where none do."""
    chosen = None
    for allowed in range(capacity, max(0, capacity - FEWER_HOPS), -1):
        chosen = _choose(later, allowed, reach, middle, gaps)
        if chosen is None or fits is None or fits([hops for ends in chosen for end in ends for hops in end]):
            break
    return chosen


def _choose(later: FloatArray, capacity: int, reach: int, middle: int, gaps: list[int]) -> list[Ends] | None:
    """Per gap (the middle one last) the hops of the circuits from its two ends, or None when nothing fits."""
    widest = max([2, *gaps])
    one, one_from = _one_end(later, capacity, min(reach, max(widest - 1, middle // 2)))
    two, two_x, two_b = _two_ends(one, min(widest - 1, 2 * (len(one) - 1)), capacity)
    kinds = sorted(set(gaps))
    tables = np.full((len(kinds) + 1, capacity + 1), INFINITE)
    picks = np.zeros((len(kinds) + 1, capacity + 1), np.int64)
    for row, length in enumerate(kinds):
        for s in range(min(length, len(two))):
            value = two[s] + later[length - s]
            better = value < tables[row]
            tables[row][better], picks[row][better] = value[better], s
    for x in range(min(len(one) - 1, middle // 2) + 1):
        left = middle - 2 * x
        value = one[x] + (later[left] / 2 if left > 1 else 0.0)
        better = value < tables[-1]
        tables[-1][better], picks[-1][better] = value[better], x
    index = {length: row for row, length in enumerate(kinds)}
    order = np.array([index[length] for length in gaps] + [len(kinds)], dtype=np.int64)
    spent = _knapsack(tables, order, capacity)
    if spent is None or spent[0] < 0:
        return None
    chosen: list[Ends] = []
    for place, row in enumerate(order):
        b, pick = int(spent[place]), int(picks[row, spent[place]])
        if place == len(gaps):
            chosen.append((_trace(one_from, pick, b), []))
        else:
            x, used = int(two_x[pick, b]), int(two_b[pick, b])
            chosen.append((_trace(one_from, x, used), _trace(one_from, pick - x, b - used)))
    return chosen


def _trace(one_from: IntArray, x: int, b: int) -> list[int]:
    """Ascending hops of the circuits from one end, the last ``x``, in sum ``b``."""
    hops: list[int] = []
    while x > 0:
        hops.append(x)
        x, b = int(one_from[x, b]), b - x
    return hops[::-1]


@jit
def _one_end(later: FloatArray, capacity: int, reach: int) -> tuple[FloatArray, IntArray]:
    """Cheapest rest behind new holders up to ``x`` whose circuits use exactly ``b`` hops, and the holder before."""
    one = np.full((reach + 1, capacity + 1), INFINITE)
    before = np.zeros((reach + 1, capacity + 1), np.int64)
    one[0, 0] = 0.0
    for x in range(1, reach + 1):
        for b in range(x, capacity + 1):
            for p in range(x):
                if one[p, b - x] < INFINITE:
                    cost = one[p, b - x] + later[x - p]
                    if cost < one[x, b]:
                        one[x, b], before[x, b] = cost, p
    return one, before


@jit
def _two_ends(one: FloatArray, most: int, capacity: int) -> tuple[FloatArray, IntArray, IntArray]:
    """The same from both ends, new holders ``s`` from the ends in sum; with the first end's share of ``s`` and hops."""
    reach = len(one) - 1
    two = np.full((most + 1, capacity + 1), INFINITE)
    share_x, share_b = np.zeros((most + 1, capacity + 1), np.int64), np.zeros((most + 1, capacity + 1), np.int64)
    for s in range(most + 1):
        for x in range(max(0, s - reach), min(s // 2, reach) + 1):
            for b1 in range(x, capacity + 1):
                if one[x, b1] >= INFINITE:
                    continue
                for b2 in range(s - x, capacity + 1 - b1):
                    cost = one[x, b1] + one[s - x, b2]
                    if cost < two[s, b1 + b2]:
                        two[s, b1 + b2], share_x[s, b1 + b2], share_b[s, b1 + b2] = cost, x, b1
    return two, share_x, share_b


@jit
def _knapsack(tables: FloatArray, order: IntArray, capacity: int) -> IntArray:
    """Hops for every entry of ``order`` (a row of ``tables``) with the least sum, all within ``capacity``; a first
    entry of -1 says that nothing fits."""
    count = len(order)
    best = np.zeros(capacity + 1)
    choice = np.zeros((count, capacity + 1), np.int32)
    for i in range(count):
        row = tables[order[i]]
        following = np.full(capacity + 1, INFINITE)
        for b in range(capacity + 1):
            if row[b] >= INFINITE:
                continue
            for c in range(b, capacity + 1):
                cost = best[c - b] + row[b]
                if cost < following[c]:
                    following[c], choice[i, c] = cost, b
        best = following
    spent = np.full(count, np.int64(-1))
    left = int(np.argmin(best))
    if best[left] >= INFINITE / 2:
        return spent
    for i in range(count - 1, -1, -1):
        spent[i] = choice[i, left]
        left -= spent[i]
    return spent
