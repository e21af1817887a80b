"""Bound 5 for machines whose ranks are all equally far apart: flows over time of every demand, shared by its block.

Let every direct route from rank to rank take the latency a, and the schedule end at T = K a + x. What leaves at time t
can leave again at t + a, so time falls into the bins [k a, k a + x) and [k a + x, (k + 1) a), and a rate that is
constant in every bin loses nothing. For each demand (block b from s to t) let f be a flow over time of all its bytes,
and g what a block puts on an arc in a bin:

    minimise x:  f_bst(arc, bin) <= g_b(arc, bin),
                 sum over b and arcs of a link of g_b <= bandwidth * length of the bin.

Every schedule gives such flows (what brings a byte to t is a chain of transfers), so x is a bound; what the flows of a
block share is counted once, however they are joined to trees or sums. That is the cut relaxation of packing trees over
time (Edmonds' theorem where nothing else holds; Ford and Fulkerson 1958 for one demand).

The dual gives every demand potentials over ranks and time, whose level sets are moments: theta_v is when v comes to the
side of the origin. From these the bound is computed again, exactly, and returned
(:mod:`synth_models.fabric.check.moments` states the argument and verifies it).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from synth.arrays import IntArray
from synth.solvers.lp import linprog
from synth_models.fabric.bounds.arrays import FINEST as TICKS
from synth_models.fabric.bounds.arrays import ROOM, Links
from synth_models.fabric.bounds.gossip import pays_its_way
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.problem.blocks import EVERYONE

_linprog: Any = linprog  # its published types reject sparse matrices
MOST_COLUMNS = 30_000  # of the linear program: about a second
MOST_HOPS = 24  # latencies within the bound
FINEST = 30  # a tick of latency in at most so many halvings
WEIGHTS = 2**20  # whole numbers for the dual's prices


@dataclass(frozen=True, eq=False)
class Arcs:
    """Direct routes from rank to rank: ``src``, ``dst`` (ranks), ``first`` and ``last`` (links, the same where ranks
    are joined directly), ``delay`` ticks for all of them."""

    src: IntArray
    dst: IntArray
    first: IntArray
    last: IntArray
    delay: int

    @classmethod
    def of(cls, links: Links) -> Arcs | None:
        """Of a machine without switches, or with one in the middle, where all are equally far apart and no links take
        turns; else None."""
        switch = links.is_switch
        inner = np.unique(np.concatenate([links.src[switch[links.src]], links.dst[switch[links.dst]]]))
        if np.any(links.group >= 0) or len(inner) > 1 or not links.links:
            return None
        if not len(inner):
            if np.ptp(links.delay) or not links.delay[0]:
                return None
            every = np.arange(links.links)
            return cls(links.src, links.dst, every, every, int(links.delay[0]))
        up, down = np.flatnonzero(switch[links.dst]), np.flatnonzero(switch[links.src])
        if len(up) + len(down) < links.links or not len(up) or not len(down):
            return None
        if np.ptp(links.delay[up]) or np.ptp(links.delay[down]):
            return None
        first, last = (column.reshape(-1) for column in np.meshgrid(up, down, indexing="ij"))
        apart = links.src[first] != links.dst[last]
        first, last = first[apart], last[apart]
        delay = int(links.delay[up[0]] + links.delay[down[0]])
        return cls(links.src[first], links.dst[last], first, last, delay) if delay else None

    @property
    def payers(self) -> list[tuple[IntArray, ...]]:
        """Which links of every route may pay."""
        if np.array_equal(self.first, self.last):
            return [(self.first,)]
        return [(self.first, self.last), (self.first,), (self.last,)]


@dataclass(frozen=True)
class Demand:
    """A block from one of its origins to one of its goals."""

    block: int
    source: int
    target: int


def strongest_moments(links: Links, more: Callable[[], bool], known: Proven) -> Proven:
    """The bound of flows over time if it is stronger than ``known`` and small enough to compute."""
    arcs = Arcs.of(links)
    demands = demands_of(links)
    if arcs is None or not pays_its_way(links) or not demands or not more():
        return known
    hops = int(known.seconds * links.ticks / arcs.delay) + 1  # T is in ((hops - 1) delay, hops * delay]
    for count in (hops, hops + 1):
        if count > MOST_HOPS or len(demands) * len(arcs.src) * 2 * count > MOST_COLUMNS:
            return known
        found = _within(links, arcs, demands, count)
        if found is not None:
            return found if found.seconds > known.seconds else known
    return known


def demands_of(links: Links) -> list[Demand]:
    """All of them."""
    members = links.members.tolist()
    found = []
    blocks = links.instance.blocks
    for b, (origin, goal) in enumerate(zip(blocks.origin.tolist(), blocks.goal.tolist(), strict=True)):
        sources, targets = ([v] if v != EVERYONE else members for v in (origin, goal))
        found += [Demand(b, s, t) for s in sources for t in targets if s != t]
    return found


def _within(links: Links, arcs: Arcs, demands: list[Demand], hops: int) -> Proven | None:
    """The bound if it lies within that many latencies, exactly: the best of what the prices of all links prove, and
    those of the first, and of the last links of the routes alone, each paid for by any of these."""
    best = None
    for paying in arcs.payers:
        program = FlowsOverTime(links, arcs, demands, hops - 1 if hops > 1 else 1, paying)
        potentials = program.solve()
        if potentials is None and len(paying) == len(arcs.payers[0]):  # all pay: T is greater
            return None
        if potentials is None:
            continue
        certified = Certified(links, arcs, program.hops, demands, potentials)
        for payers in arcs.payers:
            found = certified.proven(payers)
            best = found if best is None or (found is not None and found.seconds > best.seconds) else best
    return best


class FlowsOverTime:
    """The linear program for T = hops * a + x with 0 <= x <= a. Bin 2k is [k a, k a + x), bin 2k + 1 what is left of
    the latency; what is sent in bin i arrives in bin i + 2; the last bin in which anything arrives is 2 * hops.

    Columns: x in latencies, then g (block, arc, bin), then f and the stores, demand by demand; bytes in those of the
    largest block.
    """

    def __init__(
        self, links: Links, arcs: Arcs, demands: list[Demand], hops: int, paying: tuple[IntArray, ...]
    ) -> None:
        """``paying``: of every arc the links whose capacity counts."""
        self.links, self.arcs, self.demands, self.hops, self.paying = links, arcs, demands, hops, paying
        self.bins = 2 * hops - 1  # in which something can be sent
        size = links.instance.blocks.bytes
        self.whole = float(size.max())
        self.size = size / self.whole
        self.wide = len(arcs.src)

    def shared(self, block: int) -> IntArray:
        """Columns of what a block puts on every arc in every bin, shape (arcs, bins)."""
        return 1 + (block * self.wide + np.arange(self.wide)[:, None]) * self.bins + np.arange(self.bins)

    def solve(self) -> list[dict[int, np.ndarray[Any, Any]]] | None:
        """For every demand the potential of every rank in the bins 0..2 hops; None if T lies elsewhere."""
        links, arcs = self.links, self.arcs
        blocks = len(self.size)
        columns = 1 + blocks * self.wide * self.bins
        above: list[tuple[Any, Any, Any]] = []
        right: list[np.ndarray[Any, Any]] = []
        rows = 0
        seconds = float(Fraction(arcs.delay, links.ticks))
        for e in np.unique(np.concatenate(self.paying)).tolist():  # what a link carries
            on = np.flatnonzero(np.any([column == e for column in self.paying], axis=0))
            rate = float(links.rate[e] * links.unit) * seconds / self.whole
            for b in range(blocks):
                cells = self.shared(b)[on]
                above.append((rows + np.tile(np.arange(self.bins), len(on)), cells.reshape(-1), np.ones(cells.size)))
            odd = np.arange(self.bins) % 2
            above.append((rows + np.arange(self.bins), np.zeros(self.bins, dtype=int), np.where(odd, rate, -rate)))
            right.append(np.where(odd, rate, 0.0))
            rows += self.bins
        equal: list[tuple[Any, Any, Any]] = []
        level: list[float] = []
        ranks = np.flatnonzero(~links.is_switch).tolist()
        places = []
        for demand in self.demands:
            useful = np.flatnonzero((arcs.dst != demand.source) & (arcs.src != demand.target))
            own = columns + np.arange(len(useful) * self.bins).reshape(len(useful), self.bins)
            columns += own.size
            again = rows + np.arange(own.size)
            above.append((again, own.reshape(-1), np.ones(own.size)))
            above.append((again, self.shared(demand.block)[useful].reshape(-1), -np.ones(own.size)))
            right.append(np.zeros(own.size))
            rows += own.size
            place = {}
            for v in ranks:
                if v == demand.source:
                    continue
                at = len(level) + np.arange(2 * self.hops + 1)
                place[v] = at
                level += [0.0] * (2 * self.hops) + [-self.size[demand.block] if v == demand.target else 0.0]
                coming, going = own[arcs.dst[useful] == v], own[arcs.src[useful] == v]
                for cells, shift, sign in ((coming, 2, 1.0), (going, 0, -1.0)):
                    to = np.tile(at[shift : shift + self.bins], len(cells))
                    equal.append((to, cells.reshape(-1), np.full(cells.size, sign)))
                store = columns + np.arange(2 * self.hops + (v != demand.target))  # nothing may be lost at the goal
                columns += len(store)
                equal.append((at[: len(store)], store, -np.ones(len(store))))
                equal.append((at[1 : len(store) + 1][: len(at) - 1], store[: len(at) - 1], np.ones(len(at) - 1)))
            places.append(place)
        balance = -np.array(level)
        cost = np.zeros(columns)
        cost[0] = 1.0
        found = _linprog(
            cost, _matrix(above, rows, columns), np.concatenate(right), _matrix(equal, len(level), columns), balance,
            [(0.0, 1.0)] + [(0.0, None)] * (columns - 1), method="highs",
        )  # fmt: skip
        if found.x is None:
            return None
        self.point = found.x
        dual = found.eqlin.marginals
        return [{v: dual[at] for v, at in place.items()} for place in places]


def _matrix(entries: list[tuple[Any, Any, Any]], rows: int, columns: int) -> csr_array:
    r, c, v = (np.concatenate([entry[k] for entry in entries]) for k in range(3))
    return csr_array((v, (r, c)), shape=(rows, columns))


class Certified:
    """Moments from potentials, and the bound that they prove, in exact arithmetic."""

    def __init__(
        self,
        links: Links,
        arcs: Arcs,
        hops: int,
        demands: list[Demand],
        potentials: list[dict[int, Any]],
    ) -> None:
        self.links, self.arcs, self.hops = links, arcs, hops
        room = min(TICKS // links.ticks, ROOM // (4 * links.nodes * (hops + 1) * arcs.delay))
        self.finer = 1 << min(FINEST, max(room, 1).bit_length() - 1)
        self.ranks = np.flatnonzero(~links.is_switch)
        self.rows: list[tuple[Demand, int, IntArray]] = []  # demand, weight, and the bin from which every rank is late
        for demand, potential in zip(demands, potentials, strict=True):
            self._levels(demand, potential)

    def _levels(self, demand: Demand, potential: dict[int, Any]) -> None:
        """Level sets of the potential, which rises from 0 at the origin to its value at the goal."""
        end = 2 * self.hops + 1
        rise = np.zeros((len(self.ranks), end))
        for k, v in enumerate(self.ranks.tolist()):
            if v != demand.source:
                rise[k] = np.maximum.accumulate(np.abs(potential[v])[::-1])[::-1]  # falls in time but for rounding
        goal = int(np.searchsorted(self.ranks, demand.target))
        top = np.rint(rise * WEIGHTS).astype(np.int64)
        highest = int(top[goal, end - 1])
        levels = np.unique(top[(top > 0) & (top <= highest)])
        below = 0
        for level in levels.tolist():  # late are those whose potential is below the level
            since = np.array([int(np.argmax(row < level)) if np.any(row < level) else end for row in top])
            self.rows.append((demand, level - below, since))
            below = level

    def proven(self, payers: tuple[IntArray, ...]) -> Proven | None:
        """Where these links of every route pay; None if nothing is proven."""
        links, arcs, bins = self.links, self.arcs, 2 * self.hops - 1
        if not self.rows:
            return None
        size = links.instance.blocks.bytes.tolist()
        needed = sum(size[demand.block] * weight for demand, weight, _ in self.rows)
        place = np.full(links.nodes, -1)
        place[self.ranks] = np.arange(len(self.ranks))
        paid: dict[int, IntArray] = {}
        for demand, weight, since in self.rows:
            price = paid.setdefault(demand.block, np.zeros((len(arcs.src), bins), dtype=np.int64))
            sent = np.arange(bins)[None, :]
            late, early = since[place[arcs.src]][:, None], since[place[arcs.dst]][:, None]
            price += np.where((sent >= late) & (sent + 2 < early), weight, 0)
        most = np.max(np.stack(list(paid.values())), axis=0)
        found = self._least(needed * len(payers), most, payers)
        part = -1 if found is None else int(found * arcs.delay * self.finer) - 1
        if part < 0:
            return None
        seconds = Fraction(self.hops * arcs.delay * self.finer + part, links.ticks * self.finer)
        return Proven(seconds, "moments", self._words, lambda: self._certificate(part, payers))

    def _least(self, needed: int, price: IntArray, payers: tuple[IntArray, ...]) -> Fraction | None:
        """The x in latencies at which the links carry what is needed, with windows that move with x."""
        links = self.links
        per_x, fixed = Fraction(0), Fraction(0)
        for e in np.unique(np.concatenate(payers)).tolist():
            most = price[np.any([column == e for column in payers], axis=0)].max(axis=0)
            rate = Fraction(int(links.rate[e])) * links.unit * Fraction(self.arcs.delay, links.ticks)
            per_x += rate * (int(most[::2].sum()) - int(most[1::2].sum()))
            fixed += rate * int(most[1::2].sum())
        return min(Fraction(1), (needed - fixed) / per_x) if per_x > 0 else None

    def _certificate(self, part: int, payers: tuple[IntArray, ...]) -> dict[str, Any]:
        share = np.zeros(self.links.links, dtype=np.int64)
        share[np.concatenate(payers)] = 1
        delay = self.arcs.delay * self.finer
        when = [k // 2 * delay + (part if k % 2 else 0) for k in range(2 * self.hops + 2)]
        return {
            "argument": "moments",
            "finer": self.finer,
            "share": share.tolist(),
            "block": [demand.block for demand, _, _ in self.rows],
            "source": [demand.source for demand, _, _ in self.rows],
            "target": [demand.target for demand, _, _ in self.rows],
            "weight": [weight for _, weight, _ in self.rows],
            "since": [when[k] for _, _, since in self.rows for k in since.tolist()],
        }

    def _words(self) -> str:
        pairs = {(demand.source, demand.target) for demand, _, _ in self.rows}
        return (
            f"moments: {len(self.rows)} cuts that move with time between {len(pairs)} pairs of ranks, each of which "
            "every byte has to cross"
        )
