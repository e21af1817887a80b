"""The guard: a small process beside the supervisor that starts one run after another and lets none get away.

It reads tasks from the socket on its standard input and answers each with two messages: the run's process id, then how
it ended. A run has a process, session and process group of its own. The guard kills the group at the time limit plus a
grace period (what the run compiles does not count), over the memory limit, and when the supervisor goes away (the
socket's end of file), so that a supervisor killed with SIGKILL leaves no orphan. If the guard itself is killed, Linux
kills the run with it.

A run with one thread is forked from the guard, which has the imports behind it: those that the task names (if one
crashes or hangs, the supervisor gives the task to a new guard, without them), and what other runs have imported
(modules, compiled kernels) once they have ended well. Forking needs a process without threads. If an import starts one,
the guard starts the run at hand in a new interpreter, and then itself again, without that import. Runs with several
threads, and all runs outside Linux, have an interpreter of their own.
"""

from __future__ import annotations

import ctypes
import gc
import json
import mmap
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from synth.clock import start_up_costs
from synth.execution import child
from synth.execution.messages import Cause, Ending, Started, Task

LOOK_S = 0.1  # how often memory is looked at; a run shorter than this is not looked at
CHILDREN_EVERY = 10  # looks between two searches for processes the run has started itself
MOST_COMPILING_S = 600.0  # of a run that its guard waits for
TOLD_S = 5.0  # of compiling, between two words to the supervisor that it is not stuck
PAUSE_S = 2.0  # a wait that is longer by more than this was no wait
LOW_MEMORY = 0.04  # share of the machine's memory left at which runs above their fair share are stopped
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
NO_OWN_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}  # pyarrow's import starts a thread without it
GUARD_VARIABLES = {**dict.fromkeys(THREAD_VARIABLES, "1"), **NO_OWN_THREADS}  # a guard's environment beside its own
_PR_SET_CHILD_SUBREAPER = 36


class Guard:
    """One at a time; see the module's page."""

    def __init__(self, control: Connection[Any, Any], unsafe: Sequence[str] = ()) -> None:
        self._control = control
        self._unsafe = set(unsafe)  # modules whose import starts threads
        self._newly_unsafe = False
        self._proven: list[bytes] = []  # what runs that ended well have imported, not imported here yet
        self._may_fork = sys.platform == "linux"

    def serve(self) -> None:
        """Tasks until the supervisor closes the socket."""
        from synth.records import record  # noqa: F401  (every run needs them)

        while ended := self._keep(self._control.recv()):
            self._control.send(ended)
            if self._newly_unsafe:
                self._start_anew()

    def _keep(self, task: Task) -> Ending | None:
        """Start the run and stay with it to its end; None if the supervisor went away meanwhile."""
        kills_before = _kernel_kills()
        with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as imports, _shared() as (file, account):
            pid = self._start(task, errors, imports, file, account)
            started = time.monotonic()
            self._control.send(Started(pid))
            watch = _Watch(pid, task, started, account)
            gone = False
            with _end_of(pid) as ends:
                while not _has_ended(pid):
                    watched = ends if gone else [*ends, self._control.fileno()]
                    asked, before = watch.wait_s(), time.monotonic()
                    ready, _, _ = select.select(watched, [], [], asked)
                    watch.allow_for_pause(time.monotonic() - before - asked)
                    if watch.is_put_off():
                        self._control.send(Started(pid))
                    gone = gone or self._control.fileno() in ready  # nothing is sent while a run is going: it is closed
                    if gone or watch.must_stop():
                        _kill_group(pid)
            _kill_group(pid)  # what the run has left behind in its group
            _, status = os.waitpid(pid, 0)
            _kill_strays()
            code = os.waitstatus_to_exitcode(status)
            if code:
                _remove_leftovers(Path(task.record))
            if code == 0:
                imports.seek(0)
                self._proven.append(imports.read())
            if gone:
                return None
            by_kernel = code == -signal.SIGKILL and watch.cause is None and _kernel_kills() > kills_before
            seconds, printed = time.monotonic() - started, child.tail(errors.fileno())
            return Ending(code, watch.cause, watch.peak_mb, by_kernel, seconds, printed)

    def _start(self, task: Task, errors: BinaryIO, imports: BinaryIO, file: BinaryIO, account: mmap.mmap) -> int:
        threads = task.options.threads
        if threads == 1 and self._ready_to_fork(task.modules or ()):
            return self._fork(task, errors, imports, account)
        with tempfile.TemporaryFile() as todo:
            pickle.dump(task, todo)
            todo.seek(0)
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "synth.execution.child", str(file.fileno())],
                stdin=todo,
                pass_fds=(file.fileno(),),
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))},
            )
        process.returncode = 0  # its end is awaited here, not by the Popen object
        return process.pid

    def _ready_to_fork(self, modules: Iterable[str]) -> bool:
        """Import these and what runs have shown to be safe; whether this process has stayed without threads."""
        if not self._may_fork:
            return False
        before = len(sys.modules)
        self._import(modules)
        for noted in self._proven:
            names, _, kernels = noted.partition(b"\n")
            if names and self._unsafe.isdisjoint(batch := json.loads(names)):
                self._import(batch)
                _load_kernels(kernels)
        if self._proven or len(sys.modules) > before:
            gc.collect()
            gc.freeze()  # a collection in a run would otherwise copy every page it shares with this process
        self._proven.clear()
        self._may_fork = self._may_fork and threads() == 1
        return self._may_fork

    def _import(self, names: Iterable[str]) -> None:
        """Import these modules until one starts a thread; what cannot be imported is left to the run."""
        for name in names:
            if not self._may_fork or name in self._unsafe or name in sys.modules:
                continue
            with suppress(Exception):
                import_module(name)
            if threads() > 1:
                self._unsafe.add(name)
                self._newly_unsafe, self._may_fork = True, False

    def _start_anew(self) -> None:
        """Replace this process by a guard without threads; the socket and the tasks waiting in it stay."""
        os.dup2(self._control.fileno(), 0)
        module = "synth.execution.guard"
        os.execv(sys.executable, [sys.executable, "-P", "-m", module, json.dumps(sorted(self._unsafe))])

    def _fork(self, task: Task, errors: BinaryIO, imports: BinaryIO, account: mmap.mmap) -> int:
        modules, kernels = set(sys.modules), len(_kernels())
        guard = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            os.setsid()
            os.dup2(errors.fileno(), 2)
            self._control.close()
            child.settle(guard)
            start_up_costs.open_account(account)
            code = child.execute(task)
            _note_imports(imports, modules, kernels)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)


