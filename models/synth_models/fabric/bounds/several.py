"""Lower bounds of several collectives on one machine.

**Alone.** Each collective ends no earlier than the moment at which the first of its ranks is ready and the strongest
bound that it has alone, its other ranks ready as much later as is known (:mod:`synth_models.fabric.bounds.after`).

**Joint prices.** A byte of every collective pays at least some sum of prices on links: the distance from rank to rank,
a spanning tree of the members for what all of them get or contribute to, two for an allreduce
(:mod:`synth_models.fabric.bounds.concurrent_flow`, :mod:`synth_models.fabric.bounds.gossip`). At common prices these
add up, and the links can be paid from when something of those looked at can be there, and until what follows among them
has still time to end. The prices are found by cutting planes (:mod:`synth_models.fabric.bounds.link_prices`) for all
collectives, and for those that are released last; what they prove is computed for many sets of collectives.

**The objective.** The last end is bounded by the greatest of these. For weighted ends the last to end of every set
obeys the set's bound, whatever the order of ends: the best order counts, found over all sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.graph.shortest_paths import UNREACHABLE
from synth.options import RunOptions
from synth.text.quantities import SECONDS, shown
from synth_models.fabric.bounds.after import Followers, Moments, base, least_moments
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.colours import Colours
from synth_models.fabric.bounds.concurrent_flow import Demands
from synth_models.fabric.bounds.gossip import counts_each, only_members, pays_its_way, spanning
from synth_models.fabric.bounds.link_prices import improved, resources_of, time_to_pay
from synth_models.fabric.bounds.paths import distances, later
from synth_models.fabric.bounds.proven import NOTHING, Proven
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.problem.several import WEIGHTED_ENDS, OneCollective, behind, links_in, objective_of

ALONE = 0.4  # of the time, for what each has alone
EACH = 0.5  # of what is left, for the prices of a set of collectives
FEW = 5  # collectives up to which all sets of them are looked at
MOST_ORDERED = 12  # collectives whose orders of ends are looked at
MOST_MEMBERS = 512  # of a collective that is priced together with others
LATEST = 2**60  # ticks
UNLIMITED_S = 600.0

Alone = Callable[[FabricInstance, RunOptions], Proven]
Set = frozenset[int]


@dataclass(frozen=True, eq=False)
class Payer:
    """One of the collectives, as prices see it. ``number``: its place among them. ``place``: its links in the whole
    machine. ``ready``: seconds at which each rank has its own part, at the earliest."""

    number: int
    part: FabricInstance
    one: OneCollective
    links: Links
    place: IntArray
    whole: Links
    ready: Moments

    @property
    def release(self) -> Fraction:
        """The first of these moments."""
        return base(self.ready)

    @cached_property
    def trees(self) -> int:
        """Spanning trees that a byte pays; 0 for blocks from rank to rank, and where transfers do not pay alone."""
        blocks = self.part.blocks
        wide = int(np.any(blocks.origin == EVERYONE)) + int(np.any(blocks.goal == EVERYONE))
        return wide if pays_its_way(self.links) and only_members(self.links) else 0

    @cached_property
    def is_pairs(self) -> bool:
        """Whether all blocks go from rank to rank."""
        return not np.any((self.part.blocks.origin < 0) | (self.part.blocks.goal < 0))

    @cached_property
    def demands(self) -> Demands:
        """The blocks from rank to rank, by origin."""
        origins = sorted(set(self.part.blocks.origin.tolist()))
        return Demands(self.links, {u: distances(self.links, self.links.delay, [u]) for u in origins}, 0)

    def windows(self, tail: IntArray | None = None) -> tuple[IntArray, IntArray]:
        """For every link of the whole machine the ticks before the collective can be there, and until it has come to a
        goal and what follows there has ended (``tail``); :data:`UNREACHABLE` for links that it may not use."""
        blocks, delay = self.part.blocks, self.whole.delay[self.place]
        sources, sinks = (
            sorted({u for code in np.unique(ends).tolist() for u in blocks.ranks(code, self.part.members)})
            for ends in (blocks.origin, blocks.goal)
        )
        first = {rank: min(int(self.ready[rank] * self.whole.ticks), LATEST) for rank in sources}
        last = dict.fromkeys(sinks, 0) if tail is None else {rank: int(tail[rank]) for rank in sinks}
        begin = later(self.links, delay, first)[self.links.src]
        left = later(self.links.reverse, delay, last)[self.links.dst]
        found = np.full((2, self.whole.links), UNREACHABLE, dtype=np.int64)
        found[0, self.place] = begin
        found[1, self.place] = np.where(left < UNREACHABLE, left + delay, UNREACHABLE)
        return found[0], found[1]

    def paid(self, length: IntArray) -> tuple[list[float], list[FloatArray]]:
        """What parts of it pay at whole prices of the whole machine's links, and the bytes that each part has on
        them."""
        own = length[self.place]
        if self.is_pairs:
            values, loads = self.demands.worth(own, list(self.demands.wanted))
            return [float(value) for value in values], [self._spread(load) for load in loads]
        value, load = spanning(self.links, own)
        amount = self.trees * sum(self.part.blocks.bytes.tolist())
        return [float(amount) * value], [amount * self._spread(load)]

    def _spread(self, load: Any) -> FloatArray:
        found = np.zeros(self.whole.links)
        found[self.place] = load
        return found

    def exactly(self, length: IntArray) -> int:
        """The most that is known to be paid at these prices, exactly; of each block the greatest distance, or trees."""
        own, blocks = length[self.place], self.part.blocks
        if self.is_pairs:
            return sum(self.demands.worth(own, list(self.demands.wanted))[0])
        members = list(self.part.members)
        far = np.array([distances(self.links, own, [u])[members] for u in members])
        tree = int(spanning(self.links, own)[0]) if self.trees else 0
        place = {rank: k for k, rank in enumerate(members)}
        total = 0
        rows = zip(
            blocks.origin.tolist(), blocks.goal.tolist(), blocks.sums.tolist(), blocks.bytes.tolist(), strict=True
        )
        for origin, goal, adds, size in rows:
            ends = ([place[rank] for rank in blocks.ranks(code, members)] for code in (origin, goal))
            costs = far[np.ix_(*ends)]
            most = int((costs.max(axis=0) if adds else costs.min(axis=0)).max())
            total += size * max(most, tree * ((origin == EVERYONE) + (goal == EVERYONE)))
        return total


def strongest_of_several(instance: FabricInstance, options: RunOptions, alone: Alone) -> Proven:
    """The strongest bound that is found within the time limit; ``alone`` bounds one collective."""
    collectives = instance.collectives
    assert collectives is not None
    ready = least_moments(instance)
    known, rows = _each_alone(instance, ready, options, alone)
    whole = Links.of(instance)
    payers = [
        Payer(number, part, one, Links.of(part), links_in(instance.machine, part.machine), whole, moments)
        for number, (part, one, moments) in enumerate(zip(instance.parts, collectives, ready, strict=True))
    ]
    joint, follow = list[dict[str, Any]](), Followers(instance)
    best = _put_together(instance, collectives, known, rows, joint)
    options.held.offer_bound(float_below(best.seconds), str(best), best.certificate())
    if any(len(part.members) > MOST_MEMBERS for part in instance.parts):
        return best
    for length in _lengths(payers, rows, options):
        if options.out_of_time():
            break
        gained = _gained(follow, payers, length, known, list(_sets(collectives)))
        if gained:
            known |= gained
            named = [sorted(chosen) for chosen in gained]
            bounds = [float_below(seconds) for seconds in gained.values()]
            joint.append({"length": length.tolist(), "of": named, "bounds": bounds})
            best = _put_together(instance, collectives, known, rows, joint)
            options.held.offer_bound(float_below(best.seconds), str(best), best.certificate())
    return best


def _each_alone(
    instance: FabricInstance, ready: Sequence[Moments], options: RunOptions, alone: Alone
) -> tuple[dict[Set, Fraction], list[dict[str, Any]]]:
    """The least end of every collective by its own bound, and the certificates."""
    known: dict[Set, Fraction] = {}
    rows: list[dict[str, Any]] = []
    for number, (part, moments) in enumerate(zip(instance.parts, ready, strict=True)):
        share = ALONE / max(1.0, (len(ready) - number) * ALONE)
        first = base(moments)
        proven = alone(behind(part, first, moments), options.part(share, most_s=UNLIMITED_S))
        bound = float_below(proven.seconds)
        known[frozenset([number])] = first + Fraction(bound)
        rows.append({"of": number, "bound": bound, "certificate": dict(proven.certificate())})
    return known, rows


def _sets(collectives: Sequence[OneCollective]) -> Iterator[Set]:
    """The sets of collectives whose joint bound is computed: all of a few; of many those that are released last, each
    but one, and all that are wanted most."""
    count = len(collectives)
    if count <= FEW:
        for size in range(1, count + 1):
            yield from map(frozenset, combinations(range(count), size))
        return
    found = {frozenset([i]) for i in range(count)}
    by_release = sorted(range(count), key=lambda i: -collectives[i].release)
    by_weight = sorted(range(count), key=lambda i: -collectives[i].priority / collectives[i].bytes)
    for order in (by_release, by_weight, by_weight[::-1]):
        found |= {frozenset(order[:k]) for k in range(1, count + 1)}
    yield from sorted(found, key=sorted)


def _lengths(payers: Sequence[Payer], rows: Sequence[Mapping[str, Any]], options: RunOptions) -> Iterator[IntArray]:
    """Prices to try: what proves each collective's own bound, then the best of those that are released late."""
    for payer, row in zip(payers, rows, strict=True):
        own = _length_of(payer.links, row["certificate"])
        if own is not None and own.any():
            length = np.zeros(payer.whole.links, dtype=np.int64)
            length[payer.place] = own
            yield length
    latest = sorted({payer.release for payer in payers})
    for release in latest[:FEW]:
        chosen = [payer for payer in payers if payer.release >= release]
        fits = all(payer.is_pairs or payer.trees for payer in chosen)
        if not fits or len(chosen) < 2:
            continue
        part, found = options.part(EACH, most_s=UNLIMITED_S), list[IntArray]()
        with part.in_time():
            _look_for_best(chosen, part, found)
        yield from reversed(found)


