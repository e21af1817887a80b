"""That no more than so many chunks of an allreduce fit: prices at which one chunk alone costs more than its share.

A plan of C chunks is C plans of one chunk that share the arcs. Let a crossing of arc e in step s cost p[s, e] >= 0.
All arcs together earn at most W = sum of p[s, e] c_e r_s for steps of r_s rounds, so one of the C chunks pays W / C or
less. If no allreduce of one chunk, without any capacity, is as cheap as that, then C chunks do not fit. This question
is asked for every way to cut R rounds into S steps. First it is answered by cases, which the check goes through again
(:mod:`synth_peers.sccl.check.joining_sets`): whether a set of crossings as cheap as that joins all ranks. If one
does, by the exact program of :mod:`sums` with one chunk and one row more, small whatever C is; that it has no point is
the solver's word.

The prices are the duals of the program that packs schedules of one chunk (columns) into the arcs, in parts if need be:

    max sum of x   subject to   sum of use[s, e] x <= c_e r_s

(over orbits of arcs, as a packing may be replaced by the average of its images).

Columns come from a family that is cheap to price, by subsets of the members: trees to one rank and from there, or to a
few and maybe others near them, who all send what they have to each of the few in one step. What the solver finds
beyond them (recursive doubling, say) is a column from then on. Column generation: Gilmore and Gomory, Operations
Research 9 (1961).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, islice, permutations
from typing import Any

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.graph.symmetry import orbits
from synth.kernels import jit
from synth.options import RunOptions
from synth.solvers import program
from synth.solvers.rows import Row
from synth_peers.sccl.check.joining_sets import JoiningSets
from synth_peers.sccl.programs import sums
from synth_peers.sccl.programs.lp_relaxation import lengths_of
from synth_peers.sccl.programs.rank_arcs import RankArcs

Columns = dict[bytes, FloatArray]
"""Crossings by step and orbit of arcs, flat, by their bytes."""
Hubs = tuple[list[int], list[int], list[tuple[int, list[int]]]]
"""Ranks, the arcs among them, other ranks with their arcs to each of them."""

MOST_MEMBERS = 8  # the pricing looks at all subsets of subsets: 3^8 an arc and step
MOST_HUBS = 4  # ranks that exchange at once
MOST_IMAGES = 500  # renumberings of the ranks
MOST_SPLITS = 64  # ways to cut the rounds into steps
MOST_CROSSINGS = 1_000  # steps times arcs: rows of the linear program
FINEST = 2520  # prices are rounded to multiples of this part of the largest
ROUNDS = 300  # of pricing until the linear program is left as it is
FOUND = 30  # columns by the solver for one way to cut the rounds
KEPT = 40  # columns of one round of pricing
SMOOTH = 0.6  # of the last prices in the next ones
MOST_WORK = 10_000_000  # for the cases of one way to cut the rounds
NARROW = 1e-4  # chunks between the packing and the bound that end the pricing
HUGE = 1e18


@dataclass
class OneChunk:
    """Packings and proofs for one instance's allreduce, kept for the next question. ``copies``: whether complete sums
    may replace what a rank holds."""

    arcs: RankArcs
    members: Sequence[int]
    copies: bool
    splits: dict[tuple[int, ...], _Split] = field(default_factory=dict)
    columns: dict[int, Columns] = field(default_factory=dict)

    @cached_property
    def orbits(self) -> FloatArray:
        """Which arcs are the same but for a renumbering, shape (arcs, orbits), ones and zeros."""
        orbit = _orbits(self.arcs, self.members)
        return np.eye(int(orbit.max()) + 1)[orbit]

    def fits(self, steps: int, rounds: int) -> bool:
        """Whether the question is small enough to be asked here."""
        small = len(self.members) <= MOST_MEMBERS and steps * self.arcs.count <= MOST_CROSSINGS
        return small and math.comb(rounds - 1, steps - 1) <= MOST_SPLITS

    def impossible(
        self, question: tuple[int, int, int], options: Callable[[], RunOptions]
    ) -> tuple[int | None, float, float]:
        """The fewest chunks, no more than the question's, that are refuted; None if there are none. Then the seconds
        of the solver for building and solving. ``options``: those of now. Raises ``RuntimeError`` when a solver
        fails."""
        steps, rounds, chunks = question
        splits = [self._split(lengths) for lengths in sorted(lengths_of(steps, rounds), key=max)]
        for split in splits:
            split.price(chunks, options())
            if split.packed >= chunks - NARROW or options().out_of_time():
                return None, *_seconds(splits)
        fewest = _more_than_packed(splits)
        while fewest <= chunks and all(
            split.refute(fewest, options) or split.packed >= fewest - NARROW for split in splits
        ):
            if _more_than_packed(splits) == fewest:
                return fewest, *_seconds(splits)
            fewest = _more_than_packed(splits)
        return None, *_seconds(splits)

    def certificate(self, steps: int, rounds: int) -> dict[str, Any] | None:
        """The argument ``joining`` by the prices of every way to cut the rounds; None where some rest on the solver."""
        splits = [self._split(lengths) for lengths in lengths_of(steps, rounds)]
        proofs = [split.proof for split in splits if split.proof is not None]
        if len(proofs) < len(splits):
            return None
        of_link = np.zeros(sum(map(len, self.arcs.links)), dtype=np.int64)
        for e, links in enumerate(self.arcs.links):
            of_link[[link for link, _ in links]] = e
        deliveries = len(self.members) * (len(self.members) - 1)
        price = np.stack([proof.T[of_link] for proof in proofs])
        return {"argument": "joining", "price": price, "of": np.zeros(deliveries, dtype=np.int64)}

    def _split(self, lengths: Sequence[int]) -> _Split:
        key = tuple(int(length) for length in lengths)
        if key not in self.splits:
            columns = self.columns.setdefault(len(key), {})  # what one chunk can do has to do with no length
            self.splits[key] = _Split(self.arcs, self.members, self.copies, key, self.orbits, columns)
        return self.splits[key]


def _more_than_packed(splits: Sequence[_Split]) -> int:
    return math.floor(max(split.packed for split in splits) + NARROW) + 1


def _seconds(splits: Sequence[_Split]) -> tuple[float, float]:
    """Of the solver, since the last time."""
    spent = sum(split.build_s for split in splits), sum(split.solve_s for split in splits)
    for split in splits:
        split.build_s = split.solve_s = 0.0
    return spent


@dataclass
class _Split:
    """One way to cut the rounds. ``packed``: chunks that the columns bring, in parts; ``refuted``: the fewest chunks
    that are refuted (0: none), by ``proof``, whole prices, if not by the solver. ``prices``, shape (steps, arcs), prove
    ``packed`` for the columns known."""

    arcs: RankArcs
    members: Sequence[int]
    copies: bool
    lengths: tuple[int, ...]
    orbits: FloatArray
    columns: Columns
    packed: float = 0.0
    refuted: int = 0
    proof: IntArray | None = None
    prices: FloatArray = field(init=False)
    room: IntArray = field(init=False)
    build_s: float = 0.0
    solve_s: float = 0.0

    def __post_init__(self) -> None:
        self.room = np.outer(np.array(self.lengths, dtype=np.int64), self.arcs.capacity)
        self.prices = np.ones(self.room.shape)
        draw = np.random.default_rng(0)
        for _ in range(0 if self.columns else 4):
            for _, use in self.patterns(draw.random(self.room.shape)):
                self.add(use)

    def add(self, use: IntArray) -> bool:
        """Whether the column is a new one."""
        folded = (use @ self.orbits).ravel()
        key = folded.tobytes()
        new = key not in self.columns
        self.columns[key] = folded
        return new

    def patterns(self, price: FloatArray) -> list[tuple[float, IntArray]]:
        """Cheapest schedules of the family by hubs and step, with what they pay."""
        return list(_patterns(self.arcs, self.members, price)) if self.copies else []

    def price(self, chunks: int, options: RunOptions) -> None:
        """Pack columns, and find those that pay, until there are none, or until ``chunks`` chunks are packed."""
        least, centre, share = math.inf, None, self.orbits / self.orbits.sum(axis=0)
        for _ in range(ROUNDS if self.columns else 0):
            self.packed, duals = self._packing()
            if self.packed >= chunks - NARROW or options.out_of_time():
                return
            centre = duals if centre is None else SMOOTH * centre + (1 - SMOOTH) * duals
            news = False
            for price in (duals, centre):
                found = sorted(self.patterns(price), key=lambda pair: pair[0])
                known = np.array(list(self.columns.values())) @ (price @ share).ravel()
                cheapest = min([float(known.min()), *(cost for cost, _ in found)])
                if cheapest > 0 and (bound := float((self.room * price).sum()) / cheapest) < least:
                    least, self.prices = bound, price
                news |= sum(self.add(use) for cost, use in found[:KEPT] if cost < 1 - 1e-9) > 0
            if not news or least < self.packed + NARROW:
                return

    def _packing(self) -> tuple[float, FloatArray]:
        """Chunks that the columns and their images bring, and the duals, the same for all arcs of an orbit."""
        from synth.solvers.lp import linprog

        uses: Any = np.array(list(self.columns.values())).T
        found: Any = linprog(-np.ones(uses.shape[1]), uses, (self.room @ self.orbits).ravel(), method="highs")
        if found.status != 0:
            raise RuntimeError(f"the packing of columns failed: {found.message}")
        duals = np.maximum(-found.ineqlin.marginals, 0.0).reshape(len(self.room), -1)
        return -float(found.fun), duals @ self.orbits.T

    def refute(self, chunks: int, options: Callable[[], RunOptions]) -> bool:
        """Whether ``chunks`` chunks are refuted; what the solver finds instead is a column more."""
        for _ in range(FOUND):
            if 0 < self.refuted <= chunks:
                return True
            self.price(chunks, options())
            if self.packed >= chunks - NARROW:
                return False
            if self._too_dear_to_join(chunks):
                self.refuted, self.proof = chunks, whole_prices(self.prices)
                return True
            answer, use = self._cheap(chunks, options())
            if answer == "infeasible":
                self.refuted, self.proof = chunks, None
            elif use is None or not self.add(use):
                return False
        return 0 < self.refuted <= chunks

    def _share(self, chunks: int) -> int:
        """What one of so many chunks pays at most at the whole prices."""
        return int((self.room.astype(object) * whole_prices(self.prices)).sum()) // chunks

    def _too_dear_to_join(self, chunks: int) -> bool:
        """Whether crossings that join all ranks cost more than a chunk's share, if cases show it soon."""
        price = whole_prices(self.prices)
        pairs = list(zip(self.arcs.tail.tolist(), self.arcs.head.tolist(), strict=True))
        try:
            return JoiningSets(pairs, price.tolist(), self.members, self.members, MOST_WORK).cost_more(
                self._share(chunks)
            )
        except ValueError:
            return False

    def _cheap(self, chunks: int, options: RunOptions) -> tuple[program.Answer, IntArray | None]:
        """An allreduce of one chunk that pays no more than its share, or the solver's word that there is none."""
        price = whole_prices(self.prices)
        model = sums.build(self.arcs, self.members, 1, len(self.lengths), len(self.lengths), self.copies)
        row = no_more_than_its_share(model, price, self._share(chunks))
        model.program.add("no_more_than_its_share", "", [((), row)])
        solved = program.solve(model.program, options)
        self.build_s += solved.build_s
        self.solve_s += solved.solve_s
        if solved.answer != "feasible":
            return solved.answer, None
        use = np.zeros(self.room.shape, dtype=np.int64)
        for s, _, e, _ in _needed(self.arcs, self.members, model.sends(solved.value)):
            use[s, e] += 1
        return "feasible", use