@contextmanager
def _shared() -> Iterator[tuple[BinaryIO, mmap.mmap]]:
    """A file and its memory in which a run keeps account of what its limit does not count."""
    with tempfile.TemporaryFile() as file:
        file.truncate(start_up_costs.ACCOUNT)
        with mmap.mmap(file.fileno(), start_up_costs.ACCOUNT) as account:
            yield file, account


def _kernels() -> list[Any]:
    """The compiled kernels of this process, if it has any."""
    return sys.modules["synth.kernels"].in_use() if "synth.kernels" in sys.modules else []


def _note_imports(file: BinaryIO, modules: set[str], kernels: int) -> None:
    """Write down what this process has imported beyond its guard's modules and its number of kernels."""
    names = [name for name in sys.modules if name not in modules]
    own = _kernels()
    if names or len(own) > kernels:
        file.write(json.dumps(names).encode() + b"\n" + pickle.dumps(own))
        file.flush()


def _load_kernels(pickled: bytes) -> None:
    """Load the kernels that a run has used; what cannot be loaded is left to each run."""
    if "synth.kernels" in sys.modules:
        with suppress(Exception):
            sys.modules["synth.kernels"].load(pickle.loads(pickled))


def threads() -> int:
    """How many threads this process has."""
    return len(os.listdir("/proc/self/task"))


def _remove_leftovers(record: Path) -> None:
    """Delete what a run that was killed had begun to write, if nobody else writes records in this folder now."""
    from synth.records import lock
    from synth.text.files import remove_leftovers

    with suppress(OSError), lock.held(record.parents[2], "writing", needed=False):
        remove_leftovers(record)


