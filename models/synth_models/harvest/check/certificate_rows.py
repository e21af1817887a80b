"""The rows of a bound's certificate, derived again from the instance; imports no method.

Why every row holds for every topology is told in :mod:`synth_models.harvest.bounds.rows`; here each is rebuilt from
what the certificate names (a tree, a closed walk, prices), in whole numbers, each of which is read through
:mod:`synth.text.untrusted`. A wrong entry raises ``ValueError`` with the fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.text import untrusted
from synth_models.harvest.instance import HarvestInstance

Terms = dict[tuple[str, int], int | Fraction]
RATE_SCALE = 1 << 20
LARGEST_PRICE = 1 << 40
LARGEST_COLUMN = 1 << 20
LARGEST_RATE = 1 << 40  # of the pattern's largest volume, in units of 1/RATE_SCALE
PRICED_UP_TO = 1024  # GPUs; prices are of ordered pairs
HALVINGS = 48  # of a range of loads, more than methods make of the same range
KINDS = ("longest", "volume", "tree", "cycle", "rate", "direct", "limit")
Limits = Mapping[int, int]  # the most hops of routes, of the patterns that have any in a case


class Facts:
    """Patterns (a volume by pair, numbered by first appearance; ``by_bytes``: those of unequal bytes apart), the orbits
    of their pairs under the stated renumberings, and prices. ``sizes[k][orbit]`` is the volume of all pairs of the
    orbit in pattern k; ``partners`` are the most pairs that leave or enter one GPU, ``least_load`` is that of whole
    links."""

    def __init__(self, instance: HarvestInstance, certificate: Mapping[str, Any]) -> None:
        self.gpus, self.ports = instance.gpus, instance.ports
        numbers: dict[tuple[frozenset[tuple[int, int, int]], float], int] = {}
        sets = [frozenset((u, v, volume) for u, v, volume in rows.tolist()) for rows in instance.demands]
        self.bytes_of_step: list[float] = instance.bytes_per_pair.tolist()
        apart = "by_bytes" in certificate and untrusted.whole(certificate, "by_bytes", 0, 1)
        sizes = self.bytes_of_step if apart else [0.0] * len(sets)
        self.of_step = [numbers.setdefault(one, len(numbers)) for one in zip(sets, sizes, strict=True)]
        self.patterns = [{(u, v): volume for u, v, volume in one} for one, _ in numbers]
        self.group = self._group(certificate)
        self.orbit = self._orbits(sorted(set().union(*self.patterns)))
        self._measure()
        bundles = untrusted.objects(certificate, "bundles")
        if bundles and self.gpus > PRICED_UP_TO:
            raise ValueError(f"prices are for {PRICED_UP_TO} GPUs at most")
        self.label = self._labels() if bundles else np.zeros((0, 0), dtype=np.int64)
        shape = None, int(self.label.max()) + 1 if bundles else 0
        stated: Any = (
            untrusted.whole_numbers(certificate, "columns", 0, LARGEST_COLUMN, shape) if self._shares(bundles) else []
        )
        self.columns = [np.asarray(row) for row in stated]
        self.bundles = [self._bundle(number, entry) for number, entry in enumerate(bundles)]
        self._costs: dict[tuple[int, int, int | None], int] = {}

    def _measure(self) -> None:
        """Volumes by orbit, most partners and least load of every pattern."""
        self.sizes = [_sums((self.orbit[pair], volume) for pair, volume in one.items()) for one in self.patterns]
        ends = [[[(pair[side], volume) for pair, volume in one.items()] for side in (0, 1)] for one in self.patterns]
        self.partners = [max(max(Counter(gpu for gpu, _ in side).values()) for side in sides) for sides in ends]
        listed = [[(u, v, volume) for (u, v), volume in one.items()] for one in self.patterns]
        self.least_load = [whole_routes_load(rows, self.ports, self.gpus) for rows in listed]

    def _group(self, certificate: Mapping[str, Any]) -> list[list[int]]:
        shape = (None, self.gpus)
        group: list[list[int]] = untrusted.whole_numbers(certificate, "generators", 0, self.gpus - 1, shape).tolist()
        for number, moved in enumerate(group):
            if sorted(moved) != list(range(self.gpus)):
                raise ValueError(f"generator {number} is no permutation of the GPUs")
            for pattern in self.patterns:
                if any(pattern.get((moved[u], moved[v])) != volume for (u, v), volume in pattern.items()):
                    raise ValueError(f"generator {number} does not map every pattern onto itself")
        return group

    def _orbits(self, pairs: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
        """Orbit of every pair, numbered in the order of their least pairs."""
        orbit: dict[tuple[int, int], int] = {}
        count = 0
        for start in pairs:
            if start in orbit:
                continue
            orbit[start], stack = count, [start]
            while stack:
                u, v = stack.pop()
                for moved in self.group:
                    image = (moved[u], moved[v])
                    if image not in orbit:
                        orbit[image] = count
                        stack.append(image)
            count += 1
        return orbit

    def _labels(self) -> IntArray:
        """The orbits of all ordered pairs of GPUs, of shape (gpus, gpus), numbered in the order of their least pairs:
        pairs and their images hang together."""
        from scipy.sparse import coo_array  # few certificates need it
        from scipy.sparse.csgraph import connected_components

        every = np.arange(self.gpus**2)
        u, v = np.divmod(every, self.gpus)
        images = [np.array(moved)[u] * self.gpus + np.array(moved)[v] for moved in self.group]
        ends = np.tile(every, len(images)), np.concatenate([*images, every[:0]])
        hang = coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(len(every), len(every)))
        part = connected_components(hang, directed=False)[1]
        first = np.unique(part, return_index=True)[1]  # the least pair of every orbit
        return np.searchsorted(np.sort(first), first)[part].reshape(self.gpus, self.gpus)

    @staticmethod
    def _shares(bundles: Iterable[Mapping[str, Any]]) -> bool:
        """Whether some bundle gives several orbits the same prices."""
        return any("columns" in entry for entry in bundles)

    def _bundle(self, number: int, entry: Mapping[str, Any]) -> Bundle:
        where, gpus = f"price bundle {number}", self.gpus
        patterns = untrusted.whole_numbers(entry, "patterns", 0, len(self.patterns) - 1).tolist()
        if len(set(patterns)) != len(patterns):
            raise ValueError(f"{where}: a pattern stands twice")
        column = np.arange(int(self.label.max()) + 1)
        if "columns" in entry:
            column = self.columns[untrusted.whole(entry, "columns", 0, len(self.columns) - 1)]
        shape = len(patterns), int(column.max()) + 1
        table = untrusted.whole_numbers(entry, "prices", 0, LARGEST_PRICE, shape)[:, column]
        ends = []
        for word in ("of_source", "of_destination"):
            stated = untrusted.whole_numbers(entry, word, 0, LARGEST_PRICE, (None,))
            if len(stated) not in (1, gpus):
                raise ValueError(f"{where}: {word} has {len(stated)} numbers for {gpus} GPUs")
            ends.append(np.broadcast_to(stated, (gpus,)))
        source, destination = ends
        spare = source[:, None] + destination[None, :] - table.sum(axis=0)[self.label]
        np.fill_diagonal(spare, 0)
        if np.any(spare < 0):
            raise ValueError(f"{where}: prices exceed r + c")
        budget = self.ports * (untrusted.exact_sum(source) + untrusted.exact_sum(destination))
        return Bundle(dict(zip(patterns, table, strict=True)), spare, budget)

    def priced(self, number: int, limits: Limits) -> tuple[dict[int, int], int]:
        """D by pattern and the budget of a bundle, in a case with these limits: D over paths that are no longer, the
        budget less what the links of pairs with one hop leave of r + c."""
        bundle = self.bundles[number]
        own = set().union(*(self.patterns[k] for k, most in limits.items() if most == 1))
        saved = sum(int(bundle.spare[pair]) for pair in own)
        return {k: self._cheapest(number, k, limits.get(k)) for k in bundle.prices}, bundle.budget - saved

    def _cheapest(self, number: int, pattern: int, most: int | None) -> int:
        """Sum over the pattern's pairs of volume times cheapest path of so many hops; pairs of an orbit cost alike."""
        key = number, pattern, most
        if key not in self._costs:
            price = self.bundles[number].prices[pattern][self.label]
            one = {self.orbit[pair]: pair for pair in self.patterns[pattern]}
            trees = {u: _distances(price, u, most) for u in {u for u, _ in one.values()}}
            sizes = self.sizes[pattern].items()
            self._costs[key] = sum(size * int(trees[one[orbit][0]][one[orbit][1]]) for orbit, size in sizes)
        return self._costs[key]


