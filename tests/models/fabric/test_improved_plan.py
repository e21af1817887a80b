"""A plan placed again backwards and forwards: no slower, and what it says replays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from examples import some_of
from models.fabric.planned_demands import known, many, random_demand

from synth.arrays import IntArray
from synth_models.fabric.plans.demands.balanced_plan import Plan, balanced_plan
from synth_models.fabric.problem.exact import float_above
from synth_models.fabric.references.plan.improved import placed_again
from synth_models.fabric.references.plan.method import Planned, Planner

SEVERAL_BOXES = (0, 1, 3, 6)  # of the machines that the tests of plans share


def checked(plans: Planner, matrix: IntArray, plan: Plan) -> None:
    """The plan replays with the time that it states."""
    seconds = float_above(Fraction(plan.ticks, plan.ticks_per_s))
    found = Planned(plans, matrix, seconds, "balanced", plans.plan(matrix).proven, plan)
    assert found.check().faults == []


@pytest.mark.parametrize("seed", some_of(range(40)))
def test_it_is_no_slower_and_replays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    plans = known(int(rng.choice(SEVERAL_BOXES)))
    assert isinstance(plans, Planner)
    matrix, boxed = plans._read(random_demand(rng, len(plans.ranks)) % 10**7)
    if plans._layout is None or not matrix.any():
        return
    plan = balanced_plan(plans._layout, boxed)
    again = placed_again(plan, plans.resources)
    assert again.ticks <= plan.ticks
    assert again.pieces is plan.pieces
    ways = [
        sorted(zip(one.transfers.piece.tolist(), one.transfers.route.tolist(), strict=True)) for one in (plan, again)
    ]
    assert ways[0] == ways[1]
    checked(plans, matrix, again)


@pytest.mark.long
def test_a_hot_pair_gains() -> None:
    """64 H100, about 64 KiB each, of which one pair has a ninth: what hops before its rail and behind it comes last in
    the plan's order, and first in the new one."""
    plans = many(8)
    assert isinstance(plans, Planner)
    share = 1 / np.arange(1, 64**2 + 1)
    saved = []
    for seed in range(4):
        parts = np.random.default_rng(seed).permutation(share / share.sum()).reshape(64, 64)
        matrix, boxed = plans._read((parts * 64 * 65536).astype(np.int64))
        assert plans._layout is not None
        plan = balanced_plan(plans._layout, boxed)
        again = placed_again(plan, plans.resources)
        saved.append(1 - again.ticks / plan.ticks)
        checked(plans, matrix, again)
    assert max(saved) > 0.02


def test_a_hot_pair_in_a_box_goes_around_as_far_as_that_is_in_time() -> None:
    """64 H100, 6.5 MB from 5/gpu3 to 5/gpu4: over NVLink, 0.7 us away at 450 GB/s, and around over another box, 5.9 us
    away at 50 GB/s. Together they are done when 450 (T - 0.7) + 50 (T - 5.9) = 6500, after 14.22 us."""
    matrix = np.zeros((64, 64), dtype=np.int64)
    matrix[43, 44] = 6_500_000
    found = many(8).plan(matrix)
    assert found.check().faults == []
    assert 14.22e-6 < found.seconds < 14.6e-6
