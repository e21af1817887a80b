"""What supervisor, guard and child tell each other, pickled by :class:`multiprocessing.connection.Connection`."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from synth.options import RunOptions

if TYPE_CHECKING:
    from synth.method import Termination

Cause = Literal["time", "memory", "low_memory", "guard"]
_MEMORY_WORDS = ("memoryerror", "bad_alloc", "out of memory", "cannot allocate memory")
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS)


@dataclass(frozen=True)
class Task:
    """Supervisor to guard to child: one run and its limits.

    ``instance`` and ``record`` are paths. A run is killed ``grace_s`` seconds after its time limit, above ``memory_mb``
    (10^6 bytes, resident), or, without that, when the machine's memory is almost used up and it holds more than
    ``share`` of it. ``modules`` is what the run will import: its guard imports them before, once for all its runs; None
    leaves all imports to the run. ``folder`` is where the file of a method ``package.module:function`` is.
    """

    instance: str
    sha256: str
    method: str
    options: RunOptions
    record: str
    memory_mb: float | None
    grace_s: float
    share: float
    modules: tuple[str, ...] | None = None
    folder: Path | None = None


@dataclass(frozen=True)
class Started:
    """Guard to supervisor: the run's process is there, and its time begins; said again while it compiles."""

    pid: int


@dataclass(frozen=True)
class Ending:
    """Guard to supervisor: how the run's process ended. ``code`` as :class:`subprocess.Popen` has it, ``cause`` the
    limit it met (``guard``: its guard died, said by the supervisor itself)."""

    code: int
    cause: Cause | None = None
    peak_mb: float = 0.0
    kernel_killed: bool = False
    seconds: float = 0.0
    stderr: str = ""

    def in_words(self, task: Task) -> tuple[Termination, str]:
        """The termination and message for a run that left no record."""
        last = f": {self.stderr.splitlines()[-1]}" if self.stderr else ""
        used = f"it held {self.peak_mb:,.0f} MB"
        match self.cause:
            case "time":
                limit = task.options.time_limit_s
                return "time_limit", f"killed {task.grace_s:g} s after the time limit of {limit:g} s"
            case "memory":
                return "out_of_memory", f"stopped over the memory limit of {task.memory_mb:,.0f} MB: {used}"
            case "low_memory":
                return "out_of_memory", f"stopped because the machine's memory was almost used up: {used}"
            case "guard":
                return "killed", f"the process that watched over the run ended, and the run with it{last}"
        if self.kernel_killed:
            return "out_of_memory", f"killed by the kernel for want of memory: {used}"
        ended = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        message = f"the run's process ended with {ended} after {self.seconds:.1f} s{last}"
        if self.code and any(word in self.stderr[-2000:].lower() for word in _MEMORY_WORDS):
            return "out_of_memory", message
        return ("killed" if self.code < 0 and -self.code not in _CRASHES else "error"), message
