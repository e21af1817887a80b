"""Messages by MPI: the ranks are the processes that mpirun or srun has started, on one machine or several.

The first process reads the file and tells the others. A rank that dies is MPI's to notice, which then ends the others;
a rank that has waited for so long that it counts as stuck says for what, and ends them all.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.errors import InputError
from synth.ranks.data import Data
from synth.ranks.outcome import Blocked, Outcome, Wrong
from synth.ranks.program import WORD, Program
from synth.ranks.rank import Memory, Port, Rank, StuckError
from synth.ranks.words import blocked_in_words
from synth.text.visible import visible

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

    from synth.ranks.source import Task

TAGS = 2**15  # the least that every MPI has
LAST_WORDS_S = 1.0  # for the other ranks that are stuck to say so too
MISSING = "--with mpi needs mpi4py and an MPI: pip install 'collective-synth[mpi]', apt install openmpi-bin"


class MpiPort(Port):
    """A rank's port over a communicator of all ranks. After ``patience_s`` without anything done it is stuck."""

    def __init__(self, program: Program, comm: Comm, patience_s: float) -> None:
        messages = program.messages
        self.comm, self.patience_s, self.since = comm, patience_s, time.monotonic()
        self.src, self.dst = messages.src, messages.dst
        self.count, self.tag = messages.count, messages.order % TAGS
        self.sent: dict[int, Any] = {}
        self.coming: dict[int, tuple[Any, Memory]] = {}
        self.received = np.zeros(program.ranks, dtype=np.int64)

    def send(self, message: int, words: Memory) -> None:
        to, tag = int(self.dst[message]), int(self.tag[message])
        self.sent[message] = self.comm.Isend(words.view(np.uint64), to, tag)
        self.since = time.monotonic()

    def left(self, message: int) -> bool:
        request = self.sent.get(message)
        if request is not None and request.Test():
            del self.sent[message]
        return message not in self.sent

    def arrived(self, message: int, into: Memory, adds: bool) -> bool:
        if message not in self.coming:
            words = np.empty(len(into), dtype=into.dtype) if adds else into
            source, tag = int(self.src[message]), int(self.tag[message])
            self.coming[message] = self.comm.Irecv(words.view(np.uint64), source, tag), words
        return bool(self.coming[message][0].Test())

    def take(self, message: int, into: Memory, adds: bool) -> None:
        _, words = self.coming.pop(message)
        if adds:
            into += words
        self.received[self.src[message]] += len(words) * WORD
        self.since = time.monotonic()

    def pause(self) -> None:
        if time.monotonic() - self.since > self.patience_s:
            raise StuckError
        os.sched_yield()

    def all_left(self) -> None:
        """Wait until all messages have left. Raises :class:`StuckError`."""
        self.since = time.monotonic()
        while waiting := [message for message in list(self.sent) if not self.left(message)]:
            try:
                self.pause()
            except StuckError:
                raise StuckError([Blocked(self.comm.Get_rank(), -1, "read", waiting[0])]) from None