def no_more_than_its_share(model: sums.Sums, price: IntArray, share: int) -> Row:
    """(8): at whole prices of a crossing by step and arc, one chunk pays no more than its share of what arcs earn."""
    return [(int(price[s, e]), x) for x, (s, e) in _crossings(model) if price[s, e]], "<=", share


def _orbits(arcs: RankArcs, members: Sequence[int]) -> IntArray:
    """The orbit of every arc under renumberings of the ranks that keep arcs, capacities and members, shape (arcs,).
    Of many renumberings only the first are looked at."""
    from networkx import DiGraph
    from networkx.algorithms.isomorphism import DiGraphMatcher, categorical_edge_match, categorical_node_match

    ends = list(zip(arcs.tail.tolist(), arcs.head.tolist(), strict=True))
    graph: Any = DiGraph()
    graph.add_nodes_from((v, {"member": v in set(members)}) for v in range(arcs.nodes))
    graph.add_edges_from((u, v, {"room": c}) for (u, v), c in zip(ends, arcs.capacity.tolist(), strict=True))
    same = categorical_node_match("member", None), categorical_edge_match("room", None)
    images = islice(DiGraphMatcher(graph, graph, *same).isomorphisms_iter(), MOST_IMAGES)
    number = {pair: e for e, pair in enumerate(ends)}
    moved = {tuple(number[image[u], image[v]] for u, v in ends) for image in images}
    least = orbits(len(ends), [np.array(image, dtype=np.int64) for image in moved])
    return np.unique(least, return_inverse=True)[1].reshape(-1).astype(np.int64)


