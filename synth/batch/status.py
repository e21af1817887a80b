"""How far a batch is, run by run: from its records first, then from its tasks' own lines, then from Slurm's queue.

So a task that died without a word is found on clusters without accounting too: its runs have no record and its job is
no longer in the queue. How it died (:mod:`synth.batch.ends`) is then the kind of its lost runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from synth.batch import ends, queue, slurm
from synth.batch.plan import FILE, Batch, Submission, Task
from synth.batch.task import Events, lives
from synth.records.folder import written_at
from synth.records.record import Record

State = Literal["done", "running", "queued", "failed", "lost"]
TaskState = Literal["queued", "running", "over"]
STATES: tuple[State, ...] = ("done", "running", "queued", "failed", "lost")


@dataclass(frozen=True)
class RunStatus:
    """One run's state; ``why`` says in words what went wrong (failed, lost) or what it waits for (queued, where that is
    not its turn). ``tries`` is how often it was sent; ``mem_mb`` and ``job_s`` are what its last job had of memory and
    time, where that is known."""

    index: int
    state: State
    kind: str
    why: str
    record: Record | None
    tries: int = 0
    mem_mb: float | None = None
    job_s: float | None = None


@dataclass(frozen=True)
class BatchStatus:
    """All runs of a batch and the tasks that are over with all their runs done."""

    runs: tuple[RunStatus, ...]
    complete: tuple[Task, ...]
    queue_known: bool

    @property
    def counts(self) -> Mapping[State, int]:
        """How many runs are in each state."""
        counts = Counter(run.state for run in self.runs)
        return {state: counts[state] for state in STATES}

    def missing(self) -> list[RunStatus]:
        """The runs to send again: failed or lost."""
        return [run for run in self.runs if run.state in ("failed", "lost")]

    def stuck(self) -> Mapping[str, int]:
        """What queued runs wait for that will not come by itself, and how many do."""
        return Counter(run.why for run in self.runs if run.state == "queued" and run.why)


def of(batch: Batch) -> BatchStatus:
    """The status now."""
    sent = [(submission, task) for submission in batch.submissions for task in submission.tasks]
    latest = {index: (submission, task) for submission, task in sent for index in task.runs}
    jobs = {task.job for submission, task in sent if task.job and submission.engine == "slurm"}
    found = queue.states(jobs, queue.owner(batch.folder / FILE)) if jobs else {}
    tasks = _views(batch.folder, latest.values(), found)
    tries = Counter(index for _, task in sent for index in task.runs)
    runs = [
        replace(_run(batch, index, latest.get(index), tasks), tries=tries[index]) for index in range(len(batch.entries))
    ]
    going_on = {name for name, view in tasks.items() if view.state != "over"}
    done = {run.index for run in runs if run.state == "done"}
    complete = tuple(task for _, task in sent if task.name not in going_on and done.issuperset(task.runs))
    return BatchStatus(tuple(runs), complete, found is not None)


def _views(
    folder: Path, sent: Iterable[tuple[Submission, Task]], found: Mapping[str, queue.JobState] | None
) -> dict[str, _TaskView]:
    """What is known of each task, by its name."""
    tasks: dict[str, _TaskView] = {}
    for submission, task in sent:
        if task.name not in tasks:
            tasks[task.name] = _TaskView(folder, submission, task, found)
    return tasks


class _TaskView:
    """What is known of a task: ``state``, the words for its end, and the runs going on in it."""

    def __init__(
        self, folder: Path, submission: Submission, task: Task, found: Mapping[str, queue.JobState] | None
    ) -> None:
        self._folder = folder
        self._log = Events(folder, task.name).read()
        begins = [i for i, line in enumerate(self._log) if line["event"] == "begin"]
        self._attempt: Sequence[Mapping[str, Any]] = self._log[begins[-1] :] if begins else []
        self._finished = next((line for line in reversed(self._attempt) if line["event"] == "finish"), None)
        self.running = self._started_runs()
        self.why = ""
        self.kind = ends.LOST
        noted = (_number(line.get("mem_mb")) for line in reversed(self._log))
        self.mem_mb = next((noted_mb for noted_mb in noted if noted_mb), submission.resources.mem_mb)
        self.job_s = task.time_min * 60.0 or None
        if submission.engine == "local":
            self.state = self._local_state(folder, submission)
        else:
            self.state = self._slurm_state(task, found)

    def _started_runs(self) -> set[int]:
        going: set[int] = set()
        for line in self._attempt:
            if line["event"] == "start":
                going.add(line["run"])
            elif line["event"] == "end":
                going.discard(line["run"])
        return going

    def _slurm_state(self, task: Task, found: Mapping[str, queue.JobState] | None) -> TaskState:
        if task.job is None:
            self.why = "was never submitted"
            return "over"
        if found is None:  # no squeue here: what the task itself has written must do
            if self._finished:
                self._judge(task.job, None)
            return "over" if self._finished else "running" if self._attempt else "queued"
        state = found.get(task.job)
        if state is not None and state.state in queue.PENDING:
            if state.stuck:
                self.why = f"job {task.job} does not start by itself: {state.reason}"
            return "queued"
        if state is not None and state.state in queue.RUNNING:
            return "running"
        self._judge(task.job, state)
        return "over"

    def _judge(self, job: str, state: queue.JobState | None) -> None:
        last = None if self._finished is None else str(self._finished["ended"])
        start = int(_number(self._attempt[0].get("log_bytes"))) if self._attempt else 0
        self.kind, evidence = ends.judge(state, last, ends.log_of(self._folder, job, start))
        self.why = self._ended_words(f"job {job}", state.state if state else None, evidence)

    def _ended_words(self, where: str, state: str | None, evidence: str) -> str:
        said = f"{where} ended" + (f" as {state}" if state else "") + (f" ({evidence})" if evidence else "")
        if not self._attempt:
            return f"{said} before its supervisor had started"
        if self._finished is None:
            return f"{said}, its supervisor died without a word"
        return said if self._finished["ended"] == "done" else f"{said}: {self._finished['ended']}"

    def _local_state(self, folder: Path, submission: Submission) -> TaskState:
        supervisor = next(iter(self._attempt), None)
        if supervisor is None:
            started = Events(folder, f"local-{submission.created:.0f}").read()
            supervisor = next(iter(started), None)
            if supervisor is not None and lives(supervisor):
                return "queued"
            self.why = "its supervisor ended before it came to this run"
            return "over"
        if self._finished is None and lives(supervisor) is not False:
            return "running"
        self.why = "its supervisor died without a word" if self._finished is None else str(self._finished["ended"])
        return "over"


def _number(value: Any) -> float:
    """What a task's line says, if it is a number that can be a size; else 0."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e15 else 0.0


