"""Plans of demands between boxes behind leaf switches that have fewer links up than down."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from examples import some_of

import synth
from synth_models.fabric.plans.demands.balanced_plan import balanced_plan
from synth_models.fabric.plans.demands.narrow_leaves import crossing, leaf_plan
from synth_models.fabric.plans.demands.spines import spread
from synth_models.fabric.references.plan.method import Planner

MACHINES = {
    "two leaves": {"boxes": 8, "gpus": "2", "leaf": 4, "rails": "on", "oversubscription": 2},
    "four leaves": {"boxes": 16, "gpus": "2", "leaf": 4, "rails": "on", "oversubscription": 2},
    "two spines": {"boxes": 16, "gpus": "2", "leaf": 4, "rails": "on", "oversubscription": 2, "spines": 2},
    "narrow": {"boxes": 16, "gpus": "4", "leaf": 4, "rails": "on", "oversubscription": 4},
}


@cache
def planner(name: str) -> Planner:
    found = synth.Planner("dgx-h100", **MACHINES[name])
    assert isinstance(found, Planner)
    return found


@pytest.mark.parametrize("name", ["four leaves", "narrow"])
@pytest.mark.parametrize("kind", ["even", "drawn"])
def test_links_to_the_spines_hardly_pause(name: str, kind: str) -> None:
    """Within 5 % of what has to pass them, where the plan of the boxes alone takes longer; every byte is replayed."""
    plans = planner(name)
    n = len(plans.ranks)
    drawn = np.random.default_rng(1).integers(0, 2**22, (n, n))
    demand = drawn if kind == "drawn" else np.full((n, n), 2**21)
    found = plans.plan(demand)
    assert found.check().faults == []
    assert 0 <= found.gap <= 0.05
    layout, (_, boxed) = plans._layout, plans._read(demand)
    assert layout is not None
    without = balanced_plan(layout, boxed)
    assert without.ticks / without.ticks_per_s > found.seconds


@pytest.mark.parametrize("seed", some_of(range(40)))
def test_every_byte_arrives(seed: int) -> None:
    """Also of demands in which boxes, leaf switches or almost all are silent."""
    rng = np.random.default_rng(seed)
    name = list(MACHINES)[seed % 4]
    plans = planner(name)
    leaves = plans._leaves
    assert leaves is not None
    n = len(plans.ranks)
    demand = rng.integers(0, 10 ** rng.integers(1, 7), (n, n)) * (rng.random((n, n)) < rng.choice([0.01, 0.3, 1.0]))
    demand[: rng.integers(0, n)] = 0
    demand[0, n - 1] += 1
    _, boxed = plans._read(demand)
    made = leaves.plan(boxed)
    sent = np.zeros((n, n), dtype=np.int64)
    np.add.at(sent, (made.pieces.origin, made.pieces.goal), made.pieces.bytes)
    assert np.array_equal(sent, boxed)
    assert (made.pieces.bytes > 0).all()
    found = plans.plan(demand)
    assert found.check().faults == []


def test_boxes_that_share_every_switch_cross_nothing() -> None:
    plans = synth.Planner("dgx-h100", boxes=3, gpus="2")
    assert isinstance(plans, Planner)
    assert plans._layout is not None
    assert crossing(plans._layout) is None


@pytest.mark.parametrize("between", [0, 1])
def test_what_stays_in_boxes_is_cut_into_few_pieces(between: int) -> None:
    """A terabyte inside boxes, between them nothing or a byte: pieces are a share of the time, not of what crosses."""
    plans = planner("two leaves")
    n = len(plans.ranks)
    box = np.arange(n) // 2
    demand = np.where(box[:, None] == box, 2**40, 0)
    demand[0, n - 1] = between
    _, boxed = plans._read(demand)
    assert plans._leaves is not None
    found = plans._leaves.plan(boxed)
    assert len(found.pieces.bytes) < 100_000
    assert int(found.pieces.bytes.sum()) == int(boxed.sum())


def test_spines_share_what_few_pairs_send() -> None:
    """Where the links to one spine have more to carry than those to the others, pairs of boxes go over these: the plan
    is quicker and every byte is replayed. A demand of equal amounts keeps its ways."""
    plans = planner("two spines")
    leaves, n = plans._leaves, len(plans.ranks)
    assert leaves is not None
    assert leaves.spines is not None
    rng = np.random.default_rng(3)
    demand = np.array([rng.permutation(2**24 // np.arange(1, n + 1)) for _ in range(n)])
    np.fill_diagonal(demand, 0)
    _, boxed = plans._read(demand)
    assert leaves.plan(boxed).ticks < leaf_plan(leaves.layout, boxed, leaves.over).ticks
    assert plans.plan(demand).check().faults == []
    even = np.full((n, n), 2**20)
    assert leaves.spines.balanced(even, leaves.over.wide) is leaves.layout


def test_the_fullest_link_gives_its_bytes_to_others() -> None:
    """Box 0 sends 3, 2 and 1 bytes to boxes 1, 2 and 3, all over spine 0 with links of their own down: then 3 over one
    spine and 3 over the other. What has no way is left alone."""
    amount, own = np.zeros((4, 4), dtype=np.int64), np.full((4, 4), -1)
    amount[0, 1:], own[0, 1:] = (3, 2, 1), 0
    up, down = np.full((4, 4, 2), -1), np.full((4, 4, 2), -1)
    up[0, 1:], down[0, 1:] = (0, 1), np.arange(6).reshape(3, 2)
    spine, before = spread(amount, own, up, down)
    assert before == 6
    loads = np.bincount(spine[0, 1:], amount[0, 1:], 2)
    assert loads.tolist() == [3, 3]
    assert (spine[1:] == -1).all()
