"""Which of two logs of the same test is faster, size by size, and how far the two columns of a log are apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from synth.exchange.measurements.series import FEWEST_SIZES, Series


class Stretch(NamedTuple):
    """From ``first`` to ``last`` bytes ``faster`` takes ``least`` to ``most`` times less than ``slower``, labels."""

    test: str
    ranks: int
    first: int
    last: int
    faster: str
    slower: str
    least: float
    most: float


def stretches(series: Sequence[Series]) -> Iterator[Stretch]:
    """Stretches of sizes, for every two logs of one test among as many ranks with sizes in common; of several samples
    of a size the median counts, and a tie is the first log's."""
    for one, other in combinations(series, 2):
        if (one.test, one.ranks) == (other.test, other.ranks) and one.label != other.label:
            yield from _of_two(one, other)


class Apart(NamedTuple):
    """The largest ratio of two series' times, smoothed over neighbouring sizes; where, and whether the second is the
    slower there."""

    ratio: float
    size: int
    slower: bool


def apart(one: Series, other: Series) -> Apart | None:
    """How far two series of the same test are apart; of three neighbouring sizes the median counts. None for fewer than
    three sizes in common."""
    size = np.intersect1d(one.size, other.size)
    if len(size) < FEWEST_SIZES:
        return None
    ours, theirs = (np.array([np.median(log.seconds[log.size == s]) for s in size]) for log in (one, other))
    ratio = np.log(theirs / ours)
    smooth = np.array([np.median(ratio[max(k - 1, 0) : k + 2]) for k in range(len(size))])
    at = int(np.abs(smooth).argmax())
    return Apart(float(np.exp(abs(smooth[at]))), int(size[at]), bool(smooth[at] > 0))


def _of_two(one: Series, other: Series) -> Iterator[Stretch]:
    size = np.intersect1d(one.size, other.size)
    if len(size) < FEWEST_SIZES:
        return
    ours, theirs = (np.array([np.median(log.seconds[log.size == s]) for s in size]) for log in (one, other))
    ahead = ours <= theirs
    ratio = np.maximum(ours, theirs) / np.minimum(ours, theirs)
    ends = [0, *(np.flatnonzero(ahead[1:] != ahead[:-1]) + 1).tolist(), len(size)]
    for start, end in pairwise(ends):
        names = (one.label, other.label) if ahead[start] else (other.label, one.label)
        part = ratio[start:end]
        yield Stretch(
            one.test, one.ranks, int(size[start]), int(size[end - 1]), *names, float(part.min()), float(part.max())
        )
