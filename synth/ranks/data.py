"""The data that ranks move: random words that anybody can compute again from their place.

A word is 64 random bits that depend on the seed, on the part, on whose data it is and on the place in the part
(SplitMix64 of Steele, Lea and Flood 2014, which counts up and mixes, so that any place can be computed alone). Sums of
integers are taken modulo 2^64, so they are exact in any order. Two different words, and two different sums of words, of
which one lacks a contribution, holds one twice, or holds one of another place, are equal with probability 2^-64: what
is dropped, swapped, missing or doubled shows. As floats (``real``) every word is between 0.5 and 1 or between -1 and
-0.5, so that a contribution is never small beside the rounding of a sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from synth.arrays import BoolArray, IntArray, WordArray
from synth.ranks.goals import Goals

BLOCK = 2**15  # words that are computed at a time: they stay in a processor's cache
UNWRITTEN = np.uint64(0x7FF8DEAD0DEAD000)  # what memory holds before anything is written: as a float it is no number
_STEP, _FIRST, _SECOND = (np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_SHIFTS = tuple(np.uint64(k) for k in (30, 27, 31))
_FRACTION, _HALF = np.uint64(2**52 - 1), np.uint64(1022 << 52)
_SIGN = np.uint64(1 << 63)


def _mixed(words: WordArray) -> WordArray:
    a, b, c = _SHIFTS
    words ^= words >> a
    words *= _FIRST
    words ^= words >> b
    words *= _SECOND
    words ^= words >> c
    return words


def words(seed: int, part: int, owner: int, first: int, count: int) -> WordArray:
    """``count`` words of ``owner``'s data for a part, from place ``first`` on; shape (count,)."""
    key = np.zeros(1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for number in (seed, part, owner):
            key = _mixed(key + np.uint64(number + 1) * _STEP)
        found = np.arange(first, first + count, dtype=np.uint64)
        found *= _STEP
        found += key
        return _mixed(found)


class Data:
    """The data of one run: ``seed``, and whether its words are floats (``real``) or integers. ``goals`` say whose
    contributions a sum has where those are not all ranks'."""

    def __init__(self, seed: int, ranks: int, real: bool = False, goals: Goals | None = None) -> None:
        self.seed, self.ranks, self.real, self.goals = seed, ranks, real, goals
        self.dtype: np.dtype[Any] = np.dtype(np.float64 if real else np.uint64)
        self._totals: dict[int, npt.NDArray[Any]] = {}

    def own(self, part: int, owner: int, first: int, count: int) -> npt.NDArray[Any]:
        """A rank's own data, or its contribution to a sum, at these places of a part; shape (count,)."""
        found = words(self.seed, part, owner, first, count)
        if not self.real:
            return found
        return ((found & (_FRACTION | _SIGN)) | _HALF).view(np.float64)

    def owner(self, part: int, rank: int) -> int:
        """Whose data a rank begins with: its own, or where several begin with all of a part, those of the first."""
        if self.goals is None or self.goals.begins is None:
            return rank
        origin = int(self.goals.origin[part])
        return rank if origin < 0 else origin

    def adding(self, part: int) -> list[int]:
        """The ranks whose contributions the sum of a part has."""
        if self.goals is None or self.goals.begins is None:
            return list(range(self.ranks))
        return np.flatnonzero(self.goals.begins[part]).tolist()

    def total(self, part: int, first: int, count: int) -> npt.NDArray[Any]:
        """The sum of all contributions at these places; shape (count,)."""
        if part in self._totals:
            return self._totals[part][first : first + count]
        one, *others = self.adding(part)
        found = self.own(part, one, first, count)
        for owner in others:
            found = found + self.own(part, owner, first, count)
        return found

    def know_total(self, part: int, count: int) -> None:
        """Compute the sums at the first ``count`` places of a part, and keep them for :meth:`total`."""
        if part not in self._totals or len(self._totals[part]) < count:
            blocks = [self.total(part, at, min(BLOCK, count - at)) for at in range(0, count, BLOCK)]
            self._totals[part] = np.concatenate(blocks)

    def fill(self, memory: npt.NDArray[Any], part: int, owner: int, first: int) -> None:
        """Write a rank's own data into ``memory``, from place ``first`` of the part on."""
        for at in range(0, len(memory), BLOCK):
            here = memory[at : at + BLOCK]
            here[:] = self.own(part, owner, first + at, len(here))

    def differs(self, memory: npt.NDArray[Any], part: int, origin: int, first: int) -> IntArray:
        """Places of ``memory`` that do not hold what they must: the data of ``origin``, or with a negative ``origin``
        the sum over all ranks. Integers and copies must agree in every bit; a sum of floats may be off by
        ``2 * ranks * 2**-53`` times the sum of the contributions' magnitudes (each at most 1), which is what rounding
        can do to it and to the sum it is compared with, whatever the order."""
        wrong: list[IntArray] = []
        for at in range(0, len(memory), BLOCK):
            here = memory[at : at + BLOCK]
            if origin >= 0:
                bad: BoolArray = here.view(np.uint64) != self.own(part, origin, first + at, len(here)).view(np.uint64)
            elif self.real:
                bad = ~(np.abs(here - self.total(part, first + at, len(here))) <= 2 * self.ranks**2 * 2.0**-53)
            else:
                bad = here != self.total(part, first + at, len(here))
            if np.any(bad):
                wrong.append(np.flatnonzero(bad) + at)
        return np.concatenate(wrong) if wrong else np.zeros(0, dtype=np.int64)