def whole_prices(price: FloatArray) -> IntArray:
    """Prices as whole numbers up to :data:`FINEST`. What they prove is proven by them as they are then."""
    return np.round(price / max(float(price.max()), 1e-300) * FINEST).astype(np.int64)


def _crossings(model: sums.Sums) -> Iterator[tuple[int, tuple[int, int]]]:
    """Variables of sends, with step and arc."""
    for sends in (model.add, model.copy):
        for (_, e, s), x in sends.items():
            yield x, (s, e)


def _needed(arcs: RankArcs, members: Sequence[int], sends: Sequence[sums.SumSend]) -> list[sums.SumSend]:
    """Sends of one chunk without those that the others can do without: a point has more of them where they are free."""
    kept = list(sends)
    for send in reversed(sends):
        fewer = [other for other in kept if other != send]
        if _complete(arcs, members, fewer):
            kept = fewer
    return kept


def _complete(arcs: RankArcs, members: Sequence[int], sends: Sequence[sums.SumSend]) -> bool:
    """Whether these sends, in order of steps, bring all contributions to all members. They add none twice."""
    everyone = 2 ** len(members) - 1
    held = [0] * arcs.nodes
    for k, v in enumerate(members):
        held[v] = 1 << k
    for _, sent in groupby(sends, key=lambda send: send[0]):
        before = held.copy()
        for _, _, e, adds in sent:
            what = before[arcs.tail[e]]
            if not adds and what != everyone:
                return False
            held[arcs.head[e]] |= what
    return all(held[v] == everyone for v in members)


