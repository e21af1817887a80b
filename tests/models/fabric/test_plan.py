"""Plans of demands: against brute force on tiny machines, the replay, and the certificates' check; the parts they are
made of against their definitions; matrices that are odd or wrong."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import some_of
from hypothesis import given, settings
from hypothesis import strategies as st
from models.fabric.brute_force import TooLarge, least_seconds
from models.fabric.planned_demands import MACHINES, known, planner, random_demand, two_boxes
from models.fabric.small_machines import machine

import synth
from synth.arrays import IntArray
from synth.errors import InputError
from synth.kernels import mode
from synth_models.fabric import race
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.plans.demands.balanced_plan import in_turn
from synth_models.fabric.plans.demands.decomposition import decomposed
from synth_models.fabric.plans.demands.rails import on_rails
from synth_models.fabric.plans.demands.timeline import Pieces
from synth_models.fabric.problem.blocks import blocks_of


@pytest.mark.long(after=3)
@pytest.mark.parametrize("seed", some_of(range(60)))
def test_every_plan_is_replayed_and_every_bound_verified(seed: int) -> None:
    rng = np.random.default_rng(seed)
    plans = known(seed % len(MACHINES))
    demand = random_demand(rng, len(plans.ranks))
    found = plans.plan(demand)
    assert found.check().faults == []
    assert found.bound <= found.seconds
    off = demand.copy()
    np.fill_diagonal(off, 0)
    blocks = found.instance.blocks
    wanted = np.zeros_like(off)
    place = {rank: k for k, rank in enumerate(found.instance.members)}
    for origin, goal, size in zip(blocks.origin.tolist(), blocks.goal.tolist(), blocks.bytes.tolist(), strict=True):
        wanted[place[origin], place[goal]] += size
    assert np.array_equal(wanted, off)
    stated = blocks_of("demand", found.instance.members, found.instance.bytes, None, found.instance.demand or ())
    assert all(np.array_equal(getattr(blocks, name), getattr(stated, name)) for name in ("origin", "goal", "bytes"))


def test_a_machine_that_was_checked_before_is_planned_on() -> None:
    """Nothing that was computed of the machine's own collective is checked in place of the demand."""
    instance = two_boxes(0.0)
    assert instance.parts == (instance,)
    found = race.planner(instance).plan(np.ones((4, 4), dtype=np.int64))
    assert found.check().faults == []
    assert found.instance.parts[0] is found.instance


@pytest.mark.parametrize("way", ["plain", "compiled"])
@pytest.mark.parametrize("most", [1, 3, 2**12, 2**47])
def test_pieces_of_one_turn_keep_their_order(way: str, most: int) -> None:
    """Two lists of pieces, sorted by turn, against numpy's stable sort."""
    drawn, number = np.random.default_rng(most), np.arange(100)
    turn = drawn.integers(0, most, 100)
    both = [Pieces(*(number[part] for _ in range(4)), turn[part]) for part in (slice(60), slice(60, 100))]
    with mode(way):
        assert in_turn(*both).origin.tolist() == np.argsort(turn, kind="stable").tolist()


@pytest.mark.parametrize("seed", some_of(range(24)))
def test_no_bound_is_above_brute_force(seed: int) -> None:
    """Two boxes of two ranks, one or two small blocks: the least time that any schedule of pieces of these sizes takes
    is no less than the bound, and no more than the plan's, whose pieces they are."""
    rng = np.random.default_rng(seed)
    plans = race.planner(two_boxes(float(rng.integers(2))))
    demand = np.zeros((4, 4), dtype=np.int64)
    for _ in range(int(rng.integers(1, 3))):
        demand[tuple(rng.choice(4, 2, replace=False))] = int(rng.integers(1, 4))
    found = plans.plan(demand)
    assert found.check().faults == []
    blocks = range(np.count_nonzero(demand))
    pieces = [found.schedule.piece_bytes[found.schedule.piece_block == b].tolist() for b in blocks]
    try:
        least = least_seconds(found.instance, pieces, most_states=300)
    except TooLarge:
        pytest.skip("too large for brute force")
    assert found.bound <= least <= found.seconds


def test_what_leaves_a_box_of_one_rank_is_bounded_by_its_nic() -> None:
    """Its own NVSwitch leads nowhere else: 50 MB take 1 ms over the NIC's 50 GB/s, 0.1 ms over what joins the rank."""
    found = synth.Planner("dgx-h100", boxes=2, gpus="1").plan([[0, 50_000_000], [0, 0]])
    assert found.check().faults == []
    assert 1e-3 <= found.bound <= found.seconds < 1.01e-3


