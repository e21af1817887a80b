"""Pack timed trees: the order of transfers to begin with, as if pieces were infinitely small.

On machines whose ranks are all equally far apart (:class:`synth_models.fabric.bounds.moments.Arcs`) time falls into
bins that latency maps onto each other: T = K a + x, bins of length x and a - x in turn. A *timed tree* of a block
takes an arc in a bin, and leaves a rank in the bin in which it came there or later. With y_j the bytes of tree j,

    minimise x:  sum over trees of a block of y_j = its bytes,
                 bytes on a link in a bin <= bandwidth * length of the bin,

by column generation: the dual prices links in bins, and the cheapest tree of every block under them, exactly by dynamic
programming over sets of ranks (Dreyfus and Wagner 1971, on the graph of ranks and bins), is added while it costs less
than its block is worth. Every tree becomes one piece or several, which follow each other through the bins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.kernels import jit
from synth.options import RunOptions
from synth.solvers.lp import linprog
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.gossip import pays_its_way
from synth_models.fabric.bounds.moments import Arcs
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.programs.continuous.certified_incumbent import CertifiedIncumbent
from synth_models.fabric.programs.continuous.order import Order, Pair
from synth_models.fabric.programs.continuous.problem import Problem, Row
from synth_models.fabric.programs.continuous.transfer_routes import TransferRoutes
from synth_models.fabric.scheduling.reversal import turned

_linprog: Any = linprog  # its published types reject sparse matrices
MOST_RANKS = 10
MOST_ITERATIONS = 200
SHARE, UNLIMITED_S = 0.3, 120.0  # of the time that is left, for one number of latencies
CLOSE = 1e-7
ROUNDS = (1, 2, 4, 8, 16, 32, 64)
LACK = 1e3  # cost of a byte that no tree carries, in latencies of the largest block

Tree = tuple[tuple[int, int], ...]  # arc and bin, in order of time


@dataclass
class _Packing:
    """Trees by block with their bytes, for T within ``hops`` latencies and one."""

    trees: list[tuple[int, Tree]]
    amount: list[float]


def orders(
    instance: FabricInstance, routes: TransferRoutes, incumbent: CertifiedIncumbent
) -> Iterator[tuple[Order, list[int]]]:
    """The packing's trees in more and more pieces each, with the urgency of every transfer; nothing where it does not
    apply."""
    blocks = instance.blocks
    inward = bool(np.all(blocks.origin == EVERYONE) and np.all(blocks.goal != EVERYONE))
    if not inward and np.any(blocks.origin == EVERYONE):
        return
    there = turned(instance) if inward else instance
    links = Links.of(there)
    arcs = Arcs.of(links)
    ranks = np.flatnonzero(~links.is_switch)
    alone = len(instance.members) == len(ranks) and pays_its_way(links)
    if arcs is None or not alone or len(ranks) > MOST_RANKS:
        return
    hops = int(incumbent.proven.seconds * links.ticks / arcs.delay)
    packing = None
    for count in (max(hops, 1), hops + 1, hops + 2):
        packing = packing or _packed(there, links, arcs, count, incumbent.options.part(SHARE, most_s=UNLIMITED_S))
    if packing is None:
        return
    for rounds in ROUNDS:
        order = _order(instance, routes, arcs, packing, rounds, inward)
        if order is not None:
            yield order


def _packed(instance: FabricInstance, links: Links, arcs: Arcs, hops: int, options: RunOptions) -> _Packing | None:
    """The packing if T is within ``hops`` and ``hops + 1`` latencies, and found in time."""
    largest = float(instance.blocks.bytes.max())
    size = instance.blocks.bytes / largest
    used = np.unique(np.concatenate([arcs.first, arcs.last]))
    row_of = np.full(links.links, -1)
    row_of[used] = np.arange(len(used))
    every = np.arange(len(arcs.src))
    pays = np.zeros((len(arcs.src), len(used)), dtype=bool)
    pays[every, row_of[arcs.first]] = True
    pays[every, row_of[arcs.last]] = True
    rate = links.rate[used] * float(links.unit) * arcs.delay / links.ticks / largest
    bins = 2 * hops - 1
    pricing = _Pricing.of(instance, links, arcs, bins)
    found, lacks = _Packing([], []), np.inf
    middle: FloatArray | None = None
    for _ in range(MOST_ITERATIONS):
        if options.out_of_time():
            break
        solved = _master(found.trees, size, pays, rate, bins)
        if solved is None:
            return None
        found.amount, lacks = solved.amount, solved.lacks
        # prices jump from vertex to vertex: their running mean leads to good trees sooner (Wentges 1997)
        middle = solved.price if middle is None else (middle + solved.price) / 2
        mean, real = ((pays @ price.reshape(len(used), bins)).clip(0) for price in (middle, solved.price))
        new = pricing.cheap(mean, real, solved.worth) or pricing.cheap(real, real, solved.worth)
        if not new:
            break
        known = set(found.trees)
        found.trees += [pair for pair in dict.fromkeys(_at_all_times(new, bins)) if pair not in known]
    found.trees = found.trees[: len(found.amount)]
    return None if not found.trees or lacks > CLOSE else found


class _Pricing(NamedTuple):
    """Finds cheap timed trees of every block. ``src``, ``dst``: of arcs, as places among the ranks. By block: its
    ``origin`` among the ranks, and which ranks want it, shape (ranks,)."""

    src: IntArray
    dst: IntArray
    bins: int
    origin: list[int]
    wanted: list[BoolArray]

    @classmethod
    def of(cls, instance: FabricInstance, links: Links, arcs: Arcs, bins: int) -> _Pricing:
        """Of an instance's blocks."""
        ranks = np.flatnonzero(~links.is_switch)
        place = np.full(links.nodes, -1)
        place[ranks] = np.arange(len(ranks))
        origins, wanted = place[instance.blocks.origin], []
        for origin, goal in zip(origins.tolist(), instance.blocks.goal.tolist(), strict=True):
            wants = np.ones(len(ranks), dtype=bool) if goal == EVERYONE else np.arange(len(ranks)) == place[goal]
            wants[origin] = False
            wanted.append(wants)
        return cls(place[arcs.src], place[arcs.dst], bins, origins.tolist(), wanted)

    def cheap(self, cost: FloatArray, real: FloatArray, worth: FloatArray) -> list[tuple[int, Tree]]:
        """The cheapest tree of every block at ``cost`` (of a byte on an arc in a bin, shape (arcs, bins)), those that
        the master program gains by: at the prices ``real`` they cost less than a byte of the block is worth."""
        found = []
        for b, (origin, wanted) in enumerate(zip(self.origin, self.wanted, strict=True)):
            tree = _cheapest(self.src, self.dst, cost, origin, wanted, self.bins)
            if tree is not None and sum(real[a, i] for a, i in tree) < worth[b] - CLOSE:
                found.append((b, tree))
        return found


