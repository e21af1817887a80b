"""The best sizes of the pieces where routes, waits and the order on every link stay: a linear program.

With z_p the bytes of piece p and s_i the start of transfer i, what a transfer does k links on comes at s_i plus a
constant plus z_p times another, a :class:`Line` l over the piece's size:

    minimise T                                                    over s >= 0, z >= 1 byte
    (1) arrived        s_i + l_i(z) <= s_j + l_j(z)               j waits for i, or comes to a node behind it
    (2) in_turn        s_i + end_ik(z) <= s_j + begin_jk(z)       j follows i on a link or group k
    (3) makespan       s_i + arrival_i(z) <= T
    (4) whole_blocks   sum_{p of b} z_p = B_b                     of a block b

=================  ==============================  ===========================  =======================
page               code                            index set                    unit
=================  ==============================  ===========================  =======================
s_i                first columns                   transfers i                  about the longest time
T                  the column behind               one number                   about the longest time
z_p                last columns                    pieces p                     the largest block
l, begin, end,     ``RouteLines``                  transfers, their links       seconds, seconds a byte
arrival
B_b                ``blocks.bytes``                blocks b                     bytes
=================  ==============================  ===========================  =======================

Sizes are rounded to whole bytes, and start times computed again. A few uneven pieces do the work of many even ones: the
first are small, so that ranks begin soon to pass them on; the last are small, so that they arrive soon.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from synth.solvers.lp import linprog
from synth_models.fabric.programs.continuous.order import Order
from synth_models.fabric.programs.continuous.problem import Problem, Row
from synth_models.fabric.programs.continuous.transfer_routes import timing

_linprog: Any = linprog  # its published types reject sparse matrices


class Line(NamedTuple):
    """A time that depends on a piece's size: seconds, and seconds a byte."""

    seconds: float
    pace: float


class RouteLines(NamedTuple):
    """Times from the start of a transfer: when each link of its route begins and ends to be occupied, and when the
    piece arrives at each leaf."""

    begin: list[Line]
    end: list[Line]
    arrival: list[Line]


class After(NamedTuple):
    """A row of the program: start ``later`` >= start ``sooner`` + ``seconds`` + the sum over ``paces`` (piece, seconds
    a byte) of size times pace. The start after all transfers' is T."""

    sooner: int
    later: int
    seconds: float
    paces: list[tuple[int, float]]


class _Lines:
    """Times of a transfer as lines over the size of its piece."""

    def __init__(self, problem: Problem) -> None:
        net = problem.instance.machine.network
        self.problem = problem
        self.latency = net.latency.tolist()
        self.pace = (1.0 / net.bandwidth).tolist()
        self.known: dict[int, RouteLines] = {}

    def of(self, number: int) -> RouteLines:
        """Those of a route."""
        if number not in self.known:
            route, hops = self.problem.routes.all[number], self.problem.routes.hop_by_hop
            none = [0] * len(self.pace)
            still = timing(route, none, self.latency, hops)
            moving = timing(route, self.pace, none, hops)
            begin = [Line(a, b) for a, b in zip(still.offset, moving.offset, strict=True)]
            end = [Line(line.seconds, line.pace + self.pace[e]) for line, e in zip(begin, route.links, strict=True)]
            arrival = [Line(a, b) for a, b in zip(still.arrival, moving.arrival, strict=True)]
            self.known[number] = RouteLines(begin, end, arrival)
        return self.known[number]


def resized(order: Order) -> list[int] | None:
    """Sizes of the pieces, in bytes, that let the order end soonest; None if the solver finds none."""
    problem, rows = order.problem, order.rows
    lines = _Lines(problem)
    table = [*arrived(order, lines), *in_turn(order, lines), *makespan(order, lines)]
    return _solved(problem, table, len(rows), len(problem.size))


def _after(order: Order, i: int, j: int, sooner: Line, later: Line) -> After:
    """start j + later >= start i + sooner"""
    paces = [(order.rows[i].piece, sooner.pace), (order.rows[j].piece, -later.pace)]
    return After(i, j, sooner.seconds - later.seconds, paces)


