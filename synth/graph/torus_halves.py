"""Two connected halves of a three-dimensional torus, of which every pair of a perfect matching has a node each.

Along an even side, nodes 2 i and 2 i + 1 are pairs: one half has the even layers, the other the odd ones. A shaft joins
a half's layers: at one place, every layer's node is in that half, and the node beside it, its partner there, in the
other. The shafts are half a torus apart. What all nodes hold, every half holds once its pairs have exchanged: so it can
be summed up at two far nodes at once, one in each half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray

FAR = 2**30  # steps to what is not reached
LEAST_SIDE = 4


class Halves(NamedTuple):
    """Of every node its ``half``, 0 or 1, and its ``partner``, a neighbour in the other; ``root`` of either half, shape
    (2,). ``away``: steps from a node to its half's root inside that half, shape (nodes,). Then ``near``: steps from a
    node to the nearer root over any nodes, shape (nodes,)."""

    half: IntArray
    partner: IntArray
    root: IntArray
    away: IntArray
    near: IntArray

    @property
    def steps(self) -> int:
        """Steps of an exchange of all pairs, a sum at either root, and its way to all."""
        return 1 + int(self.away.max()) + int(self.near.max())


@cache
def halves(sides: tuple[int, ...]) -> Halves | None:
    """Halves of least :attr:`Halves.steps` of those that are tried, nodes row-major; None unless three sides are at
    least 4 and one of them is even."""
    if len(sides) != 3 or min(sides) < LEAST_SIDE:
        return None
    beside = steps_along(sides)
    found = [
        made for axes in permutations(range(3)) if sides[axes[0]] % 2 == 0 for made in _of_axes(sides, axes, beside)
    ]
    return min(found, key=lambda made: made.steps, default=None)


def steps_along(sides: Sequence[int]) -> IntArray:
    """The neighbours of every node, up and down every side, shape (nodes, 2 * sides)."""
    number = np.arange(int(np.prod(sides))).reshape(tuple(sides))
    columns = [np.roll(number, -step, axis).ravel() for axis in range(len(sides)) for step in (1, -1)]
    return np.stack(columns, axis=1).astype(np.int64)


def _of_axes(sides: tuple[int, ...], axes: tuple[int, ...], beside: IntArray) -> Iterator[Halves]:
    """Halves of layers along the first axis, where partners at shafts are neighbours along the second; for all nodes of
    the shafts that are nearest to their half, as roots."""
    number = np.arange(int(np.prod(sides)), dtype=np.int64).reshape(sides)
    at = np.indices(sides)
    paired, across = axes[0], axes[1]
    half = at[paired].ravel() % 2
    partner = np.where(at[paired] % 2, np.roll(number, 1, paired), np.roll(number, -1, paired)).ravel()
    laid = number.transpose(axes)
    middle = laid.shape[1] // 2, laid.shape[2] // 2
    shafts = [laid[:, 0, 0], laid[:, middle[0], middle[1]]]
    for mine, shaft in enumerate(shafts):
        next_to = beside[shaft, 2 * across]
        half[shaft], half[next_to] = mine, 1 - mine
        partner[shaft], partner[next_to] = next_to, shaft
    inside = [[_steps(beside, [int(v)], half == mine) for v in shaft] for mine, shaft in enumerate(shafts)]
    depth = [[int(steps[half == mine].max()) for steps in found] for mine, found in enumerate(inside)]
    everywhere: BoolArray = np.ones(len(half), dtype=bool)
    for i, j in np.argwhere(np.add.outer(depth[0], depth[1]) == min(depth[0]) + min(depth[1])).tolist():
        root = np.array([shafts[0][i], shafts[1][j]], dtype=np.int64)
        away = np.where(half == 0, inside[0][i], inside[1][j])
        yield Halves(half, partner, root, away, _steps(beside, root.tolist(), everywhere))


def _steps(beside: IntArray, sources: Sequence[int], inside: BoolArray) -> IntArray:
    """Steps from the nearest source to every node, over nodes inside alone; :data:`FAR` where none leads."""
    found = np.full(len(beside), FAR, dtype=np.int64)
    front, steps = np.array(sources, dtype=np.int64), 0
    while len(front):
        found[front] = steps
        ahead = np.unique(beside[front])
        front, steps = ahead[inside[ahead] & (found[ahead] == FAR)], steps + 1
    return found
