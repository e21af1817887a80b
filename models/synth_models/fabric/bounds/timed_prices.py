"""Bounds of demands between boxes that know when a rail can be used without a hop: prices that depend on the moment.

Every rank has one link out of its box and one into it; between ranks of a box one hops. Until a hop is over, nothing
but the rank's own data goes out over its link; and what is not in its box by the last hop but one comes in over its
goal's own link. Let all links have r bytes/s, and let ranks U send D bytes in all to ranks W of other boxes. For a box
that U is in (W likewise, with what comes in), every byte pays 1

    over the own links of U           until the first hop is over,
    over all links out of the box     from then on, until only a goal's own link brings it there in time,
    over the own links into W         from then on,

so that ``D <= r * (first * |U| + (T - first - long) * links + last * |W|)``. If T is shorter than two hops and a rail
there is nothing between: a byte goes out over its origin's link or comes in over its goal's, and if these two have no
direct route, not both. Then, for U and W anywhere,

    all bytes             D <= r * ((T - long) * |U| + last * |W|),   D <= r * (first * |U| + (T - first - rail) * |W|)
    without direct route  D <= r * ((T - long) * |U| + (T - first - rail) * |W|).

``first`` is the latency to another rank's link, ``last`` the same behind it, ``rail`` that of a rail with its links,
``long`` that of a rail and a hop. All are looked up on the machine's links by shortest paths. What is proven does not
depend on how well U and W are chosen. The certificate is the prices themselves
(:mod:`synth_models.fabric.check.timed_prices`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.graph.shortest_paths import UNREACHABLE
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.paths import distances
from synth_models.fabric.bounds.proven import Proven

TICKS = 10**15  # a second at least: so little is lost by rounding down
WORTH = 16  # rails and hops, above which what is gained is less than a hundredth
ROUNDS = 8  # of leaving out ranks


class Interval(NamedTuple):
    """Price 1 on ``links`` (numbers) from one moment to another: ``plain + slope * end``, in ticks, each."""

    links: IntArray
    since: tuple[int, int]
    until: tuple[int, int]


class Sets(NamedTuple):
    """Pairs of ranks, shape (ranks, ranks), and the intervals of price 1 of which each of their bytes passes one in
    every schedule that ends within ``least..most`` ticks."""

    pairs: BoolArray
    intervals: list[Interval]
    least: int
    most: int


@dataclass(frozen=True, eq=False)
class TimedPrices:
    """The links ``out`` of the box of every rank and ``into`` it, shape (ranks,), in the order of demands; the number
    of the ``box`` of each; ``rate`` in bytes/s; latencies in ticks as the module states them. ``off``: from the
    beginning of an own link out to that of one into another box; ``apart``: no direct route joins the own links."""

    links: Links
    out: IntArray
    into: IntArray
    box: IntArray
    rate: Fraction
    first: int
    last: int
    rail: int
    long: int
    off: int
    apart: BoolArray

    @property
    def size(self) -> int:
        """Ranks of a box."""
        return int((self.box == 0).sum())

    @classmethod
    def of(cls, links: Links, ranks: IntArray, boxes: Sequence[Sequence[int]]) -> TimedPrices | None:
        """None where boxes are unequal, where a rank has not just one such link each way, or where these have no common
        rate, or lie in groups. The ranks come box by box."""
        size = len(boxes[0])
        if len(boxes) < 2 or any(len(members) != size for members in boxes):
            return None
        box = np.arange(len(ranks)) // size
        out, into = _own(links, ranks, box), _own(links.reverse, ranks, box)
        if out is None or into is None:
            return None
        used = np.concatenate([out, into])
        if len(np.unique(links.rate[used])) > 1 or (links.group[used] >= 0).any():
            return None
        if not (_all_pass(links, ranks, box, out) and _all_pass(links.reverse, ranks, box, into)):
            return None
        return _looked_up(links, ranks, box, out, into)

    def stronger(self, demand: IntArray, known: Proven) -> Proven:
        """What is proven of a demand, bytes from rank to rank, where that is more than is ``known``."""
        most = max(self.first + self.long, self.long + self.last)
        if known.seconds * self.links.ticks > WORTH * most:
            return known
        apart = self.box[:, None] != self.box
        wanted = np.where(apart, demand, 0)
        finer = max(1, TICKS // self.links.ticks)
        best: tuple[int, Sets] | None = None
        least = int(known.seconds * self.links.ticks * finer)
        for sets in self._sets(wanted.astype(np.float64) * float(self.links.ticks / self.rate), apart):
            end = self._end(sets, wanted, finer)
            if end > least:
                best, least = (end, sets), end
        return known if best is None else self._proven(*best, finer)

    def _sets(self, ticks: FloatArray, apart: BoolArray) -> Iterator[Sets]:
        """Sets that may prove much of a demand in ``ticks`` of a link, shape (ranks, ranks)."""
        for outwards in (True, False):
            U, W = _sides(ticks, self.size, self.first, self.last, outwards)
            yield self._long(U[:, None] & W & apart, U, W, outwards)
        lone = np.where(self.apart, ticks, 0)
        everywhere = np.ones(len(ticks), dtype=bool)
        hottest = divmod(int(lone.argmax()), len(ticks))
        for U, W in ((everywhere, everywhere), tuple(np.arange(len(ticks)) == k for k in hottest)):
            U, W = _densest(lone, U, W)
            yield self._short(U[:, None] & W & self.apart, U, W, self.first)
        for one, other in ((ticks, True), (ticks.T, False)):
            over = np.maximum(one - (self.last if other else self.first), 0)
            alone = np.arange(len(ticks)) == int(over.sum(axis=1).argmax())
            beyond = over[alone][0] > 0
            U, W = (alone, beyond) if other else (beyond, alone)
            yield self._both(U[:, None] & W & apart, U, W, other)

    def _long(self, pairs: BoolArray, U: BoolArray, W: BoolArray, outwards: bool) -> Sets:
        """The links of the box on one side are all paid for between the first hop and the last."""
        lag = self.rail - self.off  # of a link into a box: it, and what is behind it
        if outwards:
            inner = self.out[self.box == self.box[U][0]] if U.any() else self.out[:0]
            middle = Interval(inner, (self.first, 0), (-self.long, 1))
        else:
            inner = self.into[self.box == self.box[W][0]] if W.any() else self.into[:0]
            middle = Interval(inner, (self.first + self.off, 0), (-lag - self.last, 1))
        early = Interval(self.out[U], (0, 0), (self.first, 0))
        late = Interval(self.into[W], (-lag - self.last, 1), (-lag, 1))
        return Sets(pairs, [early, middle, late], self.first + self.long, WORTH * (self.first + self.long))

    def _short(self, pairs: BoolArray, U: BoolArray, W: BoolArray, since: int) -> Sets:
        """Pairs without a direct route: each goes out over its origin's link, or comes in over its goal's."""
        early = Interval(self.out[U], (0, 0), (-self.long, 1))
        late = Interval(self.into[W], (since + self.off, 0), (self.off - self.rail, 1))
        return Sets(pairs, [early, late], self.long, self.first + self.long)

    def _both(self, pairs: BoolArray, U: BoolArray, W: BoolArray, outwards: bool) -> Sets:
        """Any pairs, of which some may do both: that is paid for on one side only."""
        if outwards:
            early = Interval(self.out[U], (0, 0), (-self.long, 1))
            late = Interval(self.into[W], (self.off - self.long, 1), (self.off - self.rail, 1))
        else:
            early = Interval(self.out[U], (0, 0), (self.first, 0))
            late = Interval(self.into[W], (self.first + self.off, 0), (self.off - self.rail, 1))
        return Sets(pairs, [early, late], self.long, self.first + self.long)

    def _end(self, sets: Sets, wanted: IntArray, finer: int) -> int:
        """The last tick, of so much ``finer`` ones, by which the links cannot be paid more than all pairs have to; at
        most the last for which the sets are made, 0 where there is none."""
        needed = int(wanted[sets.pairs].sum())  # below 2^63: MOST_BYTES
        slope = sum((one.until[1] - one.since[1]) * len(one.links) for one in sets.intervals)
        plain = sum((one.until[0] - one.since[0]) * len(one.links) for one in sets.intervals)
        if not needed or slope <= 0:
            return 0
        end = int((needed * self.links.ticks / self.rate - plain) / slope * finer)
        return 0 if end <= sets.least * finer else min(end, sets.most * finer)

    def _proven(self, end: int, sets: Sets, finer: int) -> Proven:
        ticks = self.links.ticks * finer

        def certificate() -> dict[str, Any]:
            link = np.concatenate([one.links for one in sets.intervals])
            since, until = (
                np.repeat(
                    [part[0] * finer + part[1] * end for part in parts], [len(one.links) for one in sets.intervals]
                )
                for parts in ([one.since for one in sets.intervals], [one.until for one in sets.intervals])
            )
            return {
                "argument": "timed_prices", "ticks_per_s": ticks, "end": end, "link": link.tolist(),
                "since": since.tolist(), "until": until.tolist(), "price": [1] * len(link),
            }  # fmt: skip

        pairs = int(sets.pairs.sum())
        words = f"{pairs} pairs of ranks cannot all use their own links before and behind a hop"
        return Proven(Fraction(end, ticks), "timed prices", lambda: words, certificate)


def _own(links: Links, ranks: IntArray, box: IntArray) -> IntArray | None:
    """The one link of every rank to a node that no other rank of its box has a link to, shape (ranks,); None where a
    rank has none or several."""
    of_node = np.full(links.nodes, -1, dtype=np.int64)
    of_node[ranks] = box
    found = np.full(len(ranks), -1, dtype=np.int64)
    for k, rank in enumerate(ranks.tolist()):
        mine = np.flatnonzero(links.src == rank)
        others = links.dst[(of_node[links.src] == box[k]) & (links.src != rank)]
        mine = mine[~np.isin(links.dst[mine], others) & (of_node[links.dst[mine]] != box[k])]
        if len(mine) != 1:
            return None
        found[k] = mine[0]
    return found


def _all_pass(links: Links, ranks: IntArray, box: IntArray, out: IntArray) -> bool:
    """Whether nothing leaves a box but over its ranks' own links."""
    for b in range(int(box.max()) + 1):
        blocked = links.delay.copy()
        blocked[out[box == b]] = UNREACHABLE // 4
        if (distances(links, blocked, ranks[box == b])[ranks[box != b]] < UNREACHABLE // 4).any():
            return False
    return True


def _looked_up(links: Links, ranks: IntArray, box: IntArray, out: IntArray, into: IntArray) -> TimedPrices:
    """The latencies, each the least over all ranks."""
    apart = box[:, None] != box
    same = ~apart & ~np.eye(len(ranks), dtype=bool)
    away = np.array([distances(links, links.delay, [int(u)]) for u in ranks])
    behind = np.array([distances(links, links.delay, [int(v)]) for v in links.dst[out]])
    inside = np.array([distances(links, links.delay, [int(v)]) for v in links.dst[into]])
    lead, lag = links.delay[out], links.delay[into]
    first = _least(away[:, links.src[out]], same)
    last = _least(inside[:, ranks], same)
    rail = _least(lead[:, None] + behind[:, ranks], apart)
    off = _least(lead[:, None] + behind[:, links.src[into]], apart)
    long = UNREACHABLE
    for k, rank in enumerate(ranks.tolist()):
        blocked = links.delay.copy()
        blocked[into[k]] = UNREACHABLE // 4
        there = distances(links.reverse, blocked, [rank])[links.dst[out]]
        long = min(long, _least(lead + there, box != box[k]))
    own = lead[:, None] + behind[:, links.src[into]] + lag + away[np.arange(len(ranks)), links.src[out]][:, None]
    rate = int(links.rate[out[0]]) * links.unit
    return TimedPrices(links, out, into, box, rate, first, last, rail, long, off, apart & (own > first + long))


def _least(ticks: IntArray, there: BoolArray) -> int:
    return int(ticks[there].min(initial=UNREACHABLE))


def _sides(ticks: FloatArray, size: int, first: int, last: int, outwards: bool) -> tuple[BoolArray, BoolArray]:
    """The ranks U of a box and W of all others (or the other way round) whose bytes, less what their own links can be
    paid before the first hop or behind the last, are most. Those of each box are tried by what they have to send, and
    again by what they have to send to the W that was best."""
    inner, outer = (first, last) if outwards else (last, first)
    rows = (ticks if outwards else ticks.T).reshape(-1, size, len(ticks))
    over, every = np.maximum(rows - outer, 0).sum(axis=2), np.arange(len(rows))
    best: tuple[float, IntArray, BoolArray] | None = None
    for _ in range(2):
        order = np.argsort(-over, axis=1, kind="stable")
        through = np.cumsum(np.take_along_axis(rows, order[:, :, None], axis=1), axis=1)
        gain = np.maximum(through - outer, 0).sum(axis=2) - inner * np.arange(1, size + 1)
        beyond = through[every, gain.argmax(axis=1)] > outer
        b, k = divmod(int(gain.argmax()), size)
        if best is None or gain[b, k] > best[0]:
            best = float(gain[b, k]), b * size + order[b, : k + 1], beyond[b]
        over = (rows * beyond[:, None, :]).sum(axis=2)
    assert best is not None
    _, ranks, others = best
    chosen = np.zeros(len(ticks), dtype=bool)
    chosen[ranks] = True
    return (chosen, others) if outwards else (others, chosen)


def _densest(ticks: FloatArray, U: BoolArray, W: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Leave out ranks that have less to send or receive than all have on average, as long as that helps."""
    for _ in range(ROUNDS):
        part = ticks[np.ix_(U, W)]
        average = float(part.sum()) / max(1, int(U.sum() + W.sum()))
        fewer, less = U.copy(), W.copy()
        fewer[U], less[W] = part.sum(axis=1) > average, part.sum(axis=0) > average
        if (fewer == U).all() and (less == W).all():
            break
        left = ticks[np.ix_(fewer, less)]
        if float(left.sum()) <= average * int(fewer.sum() + less.sum()):
            break
        U, W = fewer, less
    return U, W