@dataclass(frozen=True)
class Bundle:
    """Prices by pattern, shape (orbits of ordered pairs,); ``spare`` (gpus, gpus) is what they leave of r + c."""

    prices: dict[int, IntArray]
    spare: IntArray
    budget: int


class RowReader:
    """Rows of one interval, or of one of its cases, whose routes have ``limits``: the terms (variables and
    coefficients) and the right side of ``terms >= right side``."""

    def __init__(self, facts: Facts, first: int, last: int, limits: Limits) -> None:
        self.facts, self.steps, self.limits = facts, range(first, last + 1), limits
        self.patterns = set(facts.of_step[first : last + 1])
        self.pairs = set().union(*(facts.patterns[k] for k in self.patterns))
        self.places = _places(facts.ports, facts.gpus)

    def read(self, entry: Mapping[str, Any]) -> tuple[Terms, int | Fraction]:
        kind = untrusted.choice(entry, "row", *KINDS)
        readers = (self._longest, self._volume, self._tree, self._cycle, self._rate, self._direct, self._limit)
        return dict(zip(KINDS, readers, strict=True))[kind](entry)

    def _pattern(self, number: int) -> int:
        if number not in self.patterns:
            raise ValueError(f"pattern {number} is not in the interval")
        return number

    def _longest(self, entry: Mapping[str, Any]) -> tuple[Terms, int | Fraction]:
        pattern, orbit = self._pattern(untrusted.whole(entry, "pattern")), untrusted.whole(entry, "orbit")
        if orbit not in self.facts.sizes[pattern]:
            raise ValueError(f"orbit {orbit} is not in pattern {pattern}")
        return {("L", pattern): 1, ("a", orbit): -1}, 0

    def _limit(self, entry: Mapping[str, Any]) -> tuple[Terms, int | Fraction]:
        pattern, orbit = untrusted.whole(entry, "pattern"), untrusted.whole(entry, "orbit")
        if pattern not in self.limits or orbit not in self.facts.sizes[pattern]:
            raise ValueError(f"orbit {orbit} of pattern {pattern} has no limit on its hops here")
        return {("a", orbit): -1}, -self.limits[pattern]

    def _volume(self, entry: Mapping[str, Any]) -> tuple[Terms, int | Fraction]:
        pattern = self._pattern(untrusted.whole(entry, "pattern"))
        terms: Terms = {("a", orbit): -size for orbit, size in self.facts.sizes[pattern].items()}
        return {**terms, ("u", pattern): self.facts.ports * self.facts.gpus}, 0

    def _tree(self, entry: Mapping[str, Any]) -> tuple[Terms, int | Fraction]:
        nodes, parents = (untrusted.whole_numbers(entry, word).tolist() for word in ("nodes", "parents"))
        if not nodes or any(not 0 <= node < self.facts.gpus for node in nodes):
            raise ValueError("a tree has a root, and only GPUs that exist")  # no root: the row would say 0 >= 1
        if (
            len(set(nodes)) != len(nodes)
            or len(parents) != len(nodes)
            or not isinstance(entry["inwards"], bool | np.bool_)
        ):
            raise ValueError("a tree's GPUs are not distinct or lack parents")
        paths: list[Counter[int]] = [Counter()]
        for number in range(1, len(nodes)):
            if not 0 <= parents[number] < number:
                raise ValueError("a parent in a tree comes after its child")
            u, v = nodes[parents[number]], nodes[number]
            paths.append(paths[parents[number]] + Counter([self._arc((v, u) if entry["inwards"] else (u, v))]))
        terms: Counter[int] = Counter()
        for path in paths:
            terms.update(path)
        return {("a", orbit): count for orbit, count in terms.items()}, self.places[len(nodes) - 1]

    def _cycle(self, entry: Mapping[str, Any]) -> tuple[Terms, int | Fraction]:
        if self.facts.ports != 1:
            raise ValueError("cycle rows hold for one port only")
        nodes = untrusted.whole_numbers(entry, "nodes", 0, self.facts.gpus - 1).tolist()
        if len(nodes) < 2:
            raise ValueError("a closed walk has at least two GPUs")
        uses = Counter(self._arc(arc) for arc in zip(nodes, [*nodes[1:], nodes[0]], strict=True))
        return {("a", orbit): count for orbit, count in uses.items()}, self._together(nodes[0])

    def _rate(self, entry: Mapping[str, Any]) -> tuple[Terms, int | Fraction]:
        number = untrusted.whole(entry, "bundle", 0, len(self.facts.bundles) - 1)
        cheapest, budget = self.facts.priced(number, self.limits)
        rated = untrusted.whole_numbers(entry, "rates", 0, LARGEST_RATE, (None, 2)).tolist()
        rates = {self._pattern(k): r for k, r in rated}
        if len(rates) != len(rated) or any(r < 1 or k not in cheapest for k, r in rates.items()):
            raise ValueError("a rate is not positive, stands twice or is of a pattern without prices")
        of_one = {k: Fraction(r, max(self.facts.patterns[k].values())) for k, r in rates.items()}
        terms: Terms = {("u", k): cheapest[k] * r**2 for k, r in of_one.items()}
        return terms, 2 * RATE_SCALE * sum(cheapest[k] * r for k, r in of_one.items()) - RATE_SCALE**2 * budget

    def _direct(self, entry: Mapping[str, Any]) -> tuple[Terms, int | Fraction]:
        pattern, facts = self._pattern(untrusted.whole(entry, "pattern")), self.facts
        if len({facts.bytes_of_step[step] for step in self.steps if facts.of_step[step] == pattern}) > 1:
            raise ValueError(f"steps of pattern {pattern} differ in bytes and may differ in routes")
        if facts.partners[pattern] > facts.ports:
            raise ValueError(f"pattern {pattern} has more partners than ports")
        load = whole_links_load([(u, v, w) for (u, v), w in facts.patterns[pattern].items()], facts.ports)
        least = facts.least_load[pattern]
        return {("L", pattern): load - least, ("u", pattern): 1}, 2 * load - least

    def _arc(self, pair: tuple[int, int]) -> int:
        if pair not in self.pairs:
            raise ValueError(f"{pair[0]} to {pair[1]} is no pair of the interval")
        return self.facts.orbit[pair]

    def _together(self, start: int) -> int:
        """GPUs joined to ``start`` by pairs of the interval, whichever way."""
        neighbours: dict[int, set[int]] = {}
        for u, v in self.pairs:
            neighbours.setdefault(u, set()).add(v)
            neighbours.setdefault(v, set()).add(u)
        reached, stack = {start}, [start]
        while stack:
            new = neighbours[stack.pop()] - reached
            reached |= new
            stack.extend(new)
        return len(reached)