def test_two_boxes_by_hand() -> None:
    """H100, two boxes of two GPUs: 8 MB from 0/gpu0 to 1/gpu0 and nothing else. Two NICs of 50 GB/s: 80 us, of which
    half goes over 0/gpu1 and 1/gpu1; nothing gets out of a box in less."""
    found = known(0).plan([[0, 0, 8_000_000, 0], *[[0] * 4] * 3])
    assert 80e-6 < found.bound <= found.seconds < 80e-6 * 1.1
    assert found.check().faults == []


@pytest.mark.parametrize("seed", [1, 7, 13, 24])
def test_in_one_box_blocks_also_go_straight(seed: int) -> None:
    """Eight GPUs behind an NVSwitch: what these demands take over the busiest link is what their straight plans take,
    and less than the balanced ones."""
    found = known(4).plan(random_demand(np.random.default_rng(seed), 8))
    assert (found.by, found.optimal) == ("straight", True)
    assert found.check().faults == []


def test_a_hot_pair_inside_a_box_also_takes_the_rails() -> None:
    """1 GiB over NVLink alone takes 2^30 / 450e9 = 2.386 ms, with the NIC's 50 GB/s 2^30 / 500e9 = 2.147 ms."""
    matrix = np.zeros((16, 16), dtype=np.int64)
    matrix[3, 5] = 2**30
    found = synth.Planner("dgx-h100", boxes=2).plan(matrix)
    assert found.check().faults == []
    assert 2**30 / 500e9 < found.bound <= found.seconds < 1.03 * 2**30 / 500e9


@pytest.mark.long
def test_prices_of_one_demand_bound_the_next() -> None:
    """A mesh, where no one cut says how narrow it is. What flow proves with one demand's prices lifts the bound of
    another demand, and the check verifies it there."""
    plans = planner({"network": "mesh", "rows": 2, "cols": 4})
    rng = np.random.default_rng(1)
    first, second = (rng.integers(10**6, 10**8, (8, 8)) for _ in range(2))
    before = plans.plan(second)
    better = plans.plan(first, better=True, time_limit=3)
    assert better.check().faults == []
    after = plans.plan(second)
    assert after.bound > before.bound * 1.05
    assert after.seconds == before.seconds
    assert check_bound(after.instance, after.bound, after.proven.certificate()) == []
    assert check_bound(after.instance, after.bound * 1.001, after.proven.certificate()) != []


@pytest.mark.parametrize("seed", some_of(range(22)))
def test_one_plan_serves_every_demand_of_a_set(seed: int) -> None:
    """Each demand by what is left of the one plan, and an average of them, replayed; no regret below 0."""
    rng = np.random.default_rng(seed)
    plans = known(seed % (len(MACHINES) - 1))
    demands = [random_demand(rng, len(plans.ranks)) for _ in range(int(rng.integers(1, 4)))]
    average = np.sum(demands, axis=0) // len(demands)
    made = plans.one_plan([*demands, average])
    for demand, corner in zip([*demands, average], made.corners, strict=True):
        assert corner.verdict.faults == []
        assert corner.bound <= corner.seconds <= made.seconds
        assert corner.bound == plans.plan(demand).bound
    assert made.worst_regret == max(corner.regret for corner in made.corners) >= 0
    alone = plans.one_plan(demands[:1])
    assert alone.corners[0].seconds <= alone.seconds >= plans.plan(demands[0]).seconds


@pytest.mark.parametrize("seed", some_of(range(40)))
def test_one_plan_keeps_its_time_where_routes_enter_a_link_at_different_latencies(seed: int) -> None:
    """Ranks at two switches, latencies as long as transfers: on a link that comes late on one route and early on
    another, the order of entry is not that of the starts. By the replay no demand takes longer than promised."""
    rng = np.random.default_rng(seed)
    ranks = int(rng.integers(3, 6))
    cables = [(r, ranks + int(rng.integers(2)), float(rng.integers(1, 4))) for r in range(ranks)]
    cables.append((ranks, ranks + 1, 2.0))
    latency = rng.integers(0, 20, len(cables)).tolist()
    links = [(*way, rate, float(late)) for (u, v, rate), late in zip(cables, latency, strict=True)
             for way in ((u, v), (v, u))]  # fmt: skip
    instance = machine(ranks + 2, links, (ranks, ranks + 1), collective="broadcast", bytes=1)
    instance.__dict__["boxes"] = [tuple(range(ranks))]
    demands = [rng.integers(0, 6, (ranks, ranks)) * (rng.random((ranks, ranks)) < 0.6) for _ in range(3)]
    made = race.planner(instance).one_plan(demands)
    for corner in made.corners:
        assert corner.verdict.faults == []
        assert corner.bound <= corner.seconds <= made.seconds


