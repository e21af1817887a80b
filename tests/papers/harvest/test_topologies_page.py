"""Which records the page of topologies keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from synth.records import record as records
from synth.reproduction.collect import Reproduction
from synth_papers.harvest import topologies_page as topologies

KEPT = Path(__file__).resolve().parents[3] / "results" / "published" / "harvest-topologies" / topologies.KEPT


def test_a_record_is_measured_as_it_will_be_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as a file of its own, whose indents take as much room again, and with its instance counted once. So a bound
    that was proven for longer stays in its place when the page is made again."""
    page = Reproduction(tmp_path)
    record = records.read(KEPT / "harvest" / "swing-64-p2" / "bound.json")
    loose = records.write(record, tmp_path / "loose" / "harvest" / "swing-64-p2" / "bound.json")
    assert loose.path is not None
    alone = loose.path.stat().st_size
    size = topologies.packed_bytes(record)
    monkeypatch.setattr(topologies, "WITH_GOAL", size)
    assert size < alone
    assert topologies._keep(page, loose, closed=False)
    page.pack()
    packed = tmp_path / topologies.KEPT / "records.jsonl"
    assert packed.stat().st_size == pytest.approx(size, rel=1e-3)
    monkeypatch.setattr(topologies, "WITH_GOAL", size - 1)
    assert not topologies._keep(page, loose, closed=False)
