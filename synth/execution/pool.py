"""Many runs, each in a process and session of its own: a crash, a hang or a memory blow-up of one loses nothing of the
others, and every one leaves a record that says how it ended."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from synth import api
from synth.errors import InputError
from synth.execution.child import WRITE_FAILED, cannot_write
from synth.execution.messages import Ending, Task
from synth.execution.runs import Run
from synth.execution.supervisor import Supervisor
from synth.family import get_family
from synth.records import record as records
from synth.records.record import Record
from synth.solvers.catalogue import known_solvers

GRACE_S = 60.0  # beyond the time limit for start-up, compilation and the check, before the process group is killed
MEMORY_SHARE = 0.9  # of the machine's memory: what all runs together may hold when it is almost used up


class WriteFailedError(Exception):
    """A record could not be written (full disk, no permission). The message says why; older records are untouched."""


def slots(jobs: int | None, threads: int, cpus: int = 0) -> int:
    """How many runs of so many threads may go on at once: ``jobs`` if the user says it, else as many as this process
    (or the job, if its ``cpus`` are more) has processors for."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return jobs or max(1, max(here, cpus) // threads)


def run_all(
    runs: Sequence[Run],
    jobs: int = 1,
    resume: bool = False,
    retry_failed: bool = False,
    on_start: Callable[[Run], bool | None] | None = None,
    *,
    memory_mb: float | None = None,
    grace_s: float | None = None,
) -> Iterator[tuple[Run, Record, bool]]:
    """Execute the runs, ``jobs`` at a time, yielding ``(run, record, reused)`` as each ends.

    With ``resume``, runs with a good record on disk are not run again (see :meth:`Run.finished_record`). ``on_start``
    is told of a run before it starts; if it returns False, the run is left out. ``memory_mb`` (10^6 bytes, resident) is
    what each run may hold; without it, a run is stopped only when the machine's memory is almost used up and it holds
    more than its share. A run is killed ``grace_s`` seconds (default ``GRACE_S``) after its time limit. Leaving the
    iteration early ends what is running. Raises :class:`WriteFailedError` when a record cannot be written, and
    :class:`InputError` where this is not Linux.
    """
    if sys.platform != "linux":
        raise InputError(f"runs need Linux, and this is {sys.platform}; what reads records and makes files does not")
    grace_s = GRACE_S if grace_s is None else grace_s
    waiting = deque(enumerate(runs))
    before: dict[int, list[int] | None] = {}
    with Supervisor(jobs) as supervisor:
        while waiting or supervisor.running:
            while waiting and supervisor.has_room:
                key, run = waiting.popleft()
                done = run.finished_record(retry_failed) if resume else None
                if done is not None:
                    yield run, done, True
                    continue
                if on_start and on_start(run) is False:
                    continue
                before[key] = _stamp(run.path)
                supervisor.start(key, _task(run, memory_mb, grace_s, MEMORY_SHARE / jobs))
            for key, task, ending in supervisor.ends():
                written = _stamp(runs[key].path) != before.pop(key)
                yield runs[key], _record_of(runs[key], task, ending, written), False


def _task(run: Run, memory_mb: float | None, grace_s: float, share: float) -> Task:
    instance = run.instance
    assert instance.file is not None
    file, path = str(instance.file), str(run.path)
    method, limits = run.method, (memory_mb, grace_s, share)
    return Task(file, instance.sha256, method.name, run.options, path, *limits, modules_of(run), method.folder)


def modules_of(run: Run) -> tuple[str, ...]:
    """The modules that a run will import: its family's, its method's (a file is left to the run), and its solver's."""
    family = get_family(run.instance.family)
    own = () if run.method.folder else (run.method.target,)
    parts = (family.instance, *own, family.check, family.check_bound, family.pack)
    binding = [known_solvers()[run.options.solver].binding] if run.options.solver else []
    return (*dict.fromkeys(part.partition(":")[0] for part in parts), *binding)


def _record_of(run: Run, task: Task, ending: Ending, written: bool) -> Record:
    """The record the run wrote, or one written here if it ended without."""
    if ending.code == WRITE_FAILED:
        raise WriteFailedError(ending.stderr.splitlines()[-1] if ending.stderr else f"cannot write {run.path}")
    if ending.cause is None and ending.code == 0 and written:
        return replace(records.read(run.path), made_here=True)
    termination, message = ending.in_words(task)
    record = api.failure(run.instance, run.method, run.options, termination, message)
    extra = {"stderr": ending.stderr} if ending.stderr else {}
    try:
        return records.write(Record({**record.data, **extra}), run.path)
    except OSError as error:
        raise WriteFailedError(cannot_write(run.path, error)) from None


def _stamp(path: Path) -> list[int] | None:
    try:
        status = path.stat()
    except OSError:  # not there, or a file stands where a folder should be: writing will say so
        return None
    return [status.st_mtime_ns, status.st_ino]
