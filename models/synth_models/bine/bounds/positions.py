"""The least placement of few ranks, exactly: a dynamic program over sets of positions (certificate ``positions``).

Weight inside a set S of positions is I(S), the sum of w over the hypercube's edges with both ends in S. A group's ranks
take a set as large as the group; the cut is least where the groups' inside weight is most. Let M_k(S) be the most that
the first k groups have inside when S is what they take together. Then

    M_k(S) = max of  M_(k-1)(S minus T) + kept_k(T)  over the sets T in S as large as group k,

and M of all groups on all positions is the answer. Where costs count nodes, kept_k(T) is the same program again for the
group's nodes, else weight times I(T). With 16 positions a step looks at 2,018,016 pairs of sets at most (16! / (5! 5!
6!)), so nothing needs to be left out, and the check repeats the count in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth_models.bine.instance import BineInstance
from synth_models.bine.parts.weights import dimension_weights

MOST_RANKS = 16  # of a job, for which all sets of positions are looked at
MOST_KINDS = 300  # different jobs; 16 ranks fall into groups in 231 ways, 2, 4 and 8 in 29
_NEVER = -(2**60)
Shape = tuple[Any, ...]  # the shapes of a part's parts, sorted; a rank is ()


class Positions:
    """Least cuts of the jobs of one instance, each kind of job once; ``too_many`` kinds have no certificate."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], int] = {}
        self.too_many = False

    def least(self, instance: BineInstance, job: int, weights: Sequence[int]) -> int | None:
        """What every placement of this job cuts at least, in blocks each way times costs; None where that is not
        counted: more than 16 ranks, too many kinds of jobs."""
        ranks, levels = len(instance.allocations[job]), instance.partitions(job)
        if ranks > MOST_RANKS or not levels:
            return None
        worth = tuple(weight for weight, _ in levels)
        key = (tuple(weights), worth, _shape([part.tolist() for _, part in levels], list(range(ranks))))
        if key not in self.known:
            if len(self.known) == MOST_KINDS:
                self.too_many = True
                return None
            inside = _inside(tuple(weights))
            whole = sum(worth) * int(inside[-1])
            self.known[key] = whole - int(_most(key[-1], worth, inside)[-1])
        return self.known[key]


def least_bytes(instance: BineInstance, counted: Callable[[int, list[int]], int]) -> float:
    """Bytes of the best of all placements over all jobs; of a larger job what is ``counted`` (job, weights) of it. 0
    where there are too many kinds of jobs for a certificate."""
    positions, rows = Positions(), []
    for job, groups in enumerate(instance.allocations):
        weights = dimension_weights(instance, len(groups))
        least = positions.least(instance, job, weights)
        rows.append((len(groups), 2 * (counted(job, weights) if least is None else least)))
    return 0.0 if positions.too_many else instance.bytes_of(rows)


def _shape(levels: list[list[int]], ranks: list[int]) -> Shape:
    """How these ranks fall into parts, level by level."""
    if not levels:
        return ((),) * len(ranks)
    parts = sorted({levels[0][rank] for rank in ranks})
    return tuple(sorted(_shape(levels[1:], [r for r in ranks if levels[0][r] == part]) for part in parts))


def _size(shape: Shape) -> int:
    return sum(map(_size, shape)) if shape else 1


@cache
def _inside(weights: tuple[int, ...]) -> IntArray:
    """I of every set of positions, by its mask."""
    sets = np.arange(1 << (1 << len(weights)), dtype=np.int64)
    total = np.zeros(len(sets), dtype=np.int64)
    for bit, weight in enumerate(weights):
        for v in range(1 << len(weights)):
            if not v >> bit & 1:
                total += weight * (sets >> v & sets >> (v | 1 << bit) & 1)
    return total


def _most(shape: Shape, worth: tuple[int, ...], inside: IntArray) -> IntArray:
    """The most inside the parts of ``shape``, by the set that they take together; sets of another size: never."""
    best, taken = np.full(len(inside), _NEVER), 0
    best[0] = 0
    ranks = len(inside).bit_length() - 1
    for part in shape:
        kept = worth[0] * inside + (_most(part, worth[1:], inside) if len(worth) > 1 else 0)
        size = _size(part)
        best, taken = _joined(best, kept, taken, size, ranks), taken + size
    return best


def _joined(best: IntArray, kept: IntArray, taken: int, size: int, ranks: int) -> IntArray:
    """For every set S of ``taken + size`` positions the most over its parts T of ``size``."""
    places = np.array(list(combinations(range(ranks), taken + size)), dtype=np.int64)
    bits = np.left_shift(1, places)
    whole, most = bits.sum(axis=1), np.full(len(bits), _NEVER)
    for chosen in combinations(range(taken + size), size):
        part = bits[:, list(chosen)].sum(axis=1)
        np.maximum(most, best[whole - part] + kept[part], out=most)
    joined = np.full(len(best), _NEVER)
    joined[whole] = most
    return joined
