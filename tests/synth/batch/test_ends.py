"""How jobs end that leave runs without a record: what a real Slurm said of each kind of end (`recorded.json`, written
by `tests/slurm/test_accounts.py`), and answers no Slurm gives on demand."""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faulty.files import synth, write
from slurm.faked import fake_slurm, says

from synth.batch import ends, plan, queue, repeat, status
from synth.batch import task as tasks
from synth.batch.plan import Batch, Entry, Resources, Submission, Task
from synth.batch.queue import JobState
from synth.batch.status import RunStatus
from synth.batch.task import Events
from synth.execution.runs import Run
from synth.options import RunOptions, read_factor

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text())
LOST = {
    "kernel": "out_of_memory", "polled": "out_of_memory", "preempted-low-end": "preempted", "cancelled": "cancelled",
    "node-failure": "node_failure", "time": "job_time_limit", "time-too-often": "job_time_limit",
}  # fmt: skip


class Done:
    """What stands for a good record."""

    fruitless = False

    def __getitem__(self, key: str) -> str:
        return "finished"


def replayed(
    folder: Path, name: str, patch: pytest.MonkeyPatch, accounts: bool = True, forgotten: bool = False
) -> dict[str, tuple[str, str, str]]:
    """What `status` makes of a recorded case: state, kind and words of each run. ``accounts``: sacct answers,
    ``forgotten``: squeue does not know the job any more."""
    case = RECORDED[name]
    options = {"threads": 1, "time_limit_s": 60.0}
    entries = tuple(Entry("optree", k, f"{k}.json", "0", "bound", None, options, "records") for k in case["status"])
    ((chunk, lines),) = case["tasks"].items()
    sent = Submission("slurm", 0.0, Resources(), (Task(chunk, tuple(range(len(entries))), 1, 4, case["jobs"][0]),))
    batch = Batch(folder / "b", str(folder), entries, None, (sent,))
    batch.write()
    log = Events(batch.folder, chunk)
    for line in filter(None, lines.splitlines()):  # the log was recorded from the last beginning on
        log.add(**{**json.loads(line), "log_bytes": 0})
    (batch.folder / "slurm").mkdir()
    for job, text in case["logs"].items():
        (batch.folder / f"slurm/{job}_0_log.err").write_text(text)
    squeue = says(folder, "squeue", "" if forgotten else case["squeue"])
    patch.setenv("PATH", fake_slurm(folder, squeue, says(folder, "sacct", case["sacct"]) if accounts else "exit 1"))
    done = {k for k, run in case["status"].items() if run["state"] == "done"}
    patch.setattr(Run, "stored_record", lambda run: Done() if run.instance.name in done else None)
    found = status.of(batch)
    return {k: (run.state, run.kind, run.why) for k, run in zip(case["status"], found.runs, strict=True)}


