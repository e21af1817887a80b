"""A smallest set of schedules that covers all single failures: set cover as a program.

====================  ============  =========================================  ====
symbol                code          index set                                  unit
====================  ============  =========================================  ====
z[c]                  ``taken``     candidate c: a case's schedule, moved by   0/1
                                    a symmetry to a member of its orbit
====================  ============  =========================================  ====

    minimise sum z[c]
    every failure is covered   sum_{c covers f} z[c] >= 1      for every failure f that some schedule covers

A schedule covers a failure if it uses nothing that failed and takes at most :data:`WITHIN` longer than the best known
time with that failure; where links are slower only, or an executor runs it, if it takes no longer than that, replayed
there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.drill.search import Case, Drill, seconds_there, solution_of, used_by
from synth.options import RunOptions
from synth.solvers import mathprog
from synth.solvers.rows import Row, add_rows, linear, ones, variables

WITHIN = 0.02
Pairs = frozenset[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Candidate:
    """The schedule of a case, moved by a symmetry: ``image`` of all nodes."""

    case: Case
    image: IntArray

    @property
    def seconds(self) -> float:
        """On the machine that it was made for."""
        assert self.case.best_seconds is not None
        return self.case.best_seconds


@dataclass(frozen=True, eq=False)
class Single:
    """A single failure and the case of its orbit."""

    failure: Any
    case: Case


@dataclass(frozen=True, eq=False)
class Cover:
    """``chosen`` candidates; for every failure the quickest of them that covers it and its seconds there, None where
    none does; whether the set is ``proven`` to be a smallest one."""

    chosen: list[Candidate]
    singles: list[Single]
    by: list[tuple[int, float] | None]
    proven: bool
    within: float = WITHIN


def cover(drill: Drill, options: RunOptions) -> Cover:
    """The smallest set of candidates."""
    singles = [
        Single(failure, case)
        for case in drill.cases
        if case.orbit is not None and len(case.orbit.representative.parts) == 1
        for failure in case.orbit.members
    ]
    candidates = _candidates(drill)
    covered = _covered(drill, candidates, singles)
    taken, proven = smallest([frozenset(times) for times in covered], options)
    chosen = [candidates[c] for c in taken]
    by: list[tuple[int, float] | None] = []
    for f in range(len(singles)):
        times = [(covered[c][f], k) for k, c in enumerate(taken) if f in covered[c]]
        best = min(times, default=None)
        by.append(None if best is None else (best[1], best[0]))
    return Cover(chosen, singles, by, proven)


def _candidates(drill: Drill) -> list[Candidate]:
    """Every case's best schedule for every member of its orbit; the whole machine's as it is; what a case takes over
    for every member too, as it may avoid one only."""
    found = []
    for case in (drill.whole, *drill.cases):
        if case.orbit is not None and len(case.orbit.representative.parts) > 1:
            continue
        images = case.orbit.images if case.orbit is not None else [np.arange(0)]
        found += [Candidate(case, image) for image in images] if case.best is not None else []
        if case.lender is not None:
            lender, avoided = case.lender
            back = np.argsort(images[avoided])
            found += [Candidate(lender, image[back]) for k, image in enumerate(images) if k != avoided]
    return found


def _covered(drill: Drill, candidates: Sequence[Candidate], singles: Sequence[Single]) -> list[dict[int, float]]:
    """The failures that each candidate covers, with its seconds there."""
    used = {id(case): used_by(drill, case) for case in {id(c.case): c.case for c in candidates}.values()}
    at: dict[Pairs, list[Single]] = {}
    for single in singles:  # several, where a bus has the links of one cable
        at.setdefault(single.failure.pairs, []).append(single)
    slow: dict[tuple[int, Pairs], float | None] = {}
    found = []
    for candidate in candidates:
        mine = {}
        for f, single in enumerate(singles):
            back = _moved_back(single.failure.pairs, candidate.image)
            if drill.question.share is None and not used[id(candidate.case)].isdisjoint(back):
                seconds = None  # it uses what failed
            elif drill.question.share is None and not drill.question.exports:
                seconds = candidate.seconds
            else:
                key = id(candidate.case), back
                if key not in slow:
                    slow[key] = _slowed(drill, candidate.case, at.get(back, ()))
                seconds = slow[key]
            if seconds is not None and seconds <= _most(single):
                mine[f] = seconds
        found.append(mine)
    return found


def _most(single: Single) -> float:
    """Seconds up to which a schedule covers a failure."""
    best = single.case.seconds
    return -math.inf if best is None else best * (1 + WITHIN)


def _moved_back(pairs: Pairs, image: IntArray) -> Pairs:
    """Where pairs of nodes come from under a symmetry (an empty one: nothing moves)."""
    if not len(image):
        return pairs
    back = np.empty_like(image)
    back[image] = np.arange(len(image))
    return frozenset((int(back[u]), int(back[v])) for u, v in pairs)


def _slowed(drill: Drill, case: Case, singles: Sequence[Single]) -> float | None:
    """Seconds of a case's schedule with a failure instead of its own, if that covers one of these, which take the same
    links along."""
    most = max(map(_most, singles), default=-math.inf)
    if most < 0:
        return None
    failure = singles[0].failure
    if case.orbit is not None and case.orbit.representative.pairs == failure.pairs:
        return case.best_seconds
    if drill.question.exports:
        return seconds_there(drill, case, failure)
    target = drill.breakable.broken(failure, drill.question.share)
    return drill.breakable.seconds_slowed(solution_of(case), case.instance, target, most)


def smallest(covered: Sequence[frozenset[int]], options: RunOptions) -> tuple[list[int], bool]:
    """The numbers of a smallest set of candidates that cover all that some candidate covers, and whether it is proven
    to be one. Candidates whose failures another covers too are left out first."""
    kept = _undominated(covered)
    wanted = sorted(frozenset().union(*covered)) if covered else []
    if not wanted:
        return [], True
    with mathprog.building():
        model = build([covered[c] for c in kept], wanted)
    result = mathprog.solve(model, options, bounded=True)
    if not result.has_point:
        return _greedy(covered, kept), False
    taken = [c for c, variable in zip(kept, model.taken.values(), strict=True) if variable.value > 0.5]
    return taken, result.termination == "optimal"


def build(covered: Sequence[frozenset[int]], wanted: Sequence[int]) -> Any:
    """The model."""
    from synth.solvers.algebra import pyo

    model = pyo.ConcreteModel()
    model.taken = variables("c", range(len(covered)), domain=pyo.Binary)
    add_rows(model, "every_failure_is_covered", every_failure_is_covered(model.taken, covered, wanted), "f")
    model.objective = pyo.Objective(expr=linear(ones(model.taken.values())))
    return model


def every_failure_is_covered(
    taken: Mapping[int, Any], covered: Sequence[frozenset[int]], wanted: Sequence[int]
) -> dict[int, Row]:
    """Some candidate that covers the failure is taken."""
    return {f: (ones(taken[c] for c, mine in enumerate(covered) if f in mine), ">=", 1) for f in wanted}


def _undominated(covered: Sequence[frozenset[int]]) -> list[int]:
    """Candidates of which no other covers all that they cover, the first of equal ones."""
    found: list[int] = []
    for c in sorted(range(len(covered)), key=lambda c: (-len(covered[c]), c)):
        if covered[c] and not any(covered[c] <= covered[k] for k in found):
            found.append(c)
    return sorted(found)


def _greedy(covered: Sequence[frozenset[int]], kept: Sequence[int]) -> list[int]:
    """A cover, not a smallest one: whoever covers most of what is left is taken next."""
    left, taken = set().union(*covered), []
    while left:
        best = max(kept, key=lambda c: len(covered[c] & left))
        taken.append(best)
        left -= covered[best]
    return sorted(taken)
