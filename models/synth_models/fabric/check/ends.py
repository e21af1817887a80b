"""Bounds on when each, or the last of some, of a job's operations has ended, put together to the objective.

One collective is a job of one operation. Its certificate, any argument, is the only row of ``alone``.

``alone``: rows (``of`` an operation, a ``bound`` in seconds, the ``certificate`` that proves it for this operation
alone). Its ranks are ready as much later than a base as is known, and it ends no earlier than that base and the bound:
of one collective moment 0, of several the moment at which the first of its ranks can be ready.

``joint``: rows of one ``length`` (price of a byte on every link), of sets of operations (``of``) and a bound for each
(``bounds``): the last of the set ends no earlier. Until then the links carry what those of the set pay that pay at all
(:mod:`synth_models.fabric.check.payments`), and nothing before something of these can be there, each rank's part when
that is ready at the earliest, nor when too little time is left for what follows in the set: of one that comes after it
a rank still has to send all that only it has, or contributes, to whoever wants it. Each distance is over links that the
operation may use.

For the last end the greatest bound counts. For weighted ends some order of ends is the right one: the k-th end comes no
earlier than the bound of any set among the first k.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.text import untrusted
from synth_models.fabric.check.operations import LATEST, Followers, least_moments
from synth_models.fabric.check.payments import along_paths, of_all
from synth_models.fabric.check.windows import HIGHEST_PRICE, UNREACHABLE, Fabric, capacity_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.ready import moments
from synth_models.fabric.problem.several import WEIGHTED_ENDS, OneCollective, behind, links_in

MOST_ORDERED = 12  # operations whose orders of ends are looked at; of more, only each one's own bound counts
MOST_ROWS, MOST_SETS = 1000, 10_000
MOST_MEMBERS = 2048  # of an operation whose ranks' distances are found

OfOne = Callable[[FabricInstance, float, Mapping[str, Any]], list[str]]
Rows = Sequence[Mapping[str, Any]]


class Alone(NamedTuple):
    """A row of ``alone``; ``base`` in seconds, None where it is the moment at which the first rank can be ready."""

    of: int
    base: Fraction | None
    bound: float
    certificate: Mapping[str, Any]


class Unproven(ValueError):
    """The fault of a bound that is stated for one operation."""


def rows_of(instance: FabricInstance, bound: float, certificate: Mapping[str, Any]) -> tuple[list[Alone], Rows]:
    """The rows of ``alone`` and ``joint``. Raises ``ValueError`` where a certificate has neither."""
    if instance.collectives is None:
        return [Alone(0, Fraction(0), bound, certificate)], []
    if certificate.get("argument") != "several":
        raise ValueError("of several collectives only the argument several proves anything")
    most = len(instance.operations) - 1
    alone = [
        Alone(untrusted.whole(row, "of", 0, most), None, untrusted.number(row, "bound", 0.0), row["certificate"])
        for row in _rows(certificate, "alone")
    ]
    return alone, _rows(certificate, "joint")


def proven(instance: FabricInstance, alone: Sequence[Alone], joint: Rows, of_one: OfOne) -> Fraction:
    """The objective's bound that the rows prove, in seconds. Raises ``ValueError`` where a part of them proves nothing.
    ``of_one`` verifies the bound of one operation."""
    known: dict[int, Fraction] = {}
    ready, follow = least_moments(instance), Followers(instance)
    for row in alone:
        part, moments_of = instance.parts[row.of], ready[row.of]
        base = min(moments_of.values(), default=Fraction(0)) if row.base is None else row.base
        faults = of_one(_from(part, base, moments_of), row.bound, row.certificate)
        if faults:
            raise Unproven(f"of collective {row.of}: {faults[0]}" if len(ready) > 1 else faults[0])
        _learn(known, 1 << row.of, base + Fraction(row.bound))
    for prices in joint:
        for mask, bound in _joint(instance, ready, follow, prices):
            _learn(known, mask, bound)
    if instance.objective == WEIGHTED_ENDS:
        return _weighted(known, instance.operations)
    return max(known.values(), default=Fraction(0))


def _from(part: FabricInstance, base: Fraction, ready: Mapping[int, Fraction]) -> FabricInstance:
    """The operation as it is from ``base`` on."""
    own = moments(part.ready)
    as_stated = base == 0 and all(own.get(rank, 0) == moment for rank, moment in ready.items())
    return part if as_stated else behind(part, base, ready)


def _rows(certificate: Mapping[str, Any], key: str) -> Rows:
    rows = certificate.get(key, ())
    if not isinstance(rows, (list, tuple)) or len(rows) > MOST_ROWS or not all(isinstance(r, Mapping) for r in rows):
        raise ValueError(f"{key} is no list of at most {MOST_ROWS} tables")
    return rows


def _learn(known: dict[int, Fraction], mask: int, bound: Fraction) -> None:
    known[mask] = max(bound, known.get(mask, Fraction(0)))


def _joint(
    instance: FabricInstance, ready: Sequence[Mapping[int, Fraction]], follow: Followers, row: Mapping[str, Any]
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
            raise ValueError(f"the prices prove no {float(bound):.17g} s for the operations {chosen}")
        found.append((sum(1 << number for number in chosen), bound))
    return found


def _chosen(entry: Any, count: int) -> list[int]:
    """The operations of a set."""
    found: list[int] = untrusted.whole_numbers({"of": entry}, "of", 0, count - 1).tolist()
    if not found or len(set(found)) < len(found):
        raise ValueError("a set is empty or names an operation twice")
    return found


def _pays(whole: Fabric, part: FabricInstance, length: IntArray, ready: Mapping[int, Fraction]) -> tuple[int, IntArray]:
    """What an operation pays, and for every link of the whole machine the ticks before something of it can be there,
    from moment 0 on; :data:`UNREACHABLE` for links that it may not use."""
    own, place = Fabric(part), links_in(whole.instance.machine, part.machine)
    if len(own.members) > MOST_MEMBERS:
        raise ValueError(f"an operation has more than {MOST_MEMBERS} ranks")
    first = np.zeros(own.nodes, dtype=np.int64)
    for rank, moment in ready.items():
        first[rank] = min(int(moment * whole.ticks_per_s), LATEST)  # an earlier moment proves less, never more
    begin = own.reach_from(_first(own, part.blocks.origin, first), whole.delay[place])[own.tail]
    return of_all(own, length[place]), _placed(whole, place, begin)


def _left(whole: Fabric, part: FabricInstance, tail: IntArray) -> IntArray:
    """For every link of the whole machine the ticks from when something of an operation has crossed it until that is
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


def _weighted(known: Mapping[int, Fraction], operations: Sequence[OneCollective]) -> Fraction:
    """The least weighted mean of ends over all orders in which the operations may end."""
    weights = [one.priority for one in operations]
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