@pytest.mark.parametrize("name", LOST)
def test_ends_as_recorded(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With accounting, soon after the end and long after it: the same kind, and the job's state in words."""
    for forgotten in (False, True):
        found = replayed(tmp_path / str(forgotten), name, monkeypatch, forgotten=forgotten)
        assert [state for state, _, _ in found.values()] == ["done", "lost", "lost"]
        assert {kind for _, kind, _ in found.values()} == {"finished", LOST[name]}
        for k in "bc":
            assert " ended as " in found[k][2]
    assert found == {k: (run["state"], run["kind"], run["why"]) for k, run in RECORDED[name]["status"].items()}


@pytest.mark.parametrize("name", LOST)
def test_without_accounting_the_log_knows(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but a cancellation and a node that went dark: of these only the queue knows, while it remembers."""
    found = replayed(tmp_path / "soon", name, monkeypatch, accounts=False)
    later = replayed(tmp_path / "later", name, monkeypatch, accounts=False, forgotten=True)
    assert {state for state, _, _ in found.values()} == {state for state, _, _ in later.values()} == {"done", "lost"}
    nobody_wrote_it = name in ("cancelled", "node-failure")
    assert later["b"][1] == ("lost" if nobody_wrote_it else LOST[name])
    assert later["b"][2].startswith(f"job {RECORDED[name]['jobs'][0]} ended")


@pytest.mark.parametrize("name", ["preempted-low", "preempted-low-grace", "preempted-low-end-grace"])
def test_queued_again_is_not_lost(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounting says PREEMPTED of a job that waits for its second start; the queue knows better."""
    found = replayed(tmp_path, name, monkeypatch)
    assert [state for state, _, _ in found.values()] == ["done", "queued", "queued"]
    assert found["b"][2] == ""


def test_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = replayed(tmp_path, "held", monkeypatch)
    assert [state for state, _, _ in found.values()] == ["done", "queued", "queued"]
    assert "does not start by itself" in found["b"][2]


@pytest.mark.parametrize(
    ("state", "finish", "log", "kind"),
    [
        (None, None, "", "lost"),
        (JobState("FAILED"), None, "", "lost"),
        (JobState("FAILED", steps=("FAILED", "OUT_OF_MEMORY")), None, "", "out_of_memory"),
        (JobState("CANCELLED", steps=("OUT_OF_MEMORY",)), None, "", "out_of_memory"),
        (JobState("CANCELLED", steps=("OUT_OF_MEMORY",)), "ended by SIGTERM", "srun: error: n: task 0: Out Of Memory\n",
         "cancelled"),  # the kernel had killed a run before, which has its record
        (None, "ended by SIGTERM", "slurmstepd: error: Exceeded job memory limit\n", "out_of_memory"),
        (JobState("TIMEOUT", steps=("OUT_OF_MEMORY",)), None, "", "job_time_limit"),
        (JobState("BOOT_FAIL"), None, "", "node_failure"),
        (JobState("FAILED"), "Job not requeued because: timed-out too many times.", "", "job_time_limit"),
        (None, None, "ValueError: out of memory\n", "lost"),  # not Slurm's line
        (None, None, "srun: error: n3: task 0: Out Of Memory\n", "out_of_memory"),
        (None, None, "slurmstepd: error: *** JOB 3 ON n CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***",
         "job_time_limit"),
        (JobState("CANCELLED"), None, "slurmstepd: error: *** JOB 3 ON n CANCELLED AT 2026-01-01T00:00:00 ***",
         "cancelled"),
    ],
)  # fmt: skip
def test_judgement(state: JobState | None, finish: str | None, log: str, kind: str) -> None:
    assert ends.judge(state, finish, log)[0] == kind


def test_an_earlier_attempt_is_not_held_against_the_last(tmp_path: Path) -> None:
    """Only what came into the log since the attempt began counts; a damaged number of bytes counts as none."""
    (tmp_path / "slurm").mkdir()
    log = tmp_path / "slurm/7_2_0_log.err"
    log.write_text("slurmstepd: error: *** JOB 7 ON n CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***\n")
    size = ends.log_size(tmp_path, "7_2")
    assert size == log.stat().st_size
    assert ends.judge(None, None, ends.log_of(tmp_path, "7_2", size))[0] == "lost"
    assert ends.judge(None, None, ends.log_of(tmp_path, "7_2"))[0] == "preempted"
    assert ends.log_of(tmp_path, "7_2", 10**14) == ends.log_of(tmp_path, "8") == ""


# --- what is asked -----------------------------------------------------------------------------------------------


def test_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounting that never heard of a job's end calls it RUNNING for ever; the queue, which has none, is right. Steps
    belong to their job, of whatever array."""
    squeue = says(tmp_path, "q", "7_0|PENDING|JobHeldUser\n7_1|RUNNING|None\n7_4|FAILED|NonZeroExitCode\n")
    lines = "7_1|COMPLETED\n7_2|RUNNING\n7_3|CANCELLED by 0\n7_3.batch|CANCELLED\n7_3.0|OUT_OF_MEMORY\n7_4|FAILED\n"
    monkeypatch.setenv("PATH", fake_slurm(tmp_path, squeue, says(tmp_path, "a", lines)))
    found = queue.states(["7_0", "7_1", "7_2", "7_3", "7_4", "9"])
    assert found == {
        "7_0": JobState("PENDING", "JobHeldUser"),
        "7_1": JobState("RUNNING"),
        "7_3": JobState("CANCELLED", steps=("CANCELLED", "OUT_OF_MEMORY")),
        "7_4": JobState("FAILED"),
    }
    assert found["7_0"].stuck
    assert not JobState("PENDING", "Resources").stuck


def test_the_queue_of_the_batchs_owner_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks at somebody else's batch must not find its jobs gone."""
    monkeypatch.setenv("PATH", fake_slurm(tmp_path, f'echo "$@" >{tmp_path}/asked; echo "7|RUNNING|None"'))
    sent = Submission("slurm", 0.0, Resources(), (Task("1-0", (0,), 1, 4, "7"),))
    entry = Entry("optree", "a", "a.json", "0", "bound", None, {"threads": 1, "time_limit_s": 60.0}, "records")
    batch = Batch(tmp_path / "b", str(tmp_path), (entry,), None, (sent,))
    batch.write()
    monkeypatch.setattr(Path, "owner", lambda path: "somebody" if path.name == "batch.json" else "me")
    assert status.of(batch).runs[0].state == "queued"
    assert "-u somebody" in (tmp_path / "asked").read_text()


# --- SIGTERM -----------------------------------------------------------------------------------------------------

# `scontrol show job` in the grace period of a preemption, as Slurm 22.05 wrote it
GIVING_WAY = """\
JobId=3 ArrayJobId=3 ArrayTaskId=0 JobName=synth-b
   JobState=RUNNING Reason=None Dependency=(null)
   SubmitTime=2026-11-22T08:51:40 EligibleTime=2026-11-22T08:51:40
   StartTime=2026-11-22T08:51:44 EndTime=2026-11-22T08:52:01 Deadline=N/A
   PreemptEligibleTime=2026-11-22T08:51:44 PreemptTime=2026-11-22T08:51:51
"""


@pytest.mark.parametrize(
    ("shown", "again"),
    [
        (GIVING_WAY, True),
        (GIVING_WAY.replace("PreemptTime=2026-11-22T08:51:51", "PreemptTime=None"), False),  # `scancel --signal=TERM`
        (GIVING_WAY.replace("T08:51:51", "T08:40:00"), False),  # before the start: an earlier preemption
        (GIVING_WAY.replace("RUNNING", "COMPLETING"), False),  # cancelled meanwhile
        ("", False),
    ],
)
def test_queued_again_in_a_grace_period(
    tmp_path: Path, shown: str, again: bool, monkeypatch: pytest.MonkeyPatch, signals_as_before: None
) -> None:
    """Only where Slurm says that the running job gives way: a cancellation is not undone."""
    answer = f'echo "$@" >>{tmp_path}/asked; test "$1" != show || {says(tmp_path, "shown", shown)}'
    monkeypatch.setenv("PATH", fake_slurm(tmp_path, "exit 1", scontrol=answer))
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "3")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "0")
    monkeypatch.setattr(tasks, "run_task", lambda folder, name: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(tasks.TaskInterruptedError, match="queued again" if again else "SIGTERM$"):
        tasks.ChunkTask(str(tmp_path), "1-0")()
    assert (tmp_path / "asked").read_text().splitlines() == ["show job 3_0", *["requeue 3_0"][:again]]


@pytest.mark.parametrize("gives_way", [True, False])
def test_warned_by_usr2(
    tmp_path: Path, gives_way: bool, monkeypatch: pytest.MonkeyPatch, signals_as_before: None
) -> None:
    """Before a preemption (`preempt_send_user_signal`) the job is queued again here, as often as it takes;
    before a time limit submitit does that, and counts."""
    shown = GIVING_WAY if gives_way else GIVING_WAY.replace("PreemptTime=2026-11-22T08:51:51", "PreemptTime=None")
    answer = f'echo "$@" >>{tmp_path}/asked; test "$1" != show || {says(tmp_path, "shown", shown)}'
    monkeypatch.setenv("PATH", fake_slurm(tmp_path, "exit 1", scontrol=answer))
    monkeypatch.delenv("SLURM_ARRAY_JOB_ID", raising=False)
    monkeypatch.setenv("SLURM_JOB_ID", "3")
    counted = []
    signal.signal(signal.SIGUSR2, lambda number, frame: counted.append(number))
    monkeypatch.setattr(tasks, "run_task", lambda folder, name: os.kill(os.getpid(), signal.SIGUSR2) or {})
    if gives_way:
        with pytest.raises(tasks.TaskInterruptedError, match="ended by SIGUSR2, to be queued again"):
            tasks.ChunkTask(str(tmp_path), "1-0")()
    else:
        tasks.ChunkTask(str(tmp_path), "1-0")()
    assert counted == ([] if gives_way else [signal.SIGUSR2])
    asked = (tmp_path / "asked").read_text().splitlines()
    assert list(dict.fromkeys(asked)) == ["show job 3", *["requeue 3"][:gives_way]]


@pytest.fixture
def signals_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGCONT, signal.SIGUSR2)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_sigterm_within_a_logger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signals_as_before: None) -> None:
    """Slurm sends SIGCONT just before SIGTERM, and submitit logs the one as the other comes: a logger swallows every
    exception, and the task would go on until it is killed. A second SIGTERM does not meet the cleaning up."""
    cleaned = []

    class Stream:
        def write(self, text: str) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

        def flush(self) -> None:
            pass

    def run_task(folder: Path, name: str) -> None:
        try:
            logging.StreamHandler(Stream()).emit(logging.makeLogRecord({"msg": "SIGCONT"}))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            cleaned.append(name)
        cleaned.append("went on")

    monkeypatch.setattr(tasks, "run_task", run_task)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(tasks.TaskInterruptedError, match="SIGTERM"):
        tasks.ChunkTask(str(tmp_path), "1-0")()
    assert cleaned == ["1-0"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


@pytest.mark.parametrize(
    ("words", "memory"),
    [
        ({}, None),
        ({"SLURM_MEM_PER_NODE": "600"}, 600.0),
        ({"SLURM_MEM_PER_CPU": "500", "SLURM_CPUS_ON_NODE": "4"}, 2000.0),
        ({"SLURM_MEM_PER_CPU": "500"}, 500.0),
        ({"SLURM_MEM_PER_NODE": "0"}, None),
        ({"SLURM_MEM_PER_NODE": "much"}, None),
    ],
)
def test_memory_of_a_job(words: dict[str, str], memory: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    assert tasks.job_memory_mb() == memory


# --- sending again -----------------------------------------------------------------------------------------------


def again(kind: str, had_mb: float | None, mem_mb: float | None, limit_s: float = 60.0, **other: Any) -> list[str]:
    """What is said of one run that ended as ``kind`` and had 60 s and a job of four minutes."""
    entry = Entry("optree", "a", "a.json", "0", "bound", None, {"threads": 1, "time_limit_s": 60.0}, "records")
    before = Batch(Path("b"), "/", (entry,))
    after = Batch(Path("b"), "/", (replace(entry, options={"threads": 1, "time_limit_s": limit_s}),))
    resources = Resources(mem_mb=mem_mb, time_s=other.pop("time_s", None))
    submission = plan.submission(after, other.pop("engine", "slurm"), [0], resources)
    run = RunStatus(0, other.pop("state", "failed"), kind, "", None, tries=2, mem_mb=had_mb, job_s=240.0)
    return list(repeat.the_same_again(before, after, [run], submission))


def test_a_word_where_there_is_no_more() -> None:
    (said,) = again("out_of_memory", 500.0, None)
    assert said == (
        "1 run ran out of memory with 500 MB for their job (sent 2 times so far) and get no more now:"
        " --mem 2x gives twice as much"
    )
    assert again("out_of_memory", 500.0, 1000.0) == []
    assert len(again("out_of_memory", 500.0, 500.0)) == len(again("out_of_memory", None, None)) == 1
    assert again("out_of_memory", None, None, engine="local") == []  # it had the machine's
    assert "--time-limit 2x" in again("time_limit", None, None)[0]
    assert again("time_limit", None, None, limit_s=120.0) == []
    assert "--time 2x" in again("job_time_limit", None, None, state="lost")[0]
    assert again("job_time_limit", None, None, state="lost", time_s=480.0) == []
    for kind in ("error", "killed", "lost", "preempted", "node_failure", "cancelled"):
        assert again(kind, 500.0, None) == []


def test_multiples(tmp_path: Path) -> None:
    """Twice the memory that the job is known to have had (its own task's line), half as much again of the run's limit;
    a batch that never said how much must be told."""
    file = write(tmp_path / "in", "a")
    options = RunOptions(time_limit_s=10.0).as_record()
    entry = Entry("faulty", "a", str(file), "0", "behave", None, options, "records")
    sent = Submission("slurm", 0.0, Resources(), (Task("1-0", (0,), 1, 4, "7"),))
    Batch(tmp_path / "b", str(tmp_path), (entry,), None, (sent,)).write()
    path = fake_slurm(tmp_path, "true", "echo '7|OUT_OF_MEMORY'")
    resubmit = ("batch", "resubmit", "b", "--dry-run", "--mem", "2x")
    assert "name the amount" in synth(*resubmit, cwd=tmp_path, code=2, PATH=path).stderr
    Events(tmp_path / "b", "1-0").add("begin", job="7", host="far away", pid=1, started=0.0, mem_mb=700.0)
    more = synth(*resubmit, "--time-limit", "1.5x", cwd=tmp_path, PATH=path)
    assert "ran out" not in more.stderr
    assert "--mem=1400M" in more.stdout
    assert " 15 s " in more.stdout


def test_factor() -> None:
    assert [read_factor(text) for text in ("2x", " 1.5X ", ".5x", "2", "2xx", "4G", "1e9x")] == [
        2.0, 1.5, 0.5, None, None, None, None,
    ]  # fmt: skip
    with pytest.raises(ValueError, match="factor > 0"):
        read_factor("0x")
