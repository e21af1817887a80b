"""The plan in which every block goes the quickest way from its origin to its goal: right on any machine.

What libraries run (:mod:`synth_models.fabric.references.direct`), with all routes found beforehand. Rank i sends to
i + 1, i + 2, … in turn, so that no two send to the same rank first; where there is no direct route, over ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.demands.layout import LONGEST, ROUTE_SIZE, RouteTable, timed_routes
from synth_models.fabric.plans.demands.timeline import Pieces, Placed, placed_along
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.rows import picked, starts
from synth_models.fabric.routes.search import Route, Routes

CELLS = (1, 8, 32)  # no piece is longer than such a part of the busiest rank's bytes; each is tried


@dataclass(frozen=True, eq=False)
class StraightRoutes:
    """The way of every pair of ranks: routes ``route[row[i * ranks + j]:row[i * ranks + j + 1]]`` of the table."""

    ranks: int
    row: IntArray
    route: IntArray
    routes: RouteTable
    resources: int
    ticks_per_s: int

    @classmethod
    def of(cls, instance: FabricInstance, node: IntArray) -> StraightRoutes:
        """The quickest ways between these ranks, equally quick ones used in turn. Raises :class:`UnsupportedError`
        where a pair has none, where switches store, or where no clock fits."""
        if instance.switching.mode != "cut_through":
            raise UnsupportedError("switches store and forward")
        routes = Routes.of(instance, ROUTE_SIZE)
        number: dict[Route, int] = {}
        row, ways = [0], list[int]()
        for k in range(len(node) ** 2):
            i, j = divmod(k, len(node))
            for route in routes.hops(int(node[i]), int(node[j])) if i != j else ():
                routes.take(route)
                ways.append(number.setdefault(route, len(number)))
            row.append(len(ways))
        link = np.array([e for route in number for e in route], dtype=np.int64)
        start = starts([len(route) for route in number])
        ticks = clock.ticks_per_second(instance.machine, LONGEST)
        resources = instance.machine.links + len(instance.machine.group_names)
        table = timed_routes(instance, start, link, ticks)
        rows, ways_array = np.array(row, dtype=np.int64), np.array(ways, dtype=np.int64)
        return cls(len(node), rows, ways_array, table, resources, ticks)


def straight_plan(straight: StraightRoutes, demand: IntArray, below: int) -> tuple[Pieces, Placed] | None:
    """Pieces and transfers of a demand, the quickest of several orders and sizes of pieces; None where a link alone
    takes ``below`` ticks or more."""
    if busiest(straight.row, straight.route, straight.routes, demand, straight.resources) >= below:
        return None
    most = int(max(demand.sum(axis=0).max(), demand.sum(axis=1).max()))
    best: tuple[Pieces, Placed] | None = None
    for cells in CELLS:
        pieces = _blocks(demand, max(most // cells, 1))
        row, way = _ways(straight, pieces)
        none = np.zeros(len(pieces.bytes), dtype=np.int64)
        orders = [pieces.turn] if cells > 1 else [pieces.turn, -pieces.bytes]
        for keys in orders:
            order = np.argsort(keys, kind="stable")
            found = placed_along(order, pieces.bytes, none, none, row, way, straight.routes, straight.resources)
            if best is None or found.end.max() < best[1].end.max():
                best = pieces, found
    return best


def _ways(straight: StraightRoutes, pieces: Pieces) -> tuple[IntArray, IntArray]:
    """The routes of the pieces: ``row`` and ``way``, those of piece p are ``way[row[p]:row[p + 1]]``."""
    return picked((straight.row, straight.route), pieces.origin * straight.ranks + pieces.goal)


@jit
def busiest(row: IntArray, route: IntArray, routes: RouteTable, demand: IntArray, resources: int) -> float:
    """Ticks for which the busiest link or group is occupied when every block goes its way."""
    n = len(demand)
    load = np.zeros(resources)
    for i in range(n):
        for j in range(n):
            if i != j and demand[i, j] > 0:
                for w in range(row[i * n + j], row[i * n + j + 1]):
                    for e in range(routes.used[route[w]], routes.used[route[w] + 1]):
                        load[routes.resource[e]] += float(routes.per_byte[e]) * demand[i, j]
    return float(load.max())


@jit
def _blocks(demand: IntArray, largest: int) -> Pieces:
    """Blocks in pieces of at most so many bytes; the turn of those i to j is j - i, piece after piece."""
    found = cut_blocks(demand, len(demand), largest, largest)
    turn = (found.goal - found.origin) % len(demand)
    return Pieces(found.origin, found.goal, found.rail, found.bytes, turn)


@jit
def cut_blocks(demand: IntArray, size: int, across: int, within: int) -> Pieces:
    """Blocks in pieces of at most so many bytes ``across`` boxes of ``size`` ranks and ``within`` one, those of every
    rank to the next one first; the turn of a piece is its number in its block."""
    n, count = len(demand), 0
    for i in range(n):
        for j in range(n):
            largest = within if i // size == j // size else across
            count += (demand[i, j] + largest - 1) // largest if i != j else 0
    origin, goal = np.zeros(count, np.int64), np.zeros(count, np.int64)
    amount, turn = np.zeros(count, np.int64), np.zeros(count, np.int64)
    top = 0
    for ahead in range(1, n):
        for i in range(n):
            j = (i + ahead) % n
            largest = within if i // size == j // size else across
            parts = (demand[i, j] + largest - 1) // largest
            for k in range(parts):
                origin[top], goal[top] = i, j
                amount[top], turn[top] = demand[i, j] // parts + (1 if k < demand[i, j] % parts else 0), k
                top += 1
    return Pieces(origin, goal, np.full(count, -1, np.int64), amount, turn)
