"""Start times from an order of transfers: valid, and gaps on a link are filled where that is asked for."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from models.fabric.small_machines import machine, random_instance, random_transfers

from synth.arrays import IntArray
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.scheduling import at_once, cells, lines, list_scheduling
from synth_models.fabric.scheduling.followers import NEVER, Followers
from synth_models.fabric.scheduling.list_scheduling import completion, timed
from synth_models.fabric.scheduling.reservations import Uses
from synth_models.fabric.scheduling.transfers import Transfers

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))]


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.parametrize("beside", [lines.MOST_BESIDE, 0])
def test_nothing_waits_while_it_could_run(beside: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random uses and waits, ties included: two transfers never occupy a resource at once. Where all that a transfer
    needs is occupied from its start on, some of it is taken at every tick from when it was ready until it starts."""
    monkeypatch.setattr(lines, "MOST_BESIDE", beside)
    waited = 0
    for seed in range(40):
        uses, resources, followers, missing = _random_uses(np.random.default_rng(seed))
        priority = np.random.default_rng(seed).integers(0, 9, len(missing))
        start, in_time = list_scheduling.list_scheduled(uses, resources, followers, priority, missing, 60.0)
        assert in_time
        ready = [0] * len(missing)
        for i, own in enumerate(start.tolist()):
            for s in range(followers.row[i], followers.row[i + 1]):
                ready[followers.transfer[s]] = max(ready[followers.transfer[s]], own + int(followers.lag[s]))
        ends = [
            (int(start[i]), int(uses.resource[k]), int(start[i] + uses.offset[k] + uses.duration[k]))
            for i in range(len(start))
            for k in range(uses.row[i], uses.row[i + 1])
        ]
        for i, own in enumerate(start.tolist()):
            assert own >= ready[i]
            waited += own > ready[i]
            for now in range(ready[i], 0 if uses.offset.any() else own):
                taken = {(x, end) for begins, x, end in ends if begins <= now}
                assert any(
                    x == uses.resource[k] and end > now + uses.offset[k]
                    for x, end in taken
                    for k in range(uses.row[i], uses.row[i + 1])
                )
        held = [
            (int(uses.resource[k]), own + int(uses.offset[k]) + t)
            for i, own in enumerate(start.tolist())
            for k in range(uses.row[i], uses.row[i + 1])
            for t in range(uses.duration[k])
        ]
        assert len(held) == len(set(held))
    assert waited


@pytest.mark.parametrize("seed", SEEDS)
def test_the_most_urgent_starts_at_once(seed: int) -> None:
    """Against looking at all transfers in every tick: random uses, some resources occupied after another one only."""
    random, followed = np.random.default_rng(seed), 0
    for k in range(60):
        uses, resources, followers, missing = _random_uses(random)
        if k % 2:
            uses, resources = _followed(random, uses, resources), resources + 1
            followed += len(at_once._decisive(uses, resources).resource) < len(uses.resource)
        priority = random.integers(0, 9, len(missing))
        start, in_time = at_once.started_at_once(uses, resources, followers, priority, missing, 60.0)
        assert in_time
        assert start.tolist() == _tick_by_tick(uses, resources, followers, priority, missing)
    assert followed


def test_who_waits_for_ever_does_not_start() -> None:
    uses = Uses(np.arange(4), np.zeros(3, np.int64), np.zeros(3, np.int64), np.full(3, 2))
    rows = np.array([0, 1, 1, 1])
    never = Followers(rows, np.array([1]), np.array([NEVER]))
    start, in_time = at_once.started_at_once(uses, 1, never, np.arange(3), np.array([0, 1, 0]), 60.0)
    assert (start.tolist(), in_time) == ([0, -1, 2], True)
    started = at_once.started_at_once(uses, 1, never, np.arange(3), np.array([0, 1, 0]), -1.0)
    assert not started[1]


