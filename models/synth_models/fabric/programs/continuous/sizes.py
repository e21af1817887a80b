"""The best sizes of the pieces where routes, waits and the order on every link stay: a linear program.

With z_p the bytes of piece p and s_i the start of transfer i, every duration is z_p times a constant, so that

    minimise T:  s_j >= s_i + latencies + z / bandwidth (waits, turns),  T >= arrivals,
                 sum over a block of z_p = its bytes.

Sizes are rounded to whole bytes, and start times computed again. A few uneven pieces do the work of many even ones: the
first are small, so that ranks begin soon to pass them on; the last are small, so that they arrive soon.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    count, pieces = len(rows), len(problem.size)
    lines = _Lines(problem)
    table: list[After] = []

    def after(i: int, j: int, sooner: Line, later: Line) -> None:
        """start j + later >= start i + sooner"""
        paces = [(rows[i].piece, sooner.pace), (rows[j].piece, -later.pace)]
        table.append(After(i, j, sooner.seconds - later.seconds, paces))

    now = Line(0.0, 0.0)
    for i, j, leaf in order.needs:
        after(i, j, lines.of(rows[i].route).arrival[leaf], now)
    for i, j, leaf in order.misses:
        after(i, j, now, lines.of(rows[j].route).arrival[leaf])
    for i, k, j, leaf in order.before:
        after(i, j, lines.of(rows[i].route).arrival[k], lines.of(rows[j].route).arrival[leaf])
    for resource, turn in order.turns.items():
        for i, j in pairwise(turn):
            for a, e in enumerate(problem.routes.all[rows[i].route].links):
                for b, f in enumerate(problem.routes.all[rows[j].route].links):
                    if resource in problem.resources_of[e] and resource in problem.resources_of[f]:
                        after(i, j, lines.of(rows[i].route).end[a], lines.of(rows[j].route).begin[b])
    for i, row in enumerate(rows):
        for arrival in lines.of(row.route).arrival:
            table.append(After(i, count, arrival.seconds, [(row.piece, arrival.pace)]))
    return _solved(problem, table, count, pieces)


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
    of_block = np.array(problem.block)
    equal = csr_array(
        (np.ones(pieces), (of_block, np.arange(count + 1, count + 1 + pieces))), shape=(len(blocks), count + 1 + pieces)
    )
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
