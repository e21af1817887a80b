"""Pictures of use: a cell is white only where nothing is in use, and its share is the exact one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.views import occupancy
from synth.views.occupancy import busy_share, folded


def exact_share(rows: list[tuple[int, int, int]], row: int, bin_: int, horizon: int, bins: int) -> Fraction:
    """The part of a bin that a row's intervals cover, from the definition."""
    low, high = Fraction(bin_ * horizon, bins), Fraction((bin_ + 1) * horizon, bins)
    covered = sum(max(Fraction(0), min(high, b) - max(low, a)) for r, a, b in rows if r == row)
    return Fraction(covered) / (high - low)


@st.composite
def schedules(draw: st.DrawFn) -> tuple[list[tuple[int, int, int]], int, int, int]:
    """Intervals of a few rows, those of a row one after the other; rows, horizon, bins."""
    rows, scale = draw(st.integers(1, 3)), draw(st.sampled_from([1, 7, 10**9, 2**53 + 1]))
    intervals, horizon = [], 1
    for row in range(rows):
        cuts = sorted(draw(st.sets(st.integers(0, 60), max_size=12)))
        for a, b in zip(cuts[::2], cuts[1::2], strict=False):
            intervals.append((row, a * scale, b * scale))
            horizon = max(horizon, b * scale)
    return intervals, rows, horizon, draw(st.integers(1, 40))


@given(schedules())
def test_shares_are_exact_and_never_nothing_where_something_is(case: Any) -> None:
    intervals, rows, horizon, bins = case
    columns = np.array(intervals, dtype=np.int64).reshape(-1, 3).T
    found = busy_share(*columns, rows, horizon, bins)
    assert found.shape == (rows, bins)
    for row in range(rows):
        for bin_ in range(bins):
            share = exact_share(intervals, row, bin_, horizon, bins)
            assert found[row, bin_] == pytest.approx(float(share), abs=2 * occupancy.LEAST)
            if share > Fraction(1, 10**12):
                assert found[row, bin_] > 0
            if share == 0 and all(b * bins % horizon == 0 for r, *at in intervals for b in at if r == row):
                assert found[row, bin_] == 0


def test_one_tick_of_a_long_schedule_is_seen() -> None:
    found = busy_share([0], [10**15], [10**15 + 10], 1, 10**16, 100)
    assert np.flatnonzero(found[0]).tolist() == [10]


@given(st.integers(1, 90), st.integers(1, 90), st.integers(0, 2**32), st.floats(0.0, 0.2))
def test_a_folded_chart_is_idle_only_where_all_of_it_is(rows: int, columns: int, seed: int, part: float) -> None:
    random = np.random.default_rng(seed)
    chart = np.where(random.random((rows, columns)) < part, random.integers(0, 9, (rows, columns)), np.nan)
    small = folded(chart, 20, 30)
    assert small.shape == (min(rows, 20), min(columns, 30))
    for i, j in zip(*np.nonzero(~np.isnan(chart)), strict=True):
        at = i if rows <= 20 else max(k for k in range(20) if k * rows // 20 <= i)
        to = j if columns <= 30 else max(k for k in range(30) if k * columns // 30 <= j)
        assert small[at, to] >= chart[i, j]
    assert np.isnan(small).all() == np.isnan(chart).all()
