"""Verify what a chain of steps takes at least: one port, patterns that are powers of one; imports no method.

Read in one direction, the pattern of each step is a power of the one before. With one port all topologies are then
permutations of the GPUs. Let step i be served within l hops and a later one j, whose pattern is the M-th power of step
i's, within l' hops and with at most r pairs on a link. In i's topology, whose cycles are unions of orbits of its
pattern, the pairs of j along one orbit of j's pattern go round at least once, each at most M * l hops or a hop less
than the cycle. A pair whose route in j's topology has no link that i's lacks has the same distance in both; all others
use one of the c new links, each of which carries r pairs at most. All pairs' distances add up to r * GPUs at most.
A choice of hops, loads and circuits that costs less than the stated units and breaks none of this refutes the bound.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any

from synth.text import untrusted
from synth_models.harvest.check.changes import change_of_permutations
from synth_models.harvest.instance import HarvestInstance

MOST_CHOICES = 500_000  # of hops and loads of the steps up to some step
MOST_UNITS = 1 << 62


def chain_units(instance: HarvestInstance, unit: Fraction, entry: Mapping[str, Any]) -> tuple[int, int, int]:
    """The first and last step of a chain and the units that it takes at least, as stated. Raises ``ValueError`` where
    a cheaper choice is left, or the steps are no chain."""
    first = untrusted.whole(entry, "first", 0, len(instance.steps) - 1)
    last = untrusted.whole(entry, "last", first, len(instance.steps) - 1)
    backwards = untrusted.whole(entry, "descending", 0, 1)
    units = untrusted.whole(entry, "units", 0, MOST_UNITS)
    steps = list(range(first, last + 1))
    slope = min((_slope(instance, step) for step in steps[1:]), default=Fraction(0))
    _Choices(instance, steps[::-1] if backwards else steps, unit, int(slope // unit)).refute(units)
    return first, last, units


def _slope(instance: HarvestInstance, step: int) -> Fraction:
    """The least that is paid for each circuit of a change before a step, whatever their number (never just one)."""
    hidden = Fraction(float(instance.overlap[step]))
    return min(
        max(Fraction(0), change_of_permutations(instance, number) - hidden) / number
        for number in range(2, instance.gpus + 1)
    )


class _Choices:
    """Choices of hops and loads for steps in the order of reading, and the circuits in which topologies then differ."""

    def __init__(self, instance: HarvestInstance, steps: Sequence[int], unit: Fraction, slope: int) -> None:
        if instance.ports != 1:
            raise ValueError("a chain is of one port")
        self.gpus, self.slope = instance.gpus, slope
        maps = [_partners(instance, step) for step in steps]
        self.size = _common_orbit(maps[0])
        self.exponents = [_exponent(maps[0], moved, self.size) for moved in maps]
        for one, more in zip(self.exponents, [*self.exponents[1:], self.size], strict=True):
            if more % one:
                raise ValueError("the patterns of a chain are no powers of the one before")
        self.fixed, self.hop = int(Fraction(instance.alpha) // unit), int(Fraction(instance.hop_delay) // unit)
        rate = Fraction(instance.port_bandwidth)
        self.pair = [
            int(Fraction(float(instance.bytes_per_pair[step])) * int(instance.demands[step][0, 2]) / rate // unit)
            for step in steps
        ]
        self.left = 0

    def refute(self, units: int) -> None:
        """Raise ``ValueError`` if a choice costs less."""
        self.left = MOST_CHOICES
        if self._cheaper([], [], units):
            raise ValueError(f"a chain's steps may take less than {units} units")

    def _cheaper(self, hops: list[int], circuits: list[int], units: int) -> bool:
        """Whether the steps from the next on can be chosen for less than ``units``."""
        at = len(hops)
        if at == len(self.pair):
            return units > 0
        if hops and self._at_least(at, hops[0], circuits[-1]) >= units:
            return False
        self.left -= 1
        if self.left < 0:
            raise ValueError("a chain has too many choices to be checked")
        before = circuits[-1] if circuits else 0
        for hop in range(1, self.gpus):
            if self._price(at, hop, min(hop, 2)) >= units:
                return False
            for load in range(hop, min(hop, 2) - 1, -1):  # one pair a link in the mean is one hop for each
                price = self._price(at, hop, load)
                if price >= units or (total := self._circuits(hops, circuits, hop, load)) is None:
                    continue
                total = max(total, before)
                price += self.slope * (total - before)
                if price < units and self._cheaper([*hops, hop], [*circuits, total], units - price):
                    return True
        return False

    def _price(self, at: int, hop: int, load: int) -> int:
        return self.fixed + self.hop * hop + self.pair[at] * load

    @cache  # noqa: B019  (of one certificate)
    def _at_least(self, at: int, first: int, changed: int) -> int:
        """Units of the steps from ``at`` on at least: each may count an equal share of the circuits by which the last
        topology differs from the first step's, and it differs by as many as that step needs."""
        share, units = self.slope // (len(self.pair) - at), 0
        for step in range(at, len(self.pair)):
            prices: list[int] = []
            for hop in range(1, self.gpus):
                if prices and self._price(step, hop, min(hop, 2)) >= min(prices):
                    break
                for load in range(min(hop, 2), hop + 1):
                    apart = self._apart(1, self.exponents[step], first, hop, load)
                    if apart <= self.gpus:
                        prices.append(self._price(step, hop, load) + share * max(0, apart - changed))
            units += min(prices, default=0)
        return units

    def _circuits(self, hops: Sequence[int], circuits: Sequence[int], hop: int, load: int) -> int | None:
        """Circuits changed up to the next step at least; None where no number of them is enough."""
        total = 0
        for number, (earlier, changed) in enumerate(zip(hops, circuits, strict=True)):
            apart = self._apart(self.exponents[number], self.exponents[len(hops)], earlier, hop, load)
            if apart > self.gpus:
                return None
            total = max(total, changed + apart)
        return total

    @cache  # noqa: B019  (of one certificate)
    def _apart(self, one: int, other: int, hops: int, later: int, load: int) -> int:
        """The least c that does not contradict the two steps; more than the GPUs if all do."""
        orbit, factor = self.size // one, other // one
        members = orbit // factor
        sums: dict[int, int] = {}  # least sum of the distances along an orbit, by its number of pairs with new links
        for cycle in range(orbit, self.gpus + 1, orbit):
            most = min(factor * hops, cycle - 1)
            for new in range(members + 1):
                if new * most + (members - new) * min(later, most) >= cycle:
                    sums[new] = min(sums.get(new, cycle * self.gpus), max(members, cycle - new * (most - 1)))
        counts = [0, *range(2, self.gpus + 1)]
        least = bisect_left(counts, True, key=partial(self._fits, sums, load, members))
        return counts[least] if least < len(counts) else self.gpus + 1

    def _fits(self, sums: Mapping[int, int], load: int, members: int, c: int) -> bool:
        """Whether c new links, ``load`` pairs on each, leave orbits whose mean distances do not exceed what the
        links carry: a mixture of two kinds of orbits, as the least sum is convex in the mean number of such pairs."""
        new = c * load * members  # in the mean, times the GPUs
        below = [(count, total) for count, total in sums.items() if count * self.gpus <= new]
        most = load * members
        return any(
            total <= most
            or any(
                (total - most) * (more - count) * self.gpus <= (total - less) * (new - count * self.gpus)
                for more, less in sums.items()
                if more * self.gpus > new
            )
            for count, total in below
        )


def _partners(instance: HarvestInstance, step: int) -> list[int]:
    """Where each GPU sends to: a permutation of all of them, with equal volumes."""
    rows = sorted(instance.demands[step].tolist())
    targets = [v for _, v, _ in rows]
    every = list(range(instance.gpus))
    if [u for u, _, _ in rows] != every or sorted(targets) != every or len({volume for *_, volume in rows}) != 1:
        raise ValueError(f"step {step} of a chain is no permutation of all GPUs with equal volumes")
    return targets


def _common_orbit(moved: Sequence[int]) -> int:
    """GPUs of an orbit of a permutation, all of one size."""
    sizes, left = set(), set(range(len(moved)))
    while left:
        at, size = min(left), 0
        while at in left:
            left.remove(at)
            at, size = moved[at], size + 1
        sizes.add(size)
    if len(sizes) != 1:
        raise ValueError("the first pattern of a chain has orbits of several sizes")
    return sizes.pop()


def _exponent(moved: Sequence[int], power: Sequence[int], size: int) -> int:
    """Which power of a permutation another is."""
    current = list(moved)
    for exponent in range(1, size):
        if current == list(power):
            return exponent
        current = [moved[v] for v in current]
    raise ValueError("a pattern of a chain is no power of the first")
