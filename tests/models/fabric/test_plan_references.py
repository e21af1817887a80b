"""No plan is slower than a reference: their values by the replay, and what the planner takes as their lower bounds."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from examples import some_of
from models.fabric.planned_demands import MACHINES, known, many, random_demand, skewed_demand, two_boxes
from models.fabric.small_machines import machine

import synth
from synth.arrays import IntArray
from synth.options import RunOptions
from synth.planning import Planning
from synth_models.fabric import race
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans import pair_edges, pair_paths
from synth_models.fabric.references.plan.method import REFERENCES, Planner
from synth_models.fabric.references.plan.reference_bounds import Demand
from synth_models.fabric.routes.search import Routes
from synth_models.fabric.scheduling import moves


def no_slower(plans: Planning, matrix: IntArray) -> None:
    """The plan is replayed, and so is every reference: none is quicker, none is below what the planner takes as its
    lower bound or below the plan's certified bound."""
    found = plans.plan(matrix)
    assert found.check().faults == []
    if not len(found.instance.blocks):
        return
    assert isinstance(plans, Planner)
    bounds, demand = plans._references, demand_of(plans, found.matrix)
    for method in REFERENCES:
        record = synth.solve(found.instance, method)
        if record["termination"] == "unsupported":
            continue
        assert record["verified"]["faults"] == []
        assert record.value is not None, record["message"]
        assert found.bound <= record.value
        assert found.seconds <= record.value, method
        for enough in (record.value / 2, np.inf):  # the first bound that would do, and the best
            assert bounds.least(method, demand, enough) <= record.value, method


def demand_of(plans: Planner, matrix: IntArray) -> Demand:
    """A matrix as the planner hands it to the bounds."""
    node, (row, column) = np.array(plans.machine.members), np.nonzero(matrix)
    return Demand(node[row], node[column], matrix[row, column], matrix, plans._read(matrix)[1])


@pytest.mark.long(after=7)
@pytest.mark.parametrize("seed", some_of(range(120)))
def test_never_slower_than_the_references(seed: int) -> None:
    plans = known(seed % len(MACHINES))
    no_slower(plans, random_demand(np.random.default_rng(seed), len(plans.ranks)))


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", some_of(range(120)))
def test_never_slower_on_a_random_machine(seed: int) -> None:
    """Up to six ranks and four switches, links of all kinds, some in groups."""
    rng = np.random.default_rng(seed)
    plans = race.planner(random_machine(rng))
    for _ in range(2):
        no_slower(plans, random_demand(rng, len(plans.ranks)))


def random_machine(rng: np.random.Generator) -> FabricInstance:
    """A machine on which every rank can reach every other."""
    while True:
        ranks, switches = int(rng.integers(2, 7)), int(rng.integers(0, 5))
        pairs = [(u, v) for u in range(ranks + switches) for v in range(ranks + switches) if u != v]
        links = [
            (u, v, rng.integers(1, 4) * 1e9, rng.choice([0, 5, 10, 20]) * 1e-7, rng.choice([None, None, "a", "b"]))
            for u, v in pairs for _ in range(int(rng.integers(0, 3)))
        ]  # fmt: skip
        mode = rng.choice(["cut_through", "cut_through", "store_and_forward"])
        own: dict[str, Any] = {"switching": {"mode": mode}, "collective": "broadcast", "bytes": 1}
        with suppress(ValueError):  # some rank cannot be reached
            found = machine(ranks + switches, links, range(ranks, ranks + switches), **own)
            routes = Routes.of(found, 1)
            if all(np.isfinite(routes.seconds(int(rank))).all() for rank in found.machine.ranks):
                return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("boxes", "seed"), [*some_of((8, seed) for seed in range(40)),
                        *(pytest.param(64, seed, marks=pytest.mark.slow) for seed in range(4))]
)  # fmt: skip
def test_never_slower_on_many_ranks(boxes: int, seed: int) -> None:
    """64 and 512 GPUs: zeros, a hot expert, silent ranks, all skews, from a few bytes a pair to many. With seed 38, at
    most 600 bytes a pair, ``direct`` ends 2 ps before a plan of ours."""
    rng = np.random.default_rng(seed)
    no_slower(many(boxes), skewed_demand(rng, 8 * boxes))


