"""Bound 5 for machines of many boxes: flows over time of one block, of one demand of every kind.

As :mod:`synth_models.fabric.bounds.flow_moments`, but ranks may be unequally far apart, and what looks alike is one.
Let delta be a measure of all latencies of direct routes (or a part of the bound; latencies are then rounded down) and T
= H delta + x. Between two ranks of one colour (colour refinement with the root marked) everybody's share is the same,
and of all goals of one colour one is enough, with the flow over time that brings it the block: averaging a point of the
program over what looks alike gives a point (Grohe, Kersting, Mladenov, Selman: "Dimension reduction via colour
refinement", ESA 2014). So a thousand GPUs take as many unknowns as sixteen.

What a broadcast needs, an allreduce needs for the contribution of its first member, and a reduce with time reversed.

Switches that copy or add (cut through) multiply data only on links at them, or at switches joined to them over others.
Routes there cost nothing in the program but take their latency; all others occupy links for themselves alone, as every
route is on one side or the other. So boxes whose NVSwitch multiplies, on rails that do not, are bound by their NICs.

The dual's potentials are moments, as there. In the certificate, one demand stands for all its images under symmetries
of the instance that keep the root (:mod:`synth_models.fabric.check.orbits` states the argument and verifies it).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

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
MOST_IMAGES = 3 * 10**7  # of pairs of ranks, with more of which the check has no room
RESOLUTIONS = (6, 12, 24, 48)  # bins that a bound is cut into, at least, one after the other
MOST_TICKS = 2**52  # of a bound: beyond, no latency has a say in it
MOST_BINS = 1000  # of a latency that has a say in how long bins are
FINE = 20  # a tick of latency in at most so many halvings
WEIGHTS = 2**12  # of the dual's highest price, in whole numbers
HEAVIER = 2**14  # by which they are multiplied, so that their means over orbits are hardly rounded


def strongest_orbit_moments(links: Links, more: Callable[[], bool], known: Proven) -> Proven:
    """The bound of flows over time if it is stronger than ``known`` and small enough to compute."""
    if not _suits(links):
        return known
    blocks = links.instance.blocks
    directed = links.reverse if blocks.origin[0] == EVERYONE and blocks.goal[0] != EVERYONE else links
    origin = int(directed.blocks[0][0])
    best = known
    try:
        routes = DirectRoutes.of(directed) if more() else None
        if routes is None or not len(routes.paying):
            return known
        problem = OneBlock(directed, routes, int(links.members[0]) if origin == EVERYONE else origin)
        if len(problem.symmetries) * len(problem.ranks) ** 2 > MOST_IMAGES:
            return known
        orbits_of_routes, common = RouteOrbits(problem), math.gcd(*np.unique(routes.delay).tolist())
        searched: dict[int, float] = {}  # by a bin's length, the number of bins of the program that was found
        for resolution in RESOLUTIONS:
            ticks = int(best.seconds * directed.ticks)
            if ticks > MOST_TICKS:
                break
            length = _least_rounding(routes.delay, max(1, common, ticks // resolution))
            bins = max(1, ticks // length)
            if bins > searched.get(length, 0.0):  # else it would be the same program
                found = _solved(problem, length, bins, more)
                searched[length] = found[0].whole if found is not None else math.inf
                best = best if found is None else _improved(Certified(orbits_of_routes, *found), best, found[0])
    except OutOfTime:
        pass  # what has been proven stays
    return best


def _least_rounding(delay: IntArray, most: int) -> int:
    """The length of a bin, at most so long and more than half of it, with which latencies lose least of their own.

    While no latency gets another number of bins, longer bins lose less: only ``most`` and the longest bins of which a
    latency has k can be best. Latencies of more than ``MOST_BINS`` bins lose next to nothing and name none.
    """
    distinct = np.unique(delay[delay > 0]) if np.any(delay > 0) else np.ones(1, dtype=np.int64)
    lengths = {most}
    for latency in distinct[distinct <= MOST_BINS * most].tolist():
        lengths |= {latency // parts for parts in range(latency // most + 1, 2 * latency // most + 2)}
    tried = [length for length in sorted(lengths, reverse=True) if most // 2 < length <= most]
    return min(tried, key=lambda length: float(np.sum(distinct % length / distinct)))


def _suits(links: Links) -> bool:
    """Whether the argument says anything of this instance."""
    if len(links.instance.blocks) != 1 or not links.delay.any() or np.any(links.group >= 0):
        return False
    return links.instance.switching.mode != "store_and_forward" or pays_its_way(links)


def _improved(certified: Certified, best: Proven, program: FlowsOverTime) -> Proven:
    """What the program's potentials prove if that is stronger than ``best``."""
    routes = certified.problem.routes
    for payers in routes.payers:
        proven = certified.proven(payers)
        best = proven if proven is not None and proven.seconds > best.seconds else best
    for late in (True, False):
        proven = certified.proven(routes.payers[-1], certified.tolls(program, late))
        best = proven if proven is not None and proven.seconds > best.seconds else best
    return best


