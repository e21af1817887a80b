"""Schedules timed again from their end and from their beginning: valid, never longer; left where their order counts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from models.fabric.small_machines import machine

import synth
from synth.options import RunOptions
from synth_models.fabric import race
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.near_groups import near_groups
from synth_models.fabric.references.hierarchical import method as hierarchical
from synth_models.fabric.references.symmetric import method as symmetric
from synth_models.fabric.scheduling import back_and_forth, chunks
from synth_models.fabric.scheduling.back_and_forth import again, transfers_of
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.reversal import reversed_in_time
from synth_models.fabric.scheduling.transfers import Transfers

ALL = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")
DRAGONFLY = {"network": "dragonfly", "groups": 5, "routers": 2, "hosts": 2}


def made(collective: str, size: int, **keys: object) -> FabricInstance:
    instance = synth.make("fabric", **keys, collective=collective, bytes=size)
    assert isinstance(instance, FabricInstance)
    return instance


@pytest.mark.parametrize("collective", ALL)
@pytest.mark.parametrize(("many", "listed"), [(False, False), (True, False), (False, True)])
def test_passes_keep_schedules_valid(
    collective: str, many: bool, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a schedule that has all its transfers in a bad order, in lists of gaps, in cells and by list scheduling."""
    instance = made(collective, 20 * 512, **DRAGONFLY)
    plan = hierarchical.BoxStrategy(groups=near_groups(instance), between="trees")
    found = hierarchical._made(instance, plan, 2)
    assert found is not None
    monkeypatch.setattr(back_and_forth, "FEW", 0 if many else 10**9)
    better = again(instance, RunOptions(time_limit_s=None), found, Fraction(0), listed=listed)
    assert check_schedule(instance, better).faults == []
    assert better.transfers == found.transfers
    assert chunks.seconds(instance, better) <= chunks.seconds(instance, found)


@pytest.mark.parametrize("listed", [False, True])
def test_what_came_too_late_is_put_first(listed: bool) -> None:
    """Two pieces of 4 seconds each leave rank 0 for rank 1, which sends the second on to rank 2. In their order that
    takes 12 seconds; from the end, the one that is sent on has to go first, and 8 are enough."""
    links = [(0, 1, 1.0, 0.0), (1, 2, 1.0, 0.0)]
    instance = machine(3, links, collective="broadcast", bytes=8)
    transfers = Transfers.of([0, 0], [4, 4], [0, 1, 1], [[0], [0], [1]], [[], [], [1]])
    found = timed(instance, transfers)
    assert chunks.seconds(instance, found) == 12
    options = RunOptions(time_limit_s=None)
    assert chunks.seconds(instance, again(instance, options, found, Fraction(0), listed=listed)) == 8
    assert again(instance, options, found, Fraction(12), listed=listed) is found
    asked = RunOptions(time_limit_s=None, relative_gap=0.5)
    assert again(instance, asked, found, Fraction(6), listed=listed) is found
    near = again(instance, options, found, Fraction(1194, 100), listed=listed)
    assert (near is found) is not listed  # half a hundredth above the bound: only list scheduling goes on


@pytest.mark.long
def test_turned_twice_is_the_same() -> None:
    instance = made("allreduce", 20 * 512, **DRAGONFLY)
    found = race.hierarchical(instance, RunOptions()).solution
    forth = transfers_of(instance.machine, found)
    twice = reversed_in_time(reversed_in_time(forth))
    assert np.array_equal(twice.link, forth.link)
    for i in range(len(forth.piece)):
        rows = [sorted(one.before[one.before_start[i] : one.before_start[i + 1]]) for one in (forth, twice)]
        assert rows[0] == rows[1]


@pytest.mark.long
def test_exchanges_are_left_as_they_are() -> None:
    """Where a rank sends several sums of a piece, each holds what came before: no other order may be made of it."""
    keys = {"network": "torus", "rows": 4, "cols": 4, "layers": 8, "bandwidth": 50e9, "latency": 1e-6}
    instance = made("allreduce", 2**10, **keys)
    found = symmetric.solve(instance, RunOptions())
    assert "exchange" in (found.message or "")
    with pytest.raises(ValueError, match="several sums"):
        transfers_of(instance.machine, found.solution)
    assert again(instance, RunOptions(time_limit_s=None), found.solution, Fraction(0)) is found.solution


@pytest.mark.long
def test_an_exchange_stays_as_it_is() -> None:
    """Two boxes of two: ranks send each other sums before all their parts are there, and would wait for each other."""
    instance = made("allreduce", 120 * 2**10, machine="dgx-a100", boxes=2, gpus="2")
    record = synth.solve(instance, "hierarchical", time_limit=20)
    assert record["verified"]["faults"] == []
    assert record.value is not None
