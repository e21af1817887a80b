"""One item's path round the ring that all items take, rotated, as a CP-SAT model of counts (a program file: it builds
and solves nothing).

The step model is that of Dai, Chen, Huang, Zhang with store-and-forward at every node. All items take the same path,
rotated; with a ``period`` G the items of every G-th node do, so there are G paths. The holders of an item cut the ring
into gaps, at first one of ``N`` links. How a gap is filled depends on its length, its place and the step alone: so gaps
are counted, those of all G items together. Places are nodes modulo G.

======================  ====================  ==============================================================  ========
symbol                  code                  index set                                                       unit
======================  ====================  ==============================================================  ========
``N``, ``W``            nodes, wavelengths    nodes of the ring, wavelengths per direction                    --
``T``, ``G``            horizon, period       one number each                                                 steps, 1
``L``                   ``reach``             hops of the longest circuit: allowed, and at most W             hops
``l[t,g,s,p]``          ``left[t,g,s,p]``     step, links of a gap, place of its lower end, nodes: gaps       gaps
                                              whose lower end sends up to p nodes far (0: nothing)
``r[t,m,s,q]``          ``right[t,m,s,q]``    step, links left of a gap, place of its upper end, nodes: gaps  gaps
                                              whose upper end sends up to q nodes far
``x[t,d,h,s,b]``        ``sent[t,d,h,s,b]``   step, direction, hops, place of the sender: circuits of h       circuits
                                              hops; from the same end the next shorter one has b hops (0:
                                              there is none)
======================  ====================  ==============================================================  ========

A circuit from the lower end goes up (d = 0), one from the upper end down (d = 1).

    (1) gaps filled      sum_p l[t,g,s,p] = gaps of g >= 2 links that step t-1 leaves at s; in step 1 one of N links
    (2) both ends        sum_q r[t,m,s,q] = sum over g-p=m of l[t,g,s-g,p]
    (3) every circuit    sum_b x[t,d,h,s,b] = gaps whose end at s sends up to h + sum_h' x[t,d,h',s,h]
    (4) capacity         circuits over a link at place e <= W                                  for every t, d, e
    (5) wavelengths      circuits of two hops and more that get none                           for every t, d
                         (``references/relay_wavelengths.py``) are not sent together

Step ``t`` leaves a gap of ``h-b`` links below every circuit x[t,d,h,s,b] (above it if d = 1) and one of ``m-q`` in the
middle; after step T none of two links or more. No path is lost: a circuit that starts farther away than the gap's end,
or on the other side of a circuit of the other end, can be replaced by one that uses no more hops of any direction.

Columns that no path within the capacity can use are left out: at one price for all hops a way to fill what they leave
costs more than all hops that there are (``parts/carrying_cost.py``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from synth.solvers.names import name_variables
from synth_models.optree.parts.carrying_cost import price
from synth_models.optree.references.relay_wavelengths import colour_rotations, safe_load

LISTED_WAVELENGTHS = 16  # up to here the circuits without wavelengths are listed, beyond they are kept away from
UP, DOWN = 0, 1
Column = tuple[int, ...]
Counts = dict[Column, Any]
Sides = tuple[list[Any], list[Any], int]
"""Columns whose sums are equal, and what the right sum has beside them."""


@dataclass
class OnePath:
    """The index sets, and the variables once the model is built. ``spare`` are the hops of ``period`` items in all
    steps that their paths must not use."""

    nodes: int
    wavelengths: int
    max_hops: int
    horizon: int
    period: int = 1
    left: Counts = field(default_factory=dict)
    right: Counts = field(default_factory=dict)
    sent: Counts = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reach = min(self.max_hops, self.wavelengths, self.nodes - 1)
        self.ways = list(product(range(1, self.horizon + 1), (UP, DOWN)))
        rest, one, _ = price(self.nodes, np.ones(self.horizon), self.reach)
        self._rest, self._one = rest, one
        self.spare = self.period * (2 * self.wavelengths * self.horizon - rest[0, self.nodes])
        if self.spare >= 0:
            self._columns()

    def _after(self, t: int, gap: int) -> float:
        """The fewest hops that fill a gap after step ``t``."""
        return float(self._rest[t, gap]) if gap > 1 else 0.0

    def _columns(self) -> None:
        """All that a path can use, from the first gap on."""
        gaps: list[set[int]] = [{self.nodes}, *(set[int]() for _ in range(self.horizon))]
        places = range(self.period)
        for t in range(1, self.horizon + 1):
            ends: tuple[set[int], set[int]] = set(), set()
            middles: set[int] = set()
            cheapest: dict[int, float] = {}
            for g in sorted(gaps[t - 1]):
                for p in range(min(self.reach, g - 1) + 1):
                    if self._one[t - 1, p] + self._half(t, g - p, cheapest) - self._rest[t - 1, g] <= self.spare:
                        self.left |= {(t, g, s, p): None for s in places}
                        ends[UP].add(p)
                        middles.add(g - p)
            for m in sorted(middles):
                for q in range(min(self.reach, m - 1) + 1):
                    if self._one[t - 1, q] + self._after(t, m - q) - self._half(t, m, cheapest) <= self.spare:
                        self.right |= {(t, m, s, q): None for s in places}
                        ends[DOWN].add(q)
                        gaps[t].add(m - q)
            for d in (UP, DOWN):
                gaps[t] |= self._circuits(t, d, ends[d])
            gaps[t] -= {0, 1}

    def _half(self, t: int, middle: int, known: dict[int, float]) -> float:
        """The fewest hops for what the lower end leaves of a gap in step ``t``."""
        if middle not in known:
            known[middle] = min(
                self._one[t - 1, q] + self._after(t, middle - q) for q in range(min(self.reach, middle - 1) + 1)
            )
        return known[middle]

    def _circuits(self, t: int, d: int, ends: set[int]) -> set[int]:
        """Add the circuits of a step and direction whose farthest have these hops; the gaps that they leave."""
        gaps, todo = set(), sorted(ends - {0})
        known = set(todo)
        while todo:
            h = todo.pop()
            for b in range(h):
                if h + self._one[t - 1, b] + self._after(t, h - b) - self._one[t - 1, h] <= self.spare:
                    self.sent |= {(t, d, h, s, b): None for s in range(self.period)}
                    gaps.add(h - b)
                    if b and b not in known:
                        known.add(b)
                        todo.append(b)
        return gaps


def gaps_filled(path: OnePath) -> Iterator[Sides]:
    """(1): every gap of two links or more is filled."""
    filled, opened, period = defaultdict(list), defaultdict(list), path.period
    for (t, g, s, _), count in path.left.items():
        filled[t, g, s].append(count)
    for (t, m, s, q), count in path.right.items():
        opened[t + 1, m - q, (s - m) % period].append(count)
    for (t, d, h, s, b), count in path.sent.items():
        opened[t + 1, h - b, (s + b if d == UP else s - h) % period].append(count)
    first = {(1, path.nodes, s) for s in range(period)}
    for key in sorted({*filled, *opened, *first}):
        if key[1] >= 2:
            yield filled[key], opened[key], int(key in first)


def both_ends(path: OnePath) -> Iterator[Sides]:
    """(2): what the lower end leaves of a gap is the upper end's."""
    lower, upper = defaultdict(list), defaultdict(list)
    for (t, g, s, p), count in path.left.items():
        lower[t, g - p, (s + g) % path.period].append(count)
    for (t, m, s, _), count in path.right.items():
        upper[t, m, s].append(count)
    for key in sorted({*lower, *upper}):
        yield upper[key], lower[key], 0


