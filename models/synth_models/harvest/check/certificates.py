"""Verify a lower bound on the completion time from its certificate, in exact arithmetic; imports no method.

For every examined interval the rows are derived again (:mod:`synth_models.harvest.check.certificate_rows`), the
multipliers must be finite, not negative, and leave no variable a negative reduced cost; what they prove is a rational
number. An interval may be divided into cases by the hops of its patterns; the least of them counts. It is rounded down
to whole units, intervals that were not examined get the best sum over disjoint parts (single
steps are bounded by themselves if not examined), and the cheapest partition into intervals with its reconfigurations
must reach the stated bound. With ``chains`` it is another sum (:mod:`synth_models.harvest.check.chains`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.text import untrusted
from synth_models.harvest.check.certificate_rows import Facts, RowReader, whole_links_load, whole_routes_load
from synth_models.harvest.check.chains import chain_units
from synth_models.harvest.check.changes import least_paid
from synth_models.harvest.check.permutations import Permutations
from synth_models.harvest.instance import HarvestInstance

LARGEST_EXPONENT = 1000
DEEPEST = 200  # divisions of a case
LARGEST_WORD = 1 << 62  # the sum of two such fits into a machine word


def check_bound(instance: HarvestInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """The faults of a bound in seconds; none when the certificate proves it."""
    try:
        proven = _proven(instance, certificate)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        return [f"the certificate is broken: {error}"]
    try:
        stated = untrusted.number({"bound": bound}, "bound")
    except ValueError as error:
        return [str(error)]
    if Fraction(stated) > proven:
        return [f"the certificate proves {float(proven):.17g} s, not {stated:.17g} s"]
    return []


def _proven(instance: HarvestInstance, certificate: Mapping[str, Any]) -> Fraction:
    exponent = untrusted.whole(certificate, "unit_exponent", -LARGEST_EXPONENT, LARGEST_EXPONENT)
    unit = Fraction(2) ** -exponent
    steps = len(instance.steps)
    least = np.zeros((steps, steps), dtype=object)
    for step in range(steps):
        least[step, step] = _alone(instance, step) // unit
    intervals = untrusted.objects(certificate, "intervals")
    if "chains" in certificate:
        return _with_chains(instance, unit, [int(units) for units in least.diagonal()], certificate) * unit
    if not intervals:  # only sums of single steps, and one topology for all is the cheapest partition
        return Fraction(int(sum(least.diagonal()))) * unit
    facts, tried = Facts(instance, certificate), _Tried(instance)
    for entry in intervals:
        first = untrusted.whole(entry, "first", 0, steps - 1)
        last = untrusted.whole(entry, "last", first, steps - 1)
        interval = _Interval(instance, facts, first, last)
        proven = tried.least(entry, first, last) if "permutations" in entry else interval.proven(entry, {}, 0)
        least[first, last] = least[first, last] if proven is None else max(least[first, last], proven // unit)
    least = _with_parts(least)
    change = [0, *(least_paid(instance, step) // unit for step in range(1, steps))]  # the first topology is free
    best = [0]
    for end in range(steps):
        best.append(min(best[a] + change[a] + int(least[a, end]) for a in range(end + 1)))
    return Fraction(int(best[-1])) * unit


class _Tried:
    """All topologies, made when the first entry asks for them."""

    def __init__(self, instance: HarvestInstance) -> None:
        self.instance = instance
        self.every: Permutations | None = None

    def least(self, entry: Mapping[str, Any], first: int, last: int) -> Fraction:
        """Seconds of steps first..last on the best of them. Raises ``ValueError``."""
        if entry["permutations"] is not True:
            raise ValueError("permutations: must be true")
        self.every = self.every or Permutations(self.instance)
        return self.every.least(first, last)


def _with_chains(
    instance: HarvestInstance, unit: Fraction, alone: list[int], certificate: Mapping[str, Any]
) -> Fraction:
    """Units of disjoint chains of steps and of each other step alone, whatever precedes and follows them."""
    if untrusted.objects(certificate, "intervals"):
        raise ValueError("a certificate with chains has no intervals")
    total, done = 0, -1
    for entry in untrusted.objects(certificate, "chains"):
        first, last, units = chain_units(instance, unit, entry)
        if first <= done:
            raise ValueError("chains overlap or are not in the order of the steps")
        total += units + sum(alone[done + 1 : first])
        done = last
    return Fraction(total + sum(alone[done + 1 :]))


def _with_parts(least: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """At [a, b] the best sum over disjoint parts of a..b: whole numbers without limit, as machine words where all of
    them are small enough to be added."""
    steps = len(least)
    if all(abs(units) < LARGEST_WORD for units in least.flat):
        least = least.astype(np.int64)
    for size in range(1, steps):
        for a in range(steps - size):
            b = a + size
            least[a, b] = max(least[a, b], (least[a, a:b] + least[a + 1 : b + 1, b]).max())
        if least.dtype != object and least.diagonal(size).max() >= LARGEST_WORD:
            least = least.astype(object)
    return least


def _alone(instance: HarvestInstance, step: int) -> Fraction:
    """A step on the best topology for it: the fewest hops to all partners of a GPU, and the least load of whole links;
    where that is one hop, the ports shared in whole links, or a hop more."""
    rows = instance.demands[step]
    partners = max(int(np.bincount(rows[:, side]).max()) for side in (0, 1))
    hops = _fewest_hops(partners, instance.ports)
    seconds = Fraction(float(instance.bytes_per_pair[step])) / Fraction(instance.port_bandwidth)
    alpha, delay = Fraction(instance.alpha), Fraction(instance.hop_delay)
    shared = seconds * whole_routes_load(rows.tolist(), instance.ports, instance.gpus)
    if partners > instance.ports:
        return alpha + delay * hops + shared
    return alpha + min(delay + seconds * whole_links_load(rows.tolist(), instance.ports), delay * 2 + shared)


def _fewest_hops(partners: int, ports: int) -> int:
    """A GPU reaches, and is reached from, ports + ports^2 + … + ports^h others within h hops (Moore)."""
    hops, reached = 1, ports
    while reached < partners:
        hops += 1
        reached += ports**hops
    return hops


class _Interval:
    """What rows and cases prove for steps first..last on one topology."""

    def __init__(self, instance: HarvestInstance, facts: Facts, first: int, last: int) -> None:
        self.instance, self.facts, self.first, self.last = instance, facts, first, last
        self.patterns = sorted(set(facts.of_step[first : last + 1]))

    def proven(
        self, entry: Mapping[str, Any], hops: Mapping[int, tuple[int, int | None]], depth: int
    ) -> Fraction | None:
        """Seconds, at least, when the routes of some patterns have so many ``hops`` (least and most); None where that
        is impossible. The entry has rows, or is divided by the hops of one pattern: up to a number, and beyond."""
        if depth > DEEPEST:
            raise ValueError(f"cases are divided {DEEPEST} times at most")
        if "pattern" in entry:
            pattern = untrusted.whole(entry, "pattern")
            low, high = hops.get(pattern, (self._fewest(pattern), None))
            within = untrusted.whole(entry, "hops", low, self.facts.gpus - 1 if high is None else high - 1)
            below = self.proven(entry["within"], {**hops, pattern: (low, within)}, depth + 1)
            above = self.proven(entry["beyond"], {**hops, pattern: (within + 1, high)}, depth + 1)
            return min((one for one in (below, above) if one is not None), default=None)
        if "crowded" in entry:
            if not self._crowded({k: most for k, (_, most) in hops.items() if most is not None}):
                raise ValueError("a case called crowded fits into the ports")
            return None
        return self._by_rows(untrusted.objects(entry, "rows"), hops)

    def _fewest(self, pattern: int) -> int:
        """Hops of a pattern, at least; only patterns of steps with equal bytes have one and the same routes."""
        steps = [step for step in range(self.first, self.last + 1) if self.facts.of_step[step] == pattern]
        if len({self.facts.bytes_of_step[step] for step in steps}) != 1:
            raise ValueError(f"steps of pattern {pattern} are not in the interval, or differ in bytes and so in routes")
        return _fewest_hops(self.facts.partners[pattern], self.facts.ports)

    def _crowded(self, limits: Mapping[int, int]) -> bool:
        """Whether a GPU sends to, or receives from, more others within some hops than there can be so near."""
        for most in set(limits.values()):
            pairs = set().union(*(self.facts.patterns[k] for k, limit in limits.items() if limit <= most))
            near = max(max(Counter(pair[side] for pair in pairs).values()) for side in (0, 1))
            if _fewest_hops(near, self.facts.ports) > most:
                return True
        return False

    def _by_rows(self, rows: Any, hops: Mapping[int, tuple[int, int | None]]) -> Fraction:
        """What the multipliers of the rows prove."""
        facts, limits = self.facts, {k: most for k, (_, most) in hops.items() if most is not None}
        left: dict[tuple[str, int], Fraction] = {}
        least: dict[tuple[str, int], Fraction] = {}
        for step in range(self.first, self.last + 1):
            k = facts.of_step[step]
            seconds = Fraction(float(self.instance.bytes_per_pair[step])) / Fraction(self.instance.port_bandwidth)
            left[("L", k)] = left.get(("L", k), Fraction(0)) + Fraction(self.instance.hop_delay)
            left[("u", k)] = left.get(("u", k), Fraction(0)) + seconds
        for k in self.patterns:
            fewest = _fewest_hops(facts.partners[k], facts.ports)
            least[("L", k)] = Fraction(hops[k][0] if k in hops else fewest)
            least[("u", k)] = facts.least_load[k]
            if limits.get(k) == 1:  # every pair on links of its own
                listed = [(u, v, volume) for (u, v), volume in facts.patterns[k].items()]
                least[("u", k)] = whole_links_load(listed, facts.ports)
            for orbit in facts.sizes[k]:
                left[("a", orbit)], least[("a", orbit)] = Fraction(0), Fraction(1)
        proven = (self.last - self.first + 1) * Fraction(self.instance.alpha)
        reader = RowReader(facts, self.first, self.last, limits)
        for entry in rows:
            exact = Fraction(untrusted.number(entry, "multiplier", 0.0))
            terms, right = reader.read(entry)
            proven += exact * right
            for variable, coefficient in terms.items():
                left[variable] -= exact * coefficient
        for variable, rest in left.items():
            if rest < 0:
                where = f"steps {self.first}..{self.last}"
                raise ValueError(f"{where}: the multipliers take more of {variable} than it costs")
            proven += rest * least[variable]
        return proven
