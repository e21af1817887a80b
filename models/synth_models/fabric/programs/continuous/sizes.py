"""The best sizes of the pieces where ways, waits and the order on every link stay: a linear program.

With z_p the bytes of piece p and s_i the start of transfer i, every duration is z_p times a constant, so that

    minimise T:  s_j >= s_i + latencies + z / bandwidth (waits, turns),  T >= arrivals,
                 sum over a block of z_p = its bytes.

Sizes are rounded to whole bytes, and the times made anew. Few uneven pieces do what takes many even ones: the first
ones small, so that those who pass them on begin soon, the last ones small, so that they do not come late.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from synth.solvers.lp import linprog
from synth_models.fabric.programs.continuous.order import Order
from synth_models.fabric.programs.continuous.problem import Problem, Row
from synth_models.fabric.programs.continuous.ways import timing

_linprog: Any = linprog  # its published types reject sparse matrices
Line = tuple[float, float]  # seconds, and seconds a byte


class _Lines:
    """Times of a transfer as lines over the size of its piece."""

    def __init__(self, problem: Problem) -> None:
        net = problem.instance.machine.network
        self.problem = problem
        self.latency = net.latency.tolist()
        self.pace = (1.0 / net.bandwidth).tolist()
        self.known: dict[int, tuple[list[Line], list[Line], list[Line]]] = {}

    def of(self, number: int) -> tuple[list[Line], list[Line], list[Line]]:
        """Begin and end of every link's occupation, and the arrivals at the leaves."""
        if number not in self.known:
            way, hops = self.problem.ways.all[number], self.problem.ways.hop_by_hop
            none = [0] * len(self.pace)
            still = timing(way, none, self.latency, hops)
            moving = timing(way, self.pace, none, hops)
            begin = list(zip(still.offset, moving.offset, strict=True))
            end = [(a, b + self.pace[e]) for (a, b), e in zip(begin, way.links, strict=True)]
            arrival = list(zip(still.arrival, moving.arrival, strict=True))
            self.known[number] = begin, end, arrival  # type: ignore[assignment]
        return self.known[number]


def resized(order: Order) -> list[int] | None:
    """Sizes of the pieces, in bytes, that let the order end soonest; None if the solver finds none."""
    problem, rows = order.problem, order.rows
    count, pieces = len(rows), len(problem.size)
    lines = _Lines(problem)
    table: list[tuple[int, int, float, list[tuple[int, float]]]] = []

    def after(i: int, j: int, sooner: Line, later: Line) -> None:
        """start j + later >= start i + sooner"""
        table.append((i, j, sooner[0] - later[0], [(rows[i].piece, sooner[1]), (rows[j].piece, -later[1])]))

    for i, j, leaf in order.needs:
        after(i, j, lines.of(rows[i].way)[2][leaf], (0.0, 0.0))
    for i, j, leaf in order.misses:
        after(i, j, (0.0, 0.0), lines.of(rows[j].way)[2][leaf])
    for i, k, j, leaf in order.before:
        after(i, j, lines.of(rows[i].way)[2][k], lines.of(rows[j].way)[2][leaf])
    for resource, turn in order.turns.items():
        for i, j in pairwise(turn):
            for a, e in enumerate(problem.ways.all[rows[i].way].links):
                for b, f in enumerate(problem.ways.all[rows[j].way].links):
                    if resource in problem.resources_of[e] and resource in problem.resources_of[f]:
                        after(i, j, lines.of(rows[i].way)[1][a], lines.of(rows[j].way)[0][b])
    for i, row in enumerate(rows):
        for arrival in lines.of(row.way)[2]:
            table.append((i, count, arrival[0], [(row.piece, arrival[1])]))
    return _solved(problem, table, count, pieces)


def _solved(
    problem: Problem, table: list[tuple[int, int, float, list[tuple[int, float]]]], count: int, pieces: int
) -> list[int] | None:
    """Columns: starts, T, sizes. Times in units of about the longest, sizes in parts of the largest block."""
    blocks = problem.instance.blocks.bytes
    whole = float(blocks.max())
    scale = max(max(abs(row[2]) for row in table), whole * max(abs(c) for row in table for _, c in row[3]), 1e-30)
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
