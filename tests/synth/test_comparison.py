"""`synth.compare`: several methods on one instance, with units."""

from __future__ import annotations

import pytest

import synth


def test_a_row_a_method_with_units_and_the_gap_to_the_best_bound() -> None:
    """On a ring of four an allgather takes two timesteps: each node's two links bring three chunks."""
    ring = synth.make("xtree", network="ring", nodes=4, chunks=1)
    table = synth.compare(ring, ("pull", "bound"))
    assert list(table.index) == ["pull", "bound"]
    assert table.loc["pull"].tolist() == ["2 timesteps", "2 timesteps", "0", "certified"]
    assert table.loc["bound"].tolist() == ["–", "2 timesteps", "–", "certified"]


def test_seconds_are_readable_and_what_does_not_apply_says_so() -> None:
    pair = synth.make("fabric", network="full", nodes=2, collective="allgather", bytes=2000, bandwidth=1e9, latency=0)
    assert synth.compare(pair, ("direct",)).loc["direct", "value"] == "1.00 us"
    block = synth.make("mlfm", d=3, layers=3, columns=3, servers=3)
    assert synth.compare(block, ("closed_form",)).loc["closed_form"].tolist() == ["unsupported", "–", "–", "–"]


def test_a_wrong_method_is_refused() -> None:
    with pytest.raises(synth.InputError, match="unknown method"):
        synth.compare(synth.make("xtree", network="ring", nodes=4, chunks=1), ("nobody",))