@pytest.mark.long(after=4)
@pytest.mark.parametrize("seed", some_of(range(32)))
def test_one_plan_for_all_that_is_near(seed: int) -> None:
    """Demands drawn near those of a set, corners among them: under the plan, which their largest has too, none takes
    longer than its corner's seconds by the replay, and none has a plan of its own that is quicker than the bound."""
    rng = np.random.default_rng(seed)
    plans = known(seed % (len(MACHINES) - 1))
    near = Fraction(int(rng.integers(1, 10)), 10)
    demands = [random_demand(rng, len(plans.ranks)) % 2**40 for _ in range(int(rng.integers(1, 3)))]
    made = plans.one_plan(demands, near)
    assert made.verdict.faults == []
    assert [corner.verdict.faults for corner in made.corners] == [[] for _ in demands]
    least, most = ([around(matrix, near, way) for matrix in demands] for way in (-1, 1))
    for lower, upper, corner in zip(least, most, made.corners, strict=True):
        drawn = [np.where(rng.random(upper.shape) < 0.5, lower, upper), rng.integers(lower, upper + 1), upper, lower]
        again = plans.one_plan([*most, *drawn])
        assert again.seconds == made.seconds
        assert all(other.seconds <= corner.seconds for other in again.corners[len(most) :])
        assert all(corner.bound <= plans.plan(matrix).seconds for matrix in drawn)
        assert again.corners[-2].seconds == corner.seconds


def around(matrix: IntArray, near: Fraction, way: int) -> IntArray:
    """The least (way -1) or the largest matrix of which no number differs by more than this share."""
    found = [[number * (1 + way * near) for number in row] for row in matrix.tolist()]
    return np.array([[math.ceil(number) if way < 0 else math.floor(number) for number in row] for row in found])


