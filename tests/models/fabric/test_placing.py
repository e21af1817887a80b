"""Pieces placed along their routes: tick by tick, from the statement alone."""

from __future__ import annotations

import numpy as np
import pytest
from examples import some_of

from synth.arrays import IntArray
from synth_models.fabric.plans.demands.layout import RouteTable
from synth_models.fabric.plans.demands.timeline import FETCHED, Placed, placed_along

RESOURCES = 7


def random_routes(rng: np.random.Generator) -> RouteTable:
    """Five to eight routes that occupy one to four resources each, with latencies and rates of all kinds."""
    uses = [rng.choice(RESOURCES, rng.integers(1, 5), replace=False) for _ in range(rng.integers(5, 9))]
    used = np.concatenate([[0], np.cumsum([len(one) for one in uses])])
    per_byte = rng.integers(1, 4, used[-1])
    offset = np.concatenate([np.cumsum(rng.integers(0, 3, len(one))) for one in uses])
    slowest = np.maximum.reduceat(per_byte, used[:-1])
    none = np.zeros(0, dtype=np.int64)
    return RouteTable(none, none, used, np.concatenate(uses), offset, per_byte, rng.integers(0, 9, len(uses)), slowest)


def tick_by_tick(
    order: IntArray, amount: IntArray, begins: IntArray, ahead: IntArray, ways: list[list[int]], routes: RouteTable
) -> list[tuple[int, int, int, int]]:
    """Piece, route, start and end of every transfer: each at the first tick from which on all is free that it needs."""
    taken: set[tuple[int, int]] = set()
    found, come = [], begins.tolist()
    for first in (True, False):
        for p in order.tolist():
            for r in ways[p][: ahead[p]] if first else ways[p][ahead[p] :]:
                needs = [
                    (int(routes.resource[e]), int(routes.offset[e]) + tick)
                    for e in range(routes.used[r], routes.used[r + 1])
                    for tick in range(int(routes.per_byte[e] * amount[p]))
                ]
                start = come[p]
                while any((x, start + tick) in taken for x, tick in needs):
                    start += 1
                taken |= {(x, start + tick) for x, tick in needs}
                come[p] = int(start + routes.latency[r] + routes.slowest[r] * amount[p])
                found.append((p, r, start, come[p]))
    return found


@pytest.mark.parametrize(
    ("seed", "pieces"), [*some_of((seed, int(seed % 23)) for seed in range(120)), (3, FETCHED // 2 + 9)]
)
def test_every_piece_is_placed_at_the_first_tick_that_is_free(seed: int, pieces: int) -> None:
    """Random orders and begins, ways of one to four routes of which any number comes first; also with none, and with
    more than are fetched at once."""
    rng = np.random.default_rng(seed)
    routes = random_routes(rng)
    ways = [rng.integers(0, len(routes.latency), rng.integers(1, 5)).tolist() for _ in range(pieces)]
    row = np.concatenate([[0], np.cumsum([len(way) for way in ways])]).astype(np.int64)
    way = np.array([r for one in ways for r in one], dtype=np.int64)
    amount, begins = rng.integers(1, 4, pieces), rng.integers(0, 30, pieces)
    ahead = np.array([rng.integers(0, len(one) + 1) for one in ways], dtype=np.int64)
    if seed % 3 == 0:
        ahead[:] = 0
    order = rng.permutation(pieces)
    placed: Placed = placed_along(order, amount, begins, ahead, row, way, routes, RESOURCES)
    assert list(zip(*(column.tolist() for column in placed), strict=True)) == tick_by_tick(
        order, amount, begins, ahead, ways, routes
    )
