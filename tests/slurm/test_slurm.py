"""`synth batch` on a real Slurm (`single_node.sh` starts one; `.ci/run` does). Skipped where no Slurm answers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from command import alive
from faulty.files import record, synth, terminations, traced, write


@cache
def slurm_answers() -> bool:
    """Whether a controller answers; where commands alone are installed, that takes seconds to find out."""
    if shutil.which("sinfo") is None or shutil.which("sbatch") is None:
        return False
    try:
        done = subprocess.run(["sinfo", "-h"], capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and bool(done.stdout.strip())


@pytest.fixture(scope="module", autouse=True)
def _needs_slurm() -> None:
    if not slurm_answers():
        pytest.skip("no Slurm answers; tests/slurm/single_node.sh starts one")


SUBMIT = ("batch", "submit", "in", "--engine", "slurm", "--folder", "b")
SHORT = ("--time-limit", "2s", "--grace", "1s", "--mem", "1G")


def status(folder: Path) -> dict[str, Any]:
    """`synth batch status b --json`, with the runs by instance name."""
    found: dict[str, Any] = json.loads(synth("batch", "status", "b", "--json", cwd=folder).stdout)
    found["runs"] = {run["run"].split()[0]: run for run in found["runs"]}
    return found


def until(folder: Path, reached: Callable[[dict[str, Any]], bool], seconds: float = 120) -> dict[str, Any]:
    """Wait for a status."""
    deadline = time.monotonic() + seconds
    while not reached(found := status(folder)):
        assert time.monotonic() < deadline, (found, queue())
        time.sleep(0.5)
    return found


def is_over(found: dict[str, Any]) -> bool:
    return not found["counts"]["running"] and not found["counts"]["queued"]


def queue() -> str:
    return subprocess.run(["squeue", "-h", "-r", "-t", "all"], capture_output=True, text=True).stdout


def within(seconds: float, reached: Callable[[], Any]) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, queue()
        time.sleep(0.1)


def supervisor_of(run: int) -> int:
    """The supervisor of a run's process: its parent's parent."""
    for _ in range(2):
        run = int(Path(f"/proc/{run}/stat").read_text().rpartition(")")[2].split()[1])
    return run


def job_of(folder: Path, name: str) -> str:
    batch = json.loads((folder / "b/batch.json").read_text())
    index = [run["instance"] for run in batch["runs"]].index(name)
    return next(
        str(task["job"]) for sent in reversed(batch["submissions"]) for task in sent["tasks"] if index in task["runs"]
    )


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    paths = (folder / "b/records/faulty").glob("*/behave.json")
    return {path.parent.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in paths}


def test_twenty_runs_of_which_five_go_wrong(tmp_path: Path) -> None:
    """A crash, a hang, a memory blow-up, a supervisor killed with SIGKILL and an instance that is damaged after the
    submission: 15 results at first, each failure with its kind; `resubmit` sends these five only and brings the two
    that were no fault of their own: 17 results. (MaxArraySize is 16, so the 20 jobs are two arrays.)"""
    for i in range(15):
        write(tmp_path / "in", f"good{i:02}", number=i)
    for bad in ("crash", "hang", "grow"):
        write(tmp_path / "in", bad, bad)
    write(tmp_path / "in", "orphan", gate=str(tmp_path / "gate"), trace=str(tmp_path / "trace"))
    damaged = write(tmp_path / "in", "invalid")
    words = (*SUBMIT, *SHORT, "--time-limit", "8s", "--chunk", 1)
    # the last name in the order of the files is the last to start; damage it before
    printed = synth(*words, cwd=tmp_path).stdout
    whole = damaged.read_text()
    damaged.write_text("{}")
    assert len(re.findall(r"\d+", printed.rpartition("submitted: ")[2].splitlines()[0])) == 2
    within(90, lambda: traced(tmp_path / "trace"))
    run = traced(tmp_path / "trace")[0][1]
    os.kill(supervisor_of(run), signal.SIGKILL)
    found = until(tmp_path, is_over)
    assert not alive(run)
    assert {name: (run["state"], run["kind"]) for name, run in found["runs"].items() if run["state"] != "done"} == {
        "crash": ("failed", "error"), "hang": ("failed", "time_limit"), "grow": ("failed", "out_of_memory"),
        "orphan": ("lost", "lost"), "invalid": ("failed", "error"),
    }  # fmt: skip
    assert "supervisor died" in found["runs"]["orphan"]["why"]
    assert "invalid.json" in found["runs"]["invalid"]["why"]
    assert found["counts"]["done"] == 15

    damaged.write_text(whole)
    (tmp_path / "gate").touch()
    before = stamps(tmp_path)
    resubmitted = synth("batch", "resubmit", "b", cwd=tmp_path).stdout
    assert "5 runs, engine slurm" in resubmitted
    found = until(tmp_path, is_over)
    assert found["counts"] == {"done": 17, "running": 0, "queued": 0, "failed": 3, "lost": 0}
    after = stamps(tmp_path)
    assert {name for name in after if after[name] != before.get(name)} == {
        "crash", "hang", "grow", "orphan", "invalid",
    }  # fmt: skip
    assert terminations(tmp_path / "b/records") == {
        **{f"good{i:02}": "finished" for i in range(15)}, "orphan": "finished", "invalid": "finished",
        "crash": "error", "hang": "time_limit", "grow": "out_of_memory",
    }  # fmt: skip
    kept = {path.name.removesuffix("_0_log.out") for path in (tmp_path / "b/slurm").glob("*_log.out")}
    bad = {job_of(tmp_path, name) for name in ("crash", "hang", "grow")}
    assert bad <= kept  # logs of what failed stay,
    assert job_of(tmp_path, "good00") not in kept  # those of what is done are gone
    collected = synth("batch", "collect", "b", cwd=tmp_path).stdout
    assert "17 done" in collected
    assert len((tmp_path / "b/table.csv").read_text().splitlines()) == 21
    synth("check", "b/records", cwd=tmp_path)


def test_an_invalid_instance_stops_the_submission(tmp_path: Path) -> None:
    write(tmp_path / "in", "good")
    write(tmp_path / "in", "bad", "bad")
    assert "bad.json" in synth(*SUBMIT, cwd=tmp_path, code=2).stderr
    assert not (tmp_path / "b").exists()


def test_a_requeued_task_goes_on(tmp_path: Path) -> None:
    """Requeued in its second run (as after a preemption), the task skips the first and does the second again."""
    trace = tmp_path / "trace"
    write(tmp_path / "in", "a", trace=str(trace))
    write(tmp_path / "in", "b", gate=str(tmp_path / "gate"), trace=str(trace))
    write(tmp_path / "in", "c", trace=str(trace))
    synth(*SUBMIT, "--time-limit", "20s", "--chunk", 3, cwd=tmp_path)
    within(60, lambda: [name for name, _, event, _ in traced(trace) if event == "start"] == ["a", "b"])
    interrupted = traced(trace)[-1][1]
    first = stamps(tmp_path)["a"]
    subprocess.run(["scontrol", "requeue", job_of(tmp_path, "a")], check=True)
    within(30, lambda: not alive(interrupted))
    assert set(terminations(tmp_path / "b/records")) == {"a"}
    (tmp_path / "gate").touch()
    found = until(tmp_path, lambda now: is_over(now) and now["counts"]["done"] == 3)
    assert found["counts"]["lost"] == found["counts"]["failed"] == 0
    assert [name for name, _, event, _ in traced(trace) if event == "start"] == ["a", "b", "b", "c"]
    assert stamps(tmp_path)["a"] == first


@pytest.mark.slow
def test_a_job_that_meets_its_time_limit_goes_on(tmp_path: Path) -> None:
    """Four runs of 28 s in a job of two minutes: half a minute before its end it is queued again and does the rest."""
    trace = tmp_path / "trace"
    for name in "abcd":
        write(tmp_path / "in", name, seconds=28.0, trace=str(trace))
    synth(*SUBMIT, "--time-limit", "30s", "--time", "90s", "--chunk", 4, cwd=tmp_path)
    found = until(tmp_path, lambda now: is_over(now) and now["counts"]["done"] == 4, 400)
    assert found["counts"]["failed"] == found["counts"]["lost"] == 0
    started = [name for name, _, event, _ in traced(trace) if event == "start"]
    assert started in (list("abcdd"), list("abccd"))  # one was interrupted, none was done twice
    assert len({pid for _, pid, _, _ in traced(trace)}) == 5


def test_dry_run_is_what_sbatch_receives(tmp_path: Path) -> None:
    for i in range(4):
        write(tmp_path / "in", f"g{i}")
    words = (*SUBMIT, *SHORT, "--chunk", 2, "--partition", "debug", "--array-parallelism", 1, "--time", "7m")
    dry = synth(*words, "--dry-run", cwd=tmp_path).stdout
    assert not (tmp_path / "b").exists()
    synth(*words, cwd=tmp_path)
    job = job_of(tmp_path, "g0").partition("_")[0]
    (sent,) = (tmp_path / "b/slurm").glob(f"{job}_submission*.sh")
    assert dry[dry.index("#!/bin/bash") :] == sent.read_text()
    received = subprocess.run(["scontrol", "write", "batch_script", job, "-"], capture_output=True, text=True)
    assert received.stdout.rstrip("\n\0") == sent.read_text().rstrip("\n")
    shown = subprocess.run(["scontrol", "show", "job", job], capture_output=True, text=True).stdout
    for fact in ("TimeLimit=00:07:00", "Partition=debug", "ArrayTaskThrottle=1", "MinMemoryNode=1000M", "Requeue=1"):
        assert fact in shown
    assert "2 " in dry
    until(tmp_path, is_over)


def test_more_time_and_memory_for_what_failed(tmp_path: Path) -> None:
    """A run of 450 MB that takes 4 s: out of memory first, then out of time, then done with more of both."""
    write(tmp_path / "in", "big", megabytes=450, seconds=4.0)
    synth(*SUBMIT, *SHORT, "--mem", "600M", cwd=tmp_path)
    assert until(tmp_path, is_over)["runs"]["big"]["kind"] == "out_of_memory"
    synth("batch", "resubmit", "b", "--mem", "1200M", cwd=tmp_path)
    assert until(tmp_path, is_over)["runs"]["big"]["kind"] == "time_limit"
    synth("batch", "resubmit", "b", "--time-limit", "20s", cwd=tmp_path)
    assert until(tmp_path, is_over)["runs"]["big"]["state"] == "done"
    kept = record(tmp_path / "b/records", "big")
    assert kept["options"]["time_limit_s"] == 20.0
    assert kept["peak_memory_mb"] > 450
    assert "nothing to send" in synth("batch", "resubmit", "b", cwd=tmp_path).stdout


def test_cancelled_jobs_are_lost_and_can_be_sent_again(tmp_path: Path) -> None:
    """One running, one still waiting (one job at a time): both cancelled, no process stays, both are found."""
    trace = tmp_path / "trace"
    for name in ("a", "b"):
        write(tmp_path / "in", name, "late", trace=str(trace))
    synth(*SUBMIT, "--chunk", 1, "--array-parallelism", 1, cwd=tmp_path)
    within(60, lambda: traced(trace))
    assert status(tmp_path)["counts"] == {"done": 0, "running": 1, "queued": 1, "failed": 0, "lost": 0}
    subprocess.run(["scancel", job_of(tmp_path, "a").partition("_")[0]], check=True)
    found = until(tmp_path, lambda now: now["counts"]["lost"] == 2)
    assert "CANCELLED" in found["runs"]["a"]["why"]
    within(30, lambda: not any(alive(pid) for _, pid, _, _ in traced(trace)))
    for name in ("a", "b"):
        write(tmp_path / "in", name)  # another file now: the run says so rather than solve something else
    synth("batch", "resubmit", "b", cwd=tmp_path)
    found = until(tmp_path, is_over)
    assert {run["kind"] for run in found["runs"].values()} == {"error"}
    assert "has changed" in found["runs"]["a"]["why"]


def test_sbatch_refuses(tmp_path: Path) -> None:
    """In one line, with exit code 2; a batch that was not sent can be sent again."""
    write(tmp_path / "in", "a")
    done = synth(*SUBMIT, "--partition", "nowhere", cwd=tmp_path, code=2)
    assert "invalid partition" in done.stderr.lower()
    assert len(done.stderr.splitlines()) == 1
    assert status(tmp_path)["counts"]["lost"] == 1
    synth("batch", "resubmit", "b", "--partition", "debug", cwd=tmp_path)
    assert until(tmp_path, is_over)["counts"]["done"] == 1
