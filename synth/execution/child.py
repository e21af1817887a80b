"""One run, in a process of its own: read what to do, run it, check it, write the record."""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import signal
import stat
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from synth.clock import start_up_costs
from synth.execution.messages import Task

WRITE_FAILED = 74  # exit code when the record cannot be written (EX_IOERR)
STDERR_KEPT = 8000  # bytes of a run's standard error that its record keeps, from the end
RESERVE = 2.0  # allocations beyond this multiple of the memory limit are refused at once; the guard enforces the limit
_PR_SET_PDEATHSIG = 1


def main() -> int:
    """The child started as a program of its own: the task is on standard input, the argument is the descriptor of the
    file in which it keeps account of what its limit does not count."""
    settle(os.getppid())
    start_up_costs.open_account(mmap.mmap(int(sys.argv[1]), start_up_costs.ACCOUNT))
    return execute(pickle.load(sys.stdin.buffer))


def settle(guard: int) -> None:
    """Tie this process to its guard: it dies with it (Linux), is the kernel's first choice when memory runs out, and
    leaves the batch system's warning signals, which mean the supervisor, to the supervisor."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:  # it died before the call above
            os._exit(1)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    ordinary = signal.SIG_IGN if "SLURM_JOB_ID" in os.environ else signal.SIG_DFL
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ordinary)


def execute(task: Task) -> int:
    """Run the task; exit code 0 when the record is on disk, ``WRITE_FAILED`` when it cannot be written."""
    from synth import api
    from synth.errors import InputError
    from synth.family import get_family
    from synth.instance import read
    from synth.plugins.method_file import find
    from synth.records import record as records

    _limit_memory(task.memory_mb)
    try:
        instance = read(task.instance)
        if instance.sha256 != task.sha256:
            raise InputError("the instance file has changed since the run was planned", task.instance)
        family = get_family(instance.family)
        method = family.method(task.method) if task.folder is None else find(task.method, [task.folder])
    except InputError as error:
        print("; ".join(str(error).splitlines()), file=sys.stderr)
        return 1
    path = Path(task.record)
    try:
        record = api.execute(instance, method, task.options)
    except InputError as error:  # of a method's file, or in the user's own code: the record keeps where it came from
        traceback.print_exc()
        record = api.failure(instance, method, task.options, "error", _in_words(error, method.name))
    extra: dict[str, Any] = {"peak_memory_mb": peak_memory_mb()}
    if printed := tail(2):
        extra["stderr"] = printed
    try:
        records.write(records.Record({**record.data, **extra}, record.packed), path)
    except OSError as error:
        print(cannot_write(path, error), file=sys.stderr)
        return WRITE_FAILED
    return 0


def _in_words(error: Any, method: str) -> str:
    """All faults in one line, without the method's name, which the record has."""
    place = (error.source or "").removeprefix(f"method {method}").lstrip(", ")
    words = "; ".join(str(type(error)(error.faults)).splitlines())
    return f"{place}: {words}" if place else words


def cannot_write(path: Path, error: OSError) -> str:
    """One line on a failed write."""
    return f"cannot write {path}: {error.strerror or error}"


def tail(handle: int) -> str:
    """The last part of a file of text, without moving its position; empty if it is no file that can be read."""
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        return ""
    try:
        return os.pread(handle, STDERR_KEPT, max(0, status.st_size - STDERR_KEPT)).decode(errors="replace").strip()
    except OSError:
        return ""


def peak_memory_mb() -> float | None:
    """The most memory this process has had resident, in MB; None where the system does not say."""
    with suppress(
        OSError, ValueError, IndexError
    ):  # the other counts what the process held before it became this one (exec)
        status = Path("/proc/self/status").read_text()
        return round(int(status.split("VmHWM:")[1].split()[0]) / 1e3, 1)
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1e6 if sys.platform == "darwin" else 1e3), 1)


def _limit_memory(memory_mb: float | None) -> None:
    """A fence well above the limit, for what allocates everything between two looks of the guard."""
    if memory_mb is None:
        return
    with suppress(ImportError, ValueError, OSError):
        import resource

        most = int(memory_mb * 1e6 * RESERVE)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


if __name__ == "__main__":
    sys.exit(main())
