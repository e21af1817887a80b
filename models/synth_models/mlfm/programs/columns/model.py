"""Program ``columns``: routes between columns, counted and packed, for blocks where only spines or cables have failed.

Failed spines leave all layers alike, so all layers may do the same (the spine of a failed cable is left out). A
*column route* a → c → b (or a → b, a → c → a) stands for one flow in every layer i at once: from leaf (i, a) over
spine {a, c}, leaf (i, c) and spine {c, b} to leaf (i + s, b), where the shift s of layers (modulo n) is free. It uses
the up-links of a to c in all layers and so on: one *column link* each, of which there are d times fewer than links.
Phases come in *groups* of u, a divisor of m: in a group one server of leaf (i, a) sends to u servers of leaf (i + s,
b), one a phase. Each pair of columns needs n m m / u such flows, for all shifts, sending servers and sets of u
receivers; which these are is settled afterwards, by König (``route_expansion.py``). Large u make small programs, P
phases allow u = gcd(P, m).

===========  ==================  =============================================  ======
symbol       code                index set                                      unit
===========  ==================  =============================================  ======
w_r          ``counts``          column routes, over all groups                 flows
D_ab         ``needed``          ordered pairs of columns                       flows
u            ``length``          one number                                     phases
G            ``groups``          one number                                     groups
y_r          ``now``             column routes, in one group                    flows
s_a          ``stay``            columns, in one group: flows inside a leaf     flows
p, t         ``left``, ``times`` groups left; groups that look alike            groups
===========  ==================  =============================================  ======

Counting, the fewest two-spine flows (a wish; CP-SAT, whose relaxation then leads it to whole points) with

    (1) demand         sum_{r of ab} w_r = D_ab             n m m / u, (n - 1) m m / u where a = b
    (2) column links   sum_{r through e} w_r <= G

Packing, one *pattern* after the other, which t groups share, with w, s what is left and load_e its load:

    (3) links now      [load_e > p - t] <= sum_{r through e} y_r <= 1
    (4) senders        out_a - (p - t) m <= t (sum_{r from a} y_r + s_a),   sum_{r from a} y_r + s_a <= m
    (5) receivers      the same with the routes to a
    (6) what is there  y_r <= [w_r >= t],  s_a <= floor(left_a / t)

Maximised are links used, those of routes with much left counting up to twice. t is the largest power of two that has
a pattern; after it (1), (2) hold for p - t groups again, so few patterns do: 3069 groups take some forty. They go to
HiGHS by scipy, as those of ``packing.py``, and as there a packing is a schedule and a failure proves nothing. Builds no
schedule, calls no solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, eye_array, hstack

from synth.arrays import FloatArray, IntArray
from synth.solvers.rows import Row, Term, ones
from synth_models.mlfm.instance import Block, MLFMInstance
from synth_models.mlfm.parts.leaf_problem import by_group, working

Rows = tuple[Any, FloatArray, FloatArray]
"""A matrix, the least and the most that its rows may come to."""


@dataclass(frozen=True)
class ColumnProblem:
    """Column routes r: from ``source`` to ``target`` over ``between``, which is the target on a direct route; all (R,).

    ``through`` (E, R), ``meets`` (l * l, R), ``leaving`` and ``arriving`` (l, R) are 0-1 matrices: column links, pairs,
    and ends of the routes. ``needed`` (l * l,) are the flows of every pair, each of ``length`` phases; ``block`` is the
    job's.
    """

    block: Block
    length: int
    source: IntArray
    target: IntArray
    between: IntArray
    through: csr_array
    meets: csr_array
    leaving: csr_array
    arriving: csr_array
    needed: IntArray

    @property
    def runs(self) -> int:
        """Flows from a server to all servers of a leaf."""
        return self.block.servers // self.length

    @property
    def links_used(self) -> IntArray:
        """Column links of every route, 2 or 4."""
        return np.asarray(self.through.sum(axis=0)).astype(np.int64)


def column_problem(instance: MLFMInstance, block: Block, length: int) -> ColumnProblem:
    """All allowed routes between the block's columns over working spines, for groups of ``length`` phases."""
    all_columns, columns = instance.columns, block.columns
    alive = working(instance)[:all_columns]
    a, b, c = (part.ravel() for part in np.indices((columns, columns, all_columns)))
    direct = np.where(a == b, a != c, c == b) & alive[a, c]
    over = (a != b) & (c != a) & (c != b) & alive[a, c] & alive[c, b] & (instance.routes == "detour")
    chosen = np.flatnonzero(direct | over)
    a, b, c, over = a[chosen], b[chosen], c[chosen], over[chosen]
    half, route = all_columns**2, np.arange(len(a))
    last = np.where(over | (a == b), c, a)  # the column that the last spine joins to the target
    links = [(route, a * all_columns + c), (route, half + b * all_columns + last)]
    second = np.flatnonzero(over)
    links += [(second, half + c[over] * all_columns + a[over]), (second, c[over] * all_columns + b[over])]
    which, link = (np.concatenate([pair[end] for pair in links]) for end in (0, 1))
    kept, row = np.unique(link, return_inverse=True)
    through = coo_array((np.ones(len(row)), (row, which)), shape=(len(kept), len(a))).tocsr()
    flows = block.servers * block.servers // length
    needed = np.full((columns, columns), block.layers * flows)
    np.fill_diagonal(needed, (block.layers - 1) * flows)
    sums = (by_group(a * columns + b, columns**2), by_group(a, columns), by_group(b, columns))
    return ColumnProblem(block, length, a, b, c, through, *sums, needed.ravel())


