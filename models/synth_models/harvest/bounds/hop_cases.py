"""An interval's bound by cases: how many hops the routes of its patterns have at most.

The relaxation of :mod:`.interval` lets a pattern have one hop on average and two in half of its topology. But hops are
whole numbers, the same in every renumbered copy of a topology. So an interval is divided: a pattern's routes have at
most h hops, or more. In the first case no path of more hops counts, and with one hop every pair has its own link; in
the second every step pays the hop. The least case bounds the interval; cases are divided further, the least first.

Only patterns whose steps have equal bytes in the interval are divided: these may take one and the same routes. So with
cases, steps of unequal bytes count as different patterns (``by_bytes``), even if they join the same pairs. A case is
impossible where a GPU has more partners within h hops than d + d^2 + … + d^h (Moore).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from synth_models.harvest.bounds.coarse_prices import prices_of
from synth_models.harvest.bounds.interval import RATES, Hops, IntervalBound, Patterns, Relaxation
from synth_models.harvest.bounds.rows import Row

MOST_HOPS = 4  # cases of more are not divided
WHOLE = 1e-6


@dataclass
class Case:
    """A leaf with its bound and the hops that its program chose, or a case divided by the hops of ``pattern``: up to
    ``within``, and beyond. No bound: impossible."""

    hops: dict[int, Hops]
    bound: IntervalBound | None = None
    chosen: dict[int, float] = field(default_factory=dict)
    trees: list[Row] = field(default_factory=list)  # that its program had, for its parts
    seconds: Fraction = Fraction(0)
    priced: bool = False  # at prices of its own, not only those of the case it was divided from
    level: int = 0  # of these prices: over the fewest blocks of GPUs first, over all GPUs last
    pattern: int = -1
    within: int = 0
    parts: tuple[Case, Case] | None = None

    def proof(self) -> dict[str, Any]:
        """The case in a certificate."""
        if self.parts is not None:
            below, above = (part.proof() for part in self.parts)
            return {"pattern": self.pattern, "hops": self.within, "within": below, "beyond": above}
        return {"crowded": True} if self.bound is None else self.bound.proof()

    def as_now(self) -> Case:
        """A copy that stays as it is: a part that is divided later may prove less than it did whole."""
        return replace(self, parts=self.parts and (self.parts[0].as_now(), self.parts[1].as_now()))

    def leaves(self) -> list[Case]:
        return [self] if self.parts is None else self.parts[0].leaves() + self.parts[1].leaves()


@dataclass(frozen=True)
class DividedBound(IntervalBound):
    """The bound of an interval's least case; ``root`` is divided no further."""

    root: Case

    def used(self) -> list[Row]:
        return [row for case in self.root.leaves() if case.bound for row in case.bound.rows]

    def proof(self) -> dict[str, Any]:
        return self.root.proof()