def _patterns(arcs: RankArcs, members: Sequence[int], price: FloatArray) -> Iterator[tuple[float, IntArray]]:
    """Gather at hubs, exchange, spread: the cheapest for every set of hubs and step of their exchange."""
    steps, everyone = len(price), 2 ** len(members) - 1
    own = np.zeros(arcs.nodes, dtype=np.int64)
    own[list(members)] = 1 << np.arange(len(members))
    up, taken = _gathered(price, arcs.tail, arcs.head, own, everyone)
    down, given = _gathered(np.ascontiguousarray(price[::-1]), arcs.head, arcs.tail, own, everyone)
    for hubs, between, others in _hubs(arcs):
        for step in range(steps):
            after = step + (len(hubs) > 1)
            helped = [up[step, v] + price[step, to_hubs].sum() for v, to_hubs in others]
            rows = np.array([*up[step, hubs], *helped])
            rows[len(hubs) :, 0] = 0.0  # another may help, or not
            summed, ups = _dealt(rows, everyone)
            spread, downs = _dealt(down[steps - after, hubs], everyone)
            cost = float(summed + spread + price[step, between].sum())
            if cost < HUGE:
                use = np.zeros(price.shape, dtype=np.int64)
                use[step, between] += 1
                for v, part in zip(hubs, downs.tolist(), strict=True):
                    _trace(given, arcs.head, arcs.tail, steps - after, v, part, use[::-1])
                for (v, to_hubs), part in zip([*((v, []) for v in hubs), *others], ups.tolist(), strict=True):
                    if part:
                        _trace(taken, arcs.tail, arcs.head, step, v, part, use)
                        use[step, to_hubs] += 1
                yield cost, use


