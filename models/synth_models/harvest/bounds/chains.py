"""A lower bound where every circuit that is set up costs something: steps of one port whose patterns are powers of one.

A *chain* is a run of steps of one port in which every GPU sends to one other and receives from one, and in which the
pattern of every step, read in one direction, is a power of the one before (recursive doubling: shifts 1, 2, 4, ...).
Topologies are then permutations, cycles of links. If steps i and j are served within ``l_i`` and ``l_j`` hops, the
second with at most ``r_j`` pairs on a link, their topologies differ in at least :meth:`Chain.changed` circuits: a pair
of step j whose route has no new link is as far apart in the topology of step i, where a walk over the pairs of step i
of one orbit goes round a whole cycle. The bound is the cheapest choice of hops and loads with the circuits that they
need, by depth-first search. What is computed is in ``models/formats/harvest.md``. Why it
holds, for steps with patterns sigma and tau = sigma^M, topologies G and G', at most l and l' hops, a load r' in G':

* Every GPU sends and receives, so a topology is a permutation, cycles of links. Routes are forced, and all links of a
  cycle carry the same number of pairs. So a load r is a whole number, at most the hops l, and 1 only with l = 1.
* In G a cycle of L links is made of whole orbits of sigma. The pairs along one orbit of tau go round it at least once,
  so their distances sum to L at least. Each is at most M l and L - 1.
* In G' a pair without a new link keeps its distance in G, and that is at most l'. All others use one of the c new
  links, which carry r' pairs each at most. All distances in G' sum to n r' at most.

So c has a least value for each choice of l, l' and r': what a mixture of orbits leaves, rounded up. It is never 1, as
two permutations differ in two links.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from synth.method import Outcome
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.delays import table_seconds

MOST_NODES = 400_000  # of a search; the check, which is told the result, looks at no more
FEWEST_CHANGED = 2  # two permutations that differ do so in two links at least


@dataclass
class Chain:
    """Steps ``first..last``; ``powers`` of the first pattern read, in the order of reading; ``orbit``: GPUs of one
    orbit of that pattern. ``alpha``, ``hop`` and ``pair`` (a step each) are whole units, ``circuit`` is the price."""

    first: int
    last: int
    descending: bool
    gpus: int
    orbit: int
    powers: list[int]
    alpha: int = 0
    hop: int = 0
    pair: list[int] = field(default_factory=list)
    circuit: int = 0
    known: dict[tuple[int, int, int, int, int], int | None] = field(default_factory=dict)
    ahead: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def changed(self, i: int, j: int, hops: int, later: int, load: int) -> int | None:
        """Fewest circuits that differ between the topologies of steps i < j (in the order of reading), None if no
        topology of step j has ``later`` hops and ``load`` pairs on a link beside one of step i with ``hops``."""
        key = (i, j, hops, later, load)
        if key not in self.known:
            self.known[key] = self._changed(*key)
        return self.known[key]

    def _changed(self, i: int, j: int, hops: int, later: int, load: int) -> int | None:
        factor = self.powers[j] // self.powers[i]
        orbit = self.orbit // self.powers[i]
        length = orbit // factor  # GPUs of one orbit of the later pattern
        if load >= factor and later >= factor:
            return 0  # a cycle of one orbit, all of whose pairs are that far apart
        points = []
        for cycle in range(orbit, self.gpus + 1, orbit):
            farthest = min(factor * hops, cycle - 1)
            kept = min(later, farthest)
            for rerouted in range(length + 1):
                if (length - rerouted) * kept + rerouted * farthest >= cycle:
                    points.append((max(length, cycle - rerouted * (farthest - 1)), rerouted))
        rerouted_each = _least_mean(points, load * length)
        if rerouted_each is None:
            return None
        pairs = -(-rerouted_each * (self.gpus // length) // 1)
        circuits = -(-int(pairs) // load)
        return max(circuits, FEWEST_CHANGED) if circuits else 0

    def least(self, out_of_time: Callable[[], bool]) -> int | None:
        """Units that the chain takes at least; None when the search is too large or time is up."""
        steps, best, nodes = len(self.powers), None, 0
        stack: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = [(0, (), ())]
        while stack:
            cost, hops, circuits = stack.pop()
            at = len(hops)
            if best is not None and cost + (self._rest(at, hops[0], circuits[-1]) if at else 0) >= best:
                continue
            if at == steps:
                best = cost
                continue
            nodes += 1
            if nodes > MOST_NODES or (nodes % 1000 == 0 and out_of_time()):
                return None
            stack += self._next(cost, hops, circuits, best)
        return best

    def _rest(self, at: int, first: int, circuits: int) -> int:
        """Units that the steps from ``at`` on take at least where the first step has ``first`` hops and so many
        circuits have changed; each pays its share of those that it needs to differ from the first step."""
        key = (at, first, circuits)
        if key not in self.ahead:
            share, total = self.circuit // max(1, len(self.powers) - at), 0
            for step in range(at, len(self.powers)):
                best = None
                for later in range(1, self.gpus):
                    fixed = self.alpha + self.hop * later
                    if best is not None and fixed + self.pair[step] * min(later, 2) >= best:
                        break
                    for load in range(min(later, 2), later + 1):
                        if (need := self.changed(0, step, first, later, load)) is not None:
                            price = fixed + self.pair[step] * load + share * max(0, need - circuits)
                            best = price if best is None else min(best, price)
                total += best or 0
            self.ahead[key] = total
        return self.ahead[key]

    def _next(
        self, cost: int, hops: tuple[int, ...], circuits: tuple[int, ...], below: int | None
    ) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
        """All choices for the next step, the cheapest last."""
        at, found = len(hops), []
        before = circuits[-1] if circuits else 0
        for later in range(1, self.gpus):
            if below is not None and cost + self.alpha + self.hop * later + self.pair[at] * min(later, 2) >= below:
                break
            for load in range(min(later, 2), later + 1):
                needs = [self.changed(i, at, hops[i], later, load) for i in range(at)]
                if any(need is None for need in needs):
                    continue
                total = max([before, *(circuits[i] + (need or 0) for i, need in enumerate(needs))])
                price = self.alpha + self.hop * later + self.pair[at] * load + self.circuit * (total - before)
                if below is None or cost + price < below:
                    found.append((cost + price, (*hops, later), (*circuits, total)))
        return sorted(found, reverse=True)


def _least_mean(points: Sequence[tuple[int, int]], most: int) -> Fraction | None:
    """The least mean of the second numbers over mixtures of points whose mean of the first is ``most`` at most."""
    best: Fraction | None = None
    below = [point for point in points if point[0] <= most]
    above = [point for point in points if point[0] > most]
    for x, a in below:
        best = Fraction(a) if best is None else min(best, Fraction(a))
        for y, b in above:
            if b < a:
                best = min(best, a + Fraction((b - a) * (most - x), y - x))
    return best


def chains(instance: HarvestInstance) -> list[Chain]:
    """The chains of an instance, each of two steps at least, from the first step on."""
    found: list[Chain] = []
    if instance.ports > 1:
        return found
    at, steps = 0, [_permutation(pairs, instance.gpus) for pairs in instance.demands]
    while at < len(steps):
        options = [_longest(steps, at, descending) for descending in (False, True)]
        chain = max(options, key=lambda one: len(one.powers) if one else 0)
        if chain is not None:
            found.append(chain)
        at = chain.last + 1 if chain else at + 1
    return found


def _permutation(pairs: Any, gpus: int) -> list[int] | None:
    """Where every GPU sends to, if each sends to one other, each receives from one, and all volumes are equal."""
    if len(pairs) != gpus or len(set(pairs[:, 0].tolist())) < gpus or len(set(pairs[:, 1].tolist())) < gpus:
        return None
    if len(set(pairs[:, 2].tolist())) > 1:
        return None
    return [int(v) for _, v in sorted(zip(pairs[:, 0].tolist(), pairs[:, 1].tolist(), strict=True))]


def _longest(steps: Sequence[list[int] | None], first: int, descending: bool) -> Chain | None:
    """The longest chain that begins with this step."""
    for last in range(len(steps) - 1, first, -1):
        read = list(steps[first : last + 1])
        if (powers := _powers(read[::-1] if descending else read)) is not None:
            one = steps[last if descending else first]
            assert one is not None
            return Chain(first, last, descending, len(one), _orbit(one), powers)
    return None


def _orbit(moved: Sequence[int]) -> int:
    length, at = 1, moved[0]
    while at != 0:
        length, at = length + 1, moved[at]
    return length


def _powers(read: Sequence[list[int] | None]) -> list[int] | None:
    """The powers of the first pattern that the patterns are, each a proper multiple of the one before, if they are."""
    one = read[0]
    if one is None:
        return None
    orbit = _orbit(one)
    power, current = {}, list(range(len(one)))
    for number in range(orbit):
        power[tuple(current)] = number
        current = [one[v] for v in current]
    if current != list(range(len(one))) or len(power) < orbit or not _regular(one, orbit):
        return None
    found = [power.get(tuple(moved), 0) if moved is not None else 0 for moved in read]
    fits = found[0] == 1 and all(b > a > 0 and b % a == 0 for a, b in pairwise(found))
    return found if fits and all(orbit % number == 0 for number in found) else None


def _regular(moved: Sequence[int], orbit: int) -> bool:
    """Whether all orbits have that many GPUs."""
    for start in range(len(moved)):
        length, at = 1, moved[start]
        while at != start:
            length, at = length + 1, moved[at]
        if length != orbit:
            return False
    return True


def solve(instance: HarvestInstance, unit: Fraction, alone: Sequence[int], out_of_time: Callable[[], bool]) -> Outcome:
    """The bound of all chains and, of the steps outside, of each alone (``alone``, in units); none without chains."""
    total, stated = sum(alone), []
    for chain in chains(instance):
        _price(chain, instance, unit)
        least = chain.least(out_of_time) if chain.circuit else None
        if least is None or least <= (covered := sum(alone[chain.first : chain.last + 1])):
            continue
        total += least - covered
        stated.append({"first": chain.first, "last": chain.last, "descending": int(chain.descending), "units": least})
    if not stated:
        return Outcome("finished")
    seconds = total * unit
    bound = float(seconds)
    if Fraction(bound) > seconds:
        bound = float(np.nextafter(bound, 0.0))
    exponent = unit.denominator.bit_length() - 1 if unit.denominator > 1 else 1 - unit.numerator.bit_length()
    certificate = {"unit_exponent": exponent, "generators": [], "bundles": [], "intervals": [], "chains": stated}
    proof = "fewest circuits in which topologies of steps whose patterns are powers of one must differ"
    return Outcome("finished", bound=bound, bound_proof=proof, certificate=certificate)


def _price(chain: Chain, instance: HarvestInstance, unit: Fraction) -> None:
    """State a chain's costs in units, rounded down."""
    steps = list(range(chain.first, chain.last + 1))
    chain.alpha = int(Fraction(instance.alpha) // unit)
    chain.hop = int(Fraction(instance.hop_delay) // unit)
    for step in steps[::-1] if chain.descending else steps:
        seconds = Fraction(float(instance.bytes_per_pair[step])) / Fraction(instance.port_bandwidth)
        chain.pair.append(int(seconds * int(instance.demands[step][0, 2]) // unit))
    paid = [
        max(Fraction(0), _change(instance, circuits) - Fraction(float(instance.overlap[step]))) / circuits
        for step in steps[1:]
        for circuits in range(FEWEST_CHANGED, instance.gpus + 1)
    ]
    chain.circuit = int(min(paid) // unit)


def _change(instance: HarvestInstance, circuits: int) -> Fraction:
    """Seconds of a change of that many circuits of permutations, an output and an input each."""
    exact = Fraction(instance.reconfiguration_delay) + circuits * Fraction(instance.delay_per_circuit or 0.0)
    return exact + Fraction(float(table_seconds(instance, np.array(2 * circuits))))
