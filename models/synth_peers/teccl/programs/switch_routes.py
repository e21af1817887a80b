"""Routes from one node that keeps data to another, over switches that do not, as flat rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth.graph.rows import lists_by
from synth_models.fabric.problem.rows import starts
from synth_peers.teccl.programs.epoch_reservations import EpochLinks, EpochRoutes
from synth_peers.teccl.programs.grid import Grid

MOST_WAYS = 200_000


@dataclass(frozen=True, eq=False)
class SwitchRoutes:
    """``link[start[r]:start[r + 1]]``: the links of way r, which is at its link i ``offset`` epochs after its start
    and at its end after ``lag[r]``; ``src``, ``dst``, ``lag``: shape (routes,). In order of the last links:
    those that end with link e are ``by_last[e]:by_last[e + 1]``."""

    src: IntArray
    dst: IntArray
    lag: IntArray
    start: IntArray
    link: IntArray
    offset: IntArray
    by_last: IntArray

    def __len__(self) -> int:
        return len(self.src)

    @property
    def routes(self) -> EpochRoutes:
        """The same as kernels take them."""
        return EpochRoutes(self.src, self.dst, self.lag, self.start, self.link, self.offset)


def links_of(grid: Grid) -> EpochLinks:
    """What the links of a grid carry, as kernels take it."""
    return EpochLinks(
        grid.window, grid.quota, grid.instance.machine.group, grid.cost, grid.group_window, grid.group_budget
    )


def switch_routes(grid: Grid) -> SwitchRoutes | None:
    """All routes that pass no switch twice; None if they are too many."""
    found = _links_of_routes(grid)
    if found is None:
        return None
    found.sort(key=lambda way: (way[-1], len(way), way))
    start = starts([len(way) for way in found])
    link = np.array([e for way in found for e in way], dtype=np.int64)
    before = starts(grid.lag[link])  # lags of all links in front of each
    first, last = link[start[:-1]], link[start[1:] - 1]
    return SwitchRoutes(
        grid.src[first],
        grid.dst[last],
        before[start[1:]] - before[start[:-1]],
        start,
        link,
        before[:-1] - np.repeat(before[start[:-1]], np.diff(start)),
        np.searchsorted(last, np.arange(len(grid.src) + 1)).astype(np.int64),
    )


def _links_of_routes(grid: Grid) -> list[list[int]] | None:
    """The links of every way, in no order that matters; None if there are more than :data:`MOST_WAYS`."""
    dst, holds = grid.dst.tolist(), grid.holds.tolist()
    out = lists_by(grid.src, len(holds))
    found: list[list[int]] = []
    for u, keeps in enumerate(holds):
        stack = [[e] for e in out[u]] if keeps else []
        while stack:
            way = stack.pop()
            head = dst[way[-1]]
            if not holds[head]:
                passed = {dst[e] for e in way}
                stack += [[*way, e] for e in out[head] if dst[e] not in passed]
            elif head != u:
                found.append(way)
                if len(found) > MOST_WAYS:
                    return None
    return found
