"""Plans of blocks of one size between equal boxes: arithmetic by hand, and that they meet their bound exactly."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from examples import some_of
from models.fabric.planned_demands import known, many

import synth
from synth.planning import Planning
from synth_models.fabric.references.plan.method import Planner
from synth_models.fabric.references.plan.rotation import rotated, ticks_in_turn


@cache
def planner(machine: str, boxes: int, gpus: str) -> Planning:
    return synth.Planner(machine, boxes=boxes, gpus=gpus)


def test_two_boxes_of_two() -> None:
    """H100, 100 kB from each of four ranks to each other: a rail carries two blocks at 50 GB/s, 4 us, and they take
    2.6 us to the other box. The first of them hops there while the second is under way."""
    found = known(0).plan(np.full((4, 4), 100_000))
    assert found.check().faults == []
    assert found.seconds == pytest.approx(6.6e-6)
    assert found.gap < 1e-12
    assert found.tried == ()


@pytest.mark.parametrize("seed", some_of(range(40)))
def test_equal_blocks_meet_their_bound(seed: int) -> None:
    """Blocks of one size whose slots last long enough for hops, in one of two cases with pairs that have none: no
    reference is looked at."""
    rng = np.random.default_rng(seed)
    machine, boxes, gpus = ("dgx-h100", "dgx-a100")[seed % 2], int(rng.integers(2, 6)), int(rng.integers(2, 9))
    plans = planner(machine, boxes, str(gpus))
    matrix = np.full((boxes * gpus, boxes * gpus), int(rng.integers(100_000, 10_000_000)))
    if rng.random() < 0.5:
        matrix[gpus:] *= rng.random((len(matrix) - gpus, len(matrix))) < 0.8  # the first box sends all that it can
    found = plans.plan(matrix)
    assert found.check().faults == []
    assert found.gap < 1e-12
    assert found.tried == ()


@pytest.mark.parametrize("seed", some_of(range(20)))
def test_slots_end_no_later_than_the_last_block_arrives(seed: int) -> None:
    """Whatever the sizes, every byte is there; the pieces are the blocks."""
    rng = np.random.default_rng(seed)
    plans = known((0, 1, 3)[seed % 3])
    assert isinstance(plans, Planner)
    routes = plans._relayed
    assert routes is not None
    _, boxed = plans._read(rng.integers(0, 10**6, (len(plans.ranks), len(plans.ranks))))
    pieces, sent = rotated(routes, boxed)
    moved = np.zeros_like(boxed)
    np.add.at(moved, (pieces.origin, pieces.goal), pieces.bytes)
    assert np.array_equal(moved, boxed)
    assert len(pieces.bytes) == np.count_nonzero(boxed)
    equal = np.where(boxed > 0, boxed.max(), 0)
    assert ticks_in_turn(routes, equal) >= ticks_in_turn(routes, boxed)
    assert len(sent.piece) >= len(pieces.bytes)


def test_64_gpus() -> None:
    found = many(8).plan(np.full((64, 64), 2**16))
    assert found.by == "relayed"
    assert found.gap < 1e-12
