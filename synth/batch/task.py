"""One task of a batch: its runs, under the same supervisor as everywhere, and a line for each thing that happens."""

from __future__ import annotations

import json
import os
import platform
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from synth.batch import ends, plan, queue
from synth.execution.pool import run_all
from synth.execution.runs import Run
from synth.records.folder import written_at
from synth.records.record import Record


class TaskInterruptedError(Exception):
    """The batch system asked the task to end (preemption, cancellation). Finished records stay."""


class _Terminated(BaseException):
    """SIGTERM, on its way out of whatever was going on: like an interruption from the keyboard it is no exception that
    anything on the way (a logger, for one) may swallow."""


class ChunkTask:
    """What submitit pickles: where the batch is and which task of it to do."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder = folder
        self.name = name

    def __call__(self) -> dict[str, int]:
        """Do the task in its job; how many runs it did and how many of these failed."""
        try:
            with _ending_early():
                return run_task(Path(self.folder), self.name)
        except _Terminated as signalled:
            job = job_id()
            # who ends in the grace period of a preemption has ended for Slurm, which then does not queue it again
            again = job is not None and queue.is_giving_way(job) and queue.requeue(job)
            raise TaskInterruptedError(f"{signalled}{', to be queued again' if again else ''}") from None

    def checkpoint(self) -> Any:
        """For submitit, at a time limit or a preemption: the same again, which skips what is done."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def run_task(
    folder: Path,
    name: str,
    jobs: int | None = None,
    on_start: Callable[[Run], None] | None = None,
    on_end: Callable[[Run, Record], None] | None = None,
) -> dict[str, int]:
    """Do the runs of a task that were not done yet. Raises ``WriteFailedError`` as
    :func:`synth.execution.pool.run_all`."""
    batch = plan.read(folder)
    submission, task = batch.task(name)
    os.chdir(batch.directory)
    log = Events(folder, name)
    job = job_id()
    given = {} if job is None else {"log_bytes": ends.log_size(folder, job), "mem_mb": job_memory_mb()}
    log.add("begin", job=job, **identity(), **given)
    runs = [(index, batch.entries[index].run(folder)) for index in task.runs]
    todo = {id(run): (index, run) for index, run in runs if not tried(run, submission.created)}
    counts = {"runs": 0, "failed": 0}

    def started(run: Run) -> None:
        log.add("start", run=todo[id(run)][0])
        if on_start:
            on_start(run)

    ended = "interrupted"
    try:
        if todo:
            threads = batch.entries[task.runs[0]].threads
            for run, record, _ in run_all(
                [run for _, run in todo.values()],
                jobs or max(1, task.cpus // threads),
                on_start=started,
                memory_mb=plan.run_memory_mb(submission.resources, task.cpus, threads),
                grace_s=submission.resources.grace_s,
            ):
                counts["runs"] += 1
                counts["failed"] += record.fruitless
                log.add("end", run=todo[id(run)][0], termination=record["termination"])
                if on_end:
                    on_end(run, record)
        ended = "done"
    except (Exception, _Terminated) as error:
        ended = str(error) or type(error).__name__
        raise
    finally:
        log.add("finish", ended=ended)
    return counts


def tried(run: Run, since: float) -> bool:
    """Whether the run needs no other try: a good record, or one of this submission and not of a run killed midway."""
    record = run.stored_record()
    if record is None or record.path is None or record["termination"] == "killed":
        return False
    return not record.fruitless or written_at(record.path) >= since


_FACTS: Mapping[object, Mapping[str, type]] = {
    "begin": {"host": str, "pid": int, "started": float},
    "start": {"run": int},
    "end": {"run": int},
    "finish": {"ended": str},
}


class Events:
    """The lines of one task, ``tasks/<name>.jsonl``; a line is appended in one write."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / "tasks" / f"{name}.jsonl"

    def add(self, event: str, **facts: Any) -> None:
        """Append a line. A full disk loses the line, not the task."""
        line = json.dumps({"event": event, "time": plan.now(), **facts}) + "\n"
        if event == "begin":  # the attempt before may have died within a line
            line = "\n" + line
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as stream:
                stream.write(line)
        except OSError:
            pass

    def read(self) -> list[dict[str, Any]]:
        """All lines, without one that was cut off."""
        return list(self._lines())

    def _lines(self) -> Iterator[dict[str, Any]]:
        try:
            text = self.path.read_text()
        except OSError:
            return
        for line in text.splitlines():
            with suppress(ValueError):
                found = json.loads(line)
                if _is_event(found):
                    yield found


def _is_event(line: Any) -> bool:
    """Whether it is what :meth:`Events.add` writes: each kind of event with the facts that it is read for."""
    if not isinstance(line, dict) or line.get("event") not in _FACTS:
        return False
    return all(isinstance(line.get(fact), kind) for fact, kind in _FACTS[line["event"]].items())


def identity() -> dict[str, Any]:
    """This process, such that another one on the same host can tell whether it still lives."""
    import psutil

    return {"host": platform.node(), "pid": os.getpid(), "started": psutil.Process().create_time()}


def lives(who: Mapping[str, Any]) -> bool | None:
    """Whether the process of :func:`identity` lives; None when it is on another host."""
    import psutil

    if who["host"] != platform.node():
        return None
    try:
        process = psutil.Process(who["pid"])
        return bool(process.create_time() == who["started"] and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def job_id() -> str | None:
    """The Slurm id of the job this process is in, as ``squeue`` prints it."""
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    return f"{array}_{os.environ.get('SLURM_ARRAY_TASK_ID')}" if array else os.environ.get("SLURM_JOB_ID")


def job_memory_mb() -> float | None:
    """The memory of the Slurm job this process is in, in Slurm's megabytes; None where it does not say."""
    for name, times in (("SLURM_MEM_PER_NODE", "1"), ("SLURM_MEM_PER_CPU", os.environ.get("SLURM_CPUS_ON_NODE", "1"))):
        value = os.environ.get(name, "")
        if value.isdigit() and times.isdigit() and int(value) > 0:  # 0: all of the node's
            return float(int(value) * int(times))
    return None


@contextmanager
def _ending_early() -> Iterator[None]:
    """SIGTERM ends the runs and the task at once: Slurm kills everything half a minute later. (submitit would ignore
    it.) The SIGTERM that Slurm sends after the first must not meet the cleaning up, and submitit's handler of the
    SIGCONT it sends with each would only log it. USR2 comes before a time limit and goes to submitit, which has the job
    queued again, but not for ever; before a preemption it may come in place of SIGTERM."""

    def stop(number: int, *_: Any) -> None:
        for each in (signal.SIGTERM, signal.SIGUSR2):
            signal.signal(each, signal.SIG_IGN)
        raise _Terminated(f"ended by {signal.Signals(number).name}")

    def warned(number: int, frame: FrameType | None) -> None:
        job = job_id()
        if job is not None and queue.is_giving_way(job):
            stop(number)
        of_submitit = before[signal.SIGUSR2]
        if callable(of_submitit):
            of_submitit(number, frame)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR2)}
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, stop)
    if callable(before[signal.SIGUSR2]):
        signal.signal(signal.SIGUSR2, warned)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is stop:  # else it has come, and no second one until this process has ended
            for number, handler in before.items():
                signal.signal(number, handler)
