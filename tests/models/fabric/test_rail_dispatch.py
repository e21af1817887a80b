"""Plans whose rails are served as they become free: every byte once, no rail twice at a time, near the bound."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from examples import some_of
from models.fabric.planned_demands import many

import synth
from synth.arrays import IntArray
from synth_models.fabric.plans.demands.balanced_plan import balanced_plan
from synth_models.fabric.references.plan.method import Planner
from synth_models.fabric.references.plan.rail_dispatch import CELLS, Times, _turns, dispatched
from synth_models.fabric.references.plan.straight_plan import cut_blocks


@cache
def planner(machine: str, boxes: int = 14) -> Planner:
    found = synth.Planner(machine, boxes=boxes)
    assert isinstance(found, Planner)
    return found


def even_demand(rng: np.random.Generator, ranks: int) -> IntArray:
    """Blocks of a mean and up to it more or less, some of them nothing."""
    mean = int(rng.integers(200, 2000))
    found = rng.integers(mean - mean * rng.integers(0, 10) // 10, 2 * mean, (ranks, ranks))
    found[rng.random((ranks, ranks)) < rng.choice([0, 0.1])] = 0
    np.fill_diagonal(found, 0)
    return found


@pytest.mark.parametrize("seed", some_of(range(40)))
def test_rails_are_served_one_piece_after_another(seed: int) -> None:
    """A piece takes the rail of its origin's place or of its goal's. No rail of a rank carries two at a time, none
    begins before a hop may be over, and none hops behind its rail too late."""
    rng = np.random.default_rng(seed)
    boxes, size = int(rng.integers(2, 7)), int(rng.integers(2, 9))
    pieces = cut_blocks(even_demand(rng, boxes * size), size, 900, 900)
    ticks = int(pieces.bytes.sum()) * 12 // (boxes * size)
    times = Times(12, 13, ticks // 5, ticks * 4 // 5)
    start, first, last, end = _turns(pieces, boxes, size, times)
    between = pieces.origin // size != pieces.goal // size
    assert np.array_equal(start >= 0, between)
    took = pieces.bytes * times.rail
    assert end == (start + took)[between].max()
    for i, j, x, y in zip(*(column[between] for column in (pieces.origin, pieces.goal, first, last)), strict=True):
        assert x % size == y % size
        assert (x // size, y // size) == (i // size, j // size)
        assert x == i or y == j
    hopped, behind = between & (first != pieces.origin), between & (last != pieces.goal)
    assert np.all(start[hopped] >= times.hop)
    assert np.all((start + pieces.bytes * times.behind)[behind] <= times.until)
    for side in (first, last):
        order = np.lexsort((start, side))
        order = order[between[order]]
        same = side[order][1:] == side[order][:-1]
        assert np.all((start + took)[order][:-1][same] <= start[order][1:][same])


@pytest.mark.long
@pytest.mark.parametrize("seed", some_of(range(24)))
def test_every_byte_comes_near_the_bound(seed: int) -> None:
    """Where a plan is made it is near the bound, and the replay ends with it."""
    rng = np.random.default_rng(seed)
    plans = planner(("dgx-h100", "dgx-a100")[seed % 2])
    routes = plans._relayed
    assert routes is not None
    matrix, boxed = plans._read(even_demand(rng, len(plans.ranks)))
    bound = plans._bounds.strongest(boxed).seconds * routes.ticks_per_s
    made = dispatched(routes, boxed, bound)
    if made is None:
        return
    pieces, sent = made
    moved = np.zeros_like(boxed)
    np.add.at(moved, (pieces.origin, pieces.goal), pieces.bytes)
    assert np.array_equal(moved, boxed)
    assert bound <= sent.end.max() < bound * 1.1
    assert matrix.sum() == pieces.bytes.sum()


def test_one_rank_that_stands_out_is_left_to_others() -> None:
    """64 H100: equal blocks, but one rank receives ten times as much; and blocks so small that hops take longer."""
    plans = many(8)
    assert isinstance(plans, Planner)
    routes = plans._relayed
    assert routes is not None
    matrix = np.full((64, 64), 3000)
    matrix[:, 5] *= 10
    _, boxed = plans._read(matrix)
    assert dispatched(routes, boxed, plans._bounds.strongest(boxed).seconds * routes.ticks_per_s) is None
    _, boxed = plans._read(np.full((64, 64), CELLS))
    assert dispatched(routes, boxed, plans._bounds.strongest(boxed).seconds * routes.ticks_per_s) is None


@pytest.mark.long
def test_about_equal_ranks_are_dispatched_up_to_twenty_latencies() -> None:
    """192 H100, 512 KiB a rank: rails are busy for some latencies. The balanced plan alone is slower."""
    plans = planner("dgx-h100", 24)
    routes = plans._relayed
    assert routes is not None
    assert plans._layout is not None
    matrix, boxed = plans._read(np.random.default_rng(0).integers(1, 2**20 // 192, (192, 192)))
    ticks, latency = routes.ticks_of(boxed)
    assert 3 * latency < ticks < 20 * latency
    found = plans._by_pieces(matrix, boxed)
    assert found.by == "relayed"
    assert found.seconds < balanced_plan(plans._layout, boxed).ticks / plans._layout.ticks_per_s
