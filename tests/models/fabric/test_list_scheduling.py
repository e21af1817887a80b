"""Start times from an order of transfers: valid, and gaps on a link are filled where that is asked for."""

from __future__ import annotations

import random

import pytest
from models.fabric.small_machines import machine, random_instance, random_transfers

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.scheduling.list_scheduling import Transfers, completion, timed

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))]


@pytest.mark.parametrize("seed", SEEDS)
def test_filled_gaps_are_replayed(seed: int) -> None:
    """Random transfers on random machines, in any order of priority."""
    chooser, gained = random.Random(seed), 0
    for _ in range(150):
        instance = random_instance(chooser)
        transfers = random_transfers(chooser, instance)
        filled, behind = timed(instance, transfers, in_gaps=True), timed(instance, transfers)
        assert check_schedule(instance, filled).faults == []
        gained += completion(instance, filled) < completion(instance, behind)
    assert gained


def test_what_comes_from_afar_lets_others_pass() -> None:
    """Ranks 0 (5 s away) and 1 (next to it) send to rank 2 over a switch; rank 0 goes first."""
    links = [(0, 3, 1.0, 5.0), (1, 3, 1.0, 0.0), (3, 2, 1.0, 0.0)]
    own = {"collective": "demand", "bytes": 2, "demand": [(0, 2, 1), (1, 2, 1)]}
    instance = machine(4, links, [3], **own)
    transfers = Transfers.of([0, 1], [1, 1], [0, 1], [[0, 2], [1, 2]], [[], []], [0, 1])
    found = [timed(instance, transfers, in_gaps=in_gaps) for in_gaps in (False, True)]
    assert [completion(instance, one) / one.ticks_per_s for one in found] == [7.0, 6.0]
