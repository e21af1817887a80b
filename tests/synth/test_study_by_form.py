"""A study ranks methods by size in the form that runs, too."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from synth.cli.main import app
from synth.errors import InputError
from synth.exchange.forms import Lowered
from synth.exchange.record_export import transfers_of
from synth.records import record as records

STUDY = """
name = "two-sizes"
title = "Two sizes"
[[generate]]
family = "fabric"
[generate.parameters]
network = "full"
nodes = 3
bandwidth = "50GB/s"
latency = "0.7us"
collective = "reduce"
bytes = ["64KiB", "4MiB"]
[[run]]
methods = ["ring", "direct", "bound"]
time_limits = ["20s"]
"""


@pytest.mark.long
@pytest.mark.parametrize("form", ["msccl:azure", pytest.param("mscclpp", marks=pytest.mark.slow)])
def test_the_best_of_a_size_is_the_quickest_as_exported(form: str, tmp_path: Path) -> None:
    """Every record lowered and timed here; the baseline is the quickest of what libraries run."""
    (tmp_path / "study.toml").write_text(STUDY)
    words = ["study", str(tmp_path / "study.toml"), "--results", str(tmp_path / "results"), "--form", form]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)
    folder = tmp_path / "results/two-sizes"
    scheduled = pd.read_csv(folder / "best_by_size.csv")
    ranked = pd.read_csv(folder / f"best_by_size-{form.replace(':', '-')}.csv")
    assert ranked["size_bytes"].tolist() == scheduled["size_bytes"].tolist() == [2**16, 2**22]
    times: dict[int, dict[str, float]] = {2**16: {}, 2**22: {}}
    for path in (folder / "records").rglob("*.json"):
        record = records.read(path)
        if record.value is not None:
            asked = record.find_instance()
            programs = Lowered(transfers_of(record), form).programs()
            times[asked.bytes][record["method"]] = min(one.seconds(asked) for one in programs)  # type: ignore[attr-defined]
    for row in ranked.to_dict("records"):
        mine = times[row["size_bytes"]]
        assert set(mine) == {"ring", "direct"}
        assert row["value"] == row["baseline_value"] == pytest.approx(min(mine.values()), rel=1e-12)
        assert mine[row["best_by"]] == min(mine.values())
        assert row["gap"] == pytest.approx((row["value"] - row["bound"]) / row["value"], abs=1e-12)


def test_an_unknown_form_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    words = ["study", str(tmp_path / "study.toml"), "--results", str(tmp_path / "results"), "--form", "gloo"]
    with pytest.raises(InputError, match="--form"):
        raise CliRunner().invoke(app, words).exception  # type: ignore[misc]
    assert not (tmp_path / "results").exists()
