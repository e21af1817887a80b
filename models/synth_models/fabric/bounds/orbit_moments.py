"""Bound 5 for machines of many boxes: flows over time of one block, of one demand of every kind.

As :mod:`synth_models.fabric.bounds.flow_moments`, but ranks may be unequally far apart, and what looks alike is one.
Let delta be a measure of all latencies of direct routes (or a part of the bound; latencies are then rounded down) and T
= H delta + x. Between two ranks of one colour (colour refinement with the root marked) everybody's share is the same,
and of all goals of one colour one is enough, with the flow over time that brings it the block: averaging a point of the
program over what looks alike gives a point (Grohe, Kersting, Mladenov, Selman: "Dimension reduction via colour
refinement", ESA 2014). So a thousand GPUs take as many unknowns as sixteen.

What a broadcast needs, an allreduce needs for the contribution of its first member, and a reduce with time reversed.

The dual's potentials are moments, as there. In the certificate, one demand stands for all its images under symmetries
of the instance that keep the root (:mod:`synth_models.fabric.check.orbits` states the argument and verifies it).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.clock.deadline import OutOfTime
from synth.graph.symmetry import orbits
from synth_models.fabric.bounds.arrays import FINEST as TICKS
from synth_models.fabric.bounds.arrays import ROOM, Links
from synth_models.fabric.bounds.block_flows import DirectRoutes, FlowsOverTime, OneBlock
from synth_models.fabric.bounds.gossip import pays_its_way
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.problem.blocks import EVERYONE

MOST_COLUMNS = 60_000  # of the linear program
RESOLUTIONS = (24, 48, 96)  # bins that a bound is cut into, one after the other
FINE = 20  # a tick of latency in at most so many halvings
WEIGHTS = 2**12  # of the dual's highest price, in whole numbers
HEAVIER = 2**14  # by which they are multiplied, so that their means over orbits are hardly rounded


def strongest_orbit_moments(links: Links, more: Callable[[], bool], known: Proven) -> Proven:
    """The bound of flows over time if it is stronger than ``known`` and small enough to compute."""
    blocks = links.instance.blocks
    if len(blocks) != 1 or not pays_its_way(links) or not links.delay.any() or np.any(links.group >= 0):
        return known
    directed = links.reverse if blocks.origin[0] == EVERYONE and blocks.goal[0] != EVERYONE else links
    origin = int(directed.blocks[0][0])
    best = known
    try:
        routes = DirectRoutes.of(directed) if more() else None
        if routes is None:
            return known
        problem = OneBlock(directed, routes, int(links.members[0]) if origin == EVERYONE else origin)
        for resolution in RESOLUTIONS:
            best = _improved(problem, best, resolution, more)
    except OutOfTime:
        pass  # what has been proven stays
    return best


def _improved(problem: OneBlock, best: Proven, resolution: int, more: Callable[[], bool]) -> Proven:
    """The bound with time cut into about so many bins, if it is stronger than ``best``."""
    ticks = int(best.seconds * problem.links.ticks)
    length = max(1, math.gcd(*np.unique(problem.routes.delay).tolist()), ticks // resolution)
    low = bins = max(1, ticks // length)
    step, high = 1, 0
    found: tuple[FlowsOverTime, list[FloatArray]] | None = None
    while more() and (not high or low < high):  # the least number of bins behind which T may lie
        program = FlowsOverTime(problem, bins, length)
        potentials = program.solve() if program.columns <= MOST_COLUMNS else None
        if potentials is not None:
            found, high = (program, potentials), bins
        elif program.columns > MOST_COLUMNS:
            break
        else:
            low = bins + 1
        bins, step = ((low + high) // 2, step) if high else (bins + step, 2 * step)
    if found is None:
        return best
    certified = Certified(problem, *found)
    for payers in problem.routes.payers:
        proven = certified.proven(payers)
        best = proven if proven is not None and proven.seconds > best.seconds else best
    proven = certified.proven((problem.routes.last,), certified.tolls(found[0]))
    return proven if proven is not None and proven.seconds > best.seconds else best


class Certified:
    """Moments from potentials, and the bound that they prove, in exact arithmetic."""

    def __init__(self, problem: OneBlock, program: FlowsOverTime, potentials: list[FloatArray]) -> None:
        self.problem, self.length, self.bins = problem, program.length, program.bins
        links = problem.links
        room = min(TICKS // links.ticks, ROOM // (4 * links.nodes * (program.whole + 1) * program.length))
        self.finer = 1 << min(FINE, max(room, 1).bit_length() - 1)
        self.rows: list[
            tuple[int, int, IntArray]
        ] = []  # goal's number, weight, and the bin from which colours are late
        highest = max(float(np.abs(potential).max()) for potential in potentials)
        self.scale = WEIGHTS / highest if highest else 0.0
        for number, potential in enumerate(potentials):
            self._levels(number, potential)
        count, routes = len(problem.ranks), problem.routes
        delays, delay = np.unique(routes.delay, return_inverse=True)
        width = len(delays)
        keys, at, where = np.unique(
            (routes.src * count + routes.dst) * width + delay.reshape(-1), return_index=True, return_inverse=True
        )
        src, dst, rest = keys // width // count, keys // width % count, keys % width
        moved = np.searchsorted(problem.ranks, problem.symmetries[:, problem.ranks])
        images = [np.searchsorted(keys, (image[src] * count + image[dst]) * width + rest) for image in moved]
        orbit = np.unique(orbits(len(keys), images), return_inverse=True)[1].reshape(-1)
        self.orbit = orbit[where.reshape(-1)]  # of every route: of its ends and its delay
        self.size = np.bincount(orbit)
        self.price = self._prices(at)

    def _levels(self, number: int, potential: FloatArray) -> None:
        """Level sets of the potential, which rises from 0 at the root to its value at the goal."""
        seen, goal = self.problem.seen[number], self.problem.goals[number]
        rise = np.maximum.accumulate(np.abs(potential)[:, ::-1], axis=1)[:, ::-1]  # falls in time but for rounding
        top = np.rint(rise * self.scale).astype(np.int64)
        top[seen.rank[self.problem.root]] = 0
        highest = int(top[seen.rank[goal], -1])
        below = 0
        for level in np.unique(top[(top > 0) & (top <= highest)]).tolist():
            late = top < level
            since = np.where(late.any(axis=1), late.argmax(axis=1), self.bins)
            self.rows.append((number, (level - below) * HEAVIER, since))
            below = level

    def _prices(self, at: IntArray) -> IntArray:
        """What a byte on a route pays that leaves in every bin: the mean over its orbit, rounded up, shape (orbits,
        bins). ``at``: a route of every pair of ranks and delay."""
        routes = self.problem.routes
        total = np.zeros((len(self.size), self.bins), dtype=np.int64)
        sent = np.arange(self.bins)
        delay = 2 * (routes.delay[at] // self.length)
        for number, seen in enumerate(self.problem.seen):
            ends = np.stack([self.orbit[at], seen.rank[routes.src[at]], seen.rank[routes.dst[at]], delay])
            kinds, times = np.unique(ends, axis=1, return_counts=True)
            orbit, here, there, shift = kinds
            for demand, weight, since in self.rows:
                if demand == number:
                    open_ = (sent >= since[here][:, None]) & (sent + shift[:, None] < since[there][:, None])
                    np.add.at(total, orbit, open_ * (times * weight)[:, None])
        found: IntArray = -(-total // self.size[:, None])
        return found

    def tolls(self, program: FlowsOverTime) -> dict[int, IntArray]:
        """What first links take of a byte in every bin, never rising, by link; only before last links that are no
        faster (backwards: no slower), which then pay the rest."""
        links, routes = self.problem.links, self.problem.routes
        rates = links.rate[routes.first], links.rate[routes.last]
        unlike = np.unique(routes.first[rates[0] > rates[1] if links.is_reversed else rates[0] < rates[1]])
        last = np.unique(routes.last)
        found = {}
        for e, price in program.tolls.items():
            if e not in unlike and e not in last:
                falling = np.maximum.accumulate(np.maximum(price, 0.0)[::-1])[::-1]
                found[e] = np.rint(falling * (self.scale * HEAVIER)).astype(np.int64)
        return found

    def proven(self, payers: tuple[IntArray, ...], tolls: dict[int, IntArray] | None = None) -> Proven | None:
        """Where these links of every route pay, less what first links have taken; None if nothing is proven."""
        links = self.problem.links
        needed = sum(weight for _, weight, _ in self.rows) * int(links.instance.blocks.bytes[0]) * len(payers)
        per_x, fixed = Fraction(0), Fraction(0)
        tolls = tolls or {}
        nothing = np.zeros(self.bins, dtype=np.int64)
        by_link = {e: [toll] for e, toll in tolls.items()}
        for column in payers:
            kinds = np.stack([column, self.orbit, self.problem.routes.first])
            for e, orbit, first in np.unique(kinds, axis=1).T.tolist():
                by_link.setdefault(e, []).append(self.price[orbit] - tolls.get(first, nothing))
        for e, prices in by_link.items():
            most = np.maximum(np.max(prices, axis=0), 0)
            rate = Fraction(int(links.rate[e])) * links.unit * Fraction(self.length, links.ticks)
            per_x += rate * (int(most[::2].sum()) - int(most[1::2].sum()))
            fixed += rate * int(most[1::2].sum())
        if not self.rows or per_x <= 0:
            return None
        part = int(min(Fraction(1), (needed - fixed) / per_x) * self.length * self.finer) - 1
        if part < 0:
            return None
        seconds = Fraction((self.bins // 2) * self.length * self.finer + part, links.ticks * self.finer)
        return Proven(seconds, "orbit_moments", self._words, lambda: self._certificate(part, payers, tolls))

    def _certificate(self, part: int, payers: tuple[IntArray, ...], tolls: dict[int, IntArray]) -> dict[str, Any]:
        problem, links = self.problem, self.problem.links
        share = np.zeros(links.links, dtype=np.int64)
        share[np.concatenate(payers)] = 1
        length = self.length * self.finer
        when = np.array([k // 2 * length + (part if k % 2 else 0) for k in range(self.bins + 1)], dtype=np.int64)
        width = 1 + max(int(seen.rank.max()) for seen in problem.seen)
        since = np.zeros((len(self.rows), width), dtype=np.int64)
        for row, (_, _, late) in enumerate(self.rows):
            since[row, : len(late)] = when[late]
        root, goals = [int(problem.ranks[problem.root])] * len(problem.goals), problem.ranks[problem.goals].tolist()
        found = {
            "argument": "orbit_moments",
            "backwards": int(links.is_reversed),
            "finer": self.finer,
            "share": share.tolist(),
            "images": problem.symmetries.reshape(-1).tolist(),
            "source": root,
            "target": goals,
            "classes": np.concatenate([seen.rank for seen in problem.seen]).tolist(),
            "of": [number for number, _, _ in self.rows],
            "weight": [weight for _, weight, _ in self.rows],
            "since": since.reshape(-1).tolist(),
        }
        if not tolls:
            return found
        rows, which = np.unique(np.stack(list(tolls.values())), axis=0, return_inverse=True)
        of = np.zeros(links.links, dtype=np.int64)
        of[list(tolls)] = which.reshape(-1) + 1
        return found | {"toll_at": when.tolist(), "toll": rows.reshape(-1).tolist(), "toll_of": of.tolist()}

    def _words(self) -> str:
        return (
            f"moments: {len(self.rows)} cuts that move with time between {len(self.problem.goals)} pairs of ranks and "
            "all that look like them, each of which every byte has to cross"
        )