def _solved(
    problem: OneBlock, length: int, low: int, more: Callable[[], bool]
) -> tuple[FlowsOverTime, list[FloatArray]] | None:
    """The program of the least number of bins, from ``low`` on, behind which T may lie, with its potentials; of the
    least that was solved in time; None without any, or where programs become too large."""
    bins, step, high = low, 1, 0
    found: tuple[FlowsOverTime, list[FloatArray]] | None = None
    while more() and (not high or low < high):
        program = FlowsOverTime(problem, bins, length)
        if program.columns > MOST_COLUMNS:
            break
        try:
            potentials = program.solve()
        except OutOfTime:
            break
        if potentials is not None:
            found, high = (program, potentials), bins
        else:
            low = bins + 1
        bins, step = ((low + high) // 2, step) if high else (bins + step, 2 * step)
    return found


class RouteOrbits:
    """Routes that symmetries of the instance carry to each other, by their ends and delay.

    ``of``: the number of the orbit of every route, shape (routes,); ``size``, ``delay``: pairs of ranks in every orbit,
    and their ticks; ``joined``: for every demand the pairs of colours that the pairs of an orbit join and how often,
    rows of (orbit, first colour, second colour, delay in ticks, times).
    """

    def __init__(self, problem: OneBlock) -> None:
        self.problem, count, routes = problem, len(problem.ranks), problem.routes
        delays, delay = np.unique(routes.delay, return_inverse=True)
        width = len(delays)
        keys, at, where = np.unique(
            (routes.src * count + routes.dst) * width + delay.reshape(-1), return_index=True, return_inverse=True
        )
        src, dst, rest = keys // width // count, keys // width % count, keys % width
        moved = np.searchsorted(problem.ranks, problem.symmetries[:, problem.ranks])
        images = [np.searchsorted(keys, (image[src] * count + image[dst]) * width + rest) for image in moved]
        orbit = np.unique(orbits(len(keys), images), return_inverse=True)[1].reshape(-1).astype(np.int64)
        self.of: IntArray = orbit[where.reshape(-1)]
        self.size = np.bincount(orbit)
        self.delay = np.zeros(len(self.size), dtype=np.int64)
        self.delay[orbit] = delays[rest]
        self.joined: list[IntArray] = []
        for seen in problem.seen:
            colours = int(seen.rank.max()) + 1
            ends = ((orbit * colours + seen.rank[routes.src[at]]) * colours + seen.rank[routes.dst[at]]) * width + rest
            kinds, times = np.unique(ends, return_counts=True)
            pairs = kinds // width
            columns = pairs // colours // colours, pairs // colours % colours, pairs % colours, delays[kinds % width]
            self.joined.append(np.stack([*columns, times]).T)
        self._alike: dict[tuple[bytes, ...], list[AlikeLinks]] = {}

    def crossing(self, payers: tuple[IntArray, ...], toll: IntArray) -> list[AlikeLinks]:
        """Links by what crosses them: routes of which orbits, after first links of which toll. ``payers``: the links
        of every paying route that pay; ``toll``: of every link the number of its toll, -1 for none."""
        key = (toll.tobytes(), *(column.tobytes() for column in payers))
        if key not in self._alike:
            routes, rate = self.problem.routes, self.problem.links.rate
            of, first = self.of[routes.paying], toll[routes.first[routes.paying]] + 1
            width, tolls = len(self.size), int(first.max(initial=0)) + 1
            found: dict[tuple[int, ...], list[int]] = {}
            for column in payers:
                last = routes.is_last(column)
                kinds = np.unique((column * width + of) * tolls + first)
                ends, start = np.unique(kinds // (width * tolls), return_index=True)
                for e, crossed in zip(ends.tolist(), np.split(kinds % (width * tolls), start[1:]), strict=True):
                    found.setdefault((int(rate[e]), int(last), *crossed.tolist()), []).append(e)
            self._alike[key] = [
                AlikeLinks(len(ends), rate_of, bool(last), [(kind // tolls, kind % tolls - 1) for kind in kinds])
                for (rate_of, last, *kinds), ends in found.items()
            ]
        return self._alike[key]


class AlikeLinks(NamedTuple):
    """Links that the same orbits of routes cross: how many, their rate, whether they are the ``last`` of these routes,
    and (orbit, toll at the first link) of each."""

    number: int
    rate: int
    last: bool
    crossed: list[tuple[int, int]]


class Certified:
    """Moments from potentials, and the bound that they prove, in exact arithmetic."""

    def __init__(self, routes: RouteOrbits, program: FlowsOverTime, potentials: list[FloatArray]) -> None:
        self.routes, self.problem = routes, routes.problem
        self.length, self.bins = program.length, program.bins
        links = self.problem.links
        room = min(TICKS // links.ticks, ROOM // (4 * links.nodes * (program.whole + 1) * program.length))
        self.finer = 1 << min(FINE, max(room, 1).bit_length() - 1)
        self.rows: list[
            tuple[int, int, IntArray]
        ] = []  # goal's number, weight, and the bin from which colours are late
        ends = [
            abs(float(potential[seen.rank[goal], -1]))
            for potential, seen, goal in zip(potentials, self.problem.seen, self.problem.goals, strict=True)
        ]
        highest = max(ends)  # what is higher than a goal's potential at the end plays no part
        self.scale = WEIGHTS / highest if highest else 0.0
        for number, potential in enumerate(potentials):
            self._levels(number, potential)
        self.price = self._prices()

    def _levels(self, number: int, potential: FloatArray) -> None:
        """Level sets of the potential, which rises from 0 at the root to its value at the goal."""
        seen, goal = self.problem.seen[number], self.problem.goals[number]
        rise = np.maximum.accumulate(np.abs(potential)[:, ::-1], axis=1)[:, ::-1]  # falls in time but for rounding
        end = rise[seen.rank[goal], -1]
        top = np.rint(np.minimum(rise, end) * self.scale).astype(np.int64)
        top[seen.rank[self.problem.root]] = 0
        self._no_quicker_than_unpaid(top, seen.rank)
        highest = int(top[seen.rank[goal], -1])
        below = 0
        for level in np.unique(top[(top > 0) & (top <= highest)]).tolist():
            late = top < level
            since = np.where(late.any(axis=1), late.argmax(axis=1), self.bins)
            self.rows.append((number, (level - below) * HEAVIER, since))
            below = level

    def _no_quicker_than_unpaid(self, top: IntArray, colour: IntArray) -> None:
        """Lower potentials until nobody is worth more than those were from where routes that pay nothing lead there."""
        routes = self.problem.routes
        shift = 2 * (routes.delay[routes.unpaid] // self.length)
        ends = np.stack([colour[routes.src[routes.unpaid]], colour[routes.dst[routes.unpaid]], shift])
        arcs = np.unique(ends, axis=1).T.tolist()
        lowered = True
        while lowered:
            before = top.copy()
            for here, there, bins in arcs:
                if bins < top.shape[1]:
                    top[there, bins:] = np.minimum(top[there, bins:], top[here, : top.shape[1] - bins])
            lowered = bool(np.any(top < before))

    def _prices(self) -> IntArray:
        """What a byte on a route pays that leaves in every bin: the mean over its orbit, rounded up, shape (orbits,
        bins)."""
        size, sent = self.routes.size, np.arange(self.bins)
        total = np.zeros((len(size), self.bins), dtype=np.int64)
        for number, joined in enumerate(self.routes.joined):
            orbit, here, there, delay, times = joined.T
            shift = 2 * (delay // self.length)
            for demand, weight, since in self.rows:
                if demand == number:
                    open_ = (sent >= since[here][:, None]) & (sent + shift[:, None] < since[there][:, None])
                    np.add.at(total, orbit, open_ * (times * weight)[:, None])
        found: IntArray = -(-total // size[:, None])
        return found

    def tolls(self, program: FlowsOverTime, late: bool) -> dict[int, IntArray]:
        """What first links take of a byte in every bin, never rising, by link; only before last links that are no
        faster (backwards: no slower), which then pay the rest. ``late``: nothing until the program has a price."""
        links, routes = self.problem.links, self.problem.routes
        rates = links.rate[routes.first], links.rate[routes.last]
        unlike = np.unique(routes.first[rates[0] > rates[1] if links.is_reversed else rates[0] < rates[1]])
        last = np.unique(routes.last[routes.paying])
        found = {}
        for e, price in program.tolls.items():
            if e not in unlike and e not in last:
                falling = np.maximum.accumulate(np.maximum(price, 0.0)[::-1])[::-1]
                found[e] = np.rint(falling * (self.scale * HEAVIER)).astype(np.int64)
                if late:
                    found[e][: _begin(np.rint(price * (self.scale * WEIGHTS)))] = 0
        return found

    def proven(self, payers: tuple[IntArray, ...], tolls: dict[int, IntArray] | None = None) -> Proven | None:
        """Where these links of every route pay, less what first links have taken; None if nothing is proven."""
        links = self.problem.links
        needed = sum(weight for _, weight, _ in self.rows) * int(links.instance.blocks.bytes[0]) * len(payers)
        per_x, fixed, tolls = Fraction(0), Fraction(0), tolls or {}
        toll, of = _numbered_tolls(tolls, links.links, self.bins)
        a_length = links.unit * Fraction(self.length, links.ticks)
        tolled = np.flatnonzero(of >= 0)
        kinds, times = np.unique(np.stack([of[tolled], links.rate[tolled]]), axis=1, return_counts=True)
        paid = [(count, rate, toll[k]) for (k, rate), count in zip(kinds.T.tolist(), times.tolist(), strict=True)]
        for alike in self.routes.crossing(payers, of):
            least = min(self.routes.delay[orbit] for orbit, _ in alike.crossed)
            prices = [
                self._at_link(
                    self.price[orbit] - (toll[k] if k >= 0 and _begin(toll[k]) <= _begin(self.price[orbit]) else 0),
                    int(self.routes.delay[orbit] - least) if alike.last else 0,
                )
                for orbit, k in alike.crossed
            ]
            paid.append((alike.number, alike.rate, np.maximum(np.max(prices, axis=0), 0)))
        for count, rate, most in paid:
            per_x += a_length * count * rate * (int(most[::2].sum()) - int(most[1::2].sum()))
            fixed += a_length * count * rate * int(most[1::2].sum())
        if not self.rows or per_x <= 0:
            return None
        part = int(min(Fraction(1), (needed - fixed) / per_x) * self.length * self.finer) - 1
        if part < 0:
            return None
        seconds = Fraction((self.bins // 2) * self.length * self.finer + part, links.ticks * self.finer)
        return Proven(seconds, "orbit_moments", self._words, lambda: self._certificate(part, payers, tolls))

    def _at_link(self, price: IntArray, later: int) -> IntArray:
        """What a byte pays in every bin where it comes so many ticks later than others to the link that it pays at; the
        most of the bins that it may then be in."""
        whole, rest = divmod(later, self.length)
        shifts = [2 * whole + more for more in ((0, 1, 2) if rest else (0,))]
        moved = [np.concatenate([np.zeros(shift, dtype=np.int64), price])[: self.bins] for shift in shifts]
        most: IntArray = np.max(moved, axis=0)
        return most

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
        toll, of = _numbered_tolls(tolls, links.links, self.bins)
        return found | {"toll_at": when.tolist(), "toll": toll.reshape(-1).tolist(), "toll_of": (of + 1).tolist()}

    def _words(self) -> str:
        return (
            f"moments: {len(self.rows)} cuts that move with time between {len(self.problem.goals)} pairs of ranks and "
            "all that look like them, each of which every byte has to cross"
        )


def _begin(price: FloatArray | IntArray) -> int:
    """The bin in which a price begins: the number of those before it in which it is 0."""
    return int(np.argmax(price > 0)) if np.any(price > 0) else len(price)


def _numbered_tolls(tolls: dict[int, IntArray], links: int, bins: int) -> tuple[IntArray, IntArray]:
    """The distinct tolls, shape (tolls, bins), and the number of every link's, -1 for none, shape (links,)."""
    of = np.full(links, -1, dtype=np.int64)
    if not tolls:
        return np.zeros((0, bins), dtype=np.int64), of
    rows, which = np.unique(np.stack(list(tolls.values())), axis=0, return_inverse=True)
    of[list(tolls)] = which.reshape(-1)
    return rows, of