def every_circuit(path: OnePath) -> Iterator[Sides]:
    """(3): an end that sends up to ``h`` nodes far sends a circuit of h hops, and one of every next shorter length."""
    made, wanted = defaultdict(list), defaultdict(list)
    for (t, d, h, s, b), count in path.sent.items():
        made[t, d, h, s].append(count)
        wanted[t, d, b, s].append(count)
    for d, ends in ((UP, path.left), (DOWN, path.right)):
        for (t, _, s, h), count in ends.items():
            wanted[t, d, h, s].append(count)
    for t, d, hops, s in sorted({*made, *wanted}):
        if hops:
            yield made[t, d, hops, s], wanted[t, d, hops, s], 0


def capacity(path: OnePath) -> Iterator[Any]:
    """(4): the circuits over a link, for every step, direction and place of the link's lower node."""
    for way, place in product(path.ways, range(path.period)):
        terms = (
            (crossings(path.period, d, h, s, place), count)
            for (t, d, h, s, _), count in path.sent.items()
            if (t, d) == way
        )
        yield sum(often * count for often, count in terms if often)


def crossings(period: int, direction: int, hops: int, start: int, place: int) -> int:
    """How many links at ``place`` a circuit from ``start`` runs over."""
    whole, rest = divmod(hops, period)
    ahead = place - start if direction == UP else start - 1 - place
    return whole + (ahead % period < rest)


