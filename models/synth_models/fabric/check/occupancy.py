"""Links and groups that would carry two transfers at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from synth.arrays import Int32Array, IntArray
from synth.kernels import jit
from synth_models.fabric.check import without_kernels
from synth_models.fabric.check.route_hops import Hops
from synth_models.fabric.check.rows import rows_by
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.solution import Schedule

MOST_KEPT = 20


class Clash(NamedTuple):
    """A hop, the hop of another transfer that is still under way when it begins, and whether their group is meant."""

    hop: int
    other: int
    of_group: bool


class Taken(NamedTuple):
    """What hops occupy: the ``row`` of each (-1: none) among ``rows`` links or groups, shape (hops,), and the transfer
    (``owner``, shape (hops,)) that may occupy it twice."""

    row: Int32Array
    rows: int
    owner: Int32Array
    of_group: bool


def clashes(machine: Machine, schedule: Schedule, hops: Hops) -> tuple[int, list[Clash]]:
    """How many hops begin while their link, or a group of theirs, is occupied by another transfer; the first ones."""
    taken = [Taken(schedule.link.astype(np.int32), machine.links, hops.owner, False)]
    if np.any(machine.group >= 0):
        group = machine.group.astype(np.int32)
        taken.append(Taken(group[schedule.link], int(group.max()) + 1, hops.owner, True))
    return overlapping(hops, taken)


def overlapping(hops: Hops, taken: Sequence[Taken]) -> tuple[int, list[Clash]]:
    """How many hops begin while what they occupy is occupied by another transfer; the first ones."""
    none = np.zeros(0, dtype=bool)
    total, found = 0, list[Clash]()
    for row, rows, owner, of_group in taken:
        row_start, order = rows_by(row, rows, hops.begin, none)
        if without_kernels.wanted(len(row)):
            end = hops.begin + hops.ticks[hops.span]
            if without_kernels.nothing_overlaps(row_start, order, hops.begin, end):
                continue
        kept = np.zeros((MOST_KEPT, 2), dtype=np.int64)
        count = _overlaps(row_start, order, hops.begin, hops.span, hops.ticks, owner, kept)
        total += int(count)
        found += [Clash(int(now), int(before), of_group) for now, before in kept[: min(count, MOST_KEPT)]]
    return total, found


def streams_at_once(machine: Machine, schedule: Schedule, hops: Hops) -> list[tuple[int, int, int, int]]:
    """Switches that copy or add more transfers at a time than their ``streams``: node, how many it may, the first tick
    of that, how many it does. A transfer takes one from the first use of a link of its at the switch to the last."""
    limit, net = machine.abilities.streams, machine.network
    found = []
    for node in np.flatnonzero(limit > 0).tolist():
        into, out = net.dst[schedule.link] == node, net.src[schedule.link] == node
        times = (np.bincount(hops.owner[side], minlength=schedule.transfers) > 1 for side in (into, out))
        several = np.logical_or(*times)
        rows = np.flatnonzero((into | out) & several[hops.owner])
        if not len(rows):
            continue
        numbers, which = np.unique(hops.owner[rows], return_inverse=True)
        first, last = np.full(len(numbers), np.iinfo(np.int64).max), np.zeros(len(numbers), dtype=np.int64)
        np.minimum.at(first, which, hops.begin[rows])
        np.maximum.at(last, which, hops.begin[rows] + hops.ticks[hops.span[rows]])
        ticks = np.concatenate([last, first])  # of one tick, what ends goes before what begins
        change = np.repeat([-1, 1], len(numbers))
        order = np.argsort(ticks, kind="stable")
        running = np.cumsum(change[order])
        over = np.flatnonzero(running > limit[node])
        if len(over):
            found.append((node, int(limit[node]), int(ticks[order][over[0]]), int(running[over[0]])))
    return found


@jit
def _overlaps(
    row_start: IntArray,
    order: Int32Array,
    begin: IntArray,
    span: Int32Array,
    ticks: IntArray,
    owner: Int32Array,
    kept: IntArray,
) -> int:
    """Per row, in order of time: a hop must not begin before all hops of *other* transfers have ended. It is enough to
    remember the hop that ends last, and the one that ends last among those of other transfers than that."""
    count = 0
    for r in range(len(row_start) - 1):
        last, last_end, second, second_end = -1, np.int64(-1), -1, np.int64(-1)
        for n in range(row_start[r], row_start[r + 1]):
            k = order[n]
            end = begin[k] + ticks[span[k]]
            other, other_end = last, last_end
            if last >= 0 and owner[last] == owner[k]:
                other, other_end = second, second_end
            if other >= 0 and other_end > begin[k]:
                if count < len(kept):
                    kept[count, 0], kept[count, 1] = k, other
                count += 1
            if last < 0 or owner[last] == owner[k]:
                if end > last_end:
                    last, last_end = k, end
            elif end > last_end:
                second, second_end = last, last_end
                last, last_end = k, end
            elif end > second_end:
                second, second_end = k, end
    return count
