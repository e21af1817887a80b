"""Ring and neighbor exchange as circuits, which the check replays; both send to neighbours only.

Neighbor exchange (Chen, Zhang, Zhang, Yuan 2005, the paper's [9]) is for even N: neighbours exchange their items, then
all exchange the two items that they received last (first their pair's) with the neighbours on either side in turn.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth_models.optree.solution import CLOCKWISE, COUNTERCLOCKWISE, Circuits

ITEMS = 2  # that an exchange carries each way after the first step


def ring_circuits(nodes: int) -> Circuits:
    """Every node hands on clockwise, in each of ``nodes - 1`` steps, what it received last; one wavelength."""
    step, src = (grid.ravel() for grid in np.indices((nodes - 1, nodes)))
    nothing = np.zeros(len(step), dtype=np.int32)
    return Circuits.of(step + 1, src, (src + 1) % nodes, nothing + CLOCKWISE, nothing, (src - step) % nodes)


def exchange_circuits(nodes: int, wavelengths: int) -> Circuits:
    """Neighbor exchange on an even number of nodes; with one wavelength an exchange of two items takes two steps."""
    here = np.arange(nodes)
    even = here % 2 == 0
    partner = np.where(even, here + 1, here - 1)
    columns = [_sent(1, here, partner, even, 0, here)]
    pair, step, towards = here // 2, 2, ~even  # whose turn it is to send clockwise
    for _ in range(nodes // 2 - 1):
        partner = np.where(towards, here + 1, here - 1) % nodes
        for number in range(ITEMS):
            later, wavelength = divmod(number, min(ITEMS, wavelengths))
            columns.append(_sent(step + later, here, partner, towards, wavelength, ITEMS * pair + number))
        step += -(-ITEMS // wavelengths)
        pair, towards = pair[partner], ~towards  # what was received is sent on next, on the other side
    return Circuits.of(*np.concatenate(columns, axis=1))


def _sent(
    step: int, here: IntArray, partner: IntArray, clockwise: BoolArray, wavelength: int, items: IntArray
) -> IntArray:
    """Columns of one exchange of all nodes, an item each."""
    same = np.ones(len(here), dtype=np.int64)
    direction = np.where(clockwise, CLOCKWISE, COUNTERCLOCKWISE)
    return np.stack([same * step, here, partner, direction, same * wavelength, items])
