"""Traffic: blocks with several holders and wanters, copies and contributions; files, replay, bounds, methods."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from models.fabric.small_machines import machine, random_instance, random_schedule, schedule_of
from models.fabric.test_replay_oracle import compare, mutated

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule

TRIANGLE: list[Any] = [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0), (0, 2, 1.0), (2, 0, 1.0)]


def among_three(*rows: tuple[int, list[int], str, list[int]], **own: Any) -> FabricInstance:
    """Ranks 0, 1, 2 with links of a byte a second both ways between any two."""
    listed = [{"bytes": n, "holders": holders, "mode": mode, "wanters": wanters} for n, holders, mode, wanters in rows]
    return machine(3, TRIANGLE, collective="traffic", traffic=listed, bytes=sum(row[0] for row in rows), **own)


def test_any_copy_will_do_and_every_contribution_once() -> None:
    """Rank 2 gets a byte from either holder at 1; the sum of both needs both; a contribution twice is a fault, and so
    is a copy of what is not complete."""
    copies, sums = among_three((1, [0, 1], "any", [2])), among_three((1, [0, 1], "sum", [2]))
    for link in (4, 2):
        assert check_schedule(copies, schedule_of([(0, 1)], [(0, 0, [link])])).value == 1.0
    both = [(0, 0, [4], True), (0, 0, [2], True)]
    assert check_schedule(sums, schedule_of([(0, 1)], both)).value == 1.0
    lacking = check_schedule(sums, schedule_of([(0, 1)], both[:1])).faults
    assert lacking == [
        "end: rank 2 does not hold the complete sum of piece 0 of block 0: 1 contributions lack, first rank 1's"
    ]
    twice = [*both, (1, 0, [4], True)]
    assert "that its receiver already has" in check_schedule(sums, schedule_of([(0, 1)], twice)).faults[0]
    assert "passes on piece 0 as complete" in check_schedule(sums, schedule_of([(0, 1)], [(0, 0, [4])])).faults[0]
    assert "traffic has no sums" in check_schedule(copies, schedule_of([(0, 1)], both)).faults[0]


def test_a_holder_that_is_late_hands_on_what_it_has_got() -> None:
    """Both hold the byte, rank 1 from 5 on; it hands on rank 0's copy at 1, not its own."""
    instance = among_three((1, [0, 1], "any", [2]), ready=[[1, 5.0]])
    assert check_schedule(instance, schedule_of([(0, 1)], [(0, 0, [0]), (1, 0, [2])])).value == 2.0
    early = check_schedule(instance, schedule_of([(0, 1)], [(1, 0, [2])])).faults
    assert "of its own before it is ready (5.00 s)" in early[0]


def random_traffic_schedule(chooser: random.Random) -> tuple[FabricInstance, Schedule]:
    """A random instance that transfers at random can solve, and such a schedule."""
    while True:
        instance = random_instance(chooser, traffic=True)
        try:
            schedule = random_schedule(chooser, instance)
        except IndexError:
            continue  # no in-tree to the rank that was drawn
        if schedule.transfers:
            return instance, schedule


def replays_agree(seed: int, seen: Counter[str]) -> None:
    chooser = random.Random(seed)
    instance, schedule = random_traffic_schedule(chooser)
    assert compare(instance, schedule) == set()
    for _ in range(3):
        schedule = mutated(chooser, instance, schedule)
        seen.update(compare(instance, schedule) or {"none"})
        if not schedule.transfers:
            break


def test_replay_against_the_oracle() -> None:
    seen = Counter[str]()
    for seed in range(40):
        replays_agree(seed, seen)
    assert {"none", "missing", "adds", "incomplete"} <= seen.keys()


@pytest.mark.slow
def test_many_replays_against_the_oracle() -> None:
    for seed in range(40, 3000):
        replays_agree(seed, Counter())
