"""Patterns that fall apart into copies: what a copy is, and that its topologies take as long in all copies at once."""

from __future__ import annotations

import numpy as np
import pytest
from models.harvest.instances import made, stated

from synth.options import RunOptions
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.flows.profiles import profile, step_time
from synth_models.harvest.parts.shortest_path import shortest_schedule
from synth_models.harvest.programs.column_generation.copies import copies, in_all_copies, one_copy
from synth_models.harvest.programs.column_generation.method import Columns


def shifts(gpus: int, *by: int) -> HarvestInstance:
    """Steps of shifts, each of twice the bytes of the one before, on one topology (changes take a second)."""
    steps = [{"bytes": 5e5 * 2**number, "shift": shift} for number, shift in enumerate(by)]
    return stated(gpus=gpus, ports=2, steps=steps, reconfiguration_delay=1.0)


def columns_of(instance: HarvestInstance) -> Columns:
    return Columns(instance, RunOptions(solver="highs", method={}, time_limit_s=None))


def lift_of(columns: Columns):
    return columns.lifts_of(range(len(columns.ratings.patterns)))[0]


def test_parts_are_apart_and_the_lift_leads_one_to_the_other() -> None:
    instance = shifts(12, 3, 6)
    parts = copies(list(instance.demands), lift_of(columns_of(instance)))
    assert parts is not None
    assert sorted(parts.ravel().tolist()) == list(range(12))
    assert sorted(map(sorted, parts.tolist())) == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
    for rows in instance.demands:
        pairs = {tuple(pair) for pair in rows[:, :2].tolist()}
        inside = [(i, j) for i in range(4) for j in range(4) if (parts[0, i], parts[0, j]) in pairs]
        assert {(part[i], part[j]) for part in parts.tolist() for i, j in inside} == pairs
    whole = shifts(12, 3, 4)
    assert copies(list(whole.demands), lift_of(columns_of(whole))) is None


@pytest.mark.parametrize("keys", [{"algorithm": "swing", "gpus": 32}, {"algorithm": "bruck_allgather", "gpus": 24}])
def test_steps_take_as_long_in_one_copy_as_in_all(keys: dict[str, object]) -> None:
    instance = made(**keys, ports=2, message_bytes=4e6)
    columns, random = columns_of(instance), np.random.default_rng(5)
    first = len(instance.steps) // 2 - 2 if keys["algorithm"] == "swing" else 2
    parts = copies([instance.demands[first], instance.demands[first + 1]], lift_of(columns))
    assert parts is not None
    smaller = one_copy(instance, first, first + 1, parts[0])
    assert smaller.gpus == parts.shape[1] < instance.gpus
    lift = columns_of(smaller).lifts_of([0])[-1]
    compared = 0
    for _ in range(4):
        links = lift.links(lift.regular(2, random))
        spread = in_all_copies(links, parts)
        assert np.bincount(spread[:, 0], spread[:, 2]).max() <= 2
        assert np.bincount(spread[:, 1], spread[:, 2]).max() <= 2
        for step in (0, 1):
            alone = profile(smaller.demands[step], links, smaller.gpus)
            everywhere = profile(instance.demands[first + step], spread, instance.gpus)
            assert bool(alone) == bool(everywhere)
            if alone:
                seconds = step_time(smaller, step, alone)[0]
                assert step_time(instance, first + step, everywhere)[0] == pytest.approx(seconds, rel=1e-7)
                compared += 1
    assert compared


@pytest.mark.long
def test_four_copies_take_as_long_as_one() -> None:
    """Bruck's allgather on eight GPUs, whose best topology no renumbering keeps, and four of them side by side."""
    one, four = columns_of(shifts(8, 1, 2, 4)), columns_of(shifts(32, 4, 8, 16))
    one.search()
    listed = four.value
    four.offer_copies()
    assert four.value == pytest.approx(one.value, rel=1e-6)
    assert four.value < listed * (1 - 1e-3)
    verdict = check_schedule(four.instance, four.ratings.schedule(four.chosen))
    assert verdict.ok
    assert verdict.value == pytest.approx(four.value, rel=1e-9)


def bruck(gpus: int, delay: float) -> Columns:
    """Bruck's allgather of 4 MiB on two ports."""
    keys = {"algorithm": "bruck_allgather", "gpus": gpus, "ports": 2, "message_bytes": 2**22}
    return columns_of(made(**keys, reconfiguration_delay=delay))


def best_of_all(columns: Columns) -> float:
    """Seconds of the best schedule over the list and all Cayley graphs that are rated."""
    return shortest_schedule(columns._with_graphs(), lambda step: columns.paid[step])[0]


@pytest.mark.long
def test_no_schedule_over_the_graphs_off_the_list_is_better() -> None:
    columns = bruck(16, 3e-6)
    columns.offer_cayley()
    columns.offer_copies()
    assert columns.graph_cost.shape == (4, 2 * 136)  # of two groups
    assert columns.value <= best_of_all(columns) * (1 + 1e-6)
