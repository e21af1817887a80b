"""Reservations of links and groups against plain lists of intervals, on random transfers.

The oracle knows which ticks of every resource are occupied, and by whom, and tries one start after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth_models.fabric.scheduling import interval_reservations as intervals
from synth_models.fabric.scheduling import reservations as kinds
from synth_models.fabric.scheduling.reservations import Uses

RESOURCES = 4
Entry = tuple[int, int, int]  # resource, offset, duration
ENTRY = st.tuples(st.integers(0, RESOURCES - 1), st.integers(0, 6), st.integers(1, 5))
ONE_A_RESOURCE = st.lists(ENTRY, min_size=1, max_size=4, unique_by=lambda entry: entry[0])
ASKED = st.lists(st.tuples(ONE_A_RESOURCE, st.integers(0, 12)), min_size=1, max_size=30)


def uses_from(rows: list[list[Entry]]) -> Uses:
    flat = [entry for row in rows for entry in row]
    row = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return Uses(row, *(np.array([entry[k] for entry in flat], dtype=np.int64) for k in range(3)))


class Ticks:
    """Which ticks of every resource are occupied, modulo ``period`` if there is one."""

    def __init__(self, period: int | None = None) -> None:
        self.period = period
        self.taken: dict[tuple[int, int], int] = {}

    def of(self, entries: list[Entry], start: int) -> list[tuple[int, int]]:
        ticks = [(x, start + offset + c) for x, offset, duration in entries for c in range(duration)]
        return ticks if self.period is None else list(dict.fromkeys((x, tick % self.period) for x, tick in ticks))

    def free(self, entries: list[Entry], start: int) -> bool:
        return not any(tick in self.taken for tick in self.of(entries, start))

    def first(self, entries: list[Entry], start: int) -> int:
        while not self.free(entries, start):
            start += 1
        return start

    def enter(self, entries: list[Entry], start: int, who: int) -> None:
        assert self.free(entries, start)
        self.taken |= dict.fromkeys(self.of(entries, start), who)

    def take_out(self, entries: list[Entry], start: int, who: int) -> None:
        for tick in self.of(entries, start):
            assert self.taken.pop(tick) == who

    def intervals(self, resource: int) -> list[tuple[int, int]]:
        """Maximal runs of occupied ticks."""
        found: list[tuple[int, int]] = []
        for tick in sorted(tick for x, tick in self.taken if x == resource):
            if found and found[-1][1] == tick:
                found[-1] = found[-1][0], tick + 1
            else:
                found.append((tick, tick + 1))
        return found


def behind(ticks: Ticks, entries: list[Entry], start: int) -> int:
    """The first start behind all that is occupied."""
    return max(start, *(max((end for _, end in ticks.intervals(x)), default=0) - offset for x, offset, _ in entries))


@given(ASKED)
def test_behind_everything(asked: list[tuple[list[Entry], int]]) -> None:
    uses, ticks, reserved = uses_from([entries for entries, _ in asked]), Ticks(), kinds.new_next_free(RESOURCES)
    for i, (entries, now) in enumerate(asked):
        expected = behind(ticks, entries, now)
        start, blocker = kinds.earliest_behind(reserved, uses, i, now)
        assert start == expected
        waited = [x for x, offset, _ in entries if behind(ticks, [(x, offset, 1)], now) == start > now]
        assert blocker == (waited[0] if waited else -1)
        kinds.reserve_behind(reserved, uses, i, start)
        ticks.enter(entries, start, i)


@given(ASKED, st.integers(1, 3))
def test_gaps(asked: list[tuple[list[Entry], int]], few: int) -> None:
    """With room for all gaps the first moment there is; with room for few a free moment, no later than behind all."""
    uses = uses_from([entries for entries, _ in asked])
    for remembered in (64, few):
        ticks, reserved = Ticks(), kinds.new_gaps(RESOURCES, remembered)
        for i, (entries, now) in enumerate(asked):
            start = kinds.earliest_in_gap(reserved, uses, i, now)
            first = ticks.first(entries, now)
            assert start == first if remembered == 64 else first <= start <= behind(ticks, entries, now)
            kinds.reserve_in_gap(reserved, uses, i, start)
            ticks.enter(entries, start, i)


def test_of_too_many_gaps_those_that_end_last_are_known() -> None:
    """A resource taken for one tick at 2, 4 and 6 has gaps 0-2, 3-4 and 5-6; with room for two the first is lost."""
    uses = uses_from([[(0, 0, 1)]])
    reserved = kinds.new_gaps(1, 2)
    for start in (2, 4, 6):
        kinds.reserve_in_gap(reserved, uses, 0, start)
    assert kinds.earliest_in_gap(reserved, uses, 0, 0) == 3


@given(ASKED, st.randoms(use_true_random=False), st.integers(0, 40))
def test_intervals(asked: list[tuple[list[Entry], int]], random: Any, room: int) -> None:
    """Entered and taken out in any order; a pool that is too small says so, and not before it is. Entered at once as
    early as it is free, the same."""
    uses, ticks = uses_from([entries for entries, _ in asked]), Ticks()
    reserved, there = intervals.new_intervals(RESOURCES, room), dict[int, int]()
    for i, (entries, now) in enumerate(asked):
        start = intervals.earliest(reserved, uses, i, now)
        assert start == ticks.first(entries, now)
        at_once, places = with_room(reserved), np.zeros(len(entries), dtype=np.int64)
        filled = at_once.first, at_once.length, at_once.begin, at_once.end
        asks = uses.resource, uses.offset, uses.duration, int(uses.row[i]), int(uses.row[i + 1])
        assert intervals.reserve_earliest(*filled, *asks, now, places) == start
        if not intervals.reserve(reserved, uses, i, start):
            assert reserved.top[1] == 1
            assert room < 8 * intervals.EACH
            return
        assert all(occupied(at_once, x) == occupied(reserved, x) for x in range(RESOURCES))
        ticks.enter(entries, start, i)
        there[i] = start
        while there and random.random() < 0.4:
            j = random.choice(sorted(there))
            if not intervals.release(reserved, uses, j, there[j]):
                assert reserved.top[1] == 1
                return
            ticks.take_out(asked[j][0], there.pop(j), j)
        for x in range(RESOURCES):
            assert occupied(reserved, x) == ticks.intervals(x)
    assert reserved.top[1] == 0


def occupied(reserved: intervals.Intervals, x: int) -> list[tuple[int, int]]:
    """When resource x is."""
    at = slice(reserved.first[x], reserved.first[x] + reserved.length[x])
    return list(zip(reserved.begin[at].tolist(), reserved.end[at].tolist(), strict=True))


def with_room(reserved: intervals.Intervals) -> intervals.Intervals:
    """The same, with room for one more interval of every resource."""
    room = reserved.length + 1
    pool = np.zeros((2, int(room.sum())), dtype=np.int64)
    found = intervals.Intervals(np.cumsum(room) - room, room, reserved.length.copy(), *pool, np.array([pool.size, 0]))
    for x in range(len(found.length)):
        for k, (begin, end) in enumerate(occupied(reserved, x)):
            found.begin[found.first[x] + k], found.end[found.first[x] + k] = begin, end
    return found


def test_intervals_outgrow_their_place() -> None:
    """Forty intervals of one resource move to the end of the pool: 16 places, then 32, then 64; 100 are too few."""
    uses = uses_from([[(1, 0, 1)]])
    for room, fit in ((16 + 32 + 64, 40), (100, 32)):
        reserved = intervals.new_intervals(2, room)
        done = [intervals.reserve(reserved, uses, 0, 2 * k) for k in range(40)]
        assert done == [True] * fit + [False] * (40 - fit)
        assert reserved.length.tolist() == [0, fit]
        assert intervals.earliest(reserved, uses, 0, 0) == 1


@given(ASKED, st.integers(3, 24), st.randoms(use_true_random=False))
def test_modulo_a_period(asked: list[tuple[list[Entry], int]], period: int, random: Any) -> None:
    uses = uses_from([entries for entries, _ in asked])
    ticks, reserved, there = Ticks(period), kinds.new_periodic(RESOURCES, period), dict[int, int]()
    price = np.array([random.randrange(3) for _ in asked], dtype=np.int64)
    for i, (entries, start) in enumerate(asked):
        start %= period
        free, cells = ticks.free(entries, start), len(ticks.of(entries, start))
        cost, known, looked = kinds.conflicts_modulo(reserved, uses, i, start, price, 2**60)
        assert (cost == 0) == (known == 0) == free
        assert looked == cells
        others = {ticks.taken[tick] for tick in ticks.of(entries, start) if tick in ticks.taken}
        assert cost >= sum(1 + int(price[j]) for j in others)
        assert all(
            kinds.is_free_modulo(reserved, x, (start + offset) % period, duration)
            == ticks.free([(x, offset, duration)], start)
            for x, offset, duration in entries
        )
        if others:
            assert kinds.conflicts_modulo(reserved, uses, i, start, price, 1)[0] >= 1
        if free:
            kinds.reserve_modulo(reserved, uses, i, start)
            ticks.enter(entries, start, i)
            there[i] = start
        while there and random.random() < 0.3:
            j = random.choice(sorted(there))
            kinds.release_modulo(reserved, uses, j, there[j])
            ticks.take_out(asked[j][0], there.pop(j), j)
        held = {(x, c): int(who) for (x, c), who in np.ndenumerate(reserved.holder) if who >= 0}
        assert held == ticks.taken


@given(st.data())
def test_uses_of_routes(data: st.DataObject) -> None:
    """Every link and, behind it, its group; merged, a group is occupied from its first moment to its last."""
    links, groups = 5, 2
    group = np.array(data.draw(st.lists(st.integers(-1, groups - 1), min_size=links, max_size=links)), dtype=np.int64)
    hop = st.tuples(st.integers(0, links - 1), st.integers(0, 9), st.integers(1, 9))
    routes = data.draw(st.lists(st.lists(hop, min_size=1, max_size=5, unique_by=lambda h: h[0]), max_size=5))
    start = np.concatenate([[0], np.cumsum([len(route) for route in routes])]).astype(np.int64)
    link, offset, duration = (np.array([hop[k] for route in routes for hop in route], dtype=np.int64) for k in range(3))
    for merged in (False, True):
        uses = kinds.uses_of(start, link, group, offset, duration, merged)
        for i, route in enumerate(routes):
            expected: list[Entry] = []
            for e, t, d in route:
                expected.append((e, t, d))
                if group[e] >= 0:
                    expected.append((links + int(group[e]), t, d))
            if merged:
                spans: dict[int, tuple[int, int]] = {}
                for x, t, d in expected:
                    a, b = spans.get(x, (t, t + d))
                    spans[x] = min(a, t), max(b, t + d)
                expected = [(x, a, b - a) for x, (a, b) in spans.items()]
            at = slice(uses.row[i], uses.row[i + 1])
            columns = (uses.resource[at].tolist(), uses.offset[at].tolist(), uses.duration[at].tolist())
            assert list(zip(*columns, strict=True)) == expected


@pytest.mark.parametrize("name", ["earliest", "earliest_in_gap"])
def test_nothing_to_occupy_starts_at_once(name: str) -> None:
    uses = uses_from([[]])
    if name == "earliest":
        assert intervals.earliest(intervals.new_intervals(1, 0), uses, 0, 7) == 7
    else:
        assert kinds.earliest_in_gap(kinds.new_gaps(1, 1), uses, 0, 7) == 7