class _Watch:
    """The limits of one run."""

    def __init__(self, pid: int, task: Task, started: float, account: mmap.mmap | bytearray) -> None:
        limit = task.options.time_limit_s
        self._account, self._uncounted_s, self._told_s = account, 0.0, 0.0
        self._ends = None if limit is None else started + limit + task.grace_s
        self._pid = pid
        self._memory_mb = task.memory_mb
        self._share = task.share
        self._looks = 0
        self._family: list[Any] = []
        self.cause: Cause | None = None
        self.peak_mb = 0.0

    def wait_s(self) -> float:
        """Seconds to sleep before the next look."""
        if self._ends is None or self.cause is not None:
            return LOOK_S
        return max(0.0, min(LOOK_S, self._ends - time.monotonic()))

    def allow_for_pause(self, seconds: float) -> None:
        """A wait took this much longer than asked: if that is long, all processes were stopped (a batch system suspends
        jobs), and the run may go on for as long."""
        if seconds > PAUSE_S and self._ends is not None:
            self._ends += seconds

    def is_put_off(self) -> bool:
        """Let the run go on for as long as it has compiled meanwhile, which no time limit counts; whether that is so
        much that the supervisor has to know."""
        spent = min(start_up_costs.spent_by(self._account), MOST_COMPILING_S)
        if self._ends is not None:
            self._ends += spent - self._uncounted_s
        self._uncounted_s = spent
        if spent - self._told_s < TOLD_S:
            return False
        self._told_s = spent
        return True

    def must_stop(self) -> bool:
        """Whether a limit has passed; ``cause`` then says which (``time``, ``memory``, ``low_memory``)."""
        if self.cause is None and self._ends is not None and time.monotonic() >= self._ends:
            self.cause = "time"
        if self.cause is None:
            self._look_at_memory()
        return self.cause is not None

    def _look_at_memory(self) -> None:
        import psutil

        if self._looks % CHILDREN_EVERY == 0:
            with suppress(psutil.Error):
                own = psutil.Process(self._pid)
                self._family = [own, *own.children(recursive=True)]
        self._looks += 1
        used = 0
        for process in self._family:
            with suppress(psutil.Error):
                used += process.memory_info().rss
        self.peak_mb = max(self.peak_mb, used / 1e6)
        if self._memory_mb is not None:
            if used > self._memory_mb * 1e6:
                self.cause = "memory"
            return
        machine = psutil.virtual_memory()
        if machine.available < LOW_MEMORY * machine.total and used > self._share * machine.total:
            self.cause = "low_memory"


@contextmanager
def _end_of(pid: int) -> Iterator[list[int]]:
    """A descriptor that can be read once the process has ended; none where the system has no such thing."""
    ends = []
    with suppress(OSError, AttributeError):
        ends.append(os.pidfd_open(pid))
    yield ends
    for end in ends:
        os.close(end)


def _has_ended(pid: int) -> bool:
    """Whether the process has ended; it stays a zombie, so that its id and group cannot become another's."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    import psutil

    return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):  # a forked run that has not made its group yet
        os.kill(pid, signal.SIGKILL)


def _kill_strays() -> None:
    """End processes of the run that left its group: as a subreaper, the guard inherits them."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            strays = [int(word) for word in children.read_text().split()]
        except OSError:
            return
        if not strays:
            return
        for stray in strays:
            with suppress(OSError):
                os.kill(stray, signal.SIGKILL)
            with suppress(OSError):
                os.waitpid(stray, 0)


def _kernel_kills() -> int:
    """How many processes the kernel has killed for want of memory since the machine started (0 if it does not say)."""
    with suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def become(control: int, errors: int) -> NoReturn:
    """Turn this process, just forked from the supervisor, into a guard as a new interpreter would be: a session of its
    own, its environment, and nothing open but the socket ``control`` and the file ``errors`` for its messages."""
    import fcntl

    code = 1
    try:
        os.setsid()
        os.environ.update(GUARD_VARIABLES)
        control, errors = (fcntl.fcntl(file, fcntl.F_DUPFD, 3) for file in (control, errors))
        nothing = os.open(os.devnull, os.O_RDWR)
        for number, file in enumerate((control, nothing, errors)):
            os.dup2(file, number)
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):  # the listing's own is closed again
                if int(name) > 2 and os.fstat(int(name)):  # an object may yet close it: the number stays taken
                    os.dup2(nothing, int(name), inheritable=False)
        start_up_costs.plain_s = 0.0
        main()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def main(unsafe: Sequence[str] = ()) -> None:
    """Take the socket from standard input and serve; ``unsafe``: modules whose import starts threads."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)  # it ends with its supervisor
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    control: Connection[Any, Any] = Connection(os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        Guard(control, unsafe).serve()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]) if len(sys.argv) > 1 else ())
