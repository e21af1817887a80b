"""A search from a placement on: copies change places with those of the fullest rank, or become another expert's.

It keeps every group in its box. A step must lessen the largest load, or the sum of the loads' squares at the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.placement.question import Question

CLOSE = 1 - 1e-9  # of a value: what is less is better
TRIES = 60  # changes of copies in a row that help nothing, after which a box is left alone
WILD = 3  # copies that such a change makes at most
STEPS = 10_000
MOST_SWAPS = 2**22  # of a rank's copies with those of all ranks of a box: with more nothing is searched


def improved(question: Question, placement: IntArray, seed: int, more: Callable[[], bool]) -> IntArray:
    """A placement whose largest load is no larger in floats, looked for while ``more()``: the same one where there are
    more than :data:`MOST_SWAPS`. Repeats by seed."""
    rng = np.random.default_rng(seed)
    rows = question.ranks // question.homes
    if question.slots**2 * rows > MOST_SWAPS:
        return placement
    found = placement.copy()
    for home in range(question.homes):
        found[home * rows : (home + 1) * rows] = _home(question.load, found[home * rows : (home + 1) * rows], rng, more)
    return found


def _home(load: IntArray, placement: IntArray, rng: np.random.Generator, more: Callable[[], bool]) -> IntArray:
    """The best placement found in a box."""
    experts = np.unique(placement)
    best = _swapped(load, placement, more)
    top = _totals(load, best).max()
    least = load[experts].sum() / len(placement)
    idle = 0
    while idle < TRIES and len(placement) > 1 and top * CLOSE > least and more():
        other = _swapped(load, _recopied(load, best, rng), more)
        new = _totals(load, other).max()
        idle = 0 if new < top * CLOSE else idle + 1
        if new < top * CLOSE:
            best, top = other, new
    return best


def _shares(load: IntArray, placement: IntArray) -> FloatArray:
    """The load of the copy in every slot."""
    count = np.bincount(placement.ravel(), minlength=len(load))
    shares: FloatArray = load[placement] / count[placement]
    return shares


def _totals(load: IntArray, placement: IntArray) -> FloatArray:
    totals: FloatArray = _shares(load, placement).sum(axis=1)
    return totals


def _recopied(load: IntArray, placement: IntArray, rng: np.random.Generator) -> IntArray:
    """A few copies of experts that have several become copies of others, those of the fullest rank more often."""
    found = placement.copy()
    for _ in range(int(rng.integers(1, WILD + 1))):
        count = np.bincount(found.ravel(), minlength=len(load))
        spare = np.flatnonzero(count[found.ravel()] > 1)
        if not len(spare):
            return found
        fullest = found[int(np.argmax(_totals(load, found)))]
        new = rng.choice(fullest if rng.random() < 0.7 else np.unique(found))
        found.ravel()[rng.choice(spare)] = new
    return found


def _swapped(load: IntArray, placement: IntArray, more: Callable[[], bool]) -> IntArray:
    """No swap of a copy of the fullest rank with another rank's lessens the larger of their loads any more."""
    found, shares = placement.copy(), _shares(load, placement)
    for _ in range(STEPS):
        if not more():
            break
        totals: Any = shares.sum(axis=1)
        full = int(np.argmax(totals))
        moved = shares[full][:, None, None] - shares[None]
        larger = np.maximum(totals[full] - moved, totals[None, :, None] + moved)
        larger[:, full] = np.inf
        slot, rank, there = np.unravel_index(int(np.argmin(larger)), larger.shape)
        if not larger[slot, rank, there] < totals[full] * CLOSE:
            break
        for array in (found, shares):
            array[full, slot], array[rank, there] = array[rank, there], array[full, slot]
    return found
