"""``flow``'s schedules: replayed without fault on random machines, near the fluid optimum on known ones."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from examples import some_of
from models.fabric.test_flow_fluid import instance_of, random_instance

import synth
from synth.clock import start_up_costs
from synth.options import RunOptions
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans import straight
from synth_models.fabric.programs.flow import search
from synth_models.fabric.programs.flow.busiest_first import critical_order
from synth_models.fabric.programs.flow.fluid_optimum import fluid_optimum
from synth_models.fabric.programs.flow.pieces import cut, planned, transfers
from synth_models.fabric.programs.flow.priority_rules import priorities
from synth_models.fabric.programs.flow.tuned import BUSIEST, RULES
from synth_models.fabric.race import flow as solve
from synth_models.fabric.scheduling.insertion import Bookings, improved, ranked
from synth_models.fabric.scheduling.list_scheduling import completion

OPTIONS = RunOptions(time_limit_s=60.0)


def replayed(instance: FabricInstance, **method: int) -> float:
    """Seconds of ``flow``'s schedule, replayed without fault."""
    outcome = solve(instance, RunOptions(time_limit_s=60.0, method=method).started_now())
    assert outcome.termination == "finished"
    verdict = check_schedule(instance, outcome.solution)
    assert not verdict.faults
    assert verdict.value is not None
    schedule = outcome.solution
    assert completion(instance, schedule) / schedule.ticks_per_s == pytest.approx(verdict.value)
    carried = np.bincount(schedule.piece_block, schedule.piece_bytes, len(instance.blocks))
    assert np.array_equal(carried, instance.blocks.bytes)
    return float(verdict.value)


@pytest.mark.parametrize("first", some_of(range(0, 60, 15)))
def test_schedules_on_random_machines_are_valid_and_no_faster_than_the_fluid(first: int) -> None:
    """Uneven demands, several rows for one pair, one byte beside a million, both ways of switching, groups."""
    for seed in range(first, first + 15):
        instance = random_instance(seed)
        fluid = fluid_optimum(instance, OPTIONS)
        assert fluid is not None
        assert replayed(instance, **({"chunks": 3} if seed % 3 == 0 else {})) >= fluid.time * (1 - 1e-8), seed


@pytest.mark.parametrize("seed", range(20))
def test_orders_are_complete_and_improvement_never_loses(seed: int) -> None:
    instance = random_instance(1000 + seed)
    fluid = fluid_optimum(instance, OPTIONS)
    assert fluid is not None
    pieces = cut(planned(instance, fluid.routes), instance.blocks.bytes.max() / 4)
    for rule in RULES:
        moves = transfers(pieces, priorities(pieces, rule, seed))
        bookings = Bookings.of(instance, moves)
        start = bookings.placed(moves.priority)
        better = improved(bookings, start, np.inf, 0)
        assert bookings.end(better) <= bookings.end(start)
        assert not check_schedule(instance, bookings.schedule(better)).faults
    for busiest in BUSIEST:
        order = critical_order(pieces, bookings, busiest, seed)
        assert np.all(order <= 0 if busiest.backwards else order >= 0)
        assert not check_schedule(instance, bookings.schedule(bookings.placed(ranked(order)))).faults


@pytest.mark.parametrize(
    ("name", "boxes", "ranks", "within"),
    [("dgx1", 1, 8, 1.01), ("dgx-a100", 1, 8, 1.01), ("dgx-a100", 2, 16, 1.01), ("mi250", 1, 16, 1.01)],
)
def test_1_gib_is_exchanged_in_the_fluid_optimum_and_1_percent(
    name: str, boxes: int, ranks: int, within: float
) -> None:
    instance = instance_of({"kind": "machine", "name": name, "boxes": boxes}, "alltoall", 2**30)
    assert len(instance.members) == ranks
    fluid = fluid_optimum(instance, OPTIONS)
    assert fluid is not None
    assert replayed(instance) <= within * fluid.time


