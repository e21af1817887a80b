"""Which boxes are near each other: groups of them, and of such groups, by the seconds of the routes between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth_models.fabric.routes.box_routes import PairRoutes

Groups = int | Sequence["Groups"]  # a box, or groups next to each other
SAME = 1e-6  # distances that differ by less, relatively, count as equal


def places(groups: Groups) -> list[int]:
    """All boxes of a group, by their place."""
    return [groups] if isinstance(groups, int) else [place for part in groups for place in places(part)]


def seconds_between(routes: PairRoutes, boxes: Sequence[Sequence[int]]) -> FloatArray:
    """Seconds of the quickest route from the first rank of every box to any of every other, inf to itself; shape
    (boxes, boxes)."""
    members = np.array([rank for box in boxes for rank in box])
    first = np.cumsum([0, *map(len, boxes[:-1])])
    found = np.array([np.minimum.reduceat(routes.seconds_from(box[0])[members], first) for box in boxes])
    np.fill_diagonal(found, np.inf)
    return found


def around(seconds: FloatArray) -> IntArray:
    """A way around all boxes, shape (boxes,): from each to the nearest that is left, of those to the next by number."""
    count = len(seconds)
    left, order = np.ones(count, dtype=bool), np.zeros(count, dtype=np.int64)
    for k in range(1, count):
        here = order[k - 1]
        left[here] = False
        away = np.where(left, seconds[here], np.inf)
        near = np.flatnonzero(left & (away <= away.min() * (1 + SAME)))
        order[k] = near[np.argmin(np.abs(near - here))]
    return order


def near_boxes(seconds: FloatArray, order: IntArray) -> list[Groups]:
    """Groups of boxes that are all as near to each other as any are, by their place in ``order``, and of such groups
    those that are next nearest, and so on; that of the first goes first."""
    farthest = seconds[order][:, order]  # between any two boxes of two groups
    found: list[Groups] = list(range(len(order)))
    while True:
        near = farthest <= farthest.min(initial=np.inf) * (1 + SAME)
        free, groups = np.ones(len(found), dtype=bool), list[list[int]]()
        for first in range(len(found)):
            if free[first]:
                group, fits = [first], near[first] & free
                fits[first] = False
                while fits.any():
                    group.append(int(np.argmax(fits)))
                    fits &= near[group[-1]]
                    fits[group[-1]] = False
                free[group] = False
                groups.append(group)
        if len(groups) in (1, len(found)):
            return found
        found = [[found[k] for k in group] for group in groups]
        rows, starts = np.concatenate(groups), np.cumsum([0, *map(len, groups[:-1])])
        farthest = farthest[rows][:, rows]
        for axis in (0, 1):
            farthest = np.maximum.reduceat(farthest, starts, axis=axis)
        np.fill_diagonal(farthest, np.inf)
