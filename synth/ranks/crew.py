"""Ranks on this machine: jobs for a launcher, a process of its own that lives as long as its crew is open."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from types import TracebackType
from typing import Any

from synth.errors import InputError
from synth.ranks.launcher import Job
from synth.ranks.outcome import Outcome
from synth.ranks.program import WORD, Program

SHARE = 0.8  # of the memory that is free, which the ranks may take
MOST_RANKS = 1024


def demand_room(program: Program) -> None:
    """Raises :class:`InputError` where the ranks are too many, or their memory does not fit into this machine's."""
    import psutil

    if program.ranks > MOST_RANKS:
        raise InputError(f"{program.ranks:,} ranks are more processes than one machine is given here: {MOST_RANKS:,}")
    needed, free = int(program.words.sum()) * WORD, psutil.virtual_memory().available
    if needed > SHARE * free:
        from synth.text.quantities import shown

        raise InputError(
            f"the buffers of {program.ranks} ranks take {shown(needed, 'bytes')}, of {shown(free, 'bytes')} that are "
            f"free: name fewer bytes with --bytes"
        )


class Crew:
    """A launcher and its ranks; ends with all its processes when it is closed, or when this process ends."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", "-m", "synth.ranks.launcher", str(os.getpid())]
        paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "OPENBLAS_NUM_THREADS": "1"}
        self._launcher = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, env={**os.environ, **paths}
        )

    def run(self, job: Job) -> Outcome:
        """Run a job to its end. Raises :class:`InputError` where the system refuses the memory or the processes, and
        where the launcher itself has been ended."""
        demand_room(job.program)
        assert self._launcher.stdin is not None
        assert self._launcher.stdout is not None
        try:
            pickle.dump(job, self._launcher.stdin)
            self._launcher.stdin.flush()
            found: Any = pickle.load(self._launcher.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = self._launcher.wait()
            words = f"the process that started the ranks was ended (exit code {code}), and they with it"
            raise InputError(words) from None
        if isinstance(found, Exception):
            raise InputError(f"the ranks could not be started: {found}")
        assert isinstance(found, Outcome)
        return found

    def close(self) -> None:
        """End the launcher and its ranks."""
        self._launcher.kill()
        self._launcher.wait()
        for stream in (self._launcher.stdin, self._launcher.stdout):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
