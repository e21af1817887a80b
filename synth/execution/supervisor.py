"""The supervisor's side of many runs at once: one guard process for each run that may go on at a time.

There are no threads here: the guards (see :mod:`synth.execution.guard`) enforce the limits, this side hands out tasks
and waits for the ends. A guard is forked from the command, whose imports it needs, where that has asked for it
(:data:`synth.execution.may_fork`), has one thread and is small; else it is a new interpreter.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe
from typing import IO, Any

from synth import execution
from synth.execution import guard as guards
from synth.execution.child import peak_memory_mb, tail
from synth.execution.guard import GUARD_VARIABLES, PAUSE_S
from synth.execution.messages import Ending, Task

STUCK_S = 30.0  # beyond a run's last moment until its guard is taken to be stuck
IMPORT_S = 60.0  # for a guard's imports before a run; after that, a new guard starts the run without them
FORKED_MB = 200.0  # a process that has held more is not forked: its memory would count as each run's


class Supervisor:
    """Up to ``jobs`` tasks at a time. Use as a context manager: leaving it ends whatever is still running."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._guards: list[_Guarding] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        for guard in self._guards:
            guard.dismiss()
        for guard in self._guards:
            guard.wait()
        self._selector.close()

    @property
    def has_room(self) -> bool:
        """Whether another task may start now."""
        return self.running < self._jobs

    @property
    def running(self) -> int:
        """How many tasks are going on."""
        return sum(guard.task is not None for guard in self._guards)

    def start(self, key: int, task: Task) -> None:
        """Start a task; its end comes out of :meth:`ends` under this key. There must be room."""
        guard = next((k for k in self._guards if k.task is None), None)
        while guard is None or not guard.take(key, task):
            if guard is not None:
                self._drop(guard)
            guard = _Guarding()
            self._guards.append(guard)
            self._selector.register(guard.control, selectors.EVENT_READ, guard)

    def ends(self) -> Iterator[tuple[int, Task, Ending]]:
        """Wait for at least one running task to end and yield ``(key, task, ending)`` of each that has."""
        found = False
        while self.running and not found:
            before = time.monotonic()
            ready = [entry.data for entry, _ in self._selector.select(1.0)]
            for guard in self._guards:
                guard.allow_for_pause(time.monotonic() - before - 1.0)
            ready += [k for k in self._guards if k.is_stuck() and k not in ready]
            for guard in ready:
                if guard.task is None:  # an idle guard has nothing to say: it died
                    self._drop(guard)
                    continue
                ended = guard.receive()
                if ended is None:
                    continue
                key, task, ending = ended
                if ending.cause == "guard":
                    self._drop(guard)
                    if task.modules is not None and not guard.run_started:
                        self.start(key, replace(task, modules=None))
                        continue
                found = True
                yield key, task, ending

    def _drop(self, guard: _Guarding) -> None:
        self._selector.unregister(guard.control)
        self._guards.remove(guard)
        guard.dismiss()
        guard.wait()


def start_guard(line: Connection[Any, Any], errors: IO[bytes]) -> subprocess.Popen[bytes] | _Forked:
    """Start a guard, forked or in a new interpreter: its end of the socket, and the file that keeps its standard
    error."""
    if _can_fork():
        return _Forked(line.fileno(), errors.fileno())
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "synth.execution.guard"],
        stdin=line.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,
        env={**os.environ, **GUARD_VARIABLES},
    )


def _can_fork() -> bool:
    """Whether the next guard is forked from this process."""
    if not execution.may_fork or sys.platform != "linux" or guards.threads() != 1:
        return False
    peak = peak_memory_mb()
    return peak is not None and peak <= FORKED_MB


class _Forked:
    """A guard forked from this process, with what :class:`subprocess.Popen` has of it."""

    def __init__(self, control: int, errors: int) -> None:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        self._pid = os.fork()
        if self._pid == 0:
            guards.become(control, errors)
        self._ended = False

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        if not self._ended:
            os.kill(self._pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> None:
        """Wait for its end. Raises :class:`subprocess.TimeoutExpired`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._ended:
            pid, _ = os.waitpid(self._pid, 0 if deadline is None else os.WNOHANG)
            self._ended = pid == self._pid
            if deadline is not None and not self._ended:
                if time.monotonic() > deadline:
                    raise subprocess.TimeoutExpired("guard", timeout or 0.0)
                time.sleep(0.002)


class _Guarding:
    """One guard process and the task it has."""

    def __init__(self) -> None:
        self.control, theirs = Pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed in wait)
        self._process = start_guard(theirs, self._errors)
        theirs.close()
        self._key = 0
        self._run_pid: int | None = None
        self._latest: float | None = None
        self.task: Task | None = None

    def take(self, key: int, task: Task) -> bool:
        """Hand over a task; False if the guard is gone."""
        try:
            self.control.send(task)
        except OSError:
            return False
        self._key, self.task, self._run_pid = key, task, None
        self._latest = self._last_moment() if task.modules is None else time.monotonic() + IMPORT_S
        return True

    def _last_moment(self) -> float | None:
        """When a run that starts now will have ended, at the latest."""
        assert self.task is not None
        limit = self.task.options.time_limit_s
        return None if limit is None else time.monotonic() + limit + self.task.grace_s + STUCK_S

    @property
    def run_started(self) -> bool:
        """Whether the guard has started the process of its latest task."""
        return self._run_pid is not None

    def allow_for_pause(self, seconds: float) -> None:
        """As the guard does itself: what was stopped is not stuck."""
        if seconds > PAUSE_S and self._latest is not None:
            self._latest += seconds

    def is_stuck(self) -> bool:
        """Whether the run should long have ended."""
        return self.task is not None and self._latest is not None and time.monotonic() > self._latest

    def receive(self) -> tuple[int, Task, Ending] | None:
        """What the guard has to say: the end of its task, or None if there is none yet."""
        if self.is_stuck():
            self._process.kill()
        with suppress(EOFError, OSError):
            message = self.control.recv()
            if isinstance(message, Ending):
                return self._finish(message)
            self._run_pid = message.pid
            self._latest = self._last_moment()
            return None
        if self._run_pid is not None:  # the guard died: Linux has killed the run with it; elsewhere, and its children:
            with suppress(OSError):
                os.killpg(self._run_pid, signal.SIGKILL)
        return self._finish(Ending(-signal.SIGKILL, "guard", stderr=tail(self._errors.fileno())))

    def _finish(self, ending: Ending) -> tuple[int, Task, Ending]:
        task, self.task = self.task, None
        assert task is not None
        return self._key, task, ending

    def dismiss(self) -> None:
        """Close the line: the guard ends its run and goes."""
        self.control.close()

    def wait(self) -> None:
        """Wait until it is gone; kill it if it does not go."""
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
