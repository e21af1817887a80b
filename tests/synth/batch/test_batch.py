"""`synth batch` without a Slurm: the grouping, the engine `local`, and the status with a made-up queue."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import SYNTH, alive
from faulty.files import record, start, synth, terminations, traced, write
from slurm.faked import fake_slurm
from typer.testing import CliRunner

from synth.batch import plan, slurm
from synth.batch.plan import Batch, Entry, Resources, Task
from synth.batch.task import Events, identity, lives
from synth.cli.main import app
from synth.errors import InputError

SHIPPED = Path(__file__).resolve().parents[3] / "instances/optree"
TWO_LIMITS = f"""\
name = "s"
instances = ["{SHIPPED}/ring-4-w1.json"]
[[run]]
methods = ["rwa"]
time_limits = ["20s", "5m"]
"""
LOCAL = ("batch", "submit", "in", "--folder", "b")


def counts(folder: Path) -> dict[str, int]:
    found = json.loads(synth("batch", "status", "b", "--json", cwd=folder).stdout)["counts"]
    return {state: number for state, number in found.items() if number}


# --- grouping ----------------------------------------------------------------------------------------------------


def batch_of(*runs: tuple[int, float | None]) -> Batch:
    """A batch of runs with these threads and limits, which is never written."""
    entries = [
        Entry("optree", f"i{k}", f"i{k}.json", "0", "bound", None, {"threads": t, "time_limit_s": limit}, "records")
        for k, (t, limit) in enumerate(runs)
    ]
    return Batch(Path("b"), "/", tuple(entries))


def tasks_of(batch: Batch, **resources: Any) -> Sequence[Task]:
    sent = plan.submission(batch, "slurm", range(len(batch.entries)), Resources(**resources))
    assert sorted(index for task in sent.tasks for index in task.runs) == list(range(len(batch.entries)))
    return sent.tasks


def test_chunks_last_minutes() -> None:
    """Runs of a minute: ten to a job. 25 of them: 10, 10, 5. Time: 10 * (60 s + 60 s of grace) + 60 s = 21 minutes."""
    tasks = tasks_of(batch_of(*[(1, 60.0)] * 25))
    assert [len(task.runs) for task in tasks] == [10, 10, 5]
    assert {(task.cpus, task.time_min) for task in tasks} == {(1, 21)}


def test_long_runs_have_a_job_each() -> None:
    """An hour and a minute of grace and of starting: 62 minutes."""
    tasks = tasks_of(batch_of(*[(4, 3600.0)] * 3))
    assert [(len(task.runs), task.cpus, task.time_min) for task in tasks] == [(1, 4, 62)] * 3


def test_more_processors_run_more_at_once() -> None:
    """8 processors, 2 threads a run: 4 at once, 40 to a job, in 10 rounds."""
    tasks = tasks_of(batch_of(*[(2, 60.0)] * 41), cpus=8)
    assert [(len(task.runs), task.cpus, task.time_min) for task in tasks] == [(40, 8, 21), (1, 8, 21)]
    assert plan.run_memory_mb(Resources(mem_mb=8300), 8, 2) == 2000


def test_only_runs_that_need_the_same_share_a_job() -> None:
    tasks = tasks_of(batch_of((1, 60.0), (2, 60.0), (1, 60.0), (1, 5.0)))
    assert [task.runs for task in tasks] == [(0, 2), (1,), (3,)]


def test_arrays_are_split_at_the_cluster_s_limit() -> None:
    tasks = tasks_of(batch_of(*[(1, 60.0)] * 25, *[(2, 60.0)] * 2), chunk=1)
    parts = plan.parts(tasks, 10)
    assert [len(part) for part in parts] == [10, 10, 5, 2]
    assert all(len({(task.cpus, task.time_min) for task in part}) == 1 for part in parts)


def test_time_given_and_needed() -> None:
    assert tasks_of(batch_of((1, None)), time_s=90.0)[0].time_min == 2  # Slurm counts in minutes
    with pytest.raises(InputError, match="need --time"):
        tasks_of(batch_of((1, None)))
    with pytest.raises(InputError, match="too short for one run of 600 s"):
        tasks_of(batch_of((1, 600.0)), time_s=300.0)


def test_dry_run_anywhere(tmp_path: Path) -> None:
    """Also without Slurm on the path, and nothing is written."""
    words = ("batch", "submit", SHIPPED, "-m", "bound", "--engine", "slurm", "--folder", "b", "--dry-run")
    more = ("--partition", "long", "--account", "me", "--mem", "2G", "--cpus", 4, "--chunk", 5, "--time", "2h")
    environment = {"PATH": str(SYNTH.parent)}
    text = synth(*words, *more, "--array-parallelism", 2, cwd=tmp_path, **environment).stdout
    number = -(-len(list(SHIPPED.glob("*.json"))) // 5)
    for line in (
        f"--array=0-{number - 1}%2", "--partition=long", "--account=me", "--mem=2000M", "--cpus-per-task=4",
        "--time=120", "--signal=USR2@30", "--requeue",
    ):  # fmt: skip
        assert f"#SBATCH {line}\n" in text
    assert "srun" in text
    assert "--cpus-per-task=4 " in text.splitlines()[-1]  # srun does not take it over by itself
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "without/submitit").mkdir(parents=True)
    (tmp_path / "without/submitit/__init__.py").write_text("raise ImportError")
    without = environment | {"PYTHONPATH": str(tmp_path / "without")}
    assert synth(*words, *more, "--array-parallelism", 2, cwd=tmp_path, **without).stdout == text
    assert "login node" in synth(*words[:-1], cwd=tmp_path, code=2, **environment).stderr


@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.parametrize("mem_mb", [None, 1500.0])
@pytest.mark.parametrize("partition", [None, "a b"])
def test_the_script_is_submitits(partition: str | None, mem_mb: float | None, most: int | None, tmp_path: Path) -> None:
    """An array of three jobs, and one job alone, as submitit writes them."""
    pytest.importorskip("submitit")
    from submitit.slurm.slurm import _make_sbatch_string

    batch = replace(batch_of((1, 600.0), (1, 600.0), (2, 30.0)), folder=tmp_path / "a b")
    asked = Resources(partition=partition, mem_mb=mem_mb, array_parallelism=most, chunk=1)
    submission = plan.submission(batch, "slurm", range(3), asked)
    for group in plan.parts(submission.tasks, 10):
        words = slurm._directives(batch, group, asked) | ({"map_count": len(group)} if len(group) > 1 else {})
        folder = (tmp_path / "a b/slurm").resolve()
        command = f"{shlex.quote(sys.executable)} -u -m submitit.core._submit {shlex.quote(str(folder))}"
        assert slurm.script(batch, group, asked) == _make_sbatch_string(command, folder, **words)


def test_each_limit_of_the_jobs_is_told(tmp_path: Path) -> None:
    """Also where --time puts jobs of several limits into one array."""
    (tmp_path / "s.toml").write_text(TWO_LIMITS)
    words = ("batch", "submit", "s.toml", "--engine", "slurm", "--folder", "b", "--dry-run", "--time", "1h")
    text = synth(*words, cwd=tmp_path).stdout
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    assert [(row[2], row[-1]) for row in cells] == [("20 s", "60 min"), ("300 s", "60 min")]
    assert text.count("#SBATCH --array") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("in", "--engine", "pbs"), "must be slurm or local"),
        (("in", "--time", "soon"), "--time"),
        (("in", "--mem", "0"), "--mem"),
        (("s.toml", "in"), "takes one study"),
        (("nothing",), "no such file"),
        (("in", "-m", "magic"), "unknown method"),
        (("s.toml",), "s.toml"),
    ],
)
def test_bad_input(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    write(tmp_path / "in", "a")
    assert message in synth("batch", "submit", *words, "--folder", "b", cwd=tmp_path, code=2).stderr
    assert not (tmp_path / "b").exists()


def test_folders_that_are_no_batch(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for command in ("status", "collect", "resubmit"):
        assert "no batch here" in synth("batch", command, "b", cwd=tmp_path, code=2).stderr
    for text in ("{", '{"format": "other"}', '{"format": "synth-batch/1"}'):
        (tmp_path / "b/batch.json").write_text(text)
        assert "b/batch.json" in synth("batch", "status", "b", cwd=tmp_path, code=2).stderr


# --- here, without a cluster -------------------------------------------------------------------------------------


@pytest.mark.long
def test_local_from_submission_to_collection(tmp_path: Path) -> None:
    """Good and bad runs, each failure with its kind; sent again with more time and memory, only they run."""
    trace, gate = tmp_path / "trace", tmp_path / "gate"
    for i in range(4):
        write(tmp_path / "in", f"good{i}", number=i, trace=str(trace))
    write(tmp_path / "in", "slow", gate=str(gate), trace=str(trace))
    write(tmp_path / "in", "big", megabytes=500, gate=str(gate), trace=str(trace))
    synth(*LOCAL, "--time-limit", "2s", "--grace", "2s", "--mem", "700M", "-j", 1, cwd=tmp_path, code=1)
    assert counts(tmp_path) == {"done": 4, "failed": 2}
    text = synth("batch", "status", "b", cwd=tmp_path).stdout
    assert "time_limit" in text
    assert "out_of_memory" in text
    trace.unlink()
    gate.touch()
    synth("batch", "resubmit", "b", "--time-limit", "8s", "--mem", "2G", cwd=tmp_path)
    assert {name for name, *_ in traced(trace)} == {"slow", "big"}
    assert counts(tmp_path) == {"done": 6}
    assert record(tmp_path / "b/records", "slow")["options"]["time_limit_s"] == 8.0
    assert "nothing to send" in synth("batch", "resubmit", "b", cwd=tmp_path).stdout
    assert "good3" in synth("batch", "collect", "b", cwd=tmp_path).stdout
    rows = (tmp_path / "b/table.csv").read_text().splitlines()
    assert rows[0] == "instance,method,solver,value,bound,gap,proof,seconds,verified,ended"
    assert len(rows) == 7
    assert "there is a batch already" in synth(*LOCAL, cwd=tmp_path, code=2).stderr


@pytest.mark.long(after=1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_local_supervisor_ends(tmp_path: Path, number: signal.Signals) -> None:
    """What it had not come to is lost, not queued for ever; `resubmit` completes the batch; no run outlives it."""
    trace = tmp_path / "trace"
    write(tmp_path / "in", "a")
    write(tmp_path / "in", "b", gate=str(tmp_path / "gate"), trace=str(trace))
    write(tmp_path / "in", "c")
    process = start(*LOCAL, "-j", 1, cwd=tmp_path)
    while not traced(trace):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    assert counts(tmp_path) == {"done": 1, "running": 1, "queued": 1}
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGTERM else -signal.SIGKILL)
    deadline = time.monotonic() + 20
    while alive(traced(trace)[0][1]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert counts(tmp_path) == {"done": 1, "lost": 2}
    (tmp_path / "gate").touch()
    synth("batch", "resubmit", "b", cwd=tmp_path)
    assert terminations(tmp_path / "b/records") == dict.fromkeys("abc", "finished")


@pytest.mark.long
def test_a_study_becomes_a_batch(tmp_path: Path) -> None:
    """Two seeds are two sets of records, but for the bounds, which no seed changes; `collect` writes the
    study's own table and report, from any folder."""
    (tmp_path / "s.toml").write_text(
        f'name = "rings"\ninstances = ["{SHIPPED}/ring-1?-w2.json"]\n'
        '[[run]]\nmethods = ["bound", "relay"]\nseeds = [0, 1]\ntime_limits = ["10s"]\n'
    )
    synth("batch", "submit", "s.toml", "--folder", "b", cwd=tmp_path)
    assert counts(tmp_path) == {"done": 6}
    (tmp_path / "elsewhere").mkdir()
    synth("batch", "collect", "../b", cwd=tmp_path / "elsewhere")
    assert len((tmp_path / "b/table.csv").read_text().splitlines()) == 7
    assert (tmp_path / "b/report.html").exists()
    synth("check", "b/records", cwd=tmp_path)