def _length_of(links: Links, certificate: Mapping[str, Any]) -> IntArray | None:
    """The prices that a certificate of one collective stands for."""
    if certificate.get("argument") in ("prices", "gossip"):
        return np.array(certificate["length"], dtype=np.int64)
    if certificate.get("argument") == "partition":
        part = np.array(certificate["part"], dtype=np.int64)
        return np.not_equal(part[links.src], part[links.dst]).astype(np.int64)
    if certificate.get("argument") == "cut":
        inside = np.isin(np.arange(links.nodes), certificate["inside"])
        return np.logical_and(inside[links.src], ~inside[links.dst]).astype(np.int64)
    return None


def _look_for_best(payers: Sequence[Payer], options: RunOptions, found: list[IntArray]) -> None:
    """Append prices at which these collectives prove more and more together, until the time is over."""
    resources = _resources(payers, {})

    def worth(lengths: list[IntArray]) -> tuple[FloatArray, list[FloatArray]]:
        values, loads = zip(*(payer.paid(lengths[0]) for payer in payers), strict=True)
        return np.array([v for row in values for v in row]), [np.stack([load for row in loads for load in row])]

    def exactly(lengths: list[IntArray]) -> int:
        return sum(payer.exactly(lengths[0]) for payer in payers)

    def made(lengths: list[IntArray], seconds: Fraction) -> Proven:
        found.append(lengths[0])
        return Proven(seconds, "several", lambda: "", dict)

    improved([resources], worth, exactly, made, lambda: not options.out_of_time(), NOTHING)