def _at_all_times(trees: list[tuple[int, Tree]], bins: int) -> Iterator[tuple[int, Tree]]:
    """The trees, and each of them earlier and later."""
    for block, tree in trees:
        first, last = min(i for _, i in tree), max(i for _, i in tree)
        for later in range(-first, bins - last):
            yield block, tuple((a, i + later) for a, i in tree)


class _Solved(NamedTuple):
    """A solution of the master program: the bytes of every tree, ``amount``; the ``price`` of links in bins, shape
    (links * bins,); what a byte of every block is ``worth``, shape (blocks,); and the bytes that no tree carries."""

    amount: list[float]
    price: FloatArray
    worth: FloatArray
    lacks: float


def _master(
    trees: list[tuple[int, Tree]], size: FloatArray, pays: BoolArray, rate: FloatArray, bins: int
) -> _Solved | None:
    """Solve the master program. Columns: x, what every block lacks, trees."""
    blocks, wide = len(size), len(rate)
    odd = np.arange(bins) % 2 == 1
    rows, columns, values = [np.arange(wide * bins)], [np.zeros(wide * bins, dtype=int)], [
        (rate[:, None] * np.where(odd, 1.0, -1.0)).reshape(-1)
    ]  # fmt: skip
    for j, (_, tree) in enumerate(trees):
        for a, i in tree:
            at = np.flatnonzero(pays[a]) * bins + i
            rows.append(at)
            columns.append(np.full(len(at), 1 + blocks + j))
            values.append(np.ones(len(at)))
    count = 1 + blocks + len(trees)
    above = csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(wide * bins, count)
    )
    right = (rate[:, None] * odd).reshape(-1)
    of = np.array([b for b, _ in trees], dtype=int)
    equal = csr_array(
        (np.ones(blocks + len(trees)), (np.concatenate([np.arange(blocks), of]), np.arange(1, count))),
        shape=(blocks, count),
    )
    cost = np.zeros(count)
    cost[0], cost[1 : 1 + blocks] = 1.0, LACK
    found = _linprog(cost, above, right, equal, size, [(0.0, 1.0)] + [(0.0, None)] * (count - 1), method="highs")
    if found.x is None:
        return None
    lacks = float(found.x[1 : 1 + blocks].sum())
    return _Solved(found.x[1 + blocks :].tolist(), -found.ineqlin.marginals, found.eqlin.marginals, lacks)


def _cheapest(src: IntArray, dst: IntArray, cost: FloatArray, origin: int, wanted: BoolArray, bins: int) -> Tree | None:
    """The cheapest timed tree, None if there is none."""
    goals = np.flatnonzero(wanted)
    bit = np.zeros(len(wanted), dtype=np.int64)
    bit[goals] = 1 << np.arange(len(goals))
    least, choice = _dreyfus_wagner(src, dst, cost, bit, len(goals), bins)
    full = (1 << len(goals)) - 1
    if not np.isfinite(least[0, origin, full]):
        return None
    came: dict[int, tuple[int, int]] = {}  # the first arrival at every rank
    stack = [(0, origin, full)]
    while stack:
        i, v, subset = stack.pop()
        if not subset:
            continue
        kind, what = choice[i, v, subset]
        if kind == 0:
            stack.append((i + 1, v, subset))
        elif kind == 1:
            a = int(what)
            w = int(dst[a])
            if w != origin and (w not in came or i < came[w][1]):
                came[w] = a, i
            stack.append((i + 2, w, subset & ~int(bit[w])))
        else:
            stack += [(i, v, int(what)), (i, v, subset & ~int(what))]
    tree = sorted(came.values(), key=lambda pair: pair[1])
    needed: set[int] = set()
    for a, _ in reversed(tree):  # what serves nobody, as it came a second time, is left out
        if wanted[dst[a]] or int(dst[a]) in needed:
            needed.add(int(src[a]))
    kept = [(a, i) for a, i in tree if wanted[dst[a]] or int(dst[a]) in needed]
    return tuple(kept)


