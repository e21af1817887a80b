"""The argument ``several``: bounds on when every one of some collectives has ended, put together to the objective.

``alone``: rows (``of`` a collective, a ``bound`` in seconds, the ``certificate`` that proves it for this collective
alone). It ends no earlier than its release and that bound.

``joint``: rows of one ``length`` (price of a byte on every link), of sets of collectives (``of``) and a bound for each
(``bounds``): the last of the set ends no earlier. Until then the links carry what those of the set pay that pay at all,
and nothing before something of these can be there, each rank's part when that is ready at the earliest, nor when too
little time is left for what follows in the set: of one that comes after it a rank still has to send all that only it
has, or contributes, to whoever wants it. A byte pays

* from a rank to a rank the shortest distance;
* to all (as a sum: from all) the greatest distance between two ranks that it joins, and, where every transfer pays its
  own way, the minimum spanning tree of the members under the lesser of the distances there and back;
* of an allreduce two such trees (one-way gossip, as in :mod:`synth_models.fabric.check.arguments`).

Each distance is over links that the collective may use. For the last end the greatest bound counts. For weighted ends
some order of ends is the right one: the k-th end comes no earlier than the bound of any set among the first k.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.text import untrusted
from synth_models.fabric.check.arguments import along_paths, joined_nodes, spanning_tree, transfers_pay_alone
from synth_models.fabric.check.windows import HIGHEST_PRICE, UNREACHABLE, Fabric, capacity_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.several import WEIGHTED_ENDS, OneCollective, behind, links_in

MOST_ORDERED = 12  # collectives whose orders of ends are looked at; of more, only each one's own bound counts
MOST_ROWS, MOST_SETS = 1000, 10_000
LATEST = 2**59  # ticks
MOST_MEMBERS = 2048  # of a collective whose ranks' distances are found

CheckBound = Callable[[FabricInstance, float, Mapping[str, Any]], list[str]]


def several_bound(instance: FabricInstance, certificate: Mapping[str, Any], check_bound: CheckBound) -> Fraction:
    """The objective's bound that the certificate proves, in seconds. Raises ``ValueError`` where a part of it proves
    nothing. ``check_bound`` verifies the bound of one collective."""
    collectives = instance.collectives
    if collectives is None:
        raise ValueError("there is one collective only")
    known: dict[int, Fraction] = {}
    ready = _moments(instance, collectives)
    for row in _rows(certificate, "alone"):
        number = untrusted.whole(row, "of", 0, len(collectives) - 1)
        stated = untrusted.number(row, "bound", 0.0)
        first = min(ready[number].values(), default=Fraction(0))
        faults = check_bound(behind(instance.parts[number], first, ready[number]), stated, row["certificate"])
        if faults:
            raise ValueError(f"of collective {number}: {faults[0]}")
        _learn(known, 1 << number, first + Fraction(stated))
    follow = _Followers(instance, collectives)
    for row in _rows(certificate, "joint"):
        for mask, bound in _joint(instance, ready, follow, row):
            _learn(known, mask, bound)
    if instance.objective == WEIGHTED_ENDS:
        return _weighted(known, collectives)
    return max(known.values(), default=Fraction(0))


def _moments(instance: FabricInstance, collectives: Sequence[OneCollective]) -> list[dict[int, Fraction]]:
    """The moment at which each rank of every collective has its own part, at the earliest. Where it comes after others,
    none before all that the rank wants of them can have come: from every source after the least latency, and all of it
    behind the first that can come, at the rate of all links into the rank."""
    found: dict[int, dict[int, Fraction]] = {}
    ends: dict[int, dict[int, Fraction]] = {}
    while len(found) < len(collectives):
        number = next(k for k, one in enumerate(collectives) if k not in found and set(one.after or ()) <= set(found))
        one, fabric = collectives[number], Fabric(instance.parts[number])
        late = {rank: exact(seconds) for rank, seconds in one.ready or ()}
        found[number] = {}
        for rank in fabric.members.tolist():
            before = [ends[k].get(rank, Fraction(0)) for k in one.after or ()]
            found[number][rank] = max([exact(one.release), late.get(rank, Fraction(0)), *before])
        if any(number in (other.after or ()) for other in collectives):
            ends[number] = _ends(fabric, found[number])
    return [found[number] for number in range(len(collectives))]


def _ends(fabric: Fabric, ready: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """When each rank can have all that it wants of one collective."""
    blocks, bandwidth = fabric.instance.blocks, fabric.instance.machine.network.bandwidth
    away = {u: fabric.reach(fabric.mask([u]), fabric.delay) for u in ready}
    found: dict[int, Fraction] = {}
    everyone, sums = tuple(ready), blocks.sums
    origins, origin = np.unique(blocks.origin, return_inverse=True)
    goals, goal = np.unique(blocks.goal, return_inverse=True)
    holds, wants = (blocks.masks(codes, everyone, fabric.nodes) for codes in (origins, goals))
    for rank in ready:
        wanted = wants[goal.reshape(-1), rank] & (sums | ~holds[origin.reshape(-1), rank])
        times: list[Fraction] = []
        adds = False
        for k, is_sum in np.unique(np.stack([origin.reshape(-1), sums])[:, wanted], axis=1).T.tolist():
            come = [
                ready[u] + Fraction(int(away[u][rank]), fabric.ticks_per_s)
                for u in blocks.ranks(int(origins[k]), everyone)
                if u != rank and away[u][rank] < UNREACHABLE
            ]
            times += come if is_sum else [min(come)] if come else []
            adds |= bool(is_sum and holds[k, rank])
        if not times:
            continue
        rate = sum((exact(float(value)) for value in bandwidth[fabric.head == rank]), Fraction(0))
        volume = untrusted.exact_sum(blocks.bytes[wanted])
        found[rank] = max(max(times), min(times) + volume / rate, ready[rank] if adds else Fraction(0))
    return found


def _rows(certificate: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    rows = certificate.get(key, ())
    if not isinstance(rows, (list, tuple)) or len(rows) > MOST_ROWS or not all(isinstance(r, Mapping) for r in rows):
        raise ValueError(f"{key} is no list of at most {MOST_ROWS} tables")
    return rows


def _learn(known: dict[int, Fraction], mask: int, bound: Fraction) -> None:
    known[mask] = max(bound, known.get(mask, Fraction(0)))


def _joint(
    instance: FabricInstance, ready: Sequence[Mapping[int, Fraction]], follow: _Followers, row: Mapping[str, Any]
) -> list[tuple[int, Fraction]]:
    """The sets of a row of ``joint`` as bits, and the bounds that are proven."""
    whole = follow.whole
    length = untrusted.whole_numbers(row, "length", 0, HIGHEST_PRICE, (len(whole.tail),))
    sets, bounds = row["of"], row["bounds"]
    if not isinstance(sets, (list, tuple)) or not 0 < len(sets) <= MOST_SETS or len(bounds) != len(sets):
        raise ValueError(f"there are not 1..{MOST_SETS} sets with a bound each")
    paid: dict[int, tuple[int, IntArray]] = {}
    found = []
    for position, entry in enumerate(sets):
        chosen = _chosen(entry, len(ready))
        for number in set(chosen) - set(paid):
            paid[number] = _pays(whole, instance.parts[number], length, ready[number])
        paying, tail = [number for number in chosen if paid[number][0]] or chosen, follow.tails(frozenset(chosen))
        begin = np.minimum.reduce([paid[number][1] for number in paying])
        left = np.minimum.reduce([_left(whole, instance.parts[number], tail[number]) for number in paying])
        capacity, _ = capacity_of(whole, length, begin, left, along_paths(instance))
        bound = Fraction(untrusted.number({"bound": bounds[position]}, "bound", 0.0))
        needed = sum(paid[number][0] for number in chosen)
        if needed <= 0 or capacity.until(bound) > needed:
            raise ValueError(f"the prices prove no {float(bound):.17g} s for the collectives {chosen}")
        found.append((sum(1 << number for number in chosen), bound))
    return found


def _chosen(entry: Any, count: int) -> list[int]:
    """The collectives of a set."""
    found: list[int] = untrusted.whole_numbers({"of": entry}, "of", 0, count - 1).tolist()
    if not found or len(set(found)) < len(found):
        raise ValueError("a set is empty or names a collective twice")
    return found


def _pays(whole: Fabric, part: FabricInstance, length: IntArray, ready: Mapping[int, Fraction]) -> tuple[int, IntArray]:
    """What a collective pays, and for every link of the whole machine the ticks before something of it can be there,
    from moment 0 on; :data:`UNREACHABLE` for links that it may not use."""
    own, place = Fabric(part), links_in(whole.instance.machine, part.machine)
    members, blocks = own.members, part.blocks
    if len(members) > MOST_MEMBERS:
        raise ValueError(f"a collective has more than {MOST_MEMBERS} ranks")
    cost, delay = length[place], whole.delay[place]
    apart = np.stack([own.reach(own.mask([u]), cost)[members] for u in members.tolist()])
    tree = _tree(own, apart)
    at = np.full(own.nodes, -1, dtype=np.int64)
    at[members] = np.arange(len(members))
    needed = 0
    rows = zip(blocks.origin.tolist(), blocks.goal.tolist(), blocks.sums.tolist(), blocks.bytes.tolist(), strict=True)
    for origin, goal, adds, size in rows:
        holders, wanters = (at[list(blocks.ranks(code, part.members))] for code in (origin, goal))
        costs = apart[np.ix_(holders, wanters)]
        most = int((costs.max(axis=0) if adds else costs.min(axis=0)).max())
        if most >= UNREACHABLE:
            raise ValueError("some ranks of a collective cannot reach each other")
        trees = (origin == EVERYONE) + (goal == EVERYONE)
        needed += size * max(most, trees * tree)
    first = np.zeros(own.nodes, dtype=np.int64)
    for rank, moment in ready.items():
        first[rank] = min(int(moment * whole.ticks_per_s), LATEST)  # an earlier moment proves less, never more
    begin = own.reach_from(_first(own, blocks.origin, first), delay)[own.tail]
    return needed, _placed(whole, place, begin)


def _left(whole: Fabric, part: FabricInstance, tail: IntArray) -> IntArray:
    """For every link of the whole machine the ticks from when something of a collective has crossed it until that is
    where it is wanted and what follows there has ended, so many ticks later at least."""
    back, place = Fabric(part, True), links_in(whole.instance.machine, part.machine)
    delay = whole.delay[place]
    left = back.reach_from(_first(back, part.blocks.goal, tail), delay)[back.tail]
    return _placed(whole, place, np.where(left < UNREACHABLE, left + delay, UNREACHABLE))


def _first(own: Fabric, codes: IntArray, ticks: IntArray) -> IntArray:
    """The ticks of the ranks that codes mean; others have none."""
    blocks, members = own.instance.blocks, own.instance.members
    meant = own.mask([rank for code in np.unique(codes).tolist() for rank in blocks.ranks(code, members)])
    return np.where(meant, ticks, UNREACHABLE)


def _placed(whole: Fabric, place: IntArray, values: IntArray) -> IntArray:
    everywhere = np.full(len(whole.tail), UNREACHABLE, dtype=np.int64)
    everywhere[place] = values
    return everywhere


class _Followers:
    """What is left where a collective has ended, if others follow, in ticks of the whole machine, rounded down."""

    def __init__(self, instance: FabricInstance, collectives: Sequence[OneCollective]) -> None:
        self.whole, self.parts = Fabric(instance), instance.parts
        self.after = [tuple(one.after or ()) for one in collectives]
        self.known: dict[int, tuple[BoolArray, IntArray, IntArray]] = {}

    def tails(self, chosen: frozenset[int]) -> dict[int, IntArray]:
        """By collective, for each node the ticks at least from when it has ended there until all chosen ones have."""
        found: dict[int, IntArray] = {}
        while len(found) < len(chosen):
            left = chosen - set(found)
            number = next(i for i in left if all(i not in self.after[j] for j in left))
            rows = [self._goes_on(j, found[j]) for j in found if number in self.after[j]]
            found[number] = np.maximum.reduce([np.zeros(self.whole.nodes, dtype=np.int64), *rows])
        return found

    def _goes_on(self, number: int, tail: IntArray) -> IntArray:
        """From when each rank is ready, until what it alone has, or contributes, is where it is wanted, and on."""
        if number not in self.known:
            self.known[number] = self._given(self.parts[number])
        wanted, away, leaving = self.known[number]
        least = np.where(wanted, away + tail, UNREACHABLE).min(axis=1)
        most = np.where(wanted, away + tail, 0).max(axis=1)
        found: IntArray = np.where(wanted.any(axis=1), np.minimum(np.maximum(most, least + leaving), LATEST), 0)
        return found

    def _given(self, part: FabricInstance) -> tuple[BoolArray, IntArray, IntArray]:
        """Who wants something that only a rank has or to which it contributes, and how far away that is, shape (nodes,
        nodes); the ticks in which all of it leaves the rank, shape (nodes,)."""
        own, blocks, everyone = Fabric(part), part.blocks, part.members
        delay, nodes = self.whole.delay[links_in(self.whole.instance.machine, part.machine)], part.machine.nodes
        wanted, volume = np.zeros((nodes, nodes), dtype=bool), [0] * nodes
        kinds, which = np.unique(np.stack([blocks.origin, blocks.goal, blocks.sums]), axis=1, return_inverse=True)
        for k, (origin, goal, adds) in enumerate(kinds.T.tolist()):
            holders, wanters = blocks.ranks(origin, everyone), blocks.ranks(goal, everyone)
            size = untrusted.exact_sum(blocks.bytes[which.reshape(-1) == k])
            for rank in holders if adds or len(holders) == 1 else ():
                others = [u for u in wanters if u != rank]
                wanted[rank, others] = True
                volume[rank] += size if others else 0
        away, leaving = np.zeros((nodes, nodes), dtype=np.int64), np.zeros(nodes, dtype=np.int64)
        for rank in np.flatnonzero(wanted.any(axis=1)).tolist():
            row = own.reach(own.mask([rank]), delay)
            wanted[rank] &= row < UNREACHABLE
            away[rank] = np.where(wanted[rank], row, 0)
            back = Fabric(part, True).reach(wanted[rank], delay)
            ways = (own.tail == rank) & (back[own.head] < UNREACHABLE)
            rates = [exact(float(b)) for b in part.machine.network.bandwidth[ways]]
            leaving[rank] = min(int(volume[rank] * self.whole.ticks_per_s / sum(rates, Fraction(0))), LATEST)
        return wanted, away, leaving


def _tree(own: Fabric, apart: IntArray) -> int:
    """The least that joins all members, where every transfer goes from member to member and pays its own way; else
    0."""
    outsiders = np.any(joined_nodes(own) & own.is_rank & ~own.mask(own.members))
    if outsiders or not transfers_pay_alone(own) or np.any(apart >= UNREACHABLE):
        return 0
    return spanning_tree(np.minimum(apart, apart.T), len(apart))


def _weighted(known: Mapping[int, Fraction], collectives: Sequence[OneCollective]) -> Fraction:
    """The least weighted mean of ends over all orders in which the collectives may end."""
    weights = [one.priority for one in collectives]
    if len(weights) > MOST_ORDERED:
        own = [known.get(1 << i, Fraction(0)) for i in range(len(weights))]
        return sum((w * end for w, end in zip(weights, own, strict=True)), Fraction(0)) / sum(weights)
    unit = lcm(*(bound.denominator for bound in known.values())) if known else 1
    ended, least = [0] * (1 << len(weights)), [0] * (1 << len(weights))
    for mask in range(1, 1 << len(weights)):
        bits = [i for i in range(len(weights)) if mask >> i & 1]
        last = max(ended[mask ^ 1 << i] for i in bits)
        ended[mask] = max(last, int(known.get(mask, Fraction(0)) * unit))
        least[mask] = min(least[mask ^ 1 << i] + weights[i] * ended[mask] for i in bits)
    return Fraction(least[-1], unit * sum(weights))