def wavelengths(path: OnePath, model: Any, seed: int) -> None:
    """(5): no circuits together that get no wavelengths. Those of one hop always do. Beyond ``LISTED_WAVELENGTHS`` the
    circuits of two hops and more have no more hops in sum than always get wavelengths. With more than one path the
    method looks for wavelengths itself."""
    safe = safe_load(path.nodes, path.wavelengths)
    if safe >= path.wavelengths or path.period > 1:
        return
    lengths = range(2, path.reach + 1)
    bad = without_wavelengths(path.nodes, path.wavelengths, path.reach, seed)
    for way in path.ways:
        of_length: dict[int, list[Any]] = {h: [] for h in lengths}
        for (t, d, h, _, _), count in path.sent.items():
            if (t, d) == way and h > 1:
                of_length[h].append(count)
        if bad is None:
            model.add(sum(h * sum(counts) for h, counts in of_length.items()) <= safe)
        elif bad:
            numbers = [model.new_int_var(0, path.wavelengths // h, "") for h in lengths]
            for h, number in zip(lengths, numbers, strict=True):
                model.add(number == sum(of_length[h]))
            model.add_forbidden_assignments(numbers, [[hops.count(h) for h in lengths] for hops in bad])


def without_wavelengths(nodes: int, count: int, reach: int, seed: int) -> list[list[int]] | None:
    """Hops, from 2 to ``reach``, the longest first, of circuits that get no ``count`` wavelengths; None: not listed."""
    if count > LISTED_WAVELENGTHS:
        return None
    several = (hops for total in range(safe_load(nodes, count) + 1, count + 1) for hops in _sums(total, reach))
    return [hops for hops in several if colour_rotations(nodes, filled_up(hops, count), count, seed) is None]


def filled_up(hops: list[int], wavelengths: int) -> list[int]:
    """The hops of circuits with circuits of one hop on all wavelengths that are left."""
    return hops + [1] * (wavelengths - sum(hops))


def _sums(total: int, most: int) -> Iterator[list[int]]:
    """Every list of numbers from 2 to ``most``, falling, with this sum."""
    if total == 0:
        yield []
    for first in range(min(total, most), 1, -1):
        yield from ([first, *others] for others in _sums(total - first, first))


def build(path: OnePath, seed: int) -> Any:
    """The CP-SAT model (feasibility), its variables in the index sets of ``path``. ``spare`` must not be negative."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    for counts, name, letters in (
        (path.left, "left", "t g s p"),
        (path.right, "right", "t m s q"),
        (path.sent, "sent", "t d h s b"),
    ):
        for key in counts:
            counts[key] = model.new_int_var(0, path.nodes, "")
        name_variables(model, name, letters, counts)
    for rows in (gaps_filled(path), both_ends(path), every_circuit(path)):
        for ours, theirs, beside in rows:
            model.add(sum(ours) == sum(theirs) + beside)
    for used in capacity(path):
        model.add(used <= path.wavelengths)
    wavelengths(path, model, seed)
    return model
