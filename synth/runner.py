"""Many runs, each in a subprocess of its own: a crash or a hang of one loses nothing of the others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
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

GRACE_S = 60.0  # beyond the time limit for start-up, compilation and the check, before the process group is killed
WRITE_FAILED = 74  # worker's exit code when the record cannot be written (EX_IOERR)


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

    def finished_record(self) -> Record | None:
        """The record of an earlier run with the same instance, method, solver and options that ended well, if any."""
        if not self.path.is_file():
            return None
        try:
            record = records.read(self.path)
        except InputError:
            return None
        same = (
            record["instance_sha256"] == self.instance.sha256
            and record["options"] == json.loads(json.dumps(self.options.as_record()))
            and record["termination"] != "error"
            and record.ok
        )
        return record if same else None


def run_all(
    runs: Sequence[Run], resume: bool = False, on_start: Callable[[Run], None] | None = None
) -> Iterator[tuple[Run, Record, bool]]:
    """Execute the runs in order, yielding ``(run, record, reused)`` as each ends.

    Raises :class:`WriteFailedError` when a record cannot be written.
    """
    for run in runs:
        done = run.finished_record() if resume else None
        if done is not None:
            yield run, done, True
            continue
        if on_start:
            on_start(run)
        yield run, run_one(run), False


def run_one(run: Run) -> Record:
    """Execute one run in a subprocess and return the record it wrote, or one written here if it died without."""
    before = _stamp(run.path)
    process = subprocess.Popen(
        [sys.executable, "-m", "synth.worker"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {name: str(run.options.threads) for name in _THREAD_VARIABLES},
    )  # fmt: skip
    limit = run.options.time_limit_s
    started = time.monotonic()
    try:
        _, errors = process.communicate(_specification(run), timeout=None if limit is None else limit + GRACE_S)
    except subprocess.TimeoutExpired:
        _kill_group(process)
        message = f"killed {GRACE_S:g} s after the time limit of {limit:g} s"
        return _write_failure(run, "time_limit", message)
    except BaseException:
        _kill_group(process)
        records.remove_leftovers(run.path)
        raise
    records.remove_leftovers(run.path)
    if process.returncode == WRITE_FAILED:
        raise WriteFailedError(errors.strip().splitlines()[-1])
    if process.returncode == 0 and _stamp(run.path) != before:
        return records.read(run.path)
    ended = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
    last = (errors or "").strip().splitlines()
    message = f"the run's process ended with {ended} after {time.monotonic() - started:.1f} s" + (
        f": {last[-1]}" if last else ""
    )
    return _write_failure(run, "error", message)


_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:  # not there, or a file stands where a folder should be: writing will say so
        return None
    return status.st_mtime_ns, status.st_ino


def _specification(run: Run) -> str:
    assert run.instance.file is not None
    options = run.options.as_record() | {"solver": run.options.solver}
    return json.dumps(
        {"instance": str(run.instance.file), "method": run.method.name, "options": options, "record": str(run.path)}
    )


def _kill_group(process: subprocess.Popen[Any]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _write_failure(run: Run, termination: str, message: str) -> Record:
    records.remove_leftovers(run.path)
    record = api.failure(run.instance, run.method, run.options, termination, message)
    try:
        return records.write(record, run.path)
    except OSError as error:
        raise WriteFailedError(cannot_write(run.path, error)) from None


def cannot_write(path: Path, error: OSError) -> str:
    """One line on a failed write."""
    return f"cannot write {path}: {error.strerror or error}"


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
