"""What changes of a step would buy: `synth show RECORD --what-if`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import flat, run

import synth
from synth.cli.what_if import best
from synth.errors import InputError
from synth.family import get_family
from synth_models.step.instance import StepInstance
from synth_models.step.parts.changes import what_if


def test_of_a_pipeline_in_closed_form() -> None:
    """Two stages, four microbatches of 1 ms forward and 2 ms back: (4 + 1) * 3 = 15 ms; computing in half the time
    7.5 ms; where nothing waits for a message 4 * 3 = 12 ms, with both 6 ms."""
    family, instance = get_family("step"), synth.make("step", stages=2, microbatches=4)
    assert isinstance(instance, StepInstance)
    found = {words: best(family, one)[:2] for words, one in what_if(instance, "compute=0.5x,overlap=full").items()}
    assert found == {
        "compute=0.5x": pytest.approx((7.5e-3, 7.5e-3)),
        "overlap=full": pytest.approx((12e-3, 12e-3)),
        "compute=0.5x,overlap=full": pytest.approx((6e-3, 6e-3)),
    }


def test_what_cannot_be_read_is_told_together() -> None:
    instance = synth.make("step", stages=2, microbatches=1)
    assert isinstance(instance, StepInstance)
    with pytest.raises(InputError) as raised:
        what_if(instance, "nic=2x,compute=fast,free=0x,free=2x")
    told = str(raised.value)
    assert all(words in told for words in ("nic=2x", "compute=fast", "free=0x"))
    assert "free=2x" not in told


@pytest.mark.parametrize("key", ["links", "nodes"])
@pytest.mark.parametrize("value", ["null", "1", "[1]", '[{"name": []}]', '[{"rank": 0, "seconds": "1", "after": 3}]'])
def test_a_file_that_is_no_step_is_not_changed(key: str, value: str, tmp_path: Path) -> None:
    raw = json.loads(synth.make("step", stages=2, microbatches=1).to_json()) | {key: json.loads(value)}
    file = tmp_path / "s.json"
    file.write_text(json.dumps(raw))
    with pytest.raises(InputError, match=key):
        synth.make("step", step=str(file), what_if="free=2x,compute=2x,overlap=full")


def test_a_record_is_asked(tmp_path: Path) -> None:
    run("make", "step", "stages=2", "microbatches=4", "name=p", "-o", "p.json", cwd=tmp_path)
    run("solve", "p.json", "-m", "issued", cwd=tmp_path)
    shown = flat(run("show", "results/step/p/issued.json", "--what-if", "compute=0.5x", cwd=tmp_path).stdout)
    assert "as it is │ 15.0 ms │ 15.0 ms" in shown
    assert "compute=0.5x │ 7.50 ms │ 7.50 ms │ 50.00 %" in shown
    run("show", "results/step/p/issued.json", "--what-if", "nic=2x", cwd=tmp_path, code=2)
