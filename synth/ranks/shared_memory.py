"""Messages between processes of one machine: their memory is one mapping, so that a receiver reads at the sender's.

A word through the receiver's pipe says that a message is there, one through the sender's that it has been read: what
comes through a pipe was written after all that it speaks of. The mapping has no name and no file; it ends with the
processes.
"""

from __future__ import annotations

import os
import select
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.ranks.program import WORD, Program
from synth.ranks.rank import Memory, StuckError

PREPARE, GO, SAY = -1, -2, -3  # what the launcher tells ranks: to fill their memory, to start, to say why they wait
MOST_READ = 2**16  # bytes
LOOK_MS = 1000


class Pipe(NamedTuple):
    """Both ends of a rank's pipe, descriptors that never block."""

    read: int
    write: int

    @classmethod
    def new(cls) -> Pipe:
        """A pipe."""
        return cls(*os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC))


class SharedMemory:
    """A rank's port. ``memories``: of all ranks; ``marks``: shared, shape (ranks, 2): how often a rank has gone on, and
    whether it waits."""

    def __init__(
        self, program: Program, rank: int, memories: Sequence[Memory], pipes: Sequence[Pipe], marks: IntArray
    ) -> None:
        messages = program.messages
        self.rank, self.memories, self.marks = rank, memories, marks[rank]
        self.inbox, self.outboxes = pipes[rank].read, [pipe.write for pipe in pipes]
        self.src, self.dst = messages.src, messages.dst
        self.slot, self.count = messages.slot, messages.count
        self.tell_read = np.zeros(len(messages.src), dtype=bool)
        self.tell_read[program.wait] = True
        self.came: set[int] = set()
        self.read: set[int] = set()
        self.received = np.zeros(program.ranks, dtype=np.int64)
        self.told: set[int] = set()
        self.news = False
        self.poll = select.poll()
        self.poll.register(self.inbox, select.POLLIN)

    def send(self, message: int, words: Memory) -> None:
        self._tell(int(self.dst[message]), 2 * message)

    def left(self, message: int) -> bool:
        if message not in self.read:
            self._look()
        return message in self.read

    def arrived(self, message: int, into: Memory, adds: bool) -> bool:
        if message not in self.came:
            self._look()
        return message in self.came

    def take(self, message: int, into: Memory, adds: bool) -> None:
        src, slot = int(self.src[message]), int(self.slot[message])
        words = self.memories[src][slot : slot + int(self.count[message])]
        if adds:
            into += words
        else:
            into[:] = words
        self.received[src] += len(words) * WORD
        self.came.discard(message)
        if self.tell_read[message]:
            self._tell(src, 2 * message + 1)

    def pause(self) -> None:
        if not self.news:  # else it came after what it concerns had been looked at
            self.marks[1] = 1
            self.poll.poll(LOOK_MS)
            self._look()
            if SAY in self.told:
                raise StuckError
            self.marks[1] = 0
        self.marks[0] += self.news
        self.news = False

    def until_told(self, word: int) -> None:
        """Wait for a word of the launcher; with ``PREPARE`` all of the last repetition is forgotten."""
        while word not in self.told:
            self.poll.poll(LOOK_MS)
            self._look()
        self.told.discard(word)
        if word == PREPARE:
            self.received[:] = 0
            self.read.clear()
            self.came.clear()

    def _look(self) -> None:
        """Read what has come through the pipe."""
        try:
            words = os.read(self.inbox, MOST_READ)
        except BlockingIOError:
            return
        self.news = True
        for word in np.frombuffer(words, dtype=np.int64).tolist():
            if word < 0:
                self.told.add(word)
            elif word % 2:
                self.read.add(word // 2)
            else:
                self.came.add(word // 2)

    def _tell(self, rank: int, word: int) -> None:
        """Write into another rank's pipe; while it is full, read the own."""
        told = word.to_bytes(8, "little", signed=True)
        while True:
            try:
                os.write(self.outboxes[rank], told)
                return
            except BlockingIOError:
                self._look()
                full = select.poll()
                full.register(self.outboxes[rank], select.POLLOUT)
                full.register(self.inbox, select.POLLIN)
                full.poll(LOOK_MS)