@pytest.mark.long(after=2)
@pytest.mark.parametrize("seed", some_of(range(90)))
def test_sums_over_own_rails_are_no_more_than_the_loads_of_all_routes(seed: int) -> None:
    """What ``two_step`` takes at least by routes that have no equal, and by all as it chooses them: the same between
    eight DGX boxes, where none has."""
    rng = np.random.default_rng(seed)
    plans = many(8) if seed % 3 == 0 else boxed_at_random(rng)
    matrix = (random_demand if seed % 3 else skewed_demand)(rng, len(plans.ranks))
    np.fill_diagonal(matrix, 0)
    if not matrix.any():
        return
    bounds, demand = plans._references, demand_of(plans, matrix)
    summed = bounds._of_own_rails(bounds._layout, demand, np.inf)
    routed = bounds._of_routes(demand, pair_edges.by_rail_then_inside, np.inf)
    assert summed <= routed * (1 + 1e-12)
    assert seed % 3 or summed == pytest.approx(routed)


def boxed_at_random(rng: np.random.Generator) -> Planner:
    """A random machine whose ranks are in boxes of two or three, with direct routes in boxes and on rails."""
    while True:
        instance = random_machine(rng)
        ranks, size = list(instance.members), int(rng.integers(2, 4))
        if len(ranks) < 4 or len(ranks) % size:
            continue
        ranks = rng.permutation(ranks).tolist()
        instance.__dict__["boxes"] = [tuple(ranks[k : k + size]) for k in range(0, len(ranks), size)]
        plans = race.planner(instance)
        if plans._layout is not None:
            return plans


@pytest.mark.long
@pytest.mark.parametrize("seed", [5, 38, 60])
def test_small_messages_of_many_pairs(seed: int) -> None:
    """A100, 64 GPUs, 16 KiB a rank: where every block hops before its rail or behind it, no reference is as quick."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(1, 512, (64, 64))
    plans = synth.Planner("dgx-a100", boxes=8)
    no_slower(plans, matrix)
    assert plans.plan(matrix).by == "relayed"


def test_what_is_a_reference_already_does_not_run_again() -> None:
    """Where switches store there are no plans but those of ``direct``, and two steps go the same ways."""
    plans = synth.Planner("teccl-ndv2-2")
    found = plans.plan(np.full((len(plans.ranks),) * 2, 10**6))
    assert found.by == "direct"
    assert not {"direct", "two_step"} & set(found.tried)


@pytest.mark.long
@pytest.mark.parametrize("seed", some_of(range(8)))
def test_never_slower_where_the_instance_has_its_blocks_in_another_order(seed: int) -> None:
    """The order decides over which of equal routes a block goes: as a method, ``plan`` compares with what the
    references make of the same instance."""
    rng = np.random.default_rng(seed)
    found = synth.Planner("dgx-a100", boxes=4).plan(rng.integers(1, 512, (32, 32)))
    shuffled = [found.instance.demand[k] for k in rng.permutation(len(found.instance.demand))]
    instance = FabricInstance.model_validate(found.instance.model_dump() | {"demand": shuffled})
    plan = synth.solve(instance, "plan")
    assert plan["verified"]["faults"] == []
    assert plan.value is not None
    for method in REFERENCES:
        value = synth.solve(instance, method).value
        assert value is not None
        assert plan.value <= value


@pytest.mark.parametrize("hop_by_hop", [False, True])
@pytest.mark.parametrize("seed", some_of(range(60)))
def test_routes_in_turn_are_those_chosen_one_by_one(
    seed: int, hop_by_hop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's transfers are those of Routes.hops and Routes.take, on random machines, along random chains."""
    rng = np.random.default_rng(seed)
    instance = random_machine(rng)
    ranks, count = len(instance.members), 40
    size = rng.integers(1, 10 ** rng.integers(1, 10), count)
    chains = [rng.permutation(ranks)[: rng.integers(2, ranks + 1)] for _ in range(count)]
    piece = np.repeat(np.arange(count), [len(chain) - 1 for chain in chains])
    source, target = (np.concatenate([chain[part] for chain in chains]) for part in (slice(-1), slice(1, None)))
    edges = moves.Edges(piece, source, target, rng.integers(0, 9, len(piece)))
    made = []
    monkeypatch.setattr(moves, "numba_is_loaded", lambda: False)
    for most in (0, 10**9):
        monkeypatch.setattr(moves, "MANY_EDGES", most)
        made.append(moves.along(Routes(instance.machine, int(size.max()), hop_by_hop), size, edges))
    for name in vars(made[0]):
        assert np.array_equal(getattr(made[0], name), getattr(made[1], name)), name


