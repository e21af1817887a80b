"""Bound 6 for short broadcasts on large machines: the last transfer from afar, and how many goals it serves.

Where a thousand ranks are unequally far apart, programs of flows over time become too large. What is left of them is
one cut that moves with time, with no symmetry needed: ranks at most so far from a goal know a byte only when it still
gets from there to the goal in time, all others as soon as latency allows. Every byte crosses this cut for every goal,
and a byte that leaves a rank serves only goals near to where it goes (:mod:`synth_models.fabric.check.near_goals`
states the argument and verifies it with code of its own). With a reach of 0 this says that a rank has only what is left
of the time between latency to it and latency from it.

What a broadcast needs, an allreduce needs for the contribution of its first member, and a reduce with time reversed.
Complexity: links out of ranks, times pairs of near ranks, for every reach that is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from synth.arrays import IntArray
from synth.clock.deadline import OutOfTime
from synth.graph.shortest_paths import UNREACHABLE, search
from synth.kernels import jit
from synth_models.fabric.bounds.arrays import Links, least_time
from synth_models.fabric.bounds.gossip import pays_its_way
from synth_models.fabric.bounds.paths import distances
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.rows import starts

MOST_REACHES = 6  # that are tried, the shortest ones but 0
MOST_WORK = 10**9  # links out of ranks, times pairs of near ranks


def strongest_near_goals(links: Links, more: Callable[[], bool], known: Proven) -> Proven:
    """The bound of the best reach if it is stronger than ``known``."""
    if len(links.instance.blocks) != 1 or not pays_its_way(links) or not links.delay.any():
        return known
    directed = links if links.blocks[1][0] == EVERYONE else links.reverse
    origin, _, size = (int(column[0]) for column in directed.blocks)
    try:
        found = _Towards(directed, int(links.members[0]) if origin == EVERYONE else origin, size)
    except OutOfTime:
        return known
    return found.best(more, known)


class _Towards:
    """One block from a root to all members; distances between ranks are in ticks."""

    def __init__(self, links: Links, root: int, size: int) -> None:
        self.links, self.root, self.size = links, root, size
        self.ranks = np.flatnonzero(~links.is_switch)
        self.wanted = np.isin(self.ranks, links.members) & (self.ranks != root)
        self.apart = np.stack([distances(links, links.delay, [u])[self.ranks] for u in self.ranks.tolist()])

    def best(self, more: Callable[[], bool], best: Proven) -> Proven:
        """The strongest of all reaches, as long as there is time and the work is not too much."""
        source = int(np.searchsorted(self.ranks, self.root))
        if np.any(self.apart[source][self.wanted] >= UNREACHABLE):
            return best
        reaches = np.unique(self.apart[self.apart < UNREACHABLE])[:-1][:MOST_REACHES]
        reaches = reaches[len(reaches) > 1 :]  # that of 0 is hardly ever the best, and deliveries prove as much
        needed = Fraction(self.size * int(self.wanted.sum())) / self.unit
        leaving = int(np.count_nonzero(~self.links.is_switch[self.links.src]))
        before = Fraction(0)
        for reach in reaches.tolist():
            if not more() or leaving * int(np.count_nonzero(self.apart <= reach)) > MOST_WORK:
                break
            try:
                ticks, rest = least_time(*self._rows(reach, source), needed)
            except OutOfTime:
                break
            seconds = (ticks + rest) / self.links.ticks
            best = self._proven(seconds, reach) if seconds > best.seconds else best
            if seconds < before:
                break  # what is saved near a goal no longer pays for what serves several
            before = seconds
        return best

    @property
    def unit(self) -> Fraction:
        """Bytes that a link of rate 1 carries in a tick."""
        return self.links.unit / self.links.ticks

    def _rows(self, reach: int, source: int) -> tuple[list[int], IntArray]:
        """Rates, and ticks before the end from which on each goes to one goal more."""
        links, place = self.links, np.full(self.links.nodes, -1, dtype=np.int64)
        place[self.ranks] = np.arange(len(self.ranks))
        near = (self.apart <= reach) & self.wanted
        near[source] = False
        start = starts(near.sum(axis=1))
        goal = np.nonzero(near)[1].astype(np.int64)
        over = {}
        rates: list[int] = []
        lost: list[IntArray] = []
        for e in np.flatnonzero(~links.is_switch[links.src]).tolist():
            x, head = int(place[links.src[e]]), int(links.dst[e])
            if self.apart[source, x] >= UNREACHABLE:
                continue
            if head not in over:
                over[head] = self._over_switches(head)
            late = (self.apart[x] > reach) | (x == source)
            late[x] = False
            at = _kth(start, goal, self.apart, over[head], late, x, int(near.sum(axis=1).max(initial=0)))
            at = at[at < UNREACHABLE]
            rates += [int(links.rate[e])] * len(at)
            lost.append(at + int(links.delay[e]) + int(self.apart[source, x]))
        return rates, np.concatenate(lost)

    def _over_switches(self, head: int) -> IntArray:
        """Ticks from a node to every rank, over switches only."""
        links, first = self.links, np.full(self.links.nodes, UNREACHABLE, dtype=np.int64)
        first[head] = 0
        if not links.is_switch[head]:
            return first[self.ranks]
        came, order = np.empty(links.nodes, dtype=np.int64), np.empty(links.nodes, dtype=np.int64)
        return search(*links.out, links.dst, links.delay, first, links.is_switch, came, order)[self.ranks]

    def _proven(self, seconds: Fraction, reach: int) -> Proven:
        links = self.links
        return Proven(
            seconds,
            "near_goals",
            lambda: f"near goals: a byte from afar serves members within {reach / links.ticks:.3g} s of its end",
            lambda: {
                "argument": "near_goals",
                "backwards": int(links.is_reversed),
                "root": self.root,
                "reach": reach,
            },
        )


@jit
def _kth(
    start: IntArray, goal: IntArray, apart: IntArray, over: IntArray, late: IntArray, x: int, most: int
) -> IntArray:
    """The least over all ranks w of the k-th shortest way over w to a late goal near it, for every k; shape (most,)."""
    found = np.full(most, UNREACHABLE, dtype=np.int64)
    for w in range(len(over)):
        if w == x or over[w] >= UNREACHABLE:
            continue
        ways = np.sort(apart[w][goal[start[w] : start[w + 1]]][late[goal[start[w] : start[w + 1]]]])
        for k in range(len(ways)):
            found[k] = min(found[k], over[w] + ways[k])
    return found
