"""Many runs, each in a process and session of its own: a crash, a hang or a memory blow-up of one loses nothing of the
others, and every one leaves a record that says how it ended."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synth import api
from synth import record as records
from synth.errors import InputError
from synth.family import Method
from synth.instance import Instance
from synth.options import RunOptions
from synth.record import Record
from synth.supervisor import Ending, Supervisor
from synth.worker import WRITE_FAILED, cannot_write

GRACE_S = 60.0  # beyond the time limit for start-up, compilation and the check, before the process group is killed
MEMORY_SHARE = 0.9  # of the machine's memory: what all runs together may hold when it is almost used up
RETRIED = ("error", "killed")  # terminations that are no result: a resumed batch does these again
FAILED = (*RETRIED, "out_of_memory")  # with the runs stopped at their limit with nothing in hand, what may fail again


class WriteFailedError(Exception):
    """A record could not be written (full disk, no permission). The message says why; older records are untouched."""


@dataclass(frozen=True)
class Run:
    """One run: an instance, a method and its options."""

    instance: Instance
    method: Method
    options: RunOptions
    results: Path

    @property
    def path(self) -> Path:
        """Where its record goes."""
        solver = self.options.solver
        return records.record_path(self.results, self.instance.family, self.instance.name, self.method.name, solver)

    def finished_record(self, retry_failed: bool = False) -> Record | None:
        """The record of an earlier run with the same instance, method, solver and options, if it is good.

        No good record is one that failed its check or ended by ``error`` or ``killed``; with ``retry_failed`` neither
        is one that ran out of memory, or out of time with neither a solution nor a bound.
        """
        record = self.stored_record()
        if record is None or not record.ok or record["termination"] in RETRIED:
            return None
        return None if retry_failed and has_failed(record) else record

    def stored_record(self) -> Record | None:
        """The record of an earlier run with the same instance, method, solver and options, however it ended."""
        if not self.path.is_file():
            return None
        try:
            record = records.read(self.path)
        except InputError:
            return None
        same = record["instance_sha256"] == self.instance.sha256 and record["options"] == json.loads(
            json.dumps(self.options.as_record())
        )
        return record if same else None


def has_failed(record: Record) -> bool:
    """Whether the record holds no result: its check or its process failed, or its time ended with nothing in hand."""
    if not record.ok or record["termination"] in FAILED:
        return True
    return record["termination"] == "time_limit" and record.value is None and record.bound is None


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(
    runs: Sequence[Run],
    jobs: int = 1,
    resume: bool = False,
    retry_failed: bool = False,
    on_start: Callable[[Run], None] | None = None,
    *,
    memory_mb: float | None = None,
    grace_s: float | None = None,
) -> Iterator[tuple[Run, Record, bool]]:
    """Execute the runs, ``jobs`` at a time, yielding ``(run, record, reused)`` as each ends.

    With ``resume``, runs with a good record on disk are not run again (see :meth:`Run.finished_record`). ``memory_mb``
    (10^6 bytes, resident) is what each run may hold; without it, a run is stopped only when the machine's memory is
    almost used up and it holds more than its share. A run is killed ``grace_s`` seconds (default ``GRACE_S``) after its
    time limit. Leaving the iteration early ends what is running. Raises :class:`WriteFailedError` when a record cannot
    be written.
    """
    grace_s = GRACE_S if grace_s is None else grace_s
    waiting = deque(enumerate(runs))
    with Supervisor(jobs) as supervisor:
        while waiting or supervisor.running:
            while waiting and supervisor.has_room:
                key, run = waiting.popleft()
                done = run.finished_record(retry_failed) if resume else None
                if done is not None:
                    yield run, done, True
                    continue
                if on_start:
                    on_start(run)
                task = _task(run) | {"memory_mb": memory_mb, "grace_s": grace_s, "share": MEMORY_SHARE / jobs}
                records.remove_leftovers(run.path)
                supervisor.start(key, task | {"before": _stamp(run.path)})
            for key, told, ending in supervisor.ends():
                yield runs[key], _record_of(runs[key], told, ending), False


def _record_of(run: Run, task: Mapping[str, Any], ending: Ending) -> Record:
    """The record the run wrote, or one written here if it ended without."""
    if ending.code == WRITE_FAILED:
        raise WriteFailedError(ending.stderr.splitlines()[-1] if ending.stderr else f"cannot write {run.path}")
    if ending.cause is None and ending.code == 0 and _stamp(run.path) != task["before"]:
        return records.read(run.path)
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


def _task(run: Run) -> dict[str, Any]:
    assert run.instance.file is not None
    return {
        "instance": str(run.instance.file), "sha256": run.instance.sha256, "family": run.instance.family,
        "method": run.method.name, "options": run.options.as_record() | {"solver": run.options.solver},
        "record": str(run.path),
    }  # fmt: skip


def expand_paths(paths: Iterable[Path], what: str = "instance files") -> list[Path]:
    """Files as they are, folders as all ``*.json`` below them in name order. Raises :class:`InputError`."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted(path.rglob("*.json"))
            if not found:
                raise InputError(f"no {what} (*.json) below this folder", str(path))
            files += found
        elif path.exists():
            files.append(path)
        else:
            raise InputError("no such file or folder", str(path))
    return list(dict.fromkeys(files))