def arrived(order: Order, lines: _Lines) -> Iterator[After]:
    """(1): a transfer starts when what it sends has come, or ends behind what it must not come before."""
    rows, now = order.rows, Line(0.0, 0.0)
    for i, j, leaf in order.needs:
        yield _after(order, i, j, lines.of(rows[i].route).arrival[leaf], now)
    for i, j, leaf in order.misses:
        yield _after(order, i, j, now, lines.of(rows[j].route).arrival[leaf])
    for i, k, j, leaf in order.before:
        yield _after(order, i, j, lines.of(rows[i].route).arrival[k], lines.of(rows[j].route).arrival[leaf])


def in_turn(order: Order, lines: _Lines) -> Iterator[After]:
    """(2): a link or group begins with a transfer when it has ended with the one before."""
    problem, rows = order.problem, order.rows
    for resource, turn in order.turns.items():
        for i, j in pairwise(turn):
            for a, e in enumerate(problem.routes.all[rows[i].route].links):
                for b, f in enumerate(problem.routes.all[rows[j].route].links):
                    if resource in problem.resources_of[e] and resource in problem.resources_of[f]:
                        yield _after(order, i, j, lines.of(rows[i].route).end[a], lines.of(rows[j].route).begin[b])


def makespan(order: Order, lines: _Lines) -> Iterator[After]:
    """(3): T is no less than any arrival; it stands behind the starts."""
    for i, row in enumerate(order.rows):
        for arrival in lines.of(row.route).arrival:
            yield After(i, len(order.rows), arrival.seconds, [(row.piece, arrival.pace)])


def whole_blocks(problem: Problem, first: int) -> Any:
    """(4): the pieces of a block make it up; their columns begin at ``first``."""
    pieces, blocks = len(problem.block), len(problem.instance.blocks.bytes)
    columns = np.arange(first, first + pieces)
    return csr_array((np.ones(pieces), (np.array(problem.block), columns)), shape=(blocks, first + pieces))


def _solved(problem: Problem, table: list[After], count: int, pieces: int) -> list[int] | None:
    """Columns: starts, T, sizes. Times in units of about the longest, sizes in parts of the largest block."""
    blocks = problem.instance.blocks.bytes
    whole = float(blocks.max())
    slowest = max(abs(pace) for row in table for _, pace in row.paces)
    scale = max(max(abs(row.seconds) for row in table), whole * slowest, 1e-30)
    at: list[tuple[int, int, float]] = []
    right = []
    for n, (i, j, seconds, sizes) in enumerate(table):
        at += [(n, i, 1.0), (n, j, -1.0)]
        at += [(n, count + 1 + p, pace * whole / scale) for p, pace in sizes if pace]
        right.append(-seconds / scale)
    r, c, v = zip(*at, strict=True)
    above = csr_array((v, (r, c)), shape=(len(table), count + 1 + pieces))
    equal = whole_blocks(problem, count + 1)
    cost = np.zeros(count + 1 + pieces)
    cost[count] = 1.0
    limits = [(0.0, None)] * (count + 1) + [(1.0 / whole, None)] * pieces
    found = _linprog(cost, above, right, equal, blocks / whole, limits, method="highs-ipm")
    if found.x is None:
        return None
    return _whole_bytes(problem, found.x[count + 1 :] * whole)


def _whole_bytes(problem: Problem, wanted: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[int]:
    """The nearest whole sizes, at least 1, that make up the blocks."""
    size = np.maximum(np.floor(wanted), 1).astype(np.int64)
    of_block = np.array(problem.block)
    for b, total in enumerate(problem.instance.blocks.bytes.tolist()):
        own = np.flatnonzero(of_block == b)
        lacks = total - int(size[own].sum())
        by_rest = own[np.argsort(size[own] - wanted[own], kind="stable")]
        for k in range(abs(lacks)):
            at = by_rest[k % len(own)] if lacks > 0 else own[np.argmax(size[own])]
            size[at] += 1 if lacks > 0 else -1
    return [int(n) for n in size]


def adjusted(order: Order) -> tuple[Problem, list[Row]] | None:
    """The order with its best sizes, timed; None if that fails."""
    size: Sequence[int] | None = resized(order)
    if size is None:
        return None
    new = order.with_sizes(size)
    rows = new.timed()
    return None if rows is None else (new.problem, rows)
