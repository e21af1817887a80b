"""The least bytes of any placement, counted over all placements of jobs of up to 16 ranks. Imports no method.

Positions are given away part by part. What is kept so far is known for every set of positions that is taken; a part
then takes any set of its size among the others. A part that has parts itself (a group of nodes) is filled first, once
for every set it could take. Whole numbers throughout: nothing is left out and nothing rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth_models.bine.instance import BineInstance

MOST_RANKS, MOST_KINDS = 16, 300  # of a job; different jobs of so few ranks
_AT_ONCE = 1 << 21  # pairs of sets
Kept = dict[int, int]  # most weight inside, by the set of positions


def least_cuts(instance: BineInstance, weights: Mapping[int, list[int]]) -> dict[int, int]:
    """Blocks each way times costs that every placement of a job of at most 16 ranks cuts, by the job's number;
    ``weights`` are those of the dimensions, by ranks. Raises ``ValueError`` beyond 300 kinds of such jobs."""
    known: dict[tuple[Any, ...], int] = {}
    found: dict[int, int] = {}
    for job, groups in enumerate(instance.allocations):
        ranks, levels = len(groups), instance.partitions(job)
        if ranks > MOST_RANKS or not levels:
            continue
        costs = [cost for cost, _ in levels]
        parts = _nested([tuple(int(part[rank]) for _, part in levels) for rank in range(ranks)])
        key = (ranks, tuple(costs), parts)
        if key not in known:
            if len(known) == MOST_KINDS:
                raise ValueError(f"all placements are counted for at most {MOST_KINDS} kinds of jobs")
            inside = _weight_inside(weights[ranks], ranks)
            together = (1 << ranks) - 1
            known[key] = sum(costs) * int(inside[together]) - _filled(parts, costs, inside, ranks)[together]
        found[job] = known[key]
    return found


def _nested(places: list[tuple[int, ...]]) -> tuple[Any, ...] | int:
    """Ranks by the parts in which they lie, outermost first, as sizes within tuples; equal jobs have equal tuples."""
    if not places[0]:
        return len(places)
    parts: dict[int, list[tuple[int, ...]]] = {}
    for first, *rest in places:
        parts.setdefault(first, []).append(tuple(rest))
    return tuple(sorted(map(_nested, parts.values()), key=repr))


def _ranks_of(parts: tuple[Any, ...] | int) -> int:
    return parts if isinstance(parts, int) else sum(map(_ranks_of, parts))


def _weight_inside(weights: list[int], ranks: int) -> IntArray:
    """Weight of the edges within every set of positions: those of its highest position, and of the set without it."""
    inside = np.zeros(1, dtype=np.int64)
    for v in range(ranks):
        lower = np.arange(1 << v)
        added = np.zeros(1 << v, dtype=np.int64)
        for dimension, weight in enumerate(weights):
            if v >> dimension & 1:
                added[(lower >> (v - (1 << dimension))) & 1 == 1] += weight
        inside = np.concatenate([inside, inside + added])
    return inside


def _filled(parts: tuple[Any, ...] | int, costs: list[int], inside: IntArray, ranks: int) -> Kept:
    """The most that ``parts`` keep inside, each on the levels below it too, for every set that they may take."""
    if isinstance(parts, int):
        return dict.fromkeys(_sets(ranks, parts).tolist(), 0)
    kept = {0: 0}
    for part in parts:
        deeper = _filled(part, costs[1:], inside, ranks)
        kept = _given(kept, {taken: costs[0] * int(inside[taken]) + below for taken, below in deeper.items()})
    return kept


def _given(kept: Kept, part: Kept) -> Kept:
    """The part takes any set disjoint from what is taken."""
    before, held = np.array(list(kept)), np.array(list(kept.values()))
    sets, gain = np.array(list(part)), np.array(list(part.values()))
    most = np.full(int(before.max() | sets.max()) * 2 + 2, -1, dtype=np.int64)
    for first in range(0, len(sets), step := max(1, _AT_ONCE // len(before))):
        own, taken = np.nonzero((sets[first : first + step, None] & before[None, :]) == 0)
        np.maximum.at(most, sets[first + own] | before[taken], gain[first + own] + held[taken])
    return {int(taken): int(most[taken]) for taken in np.flatnonzero(most >= 0)}


def _sets(ranks: int, size: int) -> IntArray:
    return np.array([sum(1 << v for v in chosen) for chosen in combinations(range(ranks), size)], dtype=np.int64)