@pytest.mark.long(after=3)
@pytest.mark.parametrize("seed", some_of(range(24)))
def test_averages_of_a_set_are_bounded(seed: int) -> None:
    """Averages with weights of a fourth: none has a plan of its own that is quicker than the bound of all averages,
    none takes longer by the one plan than promised."""
    rng = np.random.default_rng(seed)
    plans = known(seed % (len(MACHINES) - 1))
    demands = [random_demand(rng, len(plans.ranks)) // 4 * 4 for _ in range(3)]
    made = plans.one_plan(demands)
    weights = [np.bincount(rng.integers(0, 3, 4), minlength=3) for _ in range(4)]
    drawn = [sum(int(w) * (matrix // 4) for w, matrix in zip(row, demands, strict=True)) for row in weights]
    again = plans.one_plan([*demands, *drawn])
    assert made.verdict.faults == []
    for matrix, corner in zip(drawn, again.corners[3:], strict=True):
        assert made.average_bound <= plans.plan(matrix).seconds
        assert corner.seconds <= made.seconds
        assert corner.regret <= made.average_regret


def test_averages_by_hand() -> None:
    """Two boxes of two ranks, no latency. Rank 0 sends all others 4 bytes, or rank 1 does: of every average 8 bytes
    leave the box over two rails, in 4 s. Rank 0 sends rank 1 12 bytes, or rank 2 sends rank 3 as many: each takes 3 s
    at 4 bytes a second; half of both is 6 bytes each, which takes 1.5 s."""
    demands = [[[0, 4, 4, 4], *[[0] * 4] * 3], [[0] * 4, [4, 0, 4, 4], *[[0] * 4] * 2]]
    made = race.planner(two_boxes(0.0)).one_plan(demands)
    assert [corner.bound for corner in made.corners] == [4, 4]
    assert made.average_bound == 4
    inside = [[[0, 12, 0, 0], *[[0] * 4] * 3], [[0] * 4, [0] * 4, [0] * 4, [0, 0, 12, 0]]]
    apart = race.planner(two_boxes(0.0)).one_plan(inside)
    assert [corner.bound for corner in apart.corners] == [3, 3]
    assert apart.average_bound == 1.5


@pytest.mark.parametrize("near", [Fraction(-1, 10), Fraction(1), 2])
def test_near_is_a_share(near: Any) -> None:
    with pytest.raises(InputError, match="near"):
        known(0).one_plan([np.ones((4, 4))], near)


def test_near_a_demand_that_is_too_large() -> None:
    with pytest.raises(InputError, match="in 0"):
        known(0).one_plan([[[0, 2**48, 0, 0], *[[0] * 4] * 3]], Fraction(1, 2))


@pytest.mark.parametrize(
    ("demand", "words"),
    [
        ([[1, 2], [3, 4]], "2 x 2: must be 4 x 4"),
        ([[1, 2], [3]], "unequal length"),
        ([[0] * 4] * 3, "3 x 4"),
        (5, "one number"),
        ([[0, 1, 2, float("nan")], *[[0] * 4] * 3], "row 0, column 3 = nan"),
        ([[0, 1, 2, float("inf")], *[[0] * 4] * 3], "column 3 = inf"),
        ([[0] * 4, [0, 0, -1, 0], *[[0] * 4] * 2], "row 1, column 2 = -1"),
        ([[0, 0.5, 0, 0], *[[0] * 4] * 3], "whole number"),
        ([[0, 2**49, 0, 0], *[[0] * 4] * 3], "in 0.."),
        ([[0, 2**48, 0, 1], *[[0] * 4] * 3], "its sum"),
        ([[0, 2**70, 0, 0], *[[0] * 4] * 3], "64 bits"),
        ([["a"] * 4] * 4, "numbers"),
        ([[True] * 4] * 4, "numbers"),
    ],
)
def test_what_is_no_demand_is_refused(demand: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        known(0).plan(demand)


def test_nothing_to_move_and_only_the_diagonal() -> None:
    for demand in (np.zeros((4, 4), dtype=np.int64), np.eye(4, dtype=np.int64) * 7):
        found = known(0).plan(demand)
        assert (found.seconds, found.bound, found.gap) == (0, 0, 0)
        assert found.check().faults == []


def test_as_a_method(tmp_path: Any) -> None:
    instance = synth.make("fabric", machine="dgx-a100", boxes=2, gpus="4", collective="alltoall", bytes="64MiB")
    record = synth.solve(instance, "plan", results=tmp_path)
    assert synth.check(record, instance).faults == []
    assert record["bound"] is not None
    assert record.value is not None
    assert record.value < record["bound"] * 1.02
    assert synth.solve(instance.model_copy(update={"collective": "allgather"}), "plan")["termination"] == "unsupported"
    twice = tmp_path / "twice.csv"
    twice.write_text("src,dst,bytes\n0/gpu0,1/gpu0,5\n0/gpu0,1/gpu0,6\n")
    named = synth.make("fabric", machine="dgx-a100", boxes=2, collective="demand", demand=twice)
    assert "twice" in (synth.solve(named, "plan")["message"] or "")


@pytest.mark.long
@given(st.integers(1, 7), st.integers(0, 2**32), st.sampled_from([1, 5, 1000, 2**40]))
@settings(max_examples=60, deadline=None)
def test_stages_are_permutations_that_make_up_the_matrix(n: int, seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, most + 1, (n, n)) * (rng.random((n, n)) < rng.choice([0.2, 0.6, 1]))
    stages = decomposed(matrix)
    carried = np.zeros_like(matrix)
    for target, length in zip(stages.target, stages.length, strict=True):
        assert sorted(target.tolist()) == list(range(n))
        assert length > 0
        carried[np.arange(n), target] += length
    assert (carried >= matrix).all()
    assert stages.length.sum() == max(matrix.sum(axis=0).max(), matrix.sum(axis=1).max())
    assert len(stages.length) <= (n - 1) ** 2 + 1


@given(st.integers(1, 3), st.integers(1, 5), st.integers(0, 2**32), st.sampled_from([1, 7, 10**6]))
@settings(max_examples=60, deadline=None)
def test_rails_share_what_a_box_sends_another_to_the_byte(boxes: int, size: int, seed: int, most: int) -> None:
    n = boxes * size
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, most + 1, (n, n)) * (rng.random((n, n)) < rng.choice([0.1, 1]))
    parts, fullest = on_rails(demand, boxes, size)
    carried = np.zeros_like(demand)
    for k in range(boxes * boxes * size):
        b, c, q = k // (boxes * size), k // size % boxes, k % size
        rows = slice(parts.row[k], parts.row[k + 1])
        assert (parts.bytes[rows] > 0).all()
        assert (parts.origin[rows] // size == b).all()
        assert (parts.goal[rows] // size == c).all()
        between = int(demand[b * size : (b + 1) * size, c * size : (c + 1) * size].sum()) if b != c else 0
        assert parts.bytes[rows].sum() == between // size + (q < between % size)
        assert fullest[b, c] == -(-between // size)
        np.add.at(carried, (parts.origin[rows], parts.goal[rows]), parts.bytes[rows])
    box = np.arange(n) // size
    assert np.array_equal(carried, np.where(box[:, None] != box, demand, 0))
