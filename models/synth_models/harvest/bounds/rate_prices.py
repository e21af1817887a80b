"""Prices on ordered pairs of GPUs that limit the rates of several patterns on one topology (the ``rate`` rows).

For rates ``rho[k] = 1/u[k]`` the prices of the most broken row solve a linear program: maximise ``sum rho[k]*D[k]``
subject to ``sum over k of p[k][u,v] <= r[u] + c[v]``, ``sum of r and c = n``, where D[k] is at most the price of any
choice of paths; paths are added as they turn out to be cheap. It is the dual of routing all patterns at these rates on
the fractional topology of least degree. Prices are constant on orbits of the renumberings that keep all patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from synth.arrays import FloatArray, IntArray
from synth.graph.shortest_paths import PathTrees
from synth_models.harvest.bounds.automorphisms import row_orbits
from synth_models.harvest.bounds.small_lp import GrowingProgram, minimise
from synth_models.harvest.parts.demands import volumes

GPUS_UP_TO = 256
JOINT_ABOVE, JOINT_UP_TO = 64, 1024  # GPUs for which :mod:`.joint_prices` makes a bundle first
MOST_LABELS = 4096  # orbits of ordered pairs there
LARGEST = 3000  # prices of one bundle
PATH_ROUNDS = 400
CLOSE = 0.95  # of what the program's prices would break a row by, the best prices found must do
CENTRE = 0.7
BROKEN = 2e-4  # rows broken by less are not added
SCALE = 10**6  # prices are stored as whole multiples of 1/SCALE


@dataclass(frozen=True)
class Bundle:
    """Whole-number prices of shape (patterns, orbits of ordered pairs), r and c of shape (gpus,), and D by pattern.
    Orbits with the same number in ``columns``, if it is there, have the same prices."""

    patterns: list[int]
    prices: IntArray
    of_source: IntArray
    of_destination: IntArray
    cheapest: dict[int, int]
    budget: int
    columns: IntArray | None = None

    def as_certificate(self, number: int | None = None) -> dict[str, Any]:
        """The bundle in a certificate, where its ``columns`` have this number."""
        ends = {"of_source": self.of_source, "of_destination": self.of_destination}
        if self.columns is None:
            stated = {key: values.tolist() for key, values in ends.items()}
            return {"patterns": self.patterns, "prices": self.prices.tolist(), **stated}
        first = np.unique(self.columns, return_index=True)[1]
        short = {key: np.unique(values).tolist() for key, values in ends.items()}  # one price for all GPUs
        return {"patterns": self.patterns, "columns": number, "prices": self.prices[:, first].tolist(), **short}


class RatePrices:
    """A pool of bundles; new ones are made for loads that the pool does not refute."""

    def __init__(self, patterns: Sequence[IntArray], group: Sequence[IntArray], gpus: int, ports: int) -> None:
        self.patterns, self.gpus, self.ports = patterns, gpus, ports
        self.pool: list[Bundle] = []
        self.paths: dict[tuple[int, int], set[tuple[int, ...]]] = {}  # by pattern and pick, kept between bundles
        self.joint_paths: dict[tuple[int, tuple[int, int, float]], set[tuple[int, ...]]] = {}  # of :mod:`.joint_prices`
        self.master: _Master | None = None  # the one in use: other rates of the same patterns change only its aim
        self.node = row_orbits(np.arange(gpus)[:, None], group)
        alike = int(self.node.max()) == 0  # renumberings lead from every GPU to every other
        self.joint, self.alike = False, alike
        self.usable = ports > 1 and (gpus <= GPUS_UP_TO or (alike and gpus <= JOINT_UP_TO))
        if not self.usable:
            return
        grid = np.stack(np.meshgrid(np.arange(gpus), np.arange(gpus), indexing="ij"), axis=-1).reshape(-1, 2)
        self.label = row_orbits(grid, group).reshape(gpus, gpus)
        self.count = int(self.label.max()) + 1
        self.joint = alike and gpus > JOINT_ABOVE and self.count <= MOST_LABELS
        first = np.unique(self.label, return_index=True)[1]
        self.ends = np.stack([self.node[first // gpus], self.node[first % gpus]], axis=1)
        off = ~np.eye(gpus, dtype=bool)
        self.src, self.dst = np.nonzero(off)
        self.path_trees = PathTrees(self.gpus, self.src, self.dst)
        self.of_arc = self.label[off]
        self.picks = [self._pick(pairs) for pairs in patterns]

    def _pick(self, pairs: IntArray) -> list[tuple[int, int, int]]:
        """One pair of every orbit of a pattern, with the volume of all the orbit's pairs in it."""
        labels = self.label[pairs[:, 0], pairs[:, 1]]
        _, first, size = np.unique(labels, return_index=True, return_counts=True)
        total = size * volumes(pairs)[first]  # the renumberings keep volumes, so those of an orbit are equal
        return [(int(pairs[i, 0]), int(pairs[i, 1]), int(s)) for i, s in zip(first, total, strict=True)]

    def broken_by(
        self, load: dict[int, float], deadline_passed: Callable[[], bool], more: bool = True
    ) -> Iterator[tuple[int, dict[int, int], int]]:
        """(bundle number, D of the patterns, budget) of rows that these loads break; makes a bundle if none does
        (beside a joint one only with ``more`` effort)."""
        if not self.usable or len(load) < 2:
            return
        broken = [
            (worth, number)
            for number, bundle in enumerate(self.pool)
            if (worth := sum(d / load[k] for k, d in bundle.cheapest.items() if k in load) / bundle.budget) > 1 + BROKEN
        ]
        if broken:
            number = max(broken)[1]
        elif (
            (more or not self.joint)
            and self.gpus <= GPUS_UP_TO
            and len(load) * self.count <= LARGEST
            and (made := self._make({k: 1 / u for k, u in load.items()}, deadline_passed))
        ):
            number = len(self.pool)
            self.pool.append(made)
        else:
            return
        bundle = self.pool[number]
        yield number, {k: d for k, d in bundle.cheapest.items() if k in load}, bundle.budget

    def _make(self, rates: dict[int, float], deadline_passed: Callable[[], bool]) -> Bundle | None:
        """A bundle that these rates break, or None when none is found.

        Paths are sought at prices between the best so far and the program's, which swing less from round to round.
        """
        patterns = sorted(rates)
        if self.master is None or self.master.patterns != patterns:
            self.master = _Master(self, patterns)
        master = self.master
        master.aim(rates)
        best = np.full((len(patterns), self.count), 1 / len(patterns))
        worth, needed = master.add_cheapest(best), self.ports * self.gpus * (1 + BROKEN)
        for _ in range(PATH_ROUNDS):
            prices, above = master.solve()
            if worth - needed >= CLOSE * (above - needed) or above <= needed or deadline_passed():
                break
            known = master.size()
            for trial in (CENTRE * best + (1 - CENTRE) * prices, prices):
                found = master.add_cheapest(trial)
                if found > worth:
                    worth, best = found, trial
                if master.size() > known:
                    break
            else:
                break
        if worth <= needed:
            return None
        bundle = self.whole_bundle(patterns, best)
        exact = sum(d * rates[k] for k, d in bundle.cheapest.items())
        return bundle if exact > bundle.budget * (1 + BROKEN) else None

    def whole_bundle(self, patterns: list[int], prices: FloatArray) -> Bundle:
        """Prices (patterns, orbits of ordered pairs) in whole numbers, with r and c that cover them."""
        whole = np.floor(prices * SCALE).astype(np.int64) + 1
        total = whole.sum(axis=0)
        total[self.label[0, 0]] = 0
        total[np.diag(self.label)] = 0
        at_source = np.zeros(self.node.max() + 1, dtype=np.int64)
        at_destination = at_source.copy()
        # least r and c by linear program, then rounded up to cover the whole prices
        if len(at_source) == 1:
            at_source[0] = total.max()
        else:
            at_source, at_destination = self._cover(total)
        of_source, of_destination = at_source[self.node], at_destination[self.node]
        cheapest = {
            k: sum(size * int(self.distances(row, u)[v]) for u, v, size in self.picks[k])
            for k, row in zip(patterns, whole, strict=True)
        }
        budget = self.ports * int(of_source.sum() + of_destination.sum())
        return Bundle(patterns, whole, of_source, of_destination, cheapest, budget)

    def _cover(self, total: IntArray) -> tuple[IntArray, IntArray]:
        nodes = int(self.node.max()) + 1
        rows = np.repeat(np.arange(self.count), 2)
        columns = np.stack([self.ends[:, 0], nodes + self.ends[:, 1]], axis=1).ravel()
        matrix = csr_array((np.ones(len(rows)), (rows, columns)), shape=(self.count, 2 * nodes))
        sizes = np.bincount(self.node).astype(float)
        found = minimise(np.concatenate([sizes, sizes]), matrix, total.astype(float), np.zeros(2 * nodes))
        cover = np.ceil(found.point).astype(np.int64) if found else np.zeros(2 * nodes, dtype=np.int64)
        out, into = cover[:nodes], cover[nodes:]
        np.maximum.at(out, self.ends[:, 0], total - into[self.ends[:, 1]])
        return out, into

    def within(self, bundle: Bundle, pattern: int, hops: int) -> int:
        """D of a pattern over paths of at most that many hops."""
        price = bundle.prices[bundle.patterns.index(pattern)][self.label]
        np.fill_diagonal(price, 0)  # fewer hops are allowed
        total = 0
        for u, v, size in self.picks[pattern]:
            cost = price[u]
            for _ in range(hops - 1):
                cost = (cost[:, None] + price).min(axis=0)
            total += size * int(cost[v])
        return total

    def budget_with(self, bundle: Bundle, pairs: IntArray) -> int:
        """The budget where these pairs (rows of source and destination, each once) have links of their own."""
        if not len(pairs):
            return bundle.budget
        u, v = pairs.T
        spare = bundle.of_source[u] + bundle.of_destination[v] - bundle.prices.sum(axis=0)[self.label[u, v]]
        return bundle.budget - int(spare.sum())

    def distances(self, prices: FloatArray | IntArray, source: int) -> FloatArray:
        """Prices of the cheapest paths from a GPU; whole prices stay exact."""
        return np.asarray(self._tree(prices, source)[0])

    def _tree(self, prices: FloatArray | IntArray, source: int) -> tuple[FloatArray, IntArray]:
        distance, entered = self.path_trees.trees(prices[self.of_arc].astype(float), np.array([source]))
        return distance[0], np.where(entered[0] >= 0, self.src[entered[0]], -1)

    def path(self, prices: FloatArray, source: int) -> tuple[FloatArray, IntArray]:
        """Cheapest paths from a GPU under prices that are kept positive: distances and predecessors."""
        return self._tree(prices + 1e-9, source)