def whole_links_load(rows: Sequence[Sequence[int]], ports: int) -> Fraction:
    """The least volume a link with which links from every source to its destinations, and into every destination, are
    no more than the ports: of all quotients volume / links the smallest that leaves enough of them, for every GPU."""
    groups: dict[tuple[int, int], list[int]] = {}
    for u, v, volume in rows:
        groups.setdefault((0, u), []).append(volume)
        groups.setdefault((1, v), []).append(volume)
    worst = Fraction(0)
    for sent in {tuple(sorted(group)) for group in groups.values()}:
        loads = sorted({Fraction(volume, links) for volume in set(sent) for links in range(1, ports + 1)})
        low, high = 0, len(loads) - 1  # the largest leaves one link for each, which fits
        while low < high:
            middle = (low + high) // 2
            if sum(-(-volume // loads[middle]) for volume in sent) <= ports:
                high = middle
            else:
                low = middle + 1
        worst = max(worst, loads[high])
    return worst


def whole_routes_load(rows: Sequence[Sequence[int]], ports: int, gpus: int) -> Fraction:
    """A load u that no routes are below. It is at least what the busiest GPU has a port. Of what a GPU sends, its links
    carry at most u each directly to one other GPU, and all the rest makes two hops at least, so that twice the volume
    of all, less what goes directly, must fit on ports * gpus links of u; likewise for what GPUs receive."""
    sent: tuple[dict[int, list[int]], dict[int, list[int]]] = ({}, {})
    for u, v, volume in rows:
        sent[0].setdefault(u, []).append(volume)
        sent[1].setdefault(v, []).append(volume)
    # more volumes than ports never go directly, and the largest carry at least as much on their first links
    alike = [Counter(tuple(sorted(one)[-ports:]) for one in side.values()) for side in sent]
    twice = 2 * sum(volume for _, _, volume in rows)

    def refuted(load: Fraction) -> bool:
        return any(
            twice - sum(times * _directly(one, ports, load) for one, times in side.items()) > ports * gpus * load
            for side in alike
        )

    least = Fraction(max(sum(one) for side in sent for one in side.values()), ports)
    if not refuted(least):
        return least
    above, step = least, least / 2
    for _ in range(HALVINGS):  # all loads up to `above` are refuted, as the two sides move apart
        if refuted(above + step):
            above += step
        step /= 2
    return above


def _directly(sent: Sequence[int], ports: int, load: Fraction) -> Fraction:
    """The most that ``ports`` links of one GPU carry to the GPUs that it sends these volumes to."""
    best: list[Fraction] = []
    for volume in sent:
        left = Fraction(volume)
        for _ in range(ports):
            if left <= 0:
                break
            best.append(min(left, load))
            left -= load
    return sum(sorted(best)[-ports:], Fraction(0))


def _sums(amounts: Iterable[tuple[int, int]]) -> Counter[int]:
    """Whole amounts added up by their keys."""
    total = Counter[int]()
    for key, amount in amounts:
        total[key] += amount
    return total


def _places(ports: int, most: int) -> list[int]:
    """Entry j: least sum of the distances of j GPUs from one, when ports^h GPUs are h hops away."""
    sums, distance = [0], 1
    while len(sums) <= most:
        for _ in range(min(ports**distance, most + 1 - len(sums))):
            sums.append(sums[-1] + distance)
        distance += 1
    return sums


def _distances(price: IntArray, source: int, most: int | None) -> IntArray:
    """Return the cost of the cheapest path from one GPU to each over all ordered pairs, exact: of any number of hops
    (Dijkstra), or of at most so many (a round for each).

    The check's own: methods search with :mod:`synth.graph.shortest_paths`, of which this shares nothing.
    """
    distance: IntArray = price[source].copy()
    distance[source] = 0
    if most is not None:
        for _ in range(most - 1):
            longer = (distance[:, None] + price).min(axis=0)
            if np.all(longer >= distance):
                break
            distance = np.minimum(distance, longer)
        return distance
    left = np.ones(len(price), dtype=bool)
    left[source] = False
    for _ in range(len(price) - 1):
        at = int(np.where(left, distance, np.iinfo(np.int64).max).argmin())
        left[at] = False
        distance[left] = np.minimum(distance, distance[at] + price[at])[left]
    return distance
