"""Backward and forward passes: schedules timed again from their end, and again from their beginning.

Backwards in time, transfers go over the machine turned around, and what waited for a transfer is what it waits for. A
pass places all of them in the gaps of their links, those first that the schedule before has last; the next pass does
the same the other way round. What one pass had to put late, because others were placed before it, comes first in the
next (Li, Willis: "An iterative scheduling technique for resource-constrained project scheduling", European Journal of
Operational Research 1992). Where all ports of a switch are full, a pass may also be list scheduling, which starts a
transfer whenever its links are free. Complexity: that of two timings a round.
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from synth.arrays import IntArray
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.from_afar import FEW
from synth_models.fabric.scheduling.list_scheduling import timed, timed_alike
from synth_models.fabric.scheduling.reversal import arrivals, ends, reversed_in_time
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

TIMED_AGAIN = ", timed again backwards and forwards"
ROUNDS, LISTED_ROUNDS = 4, 2
SAVES = Fraction(1, 500)  # of the time: what a round must save for another
MOST_TRANSFERS = 1_200_000
A_TRANSFER, LISTED = 1e-5, 3e-5  # seconds that a round takes at most, before the first, in gaps and by list scheduling
MARGIN = 1.5  # times as long as the last round


def again(
    instance: FabricInstance,
    options: RunOptions,
    found: Schedule,
    least: Fraction,
    rounded: bool = False,
    listed: bool = False,
) -> Schedule:
    """The schedule after rounds of one pass backwards and one forwards, as long as they save time, there is some left,
    and the gap asked for is not reached. Itself where it takes hardly more than ``least``, a lower bound in seconds,
    where switches store and forward, routes branch, or a rank sends several sums of a piece, or one before all its
    parts are there (an exchange). ``rounded``: many transfers are placed in cells of rounded times. ``listed``: passes
    are list scheduling instead of filling gaps: the next may save time where one has not, and a smaller gap is gone on
    for."""
    if instance.switching.mode == "store_and_forward" or not 0 < found.transfers <= MOST_TRANSFERS:
        return found
    try:
        forth = transfers_of(instance.machine, found)
    except ValueError:
        return found
    waiting = np.repeat(np.arange(found.transfers), np.diff(forth.before_start))
    if np.any(arrivals(instance, forth, found)[forth.before] > found.start[waiting]):
        return found
    back, there = reversed_in_time(forth), _turned_around(instance)
    many = found.transfers > FEW
    placed = timed_alike if listed else partial(timed, in_gaps=not many, in_cells=many, rounded=rounded)
    enough = max(chunks.NOTICEABLE if listed else chunks.WORTH, Fraction(options.relative_gap))
    best, shortest, takes = found, chunks.seconds(instance, found), (LISTED if listed else A_TRANSFER) * found.transfers
    for _ in range(LISTED_ROUNDS if listed else ROUNDS):
        if shortest * (1 - enough) <= least or not options.fits(takes + chunks.CHECKED * found.transfers):
            break
        began = time.monotonic()
        last_first = replace(back, priority=_last_first(instance, forth, found))
        found = placed(there, last_first)
        last_first = replace(forth, priority=_last_first(there, back, found))
        found = placed(instance, last_first)
        takes, seconds = MARGIN * (time.monotonic() - began), chunks.seconds(instance, found)
        if seconds < shortest:
            best = found
        if not listed and seconds > shortest * (1 - SAVES):
            break
        shortest = min(shortest, seconds)
    return best


def first_round_s(found: Schedule) -> float:
    """Seconds that the first round of :func:`again` takes at most."""
    return A_TRANSFER * found.transfers if found.transfers <= MOST_TRANSFERS else 0.0


def transfers_of(machine: Machine, schedule: Schedule) -> Transfers:
    """The transfers of a schedule, without its times. What spreads a piece waits for the transfer that brings it; what
    adds it up, and what begins to spread the sum, for all that bring a part. Raises ``ValueError`` where a route
    branches, or a rank sends several sums of a piece."""
    alone, count = Transfers.of_schedule(schedule, priority=0), schedule.transfers
    source, target = ends(machine, alone)
    comes, leaves = schedule.piece * machine.nodes + target, schedule.piece * machine.nodes + source
    sums = leaves[schedule.adds]
    if len(np.unique(sums)) < len(sums):
        raise ValueError("a rank sends several sums of a piece: they depend on what has come before each")
    parts, spread = (rows[np.argsort(comes[rows])] for rows in map(np.flatnonzero, (schedule.adds, ~schedule.adds)))
    first, last = (np.searchsorted(comes[parts], leaves, side) for side in ("left", "right"))
    begin, end = (np.searchsorted(comes[spread], leaves, side) for side in ("left", "right"))
    one = ~schedule.adds & (end > begin)
    lengths = np.where(one, 1, last - first)
    start = starts(lengths)
    row = np.repeat(np.arange(count), lengths)
    place = np.where(one, len(parts) + begin, first)
    before = np.concatenate([parts, spread])[place[row] + np.arange(int(start[-1])) - start[:-1][row]]
    return replace(alone, before_start=start, before=before)


def _turned_around(instance: FabricInstance) -> FabricInstance:
    there = copy(instance)
    there.__dict__["members"] = instance.members
    there.__dict__["machine"] = instance.machine.reversed()
    return there


def _last_first(instance: FabricInstance, transfers: Transfers, schedule: Schedule) -> IntArray:
    """Priorities by which what arrives last goes first."""
    came = arrivals(instance, transfers, schedule)
    found: IntArray = came.max(initial=0) - came
    return found
