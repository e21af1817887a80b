"""Which of two logs of the same test is faster, size by size, and how far the two columns of a log are apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.exchange.measurements.series import FEWEST_SIZES, Series

ALIKE = 1.1  # the largest ratio, smoothed, of times that may be of one cost
ERRORS = 2.0


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
    size, ratio = _log_ratio(one, other)
    if len(size) < FEWEST_SIZES:
        return None
    smooth = np.array([np.median(ratio[max(k - 1, 0) : k + 2]) for k in range(len(size))])
    at = int(np.abs(smooth).argmax())
    return Apart(float(np.exp(abs(smooth[at]))), int(size[at]), bool(smooth[at] > 0))


def runs_apart(one: Series) -> Apart | None:
    """Where a series holds sizes several times, as of several runs: the median over these sizes of the longest over the
    shortest time, the largest such size, and False. None where few sizes stand several times."""
    size, count = np.unique(one.size, return_counts=True)
    again = size[count > 1]
    if len(again) < FEWEST_SIZES:
        return None
    each = [one.seconds[one.size == s] for s in again]
    return Apart(float(np.median([seconds.max() / seconds.min() for seconds in each])), int(again[-1]), False)


def alike(one: Series, other: Series) -> bool:
    """Whether two series of the same test can be taken for one cost: at no size far apart, and the mean of their ratio
    within two standard errors of 1, over all sizes and over the small and the large half."""
    found = apart(one, other)
    if found is None or found.ratio > ALIKE:
        return False
    _, ratio = _log_ratio(one, other)
    half = len(ratio) // 2
    parts = [part for part in (ratio, ratio[:half], ratio[half:]) if len(part) >= FEWEST_SIZES]
    return all(abs(part.mean()) <= ERRORS * part.std(ddof=1) / np.sqrt(len(part)) for part in parts)


def _log_ratio(one: Series, other: Series) -> tuple[IntArray, FloatArray]:
    """The sizes in common, and the logarithm of the second's median time over the first's, shape (sizes,) each."""
    size = np.intersect1d(one.size, other.size)
    ours, theirs = (np.array([np.median(log.seconds[log.size == s]) for s in size]) for log in (one, other))
    return size, np.log(theirs / ours) if len(size) else np.zeros(0)


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