def _followed(random: np.random.Generator, uses: Uses, resources: int) -> Uses:
    """A new resource is occupied a tick after resource 0, at most as long."""
    at = np.flatnonzero(uses.resource == 0) + 1
    shorter = np.maximum(uses.duration[at - 1] - random.integers(0, 2, len(at)), 1)
    columns = [np.insert(uses.resource, at, resources), np.insert(uses.offset, at, uses.offset[at - 1] + 1)]
    row = uses.row + np.searchsorted(at, uses.row, side="right")
    return Uses(row, *columns, np.insert(uses.duration, at, shorter))


def _tick_by_tick(uses: Uses, resources: int, followers: Followers, priority: IntArray, missing: IntArray) -> list[int]:
    """In every tick the most urgent transfer that is ready and finds all it needs free starts, as long as there is
    one."""
    count = len(missing)
    start, ready, waits = [-1] * count, [0] * count, missing.tolist()
    free = [0] * resources
    now = 0
    while -1 in start:
        can = [
            (priority[i], i)
            for i in range(count)
            if start[i] < 0 and waits[i] == 0 and ready[i] <= now
            if all(free[uses.resource[k]] <= now + uses.offset[k] for k in range(uses.row[i], uses.row[i + 1]))
        ]
        if not can:
            now += 1
            continue
        i = min(can)[1]
        start[i] = now
        for k in range(uses.row[i], uses.row[i + 1]):
            end = now + int(uses.offset[k]) + int(uses.duration[k])
            free[uses.resource[k]] = max(free[uses.resource[k]], end)
        for s in range(followers.row[i], followers.row[i + 1]):
            j = followers.transfer[s]
            ready[j], waits[j] = max(ready[j], now + int(followers.lag[s])), waits[j] - 1
    return start


def _random_uses(random: np.random.Generator) -> tuple[Uses, int, Followers, IntArray]:
    """Up to 60 transfers over one to three of up to six resources, and which of them wait for others."""
    count, resources = int(random.integers(1, 60)), int(random.integers(3, 7))
    chosen = [random.permutation(resources)[: random.integers(1, 4)] for _ in range(count)]
    row = np.concatenate([[0], np.cumsum([len(some) for some in chosen])])
    resource = np.concatenate(chosen)
    offset = random.integers(0, 4, len(resource)) * int(random.integers(0, 2))
    waiting = [sorted({int(j) for j in random.integers(i, count, 2)} - {i}) for i in range(count)]
    transfer = np.array([j for some in waiting for j in some], dtype=np.int64)
    rows = np.concatenate([[0], np.cumsum([len(some) for some in waiting])])
    followers = Followers(rows, transfer, random.integers(0, 5, len(transfer)))
    missing = np.bincount(transfer, minlength=count).astype(np.int64)
    return Uses(row, resource, offset, random.integers(1, 6, len(resource))), resources, followers, missing


def test_who_is_next_in_line() -> None:
    """Against a set of places, on lines of up to 3,000 places at once."""
    random = np.random.default_rng(0)
    for uses in (1, 31, 32, 33, 1023, 1024, 1025, 3000):
        row = np.arange(uses + 1)
        one = Uses(row, np.zeros(uses, np.int64), np.zeros(uses, np.int64), np.ones(uses, np.int64))
        empty = lines.empty_lines(one, 1, random.permutation(uses))
        waiting: set[int] = set()
        for _ in range(400):
            place = int(random.integers(uses))
            (lines.leave if place in waiting else lines.join)(empty.bits, empty.level, place)
            waiting ^= {place}
            begin, end = sorted(int(one) for one in random.integers(0, uses + 1, 2))
            found = lines.next_in_line(empty.bits, empty.level, begin, end)
            assert found == min((one for one in waiting if begin <= one < end), default=-1)


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
            if followers.lag[s] != NEVER:
                j = followers.transfer[s]
                ready[j] = max(ready[j], start[i] + max(int(followers.lag[s]), 0))
                waits[j] -= 1
    return start


def _wanted(uses: Any, suits: cells.Cells, entries: range, at: int) -> set[tuple[int, int]]:
    return {(int(uses.resource[k]), at + int(suits.offset[k]) + x) for k in entries for x in range(suits.lasts[k])}
