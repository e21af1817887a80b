"""Plans of small messages: against the replay, arithmetic by hand, and what the cuts that bound them are defined as."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from examples import some_of
from models.fabric.planned_demands import known, many, random_demand
from models.fabric.test_plan_references import no_slower

import synth
from synth_models.fabric.references.plan.method import Planner
from synth_models.fabric.references.plan.relayed_plan import relayed_plan

SEVERAL_BOXES = (0, 1, 3, 6)  # of the machines that the tests of plans share
LONE = {"boxes": 3, "gpus": "1"}


def test_half_of_a_block_hops_before_its_rail_and_half_behind() -> None:
    """H100, two boxes of two GPUs, 8000 bytes from 0/gpu0 to 1/gpu1. Over rail 0 and then NVLink, or NVLink and then
    rail 1, it is 2.6 and 0.7 us away; both rails together take 80 ns for it at 50 GB/s each. No rail can do without
    the hop, so that nothing is quicker."""
    matrix = np.zeros((4, 4), dtype=np.int64)
    matrix[0, 3] = 8000
    found = known(0).plan(matrix)
    assert found.check().faults == []
    assert found.by == "relayed"
    assert found.bound == pytest.approx(3.38e-6)
    assert found.bound <= found.seconds < 3.39e-6


def test_what_one_rank_sends_out_of_its_box_waits_for_the_hop() -> None:
    """The same ranks, 10,000 bytes from 0/gpu0 to each rank of the other box. After 2.6 us rail 0 hands out 50 GB/s,
    rail 1, over which everything hops before, after 3.3 us: 20,000 bytes are through after 2.95 + 0.2 us at least. What
    is for the other place takes 3.3 us and 10,000 bytes over both."""
    matrix = np.zeros((4, 4), dtype=np.int64)
    matrix[0, 2:] = 10_000
    found = known(0).plan(matrix)
    assert found.check().faults == []
    assert found.bound >= 3.4e-6 * (1 - 1e-9)
    assert found.seconds < 3.5e-6


@pytest.mark.long(after=4)
@pytest.mark.parametrize("seed", some_of(range(80)))
def test_every_byte_is_there_and_no_reference_quicker(seed: int) -> None:
    """A few bytes to some hundred KB a rank."""
    rng = np.random.default_rng(seed)
    plans = known(int(rng.choice(SEVERAL_BOXES)))
    ranks = len(plans.ranks)
    matrix = rng.integers(0, 10 ** rng.integers(1, 6), (ranks, ranks))
    matrix[rng.random((ranks, ranks)) < rng.choice([0, 0.5])] = 0
    no_slower(plans, matrix)


@pytest.mark.parametrize("seed", some_of(range(24)))
def test_boxes_of_one_rank(seed: int) -> None:
    rng = np.random.default_rng(seed)
    no_slower(synth.Planner("dgx-a100", **LONE), random_demand(rng, 3))


@pytest.mark.parametrize("seed", some_of(range(60)))
def test_pieces_hop_once_on_either_side(seed: int) -> None:
    """Blocks keep their bytes; between boxes a piece takes one route, between ranks of a box at most one before and one
    behind it; and no transfer of a piece begins before the last has come."""
    rng = np.random.default_rng(seed)
    plans = known(int(rng.choice(SEVERAL_BOXES)))
    assert isinstance(plans, Planner)
    routes = plans._relayed
    assert routes is not None
    matrix, boxed = plans._read(random_demand(rng, len(plans.ranks)) % 10**6)
    if not matrix.any():
        return
    bound = int(plans._bounds.strongest(boxed).seconds * routes.ticks_per_s)
    pieces, sent = relayed_plan(routes, boxed, bound)
    moved = np.zeros_like(boxed)
    np.add.at(moved, (pieces.origin, pieces.goal), pieces.bytes)
    assert np.array_equal(moved, boxed)
    ends = {int(number): divmod(k, len(boxed)) for k, number in enumerate(routes.route.reshape(-1)) if number >= 0}
    for p in range(len(pieces.bytes)):
        mine = np.flatnonzero(sent.piece == p)
        way = [ends[int(r)] for r in sent.route[mine]]
        assert way[0][0] == pieces.origin[p]
        assert way[-1][1] == pieces.goal[p]
        assert all(one[1] == other[0] for one, other in pairwise(way))
        assert sum(i // routes.size != j // routes.size for i, j in way) <= 1
        assert len(way) <= 3
        assert np.all(sent.end[mine[:-1]] <= sent.start[mine[1:]])


@pytest.mark.long
@pytest.mark.parametrize("skew", [0.5, 1.5])
def test_small_messages_are_near_their_bound(skew: float) -> None:
    """64 H100, about 4 KiB a rank: no reference runs."""
    rng = np.random.default_rng(1)
    share = 1 / np.arange(1, 64**2 + 1) ** skew
    matrix = (rng.permutation(share / share.sum()).reshape(64, 64) * 64 * 4096).astype(np.int64)
    found = many(8).plan(matrix)
    assert found.check().faults == []
    assert found.gap < 0.05
    assert found.tried == ()


@pytest.mark.parametrize("seed", some_of(range(40)))
def test_what_has_to_pass_a_cut_is_the_sum_of_its_pairs(seed: int) -> None:
    """And of two boxes or more there are cuts around each rank, each box, and a box for each rank, both ways."""
    rng = np.random.default_rng(seed)
    plans = known(seed % 11)
    assert isinstance(plans, Planner)
    matrix, boxed = plans._read(random_demand(rng, len(plans.ranks)))
    bounds = plans._bounds
    there = bounds._crossing_bytes(boxed)
    assert len(there) == len(bounds._cuts)
    for cut, needed in zip(bounds._cuts, there, strict=True):
        own = boxed[np.ix_(cut.origins[bounds._ranks], cut.goals[bounds._ranks])]
        assert needed == pytest.approx(float(sum(own.reshape(-1).tolist())), rel=1e-9, abs=1e-3 * float(matrix.max()))
        assert not (cut.origins & ~cut.inside).any()
        assert not (cut.goals & cut.inside).any()
