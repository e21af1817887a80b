"""The progress line: how many runs go on and how many have failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from synth.api import failure
from synth.cli.progress import Progress
from synth.execution.runs import Run
from synth.family import get_family
from synth.instance import read
from synth.options import RunOptions

SHIPPED = Path(__file__).resolve().parents[3] / "instances/optree/ring-10-w2.json"


def shown(progress: Progress) -> Any:
    (task,) = progress._bar.tasks
    return task.description, task.completed


def test_running_done_and_failed(tmp_path: Path) -> None:
    instance, family = read(SHIPPED), get_family("optree")
    runs = [Run(instance, family.methods[name], RunOptions(), tmp_path) for name in ("bound", "formula", "relay")]

    def record(run: Run, end: str) -> Any:
        return failure(run.instance, run.method, run.options, end, "")

    with Progress(3) as progress:
        progress.start(runs[0])
        progress.start(runs[1])
        assert shown(progress) == ("2 running (ring-10-w2 bound, …)", 0)
        progress.done(runs[0], record(runs[0], "finished"))
        assert shown(progress) == ("1 running (ring-10-w2 formula)", 1)
        progress.done(runs[1], record(runs[1], "killed"))
        progress.done(runs[2], record(runs[2], "unsupported"))  # was done before: never started here
        assert shown(progress) == ("0 running, 1 failed", 3)


def test_nothing_is_drawn_into_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with Progress(2) as progress:
        progress.start(Run(read(SHIPPED), get_family("optree").methods["bound"], RunOptions(), tmp_path))
    assert capsys.readouterr().err == ""
