"""The process that starts the ranks, each forked from it, and stays with them to their end.

It reads jobs from its standard input and answers each with its outcome. A rank dies with it, and it with the command.
Ranks that all wait while none goes on for as long as the job allows are stuck: each says for what it waits. When a rank
dies, the others are ended.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import resource
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.connection import Pipe as pipe_of_objects
from typing import Any, NoReturn

import numpy as np

from synth.arrays import IntArray
from synth.ranks.data import Data
from synth.ranks.outcome import Died, Outcome
from synth.ranks.program import WORD, Program
from synth.ranks.rank import Memory, Rank, StuckError
from synth.ranks.shared_memory import GO, PREPARE, SAY, Pipe, SharedMemory

LOOK_S = 0.1
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Job:
    """A program to be run ``repeat`` times on data of this ``seed`` (floats if ``real``). ``patience_s``: when no
    rank has gone on for so long, all count as stuck."""

    program: Program
    seed: int = 0
    real: bool = False
    repeat: int = 1
    patience_s: float = 10.0


def tie_to(parent: int) -> None:
    """This process dies with its parent (Linux)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def main() -> None:
    """Jobs until standard input ends."""
    tie_to(int(sys.argv[1]))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(EOFError):
        while True:
            job = pickle.load(sys.stdin.buffer)
            try:
                found: Any = Launch(job).outcome()
            except (MemoryError, OSError) as error:
                found = error
            pickle.dump(found, answers)
            answers.flush()


class Launch:
    """One job: the memory, the pipes, the ranks' processes."""

    def __init__(self, job: Job) -> None:
        self.job, self.program = job, job.program
        self.data = Data(job.seed, self.program.ranks, job.real, self.program.goals)
        self.memories = [self._mapped(int(words)) for words in self.program.words]
        self.marks: IntArray = np.frombuffer(mmap.mmap(-1, self.program.ranks * 2 * WORD), dtype=np.int64)
        self.marks = self.marks.reshape(-1, 2)
        self._know_sums()
        self.pipes: list[Pipe] = []
        self.processes: dict[int, int] = {}
        self.connections: list[Connection[Any, Any]] = []

    def _mapped(self, words: int) -> Memory:
        return np.frombuffer(mmap.mmap(-1, max(1, words) * WORD), dtype=self.data.dtype)[:words]

    def _know_sums(self) -> None:
        """The sums that ranks must end with, once for all of them."""
        ends = self.program.ends
        parts = np.unique(ends.part[self.program.goals.origin[ends.part] < 0])
        size = np.zeros(len(self.program.goals.origin), dtype=np.int64)
        np.maximum.at(size, ends.part, ends.first + ends.count)
        for part in parts.tolist():
            self.data.know_total(part, int(size[part]))

    def outcome(self) -> Outcome:
        """Run the job. All processes have ended and all descriptors are closed when it returns."""
        outcome = Outcome()
        try:
            self.pipes = [Pipe.new() for _ in range(self.program.ranks)]
            for rank in range(self.program.ranks):
                self._start(rank)
            for _ in range(self.job.repeat):
                self._tell(PREPARE)
                if not (self._all_say("ready", outcome) and self._repetition(outcome)):
                    break
        finally:
            self._end()
        return outcome

    def _repetition(self, outcome: Outcome) -> bool:
        self._tell(GO)
        found = self._all_say("done", outcome)
        if not found:
            return False
        outcome.seconds.append(max(done["end"] for done in found) - min(done["start"] for done in found))
        outcome.received = np.stack([done["received"] for done in found], axis=1)
        if not outcome.wrong:
            outcome.wrong = [one for done in found for one in done["wrong"]]
            outcome.wrong_regions = sum(done["regions"] for done in found)
        return True

    def _tell(self, word: int) -> None:
        for pipe in self.pipes:
            os.write(pipe.write, word.to_bytes(8, "little", signed=True))

    def _start(self, rank: int) -> None:
        ours, theirs = pipe_of_objects(duplex=False)
        launcher = os.getpid()
        process = os.fork()
        if not process:
            self._be(rank, theirs, launcher)
        theirs.close()
        self.processes[rank] = process
        self.connections.append(ours)

    def _be(self, number: int, launcher_end: Connection[Any, Any], launcher: int) -> NoReturn:
        """In the rank's process."""
        try:
            tie_to(launcher)
            rank = Rank(self.program, number, self.memories[number], self.data)
            port = SharedMemory(self.program, number, self.memories, self.pipes, self.marks)
            for _ in range(self.job.repeat):
                port.until_told(PREPARE)
                rank.prepare()
                launcher_end.send(("ready", None))
                port.until_told(GO)
                start = time.monotonic()
                rank.run(port)
                end = time.monotonic()
                wrong, regions = rank.wrong()
                done = {"start": start, "end": end, "received": port.received, "wrong": wrong, "regions": regions}
                launcher_end.send(("done", done))
        except StuckError as stuck:
            launcher_end.send(("stuck", stuck.blocked))
        except BaseException:
            with suppress(OSError):
                launcher_end.send(("died", traceback.format_exc().splitlines()[-1]))
        finally:
            os._exit(0)

    def _all_say(self, word: str, outcome: Outcome) -> list[Any]:
        """What all ranks say with this word, in their order; nothing where one has died or all are stuck, which the
        outcome then says."""
        said: dict[int, Any] = {}
        since, seen, asked = time.monotonic(), -1, False
        while len(said) < len(self.connections):
            waiting = [rank for rank in range(len(self.connections)) if rank not in said]
            there = wait([self.connections[rank] for rank in waiting], LOOK_S)
            for rank in (rank for rank in waiting if self.connections[rank] in there):
                said[rank] = self._heard(rank, word, outcome)
                if outcome.died is not None:
                    return []
            progress = int(self.marks[:, 0].sum()) + len(said)
            if progress != seen or any(not self.marks[rank, 1] for rank in waiting if rank not in said):
                since, seen = time.monotonic(), progress
            elif not asked and time.monotonic() - since > self.job.patience_s:
                asked = True
                self._tell(SAY)
        return [] if outcome.blocked else [said[rank] for rank in range(len(self.connections))]

    def _heard(self, rank: int, word: str, outcome: Outcome) -> Any:
        """What a rank says with this word; that it is stuck or has died is for the outcome."""
        try:
            what, rest = self.connections[rank].recv()
        except (EOFError, OSError):
            what, rest = "died", self._how(rank)
        if what == "died":
            outcome.died = Died(rank, str(rest))
        elif what == "stuck":
            outcome.blocked += rest
        else:
            assert what == word, f"rank {rank} says {what}, not {word}"
        return rest

    def _how(self, rank: int) -> str:
        """How a rank's process ended."""
        _, status = os.waitpid(self.processes.pop(rank), 0)
        if os.WIFSIGNALED(status):
            return f"was killed by signal {os.WTERMSIG(status)} ({signal.Signals(os.WTERMSIG(status)).name})"
        return f"ended with exit code {os.WEXITSTATUS(status)}"

    def _end(self) -> None:
        for process in self.processes.values():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for process in self.processes.values():
            with suppress(ChildProcessError):
                os.waitpid(process, 0)
        for connection in self.connections:
            connection.close()
        for pipe in self.pipes:
            for end in pipe:
                os.close(end)


if __name__ == "__main__":
    main()
