"""Packing timed trees: a linear program by column generation, as if pieces were infinitely small.

On machines whose ranks are all equally far apart (:class:`synth_models.fabric.bounds.flow_moments.Arcs`) time falls
into bins that latency maps onto each other: T = K a + x a, bins of length x a and (1 - x) a in turn. A *timed tree* of
a block takes an arc in a bin, and leaves a rank in the bin in which it came there or later.

    (1) least_time      minimise x + LACK sum_b l_b               over 0 <= x <= 1, l >= 0, y >= 0
    (2) link_capacity   sum_{j takes e in i} y_j <= r_e |i|       link e, bin i; |i| is x or 1 - x, in turn
    (3) whole_blocks    l_b + sum_{j of b} y_j = B_b              block b
    (4) pricing         C(i, v, S) = min of C(i + 1, v, S); c_ai + C(i + 2, w, S - w) for an arc a from v to w;
                        C(i, v, P) + C(i, v, S - P) for P within S; C(i, v, {}) = 0

=================  ==============================  ===========================  =======================
page               code                            index set                    unit
=================  ==============================  ===========================  =======================
x                  ``Columns.width``               one number                   latencies a
l_b                ``Columns.lack(b)``             blocks b                     the largest block
y_j                ``Columns.amount(j)``           trees j                      the largest block
r_e                ``Master.rate``                 links e                      the largest block a latency
B_b                ``Master.size``                 blocks b                     the largest block
c_ai               ``cost`` of ``cheap``           arcs a, bins i               dual prices of (2)
C                  ``least``                       bins, ranks, sets of ranks   as c
=================  ==============================  ===========================  =======================

The duals of (2) price links in bins; the cheapest tree of every block under them, by (4), exactly, over sets of ranks
that still lack the block (Dreyfus and Wagner 1971, on the graph of ranks and bins), is added while it costs less than
its block is worth, the dual of (3).
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
from synth_models.fabric.bounds.flow_moments import Arcs
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.programs.continuous.tuned import LACK, MOST_BINS, MOST_ITERATIONS, MOST_STATES

_linprog: Any = linprog  # its published types reject sparse matrices
CLOSE = 1e-7

Tree = tuple[tuple[int, int], ...]  # arc and bin, in order of time


@dataclass
class Packing:
    """Trees by block with their bytes (parts of the largest block), for T within ``hops`` latencies and one."""

    trees: list[tuple[int, Tree]]
    amount: list[float]


def packed(instance: FabricInstance, links: Links, arcs: Arcs, hops: int, options: RunOptions) -> Packing | None:
    """The packing if T is within ``hops`` and ``hops + 1`` latencies, neither too many, and found in time."""
    bins, ranks = 2 * hops - 1, int((~links.is_switch).sum())
    if bins > MOST_BINS or bins * ranks << ranks - 1 > MOST_STATES:
        return None
    largest = float(instance.blocks.bytes.max())
    size = instance.blocks.bytes / largest
    used = np.unique(np.concatenate([arcs.first, arcs.last]))
    row_of = np.full(links.links, -1)
    row_of[used] = np.arange(len(used))
    every = np.arange(len(arcs.src))
    takes = np.zeros((len(arcs.src), len(used)), dtype=bool)
    takes[every, row_of[arcs.first]] = True
    takes[every, row_of[arcs.last]] = True
    rate = links.rate[used] * float(links.unit) * arcs.delay / links.ticks / largest
    pricing = _Pricing.of(instance, links, arcs, bins)
    found, lacks = Packing([], []), np.inf
    middle: FloatArray | None = None
    for _ in range(MOST_ITERATIONS):
        if options.out_of_time():
            break
        solved = _solve(Master(found.trees, size, takes, rate, bins))
        if solved is None:
            return None
        found.amount, lacks = solved.amount, solved.lacks
        # prices jump from vertex to vertex: their running mean leads to good trees sooner (Wentges 1997)
        middle = solved.price if middle is None else (middle + solved.price) / 2
        mean, real = ((takes @ price.reshape(len(used), bins)).clip(0) for price in (middle, solved.price))
        new = pricing.cheap(mean, real, solved.worth) or pricing.cheap(real, real, solved.worth)
        if not new:
            break
        known = set(found.trees)
        found.trees += [pair for pair in dict.fromkeys(_at_all_times(new, bins)) if pair not in known]
    found.trees = found.trees[: len(found.amount)]
    return None if not found.trees or lacks > CLOSE else found


class Columns(NamedTuple):
    """The variables' places: x first, then what every block lacks, then the trees."""

    blocks: int
    trees: int

    @property
    def total(self) -> int:
        """All of them."""
        return 1 + self.blocks + self.trees

    @property
    def width(self) -> int:
        """x, the length of the even bins."""
        return 0

    def lack(self, block: int | IntArray) -> Any:
        """What no tree carries of a block."""
        return 1 + block

    def amount(self, tree: int | IntArray) -> Any:
        """What a tree carries."""
        return 1 + self.blocks + tree