@pytest.mark.long
def test_short_messages_take_the_latency() -> None:
    """DGX-1: the furthest GPU is two hops of 0.7 us away; 16 bytes a pair add next to nothing."""
    instance = instance_of({"kind": "machine", "name": "dgx1"}, "alltoall", 128)
    assert 1.4e-6 <= replayed(instance) <= 1.41e-6


@pytest.mark.parametrize("collective", ["gather", "scatter"])
def test_gather_and_scatter_keep_the_root_busy(collective: str) -> None:
    """Line of four ranks, the root at its end, 1000 bytes a rank at 1 byte/s: 3000 s on the last link."""
    network = {"kind": "line", "nodes": 4, "bandwidth": 1.0, "latency": 0.0}
    assert replayed(instance_of(network, collective, 4000)) <= 3000.0 * 1.001


def test_alltoall_on_a_switch_is_a_sequence_of_shifts() -> None:
    """Seven ranks on one switch: six rounds without a pause, then the latency of two links."""
    network = {"kind": "star", "nodes": 7, "bandwidth": 1.0, "latency": 1.0}
    instance = instance_of(network, "alltoall", 7000)
    assert replayed(instance) == pytest.approx(6002.0)


@pytest.mark.long
def test_relays_and_failures() -> None:
    a100 = {"kind": "machine", "name": "dgx-a100", "boxes": 2}
    group = {"ranks": [0, 1, 8], "relay": True}
    assert replayed(instance_of(a100, "alltoall", 3 * 2**20, **group)) <= replayed(
        instance_of(a100, "alltoall", 3 * 2**20, ranks=[0, 1, 8])
    )
    whole = fluid_optimum(instance_of(a100, "alltoall", 2**24), OPTIONS)
    broken = instance_of(a100, "alltoall", 2**24, failed={"nodes": [17]})
    fluid = fluid_optimum(broken, OPTIONS)
    assert whole is not None
    assert fluid is not None
    assert fluid.time == pytest.approx(whole.time * 8 / 7)
    assert replayed(broken) >= fluid.time


def test_collectives_of_other_kinds_are_unsupported() -> None:
    outcome = solve(instance_of({"kind": "ring", "nodes": 4}, "allgather", 4), OPTIONS)
    assert outcome.termination == "unsupported"


def test_one_rank_has_nothing_to_do() -> None:
    instance = instance_of({"kind": "ring", "nodes": 4}, "alltoall", 4, ranks=[2])
    outcome = solve(instance, OPTIONS)
    assert outcome.termination == "finished"
    assert not check_schedule(instance, outcome.solution).faults


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_what_a_first_run_costs_takes_no_try_from_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at a draft is said to have taken a minute of compiling, three times what all tries may take: the tries
    and the schedule are those without."""
    instance = random_instance(seed)
    fluid = fluid_optimum(instance, OPTIONS)
    assert fluid is not None
    clock, tries = time.monotonic, [0]

    def found(cost_s: float) -> tuple[int, float]:
        tries[0], spent, real = 0, [0.0], improved

        def costly(*words: Any) -> Any:
            tries[0] += 1
            spent[0] += cost_s
            start_up_costs.spend(cost_s)
            return real(*words)

        with monkeypatch.context() as patch:
            patch.setattr(time, "monotonic", lambda: clock() + spent[0])
            patch.setattr(search, "improved", costly)
            best = search.best_draft(instance, [("shortest", fluid.routes)], 0.0, OPTIONS.started_now())
        return tries[0], best.seconds

    assert found(60.0) == found(0.0)
    assert tries[0] > 1


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("size", "near"), [(24, True), (24 * 1024, False)])
def test_very_many_small_blocks_go_straight(size: int, near: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one byte a pair, that is near the bound and no flow is looked for; of a kilobyte the flow is found as well."""
    monkeypatch.setattr(straight, "MANY", 100)
    instance = synth.make(
        "fabric", network="dragonfly", groups=3, routers=4, hosts=2, collective="alltoall", bytes=size
    )
    assert isinstance(instance, FabricInstance)
    outcome = solve(instance, RunOptions(time_limit_s=60.0).started_now())
    assert check_schedule(instance, outcome.solution).faults == []
    assert (outcome.made_by == ("slots",)) == near
