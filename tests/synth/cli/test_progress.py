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


@pytest.mark.parametrize("total", [39, 40, 400])
def test_many_runs_print_a_counter_and_the_last_lines(
    total: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the number: at most fifty lines, the last run among them; the log has a line for each."""
    instance, family = read(SHIPPED), get_family("optree")
    run = Run(instance, family.methods["bound"], RunOptions(), tmp_path)
    with Progress(total, lines=True, log=tmp_path / "new") as progress:
        for _ in range(total):
            progress.start(run)
            progress.done(run, failure(run.instance, run.method, run.options, "finished", ""))
    said = capsys.readouterr().err.splitlines()
    assert len(said) <= 50
    assert any(f" {total}/{total} ring-10-w2 bound: " in line for line in said)
    if total < 40:
        assert len(said) == total
        assert not (tmp_path / "new").exists()
    else:
        assert len((tmp_path / "new" / "runs.log").read_text().splitlines()) == total


def test_the_best_schedule_is_suggested() -> None:
    """Of the last instance with a schedule, that of the least value; counted values and failed checks are none."""
    from types import SimpleNamespace as Some

    from synth.cli.solve import best_schedule

    def pair(sha: str, value: float, evidence: str = "replayed", ok: bool = True) -> Any:
        run = Some(instance=Some(sha256=sha), path=f"{sha}-{value}")
        return run, Some(ok=ok, evidence=evidence, value=value)

    done = [
        pair("a", 1.0),
        pair("b", 3.0),
        pair("b", 2.0),
        pair("b", 5.0),
        pair("b", 1.0, "counted"),
        pair("b", 0.5, ok=False),
    ]
    best = best_schedule(done)
    assert best is not None
    assert best.path == "b-2.0"
    assert best_schedule([]) is None