@jit
def _dreyfus_wagner(
    src: IntArray, dst: IntArray, cost: FloatArray, bit: IntArray, goals: int, bins: int
) -> tuple[FloatArray, IntArray]:
    """Least cost to serve every set of goals from every rank, and how, by the bin from which it holds the block.
    How: (0, .) wait, (1, arc) send, (2, subset) serve the subset and the rest apart."""
    ranks, sets = len(bit), 1 << goals
    least = np.full((bins + 3, ranks, sets), np.inf)
    choice = np.zeros((bins + 3, ranks, sets, 2), dtype=np.int64)
    least[:, :, 0] = 0.0
    for i in range(bins - 1, -1, -1):
        for s in range(1, sets):
            for v in range(ranks):
                least[i, v, s] = least[i + 1, v, s]
            for a in range(len(src)):
                v, w = src[a], dst[a]
                rest = s & ~bit[w]
                found = cost[a, i] + least[i + 2, w, rest]
                if found < least[i, v, s]:
                    least[i, v, s] = found
                    choice[i, v, s, 0], choice[i, v, s, 1] = 1, a
            part = (s - 1) & s
            while part > 0:
                if part >= s - part:
                    for v in range(ranks):
                        found = least[i, v, part] + least[i, v, s - part]
                        if found < least[i, v, s]:
                            least[i, v, s] = found
                            choice[i, v, s, 0], choice[i, v, s, 1] = 2, part
                part = (part - 1) & s
    return least, choice


def _order(
    instance: FabricInstance, routes: TransferRoutes, arcs: Arcs, packing: _Packing, rounds: int, inward: bool
) -> tuple[Order, list[int]] | None:
    """Every tree in so many pieces, in order of bins, rounds and trees, and the place of every transfer in it; sums in
    reverse. None if the blocks have fewer bytes."""
    total = instance.blocks.bytes
    chosen = [(b, tree, y * float(total.max())) for (b, tree), y in zip(packing.trees, packing.amount, strict=True)]
    chosen = [(b, tree, y) for b, tree, y in chosen if y >= rounds]
    cut = _cut([(b, y) for b, _, y in chosen], total.tolist(), rounds)
    if cut is None:
        return None
    block, size = cut
    rows: list[Row] = []
    keys: list[tuple[int, int, int]] = []
    needs: list[Pair] = []
    for number, (_, tree, _) in enumerate(chosen):
        links = [_links(arcs, a, inward) for a, _ in tree]
        for r in range(rounds):
            into: dict[int, int] = {}
            for (a, i), route in zip(tree, links, strict=True):
                u, v = int(arcs.src[a]), int(arcs.dst[a])
                if u in into:
                    needs.append((len(rows), into[u], 0) if inward else (into[u], len(rows), 0))
                into[v] = len(rows)
                rows.append(Row(number * rounds + r, routes.number(route), (0,), inward))
                keys.append((i, r, number))
    sequence = sorted(range(len(rows)), key=keys.__getitem__, reverse=inward)
    problem = Problem.of(instance, routes, block, size)
    turns: dict[int, list[int]] = {}
    for n in sequence:
        for e in routes.all[rows[n].route].links:
            for resource in problem.resources_of[e]:
                turns.setdefault(resource, []).append(n)
    urgency = np.argsort(sequence).tolist()
    return Order(problem, tuple(rows), tuple(needs), (), (), {r: tuple(turn) for r, turn in turns.items()}), urgency


def _cut(trees: list[tuple[int, float]], total: list[int], rounds: int) -> tuple[list[int], list[int]] | None:
    """Block and bytes of ``rounds`` pieces of every tree (block, bytes), the blocks' bytes being ``total``; None if
    some block has no tree."""
    block: list[int] = []
    size: list[int] = []
    for b, y in trees:
        block += [b] * rounds
        size += [int(y) * (k + 1) // rounds - int(y) * k // rounds for k in range(rounds)]
    for b, n in enumerate(total):
        own = [k for k, of in enumerate(block) if of == b]
        if not own:
            return None
        largest = max(own, key=lambda k: size[k])
        size[largest] += n - sum(size[k] for k in own)
    return block, size


def _links(arcs: Arcs, a: int, inward: bool) -> list[int]:
    """The links of an arc; of a sum in reverse."""
    route = list(dict.fromkeys([int(arcs.first[a]), int(arcs.last[a])]))
    return route[::-1] if inward else route
