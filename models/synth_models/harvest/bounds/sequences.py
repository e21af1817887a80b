"""A lower bound on the completion time over every sequence of topologies (method ``bound``).

A schedule cuts the steps into intervals on one topology each, hence

    T >= min over partitions of  sum of LB(a..b) + least delays of the changes between the intervals,

where the least delay before a step is the reconfiguration delay less the step's overlap (where delays depend on what
changes: of one circuit and two ports, :func:`synth_models.harvest.parts.delays.least_change`) and
LB(a..b) bounds the cost of steps a..b on any one topology with at most ``ports`` links in and out of every GPU
(:mod:`synth_models.harvest.bounds.interval`; a step alone: alpha + hop_delay + bytes * volume at one GPU / (ports *
port_bandwidth), or what whole links leave of that, or a hop more; where a GPU has more partners than ports the fewest
hops that reach them, and the relaxation too). An
interval costs at least what its parts do, so an interval that was not examined inherits the best sum over disjoint
parts.
Intervals are examined on demand: where there are many patterns first all of two and three steps, which are quickly
bounded and say most; then those on the currently cheapest partition, until all of these are examined or most of the
time is used. First without ``rate`` rows, which take longest, then with them (two ports or more), and then with as many
rounds as they take. At last the intervals of the cheapest partition are divided by the hops of their patterns
(:mod:`synth_models.harvest.bounds.hop_cases`). With ``cases`` this comes before the ``rate`` rows of whole intervals,
or not at all. Where it tells steps of unequal bytes apart, or comes first, a search without it follows: the larger
bound counts. Sums are whole multiples of a small unit, rounded down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.harvest.bounds import chains, permutations
from synth_models.harvest.bounds.hop_cases import Division
from synth_models.harvest.bounds.interval import (
    FEW,
    MORE,
    QUICK,
    RATES,
    TREES,
    IntervalBound,
    Patterns,
    Relaxation,
    bytes_differ,
)
from synth_models.harvest.bounds.rate_prices import Bundle
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.delays import least_paid
from synth_models.harvest.parts.demands import direct_load, fewest_hops, most_partners, routed_load

PAIRS_UP_TO = 1_200_000  # pairs of all distinct patterns; beyond, steps are bounded one by one
STEPS_UP_TO = 1100
STEPS_TRIED = 64  # steps whose intervals are all tried on all topologies
USUAL_SECONDS = 60.0
SHARE = 0.8  # of the time limit; the certificate is verified in the rest
SAME = 1e-9  # bounds apart by this share differ only in what was rounded down
SHORT = 3  # all intervals of up to so many steps are examined first where there are many patterns
DIVISIONS = 6  # of the least case of an interval before the cheapest partition is sought again
RATE_ROWS, CASES = "rate rows", "cases"  # stages of a search, after the rows of trees
AT_ONCE = 4  # intervals examined before the cheapest partition is sought again
UNITS = 1 << 61  # units that an upper bound on T is divided into
FINEST = 992  # no unit is smaller than 2^-FINEST


def solve(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """The bound with its certificate: the examined intervals with multipliers, and the price bundles they use."""
    whole = options if options.time_limit_s is not None else options.part(most_s=USUAL_SECONDS)
    part = whole.part(SHARE)

    distinct = {pairs.tobytes(): len(pairs) for pairs in instance.demands}
    if sum(distinct.values()) > PAIRS_UP_TO or len(instance.steps) > STEPS_UP_TO:
        return single_steps(instance)
    if permutations.applies(instance) and len(instance.steps) <= STEPS_TRIED:
        found = _all_tried(instance)
        return _stronger(instance, found, whole.part(0.5).out_of_time) if instance.delay_varies else found
    first = single_steps(instance)
    assert first.bound is not None
    options.held.offer_bound(first.bound, str(first.bound_proof), first.certificate)
    searches, complete = _searched(instance, options, part)
    found = first
    if searches:
        found = max(searches, key=lambda one: one.ladder.total()).outcome(whole.part(0.5).out_of_time)
    if not complete:
        found.message = f"{found.message}; stopped by the limit, more time may prove more"
    return _stronger(instance, found, whole.part(0.5).out_of_time) if instance.delay_varies else found


def _all_tried(instance: HarvestInstance) -> Outcome:
    """The bound of the least time of every interval on all topologies, with its certificate."""
    ladder, tried = _Ladder(instance), permutations.intervals(instance)
    for (first, last), seconds in tried.items():
        ladder.proven[first, last] = max(ladder.proven[first, last], int(seconds // ladder.unit))
    ladder.close()
    total = ladder.total()
    bound = float(total)
    if Fraction(bound) > total:
        bound = float(np.nextafter(bound, 0.0))
    entries = [{"first": first, "last": last, "permutations": True} for first, last in tried]
    certificate = {"unit_exponent": _exponent(ladder.unit), "generators": [], "bundles": [], "intervals": entries}
    proof = "partition into intervals, each on the best of all topologies of one port"
    return Outcome("finished", bound=bound, bound_proof=proof, certificate=certificate)


def _searched(instance: HarvestInstance, options: RunOptions, part: RunOptions) -> tuple[list[_Search], bool]:
    """The searches of :func:`_searches` that there was time for, in this part of the run's time, and whether more time
    would prove no more; the run holds what the first has proven while the next goes on."""
    asked, searches = _searches(instance, options), list[_Search]()
    for by_bytes, stages in asked:
        with part.in_time():
            shared = Patterns(instance, by_bytes)
            search = _Search(instance, shared, _Ladder(instance), part.out_of_time, several=len(shared.pairs) > FEW)
            searches.append(search)
            search.complete = search.run(stages)
        if part.out_of_time():
            break
        if len(searches) < len(asked):
            held = searches[0].outcome(lambda: True)
            options.held.offer_bound(held.bound or 0.0, str(held.bound_proof), held.certificate)
    for search in searches:
        search.ladder.close()
    return searches, len(searches) == len(asked) and all(search.ended() for search in searches)


def _searches(instance: HarvestInstance, options: RunOptions) -> list[tuple[bool, Sequence[str]]]:
    """The searches that the options ask for: whether steps of unequal bytes have patterns of their own, and the stages
    (:meth:`_Search.run`)."""
    rates = options.method.get("rates", "on") == "on" and instance.ports > 1
    cases = options.method.get("cases", "auto") if rates else "off"
    if cases == "off":
        return [(False, [RATE_ROWS] if rates else [])]
    stages = [RATE_ROWS, CASES] if cases == "auto" else [CASES, RATE_ROWS]
    if bytes_differ(instance):
        return [(stage == CASES, [stage]) for stage in stages]
    return [(False, stages)] if cases == "auto" else [(False, stages), (False, [RATE_ROWS])]


def _stronger(instance: HarvestInstance, found: Outcome, out_of_time: Callable[[], bool]) -> Outcome:
    """The bound of chains (:mod:`synth_models.harvest.bounds.chains`) where it proves more than intervals do."""
    ladder = _Ladder(instance)
    chained = chains.solve(instance, ladder.unit, ladder.alone, out_of_time)
    assert found.bound is not None
    return chained if chained.bound is not None and chained.bound > found.bound * (1 + SAME) else found


def single_steps(instance: HarvestInstance) -> Outcome:
    """The bound of fewest hops and all ports of the busiest GPU for every step, with its certificate."""
    return _outcome(instance, _Ladder(instance), {}, None, "single steps: degree of the pattern and fewest hops")


def _least(instance: HarvestInstance, pairs: IntArray, seconds: Fraction) -> Fraction:
    """Hops and bytes of a step alone (``seconds`` a volume on one port): the fewest hops to all partners of a GPU, and
    the load of whole links; where that is one hop, the ports as whole links share them, or a hop more."""
    delay, hops = Fraction(instance.hop_delay), fewest_hops(pairs, instance.ports)
    shared = seconds * routed_load(pairs, instance.ports, instance.gpus)
    load = direct_load(pairs, instance.ports)
    return delay * hops + shared if load is None else min(delay + seconds * load, delay * 2 + shared)


@dataclass
class _Search:
    """Intervals examined so far (``known``) and the bounds of partitions that they give (``ladder``), until
    ``out_of_time``; ``several``: there are many patterns, so that intervals are examined with care; ``complete``: no
    interval is left to examine."""

    instance: HarvestInstance
    shared: Patterns
    ladder: _Ladder
    out_of_time: Callable[[], bool]
    several: bool
    known: dict[tuple[int, int], IntervalBound] = field(default_factory=dict)
    complete: bool = False

    def ended(self) -> bool:
        """Whether nothing is left to examine, and each interval of the cheapest partition was to its end."""
        last = [self.known[ends] for ends in self.ladder.partition() if ends in self.known]
        return self.complete and all(found.finished for found in last)

    def outcome(self, deadline_passed: Callable[[], bool]) -> Outcome:
        """What the search has proven, without the intervals that are not needed for it."""
        number = len(self.instance.steps) * (len(self.instance.steps) - 1) // 2 + sum(self.ladder.crowded)
        message = f"{len(self.known)} of {number} intervals examined"
        self.ladder.drop_idle(self.known, deadline_passed)
        return _outcome(self.instance, self.ladder, self.known, self.shared, message)

    def run(self, stages: Sequence[str]) -> bool:
        """Examine intervals: by trees, then by these stages in turn; False once time is up."""
        ladder, steps = self.ladder, len(self.instance.steps)
        short = [(a, a + more) for more in range(1, SHORT) for a in range(steps - more)] if self.several else []
        complete = self.examine(short, TREES)
        ladder.close()
        complete = complete and self.climb((QUICK, TREES) if self.several else (TREES,), short)
        for stage in stages:
            complete = complete and (self.divide() if stage == CASES else self.climb((RATES, MORE)))
        return complete

    def climb(self, effort: Sequence[int], examined: Sequence[tuple[int, int]] = ()) -> bool:
        """Examine intervals with more and more effort, those of the cheapest partition but for the ``examined``; False
        once time is up."""
        ladder = self.ladder
        for level in effort:
            done = set(examined)
            done.update(ends for ends, found in self.known.items() if level == MORE and found.finished)
            while todo := [ends for ends in ladder.partition() if ends not in done and ladder.examinable(*ends)]:
                now = sorted(todo, key=lambda ends: ends[0] - ends[1])[:AT_ONCE]
                if not self.examine(now, level):
                    return False
                done.update(now)
        return True

    def divide(self) -> bool:
        """Divide the intervals of the cheapest partition into cases, until none is left to divide; False once time is
        up."""
        divisions, done = dict[tuple[int, int], Division](), set[tuple[int, int]]()
        while todo := [ends for ends in self.ladder.partition() if ends not in done and self.ladder.examinable(*ends)]:
            if self.out_of_time():
                return False
            for ends in todo:
                begun = ends in divisions
                division = divisions.setdefault(ends, Division(self.shared, *ends))
                if not division.usable():
                    done.add(ends)
                    self.examine([ends], MORE)
                elif not division.go_on(DIVISIONS if begun else 0, self.out_of_time):
                    done.add(ends)
                found = division.bound()
                if found is not None and (ends not in self.known or found.seconds > self.known[ends].seconds):
                    self.known[ends] = found
                    self.ladder.examine(found)
        return True

    def examine(self, todo: Sequence[tuple[int, int]], level: int) -> bool:
        """Take in the bounds of intervals; False once time is up."""
        known = self.known
        for first, last in todo:
            if known and self.out_of_time():
                return False
            found = Relaxation(self.shared, first, last).solve(self.out_of_time, level)
            if (first, last) not in known or found.seconds > known[(first, last)].seconds:
                known[(first, last)] = found
                self.ladder.examine(found, close=last - first >= SHORT or not self.several)
        return True


class _Ladder:
    """Bounds of all intervals in whole units: ``lower[a, b]`` for steps a..b (both included)."""

    def __init__(self, instance: HarvestInstance) -> None:
        self.steps = len(instance.steps)
        self.crowded = [most_partners(pairs) > instance.ports for pairs in instance.demands]
        single = [
            Fraction(instance.alpha) + _least(instance, pairs, Fraction(float(m)) / Fraction(instance.port_bandwidth))
            for m, pairs in zip(instance.bytes_per_pair, instance.demands, strict=True)
        ]
        paid = least_paid(instance)
        self.unit = _unit(sum(single, Fraction(0)) * instance.gpus + sum(paid) + max(paid))
        self.change = [int(delay // self.unit) for delay in paid]  # before an interval that begins with the step
        self.proven = np.zeros((self.steps, self.steps), dtype=np.int64)
        self.alone = [int(seconds // self.unit) for seconds in single]
        self.proven[np.diag_indices(self.steps)] = self.alone
        sums = np.concatenate([[0], np.cumsum(self.proven.diagonal())])
        self.lower: IntArray = np.triu(sums[None, 1:] - sums[:-1, None])

    def examinable(self, first: int, last: int) -> bool:
        """Whether the relaxation can say more about steps first..last than their single bounds do."""
        return first < last or self.crowded[first]

    def examine(self, one: IntervalBound, close: bool = True) -> None:
        """Take the bound of an interval in; others take it over when ``close``, or in :meth:`close`."""
        units = min(int(one.seconds // self.unit), UNITS)
        self.proven[one.first, one.last] = max(self.proven[one.first, one.last], units)
        if close:
            self.close()

    def close(self) -> None:
        """lower[a, b] = best sum over disjoint parts of a..b; the last part begins at some c."""
        before = np.full((self.steps, self.steps + 1), -UNITS, dtype=np.int64)  # [a, c]: steps a..c-1
        np.fill_diagonal(before, 0)
        for b in range(self.steps):
            before[: b + 1, b + 1] = (before[: b + 1, : b + 1] + self.proven[: b + 1, b]).max(axis=1)
        self.lower = np.maximum(np.triu(before[:, 1:]), 0)

    def _sweep(self) -> tuple[list[int], list[int]]:
        best, begin = [0], [0]
        for end in range(self.steps):
            costs = [best[a] + self.change[a] + int(self.lower[a, end]) for a in range(end + 1)]
            start = min(range(end + 1), key=lambda a: costs[a])
            best.append(costs[start])
            begin.append(start)
        return best, begin

    def partition(self) -> list[tuple[int, int]]:
        """The intervals of the cheapest partition under the present bounds, first and last step of each."""
        begin, found, end = self._sweep()[1], [], self.steps
        while end > 0:
            found.append((begin[end], end - 1))
            end = begin[end]
        return found[::-1]

    def drop_idle(self, known: dict[tuple[int, int], IntervalBound], deadline_passed: Callable[[], bool]) -> None:
        """Remove intervals without which the total stays the same, the shortest first, half of them at once where
        that goes, until none is left or time is up."""
        total = self.total()
        groups = [sorted(known, key=lambda ends: ends[1] - ends[0])]
        while groups and not deadline_passed():
            group = groups.pop()
            before = [self.proven[ends] for ends in group]
            for first, last in group:
                self.proven[first, last] = self.alone[first] if first == last else 0
            self.close()
            if self.total() == total:
                for ends in group:
                    del known[ends]
                continue
            for ends, units in zip(group, before, strict=True):
                self.proven[ends] = units
            if len(group) > 1:
                half = len(group) // 2
                groups += [group[half:], group[:half]]
        self.close()

    def total(self) -> Fraction:
        return self._sweep()[0][-1] * self.unit


def _unit(upper: Fraction) -> Fraction:
    """A power of two of which fewer than UNITS make the upper bound."""
    if upper == 0:
        return Fraction(1)
    exponent = 0
    while upper * Fraction(2) ** exponent < UNITS // 8 and exponent < FINEST:
        exponent += 8
    while upper * Fraction(2) ** exponent >= UNITS // 4:
        exponent -= 1
    return Fraction(1, 2) ** exponent if exponent >= 0 else Fraction(2) ** -exponent


def _outcome(
    instance: HarvestInstance,
    ladder: _Ladder,
    known: dict[tuple[int, int], IntervalBound],
    shared: Patterns | None,
    message: str,
) -> Outcome:
    total = ladder.total()
    bound = float(total)
    if Fraction(bound) > total:
        bound = float(np.nextafter(bound, 0.0))
    certificate = {"unit_exponent": _exponent(ladder.unit)} | _examined(list(known.values()), shared)
    kinds = sorted({row.words["row"] for one in known.values() for row in one.used()})
    divided = any("rows" not in one.proof() for one in known.values())
    proof = "partition into intervals, each bounded by linear programming duality"
    proof += ", by cases of hops" if divided else ""
    proof += f" over rows {', '.join(kinds)}" if kinds else " (single steps only)"
    return Outcome("finished", bound=bound, bound_proof=proof, certificate=certificate, message=message)


def _examined(examined: list[IntervalBound], shared: Patterns | None) -> dict[str, Any]:
    """Parts of the certificate: the intervals, the price bundles that they use, and the renumberings of GPUs."""
    used = sorted({row.words["bundle"] for one in examined for row in one.used() if "bundle" in row.words})
    number = {old: new for new, old in enumerate(used)}
    intervals = [one.as_certificate() for one in examined]
    parts = list(intervals)
    while parts:
        part = parts.pop()
        parts += [part[word] for word in ("within", "beyond") if word in part]
        for row in part.get("rows", []):
            if "bundle" in row:
                row["bundle"] = number[row["bundle"]]
    return _priced([shared.prices.pool[old] for old in used] if shared else []) | {
        **({"by_bytes": 1} if shared and shared.by_bytes else {}),
        "generators": [moved.tolist() for moved in shared.group] if shared else [],
        "intervals": intervals,
    }


def _priced(bundles: list[Bundle]) -> dict[str, Any]:
    """The bundles, with what those over blocks of GPUs share: which orbits have one price."""
    columns: dict[bytes, list[int]] = {}
    for bundle in bundles:
        if bundle.columns is not None:
            columns.setdefault(bundle.columns.tobytes(), bundle.columns.tolist())
    at = {key: place for place, key in enumerate(columns)}
    stated = [one.as_certificate(None if one.columns is None else at[one.columns.tobytes()]) for one in bundles]
    return ({"columns": list(columns.values())} if columns else {}) | {"bundles": stated}


def _exponent(unit: Fraction) -> int:
    """e of unit = 2^-e."""
    return unit.denominator.bit_length() - 1 if unit.denominator > 1 else 1 - unit.numerator.bit_length()
