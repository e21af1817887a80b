"""One item's way round the ring as a whole-number program, for few steps and where the planner's choices do not add up.

In step ``s`` the front of direction ``x`` leaps on by up to ``LEVELS`` circuits from where it stands, so it leaves as
many gaps; later steps fill a gap from its two ends, by up to ``DEEP`` nodes a step and end, 1, 2, … hops away. (The
planner in ``relay_pattern.py`` also leaps inside gaps, but does both directions alike.) Columns, all 0 or 1, code names
in brackets:

* ``u[s,x,k]`` (``leaps``): there is a gap ``k``, counted from the farthest; its links cost ``k`` hops each, for the
  leaps of gaps ``1..k`` run over them;
* ``y[s,x,k,t,d,j]`` (``fills``): step ``t > s`` fills a ``j``-th node in direction ``d``, at ``j`` hops; the gap gets
  one link longer.

The links of all gaps make the ring, and no step uses more hops of a direction than there are::

    sum u + sum y = N - 1                                                     (whole_ring)
    sum over k of k (u[t,d,k] + sum y[t,d,k,..])  +  sum j y[..,t,d,j] <= w   (capacity, for all t, d)
    sum over k of    u[t,d,k] + sum y[t,d,k,..]   <= longest circuit          (reach, for all t, d)
    u[.,k+1] <= u[.,k],  y[.,t,d,1] <= u[.],  y[.,j+1] <= y[.,j]              (in_turn)

The objective is random (by the seed), as many ways fit the hops and few of these get wavelengths. If the leaps of one
direction get some, the next try gives the other direction the same leaps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from synth.arrays import IntArray
from synth.options import RunOptions
from synth.solvers.rows import Term, ones
from synth.solvers.whole_point import whole_point
from synth.time_expanded.rows import sparse_rows
from synth_models.optree.references.relay_pattern import Pattern, Reception

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

MOST_STEPS = 12
LEVELS, DEEP = 3, 3
TRIES = 12
ANY_GAP = 100.0  # the first point will do
NODE_LIMIT = 2000  # of HiGHS' branch and bound, so that a result does not depend on the machine
Leap = tuple[int, int, int]  # step, direction (0 clockwise), gap counted from the farthest from 1
Fill = tuple[Leap, int, int, int]  # gap, step, direction, j
Fits = Callable[[Pattern], set[tuple[int, bool]]]


@dataclass
class Rows:
    """Linear constraints, row by row."""

    terms: list[list[Term]] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def add(self, low: float, terms: Iterable[Term], high: float) -> None:
        """``low <= sum of coefficient * column <= high``."""
        self.terms.append(list(terms))
        self.low.append(low)
        self.high.append(high)

    def constraint(self, columns: int) -> LinearConstraint:
        """All of them, for scipy."""
        from scipy.optimize import LinearConstraint

        return LinearConstraint(sparse_rows(self.terms, columns), self.low, self.high)


class Program:
    """The columns and rows for ``steps`` steps."""

    def __init__(self, nodes: int, wavelengths: int, max_hops: int, steps: int) -> None:
        self.nodes, self.steps = nodes, steps
        self.leaps: dict[Leap, int] = {}
        self.fills: dict[Fill, int] = {}
        for gap in itertools.product(range(steps), (0, 1), range(1, LEVELS + 1)):
            self.leaps[gap] = len(self.leaps)
        for gap in self.leaps:
            for t, d, j in itertools.product(range(gap[0] + 1, steps), (0, 1), range(1, min(DEEP, max_hops) + 1)):
                self.fills[gap, t, d, j] = len(self.leaps) + len(self.fills)
        self.columns = len(self.leaps) + len(self.fills)
        self.links = {gap: [column] for gap, column in self.leaps.items()}  # the columns that make a gap's links
        for fill, column in self.fills.items():
            self.links[fill[0]].append(column)
        self.rows = Rows()
        self.rows.add(nodes - 1, ones(range(self.columns)), nodes - 1)  # whole_ring
        for t, d in itertools.product(range(steps), (0, 1)):
            self._capacity(t, d, wavelengths)
            self.rows.add(0, ones(c for k in range(1, LEVELS + 1) for c in self.links[t, d, k]), max_hops)  # reach
        self._in_turn()

    def _capacity(self, t: int, d: int, wavelengths: int) -> None:
        terms: list[Term] = [(k, column) for k in range(1, LEVELS + 1) for column in self.links[t, d, k]]
        terms += [(j, column) for (_, at, way, j), column in self.fills.items() if (at, way) == (t, d)]
        self.rows.add(0, terms, wavelengths)

    def _in_turn(self) -> None:
        for (s, x, k), column in self.leaps.items():
            if k < LEVELS:
                self.rows.add(0, [(1, column), (-1, self.leaps[s, x, k + 1])], 1)
        for (gap, t, d, j), column in self.fills.items():
            before = self.leaps[gap] if j == 1 else self.fills[gap, t, d, j - 1]
            self.rows.add(0, [(1, before), (-1, column)], 1)

    def lengths(self, found: IntArray, step: int, direction: int) -> list[int]:
        """Links of the gaps that the leaps of a step and direction leave, the farthest first, ``LEVELS`` numbers."""
        return [round(sum(found[self.links[step, direction, k]])) for k in range(1, LEVELS + 1)]

    def keep(self, step: int, direction: int, lengths: list[int]) -> None:
        """From now on the leaps of the step and direction must leave gaps of these lengths."""
        for k, length in enumerate(lengths, 1):
            self.rows.add(length, ones(self.links[step, direction, k]), length)

    def solve(self, seed: int, options: RunOptions) -> IntArray | None:
        """A solution, shape (columns,), or None where there is none within the limits."""
        cost = np.random.default_rng(seed).random(self.columns)
        rows = [self.rows.constraint(self.columns)]
        return whole_point(cost, 1.0, rows, options, gap=ANY_GAP, node_limit=NODE_LIMIT)

    def pattern(self, found: IntArray) -> Pattern:
        """The receptions that a solution stands for."""
        pattern = Pattern(self.nodes, mirrored=False)
        by_gap: dict[Leap, list[Fill]] = {gap: [] for gap in self.leaps}
        for fill, column in self.fills.items():  # ordered by step and hops
            if found[column]:
                by_gap[fill[0]].append(fill)
        for x in (0, 1):
            front = 0
            for s in range(self.steps):
                place = front
                for k in range(LEVELS, 0, -1):
                    if found[self.leaps[s, x, k]]:
                        low, place = place, place + 1 + len(by_gap[s, x, k])
                        self._receive(pattern, s, x, front, place)
                        self._fill(pattern, x, low, place, by_gap[s, x, k])
                front = place
        return pattern

    def _fill(self, pattern: Pattern, x: int, low: int, high: int, fills: list[Fill]) -> None:
        for t, group in itertools.groupby(fills, key=lambda fill: fill[1]):
            ways = [d for _, _, d, _ in group]
            for j in range(1, ways.count(x) + 1):
                self._receive(pattern, t, x, low, low + j)
            for j in range(1, ways.count(1 - x) + 1):
                self._receive(pattern, t, x, high, high - j)
            low, high = low + ways.count(x), high - ways.count(1 - x)

    def _receive(self, pattern: Pattern, step: int, x: int, src: int, dst: int) -> None:
        sign = 1 if x == 0 else -1
        n = self.nodes
        hops, clockwise = abs(dst - src), (dst > src) == (x == 0)
        pattern.rows.append(Reception(step + 1, sign * src % n, sign * dst % n, hops, clockwise))


def program_pattern(
    nodes: int, wavelengths: int, max_hops: int, steps: int, unfit: Fits, options: RunOptions
) -> Pattern | None:
    """A way of ``steps`` steps whose circuits all get wavelengths, or None where none is found.

    ``unfit`` names the steps (from 1) and directions (clockwise or not) whose circuits get none.
    """
    if steps > MOST_STEPS:
        return None
    program = Program(nodes, wavelengths, max_hops, steps)
    kept: set[int] = set()
    for attempt in range(TRIES):
        found = None if options.out_of_time() else program.solve(options.seed + attempt, options)
        if found is None:
            return None
        pattern = program.pattern(found)
        if not (faults := unfit(pattern)):
            return pattern
        for step in {step for step, _ in faults} - kept:
            good = [d for d in (0, 1) if (step, d == 0) not in faults]
            if good:
                kept.add(step)
                for d in (0, 1):
                    program.keep(step - 1, d, program.lengths(found, step - 1, good[0]))
    return None
