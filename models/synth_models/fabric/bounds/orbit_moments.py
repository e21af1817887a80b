"""Bound 5 for machines of many boxes: flows over time of one block, of one demand of every kind.

As :mod:`synth_models.fabric.bounds.moments`, but ranks may be unequally far apart, and what looks alike is one. Let
delta be a measure of all latencies of direct routes (or a part of the bound; latencies are then rounded down) and T =
H delta + x. Between two ranks of one colour (colour refinement with the root marked) everybody's share is the same,
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
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from synth.arrays import FloatArray, IntArray
from synth.deadline import OutOfTime
from synth.graph.shortest_paths import UNREACHABLE, search
from synth.graph.symmetry import orbits
from synth.solvers.lp import linprog
from synth_models.fabric.bounds.arrays import FINEST as TICKS
from synth_models.fabric.bounds.arrays import ROOM, Links
from synth_models.fabric.bounds.gossip import pays_its_way
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.programs.flow.symmetry import automorphism

_linprog: Any = linprog  # its published types reject sparse matrices
MOST_WAYS = 200_000  # pairs of ranks that are joined directly
MOST_COLUMNS = 60_000  # of the linear program
FEW_COLUMNS = 2_000  # up to which the simplex method is quicker
RESOLUTIONS = (24, 96)  # bins that a bound is cut into
FINE = 20  # a tick of latency in at most so many halvings
WEIGHTS = 2**12  # of the dual's highest price, in whole numbers
HEAVIER = 2**14  # by which they are multiplied, so that their means over orbits are hardly rounded


@dataclass(frozen=True, eq=False)
class Ways:
    """Direct routes from rank to rank: ``src``, ``dst`` (numbers among the ranks), ``first`` and ``last`` (links),
    ``delay`` (ticks), shape (ways,) each."""

    src: IntArray
    dst: IntArray
    first: IntArray
    last: IntArray
    delay: IntArray

    @classmethod
    def of(cls, links: Links) -> Ways | None:
        """Of every rank over each of its links; None where there are too many."""
        ranks = np.flatnonzero(~links.is_switch)
        place = np.full(links.nodes, -1, dtype=np.int64)
        place[ranks] = np.arange(len(ranks))
        came, order = np.empty(links.nodes, dtype=np.int64), np.empty(links.nodes, dtype=np.int64)
        found: list[tuple[IntArray, ...]] = []
        count = 0
        start, out = links.out
        for u in ranks.tolist():
            for e in out[start[u] : start[u + 1]].tolist():
                head = int(links.dst[e])
                far = np.full(links.nodes, UNREACHABLE, dtype=np.int64)
                far[head] = links.delay[e]
                if links.is_switch[head]:
                    far = search(start, out, links.dst, links.delay, far, links.is_switch, came, order)
                goals = ranks[(far[ranks] < UNREACHABLE) & (ranks != u)]
                last = came[goals] if links.is_switch[head] else np.full_like(goals, e)
                count += len(goals)
                if count > MOST_WAYS:
                    return None
                found.append((np.full_like(goals, place[u]), place[goals], np.full_like(goals, e), last, far[goals]))
        if not count:
            return None
        return cls(*(np.concatenate(column).astype(np.int64) for column in zip(*found, strict=True)))

    @property
    def payers(self) -> list[tuple[IntArray, ...]]:
        """Which links of every way may pay."""
        alone: list[tuple[IntArray, ...]] = [(self.first,), (self.last,)]
        return alone if np.any(self.first == self.last) else [(self.first, self.last), *alone]


class _Kinds(NamedTuple):
    """What looks alike: the colour of every rank, shape (ranks,), and the kind of every way, shape (ways,)."""

    rank: IntArray
    way: IntArray


def strongest_orbit_moments(links: Links, more: Callable[[], bool], known: Proven) -> Proven:
    """The bound of flows over time if it is stronger than ``known`` and small enough to compute."""
    blocks = links.instance.blocks
    if len(blocks) != 1 or not pays_its_way(links) or not links.delay.any() or np.any(links.group >= 0):
        return known
    way = links.reverse if blocks.origin[0] == EVERYONE and blocks.goal[0] != EVERYONE else links
    origin = int(way.blocks[0][0])
    best = known
    try:
        ways = Ways.of(way) if more() else None
        if ways is None:
            return known
        problem = _Problem(way, ways, int(links.members[0]) if origin == EVERYONE else origin)
        for resolution in RESOLUTIONS:
            best = problem.improved(best, resolution, more)
    except OutOfTime:
        pass  # what has been proven stays
    return best


class _Problem:
    """One block from one rank to all members."""

    def __init__(self, links: Links, ways: Ways, root: int) -> None:
        self.links, self.ways = links, ways
        self.ranks = np.flatnonzero(~links.is_switch)
        self.root = int(np.searchsorted(self.ranks, root))
        self._alike = np.unique(np.stack([links.rate[ways.first], links.rate[ways.last], ways.delay]), axis=1,
                                return_inverse=True)[1].reshape(-1).astype(np.int64)  # fmt: skip
        member = np.isin(self.ranks, links.members).astype(np.int64)
        self.kinds = self._kinds(member, [self.root])
        goals = np.flatnonzero((np.arange(len(self.ranks)) != self.root) & (member > 0))
        _, first = np.unique(self.kinds.rank[goals], return_index=True)
        self.goals = goals[first].tolist()
        self.seen = [self._kinds(member, [self.root, goal]) for goal in self.goals]
        self.images: IntArray | None = None

    def improved(self, best: Proven, resolution: int, more: Callable[[], bool]) -> Proven:
        """The bound with time cut into about so many bins, if it is stronger than ``best``."""
        ticks = int(best.seconds * self.links.ticks)
        length = max(math.gcd(*np.unique(self.ways.delay).tolist()), ticks // resolution)
        low = bins = max(1, ticks // length)
        step, high = 1, 0
        found: tuple[FlowsOverTime, list[FloatArray]] | None = None
        while more() and (not high or low < high):  # the least number of bins behind which T may lie
            program = FlowsOverTime(self, bins, length)
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
        certified = Certified(self, *found)
        for payers in self.ways.payers:
            proven = certified.proven(payers)
            best = proven if proven is not None and proven.seconds > best.seconds else best
        proven = certified.proven((self.ways.last,), certified.tolls(found[0]))
        return proven if proven is not None and proven.seconds > best.seconds else best

    def _kinds(self, colour: IntArray, marked: list[int]) -> _Kinds:
        """Colour refinement of the ranks and the ways between them, with some ranks marked."""
        ways, count = self.ways, len(colour)
        colour = colour.copy()
        colour[marked] = 2 + np.arange(len(marked))
        colour = np.unique(colour, return_inverse=True)[1].reshape(-1).astype(np.int64)
        alike, kinds = self._alike, int(self._alike.max()) + 1
        while True:
            colours = int(colour.max()) + 1
            seen = [
                np.bincount((here * kinds + alike) * colours + colour[there], minlength=count * kinds * colours)
                for here, there in ((ways.src, ways.dst), (ways.dst, ways.src))
            ]
            table = np.concatenate([colour[:, None], *(part.reshape(count, -1) for part in seen)], axis=1)
            colour = np.unique(table, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
            if int(colour.max()) + 1 == colours:
                break
        ends = np.stack([colour[ways.src], colour[ways.dst], alike])
        return _Kinds(colour, np.unique(ends, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64))

    def symmetries(self) -> IntArray:
        """Permutations of the nodes that keep the machine, the members and the root, shape (permutations, nodes):
        boxes, or places in all boxes, that change places."""
        if self.images is None:
            self.images = _symmetries(self.links, self.kinds.rank)
        return self.images


class FlowsOverTime:
    """The linear program for T = (bins + x) length with 0 <= x <= 1; bin 2k is [k, k + x) lengths, bin 2k + 1 what is
    left until k + 1.

    Columns: x, then g (kind of way, bin), then for every goal f (kind of way as its flow sees them, bin) and the
    stores; in blocks, times of a length.
    """

    def __init__(self, problem: _Problem, bins: int, length: int) -> None:
        self.problem, self.whole, self.length = problem, bins, length
        self.bins = 2 * bins + 1
        self.kinds = int(problem.kinds.way.max()) + 1
        flows = sum(int(seen.way.max()) + 1 + int(seen.rank.max()) + 1 for seen in problem.seen)
        self.columns = 1 + (self.kinds + flows) * self.bins
        self._rows: list[tuple[Any, Any, Any]] = []
        self._right: list[FloatArray] = []
        self._equal: list[tuple[Any, Any, Any]] = []
        self._places: list[IntArray] = []
        self._row_of: dict[int, int] = {}  # of every first link the first row of its capacity
        self._like: dict[int, int] = {}  # how many links a row stands for
        self.tolls: dict[int, FloatArray] = {}

    def shared(self, kind: int) -> IntArray:
        """Columns of what a way of this kind carries in every bin."""
        return 1 + kind * self.bins + np.arange(self.bins)

    def solve(self) -> list[FloatArray] | None:
        """For every goal the potential of every colour in every bin, shape (colours, bins); None if T is greater.
        Then ``tolls`` holds the price of every first link in every bin, by link."""
        self._capacities()
        columns, equal = 1 + self.kinds * self.bins, 0
        for goal, seen in zip(self.problem.goals, self.problem.seen, strict=True):
            columns, equal = self._one_flow(goal, seen, columns, equal)
        cost = np.zeros(columns)
        cost[0] = 1.0
        level = np.zeros(equal)
        for goal, seen, at in zip(self.problem.goals, self.problem.seen, self._places, strict=True):
            level[at[seen.rank[goal], -1]] = 1.0
        rows = sum(len(part) for part in self._right)
        found = _linprog(
            cost, _matrix(self._rows, rows, columns), np.concatenate(self._right),
            _matrix(self._equal, equal, columns), level, [(0.0, 1.0)] + [(0.0, None)] * (columns - 1),
            method="highs-ds" if columns < FEW_COLUMNS else "highs-ipm",
        )  # fmt: skip
        if found.x is None:
            return None
        for e, row in self._row_of.items():
            self.tolls[e] = -found.ineqlin.marginals[row : row + self.bins] / self._like[row]
        dual = np.append(found.eqlin.marginals, 0.0)
        return [dual[at] for at in self._places]

    def _capacities(self) -> None:
        """What the first and the last link of every way carry; of links that look alike one."""
        problem, ways = self.problem, self.problem.ways
        links, kinds = problem.links, problem.kinds
        size = float(links.instance.blocks.bytes[0])
        odd = np.arange(self.bins) % 2
        seen: dict[tuple[int, bytes], int] = {}
        at = sum(len(part) for part in self._right)
        for end, column in enumerate((ways.first, ways.last)):
            for e in np.unique(column).tolist():
                times = np.bincount(kinds.way[column == e], minlength=self.kinds)
                rate = float(Fraction(int(links.rate[e])) * links.unit * Fraction(self.length, links.ticks)) / size
                key = end, times.tobytes() + np.float64(rate).tobytes()
                row = seen.setdefault(key, at)
                self._like[row] = self._like.get(row, 0) + 1
                if not end and problem.links.is_switch[problem.links.dst[e]]:
                    self._row_of[e] = row
                if row < at:
                    continue
                here = at + np.arange(self.bins)
                for kind in np.flatnonzero(times).tolist():
                    self._rows.append((here, self.shared(kind), np.full(self.bins, float(times[kind]))))
                self._rows.append((here, np.zeros(self.bins, dtype=int), np.where(odd, rate, -rate)))
                self._right.append(np.where(odd, rate, 0.0))
                at += self.bins

    def _one_flow(self, goal: int, seen: _Kinds, columns: int, equal: int) -> tuple[int, int]:
        """The flow that brings the block to one goal; how many columns and rows there are then."""
        problem, ways = self.problem, self.problem.ways
        _, first = np.unique(seen.way, return_index=True)
        source, target = seen.rank[problem.root], seen.rank[goal]
        colours = int(seen.rank.max()) + 1
        _, rank = np.unique(seen.rank, return_index=True)
        place = np.full((colours, self.bins), -1)
        inner = np.flatnonzero(np.arange(colours) != source)
        place[inner] = equal + np.arange(len(inner) * self.bins).reshape(len(inner), self.bins)
        at = sum(len(part) for part in self._right)
        for kind, way in enumerate(first.tolist()):
            here, there = int(seen.rank[ways.src[way]]), int(seen.rank[ways.dst[way]])
            if there == source or here == target:
                continue
            own = columns + np.arange(self.bins)
            columns += self.bins
            rows = at + np.arange(self.bins)
            at += self.bins
            self._rows += [(rows, own, np.ones(self.bins))]
            self._rows += [(rows, self.shared(int(problem.kinds.way[way])), -np.ones(self.bins))]
            self._right.append(np.zeros(self.bins))
            of_kind = seen.way == kind
            shift = 2 * (int(ways.delay[way]) // self.length)
            coming = float(np.sum(of_kind & (ways.dst == rank[there])))
            going = float(np.sum(of_kind & (ways.src == rank[here])))
            last = max(0, self.bins - shift)
            self._equal.append((place[there, shift:], own[:last], np.full(last, coming)))
            if here != source:
                self._equal.append((place[here], own, np.full(self.bins, -going)))
        for colour in inner.tolist():
            stores = self.bins - int(colour == target)  # nothing may be lost at the goal
            own = columns + np.arange(stores)
            columns += stores
            self._equal.append((place[colour, :stores], own, -np.ones(stores)))
            self._equal.append((place[colour, 1:], own[: self.bins - 1], np.ones(self.bins - 1)))
        self._places.append(place)
        return columns, equal + len(inner) * self.bins


def _matrix(entries: list[tuple[Any, Any, Any]], rows: int, columns: int) -> csr_array:
    r, c, v = (np.concatenate([entry[k] for entry in entries]) for k in range(3))
    return csr_array((v, (r, c)), shape=(rows, columns))


class Certified:
    """Moments from potentials, and the bound that they prove, in exact arithmetic."""

    def __init__(self, problem: _Problem, program: FlowsOverTime, potentials: list[FloatArray]) -> None:
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
        count, ways = len(problem.ranks), problem.ways
        delays, delay = np.unique(ways.delay, return_inverse=True)
        width = len(delays)
        keys, at, where = np.unique(
            (ways.src * count + ways.dst) * width + delay.reshape(-1), return_index=True, return_inverse=True
        )
        src, dst, rest = keys // width // count, keys // width % count, keys % width
        moved = np.searchsorted(problem.ranks, problem.symmetries()[:, problem.ranks])
        images = [np.searchsorted(keys, (image[src] * count + image[dst]) * width + rest) for image in moved]
        orbit = np.unique(orbits(len(keys), images), return_inverse=True)[1].reshape(-1)
        self.orbit = orbit[where.reshape(-1)]  # of every way: of its ends and its delay
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
        """What a byte on a way pays that leaves in every bin: the mean over its orbit, rounded up, shape (orbits,
        bins). ``at``: a way of every pair of ranks and delay."""
        ways = self.problem.ways
        total = np.zeros((len(self.size), self.bins), dtype=np.int64)
        sent = np.arange(self.bins)
        delay = 2 * (ways.delay[at] // self.length)
        for number, seen in enumerate(self.problem.seen):
            ends = np.stack([self.orbit[at], seen.rank[ways.src[at]], seen.rank[ways.dst[at]], delay])
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
        links, ways = self.problem.links, self.problem.ways
        rates = links.rate[ways.first], links.rate[ways.last]
        unlike = np.unique(ways.first[rates[0] > rates[1] if links.turned else rates[0] < rates[1]])
        last = np.unique(ways.last)
        found = {}
        for e, price in program.tolls.items():
            if e not in unlike and e not in last:
                falling = np.maximum.accumulate(np.maximum(price, 0.0)[::-1])[::-1]
                found[e] = np.rint(falling * (self.scale * HEAVIER)).astype(np.int64)
        return found

    def proven(self, payers: tuple[IntArray, ...], tolls: dict[int, IntArray] | None = None) -> Proven | None:
        """Where these links of every way pay, less what first links have taken; None if nothing is proven."""
        links = self.problem.links
        needed = sum(weight for _, weight, _ in self.rows) * int(links.instance.blocks.bytes[0]) * len(payers)
        per_x, fixed = Fraction(0), Fraction(0)
        tolls = tolls or {}
        nothing = np.zeros(self.bins, dtype=np.int64)
        by_link = {e: [toll] for e, toll in tolls.items()}
        for column in payers:
            kinds = np.stack([column, self.orbit, self.problem.ways.first])
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
            "backwards": int(links.turned),
            "finer": self.finer,
            "share": share.tolist(),
            "images": problem.symmetries().reshape(-1).tolist(),
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


def _symmetries(links: Links, colour: IntArray) -> IntArray:
    """Boxes that change places, and places that do in all boxes, where that is a symmetry: of every row of such the
    first two, and all in a ring, which generate all orders of the row. ``colour``: of every rank."""
    machine, members, instance = links.instance.machine, links.members, links.instance
    number = {int(rank): k for k, rank in enumerate(members)}
    ranks = np.flatnonzero(~links.is_switch)
    of_member = colour[np.searchsorted(ranks, members)]
    boxes = [[number[rank] for rank in box] for box in instance.boxes]
    width = max(map(len, boxes))
    places = [[box[k] if k < len(box) else -1 for box in boxes] for k in range(width)]
    found = []
    for rows in (boxes, places):
        alike: dict[tuple[int, ...], list[list[int]]] = {}
        for row in rows:
            alike.setdefault(tuple(-1 if k < 0 else int(of_member[k]) for k in row), []).append(row)
        for same in alike.values():
            run: list[IntArray] = []
            for one, other in [*pairwise(same), ([], [])]:
                moved = automorphism(machine, members, _exchanged(len(members), one, other)) if one else None
                if moved is not None:
                    run.append(moved[0])
                    continue
                if run:
                    found += [run[0], reduce(lambda before, after: after[before], run)][: len(run)]
                run = []
    return np.array(found, dtype=np.int64).reshape(-1, links.nodes)


def _exchanged(count: int, one: list[int], other: list[int]) -> IntArray:
    image = np.arange(count, dtype=np.int64)
    first, second = [k for k in one if k >= 0], [k for k in other if k >= 0]
    image[first], image[second] = second, first
    return image
