"""What every send of a piece waits for, how many wait behind it, and whether all wanters get the piece."""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth_models.fabric.references.class_trees.growth import Work


@jit
def waited_for(order: IntArray, piece: IntArray, source: IntArray, target: IntArray, ranks: int) -> IntArray:
    """The last send before each that brought its piece to its source, -1 for none, shape (sends,). ``order``: the
    sends, those of a piece one behind the other; ``piece``, ``source``, ``target``: of each, shape (sends,)."""
    before, came = np.full(len(order), -1, np.int64), np.full(ranks, -1, np.int64)
    for k in order:
        last = came[source[k]]
        if last >= 0 and piece[last] == piece[k]:
            before[k] = last
        came[target[k]] = k
    return before


@jit
def hops_behind(before: IntArray) -> IntArray:
    """The longest chain of sends that wait for each, shape (sends,); each waits for one of a smaller number."""
    found = np.zeros(len(before), np.int64)
    for k in range(len(before) - 1, -1, -1):
        if before[k] >= 0:
            found[before[k]] = max(found[before[k]], found[k] + 1)
    return found


@jit
def hops_before(before: IntArray) -> IntArray:
    """The sends that each waits for, one behind the other; shape (sends,)."""
    found = np.zeros(len(before), np.int64)
    for k in range(len(before)):
        if before[k] >= 0:
            found[k] = found[before[k]] + 1
    return found


@jit
def all_reached(work: Work, order: IntArray, piece: IntArray, target: IntArray, ranks: int) -> bool:
    """Whether every wanter of every piece is a holder or the target of one of its sends, in this ``order``."""
    has = np.full(ranks, -1, np.int64)
    at: Any = np.int64(0)
    for p in range(len(work.size)):
        for k in range(work.holder_start[p], work.holder_start[p + 1]):
            has[work.holder[k]] = p
        while at < len(order) and piece[order[at]] == p:
            has[target[order[at]]] = p
            at += 1
        for k in range(work.wanter_start[p], work.wanter_start[p + 1]):
            if has[work.wanter[k]] != p:
                return False
    return True
