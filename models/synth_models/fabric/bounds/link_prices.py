"""Prices on links that prove the most: what several bounds share.

A bound of this kind says: with a price ``c_e >= 0`` a byte on every link, what is to be done costs at least
``worth(c)``, a concave function that doubles with the prices (a sum of shortest distances, a spanning tree); and until
T the links can be paid at most ``sum of c_e b_e max(0, T - h_e)``. So T is at least what makes both equal.

The best prices are found by cutting planes (Kelley 1960): at some prices the worth has a gradient (how many bytes cross
which link on the cheapest route), which bounds it everywhere; a small linear program takes the prices that promise most
under all gradients so far. Links that look alike (:mod:`synth_models.fabric.bounds.colours`) share one variable.
Solver's floats are turned into whole numbers, and what these prove is computed exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from synth.arrays import SAME, BoolArray, FloatArray, IntArray
from synth.graph.shortest_paths import UNREACHABLE
from synth.solvers.lp import linprog
from synth_models.fabric.bounds.arrays import Links, least_time
from synth_models.fabric.bounds.colours import Colours
from synth_models.fabric.bounds.paths import distances
from synth_models.fabric.bounds.proven import Proven

SCALE = 2**30  # prices as whole numbers while searching
LARGEST = 2**40  # a price of a certificate
IN_WINDOWS = 2**38  # the same where a link has several
DENOMINATORS = (12, 60, 1000, 20000)
ROUNDS = 200
NEWTON = 6
CANDIDATES = 2  # of the last prices, made whole in all ways
LEAST_SHARE = 1e-7  # of the largest capacity: what a link counts that cannot be used yet

Worth = Callable[[list[IntArray]], tuple[FloatArray, list[FloatArray]]]
"""Whole prices of every link, shape (links,), for each set of resources -> the value of every part, shape (parts,); and
for each set the bytes on every link by part, shape (parts, links)."""


@dataclass(frozen=True, eq=False)
class Resources:
    """What is priced: links on their own, and groups (in parts of which a transfer counts at most one link).

    ``row``: resource of every link, -1 where nothing useful can cross it; ``lost``: ticks that a resource cannot be
    used for, shape (rows,); ``kind``: the variable of every row; ``kinds``: their number.
    """

    links: Links
    row: IntArray
    lost: IntArray
    kind: IntArray
    kinds: int

    def capacity(self, seconds: float) -> FloatArray:
        """Seconds for which the resources of every kind can be used until then, shape (kinds,)."""
        open_s = np.maximum(seconds - self.lost / self.links.ticks, 0.0)
        found: FloatArray = np.bincount(self.kind, open_s, self.kinds).astype(np.float64)
        return found

    def loads(self, by_link: FloatArray) -> FloatArray:
        """Bytes on links, shape (..., links), as seconds on resources of every kind, shape (..., kinds)."""
        used = self.row >= 0
        seconds = by_link[..., used] / (self.links.rate[used] * float(self.links.unit))
        found = np.zeros((*by_link.shape[:-1], self.kinds))
        np.add.at(found.T, self.kind[self.row[used]], seconds.T)
        return found

    def lengths(self, x: FloatArray) -> FloatArray:
        """Price of a byte on every link from the price of a second on every kind, in some unit."""
        length = np.zeros(self.links.links)
        used = self.row >= 0
        length[used] = x[self.kind[self.row[used]]] / self.links.rate[used]
        return length


def time_to_pay(resources: Sequence[Resources], lengths: Sequence[IntArray], worth: int) -> Fraction:
    """The least time until which the links can be paid ``worth`` (price times bytes), exactly: each set of resources at
    its own whole prices."""
    links, weight = resources[0].links, earned(resources, lengths)
    starts = np.array(list(weight), dtype=np.int64)
    done, rest = least_time(list(weight.values()), starts, Fraction(worth * links.ticks) / links.unit)
    return (done + rest) / links.ticks


def earned(resources: Sequence[Resources], lengths: Sequence[IntArray]) -> dict[int, int]:
    """What links are paid for a second of use (price times multiples of :attr:`Links.unit`), by the ticks for which
    they cannot be used."""
    links = resources[0].links
    weight: dict[int, int] = {}
    for priced, length in zip(resources, lengths, strict=True):
        used = np.flatnonzero((priced.row >= 0) & (length > 0))
        _, lone = np.unique(priced.row[used], return_inverse=True)
        shared = np.bincount(lone.reshape(-1), minlength=1)[lone.reshape(-1)] > 1
        alone = used[~shared]
        kinds, times = np.unique(
            np.stack([length[alone], links.rate[alone], priced.lost[priced.row[alone]]]),
            axis=1,
            return_counts=True,
        )
        rows = [(p * b * n, h) for (p, b, h), n in zip(kinds.T.tolist(), times.tolist(), strict=True)]
        most: dict[int, int] = {}
        for e in used[shared].tolist():
            r = int(priced.row[e])
            most[r] = max(most.get(r, 0), int(length[e]) * int(links.rate[e]))
        rows += [(value, int(priced.lost[r])) for r, value in most.items()]
        for value, lost in rows:
            weight[lost] = weight.get(lost, 0) + value
    return weight


def resources_of(
    links: Links, look: Colours, begin: IntArray, left: IntArray, each: bool = False, apart: IntArray | None = None
) -> Resources:
    """Resources with the windows that ``begin`` and ``left`` (ticks, shape (links,), :data:`UNREACHABLE` where never)
    leave them. ``each``: a transfer may count every link of a group. ``apart``: a number for every link; links with
    different ones share no variable."""
    useful = (begin < UNREACHABLE) & (left < UNREACHABLE)
    part = _parts(links, each)
    key = np.where(part >= 0, links.links + part, np.arange(links.links))
    row = np.full(links.links, -1, dtype=np.int64)
    values, row[useful] = np.unique(key[useful], return_inverse=True)
    rows = len(values)
    earliest, least = np.full(rows, UNREACHABLE), np.full(rows, UNREACHABLE)
    colour = np.full(rows, UNREACHABLE)
    np.minimum.at(earliest, row[useful], begin[useful])
    np.minimum.at(least, row[useful], left[useful])
    marks = look.link if apart is None else np.unique(np.stack([look.link, apart]), axis=1, return_inverse=True)[1]
    np.minimum.at(colour, row[useful], marks.reshape(-1)[useful].astype(np.int64))
    kinds, kind = np.unique(colour, return_inverse=True)
    return Resources(links, row, earliest + least, kind.reshape(-1).astype(np.int64), len(kinds))


def best_prices(
    resources: Sequence[Resources], worth: Worth, seconds: float, more: Callable[[], bool]
) -> Iterator[FloatArray]:
    """Prices of a second of every kind (all resources one after the other), better and better ones, where links are
    paid until ``seconds``."""
    capacity = np.concatenate([r.capacity(seconds) for r in resources])
    capacity = np.maximum(capacity, LEAST_SHARE * max(float(capacity.max(initial=0.0)), 1e-30))
    planes: list[FloatArray] = []
    asked = 1 / capacity / len(capacity)
    best, best_value = asked, 0.0
    for _ in range(ROUNDS):
        plane = _plane_at(resources, worth, asked)
        planes.append(plane)
        found = float((plane @ asked).sum())
        if found > best_value * (1 + SAME):
            best, best_value = asked, found
            yield asked
        promised, dearest = _master(planes, capacity)
        if dearest is None or promised <= best_value * (1 + SAME):
            if dearest is not None:
                yield dearest
            return
        if not more():
            return
        asked = dearest if len(planes) % 2 else (dearest + best) / 2


def improved(
    resources: Sequence[Resources],
    worth: Worth,
    exactly: Callable[[list[IntArray]], int],
    made: Callable[[list[IntArray], Fraction], Proven],
    more: Callable[[], bool],
    best: Proven,
) -> Proven:
    """What the best prices prove, if it is more than ``best``, which it starts from: the moment until which links are
    paid is moved on until nothing is gained (Newton's method). ``exactly`` is what whole prices are worth, ``made`` a
    bound from them."""
    for _ in range(NEWTON):
        chosen, promised = None, best.seconds
        for x in list(best_prices(resources, worth, float(best.seconds), more))[: -CANDIDATES - 1 : -1]:
            rounded = Fraction(0)
            for lengths in whole_prices(resources, x):
                value = int(worth(lengths)[0].sum())
                seconds = time_to_pay(resources, lengths, value) if value else Fraction(0)
                if seconds > promised:
                    chosen, promised = lengths, seconds
                if rounded and seconds >= rounded:
                    break  # the fractions that the solver's floats stand for
                rounded = rounded or seconds
        if chosen is None:
            break
        value = exactly(chosen)
        seconds = time_to_pay(resources, chosen, value) if value else Fraction(0)
        if seconds <= best.seconds:
            break
        best = made(chosen, seconds)
        if not more():
            break
    return best


def whole_prices(resources: Sequence[Resources], x: FloatArray) -> Iterator[list[IntArray]]:
    """The prices ``x`` of :func:`best_prices` as whole ones of links, for each set of resources: rounded, then as
    fractions of small denominators."""
    lengths = _joint_lengths(resources, x)
    values, which = np.unique(lengths, return_inverse=True)
    tried: set[bytes] = set()
    largest = LARGEST if len(resources) == 1 else IN_WINDOWS
    for most in (0, *DENOMINATORS):
        near = [Fraction(value).limit_denominator(most) if most else Fraction(round(value * SCALE))
                for value in values.tolist()]  # fmt: skip
        scale = lcm(*(value.denominator for value in near))
        whole = np.array([int(value * scale) if scale <= largest else 0 for value in near], dtype=np.int64)
        if whole.any() and whole.tobytes() not in tried:
            tried.add(whole.tobytes())
            yield np.split(whole[which.reshape(-1)], len(resources))


def _joint_lengths(resources: Sequence[Resources], x: FloatArray) -> FloatArray:
    """Prices of a byte on every link, one set of resources after the other; the largest is 1."""
    ends = np.cumsum([r.kinds for r in resources])
    found = np.concatenate([r.lengths(part) for r, part in zip(resources, np.split(x, ends[:-1]), strict=True)])
    top: FloatArray = found / max(float(found.max(initial=0.0)), 1e-300)
    return top


def _plane_at(resources: Sequence[Resources], worth: Worth, x: FloatArray) -> FloatArray:
    """The plane that touches the worth of every part at these prices, shape (parts, kinds)."""
    whole = np.round(_joint_lengths(resources, x) * SCALE).astype(np.int64)
    _, by_link = worth(np.split(whole, len(resources)))
    return np.concatenate([r.loads(load) for r, load in zip(resources, by_link, strict=True)], axis=1)


def _master(planes: list[FloatArray], capacity: FloatArray) -> tuple[float, FloatArray | None]:
    """The prices x >= 0 with ``capacity @ x = 1`` that promise most: max sum of q, q_part <= every plane of it @ x."""
    parts, kinds = planes[0].shape
    scale = 1 / capacity  # in units of what a kind's capacity is worth
    rows = np.concatenate([plane * scale for plane in planes])
    rows /= max(float(np.abs(rows).max()), 1e-300)
    ones = np.tile(np.eye(parts), (len(planes), 1))
    result = linprog(
        np.concatenate([-np.ones(parts), np.zeros(kinds)]),
        A_ub=np.concatenate([ones, -rows], axis=1),
        b_ub=np.zeros(len(rows)),
        A_eq=np.concatenate([np.zeros(parts), np.ones(kinds)])[None, :],
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
    )
    if result.x is None:
        return 0.0, None
    x: FloatArray = np.maximum(result.x[parts:], 0.0) * scale  # a little below 0 by the solver's tolerance at most
    return float(min((np.stack([plane @ x for plane in planes])).min(axis=0).sum(), np.inf)), x


def _parts(links: Links, each: bool) -> IntArray:
    """A number for every part of a group, -1 for links in none (see ``each`` of :func:`resources_of`)."""
    part = np.full(links.links, -1, dtype=np.int64)
    if each or not np.any(links.group >= 0):
        return part
    part[:] = np.where(links.group >= 0, 3 * links.group, -1)
    if links.instance.switching.mode == "store_and_forward":
        return part
    rank = ~links.is_switch
    for g in np.unique(links.group[links.group >= 0]).tolist():
        inside = np.flatnonzero(links.group == g)
        if not _on_one_route(links, inside):
            continue
        first, last = rank[links.src[inside]], rank[links.dst[inside]]
        part[inside[~first & last]] = 3 * g + 1
        part[inside[~first & ~last]] = -1
    return part


def _on_one_route(links: Links, inside: IntArray) -> bool:
    """Whether a transfer may use two of the links, one after the other."""
    for e in inside[links.is_switch[links.dst[inside]]].tolist():
        reached = distances(links, np.ones_like(links.delay), [int(links.dst[e])], links.is_switch) < UNREACHABLE
        after = inside[links.is_switch[links.src[inside]] & (inside != e) & (links.dst[inside] != links.src[e])]
        if reached[links.src[after]].any():
            return True
    return False


def anywhere(links: Links) -> BoolArray:
    """Paths may pass every node."""
    return np.ones(links.nodes, dtype=bool)
