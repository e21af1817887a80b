"""Prices of a whole interval from one program, for many GPUs: the bundle of its last ``rate`` row without the others.

:mod:`.rate_prices` finds the most broken row at given rates, and the relaxation asks again and again. Here rates, hops
and the mean topology are chosen together. Beside the rows of :mod:`.rows` (without rates) the program has the links
z[o] of every orbit o of ordered pairs, n of them at most d n in all, the rate rho[k] of every pattern and the flow y of
every known path:

    u[k] + rho[k] / rho'^2 >= ... the tangents of u[k] = 1/rho[k];  sum of y over paths of a pair = rho[k];
    sum over paths of k of (how often the path uses o, times the pair's volume) y <= z[o]

The multipliers of the last rows are prices, and by convexity one bundle of them, at the best rates, is worth all rows
that the relaxation would find. Prices need not be best to be valid; they are made whole and checked as any bundle.
Paths: all of two hops at first, then the cheapest through every GPU as far as they are cheaper than the program knows.
In a case (:mod:`.hop_cases`) they are no longer than it allows, and a pattern with one hop has all its pairs' links.
The program is solved by an interior-point method without crossover. Its prices lie in the middle of the best ones,
which paths then change little; a vertex takes hundreds of rounds. Renumberings must lead from every GPU to every other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit
from synth_models.harvest.bounds.coarse_prices import CoarsePrices
from synth_models.harvest.bounds.rate_prices import Bundle, RatePrices
from synth_models.harvest.bounds.rows import Row
from synth_models.harvest.bounds.small_lp import centre

ROUNDS = 12
THROUGH = 20  # paths of a pair that a round adds
TANGENTS = 60
IDLE = 2  # rounds without better prices that end the search
ENOUGH = 0.99  # of the budget that the best prices use up
FARTHEST = 4.0  # times the program's loads, at which a row is stated
MIXED = 0.5  # of the best prices so far, in those that are tried first
Path = tuple[int, ...]  # its orbits of ordered pairs, sorted
Variable = tuple[str, int]


class JointPrices:
    """The program of one interval: ``columns`` numbers the variables of its ``rows``, ``bounds`` are their costs and
    least values; ``limits`` has the most hops of the patterns that have any."""

    def __init__(
        self,
        pool: RatePrices | CoarsePrices,
        patterns: Sequence[int],
        columns: Mapping[Variable, int],
        bounds: tuple[FloatArray, FloatArray],
        limits: Mapping[int, int],
    ) -> None:
        self.pool, self.patterns, self.columns = pool, list(patterns), columns
        self.cost, self.least = bounds
        self.label = pool.label.astype(np.int64)
        self.back = np.ascontiguousarray(self.label.T)
        self.picks = [(row, pick) for row, k in enumerate(self.patterns) for pick in pool.picks[k]]
        self.most = [limits.get(self.patterns[row]) for row, _ in self.picks]
        self.length = np.bincount(self.label.ravel())  # ordered pairs of an orbit
        direct = {
            int(self.label[u, v]) for (_, (u, v, _)), most in zip(self.picks, self.most, strict=True) if most == 1
        }
        self.linked = np.array(sorted(direct), dtype=np.int64)
        self.known: list[set[Path]] = []
        for (_, (u, v, _)), most in zip(self.picks, self.most, strict=True):
            if most == 1:
                self.known.append({(int(self.label[u, v]),)})
                continue
            middle = np.delete(np.arange(pool.gpus), [u, v])
            two = np.sort(np.stack([self.label[u, middle], self.label[middle, v]], axis=1), axis=1)
            self.known.append({(int(self.label[u, v]),), *map(tuple, two.tolist())})
        self.keys = [(self.patterns[row], pick) for row, pick in self.picks]
        for paths, key, most in zip(self.known, self.keys, self.most, strict=True):  # those of cases before
            paths |= {path for path in pool.joint_paths.get(key, ()) if most is None or len(path) <= most}

    def best(self, rows: Sequence[Row], out_of_time: Callable[[], bool]) -> tuple[Bundle, dict[int, float]] | None:
        """A bundle and the loads at which its row is worth most; None where the program has no answer in time."""
        kept = self._search(rows, out_of_time)
        for paths, key in zip(self.known, self.keys, strict=True):
            self.pool.joint_paths.setdefault(key, set()).update(path for path in paths if len(path) > 2)
        if kept is None or kept[0] <= 0:
            return None
        worth, prices, load = kept
        bundle = self.pool.whole_bundle(self.patterns, prices)
        return bundle, {k: float(u) * min(worth, FARTHEST) for k, u in zip(self.patterns, load, strict=True)}

    def _search(
        self, rows: Sequence[Row], out_of_time: Callable[[], bool]
    ) -> tuple[float, FloatArray, FloatArray] | None:
        """The best prices found, with what they are worth at the loads."""
        kept: tuple[float, FloatArray, FloatArray] | None = None
        idle = 0
        for _ in range(ROUNDS):
            found = None if out_of_time() else self._solve(rows)
            if found is None:
                break
            prices, load, wanted = found
            trials = [prices] if kept is None else [MIXED * kept[1] + (1 - MIXED) * prices, prices]
            before, idle = sum(map(len, self.known)), idle + 1
            for trial in trials:
                worth = self._worth(trial, load, wanted)
                if kept is None or worth > kept[0]:
                    kept, idle = (worth, trial, load), 0
            if idle == IDLE or (kept is not None and kept[0] >= ENOUGH) or sum(map(len, self.known)) == before:
                break
        return kept

    def _solve(self, rows: Sequence[Row]) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Prices by pattern and orbit, of which those of an orbit sum up to 1 at most; loads by pattern; what the
        program takes a path of every pick to cost."""
        made = _Rows()
        for row in rows:
            made.add({self.columns[variable]: float(c) for variable, c in row.coefficient.items()}, float(row.right))
        rate, links = len(self.columns), len(self.columns) + len(self.patterns)
        flows = links + self.pool.count
        for number, k in enumerate(self.patterns):
            u = self.columns["u", k]
            for load in np.geomspace(max(self.least[u], 1e-3), self.least[u] * self.pool.gpus / 4, TANGENTS).tolist():
                made.add({u: 1 / load, rate + number: load}, 2.0)
        within: dict[tuple[int, int], int] = {}
        served, column = list[int](), flows
        for (number, (_, _, size)), paths in zip(self.picks, self.known, strict=True):
            served.append(made.add({rate + number: -1.0}, 0.0, equal=True))
            for path in sorted(paths):
                made.more(served[-1], column, 1.0)
                for orbit in path:
                    if (number, orbit) not in within:
                        within[number, orbit] = made.add({links + orbit: float(self.pool.gpus)}, 0.0)
                    made.more(within[number, orbit], column, -float(size))
                column += 1
        made.add(dict.fromkeys(range(links, flows), -1.0), -float(self.pool.ports))
        for orbit in self.linked.tolist():
            made.add({links + orbit: float(self.pool.gpus)}, float(self.length[orbit]))
        cost, least = np.zeros(column), np.zeros(column)
        cost[:rate], least[:rate] = self.cost, self.least
        found = centre(cost, *made.stated(column), least)
        if found is None:
            return None
        prices = np.zeros((len(self.patterns), self.pool.count))
        for (number, orbit), at in within.items():
            prices[number, orbit] = max(0.0, float(found.multipliers[at]))
        unit = float(prices.sum(axis=0).max())
        if unit <= 0:
            return None
        slowest = np.array([1 / (self.least[self.columns["u", k]] * self.pool.gpus) for k in self.patterns])
        rates = np.maximum(found.point[rate:links], slowest)  # an impossible case has rates of 0
        sizes = np.array([size for _, (_, _, size) in self.picks])
        return prices / unit, 1 / rates, np.abs(found.multipliers[np.array(served)]) / unit / sizes

    def _worth(self, prices: FloatArray, load: FloatArray, wanted: FloatArray) -> float:
        """The share of the budget that the cheapest paths use up at these loads; takes in paths below ``wanted``."""
        spent, gpus = 0.0, self.pool.gpus
        total = prices.sum(axis=0)
        total[np.unique(np.diag(self.label))] = 0.0
        for pick, (number, (u, v, size)) in enumerate(self.picks):
            price = prices[number] + 1e-12
            if (most := self.most[pick]) is not None:
                spent += size * self._within(pick, most, price, float(wanted[pick])) / load[number]
                continue
            out, into = _tree(self.label, price, u), _tree(self.back, price, v)
            spent += size * out[0][v] / load[number]
            through = out[0] + into[0]
            limit = out[0][v] + 0.6 * max(0.0, float(wanted[pick]) - out[0][v])
            for w in np.argsort(through, kind="stable")[:THROUGH].tolist():
                if through[w] > limit and w != u:
                    break
                self.known[pick].add(self._path(u, w, out[1], self.label) + self._path(v, w, into[1], self.back))
        self.known = [{tuple(sorted(path)) for path in paths} for paths in self.known]
        spare = float((self.length[self.linked] * (total.max() - total[self.linked])).sum())
        return spent / max(self.pool.ports * gpus * float(total.max()) - spare, 1e-9)

    def _within(self, pick: int, most: int, price: FloatArray, wanted: float) -> float:
        """The cheapest path of a pick with ``most`` hops; takes in paths below ``wanted``, one a first hop."""
        _, (u, v, _) = self.picks[pick]
        table = price[self.label]
        np.fill_diagonal(table, 0.0)  # fewer hops are allowed
        left = [np.full(len(table), np.inf)]  # to v within so many hops
        left[0][v] = 0.0
        for _ in range(most - 1):
            left.append((table + left[-1][None, :]).min(axis=1))
        through = table[u] + left[-1]
        best = float(through.min())
        if most <= 2:
            return best
        limit = best + 0.6 * max(0.0, wanted - best)
        for w in np.argsort(through, kind="stable")[:THROUGH].tolist():
            if through[w] > limit:
                break
            path, at = [int(self.label[u, w])] if w != u else [], w
            for rest in left[-2::-1]:
                following = int((table[at] + rest).argmin())
                path += [int(self.label[at, following])] if following != at else []
                at = following
            self.known[pick].add(tuple(sorted(path)))
        return best

    @staticmethod
    def _path(root: int, end: int, before: IntArray, label: IntArray) -> Path:
        """Orbits of a tree's path from the root to ``end``."""
        found = []
        while end != root:
            found.append(int(label[before[end], end]))
            end = int(before[end])
        return tuple(found)