def demand(problem: ColumnProblem, counts: Sequence[Any]) -> dict[tuple[int, int], Row]:
    """(1): the routes of every pair of columns carry all its flows."""
    return {
        divmod(pair, problem.block.columns): (ones(counts[r] for r in routes), "==", int(problem.needed[pair]))
        for pair, routes in _rows(problem.meets)
    }


def column_links(problem: ColumnProblem, counts: Sequence[Any], groups: int) -> dict[int, Row]:
    """(2): a column link carries one flow a group."""
    return {e: (ones(counts[r] for r in routes), "<=", groups) for e, routes in _rows(problem.through)}


def detours(problem: ColumnProblem, counts: Sequence[Any]) -> list[Term]:
    """What counting minimises: flows over two spines."""
    return ones(counts[r] for r in np.flatnonzero(problem.links_used > 2).tolist())


def _rows(matrix: csr_array) -> list[tuple[int, list[int]]]:
    """Every row that is not empty, with the places of its ones."""
    parts = np.split(matrix.indices, matrix.indptr[1:-1])
    return [(row, part.tolist()) for row, part in enumerate(parts) if len(part)]


@dataclass(frozen=True)
class Left:
    """What is left to pack: flows per route (R,), flows inside a leaf of every column (l,), groups."""

    counts: IntArray
    stay: IntArray
    groups: int

    @property
    def nothing(self) -> bool:
        return not self.counts.any() and not self.stay.any()

    def after(self, times: int, now: IntArray, stay: IntArray) -> Left:
        """What is left when so many groups have the pattern; more may stay inside a leaf than have to."""
        return Left(self.counts - times * now, np.maximum(0, self.stay - times * stay), self.groups - times)


def links_now(problem: ColumnProblem, left: Left, times: int) -> Rows:
    """(3): a column link carries one flow a group, and is used if the groups after could not hold the rest."""
    load = problem.through @ left.counts
    inside = csr_array((len(load), problem.block.columns))
    rows = hstack([problem.through, inside], format="csr")
    return rows, (load > left.groups - times).astype(float), np.ones(len(load))


def senders(problem: ColumnProblem, left: Left, times: int) -> Rows:
    """(4): a leaf starts at most one flow per server, and leaves no more to start than the groups after hold."""
    return _one_per_server(problem, problem.leaving, left, times)


def receivers(problem: ColumnProblem, left: Left, times: int) -> Rows:
    """(5): a leaf ends at most one flow per server, and leaves no more to end than the groups after hold."""
    return _one_per_server(problem, problem.arriving, left, times)


def _one_per_server(problem: ColumnProblem, ends: csr_array, left: Left, times: int) -> Rows:
    servers, columns = problem.block.servers, problem.block.columns
    due = ends @ left.counts + left.stay - (left.groups - times) * servers
    rows = hstack([ends, eye_array(columns)], format="csr")
    return rows, np.maximum(0.0, np.ceil(due / times)), np.full(columns, float(servers))


def most(left: Left, times: int) -> FloatArray:
    """(6): upper bounds of the variables, routes first."""
    return np.concatenate([left.counts >= times, left.stay // times]).astype(float)


def gain(problem: ColumnProblem, left: Left) -> FloatArray:
    """What is maximised: column links used, more where much is left, and flows inside leaves."""
    weight = problem.links_used * (1 + left.counts / max(1, int(left.counts.max(initial=1))))
    return np.concatenate([weight, np.full(problem.block.columns, 0.5)])
