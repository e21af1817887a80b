"""No bound exceeds the least time of any schedule: all schedules of hundreds of tiny machines, all ways to switch."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from models.fabric.bound_oracles import drawn
from models.fabric.brute_force import TooLarge, least_seconds
from models.fabric.small_machines import machine, random_schedule
from models.fabric.test_brute_force import small_instance

from synth.options import RunOptions
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_below

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]
COPIES = ("broadcast", "reduce", "allreduce", "allgather", "reduce_scatter")


def behind_a_switch(chooser: random.Random) -> FabricInstance:
    """Three ranks, most links lead over a switch that copies nothing, with latency: where relayed bytes come late."""
    links: list[tuple[Any, ...]] = []
    for v in range(3):
        links += [
            (v, 3, chooser.choice([1.0, 2.0]), 1.0),
            (3, v, chooser.choice([1.0, 2.0]), chooser.choice([0.0, 1.0])),
        ]
    if chooser.random() < 0.5:
        links.append((*chooser.sample(range(3), 2), 1.0, chooser.choice([0.0, 1.0, 2.0])))
    collective = chooser.choice(COPIES)
    size = 3 if collective in ("allgather", "reduce_scatter") else chooser.choice([1, 2])
    return machine(4, links, [3], collective=collective, bytes=size)


def holds(instance: FabricInstance, pieces: Any, most_states: int, seen: Counter[str]) -> None:
    found = strongest(instance, RunOptions())
    assert check_bound(instance, float_below(found.seconds), found.certificate()) == []
    try:
        least = least_seconds(instance, pieces, most_states=most_states)
    except TooLarge:
        seen["too large"] += 1
        return
    assert found.seconds <= least, (found.argument, float(found.seconds), float(least))
    seen[found.argument] += 1
    seen["tight"] += found.seconds == least


@pytest.mark.parametrize("seed", SEEDS)
def test_no_schedule_is_faster(seed: int) -> None:
    """Pieces of one byte up to a whole block. Every second bound and more is attained."""
    chooser, seen = random.Random(seed), Counter[str]()
    for k in range(24):
        instance = small_instance(chooser, 3 if k % 3 else 4)
        pieces = [[int(n)] if chooser.random() < 0.7 else [1, int(n) - 1] for n in instance.blocks.bytes]
        holds(instance, pieces, 1200, seen)
    assert seen["too large"] <= 6
    assert seen["tight"] >= 9, seen


@pytest.mark.parametrize("seed", SEEDS)
def test_no_schedule_is_faster_behind_a_switch(seed: int) -> None:
    chooser, seen = random.Random(1000 + seed), Counter[str]()
    for _ in range(15):
        instance = behind_a_switch(chooser)
        pieces = [[1] * int(n) if chooser.random() < 0.5 else [int(n)] for n in instance.blocks.bytes]
        holds(instance, pieces, 1200, seen)
    assert seen["too large"] <= 8
    assert seed or seen["deliveries"] + seen["sums"] > 0, seen


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_random_schedules_are_no_faster(seed: int) -> None:
    """Every way to switch, groups and latency; schedules that the check accepts."""
    chooser, compared = random.Random(seed), 0
    for mode in ("cut_through", "store_and_forward"):
        for copies in (False, True):
            switching = {"mode": mode, "multicast": copies, "copies": copies, "buffer": seed % 2 == 1}
            for _ in range(6):
                instance = drawn(chooser, (*COPIES, "alltoall"), latency=1.0, groups=True, switching=switching)
                found = strongest(instance, RunOptions()).seconds
                for _ in range(15):
                    verdict = check_schedule(instance, random_schedule(chooser, instance))
                    if verdict.ok and verdict.value is not None:
                        compared += 1
                        assert found <= Fraction(verdict.value)
    assert compared > 20
