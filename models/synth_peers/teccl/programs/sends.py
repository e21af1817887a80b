"""A plan where chunks are copied: who sends what over which link in which epoch."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth_peers.teccl.programs.grid import UNREACHABLE_EPOCHS, Grid


@dataclass(frozen=True, eq=False)
class Sends:
    """``chunk`` goes over ``link`` in ``epoch``: shape (sends,) each, those into a switch before those out of it."""

    chunk: IntArray
    link: IntArray
    epoch: IntArray

    def __len__(self) -> int:
        return len(self.chunk)

    def taken(self, which: BoolArray | IntArray) -> Sends:
        """Those sends alone."""
        return Sends(self.chunk[which], self.link[which], self.epoch[which])


def epochs_of(grid: Grid, sends: Sends) -> int:
    """Epochs until everything is where it is wanted, for sends that are in order."""
    arrive = np.full(grid.wanted.shape, UNREACHABLE_EPOCHS, dtype=np.int64)
    np.minimum.at(arrive, (sends.chunk, grid.dst[sends.link]), sends.epoch + grid.lag[sends.link])
    arrive[np.arange(len(grid.origin)), grid.origin] = 0
    return int(arrive[grid.wanted].max(initial=0))


def in_order(grid: Grid, sends: Sends) -> Sends:
    """The sends in an order in which they can be made one after another; those that never can are left out.

    A switch without buffer sends what has come in that epoch, once for every arrival if it does not copy.
    """
    first = np.argsort(sends.epoch, kind="stable")
    chunk, link, epoch = (row[first].tolist() for row in (sends.chunk, sends.link, sends.epoch))
    src, dst, lag, holds = (row.tolist() for row in (grid.src, grid.dst, grid.lag, grid.holds))
    since: dict[tuple[int, int], int] = dict.fromkeys(enumerate(grid.origin.tolist()), 0)
    coming: dict[tuple[int, int, int], int] = defaultdict(int)
    made: list[int] = []

    def can(i: int) -> bool:
        at = (chunk[i], src[link[i]])
        return since.get(at, UNREACHABLE_EPOCHS) <= epoch[i] if holds[at[1]] else coming[*at, epoch[i]] > 0

    def make(i: int) -> None:
        made.append(i)
        c, u, v, when = chunk[i], src[link[i]], dst[link[i]], epoch[i] + lag[link[i]]
        if not holds[u] and not grid.copies:
            coming[c, u, epoch[i]] -= 1
        if holds[v]:
            since[c, v] = min(since.get((c, v), UNREACHABLE_EPOCHS), when)
        else:
            coming[c, v, when] += 1

    at = 0
    while at < len(epoch):
        begin = at
        while at < len(epoch) and epoch[at] == epoch[begin]:
            at += 1
        waiting, still = list(range(begin, at)), 0
        while len(waiting) != still:
            still, left = len(waiting), []
            for i in waiting:
                if can(i):
                    make(i)
                else:
                    left.append(i)
            waiting = left
    return sends.taken(first[np.array(made, dtype=np.int64)])