class _Master:
    """The program over the paths known so far. Columns: prices by (pattern, orbit), D by (pattern, pick), r, c."""

    def __init__(self, pool: RatePrices, patterns: list[int]) -> None:
        self.pool, self.patterns = pool, patterns
        self.prices = len(patterns) * pool.count
        self.picks = [(row, pick) for row, k in enumerate(patterns) for pick in pool.picks[k]]
        self.nodes = int(pool.node.max()) + 1
        self.columns = self.prices + len(self.picks) + 2 * self.nodes
        self.keys = [(patterns[row], pool.picks[patterns[row]].index(pick)) for row, pick in self.picks]
        self.stated: set[tuple[int, tuple[int, ...]]] = set()  # paths that are rows, by pick
        self.worth = np.zeros(len(self.picks))
        for (_row, (u, v, _)), key in zip(self.picks, self.keys, strict=True):
            if key not in pool.paths:
                pool.paths[key] = {(int(pool.label[u, v]),)}
        for k in patterns:
            prices = np.full(pool.count, 1.0)
            prices[[pool.label[u, v] for u, v, _ in pool.picks[k]]] = 0.01
            self.add_cheapest(np.tile(prices, (len(patterns), 1)))
        self.program = GrowingProgram(np.zeros(self.columns), np.zeros(self.columns))
        self._state_covers()

    def _state_covers(self) -> None:
        """Prices of an arc sum up to r + c at most, and these to n in all."""
        pool, first_node = self.pool, self.prices + len(self.picks)
        rows = np.arange(pool.count)
        of_price = np.tile(rows, len(self.patterns))
        at = np.concatenate([of_price, rows, rows])
        columns = [np.arange(self.prices), first_node + pool.ends[:, 0], first_node + self.nodes + pool.ends[:, 1]]
        values = np.repeat([-1.0, 1.0], [self.prices, 2 * pool.count])
        shape = (pool.count, self.columns)
        self.program.add(csr_array((values, (at, np.concatenate(columns))), shape=shape), np.zeros(pool.count))
        sizes = np.bincount(pool.node).astype(float)
        both = np.concatenate([sizes, sizes])
        ends = np.arange(first_node, self.columns)
        all_ends = csr_array((both, (np.zeros(len(both), dtype=np.int64), ends)), shape=(1, self.columns))
        self.program.add(all_ends, np.array([float(pool.gpus)]), equal=True)

    def aim(self, rates: dict[int, float]) -> None:
        """Ask for the prices that are worth most at these rates."""
        self.worth = np.array([rates[self.patterns[row]] * size for row, (_, _, size) in self.picks])
        cost = np.zeros(self.columns)
        cost[self.prices : self.prices + len(self.picks)] = -self.worth
        self.program.aim(cost)

    def size(self) -> int:
        """Paths known for these patterns."""
        return sum(len(self.pool.paths[key]) for key in self.keys)

    def _state_paths(self) -> None:
        """D of a pick is at most the price of any of its paths."""
        new = [
            (pick, steps)
            for pick, key in enumerate(self.keys)
            for steps in sorted(self.pool.paths[key])
            if (pick, steps) not in self.stated
        ]
        if not new:
            return
        self.stated.update(new)
        rows, columns, values = [], [], []
        for number, (pick, steps) in enumerate(new):
            at = self.picks[pick][0] * self.pool.count
            rows += [number] * (len(steps) + 1)
            columns += [self.prices + pick, *(at + step for step in steps)]
            values += [-1.0] + [1.0] * len(steps)
        matrix = csr_array((values, (rows, columns)), shape=(len(new), self.columns))
        self.program.add(matrix, np.zeros(len(new)))

    def solve(self) -> tuple[FloatArray, float]:
        """Prices, and the value of the program, which is at least that of any bundle."""
        self._state_paths()
        found = self.program.minimise()
        if found is None:
            return np.zeros((len(self.patterns), self.pool.count)), 0.0
        return np.maximum(found.point[: self.prices], 0).reshape(len(self.patterns), self.pool.count), -found.value

    def add_cheapest(self, prices: FloatArray) -> float:
        """Add the cheapest paths under the prices; what the prices prove as sum of rate * D."""
        total, trees = 0.0, dict[tuple[int, int], tuple[FloatArray, IntArray]]()
        for number, (row, (u, v, _)) in enumerate(self.picks):
            if (row, u) not in trees:
                trees[(row, u)] = self.pool.path(prices[row], u)
            distance, before = trees[(row, u)]
            total += self.worth[number] * distance[v]
            steps, at = [], v
            while at != u:
                steps.append(int(self.pool.label[before[at], at]))
                at = int(before[at])
            self.pool.paths[self.keys[number]].add(tuple(sorted(steps)))
        return float(total)
