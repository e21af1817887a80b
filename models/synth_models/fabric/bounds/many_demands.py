"""Lower bounds of many demands on one machine: what depends on the machine alone is computed once.

**Cuts** around every rank and every box, and around sets of boxes that little leads out of
(:mod:`synth_models.fabric.bounds.neighbourhoods`), in both directions, whose windows
(:mod:`synth_models.fabric.bounds.cuts`) are those of all ranks on either side; around a box for what one of its ranks
sends or receives; around the ranks and boxes of the pairs that send most, for that pair alone. What hops before a link
or behind it has less time.

**Prices**: a price vector is a bound of every demand on the machine
(:mod:`synth_models.fabric.bounds.concurrent_flow`), because what links can be paid until T depends on the machine only,
and what a demand pays is the sum of its bytes times the distances. So the duals of one demand's linear program serve
the next demands too; nothing has to be scaled. The windows are those of all ranks, which are never too short.

**Timed prices** for demands of few bytes between boxes (:mod:`synth_models.fabric.bounds.timed_prices`).

For each demand all are compared in floats; the strongest is computed exactly, and proven by its certificate.

**Averages of demands.** What one cut or price vector c proves of a demand D, T_c(D), is concave in D: what is needed is
linear in D, and what links can be paid until T is convex in T. So for weights y that sum to 1, every average of demands
D_k takes at least the least of the ``sum_c y_c T_c(D_k)``. A linear program finds the y for which that is most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import SAME, BoolArray, FloatArray, IntArray
from synth.graph.shortest_paths import UNREACHABLE
from synth.solvers.lp import linprog
from synth.text.quantities import SECONDS, shown
from synth.text.untrusted import exact_dot
from synth_models.fabric.bounds.arrays import Links, least_time
from synth_models.fabric.bounds.colours import Colours
from synth_models.fabric.bounds.crossing import crossing
from synth_models.fabric.bounds.link_prices import earned, resources_of
from synth_models.fabric.bounds.neighbourhoods import neighbourhoods
from synth_models.fabric.bounds.paths import distances
from synth_models.fabric.bounds.proven import NOTHING, Proven
from synth_models.fabric.bounds.timed_prices import TimedPrices
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.routes.quickest_routes import quickest
from synth_models.fabric.routes.search import Routes

MOST_PRICES = 64  # vectors that are kept, the latest


class Earning(NamedTuple):
    """What some links can be paid: ``weight`` a second (in multiples of :attr:`Links.unit`), from tick ``start`` on."""

    weight: list[int]
    start: IntArray

    @classmethod
    def over(cls, links: Links, inside: BoolArray, origins: BoolArray, goals: BoolArray) -> Earning:
        """What the links out of ``inside`` can be paid for what goes from the origins to the goals."""
        weight, start = crossing(links, inside, origins, goals)
        return cls(weight.tolist(), start)

    def least(self, links: Links, needed: int) -> Fraction:
        """The least time until which they can be paid so much, in seconds, exactly."""
        done, rest = least_time(self.weight, self.start, Fraction(needed * links.ticks) / links.unit)
        return (done + rest) / links.ticks

    def lines(self, links: Links, most: int) -> tuple[FloatArray, FloatArray]:
        """The same as a minimum of straight lines, ``slope * needed + offset`` seconds, shape (most,) each; all 0 where
        no link crosses: nothing that can be asked for has to pass such a cut."""
        if not len(self.start):
            return np.zeros(most), np.zeros(most)
        order = np.argsort(self.start, kind="stable")
        weight = np.array([self.weight[k] for k in order.tolist()], dtype=np.float64)
        total = np.cumsum(weight)
        late = np.cumsum(weight * self.start[order])
        slope = 1 / (total * float(links.unit))
        offset = late / total / links.ticks
        kept = [int(k) for k in np.flatnonzero(np.append(np.diff(self.start[order]) > 0, True))][:most]
        fill = [*kept, *[kept[-1]] * (most - len(kept))]
        return slope[fill], offset[fill]


class Cut(NamedTuple):
    """What leaves ``inside`` on its way from the ``origins`` there to the ``goals`` beyond; shape (nodes,) each."""

    inside: BoolArray
    origins: BoolArray
    goals: BoolArray


MOST_LINES = 8
MOST_PAIRS = 4096  # whose cuts are kept
MUCH = 2**34  # bytes of a pair, up to which a line says how long they take at most
LEAST_WEIGHT, FINEST = 1e-6, 10**6  # of an argument in a mixture, and the largest denominator of its weight


@dataclass(frozen=True, eq=False)
class Priced:
    """A price vector: ``length`` of every link, and the ``distance`` of every pair of ranks in the given order."""

    length: IntArray
    distance: IntArray
    earning: Earning


@dataclass(frozen=True, eq=False)
class Mixture:
    """Arguments, cuts and prices, that bound every average of some demands together: the ``weight`` of each, which sum
    to 1, and what each proves of each demand, ``proven[demand][argument]``."""

    weight: tuple[Fraction, ...]
    proven: tuple[tuple[Proven, ...], ...]

    @property
    def seconds(self) -> Fraction:
        """What every average takes at least."""
        return min(
            sum((w * one.seconds for w, one in zip(self.weight, row, strict=True)), Fraction(0)) for row in self.proven
        )


class ManyDemands:
    """Bounds of demands between the ``ranks`` (nodes, in the order of the demands' rows) of an instance's machine.

    ``boxes``: the ranks of every box. ``instance`` may be of any collective whose group are these ranks.
    """

    def __init__(self, instance: FabricInstance, ranks: IntArray, boxes: Sequence[Sequence[int]]) -> None:
        self._instance, self._ranks = instance, ranks
        self._links = Links.of(instance)
        self._box = np.zeros(len(ranks), dtype=np.int64)
        place = {int(rank): k for k, rank in enumerate(ranks)}
        for b, box in enumerate(boxes):
            self._box[[place[rank] for rank in box]] = b
        self._around_box = [self._around(box) for box in boxes if len(box) < len(ranks)]
        several = neighbourhoods(self._links, self._around_box)
        self._in_several = np.array([side[ranks] for side in several], dtype=np.float64).reshape(-1, len(ranks))
        self._cuts = self._all_cuts(several)
        self._earning = [Earning.over(self._links, *cut) for cut in self._cuts]
        rows = [np.concatenate(earning.lines(self._links, MOST_LINES)) for earning in self._earning]
        self._lines = np.array(rows).reshape(len(rows), 2, MOST_LINES)
        self._of_pairs: dict[tuple[int, int], list[tuple[Cut, Earning]]] = {}
        self._prices: list[Priced] = []
        self._timed = TimedPrices.of(self._links, ranks, boxes)
        self._away = np.array([distances(self._links, self._links.delay, [int(u)])[ranks] for u in ranks])

    def _all_cuts(self, several: list[BoolArray]) -> list[Cut]:
        """Those around ranks and boxes, of one rank beyond its box, and around several boxes; in this order."""
        ranks = self._ranks.tolist()
        alone = [self._alone(rank) for rank in ranks] if len(ranks) > 1 else []
        found = [cut for side in (*alone, *self._around_box) for cut in self._both_ways(side)]
        for rank, b in zip(ranks, self._box.tolist(), strict=True):
            found += self._of_one(rank, self._around_box[b]) if self._around_box else ()
        return [*found, *(cut for side in several for cut in self._both_ways(side))]

    def learn(self, certificate: Mapping[str, Any] | None) -> bool:
        """Keep the prices of a certificate of another demand on this machine; False where it has none."""
        if certificate is None or certificate.get("argument") != "prices":
            return False
        length = np.array(certificate["length"], dtype=np.int64)
        links = self._links
        if any(np.array_equal(length, known.length) for known in self._prices):
            return True
        everybody = np.zeros(links.nodes, dtype=bool)
        everybody[self._ranks] = True
        begin = distances(links, links.delay, everybody)[links.src]
        left = distances(links.reverse, links.delay, everybody)[links.dst]
        left = np.where(left < UNREACHABLE, left + links.delay, UNREACHABLE)
        alone = Colours(np.arange(links.nodes), np.arange(links.links), links.members, np.ones_like(links.members))
        weight = earned([resources_of(links, alone, begin, left)], [length])
        if not weight:
            return False
        distance = np.array([distances(links, length, [int(u)])[self._ranks] for u in self._ranks])
        earning = Earning(list(weight.values()), np.array(list(weight), dtype=np.int64))
        self._prices = [*self._prices, Priced(length, distance, earning)][-MOST_PRICES:]
        return True

    def strongest(self, demand: IntArray) -> Proven:
        """The strongest bound of a demand, bytes from rank to rank, shape (ranks, ranks), nothing on the diagonal."""
        return self._with_cuts(demand, len(self._cuts))

    def of_boxes(self, demand: IntArray, strongest: Proven) -> Proven:
        """The same without the cuts around several boxes: what it takes if nothing is narrow beyond boxes. It is the
        ``strongest`` where there are no such cuts."""
        several = 2 * len(self._in_several)
        return self._with_cuts(demand, len(self._cuts) - several) if several else strongest

    def _with_cuts(self, demand: IntArray, cuts: int) -> Proven:
        if not demand.any():
            return NOTHING
        best = self._pair_or(demand, self._cut_of(demand, cuts))
        for priced in self._prices:
            needed = exact_dot(demand, priced.distance)
            seconds = priced.earning.least(self._links, needed) if needed else Fraction(0)
            if seconds > best.seconds:
                best = _of_prices(self._links, priced, seconds)
        return best if self._timed is None else self._timed.stronger(demand, best)

    def mixture(self, demands: Sequence[IntArray]) -> Mixture:
        """The mixture of cuts and kept prices that proves most of every average of these demands."""
        if len(self._ranks) < 2 or not all(demand.any() for demand in demands):
            return Mixture((Fraction(1),), tuple((NOTHING,) for _ in demands))
        about = np.array([[*self._about_cuts(demand), *self._about_prices(demand)] for demand in demands])
        weight = _most_of_the_least(about)
        taken = np.flatnonzero(weight > LEAST_WEIGHT)
        shares = [Fraction(float(w)).limit_denominator(FINEST) for w in weight[taken].tolist()]
        rows = [tuple(self._exactly(int(c), demand) for c in taken) for demand in demands]
        return Mixture(tuple(share / sum(shares) for share in shares), tuple(rows))

    def _exactly(self, argument: int, demand: IntArray) -> Proven:
        """What a cut or, numbered behind the cuts, a price vector proves of a demand."""
        if argument < len(self._cuts):
            return self._proven_by_cut(argument, demand)
        priced = self._prices[argument - len(self._cuts)]
        needed = exact_dot(demand, priced.distance)
        return _of_prices(self._links, priced, priced.earning.least(self._links, needed)) if needed else NOTHING

    def _about_prices(self, demand: IntArray) -> list[float]:
        """What every price vector proves, in floats."""
        found = []
        for priced in self._prices:
            slope, offset = priced.earning.lines(self._links, MOST_LINES)
            needed = float(exact_dot(demand, priced.distance))
            found.append(float((slope * needed + offset).min()) if needed else 0.0)
        return found

    def _about_cuts(self, demand: IntArray) -> FloatArray:
        """What every cut proves, in floats."""
        needed = self._crossing_bytes(demand)
        seconds = (self._lines[:, 0] * needed[:, None] + self._lines[:, 1]).min(axis=1)
        return np.where(needed > 0, seconds, 0.0)

    def _crossing_bytes(self, demand: IntArray) -> FloatArray:
        """What has to pass every cut, in floats."""
        if not self._cuts:
            return np.zeros(0)
        amounts = demand.astype(np.float64)
        out, into = amounts.sum(axis=1), amounts.sum(axis=0)
        columns = [np.stack([out, into], axis=1)]
        if self._around_box:
            boxes = len(self._around_box)
            inside = np.where(self._box[:, None] == self._box, amounts, 0.0)
            out, into = out - inside.sum(axis=1), into - inside.sum(axis=0)
            around = [np.bincount(self._box, amount, minlength=boxes) for amount in (out, into)]
            columns += [np.stack(around, axis=1), np.stack([out, into], axis=1)]
        here, there = self._in_several, 1 - self._in_several
        columns.append(np.stack([(here @ amounts * there).sum(axis=1), (there @ amounts * here).sum(axis=1)], axis=1))
        return np.concatenate(columns).reshape(-1)

    def _cut_of(self, demand: IntArray, cuts: int) -> Proven:
        """The strongest of the first cuts."""
        return self._proven_by_cut(int(np.argmax(self._about_cuts(demand)[:cuts])), demand)

    def _proven_by_cut(self, number: int, demand: IntArray) -> Proven:
        """What a cut proves, exactly."""
        return self._proven(self._cuts[number], self._earning[number], demand)

    def _proven(self, cut: Cut, earning: Earning, demand: IntArray) -> Proven:
        needed = int(demand[np.ix_(cut.origins[self._ranks], cut.goals[self._ranks])].sum())  # below 2^63: MOST_BYTES
        return of_cut(self._instance, cut, earning.least(self._links, needed)) if needed else NOTHING

    def _pair_or(self, demand: IntArray, best: Proven) -> Proven:
        """What a pair proves alone, where that is more than the ``best``: the farthest that sends anything, of these
        the one that sends most; and the one that sends most of all, and of all in different boxes."""
        away = np.where(demand > 0, self._away, 0)
        farthest = np.where(away == int(away.max()), demand, 0)
        apart = np.where(self._box[:, None] != self._box, demand, 0)
        for i, j in {divmod(int(np.argmax(those)), len(demand)) for those in (farthest, demand, apart)}:
            if not demand[i, j] or self._alone_s(i, j, int(demand[i, j])) <= float(best.seconds):
                continue
            for cut, earning in self._cuts_of_pair(i, j):
                found = self._proven(cut, earning, demand)
                best = found if found.seconds > best.seconds else best
        return best

    def _alone_s(self, i: int, j: int, amount: int) -> float:
        """Seconds in which so many bytes alone go from one to the other, so that no bound of theirs is more."""
        if self._lines_of_pairs is None:
            return np.inf
        least, each = (column[i, j] for column in self._lines_of_pairs)
        return float(least + each * amount) * (1 + SAME) if amount <= MUCH else np.inf

    @cached_property
    def _lines_of_pairs(self) -> tuple[FloatArray, FloatArray] | None:
        """Seconds without bytes, and a byte, of a way from rank to rank, for up to :data:`MUCH` bytes, shape (ranks,
        ranks): the least time is concave in the bytes, so it lies below the line through two larger sizes. None where
        the machine is too large for it."""
        machine = self._instance.machine
        much, more = (quickest(Routes.of(self._instance, size)) for size in (MUCH, 2 * MUCH))
        if much is None or more is None:
            return None
        place = np.searchsorted(machine.ranks, self._ranks)
        first, second = much[np.ix_(place, place)], more[np.ix_(place, place)]
        with np.errstate(invalid="ignore"):
            each = (second - first) / MUCH
            least = 2 * first - second + SAME * second  # by as much as times are off
        return np.nan_to_num(least, nan=np.inf), np.nan_to_num(each, nan=np.inf)

    def _cuts_of_pair(self, i: int, j: int) -> list[tuple[Cut, Earning]]:
        """Those around its ranks, and around their boxes where these are two."""
        if (i, j) not in self._of_pairs:
            u, v = (self._alone(int(self._ranks[k])) for k in (i, j))
            sides = [u, ~v]
            if self._box[i] != self._box[j]:
                sides += [self._around_box[self._box[i]], ~self._around_box[self._box[j]]]
            cuts = [Cut(side, u, v) for side in sides]
            if len(self._of_pairs) == MOST_PAIRS:
                self._of_pairs.clear()
            self._of_pairs[i, j] = [(cut, Earning.over(self._links, *cut)) for cut in cuts]
        return self._of_pairs[i, j]

    def _alone(self, *ranks: int) -> BoolArray:
        """These ranks without any switch."""
        inside = np.zeros(self._links.nodes, dtype=bool)
        inside[list(ranks)] = True
        return inside

    def _around(self, group: Sequence[int]) -> BoolArray:
        """The group's ranks, and the switches that links join to some of them and to no other rank."""
        links, inside = self._links, self._alone(*group)
        own, foreign = inside.copy(), ~inside & ~links.is_switch
        for v in np.flatnonzero(links.is_switch).tolist():
            near = np.concatenate([links.dst[links.src == v], links.src[links.dst == v]])
            inside[v] = own[near].any() and not foreign[near].any()
        return inside

    def _both_ways(self, side: BoolArray) -> tuple[Cut, Cut]:
        """What leaves a side, and what comes in."""
        member = self._alone(*self._ranks.tolist())
        return Cut(side, side & member, ~side & member), Cut(~side, ~side & member, side & member)

    def _of_one(self, rank: int, side: BoolArray) -> tuple[Cut, Cut]:
        """What one rank of a side sends beyond it, and receives from there."""
        one, beyond = self._alone(rank), ~side & self._alone(*self._ranks.tolist())
        return Cut(side, one, beyond), Cut(~side, beyond, one)


def _most_of_the_least(about: FloatArray) -> FloatArray:
    """Weights y >= 0 that sum to 1 and for which the least row of ``about @ y`` is most; shape (demands, arguments)."""
    demands, arguments = about.shape
    unit = max(float(about.max()), 1e-300)
    cost = np.append(np.zeros(arguments), -1.0)
    rows = np.column_stack([-about / unit, np.ones(demands)])
    whole = np.append(np.ones(arguments), 0.0)[None, :]
    found = linprog(cost, rows, np.zeros(demands), whole, np.ones(1), method="highs")
    weight: FloatArray = np.eye(arguments)[int(np.argmax(about.min(axis=0)))]
    if found.x is not None:
        weight = np.maximum(np.asarray(found.x[:arguments], dtype=np.float64), 0.0)
    return weight


def of_cut(instance: FabricInstance, cut: Cut, seconds: Fraction) -> Proven:
    origins, goals = np.flatnonzero(cut.origins), np.flatnonzero(cut.goals)
    certificate = {
        "argument": "cut",
        "inside": np.flatnonzero(cut.inside).tolist(),
        "origins": origins.tolist(),
        "goals": goals.tolist(),
    }

    def words() -> str:
        names = [instance.machine.names[int(ends[0])] for ends in (origins, goals)]
        first, last = (
            name if len(ends) == 1 else f"{len(ends)} ranks with {name}"
            for name, ends in zip(names, (origins, goals), strict=True)
        )
        return f"what must pass from {first} to {last} takes {shown(float(seconds), SECONDS)}"

    return Proven(seconds, "cut", words, lambda: certificate)


def _of_prices(links: Links, priced: Priced, seconds: Fraction) -> Proven:
    def certificate() -> dict[str, Any]:
        return {"argument": "prices", "length": priced.length.tolist(), "away_ticks": 0, "ticks_per_s": links.ticks}

    words = f"at prices kept from another demand on {int((priced.length > 0).sum())} links"
    return Proven(seconds, "prices", lambda: words, certificate)
