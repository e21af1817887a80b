"""The supervisor's side of many runs at once: one keeper process for each run that may go on at a time.

There are no threads here: the keepers (see :mod:`synth.keeper`) enforce the limits, this side hands out tasks, waits
for the ends and says in words how a run that wrote no record ended.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from synth.family import Termination
from synth.keeper import THREAD_VARIABLES
from synth.worker import tail

STUCK_S = 30.0  # beyond a run's last moment until its keeper is taken to be stuck
_MEMORY_WORDS = ("memoryerror", "bad_alloc", "out of memory", "cannot allocate memory")
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS)


@dataclass(frozen=True)
class Ending:
    """How the process of a run ended: ``code`` as :class:`subprocess.Popen` has it, ``cause`` the limit it met."""

    code: int
    cause: str | None = None
    peak_mb: float = 0.0
    kernel_killed: bool = False
    seconds: float = 0.0
    stderr: str = ""

    def in_words(self, task: Mapping[str, Any]) -> tuple[Termination, str]:
        """The termination and message for a run that left no record."""
        last = f": {self.stderr.splitlines()[-1]}" if self.stderr else ""
        used = f"it held {self.peak_mb:,.0f} MB"
        match self.cause:
            case "time":
                limit = task["options"]["time_limit_s"]
                return "time_limit", f"killed {task['grace_s']:g} s after the time limit of {limit:g} s"
            case "memory":
                return "out_of_memory", f"stopped over the memory limit of {task['memory_mb']:,.0f} MB: {used}"
            case "low_memory":
                return "out_of_memory", f"stopped because the machine's memory was almost used up: {used}"
            case "keeper":
                return "killed", f"the process that watched over the run ended, and the run with it{last}"
        if self.kernel_killed:
            return "out_of_memory", f"killed by the kernel for want of memory: {used}"
        ended = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        message = f"the run's process ended with {ended} after {self.seconds:.1f} s{last}"
        if self.code and any(word in self.stderr[-2000:].lower() for word in _MEMORY_WORDS):
            return "out_of_memory", message
        return ("killed" if self.code < 0 and -self.code not in _CRASHES else "error"), message


class Supervisor:
    """Up to ``jobs`` tasks at a time. Use as a context manager: leaving it ends whatever is still running."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._keepers: list[_Keeping] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        for keeper in self._keepers:
            keeper.dismiss()
        for keeper in self._keepers:
            keeper.wait()
        self._selector.close()

    @property
    def has_room(self) -> bool:
        """Whether another task may start now."""
        return self.running < self._jobs

    @property
    def running(self) -> int:
        """How many tasks are going on."""
        return sum(keeper.task is not None for keeper in self._keepers)

    def start(self, key: int, task: Mapping[str, Any]) -> None:
        """Start a task; its end comes out of :meth:`ends` under this key. There must be room."""
        keeper = next((k for k in self._keepers if k.task is None), None)
        while keeper is None or not keeper.take(key, task):
            if keeper is not None:
                self._drop(keeper)
            keeper = _Keeping()
            self._keepers.append(keeper)
            self._selector.register(keeper.control, selectors.EVENT_READ, keeper)

    def ends(self) -> Iterator[tuple[int, Mapping[str, Any], Ending]]:
        """Wait for at least one running task to end and yield ``(key, task, ending)`` of each that has."""
        found = False
        while self.running and not found:
            ready = [entry.data for entry, _ in self._selector.select(1.0)]
            ready += [k for k in self._keepers if k.is_stuck() and k not in ready]
            for keeper in ready:
                if keeper.task is None:  # an idle keeper has nothing to say: it died
                    self._drop(keeper)
                    continue
                ended = keeper.receive()
                if ended is None:
                    continue
                key, task, ending = ended
                if ending.cause == "keeper":
                    self._drop(keeper)
                found = True
                yield key, task, ending

    def _drop(self, keeper: _Keeping) -> None:
        self._selector.unregister(keeper.control)
        self._keepers.remove(keeper)
        keeper.dismiss()
        keeper.wait()


class _Keeping:
    """One keeper process and the task it has."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed in wait)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "synth.keeper"], stdin=theirs.fileno(), stdout=subprocess.DEVNULL,
            stderr=self._errors, start_new_session=True, env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")},
        )  # fmt: skip
        theirs.close()
        self._received = b""
        self._key = 0
        self._run_pid: int | None = None
        self._latest: float | None = None
        self.task: Mapping[str, Any] | None = None

    def take(self, key: int, task: Mapping[str, Any]) -> bool:
        """Hand over a task; False if the keeper is gone."""
        try:
            self.control.sendall(json.dumps(task).encode() + b"\n")
        except OSError:
            return False
        self._key, self.task, self._run_pid = key, task, None
        limit = task["options"]["time_limit_s"]
        self._latest = None if limit is None else time.monotonic() + limit + task["grace_s"] + STUCK_S
        return True

    def is_stuck(self) -> bool:
        """Whether the run should long have ended."""
        return self.task is not None and self._latest is not None and time.monotonic() > self._latest

    def receive(self) -> tuple[int, Mapping[str, Any], Ending] | None:
        """What the keeper has to say: the end of its task, or None if there is none yet."""
        if self.is_stuck():
            self._process.kill()
        try:
            data = self.control.recv(1 << 16)
        except OSError:
            data = b""
        self._received += data
        while b"\n" in self._received:
            line, _, self._received = self._received.partition(b"\n")
            message = json.loads(line)
            if "pid" in message:
                self._run_pid = message["pid"]
            else:
                return self._finish(Ending(**message))
        if data:
            return None
        if self._run_pid is not None:  # the keeper died: Linux has killed the run with it; elsewhere, and its children:
            with suppress(OSError):
                os.killpg(self._run_pid, signal.SIGKILL)
        return self._finish(Ending(-signal.SIGKILL, "keeper", stderr=tail(self._errors.fileno())))

    def _finish(self, ending: Ending) -> tuple[int, Mapping[str, Any], Ending]:
        task, self.task = self.task, None
        assert task is not None
        return self._key, task, ending

    def dismiss(self) -> None:
        """Close the line: the keeper ends its run and goes."""
        self.control.close()

    def wait(self) -> None:
        """Wait until it is gone; kill it if it does not go."""
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