def _run(batch: Batch, index: int, sent: tuple[Submission, Task] | None, tasks: Mapping[str, _TaskView]) -> RunStatus:
    run = batch.entries[index].run(batch.folder)
    record = run.stored_record()
    if record is not None and not record.fruitless:
        return RunStatus(index, "done", record["termination"], "", record)
    if sent is None:
        return RunStatus(index, "lost", "not sent", "was never submitted", record)
    submission, task = sent
    view = tasks[task.name]
    if index in view.running and view.state == "running":
        return RunStatus(index, "running", "running", "", record)
    tried = record is not None and record.path is not None and written_at(record.path) >= submission.created
    if record is not None and (tried or view.state == "over"):
        kind = record["termination"] if record.ok else "check failed"
        why = record["message"] or "; ".join(record["verified"]["faults"])
        return RunStatus(index, "failed", kind, why, record, mem_mb=view.mem_mb, job_s=view.job_s)
    if view.state == "over":
        why = view.why or "no record"
        return RunStatus(index, "lost", view.kind, why, record, mem_mb=view.mem_mb, job_s=view.job_s)
    return RunStatus(index, "queued", "queued", view.why, record)


def prune(batch: Batch, status: BatchStatus) -> None:
    """Delete submitit's files of the tasks that are over with all their runs done."""
    for task in status.complete:
        slurm.prune(batch, task)