def _hubs(arcs: RankArcs) -> Iterator[Hubs]:
    """One rank, or a few that have arcs to each other, these arcs, and who has arcs to all of them."""
    ends = {pair: e for e, pair in enumerate(zip(arcs.tail.tolist(), arcs.head.tolist(), strict=True))}
    open_ = [[v] for v in range(arcs.nodes)]
    while open_:
        hubs = open_.pop()
        far = [v for v in range(arcs.nodes) if v not in hubs and all((v, u) in ends for u in hubs)]
        others = [(v, [ends[v, u] for u in hubs]) for v in far if len(hubs) > 1]
        yield hubs, [ends[pair] for pair in permutations(hubs, 2)], others
        if len(hubs) < MOST_HUBS:
            open_ += [[*hubs, v] for v in far if v > hubs[-1] and all((u, v) in ends for u in hubs)]


@jit
def _gathered(
    price: FloatArray, tail: IntArray, head: IntArray, own: IntArray, everyone: int
) -> tuple[FloatArray, IntArray]:
    """What it costs at least that a rank holds the sum of a subset (bits) after some steps, shape (steps + 1, nodes,
    subsets), and which part comes over an arc in a step for that, shape (steps, arcs, subsets), arcs in order."""
    steps, arcs = price.shape
    cost = np.full((steps + 1, len(own), everyone + 1), HUGE)
    part = np.zeros((steps, arcs, everyone + 1), dtype=np.int64)
    for v in range(len(own)):
        cost[0, v, own[v]] = 0.0
    for t in range(steps):
        cost[t + 1] = cost[t]
        for e in range(arcs):
            here, there = cost[t + 1, head[e]], cost[t, tail[e]]
            for whole in range(everyone, 0, -1):  # smaller ones are as they were before this arc
                some = whole
                while some > 0:
                    paid = here[whole ^ some] + price[t, e] + there[some]
                    if paid < here[whole] - 1e-12:
                        here[whole] = paid
                        part[t, e, whole] = some
                    some = (some - 1) & whole
    return cost, part


@jit
def _dealt(cost: FloatArray, everyone: int) -> tuple[float, IntArray]:
    """Everyone's contribution in exactly one of several hands, shape (hands, subsets): the least sum, and whose."""
    hands = len(cost)
    least = cost.copy()
    part = np.zeros(cost.shape, dtype=np.int64)
    for k in range(1, hands):
        for whole in range(everyone + 1):
            least[k, whole] = least[k - 1, whole] + cost[k, 0]
            some = whole
            while some > 0:
                paid = least[k - 1, whole ^ some] + cost[k, some]
                if paid < least[k, whole]:
                    least[k, whole] = paid
                    part[k, whole] = some
                some = (some - 1) & whole
    of = np.zeros(hands, dtype=np.int64)
    left = everyone
    for k in range(hands - 1, 0, -1):
        of[k] = part[k, left]
        left ^= of[k]
    of[0] = left
    return least[hands - 1, everyone], of


@jit
def _trace(part: IntArray, tail: IntArray, head: IntArray, step: int, rank: int, subset: int, use: IntArray) -> None:
    """Count the crossings that bring a subset's sum to a rank in that many steps."""
    open_ = [(step, rank, subset)]
    while len(open_) > 0:
        t, v, left = open_.pop()
        if t == 0:
            continue
        for e in range(len(tail) - 1, -1, -1):
            some = part[t - 1, e, left] if head[e] == v else 0
            if some > 0:
                use[t - 1, e] += 1
                open_.append((t - 1, tail[e], some))
                left ^= some
        open_.append((t - 1, v, left))
