"""What cycles that share links carry: equal shares of the data, or those that a linear program finds.

Cycles $c$ with rates $x_c$ carry most where the sum of the rates is greatest and no link or group has more than a
second's work a second: ``max sum x_c`` with ``sum of uses of r by c * x_c / bandwidth <= 1``
for all links and groups r.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from synth.arrays import AnyIntArray, FloatArray, IntArray
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.references.ring.tuned import SHARE_PARTS
from synth_models.fabric.routes.search import Route

Cycle = tuple[int, ...]
Hops = tuple[tuple[Route, ...], ...]


class Shared(NamedTuple):
    """Cycles, the routes of their hops, the bytes/s of all, and how many equal parts of the data each carries."""

    cycles: tuple[Cycle, ...]
    hops: tuple[Hops, ...]
    bandwidth: Fraction
    shares: tuple[int, ...]


def links_of(hops: Hops) -> IntArray:
    """All links of a cycle, each as often as it passes it."""
    return np.array([e for hop in hops for route in hop for e in route], dtype=np.int64)


def slowest(machine: Machine, uses: FloatArray | AnyIntArray) -> Fraction:
    """Seconds a byte on the link, or the group of links, that has most to do; exact, once it is found."""
    busy = uses / machine.network.bandwidth
    worst = [int(np.argmax(busy))] if len(busy) else []
    grouped = machine.group >= 0
    if grouped.any():
        sums = np.bincount(machine.group[grouped], busy[grouped])
        if sums.max() > busy.max():
            worst = np.flatnonzero(machine.group == int(np.argmax(sums))).tolist()
    found = sum((int(uses[e]) / exact(float(machine.network.bandwidth[e])) for e in worst), Fraction(0))
    return found or Fraction(1)


def shared(machine: Machine, hops: Mapping[Cycle, Hops]) -> Shared | None:
    """The shares of the cycles with the most bandwidth, in :data:`SHARE_PARTS`; None where no more than one has any."""
    from scipy.optimize import linprog  # half a second that only machines need whose cycles share links

    cycles = list(hops)
    uses = np.zeros((machine.links, len(cycles)), dtype=np.int64)
    for k, cycle in enumerate(cycles):
        np.add.at(uses[:, k], links_of(hops[cycle]), 1)
    busy = uses / machine.network.bandwidth[:, None]
    grouped = machine.group >= 0
    sums = np.zeros((len(machine.group_names), len(cycles)))
    np.add.at(sums, machine.group[grouped], busy[grouped])
    rows = np.concatenate([busy, sums]) * float(machine.network.bandwidth.max())
    found = linprog(-np.ones(len(cycles)), rows[rows.any(axis=1)], np.ones(int(rows.any(axis=1).sum())), method="highs")
    if found.x is None or np.count_nonzero(found.x > 0) < 2:
        return None
    return max(
        (_in_parts(machine, cycles, hops, uses, found.x / found.x.sum(), parts) for parts in SHARE_PARTS), key=_rate
    )


def _rate(found: Shared) -> Fraction:
    return found.bandwidth


def _in_parts(
    machine: Machine,
    cycles: Sequence[Cycle],
    hops: Mapping[Cycle, Hops],
    uses: IntArray,
    weight: FloatArray,
    parts: int,
) -> Shared:
    """The shares rounded to whole numbers of so many parts; the bandwidth is that of the rounded ones."""
    share = np.rint(weight * parts).astype(np.int64)
    if not share.any():
        share[int(np.argmax(weight))] = 1
    kept = [cycles[k] for k in np.flatnonzero(share).tolist()]
    rate = int(share.sum()) / slowest(machine, uses @ share)
    return Shared(tuple(kept), tuple(hops[cycle] for cycle in kept), rate, tuple(share[share > 0].tolist()))
