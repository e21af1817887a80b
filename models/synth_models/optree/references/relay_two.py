"""``relay`` with two wavelengths on a ring of an odd number of nodes, where not all items can go the same way, rotated.

Circuits of two hops from every node take two wavelengths exactly, and only if the ring is even. On an odd ring there is
room for all but one of them and for two circuits of one hop. So item 0 stays behind where the others leap, and makes up
for it later. Clockwise (counterclockwise is the mirror image), with the fronts ``p`` nodes ahead of every origin:

* *Leap*: all items ``v > 0`` go from ``v + p`` to ``v + p + 2``, item 0 from ``p`` to ``p + 1``.
* *Fill*: all items ``v > 0`` go on to ``v + p + 3`` and, but for item 1, into the gap at ``v + p + 1``; item 0 leaps
  from ``p + 1`` to ``p + 3``, where items 0 and 1 leave room.
* *Last*: all fronts go on by one node. This takes one wavelength, so there is room for what is missing: item 0 at
  ``p + 2``, from ``p + 1``; item 1 at ``p + 2``, from ``p + 3`` counterclockwise, for every ``p`` from which was leapt.

A leap and its fill cover three nodes each way, a step like the last one node; where fewer nodes are needed, there are
more of these. So ``T`` steps are enough for ``N <= 3T`` (``T`` odd) or ``N <= 3T - 1`` (``T`` even), that is
``ceil(N/3)`` steps for every odd ``N``: the leap bound ``ceil((N-1)/3)``, or one more where 6 divides ``N - 1``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_models.optree.solution import CLOCKWISE, COUNTERCLOCKWISE, Circuits

Part = tuple[int, npt.NDArray[Any] | list[int], int, int, npt.NDArray[Any] | int]
"""Step, items, the place of their source after the origin, hops (below 0: backwards), wavelengths."""


def odd_ring(nodes: int) -> Circuits:
    """``ceil(N/3)`` steps for odd ``nodes >= 3``; circuits of two hops at most. Time and memory O(N^2)."""
    columns = []
    for sign in (1, -1):
        for step, items, place, hops, wavelength in _clockwise(nodes, -(-nodes // 3)):
            origin = np.asarray(items)
            direction = CLOCKWISE if sign * hops > 0 else COUNTERCLOCKWISE
            src = sign * (origin + place) % nodes
            row = (step, src, (src + sign * hops) % nodes, direction, wavelength, sign * origin % nodes)
            columns.append(np.stack(np.broadcast_arrays(*row)))
    table = np.concatenate(columns, axis=1)
    return Circuits.of(*table[:, np.argsort(table[0], kind="stable")])


def _clockwise(nodes: int, steps: int) -> Iterator[Part]:
    """The circuits that the clockwise fronts, ``(N-1)/2`` nodes ahead at the end, and the gaps behind them need."""
    leaps = (nodes - 1) // 2 - steps  # each with a fill; the other steps go on by one node
    everyone, others = np.arange(nodes), np.arange(1, nodes)
    for k in range(leaps):
        leap, fill, place = 2 * k + 1, 2 * k + 2, 3 * k
        yield leap, others, place, 2, (others + 1) % 2
        yield leap, [0], place, 1, 0
        yield fill, others, place + 2, 1, 0
        yield fill, others[1:], place, 1, np.where(others[1:] == 2, 0, 1)
        yield fill, [0], place + 1, 2, 1
        yield steps, [0], place + 1, 1, 1
        yield steps, [1], place + 2, -1, 1
    for k in range(steps - 2 * leaps):
        yield 2 * leaps + k + 1, everyone, 3 * leaps + k, 1, 0
