"""What ``synth drill`` says of rings that go on unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

import synth
from synth.drill import page, search

RING = {"network": "ring", "nodes": 5, "bandwidth": "10GB/s", "latency": "0us"}


def drill(folder: Path, collective: str, share: str | None) -> search.Drill:
    instance = synth.make("fabric", **RING, collective=collective, bytes="5MiB")
    return search.prepared(search.Question(instance, folder, share))


def test_a_link_at_half_its_rate_takes_twice_as_long(tmp_path: Path) -> None:
    """Every link carries four blocks of a ring's five, one after the other, and that is all of the time: halved in both
    directions, it takes twice the time, and what came last has three to five links to go on the whole machine."""
    table = page.frame(drill(tmp_path, "allgather", "1/2"))
    [link] = table[table["kind"] == "link"].to_dict("records")
    whole = table[table["failure"] == "nothing"].to_dict("records")[0]
    assert whole["rings_s"] == pytest.approx(4 * 2**20 / 2 / 10e9)
    assert pd_is_nan(whole["rings_loss"])
    assert link["rings_s"] >= 2 * 4 * 2**20 / 2 / 10e9 * (1 - 1e-9)
    assert link["rings_loss"] == pytest.approx(link["rings_s"] / whole["rings_s"] - 1)
    assert [cells[7] for cells in page.cells(table)][-1] == "–"


def test_messages_of_a_link_that_is_gone_take_the_long_way(tmp_path: Path) -> None:
    """Over the other four links: the ring in the other direction shares them, so more is lost than at half the rate."""
    gone, slow = (page.frame(drill(tmp_path / name, "allgather", share)) for name, share in (("a", None), ("b", "1/2")))
    lost = [float(table[table["kind"] == "link"]["rings_loss"].iloc[0]) for table in (gone, slow)]
    assert lost[0] > lost[1] >= 1 - 1e-9


def test_where_no_ring_does_the_collective_nothing_is_said(tmp_path: Path) -> None:
    table = page.frame(drill(tmp_path, "alltoall", "1/2"))
    assert table["rings_s"].isna().all()
    assert {cells[7] for cells in page.cells(table)} == {"–"}


def pd_is_nan(value: float) -> bool:
    """Whether a cell of the table is empty."""
    return value != value