# --- status with a made-up queue ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("jobs", "line"), [(("4",), "submitted: job 4"), (("4_0", "5_0"), "submitted: jobs 4, 5")])
def test_what_was_submitted_is_named(
    jobs: tuple[str, ...], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One job in the singular; several arrays each once. Slurm itself is asked in `tests/slurm`."""
    files = [str(SHIPPED / f"ring-{name}.json") for name in ("16-w2", "8-w2")]
    numbers = iter([*jobs, jobs[-1]])
    monkeypatch.setattr(slurm, "submit", lambda _batch, tasks, _resources: {task.name: next(numbers) for task in tasks})
    monkeypatch.setenv("PATH", fake_slurm(tmp_path, "exit 0"))
    monkeypatch.chdir(tmp_path)
    words = [
        "batch",
        "submit",
        *files,
        "-m",
        "bound",
        "--engine",
        "slurm",
        "--time",
        "1h",
        "--folder",
        "b",
        "--chunk",
        "1",
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert line in done.output.splitlines()


def sent(folder: Path) -> Batch:
    """A batch of four runs that was sent as the array 7, without any Slurm."""
    for name in "abcd":
        write(folder / "in", name)
    synth(*LOCAL, "--engine", "local", "-j", 1, cwd=folder)
    batch = plan.read(folder / "b")
    for name in "abcd":
        (folder / "b/records/faulty" / name / "behave.json").unlink()
    for file in (folder / "b/tasks").iterdir():
        file.unlink()
    tasks = tuple(Task(f"1-{i}", (i,), 1, 3, f"7_{i}") for i in range(4))
    batch = Batch(
        batch.folder, batch.directory, batch.entries, None, (plan.Submission("slurm", 0.0, Resources(), tasks),)
    )
    batch.write()
    return batch


def states(folder: Path, path: str) -> dict[str, tuple[str, str]]:
    runs = json.loads(synth("batch", "status", "b", "--json", cwd=folder, PATH=path).stdout)["runs"]
    return {run["run"].split()[0]: (run["state"], run["why"]) for run in runs}


def test_status_from_the_queue(tmp_path: Path) -> None:
    """Pending, running in its second run, ended without a word, and never started; accounting tells why where it is."""
    batch = sent(tmp_path)
    for i in (1, 2):
        log = Events(batch.folder, f"1-{i}")
        log.add("begin", job=f"7_{i}", host="far away", pid=1, started=0.0)
        log.add("start", run=i)
    with log.path.open("a") as stream:
        stream.write('{"event": "en')  # the line at which it was killed
    queue = "printf '7_0|PENDING\\n7_1|RUNNING\\n8_0|RUNNING\\n'"
    found = states(tmp_path, fake_slurm(tmp_path, queue))
    assert found["a"] == ("queued", "")
    assert found["b"] == ("running", "")
    assert found["c"] == ("lost", "job 7_2 ended, its supervisor died without a word")
    assert found["d"] == ("lost", "job 7_3 ended before its supervisor had started")
    found = states(tmp_path, fake_slurm(tmp_path, queue, "printf '7_2|OUT_OF_MEMORY\\n7_3|CANCELLED by 0\\n'"))
    assert found["c"][1].startswith("job 7_2 ended as OUT_OF_MEMORY")
    assert found["d"][1].startswith("job 7_3 ended as CANCELLED")
    log.add("begin", job="7_2", host="far away", pid=1, started=0.0)  # queued again, and going
    assert states(tmp_path, fake_slurm(tmp_path, "printf '7_2|RUNNING\\n'"))["c"] == ("queued", "")


def test_status_without_a_queue(tmp_path: Path) -> None:
    """Nothing is called lost when nobody can be asked, and the status says so."""
    batch = sent(tmp_path)
    Events(batch.folder, "1-1").add("begin", job="7_1", host="far away", pid=1, started=0.0)
    Events(batch.folder, "1-1").add("start", run=1)
    log = Events(batch.folder, "1-2")
    log.add("begin", job="7_2", host="far away", pid=1, started=0.0)
    log.add("finish", ended="No space left on device")
    path = fake_slurm(tmp_path, "exit 1")
    assert "squeue does not answer" in synth("batch", "status", "b", cwd=tmp_path, PATH=path).stderr
    assert states(tmp_path, path) == {
        "a": ("queued", ""),
        "b": ("running", ""),
        "c": ("lost", "job 7_2 ended: No space left on device"),
        "d": ("queued", ""),
    }


def test_array_limit_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert slurm.max_array_size() == slurm.DEFAULT_MAX_ARRAY
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho 'MaxArraySize            = 16'\n")
    (tmp_path / "scontrol").chmod(0o755)
    assert slurm.max_array_size() == 16


def test_whether_a_process_lives() -> None:
    """Another process under the same number is another process; on another host nobody can tell."""
    me = identity()
    assert lives(me)
    assert lives({**me, "started": me["started"] - 5}) is False
    assert lives({**me, "pid": 2**22 + 1}) is False
    assert lives({**me, "host": "far away"}) is None
