"""Start times of which some are given: those stay, and all other transfers are placed around them one by one."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.scheduling.list_scheduling import followers_of, most_seconds, occupied, schedule_of
from synth_models.fabric.scheduling.reservations import Uses
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule


def ticks_for(instance: FabricInstance, transfers: Transfers, latest: float) -> int:
    """Ticks a second with room for all of the transfers one after the other behind the ``latest`` start, in seconds."""
    return clock.ticks_per_second(instance.machine, most_seconds(instance, transfers) + 2 * latest)


def fitted_in(
    instance: FabricInstance, transfers: Transfers, order: Sequence[int], ticks: int, fixed: Mapping[int, int],
    earliest: Mapping[int, int],
) -> Schedule:  # fmt: skip
    """The transfers, those of ``fixed`` at these ticks, the others in this ``order`` (each behind what it waits for),
    each as early as its links are free, in gaps too, and not before ``earliest``. Whether what is fixed can be is the
    check's. Routes are paths. Complexity: n log n in transfers, and the search for a gap."""
    hops, uses, _ = occupied(instance, transfers, ticks, True)
    followers = followers_of(instance.machine, transfers, hops)
    row, follower, lag = followers.row.tolist(), followers.transfer.tolist(), followers.lag.tolist()
    use_row, resource, offset, duration = (column.tolist() for column in uses)
    taken = _Taken(Uses(use_row, resource, offset, duration))
    start = [fixed.get(i, -1) for i in range(len(order))]
    for i in fixed:
        taken.take(i, start[i])
    ready = [earliest.get(i, 0) for i in range(len(order))]
    for i in order:
        if start[i] < 0:
            start[i] = taken.free_from(i, max(ready[i], 0))
            taken.take(i, start[i])
        for k in range(row[i], row[i + 1]):
            ready[follower[k]] = max(ready[follower[k]], start[i] + max(lag[k], 0))
    return schedule_of(instance, transfers, ticks, hops, (np.array(start, dtype=np.int64), True))


class _Taken:
    """When links and groups are taken: intervals of every resource, sorted. Uses are lists here."""

    def __init__(self, uses: Uses) -> None:
        self.uses = uses
        self.busy: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)

    def free_from(self, i: int, start: int) -> int:
        """The first start of transfer i from ``start`` on at which all that it uses is free."""
        uses = self.uses
        settled, k = 0, uses.row[i]
        while settled < uses.row[i + 1] - uses.row[i]:
            found = self._gap(uses.resource[k], start + uses.offset[k], uses.duration[k]) - uses.offset[k]
            settled = settled + 1 if found == start else 1
            start = found
            k = k + 1 if k + 1 < uses.row[i + 1] else uses.row[i]
        return start

    def take(self, i: int, start: int) -> None:
        """Take all that transfer i uses."""
        for k in range(self.uses.row[i], self.uses.row[i + 1]):
            begin = start + self.uses.offset[k]
            insort(self.busy[self.uses.resource[k]], (begin, begin + self.uses.duration[k]))

    def _gap(self, resource: int, at: int, lasts: int) -> int:
        """The first moment from ``at`` on from which the resource is free for so long."""
        busy = self.busy[resource]
        place = bisect_left(busy, (at, at))
        if place and busy[place - 1][1] > at:
            at = busy[place - 1][1]
        while place < len(busy) and busy[place][0] < at + lasts:
            at, place = max(at, busy[place][1]), place + 1
        return at
