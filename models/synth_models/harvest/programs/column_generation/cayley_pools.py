"""Cayley graphs that a schedule may be made of, of every group found (:mod:`.regular_groups`).

Of few graphs all are rated (:mod:`.cayley`). Of many, annealing looks for one that is good for some interval of steps:
there is a search for every group and each of the intervals with most to gain. The searches that come closest to their
price, or below it, go on, fewer and fewer of them for longer and longer. All that they found may be used together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth_models.harvest.programs.column_generation.cayley import cayley_seconds, cayley_targets
from synth_models.harvest.programs.column_generation.lifts import Lift
from synth_models.harvest.programs.column_generation.search import Demand, anneal, seconds

MOST_GROUPS = 16
MOST_INTERVALS = 12
TURNS, ROUNDS = 800, 4  # turns of a search in the first round
LEAST = 1e-12  # seconds
FEWER = 4  # times fewer searches from round to round, for so many times the turns


@dataclass(frozen=True)
class Pool:
    """Graphs of a lift with one orbit: where the links of the first GPU lead (topologies, ports), and the seconds of
    every demand on each, without its alpha (demands, topologies)."""

    lift: Lift
    targets: IntArray
    seconds: FloatArray


@dataclass
class _Search:
    """Of graphs of a lift for an interval of steps that may take ``price`` seconds without their alpha."""

    lift: Lift
    demand: Demand
    price: float
    targets: IntArray
    took: float


def apart(worth: FloatArray) -> list[tuple[int, int]]:
    """Intervals with most to gain, ``worth`` (steps, steps), each two steps or more from all others in one end."""
    found: list[tuple[int, int]] = []
    for place in np.argsort(-worth, axis=None, kind="stable").tolist():
        first, last = divmod(place, worth.shape[1])
        if worth[first, last] <= 0 or len(found) == MOST_INTERVALS:
            break
        if all(max(abs(first - a), abs(last - b)) > 1 for a, b in found):
            found.append((first, last))
    return found


def pools(
    lifts: Sequence[Lift],
    ports: int,
    demands: Sequence[Demand],
    intervals: Sequence[tuple[Demand, float]],
    hop_delay: float,
    random: np.random.Generator,
    stops: tuple[Callable[[], bool], Callable[[], bool]],
) -> list[Pool]:
    """Graphs of every lift, rated for the ``demands``; ``intervals``, with their prices, are what annealing looks for
    until the first of ``stops``. Fewer where the second ends the rating."""
    graphs, many = list[tuple[Lift, IntArray]](), list[Lift]()
    for lift in lifts:
        targets = cayley_targets(lift, ports, demands)
        if targets is None:
            many.append(lift)
        else:
            graphs.append((lift, targets))
    searches = _searches(many, ports, intervals, hop_delay, random)
    _anneal(searches, hop_delay, random, stops[0])
    for lift in many if searches else []:
        graphs.append((lift, np.concatenate([one.targets for one in searches if one.lift is lift])))
    found = []
    for lift, targets in graphs:
        if (rated := cayley_seconds(lift, targets, demands, hop_delay, stops[1])) is None:
            break
        found.append(Pool(lift, targets, rated))
    return found


def _searches(
    lifts: Sequence[Lift],
    ports: int,
    intervals: Sequence[tuple[Demand, float]],
    hop_delay: float,
    random: np.random.Generator,
) -> list[_Search]:
    """One for every lift and interval, each from a random graph on."""
    found = []
    for lift in lifts if intervals else []:
        for demand, price in intervals:
            begin = lift.regular(ports, random)
            found.append(_Search(lift, demand, price, begin, seconds(lift, demand, begin, hop_delay)))
    return found


def _anneal(
    searches: Sequence[_Search], hop_delay: float, random: np.random.Generator, stop: Callable[[], bool]
) -> None:
    """Put better graphs in the place of those that searches are at."""
    going = list(searches)
    for number in range(ROUNDS):
        for one in going:
            if stop():
                return
            seed = int(random.integers(1 << 31))
            targets, took = anneal(one.lift, one.demand, one.targets, hop_delay, TURNS * FEWER**number, seed, stop)
            if took < one.took:
                one.targets, one.took = targets, took
        going.sort(key=lambda one: one.took / max(one.price, LEAST))
        going = going[: max(1, len(going) // FEWER)]