def _resources(payers: Sequence[Payer], tail: Mapping[int, IntArray]) -> Any:
    """The links, from the moment on at which something of these collectives can be there, until that is too late."""
    whole = payers[0].whole
    windows = [payer.windows(tail.get(payer.number)) for payer in payers]
    begin, left = (np.minimum.reduce([window[k] for window in windows]) for k in (0, 1))
    every = Colours(np.arange(whole.nodes), np.arange(whole.links), whole.members, np.ones_like(whole.members))
    return resources_of(whole, every, begin, left, each=counts_each(whole))


def _gained(
    follow: Followers,
    payers: Sequence[Payer],
    length: IntArray,
    known: Mapping[Set, Fraction],
    sets: Sequence[Set],
) -> dict[Set, Fraction]:
    """What these prices prove beyond what is known, by set of collectives."""
    paid = [payer.exactly(length) for payer in payers]
    gained: dict[Set, Fraction] = {}
    for chosen in sets:
        needed = sum(paid[number] for number in chosen)
        if needed:
            try:
                resources = _resources([payers[i] for i in sorted(chosen) if paid[i]], follow.tails(chosen))
                seconds = time_to_pay([resources], [length], needed)
            except ValueError:
                continue
            if seconds > max((bound for other, bound in known.items() if other <= chosen), default=Fraction(0)):
                gained[chosen] = Fraction(float_below(seconds))
    return gained


def _put_together(
    instance: FabricInstance,
    collectives: Sequence[OneCollective],
    known: Mapping[Set, Fraction],
    rows: Sequence[Mapping[str, Any]],
    joint: Sequence[Mapping[str, Any]],
) -> Proven:
    """The bound of the objective, with all certificates."""
    certificate = {"argument": "several", "alone": list(rows), "joint": list(joint)}
    seconds = _weighted(collectives, known) if instance.objective == WEIGHTED_ENDS else max(known.values())
    own = ", ".join(shown(float(known[frozenset([i])]), SECONDS) for i in range(min(len(collectives), FEW)))
    words = f"their own ends are at least {own}; together by {len(joint)} price vectors"
    return Proven(seconds, "several", lambda: words, lambda: certificate)


def _weighted(collectives: Sequence[OneCollective], known: Mapping[Set, Fraction]) -> Fraction:
    """The least weighted mean of ends over all orders of ends."""
    if len(collectives) > MOST_ORDERED:
        ends = [known[frozenset([i])] for i in range(len(collectives))]
        return objective_of(ends, collectives, WEIGHTED_ENDS)
    bounds = [(sum(1 << i for i in chosen), seconds) for chosen, seconds in known.items()]

    @cache
    def of(ended: int) -> Fraction:
        """Weighted ends of those in ``ended``, which are the first to end."""
        if not ended:
            return Fraction(0)
        now = max(seconds for mask, seconds in bounds if not mask & ~ended)
        last = [i for i in range(len(collectives)) if ended >> i & 1]
        return min(of(ended & ~(1 << i)) + collectives[i].priority * now for i in last)

    return of((1 << len(collectives)) - 1) / sum(one.priority for one in collectives)
