"""A guard forked from a process that has imported what :mod:`forked_command` imports: what
``synth.execution.supervisor`` starts, without the time in which a new interpreter imports it all."""

from __future__ import annotations

import gc
import os
import select
import signal
import subprocess
import sys
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import IO, Any

from synth.execution import guard

MOST_FILES = 1 << 16


class ForkedGuard:
    """What the supervisor needs of ``subprocess.Popen``: a guard by its process id."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> None:
        """Wait for its end; raises ``subprocess.TimeoutExpired``."""
        with suppress(ProcessLookupError):  # it has ended, and its parent knows
            end = os.pidfd_open(self.pid)
            try:
                if not select.select([end], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired("guard", timeout or 0.0)
            finally:
                os.close(end)
        with suppress(ChildProcessError):  # another's child
            os.waitpid(self.pid, 0)


def from_here(line: Connection[Any, Any], errors: IO[bytes]) -> ForkedGuard:
    """Fork a guard from this process, a forked command: as ``supervisor.start_guard``."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # or both processes write what waits there
    pid = os.fork()
    if pid == 0:
        become_guard(line.fileno(), errors.fileno())
    return ForkedGuard(pid)


def become_guard(line: int, errors: int) -> None:
    """Serve as ``python -m synth.execution.guard`` does; never returns."""
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number, file in enumerate((line, nothing, errors)):
            os.dup2(file, number)
        os.closerange(3, MOST_FILES)
        gc.freeze()  # the command's objects are never collected here: their files are closed, the numbers used again
        os.environ.update(guard.GUARD_VARIABLES)
        sys.argv = [guard.__file__]
        guard.main()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(code)