class _Rows:
    """Rows ``>= right``, or ``== right``, in the making."""

    def __init__(self) -> None:
        self.at, self.columns, self.values = list[int](), list[int](), list[float]()
        self.right, self.equal = list[float](), list[bool]()

    def add(self, terms: Mapping[int, float], right: float, *, equal: bool = False) -> int:
        """One more row; its number."""
        number = len(self.right)
        self.at += [number] * len(terms)
        self.columns += terms.keys()
        self.values += terms.values()
        self.right.append(right)
        self.equal.append(equal)
        return number

    def more(self, row: int, column: int, value: float) -> None:
        """Another term of a row; terms of one column add up."""
        self.at.append(row)
        self.columns.append(column)
        self.values.append(value)

    def stated(self, columns: int) -> tuple[csr_array[Any], FloatArray, FloatArray]:
        """The matrix, and what its rows are at least and at most."""
        matrix = csr_array((self.values, (self.at, self.columns)), shape=(len(self.right), columns))
        right = np.array(self.right)
        return matrix, right, np.where(self.equal, right, np.inf)


def _tree(label: IntArray, price: FloatArray, root: int) -> tuple[FloatArray, IntArray]:
    """Cheapest paths from a GPU to all: cost, and the GPU before."""
    distance, before = np.full(len(label), np.inf), np.full(len(label), -1, dtype=np.int64)
    _settle(label, price, root, distance, before)
    return distance, before


@jit
def _settle(label: IntArray, price: FloatArray, root: int, distance: FloatArray, before: IntArray) -> None:
    """Dijkstra on all ordered pairs, in the square of the GPUs."""
    gpus = len(label)
    done = np.zeros(gpus, dtype=np.bool_)
    distance[root] = 0.0
    for _ in range(gpus):
        at = -1
        for v in range(gpus):
            if not done[v] and (at < 0 or distance[v] < distance[at]):
                at = v
        done[at] = True
        for v in range(gpus):
            along = distance[at] + price[label[at, v]]
            if not done[v] and along < distance[v]:
                distance[v] = along
                before[v] = at
