"""Pieces are dealt to thread blocks evenly, and those under way at once to different ones as far as that goes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exchange.by_hand import ring_allgather
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.errors import InputError
from synth.exchange.mscclpp.dealing import DEALINGS, Dealing, groups_of
from synth.exchange.transfers import Transfers


def moved(spans: list[tuple[float, float]]) -> Transfers:
    """A piece a span, moved once."""
    t = ring_allgather(2)
    n, begin, end = len(spans), *np.array(spans, dtype=float).T
    one, zero = np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    return replace(
        t, part_bytes=n, piece_part=zero, piece_offset=np.arange(n), piece_bytes=one, piece=np.arange(n), src=zero,
        dst=one, adds=zero.astype(bool), start_s=begin, end_s=end, channel_hint=-one, ticks=None,
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)).map(lambda s: (s[0], s[0] + s[1])), min_size=1),
    st.integers(1, 9),
    st.sampled_from(DEALINGS),
)
def test_no_group_has_more_than_it_must(spans: list[tuple[int, int]], groups: int, by: str) -> None:
    found = groups_of(moved([(float(a), float(b)) for a, b in spans]), groups, by)
    counts = np.bincount(found, minlength=groups)
    assert len(counts) == groups
    assert counts.max() <= -(-len(spans) // groups)


def test_what_follows_shares_a_group_and_what_is_under_way_at_once_does_not() -> None:
    """Six pieces, two at a time, each for two seconds; numbered out of order."""
    spans = [(2.0, 4.0), (0.0, 2.0), (4.0, 6.0), (0.0, 2.0), (2.0, 4.0), (4.0, 6.0)]
    found = groups_of(moved(spans), 2)
    for group in range(2):
        mine = sorted(spans[k] for k in np.flatnonzero(found == group))
        assert mine == [(0.0, 2.0), (2.0, 4.0), (4.0, 6.0)]


def test_neighbours_share_a_group() -> None:
    spans = [(0.0, 1.0)] * 7
    assert groups_of(moved(spans), 3, "place").tolist() == [0, 0, 0, 1, 1, 2, 2]
    with pytest.raises(InputError, match="time or place"):
        groups_of(moved(spans), 3, "size")


def test_work_is_even() -> None:
    """Two pieces that move four times and four that move once: both groups move six times."""
    times = [4, 4, 1, 1, 1, 1]
    t = moved([(float(k), k + 1.0) for k in range(len(times))])
    rows = np.repeat(np.arange(len(times)), times)
    found = groups_of(t.taken(rows), 2, "load")
    assert np.bincount(found, weights=times).tolist() == [6, 6]


def test_what_is_tried_where_a_thread_block_is_too_long() -> None:
    """The same with even work, and with ever fewer meetings."""
    assert list(Dealing("time", 7).shorter()) == [
        Dealing("time", 7), Dealing("load", 7), Dealing("load", 3), Dealing("load", 1)
    ]  # fmt: skip
    assert list(Dealing("place", 0).shorter()) == [Dealing("place", 0), Dealing("load", 0)]