class Division:
    """The cases of one interval so far."""

    def __init__(self, shared: Patterns, first: int, last: int) -> None:
        self.shared, self.first, self.last = shared, first, last
        self.patterns = sorted(shared.weights(first, last)[0])
        self.alike = [k for k in self.patterns if shared.alike(k, first, last)]
        self.weight = {k: float(seconds) for k, seconds in shared.weights(first, last)[1].items()}
        self.partners = [[set(part.tolist()) for part in _ends(shared, k)] for k in self.patterns]
        self.root = Case({k: (shared.hops(k), None) for k in self.alike})

    def usable(self) -> bool:
        """Whether there is anything to divide, and prices of one interval can be found at once."""
        shared = self.shared
        several = len(self.patterns) > 1 and len(self.alike) > 0
        return several and shared.prices.usable and shared.prices.alike and shared.instance.hop_delay > 0

    def go_on(self, expansions: int, out_of_time: Callable[[], bool]) -> bool:
        """Divide the least case, again and again; False where nothing is left to divide."""
        if self.root.bound is None and not self._solve(self.root, None, out_of_time, priced=True):
            return True
        for _ in range(expansions):
            case = self._least()
            while not case.priced and not out_of_time():
                self._solve(case, case, out_of_time, priced=True)
                case = self._least()
            if out_of_time():
                return True
            if not self._divide(case, out_of_time) and not self._refine(case, out_of_time):
                return False
        return True

    def _refine(self, case: Case, out_of_time: Callable[[], bool]) -> bool:
        """Seek prices over more blocks of GPUs for a case that cannot be divided; False where it has had all."""
        if case.level >= len(prices_of(self.shared.coarse, self.patterns)):
            return False
        case.level += 1
        self._solve(case, case, out_of_time, priced=True)
        return True

    def _least(self) -> Case:
        return min(self._possible(), key=lambda one: one.seconds)

    def _possible(self) -> list[Case]:
        return [case for case in self.root.leaves() if case.bound is not None]

    def bound(self) -> DividedBound | None:
        """What the cases prove so far; None where none is solved yet."""
        leaves = self._possible()
        if not leaves:
            return None
        least = min(case.seconds for case in leaves)
        return DividedBound(self.first, self.last, least, [], [], True, self.root.as_now())

    def _divide(self, case: Case, out_of_time: Callable[[], bool]) -> bool:
        """Divide by the pattern whose hops are farthest from whole, or by the heaviest."""
        best, chosen = (0.0, 0.0), -1
        for k in self.alike:
            low, high = case.hops[k]
            if low == high or low >= MOST_HOPS:
                continue
            part = case.chosen[k] % 1
            key = (min(part, 1 - part) if WHOLE < part < 1 - WHOLE else WHOLE, self.weight[k])
            if key > best:
                best, chosen = key, k
        if chosen < 0:
            return False
        low, high = case.hops[chosen]
        within = max(low, int(case.chosen[chosen] + WHOLE))
        within = within if high is None else min(within, high - 1)
        parts = (Case(case.hops | {chosen: (low, within)}), Case(case.hops | {chosen: (within + 1, high)}))
        for part_case in parts:
            if not self._crowded(part_case.hops) and not self._solve(part_case, case, out_of_time):
                return True  # out of time: the case stays whole
        case.pattern, case.within, case.parts = chosen, within, parts
        return True

    def _crowded(self, hops: Mapping[int, Hops]) -> bool:
        """Whether a GPU has more partners within some number of hops than there are GPUs so near."""
        limits = {most for _, most in hops.values() if most is not None}
        for limit in limits:
            room = sum(self.shared.ports**h for h in range(1, limit + 1))
            near = [n for n, k in enumerate(self.patterns) if k in hops and (hops[k][1] or limit + 1) <= limit]
            for side in range(2 * len(self.shared.roots)):
                if len(set().union(*(self.partners[n][side] for n in near))) > room:
                    return True
        return False

    def _solve(self, case: Case, whole: Case | None, out_of_time: Callable[[], bool], priced: bool = False) -> bool:
        """The case's own program, which begins with the trees and prices of the ``whole`` it was divided from, and
        finds its own prices if asked for; False out of time."""
        program = Relaxation(self.shared, self.first, self.last, case.hops, case.level)
        program.joined = not priced
        if whole is not None and whole.bound is not None:
            program.rows += whole.trees
            for row in whole.bound.rows:
                if row.words["row"] == "rate":
                    program.use(row.words["bundle"])
        found = program.solve(out_of_time, RATES)
        if out_of_time():
            return False
        case.priced = priced
        if case.bound is None or found.seconds > case.seconds:
            case.bound, case.seconds = found, found.seconds
        case.trees = [row for row in program.rows if row.words["row"] == "tree"]
        case.chosen = {k: float(program.point[program.column["L", k]]) for k in self.alike}
        return True


def _ends(shared: Patterns, pattern: int) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    """The GPUs that each kind of GPU sends to, and receives from, in a pattern."""
    pairs = shared.pairs[pattern]
    sent = [pairs[pairs[:, 0] == root, 1] for root in shared.roots]
    return sent + [pairs[pairs[:, 1] == root, 0] for root in shared.roots]