def run(read: Callable[[], Task], options: Any) -> tuple[Task, Outcome] | None:
    """Run what the first process reads; ``options``: ``seed``, ``real``, ``repeat``, ``patience_s``. Returns at the
    first process only. Raises :class:`InputError` there, for what ``read`` raises too, and where MPI is missing or
    has started fewer processes than ranks; SystemExit at the others then."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        raise InputError(MISSING) from None
    world = MPI.COMM_WORLD
    first = world.Get_rank() == 0
    task: Any = None
    refused: InputError | None = None
    if first:
        try:
            task = read()
            _demand_processes(task.program, world.Get_size())
        except InputError as error:
            refused, task = error, None
    task = world.bcast(task)
    if refused is not None:
        raise refused
    if task is None:
        sys.exit(0)
    ranks = world.Split(0 if world.Get_rank() < task.program.ranks else MPI.UNDEFINED, world.Get_rank())
    if ranks == MPI.COMM_NULL:
        return None
    try:
        outcome = _run_rank(task, ranks, options)
    except Exception as error:
        words = visible(f"rank {ranks.Get_rank()} ended with {type(error).__name__}: {error}")
        print(words, file=sys.stderr, flush=True)
        world.Abort(1)
    return (task, outcome) if first else None


def _demand_processes(program: Program, size: int) -> None:
    if size < program.ranks:
        there = f"{size} process{'es' if size > 1 else ''} of MPI, the schedule has {program.ranks} ranks"
        raise InputError(f"{there}: mpirun -n {program.ranks} synth run …, or srun -n {program.ranks} synth run …")


def _run_rank(task: Task, comm: Comm, options: Any) -> Outcome:
    program, number = task.program, comm.Get_rank()
    data, outcome = Data(options.seed, program.ranks, options.real, program.goals), Outcome()
    memory = np.empty(int(program.words[number]), dtype=data.dtype)
    rank = Rank(program, number, memory, data)
    for _ in range(options.repeat):
        rank.prepare()
        port = MpiPort(program, comm, options.patience_s)
        comm.Barrier()
        start = time.perf_counter()
        try:
            rank.run(port)
            port.all_left()
        except StuckError as stuck:
            for blocked in stuck.blocked:
                print(visible(blocked_in_words(program, blocked, task.names)), file=sys.stderr, flush=True)
            time.sleep(LAST_WORDS_S)
            comm.Abort(1)
        seconds = time.perf_counter() - start
        wrong, regions = rank.wrong()
        _gather(comm, outcome, seconds, port, (wrong, regions))
    outcome.library_s = [_library(comm, program, options.real) for _ in range(options.repeat)] if _has(program) else []
    return outcome


def _gather(comm: Comm, outcome: Outcome, seconds: float, port: MpiPort, wrong: tuple[list[Wrong], int]) -> None:
    """Put one repetition of all ranks into the first one's outcome; its time is the longest of any rank."""
    found = comm.gather((seconds, port.received, *wrong))
    if found is None:
        return
    outcome.seconds.append(max(one[0] for one in found))
    outcome.received = np.stack([one[1] for one in found], axis=1)
    if not outcome.wrong:
        outcome.wrong = [one for _, _, told, _ in found for one in told]
        outcome.wrong_regions = sum(regions for *_, regions in found)


def _has(program: Program) -> bool:
    """Whether MPI has the collective, on parts of one size."""
    return program.collective != "demand"


def _library(comm: Comm, program: Program, real: bool) -> float:
    """Seconds of the MPI library's own collective on buffers of the same size: the longest of any rank."""
    part = int((program.ends.first + program.ends.count).max(initial=1))
    kind: Any = np.float64 if real else np.uint64
    one, all_parts = np.ones(part, dtype=kind), np.ones(part * program.ranks, dtype=kind)
    result, all_results = np.empty_like(one), np.empty_like(all_parts)
    root = max(0, int(program.goals.origin[0])) if program.collective in ("broadcast", "scatter") else 0
    if program.collective in ("gather", "reduce"):
        root = int(program.goals.goal[0])
    calls: dict[str, Callable[[], object]] = {
        "allgather": lambda: comm.Allgather(one, all_results),
        "reduce_scatter": lambda: comm.Reduce_scatter_block(all_parts, result),
        "allreduce": lambda: comm.Allreduce(one, result),
        "alltoall": lambda: comm.Alltoall(all_parts, all_results),
        "broadcast": lambda: comm.Bcast(one, root),
        "reduce": lambda: comm.Reduce(one, result, root=root),
        "gather": lambda: comm.Gather(one, all_results, root),
        "scatter": lambda: comm.Scatter(all_parts, result, root),
    }
    comm.Barrier()
    start = time.perf_counter()
    calls[program.collective]()
    found: list[float] = comm.allgather(time.perf_counter() - start)
    return max(found)
