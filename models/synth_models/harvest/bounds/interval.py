"""A lower bound on the cost of consecutive steps on one common topology, by a linear program with rows made on demand.

    minimise  sum over patterns k of  N[k]*hop_delay*L[k] + W[k]*u[k]

over the rows of :mod:`synth_models.harvest.bounds.rows`; N[k] steps of the interval have pattern k, W[k] is the sum of
their bytes / port_bandwidth. The multipliers of the rows, as the solver's floats, are the certificate: they are dyadic
rationals, made feasible exactly (:meth:`Relaxation._exact`), so accuracy of the solver costs strength, never validity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from synth.arrays import FloatArray, IntArray
from synth.graph.shortest_paths import PathTrees
from synth_models.harvest.bounds import rows as make
from synth_models.harvest.bounds.automorphisms import generators, row_orbits
from synth_models.harvest.bounds.coarse_prices import CoarsePrices, coarse_prices, prices_of
from synth_models.harvest.bounds.joint_prices import JointPrices
from synth_models.harvest.bounds.rate_prices import BROKEN, RatePrices
from synth_models.harvest.bounds.rows import RATE_SCALE, Row
from synth_models.harvest.bounds.small_lp import GrowingProgram
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.demands import direct_load, fewest_hops, routed_load, volumes

ROUNDS, MORE_ROUNDS = 80, 600
QUICK, TREES, RATES, MORE = range(4)  # effort: trees of one hop only, all trees and cycles, rate rows too, many rounds
SLACK, BREAKING = ("s", 0), 10  # a variable for limits that cannot be kept, and its cost in shares of the least
IMPOSSIBLE = 4  # times the GPUs: loads of cases that cannot be
FEW, FINE, COARSE = 16, 1e-7, 5e-4  # up to FEW patterns, tree rows broken by the share FINE are added, else COARSE
Variable = tuple[str, int]
Hops = tuple[int, int | None]  # least and most; None for any number


class Patterns:
    """The distinct patterns of an instance, their orbits of pairs with the volume of each in every pattern (``sizes``),
    and what all intervals share. ``by_bytes``: steps of unequal bytes have patterns of their own, as they may take
    routes of their own."""

    def __init__(self, instance: HarvestInstance, by_bytes: bool = False) -> None:
        self.instance, self.gpus, self.ports = instance, instance.gpus, instance.ports
        numbers: dict[tuple[bytes, float], int] = {}
        keys = [_set_key(pairs, self.gpus) for pairs in instance.demands]
        sizes = instance.bytes_per_pair.tolist() if by_bytes else [0.0] * len(keys)
        self.of_step = [numbers.setdefault(key, len(numbers)) for key in zip(keys, sizes, strict=True)]
        self.by_bytes = len(numbers) > len(set(keys))
        self.pairs = [instance.demands[self.of_step.index(k)] for k in range(len(numbers))]
        self.group = generators(self.pairs, self.gpus)
        stacked = np.unique(np.concatenate(self.pairs)[:, :2], axis=0)
        labels = row_orbits(stacked, self.group)
        self.orbit = dict(zip((stacked[:, 0] * self.gpus + stacked[:, 1]).tolist(), labels.tolist(), strict=True))
        self.sizes: list[dict[int, int]] = []
        for pairs in self.pairs:
            size: dict[int, int] = {}
            for key, volume in zip((pairs[:, 0] * self.gpus + pairs[:, 1]).tolist(), pairs[:, 2].tolist(), strict=True):
                size[self.orbit[key]] = size.get(self.orbit[key], 0) + volume
            self.sizes.append(dict(sorted(size.items())))
        at = row_orbits(np.arange(self.gpus)[:, None], self.group)
        self.roots = np.unique(at, return_index=True)[1].tolist()
        self.direct = [direct_load(pairs, self.ports) for pairs in self.pairs]
        self.routed = [routed_load(pairs, self.ports, self.gpus) for pairs in self.pairs]
        self.places = make.moore_places(self.ports, self.gpus)
        self.float_places = np.array(self.places, dtype=np.float64)
        self.prices = RatePrices(self.pairs, self.group, self.gpus, self.ports)
        self.coarse = coarse_prices(self.prices, self.group) if self.prices.usable and self.prices.alike else []

    def weights(self, first: int, last: int) -> tuple[dict[int, int], dict[int, Fraction]]:
        """N and W (seconds) of the patterns of steps first..last."""
        count: dict[int, int] = {}
        seconds: dict[int, Fraction] = {}
        for step in range(first, last + 1):
            k = self.of_step[step]
            size = Fraction(float(self.instance.bytes_per_pair[step])) / Fraction(self.instance.port_bandwidth)
            count[k], seconds[k] = count.get(k, 0) + 1, seconds.get(k, Fraction(0)) + size
        return count, seconds

    def alike(self, pattern: int, first: int, last: int) -> bool:
        """Whether all of the steps first..last with this pattern have the same bytes."""
        steps = [step for step in range(first, last + 1) if self.of_step[step] == pattern]
        return len({float(self.instance.bytes_per_pair[step]) for step in steps}) == 1

    def hops(self, pattern: int) -> int:
        return fewest_hops(self.pairs[pattern], self.ports)


@dataclass(frozen=True)
class IntervalBound:
    """``seconds`` is exact and includes the steps' alpha; ``rows`` and ``multipliers`` prove it."""

    first: int
    last: int
    seconds: Fraction
    rows: list[Row]
    multipliers: list[float]
    finished: bool

    def as_certificate(self) -> dict[str, Any]:
        return {"first": self.first, "last": self.last, **self.proof()}

    def used(self) -> list[Row]:
        return self.rows

    def proof(self) -> dict[str, Any]:
        return {"rows": [{**row.words, "multiplier": m} for row, m in zip(self.rows, self.multipliers, strict=True)]}


