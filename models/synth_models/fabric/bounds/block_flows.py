"""The linear program of :mod:`synth_models.fabric.bounds.orbit_moments`: one block from one rank to all members, over
time, one flow for all goals that look alike."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.graph.shortest_paths import UNREACHABLE, search
from synth.solvers.lp import linprog
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.problem.automorphism import automorphism
from synth_models.fabric.problem.machine import Machine

_linprog: Any = linprog  # its published types reject sparse matrices
MOST_WAYS = 600_000  # pairs of ranks that are joined directly
FEW_COLUMNS = 2_000  # up to which the simplex method is quicker


@dataclass(frozen=True, eq=False)
class DirectRoutes:
    """Direct routes from rank to rank, the quickest over each ``first`` and ``last`` link: ``src``, ``dst`` (numbers
    among the ranks), ``delay`` (ticks), shape (routes,) each. ``paying``: the numbers of those that pass no switch that
    copies or adds, nor one joined to such a switch over others."""

    src: IntArray
    dst: IntArray
    first: IntArray
    last: IntArray
    delay: IntArray
    paying: IntArray

    @classmethod
    def of(cls, links: Links) -> DirectRoutes | None:
        """All of them; None where there are too many."""
        ranks = np.flatnonzero(~links.is_switch)
        place = np.full(links.nodes, -1, dtype=np.int64)
        place[ranks] = np.arange(len(ranks))
        came, order = np.empty(links.nodes, dtype=np.int64), np.empty(links.nodes, dtype=np.int64)
        found: list[tuple[IntArray, ...]] = []
        count = 0
        start, out = links.out
        lasts = np.flatnonzero(links.is_switch[links.src] & ~links.is_switch[links.dst])
        for u in ranks.tolist():
            for e in out[start[u] : start[u + 1]].tolist():
                head, last, delay = int(links.dst[e]), np.array([e]), links.delay[e : e + 1]
                if links.is_switch[head]:
                    far = np.full(links.nodes, UNREACHABLE, dtype=np.int64)
                    far[head] = links.delay[e]
                    far = search(start, out, links.dst, links.delay, far, links.is_switch, came, order)
                    last = lasts[(far[links.src[lasts]] < UNREACHABLE) & (links.dst[lasts] != u)]
                    delay = far[links.src[last]] + links.delay[last]
                count += len(last)
                if count > MOST_WAYS:
                    return None
                goals = place[links.dst[last]]
                found.append((np.full_like(goals, place[u]), goals, np.full_like(goals, e), last, delay))
        if not count:
            return None
        src, dst, first, last, delay = (np.concatenate(column).astype(np.int64) for column in zip(*found, strict=True))
        return cls(src, dst, first, last, delay, np.flatnonzero(~_may_multiply(links)[first]).astype(np.int64))

    @property
    def payers(self) -> list[tuple[IntArray, ...]]:
        """Which links of every paying route may pay."""
        first, last = self.first[self.paying], self.last[self.paying]
        alone: list[tuple[IntArray, ...]] = [(first,), (last,)]
        return alone if np.any(first == last) else [(first, last), *alone]

    def is_last(self, column: IntArray) -> bool:
        """Whether a column of :attr:`payers` is that of the last links."""
        return not np.array_equal(column, self.first[self.paying])

    @property
    def unpaid(self) -> IntArray:
        """The numbers of all others."""
        return np.setdiff1d(np.arange(len(self.src)), self.paying)


def _may_multiply(links: Links) -> BoolArray:
    """True for links at switches that copy or add as they cut through, and at those joined to such over other switches,
    shape (links,)."""
    if links.instance.switching.mode == "store_and_forward":  # what copies there is not of the machine
        return np.zeros(links.links, dtype=bool)
    able = links.instance.machine.abilities
    inner = links.is_switch[links.src] & links.is_switch[links.dst]
    ends = links.src[inner], links.dst[inner]
    graph = coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), (links.nodes, links.nodes))
    part = connected_components(graph.tocsr(), directed=False)[1]
    found = np.isin(part, part[links.is_switch & (able.copies | able.adds)]) & links.is_switch
    multiplies: BoolArray = found[links.src] | found[links.dst]
    return multiplies


class _Kinds(NamedTuple):
    """What looks alike: the colour of every rank, shape (ranks,), and the kind of every route, shape (routes,)."""

    rank: IntArray
    route: IntArray


class _LinkKind(NamedTuple):
    """Links that look alike, the ``first`` of their routes or the last: how many ``routes`` of every kind cross each,
    shape
    (kinds,), and their ``rate``."""

    first: bool
    links: IntArray
    routes: IntArray
    rate: int


class OneBlock:
    """One block from one rank to all members."""

    def __init__(self, links: Links, routes: DirectRoutes, root: int) -> None:
        self.links, self.routes = links, routes
        self.ranks = np.flatnonzero(~links.is_switch)
        self.root = int(np.searchsorted(self.ranks, root))
        looks = [links.rate[routes.first], links.rate[routes.last], routes.delay, np.zeros_like(routes.delay)]
        looks[-1][routes.paying] = 1
        self._alike = np.unique(np.stack(looks), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
        member = np.isin(self.ranks, links.members).astype(np.int64)
        self.kinds = self._kinds(member, [self.root])
        goals = np.flatnonzero((np.arange(len(self.ranks)) != self.root) & (member > 0))
        _, first = np.unique(self.kinds.rank[goals], return_index=True)
        self.goals = goals[first].tolist()
        self.seen = [self._kinds(member, [self.root, goal]) for goal in self.goals]

    def _kinds(self, colour: IntArray, marked: list[int]) -> _Kinds:
        """Colour refinement of the ranks and the routes between them, with some ranks marked."""
        routes, count = self.routes, len(colour)
        colour = colour.copy()
        colour[marked] = 2 + np.arange(len(marked))
        colour = np.unique(colour, return_inverse=True)[1].reshape(-1).astype(np.int64)
        alike, kinds = self._alike, int(self._alike.max()) + 1
        while True:
            colours = int(colour.max()) + 1
            seen = [
                np.bincount((here * kinds + alike) * colours + colour[there], minlength=count * kinds * colours)
                for here, there in ((routes.src, routes.dst), (routes.dst, routes.src))
            ]
            table = np.concatenate([colour[:, None], *(part.reshape(count, -1) for part in seen)], axis=1)
            colour = np.unique(table, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
            if int(colour.max()) + 1 == colours:
                break
        ends = np.stack([colour[routes.src], colour[routes.dst], alike])
        return _Kinds(colour, np.unique(ends, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64))

    @cached_property
    def link_kinds(self) -> list[_LinkKind]:
        """First links, then last links of paying routes that are alike."""
        routes, rate = self.routes, self.links.rate
        kinds = int(self.kinds.route.max()) + 1
        found = []
        of_kind = self.kinds.route[routes.paying]
        for first, column in ((True, routes.first[routes.paying]), (False, routes.last[routes.paying])):
            numbers, at = np.unique(column, return_inverse=True)
            times = np.bincount(at.reshape(-1) * kinds + of_kind, minlength=len(numbers) * kinds)
            table = np.concatenate([times.reshape(-1, kinds), rate[numbers][:, None]], axis=1)
            rows, which = np.unique(table, axis=0, return_inverse=True)
            for k, row in enumerate(rows):
                found.append(_LinkKind(first, numbers[which.reshape(-1) == k], row[:-1], int(row[-1])))
        return found

    @cached_property
    def symmetries(self) -> IntArray:
        """Permutations of the nodes that keep the machine, the members and the root, shape (permutations, nodes):
        boxes, or places in all boxes, that change places."""
        return _symmetries(self.links, self.kinds.rank)


class FlowsOverTime:
    """The linear program for T = (bins + x) length with 0 <= x <= 1; bin 2k is [k, k + x) lengths, bin 2k + 1 what is
    left until k + 1.

    Columns: x, then g (kind of route, bin), then for every goal f (kind of route as its flow sees them, bin) and the
    stores; in blocks, times of a length.
    """

    def __init__(self, problem: OneBlock, bins: int, length: int) -> None:
        self.problem, self.whole, self.length = problem, bins, length
        self.bins = 2 * bins + 1
        self.kinds = int(problem.kinds.route.max()) + 1
        flows = sum(int(seen.route.max()) + 1 + int(seen.rank.max()) + 1 for seen in problem.seen)
        self.columns = 1 + (self.kinds + flows) * self.bins
        self._rows: list[tuple[Any, Any, Any]] = []
        self._right: list[FloatArray] = []
        self._equal: list[tuple[Any, Any, Any]] = []
        self._places: list[IntArray] = []
        self.tolls: dict[int, FloatArray] = {}

    def shared(self, kind: int) -> IntArray:
        """Columns of what a route of this kind carries in every bin."""
        return 1 + kind * self.bins + np.arange(self.bins)

    def solve(self) -> list[FloatArray] | None:
        """For every goal the potential of every rank of a colour in every bin, shape (colours, bins); None if T is
        greater.
        Then ``tolls`` holds the price of every first link in every bin, by link."""
        problem, links = self.problem, self.problem.links
        self._capacities()
        columns, equal = 1 + self.kinds * self.bins, 0
        for goal, seen in zip(problem.goals, problem.seen, strict=True):
            columns, equal = self._one_flow(goal, seen, columns, equal)
        cost = np.zeros(columns)
        cost[0] = 1.0
        level = np.zeros(equal)
        for goal, seen, at in zip(problem.goals, problem.seen, self._places, strict=True):
            level[at[seen.rank[goal], -1]] = 1.0
        rows = sum(len(part) for part in self._right)
        found = _linprog(
            cost, _matrix(self._rows, rows, columns), np.concatenate(self._right),
            _matrix(self._equal, equal, columns), level, [(0.0, 1.0)] + [(0.0, None)] * (columns - 1),
            method="highs-ds" if columns < FEW_COLUMNS else "highs-ipm",
        )  # fmt: skip
        if found.x is None:
            return None
        for row, alike in enumerate(problem.link_kinds):
            if alike.first and links.is_switch[links.dst[alike.links[0]]]:
                price = -found.ineqlin.marginals[row * self.bins : (row + 1) * self.bins] / len(alike.links)
                self.tolls |= dict.fromkeys(alike.links.tolist(), price)
        dual = np.append(found.eqlin.marginals, 0.0)
        sizes = [np.bincount(seen.rank)[:, None] for seen in problem.seen]  # a row stands for all ranks of a colour
        return [dual[at] / size for at, size in zip(self._places, sizes, strict=True)]

    def _capacities(self) -> None:
        """What the first and the last link of every route carry; of links that look alike one."""
        links = self.problem.links
        size = float(links.instance.blocks.bytes[0])
        odd = np.arange(self.bins) % 2
        delay = np.zeros(self.kinds, dtype=np.int64)
        delay[self.problem.kinds.route] = self.problem.routes.delay
        at = 0
        for alike in self.problem.link_kinds:
            rate = float(Fraction(alike.rate) * links.unit * Fraction(self.length, links.ticks)) / size
            here = at + np.arange(self.bins)
            for kind in np.flatnonzero(alike.routes).tolist():
                shift = 0 if alike.first else 2 * (int(delay[kind]) // self.length)  # later at its last link
                last = max(0, self.bins - shift)
                self._rows.append((here[shift:], self.shared(kind)[:last], np.full(last, float(alike.routes[kind]))))
            self._rows.append((here, np.zeros(self.bins, dtype=int), np.where(odd, rate, -rate)))
            self._right.append(np.where(odd, rate, 0.0))
            at += self.bins

    def _one_flow(self, goal: int, seen: _Kinds, columns: int, equal: int) -> tuple[int, int]:
        """The flow that brings the block to one goal; how many columns and rows there are then."""
        problem, routes = self.problem, self.problem.routes
        _, first = np.unique(seen.route, return_index=True)
        source, target = seen.rank[problem.root], seen.rank[goal]
        colours = int(seen.rank.max()) + 1
        _, rank = np.unique(seen.rank, return_index=True)
        place = np.full((colours, self.bins), -1)
        inner = np.flatnonzero(np.arange(colours) != source)
        place[inner] = equal + np.arange(len(inner) * self.bins).reshape(len(inner), self.bins)
        at, unpaid = sum(len(part) for part in self._right), set(routes.unpaid.tolist())
        for kind, route in enumerate(first.tolist()):
            here, there = int(seen.rank[routes.src[route]]), int(seen.rank[routes.dst[route]])
            if there == source or here == target:
                continue
            own = columns + np.arange(self.bins)
            columns += self.bins
            if route not in unpaid:
                rows = at + np.arange(self.bins)
                at += self.bins
                self._rows += [(rows, own, np.ones(self.bins))]
                self._rows += [(rows, self.shared(int(problem.kinds.route[route])), -np.ones(self.bins))]
                self._right.append(np.zeros(self.bins))
            of_kind = seen.route == kind
            shift = 2 * (int(routes.delay[route]) // self.length)
            coming = float(np.sum(of_kind & (routes.dst == rank[there])))
            going = float(np.sum(of_kind & (routes.src == rank[here])))
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


def _symmetries(links: Links, colour: IntArray) -> IntArray:
    """Boxes that change places, and places that do in all boxes, where that is a symmetry; runs of such boxes (those
    behind a leaf switch) that do, and places in one run. Of every run the first two, and all in a ring, which generate
    all its orders. ``colour``: of every rank."""
    machine, members, instance = links.instance.machine, links.members, links.instance
    number = {int(rank): k for k, rank in enumerate(members)}
    ranks = np.flatnonzero(~links.is_switch)
    of_member = colour[np.searchsorted(ranks, members)]
    boxes = [[number[rank] for rank in box] for box in instance.boxes]
    alike: dict[tuple[int, ...], list[list[int]]] = {}
    for box in boxes:
        alike.setdefault(tuple(of_member[box].tolist()), []).append(box)
    found: list[IntArray] = []
    behind: list[list[list[int]]] = [boxes]  # boxes whose places are exchanged together
    for same in alike.values():
        runs = _exchanges(machine, members, same, found)
        if len(same) < len(boxes):
            behind += [[box for box in same if box[0] in run] for run in map(set, runs)]
        _exchanges(machine, members, runs, found)
    for several in behind:
        rows: dict[tuple[int, ...], list[list[int]]] = {}
        for k in range(max(map(len, several))):
            place = [box[k] for box in several if k < len(box)]
            rows.setdefault((len(place), *of_member[place].tolist()), []).append(place)
        for same in rows.values():
            _exchanges(machine, members, same, found)
    return np.array(found, dtype=np.int64).reshape(-1, links.nodes)


def _exchanges(machine: Machine, members: IntArray, units: list[list[int]], found: list[IntArray]) -> list[list[int]]:
    """Add to ``found`` what generates the exchanges of units (members each) that are next to each other and symmetries;
    the runs of units that so change places."""
    swaps = [_swap(machine, members, one, other) for one, other in pairwise(units)]
    found += _generators(swaps)
    return _runs(units, swaps)


def _swap(machine: Machine, members: IntArray, one: list[int], other: list[int]) -> IntArray | None:
    """The symmetry, of the nodes, that exchanges these members; None where there is none."""
    if len(one) != len(other):
        return None
    moved = automorphism(machine, members, _exchanged(len(members), one, other))
    return None if moved is None else moved[0]


def _runs(units: list[list[int]], swaps: list[IntArray | None]) -> list[list[int]]:
    """Neighbours that may change places, as one each."""
    found = [list(units[0])]
    for unit, swap in zip(units[1:], swaps, strict=True):
        if swap is None:
            found.append([])
        found[-1] += unit
    return found


def _generators(swaps: list[IntArray | None]) -> list[IntArray]:
    """Of every run of symmetries that change neighbours the first, and all of them one after the other."""
    found: list[IntArray] = []
    run: list[IntArray] = []
    for moved in [*swaps, None]:
        if moved is not None:
            run.append(moved)
            continue
        if run:
            found += [run[0], reduce(lambda before, after: after[before], run)][: len(run)]
        run = []
    return found


def _exchanged(count: int, one: list[int], other: list[int]) -> IntArray:
    image = np.arange(count, dtype=np.int64)
    first, second = [k for k in one if k >= 0], [k for k in other if k >= 0]
    image[first], image[second] = second, first
    return image