def test_sixteen_routes_of_more_are_compared_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty spines: of more equal routes than are compared, those over links of the least use come first."""
    instance = synth.make(
        "fabric", network="fat_tree", leaves=3, hosts=3, spines=20, collective="alltoall", bytes="9KiB"
    )
    size = np.arange(len(instance.blocks)) % 7 + 1
    edges = pair_edges.straight_to_goals(instance, instance.blocks.origin, instance.blocks.goal)
    made = []
    monkeypatch.setattr(moves, "numba_is_loaded", lambda: False)
    for most in (0, 10**9):
        monkeypatch.setattr(moves, "MANY_EDGES", most)
        made.append(moves.along(Routes.of(instance, 7), size, edges))
    assert np.array_equal(made[0].link, made[1].link)


def test_references_by_hand() -> None:
    """Two boxes of two ranks, no latency, three bytes a second inside and one between. 0 sends 6 bytes to 3.

    Over its own rail and on: 6 + 2 s in one piece, and 6 s + 1/3 s if the last byte alone is handed on. Balanced first:
    3 bytes to rank 1 take 1 s; then both rails send 3 bytes in 3 s; then 3 bytes from 2 to 3 take 1 s: 5 s. Spread out:
    one transfer over rail 0, one inside: 8 s."""
    demand = np.zeros((4, 4), dtype=np.int64)
    demand[0, 3] = 6
    instance = race.planner(two_boxes(0.0)).plan(demand).instance
    values = {name: synth.solve(instance, name).value for name in ("two_step", "fast", "spread_out", "plan")}
    assert values["two_step"] == pytest.approx(6 + 1 / 3)
    assert values["fast"] == 5
    assert values["spread_out"] == 8
    assert values["plan"] is not None
    assert 3 < values["plan"] < 5


@pytest.mark.parametrize("method", ["fast", "two_step", "spread_out", "plan"])
def test_references_of_an_alltoall(method: str) -> None:
    instance = synth.make("fabric", machine="dgx-a100", boxes=2, gpus="3", collective="alltoall", bytes="6MiB")
    assert synth.solve(instance, method, time_limit=3).value is not None
    other = synth.make("fabric", machine="dgx-a100", boxes=2, gpus="3", collective="allgather", bytes="6MiB")
    assert synth.solve(other, method)["termination"] == "unsupported"


def test_every_step_of_spread_out_waits_for_the_steps_before() -> None:
    """Four ranks at a switch, a byte a second, no latency, a byte for every pair: in each of three steps everybody
    sends and receives at once."""
    links = [(*way, 1.0) for r in range(4) for way in ((r, 4), (4, r))]
    everybody = machine(5, links, (4,), collective="alltoall", bytes=4)
    assert synth.solve(everybody, "spread_out").value == 3


@pytest.mark.parametrize("method", ["direct", "two_step"])
def test_many_blocks_start_at_once(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With many transfers the most urgent of all that can start does: replayed, and about as quick as from lines."""
    plans = many(2)
    matrix = np.random.default_rng(3).integers(1, 9000, (16, 16))
    instance = plans.plan(matrix).instance
    seconds = []
    for most in (pair_paths.MOST_TRIED, 10):
        monkeypatch.setattr(pair_paths, "MOST_TRIED", most)
        outcome = race.call(method, instance, RunOptions(None).started_now())
        verdict = check_schedule(instance, outcome.solution)
        assert verdict.faults == []
        seconds.append(verdict.value)
    assert seconds[0] != seconds[1] < 1.5 * seconds[0]


def test_blocks_keep_their_numbers_in_a_reference_schedule(tmp_path: Any) -> None:
    """One pair on a DGX-1 goes quicker by method direct; the file names another block first."""
    twice = tmp_path / "demand.csv"
    twice.write_text("src,dst,bytes\ngpu5,gpu2,7\ngpu0,gpu5,100000\ngpu0,gpu1,3\n")
    named = synth.make("fabric", machine="dgx1", boxes=1, collective="demand", demand=twice)
    record = synth.solve(named, "plan")
    assert record["verified"]["faults"] == []
    assert record["made_by"] == ["direct"]
