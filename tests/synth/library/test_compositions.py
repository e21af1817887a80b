"""``synth library --compose``: what is open is made of schedules of other instances, and written where it is better."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import flat
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.library import best_known, submission
from synth.records import record as records
from synth.records.folder import pack
from synth.text.input_file import InputFile


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A ring of 8: its allgather 7 timesteps, all clockwise; its reduce-scatter under other numbers 4."""
    folder, raw = tmp_path / "lib", {"format": "synth-instance/1", "family": "xtree", "source": "test", "chunks": 1}
    ring = raw | {"name": "ring", "network": {"kind": "ring", "nodes": 8}}
    links = [{"src": 3 * v % 8, "dst": 3 * w % 8} for v in range(8) for w in ((v + 1) % 8, (v - 1) % 8)]
    turned = {"name": "turned", "network": {"kind": "links", "nodes": 8, "links": links}}
    for one in (ring, raw | turned | {"collective": "reduce_scatter"}):
        (tmp_path / f"{one['name']}.json").write_text(json.dumps(one))
    rows = [f"{t + 1},{2 * v},{(v - t) % 8},0\n" for t in range(7) for v in range(8)]
    (tmp_path / "slow.csv").write_text("step,link,origin,chunk\n" + "".join(rows))
    sender = submission.Sender("Jane Doe")
    slow = submission.schedule(synth.read(tmp_path / "ring.json"), [InputFile(tmp_path / "slow.csv")], sender)
    assert slow.value == 7
    records.write(slow, records.record_path(folder, "xtree", "ring", slow["method"], None, slow.question))
    quick = synth.solve(synth.read(tmp_path / "turned.json"), "pull", results=folder)
    assert quick.value == 4
    pack(folder)
    best_known.make(folder)
    return folder / best_known.NAME


def test_what_is_better_is_written(library: Path, tmp_path: Path) -> None:
    out = tmp_path / "better"
    result = CliRunner().invoke(app, ["library", "--compose", str(out), "--library", str(library)])
    assert result.exit_code == 0, result.output
    assert "xtree ring: 4 instead of 7: turned by pull backwards" in flat(result.output)
    assert "1 open instance tried, 1 better" in flat(result.output)
    record = records.read(out / "xtree" / "ring" / "composed.json")
    assert (record.value, record.whose) == (4, "composed of pull")
    assert synth.check(record).ok


def test_what_is_not_better_is_not_written(library: Path, tmp_path: Path) -> None:
    """The other way round the ring's 7 timesteps make the reduce-scatter no better, and it is closed."""
    out = tmp_path / "better"
    result = CliRunner().invoke(app, ["library", "turned", "--compose", str(out), "--library", str(library)])
    assert "0 open instances tried, 0 better" in flat(result.output)
    assert not out.exists()
