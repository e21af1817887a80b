"""What can carry data over a cut, and when."""

from __future__ import annotations

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.graph.shortest_paths import UNREACHABLE
from synth_models.fabric.bounds.arrays import Links, group_rows
from synth_models.fabric.bounds.paths import earliest


def rates(links: Links, chosen: BoolArray) -> tuple[IntArray, IntArray]:
    """The row of every chosen link, one for the links of a group, shape (chosen,), and what each row carries at most,
    in multiples of :attr:`Links.unit`, shape (rows,): of a group as much as its fastest link."""
    row, rows = group_rows(links, chosen)
    rate = np.zeros(rows, dtype=np.int64)
    np.maximum.at(rate, row, links.rate[chosen])
    return row, rate


def crossing(links: Links, inside: BoolArray, origins: BoolArray, goals: BoolArray) -> tuple[IntArray, IntArray]:
    """Bytes a second (in multiples of :attr:`Links.unit`) over the cut around ``inside``, and the ticks that data needs
    before and after: a row for each link on a way from an origin to a goal, one for the links of a group. The groups'
    argument stands in :mod:`synth_models.fabric.bounds.cuts`."""
    chosen = inside[links.src] & ~inside[links.dst]
    begin = earliest(links, origins)[links.src]
    left = earliest(links.reverse, goals)[links.dst]
    chosen &= (begin < UNREACHABLE) & (left < UNREACHABLE)
    row, rate = rates(links, chosen)
    at = [np.full_like(rate, UNREACHABLE), np.full_like(rate, UNREACHABLE)]
    before, behind = links.lag
    for least, values in zip(at, (begin + before, left + behind), strict=True):
        np.minimum.at(least, row, values[chosen])
    return rate, at[0] + at[1]
