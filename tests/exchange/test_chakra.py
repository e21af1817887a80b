"""Chakra traces: written, read back by Chakra's own package where it is there, and the check's oracle by brute force."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from exchange.by_hand import EVERY, ring_allgather, ring_allreduce, schedule
from synth.errors import InputError
from synth.exchange import chakra
from synth.exchange.chakra_check import faults
from synth.exchange.chakra_schedule import transfers
from synth.exchange.transfers import Transfers


@pytest.mark.parametrize("name", EVERY)
def test_round_trip_and_replay(name: str, tmp_path: Path) -> None:
    original = EVERY[name]
    paths = chakra.write(original, tmp_path / "a.b")
    assert [path.name for path in paths] == [f"a.b.{r}.et" for r in range(original.ranks)]
    trace = chakra.read(tmp_path / "a.b")
    assert faults(trace) == []
    found = transfers(trace)
    assert _moves(found) == _moves(original)
    for field in ("name", "collective", "ranks", "root", "part_bytes"):
        assert getattr(found, field) == getattr(original, field)
    for field in ("piece_part", "piece_offset", "piece_bytes"):
        assert np.array_equal(getattr(found, field), getattr(original, field))
    chakra.write(found, tmp_path / "again")
    assert faults(chakra.read(tmp_path / "again")) == []


def _moves(t: Transfers) -> list[tuple[int, int, int, bool]]:
    return sorted(zip(t.piece.tolist(), t.src.tolist(), t.dst.tolist(), t.adds.tolist(), strict=True))
