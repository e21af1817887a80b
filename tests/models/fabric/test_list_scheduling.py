"""Start times from an order of transfers: valid, and gaps on a link are filled where that is asked for."""

from __future__ import annotations

import random
from typing import Any

import pytest
from models.fabric.small_machines import machine, random_instance, random_transfers

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.scheduling import cells, list_scheduling
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


@pytest.mark.parametrize("seed", SEEDS)
def test_cells_are_the_first_free_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against trying every start in turn, on random machines; where cells suit all times and where they do not, also
    where a cell takes a whole transfer."""
    chooser, exactly, whole = random.Random(seed), 0, 0
    for k in range(120):
        if k == 60:
            monkeypatch.setattr(cells, "MOST", 8)
            monkeypatch.setattr(cells, "COARSE", 5)
            monkeypatch.setattr(cells, "SLOT", 1.5)
        rounded = k % 2 > 0
        instance = random_instance(chooser)
        transfers = random_transfers(chooser, instance)
        with monkeypatch.context() as own:
            tried: list[tuple[Any, ...]] = []
            kept = cells.placed_in_cells

            def seen(*given: Any, kept: Any = kept, tried: list[tuple[Any, ...]] = tried) -> Any:
                found = kept(*given)
                tried.append((given, found))
                return found

            own.setattr(list_scheduling, "placed_in_cells", seen)
            made = timed(instance, transfers, in_cells=True, rounded=rounded)
        assert check_schedule(instance, made).faults == []
        ((uses, _, followers, priority, missing, *_), found) = tried[0]
        suits = cells.Cells.of(uses, rounded)
        if found is not None and suits is not None:
            exactly += suits.ticks < int(uses.duration.max())
            whole += suits.ticks > int(uses.duration.max())
            assert found[0].tolist() == _one_start_after_the_other(uses, followers, priority, missing, rounded)
    assert exactly
    assert whole


def _one_start_after_the_other(uses: Any, followers: Any, priority: Any, missing: Any, rounded: bool) -> list[int]:
    """What :func:`placed_in_cells` returns, by sets of occupied cells."""
    suits = cells.Cells.of(uses, rounded)
    assert suits is not None
    start, ready, waits = [-1] * len(priority), [0] * len(priority), missing.tolist()
    taken: set[tuple[int, int]] = set()
    while any(waits[i] == 0 and start[i] < 0 for i in range(len(priority))):
        i = min((i for i in range(len(priority)) if waits[i] == 0 and start[i] < 0), key=lambda i: (priority[i], i))
        entries = range(uses.row[i], uses.row[i + 1])
        at = -(-ready[i] // suits.ticks)
        while taken & (wanted := _wanted(uses, suits, entries, at)):
            at += 1
        taken |= wanted
        start[i] = at * suits.ticks
        for s in range(followers.row[i], followers.row[i + 1]):
            if followers.lag[s] != cells.NEVER:
                j = followers.transfer[s]
                ready[j] = max(ready[j], start[i] + max(int(followers.lag[s]), 0))
                waits[j] -= 1
    return start


def _wanted(uses: Any, suits: cells.Cells, entries: range, at: int) -> set[tuple[int, int]]:
    return {(int(uses.resource[k]), at + int(suits.offset[k]) + x) for k in entries for x in range(suits.lasts[k])}