class Master(NamedTuple):
    """The program for the trees known so far. ``size`` of the blocks, shape (blocks,); ``takes``: which links an arc
    takes, shape (arcs, links); ``rate`` of the links, shape (links,)."""

    trees: list[tuple[int, Tree]]
    size: FloatArray
    takes: BoolArray
    rate: FloatArray
    bins: int

    @property
    def columns(self) -> Columns:
        """The places of the variables."""
        return Columns(len(self.size), len(self.trees))


def least_time(master: Master) -> FloatArray:
    """(1): the cost of every variable."""
    columns = master.columns
    cost = np.zeros(columns.total)
    cost[columns.width] = 1.0
    cost[columns.lack(np.arange(columns.blocks))] = LACK
    return cost


def link_capacity(master: Master) -> tuple[csr_array, FloatArray]:
    """(2): what trees put on a link in a bin is at most what it takes in the bin's length; the row of link e and bin i
    is ``e * bins + i``. An even bin is x long, an odd one 1 - x."""
    columns, bins, links = master.columns, master.bins, len(master.rate)
    odd = np.arange(bins) % 2 == 1
    rows, places = [np.arange(links * bins)], [np.full(links * bins, columns.width)]
    values = [(master.rate[:, None] * np.where(odd, 1.0, -1.0)).reshape(-1)]
    for j, (_, tree) in enumerate(master.trees):
        for a, i in tree:
            at = np.flatnonzero(master.takes[a]) * bins + i
            rows.append(at)
            places.append(np.full(len(at), columns.amount(j)))
            values.append(np.ones(len(at)))
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(places))
    return csr_array(entries, shape=(links * bins, columns.total)), (master.rate[:, None] * odd).reshape(-1)


def whole_blocks(master: Master) -> tuple[csr_array, FloatArray]:
    """(3): the trees of a block carry it, but for what it lacks."""
    columns = master.columns
    blocks, trees = np.arange(columns.blocks), np.arange(columns.trees)
    rows = np.concatenate([blocks, np.array([b for b, _ in master.trees], dtype=int)])
    places = np.concatenate([columns.lack(blocks), columns.amount(trees)])
    return csr_array((np.ones(len(rows)), (rows, places)), shape=(columns.blocks, columns.total)), master.size


class _Solved(NamedTuple):
    """A solution of the master program: the bytes of every tree, ``amount``; the ``price`` of links in bins, shape
    (links * bins,); what a byte of every block is ``worth``, shape (blocks,); and the bytes that no tree carries."""

    amount: list[float]
    price: FloatArray
    worth: FloatArray
    lacks: float


def _solve(master: Master) -> _Solved | None:
    """Solve the program; None where HiGHS finds no solution."""
    columns = master.columns
    bounds = [(0.0, 1.0)] + [(0.0, None)] * (columns.total - 1)
    found = _linprog(least_time(master), *link_capacity(master), *whole_blocks(master), bounds, method="highs")
    if found.x is None:
        return None
    lacks = float(found.x[columns.lack(np.arange(columns.blocks))].sum())
    amount = found.x[columns.amount(np.arange(columns.trees))].tolist()
    return _Solved(amount, -found.ineqlin.marginals, found.eqlin.marginals, lacks)


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
    """(4): least cost to serve every set of goals from every rank, and how, by the bin from which it holds the block.
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