class Relaxation:
    """The linear program of one interval; ``hops``: in a case, least and most hops of the routes of some patterns, and
    the ``level`` of its prices (:mod:`.coarse_prices`), 0 for the fewest blocks of GPUs."""

    def __init__(
        self, shared: Patterns, first: int, last: int, hops: Mapping[int, Hops] | None = None, level: int = 0
    ) -> None:
        self.shared, self.first, self.last, self.level = shared, first, last, level
        self.hops = dict(hops or {})
        self.limits = {k: most for k, (_, most) in self.hops.items() if most is not None}
        count, seconds = shared.weights(first, last)
        self.patterns = sorted(count)
        self._name_columns(count, seconds)
        self._name_arcs()
        self.rows: list[Row] = self._first_rows()
        self.scale: list[float] = []  # of the rows that the program has
        self.program: GrowingProgram | None = None
        self.point: FloatArray = np.zeros(0)  # of least cost, over the rows so far
        self.priced: dict[int, tuple[dict[int, int], int]] = {}  # D and budget of bundles, as the case has them
        self.joined = False  # whether prices have been sought for all patterns and rates at once
        self.close = FINE if len(self.patterns) <= FEW else COARSE

    def _name_columns(self, count: Mapping[int, int], seconds: Mapping[int, Fraction]) -> None:
        """Variables with their costs and least values: hops L and load u of patterns, distances a of orbits."""
        shared, delay = self.shared, Fraction(self.shared.instance.hop_delay)
        self.cost: dict[Variable, Fraction] = {}
        self.least: dict[Variable, Fraction] = {}
        for k in self.patterns:
            self.cost[("L", k)], self.least[("L", k)] = count[k] * delay, Fraction(shared.hops(k))
            self.cost[("u", k)], self.least[("u", k)] = seconds[k], shared.routed[k]
            if k in self.hops:
                self.least[("L", k)] = Fraction(self.hops[k][0])
                load = shared.direct[k]
                if self.limits.get(k) == 1 and load is not None:
                    self.least[("u", k)] = load
        for orbit in sorted({orbit for k in self.patterns for orbit in shared.sizes[k]}):
            self.cost[("a", orbit)], self.least[("a", orbit)] = Fraction(0), Fraction(1)
        if self.limits:  # what a case breaks its limits by, where it is impossible
            self.cost[SLACK] = BREAKING * sum((c * self.least[v] for v, c in self.cost.items()), Fraction(0))
            self.least[SLACK] = Fraction(0)
        largest = {k: int(volumes(shared.pairs[k]).max()) for k in self.patterns}
        self.unit_of = {(kind, k): largest[k] if kind == "u" else 1 for kind, k in self.cost}  # of a point
        self.constant = (self.last - self.first + 1) * Fraction(shared.instance.alpha)
        self.column = {variable: number for number, variable in enumerate(self.cost)}

    def _first_rows(self) -> list[Row]:
        """Those that stand in the program from the start."""
        shared, found = self.shared, list[Row]()
        for k in self.patterns:
            found.append(make.volume(k, shared.sizes[k], shared.ports * shared.gpus))
            found += [make.longest(k, orbit) for orbit in shared.sizes[k]]
            load, least, delay = shared.direct[k], shared.routed[k], shared.instance.hop_delay
            if load is not None and load > least and delay > 0 and shared.alike(k, self.first, self.last):
                found.append(make.direct(k, load, least))
            if k in self.limits:
                limited = [make.limit(k, orbit, self.limits[k]) for orbit in shared.sizes[k]]
                found += [replace(row, coefficient=row.coefficient | {SLACK: 1}) for row in limited]
        return found

    def _name_arcs(self) -> None:
        """Pairs of GPUs between which something goes, as arcs of the trees and cycles that give further rows."""
        shared = self.shared
        pairs = np.unique(np.concatenate([shared.pairs[k][:, :2] for k in self.patterns]), axis=0)
        self.src, self.dst = pairs[:, 0], pairs[:, 1]
        self.out_trees = PathTrees(shared.gpus, self.src, self.dst)
        self.in_trees = PathTrees(shared.gpus, self.dst, self.src)
        self.arc_orbit = [shared.orbit[key] for key in (self.src * shared.gpus + self.dst).tolist()]
        self.arc_column = np.array([self.column[("a", orbit)] for orbit in self.arc_orbit])
        self.at_arc = {(u, v): o for (u, v), o in zip(pairs.tolist(), self.arc_orbit, strict=True)}
        graph = csr_array((np.ones(len(pairs)), (self.src, self.dst)), shape=(shared.gpus, shared.gpus))
        labels = connected_components(graph, directed=False)[1]
        self.component = np.bincount(labels)[labels]

    def _stars(self) -> list[Row]:
        """Trees of one hop from every kind of GPU to all its partners: what distinct places alone prove."""
        found = []
        for root in self.shared.roots:
            partners = self.dst[self.src == root].tolist()
            uses: dict[int, int] = {}
            for v in partners:
                uses[self.at_arc[(root, v)]] = uses.get(self.at_arc[(root, v)], 0) + 1
            if partners:
                right = self.shared.places[len(partners)]
                found.append(make.tree(uses, right, False, [root, *partners], [-1] + [0] * len(partners)))
        return found

    def solve(self, deadline_passed: Callable[[], bool], effort: int) -> IntervalBound:
        """Add violated rows until there are none (or time is up), then make the multipliers exact."""
        if len(self.patterns) > FEW or effort == QUICK:
            self.rows += self._stars()
        seen = {_row_key(row) for row in self.rows}
        multipliers, finished = np.zeros(len(self.rows)), False
        for _ in range(MORE_ROUNDS if effort == MORE else ROUNDS):
            point, multipliers = self._optimise()
            self.point = point
            if deadline_passed() or effort == QUICK:
                finished = effort == QUICK
                break
            new = [row for row in self._separate(point) if _row_key(row) not in seen]
            if not new and effort >= RATES:
                new = [row for row in self._separate_rates(point, deadline_passed, effort) if _row_key(row) not in seen]
            if not new:
                finished = True
                break
            seen.update(_row_key(row) for row in new)
            self.rows += new
        multipliers = np.concatenate([multipliers, np.zeros(len(self.rows) - len(multipliers))])
        return self._exact(multipliers, finished)

    def _optimise(self) -> tuple[FloatArray, FloatArray]:
        """A point of least cost over the present rows, and their multipliers (of the unscaled rows, unscaled cost)."""
        units = np.array([float(self.unit_of[variable]) for variable in self.cost])
        least = np.array([float(low) for low in self.least.values()])
        cost = np.array([float(c) for c in self.cost.values()]) * units
        unit = cost.max() or 1.0
        if self.program is None:
            self.program = GrowingProgram(cost / unit, least / units)
        self._state_rows(self.program)
        found = self.program.minimise()
        if found is None:
            return least, np.zeros(len(self.rows))
        return found.point * units, np.maximum(found.multipliers, 0.0) * unit / np.array(self.scale)

    def _state_rows(self, program: GrowingProgram) -> None:
        """The rows that the program does not have yet, each divided by its largest coefficient."""
        start, columns, values, right = [0], [], [], []
        for row in self.rows[len(self.scale) :]:
            of_unit = {variable: float(c * self.unit_of[variable]) for variable, c in row.coefficient.items()}
            scale = max(abs(c) for c in of_unit.values())
            start.append(start[-1] + len(of_unit))
            columns += [self.column[variable] for variable in of_unit]
            values += [c / scale for c in of_unit.values()]
            right.append(float(row.right) / scale)
            self.scale.append(scale)
        matrix = csr_array((values, columns, start), shape=(len(right), len(self.column)))
        matrix.sort_indices()
        program.add(matrix, np.array(right))

    def _separate(self, point: FloatArray) -> list[Row]:
        shared, rows = self.shared, []
        length = point[self.arc_column]
        for inwards in (False, True):
            trees, tail = (self.in_trees, self.dst) if inwards else (self.out_trees, self.src)
            distance, entered = trees.trees(length, np.array(shared.roots))
            before = np.where(entered >= 0, tail[entered], -1)
            for root, far, parent in zip(shared.roots, distance, before, strict=True):
                rows += self._trees(root, far, parent, inwards)
                if shared.ports == 1 and not inwards:
                    rows += self._cycle(root, far, parent, length)
        return rows

    def _trees(self, root: int, far: FloatArray, parent: IntArray, inwards: bool) -> list[Row]:
        """The two prefixes of the nearest GPUs that break the Moore sum most, by ratio and by difference."""
        order = np.argsort(far, kind="stable")
        order = order[np.isfinite(far[order]) & (order != root)]
        if not len(order):
            return []
        sums = np.cumsum(far[order])
        needed = self.shared.float_places[1 : len(order) + 1]
        found = []
        for prefix in {int(np.argmax(needed / sums)), int(np.argmax(needed - sums))}:
            if needed[prefix] <= sums[prefix] * (1 + self.close):
                continue
            nodes = [root, *order[: prefix + 1].tolist()]
            place = {v: number for number, v in enumerate(nodes)}
            parents = [-1] + [place[int(parent[v])] for v in nodes[1:]]
            weight = np.ones(len(nodes), dtype=np.int64)
            uses: dict[int, int] = {}
            for number in range(len(nodes) - 1, 0, -1):
                u, v = nodes[parents[number]], nodes[number]
                orbit = self.at_arc[(v, u) if inwards else (u, v)]
                uses[orbit] = uses.get(orbit, 0) + int(weight[number])
                weight[parents[number]] += weight[number]
            found.append(make.tree(uses, self.shared.places[prefix + 1], inwards, nodes, parents))
        return found

    def _cycle(self, root: int, far: FloatArray, parent: IntArray, length: FloatArray) -> list[Row]:
        """The shortest closed walk through the root, when it is shorter than its cycle must be."""
        back = np.flatnonzero((self.dst == root) & np.isfinite(far[self.src]))
        if not len(back):
            return []
        total = far[self.src[back]] + length[back]
        best = int(total.argmin())
        if total[best] >= self.component[root] * (1 - 1e-7):
            return []
        nodes = [int(self.src[back[best]])]
        while nodes[-1] != root:
            nodes.append(int(parent[nodes[-1]]))
        nodes = nodes[::-1]
        uses: dict[int, int] = {}
        for u, v in zip(nodes, [*nodes[1:], root], strict=True):
            uses[self.at_arc[(u, v)]] = uses.get(self.at_arc[(u, v)], 0) + 1
        return [make.cycle(uses, int(self.component[root]), nodes)]

    def _separate_rates(self, point: FloatArray, deadline_passed: Callable[[], bool], effort: int) -> list[Row]:
        joint = self.shared.prices.joint or bool(self.hops)
        if joint and not self.joined and (found := self._joint_rates(deadline_passed)):
            return found
        load = {k: float(point[self.column[("u", k)]]) for k in self.patterns}
        if self.hops:
            return [
                self._rate_row(number, load)
                for number, (cheapest, budget) in self.priced.items()
                if sum(d / load[k] for k, d in cheapest.items()) > budget * (1 + BROKEN)
                and max(load[k] / self.unit_of["u", k] for k in cheapest) < IMPOSSIBLE * self.shared.gpus
            ]
        largest = {k: self.unit_of[("u", k)] for k in self.patterns}
        rates = {k: max(1, round(RATE_SCALE * largest[k] / load[k])) for k in self.patterns}
        return [
            make.rate(cheapest, budget, rates, number, largest)
            for number, cheapest, budget in self.shared.prices.broken_by(load, deadline_passed, more=effort == MORE)
        ]

    def _rate_row(self, number: int, load: Mapping[int, float]) -> Row:
        """The row of a bundle of prices at these loads."""
        cheapest, _ = self.use(number)
        largest = {k: self.unit_of[("u", k)] for k in self.patterns}
        rates = {k: max(1, round(RATE_SCALE * largest[k] / load[k])) for k in cheapest}
        return make.rate(cheapest, self.priced[number][1], rates, number, largest)

    def use(self, number: int) -> tuple[dict[int, int], int]:
        """D by pattern and the budget of a bundle of prices, which gives rows from now on; in a case, of paths that are
        no longer than it allows."""
        if number not in self.priced:
            prices = self.shared.prices
            bundle = prices.pool[number]
            direct = [self.shared.pairs[k][:, :2] for k, most in self.limits.items() if most == 1]
            pairs = np.unique(np.concatenate(direct), axis=0) if direct else np.zeros((0, 2), dtype=np.int64)
            cheapest = {k: d for k, d in bundle.cheapest.items() if k in self.patterns}
            cheapest |= {k: prices.within(bundle, k, most) for k, most in self.limits.items() if k in cheapest}
            self.priced[number] = cheapest, prices.budget_with(bundle, pairs)
        return self.priced[number]

    def _joint_rates(self, deadline_passed: Callable[[], bool]) -> list[Row]:
        """The row of the prices that are best for all patterns and rates at once."""
        self.joined = True
        if len(self.patterns) < 2:
            return []
        cost = np.array([float(c) for c in self.cost.values()])
        least = np.array([float(low) for low in self.least.values()])
        bounds = cost / (cost.max() or 1.0), least
        over_blocks = prices_of(self.shared.coarse, self.patterns) if self.hops else []  # of cases there are many
        pools: list[RatePrices | CoarsePrices] = [*over_blocks, self.shared.prices]
        joint = JointPrices(pools[self.level], self.patterns, self.column, bounds, self.limits)
        plain = [row for row in self.rows if row.words["row"] != "rate"]
        if (found := joint.best(plain, deadline_passed)) is None:
            return []
        bundle, load = found
        number = len(self.shared.prices.pool)
        self.shared.prices.pool.append(bundle)
        return [self._rate_row(number, load)]

    def _exact(self, multipliers: Sequence[float] | FloatArray, finished: bool) -> IntervalBound:
        """Multipliers that are feasible in exact arithmetic, and the value they prove.

        What a distance's column has too much goes to ``longest`` or ``volume``; then all are scaled down until the
        columns of L and u fit their costs.
        """
        exact = [Fraction(float(m)) for m in multipliers]
        total: dict[Variable, Fraction] = dict.fromkeys(self.cost, Fraction(0))
        for row, m in zip(self.rows, exact, strict=True):
            if m:
                for variable, c in row.coefficient.items():
                    total[variable] += m * c
        for number, row in enumerate(self.rows):
            if (more := self._excess(row, total)) > 0:
                exact[number] += more
                for variable, c in row.coefficient.items():
                    total[variable] += more * c
        factor = Fraction(1)
        for variable, cost in self.cost.items():
            if total[variable] > cost:
                factor = min(factor, cost / total[variable]) if total[variable] > 0 else Fraction(0)
            if variable[0] == "a" and total[variable] > 0:
                factor = Fraction(0)
        return self._rounded([m * factor for m in exact], finished)

    def _excess(self, row: Row, total: Mapping[Variable, Fraction]) -> Fraction:
        """By how much the multiplier of a row ``longest`` or ``volume`` must grow for one distance's column to fit."""
        kind = row.words["row"]
        if kind == "longest" and self.cost[("L", row.words["pattern"])] > 0:
            return total[("a", row.words["orbit"])]
        if kind == "volume":
            sizes = self.shared.sizes[row.words["pattern"]]
            most: Fraction = max(total[("a", orbit)] / size for orbit, size in sizes.items())
            return most
        return Fraction(0)

    def _rounded(self, exact: list[Fraction], finished: bool) -> IntervalBound:
        """Multipliers as floats whose sums are feasible exactly; those of distances rounded with a margin."""
        kept, floats = [], []
        for row, m in zip(self.rows, exact, strict=True):
            if m == 0:
                continue
            supports = row.words["row"] in ("longest", "volume")
            down = float(m) * (1 - 2e-13 if supports else 1 - 1e-12)
            kept.append(row)
            floats.append(down)
        value = self.value(kept, floats)
        if value is None:
            kept, floats, finished = [], [], False
            value = self.value(kept, floats)
            assert value is not None
        return IntervalBound(self.first, self.last, value, kept, floats, finished)

    def value(self, rows: Sequence[Row], multipliers: Sequence[float]) -> Fraction | None:
        """What the multipliers prove, exactly; None when a column does not fit its cost."""
        total, proven = dict(self.cost), self.constant
        for row, m in zip(rows, multipliers, strict=True):
            proven += Fraction(m) * row.right
            for variable, c in row.coefficient.items():
                total[variable] -= Fraction(m) * c
        if any(left < 0 for left in total.values()):
            return None
        return proven + sum((left * self.least[variable] for variable, left in total.items()), Fraction(0))


def bytes_differ(instance: HarvestInstance) -> bool:
    """Whether steps of one pattern move unequal bytes."""
    keys = [_set_key(pairs, instance.gpus) for pairs in instance.demands]
    return len(set(zip(keys, instance.bytes_per_pair.tolist(), strict=True))) > len(set(keys))


def _set_key(pairs: IntArray, gpus: int) -> bytes:
    order = np.argsort(pairs[:, 0] * gpus + pairs[:, 1])
    return pairs[order].tobytes()


def _row_key(row: Row) -> tuple[Any, ...]:
    return (*sorted(row.coefficient.items()), row.right)
