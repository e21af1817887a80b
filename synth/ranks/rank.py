"""One rank: its streams of operations, done as soon as what they wait for is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from synth.ranks.data import UNWRITTEN, Data
from synth.ranks.outcome import MOST_WRONG, Blocked, Wrong
from synth.ranks.program import ADD, COPY, NOTHING, RECEIVE, RECEIVE_ADD, SEND, Program

Memory = npt.NDArray[Any]


class Port(Protocol):
    """How a rank reaches the others. A message is named by its number in the program."""

    def send(self, message: int, words: Memory) -> None:
        """Send ``words``, which stay as they are until the message has :meth:`left`. Returns at once."""

    def left(self, message: int) -> bool:
        """Whether the words of a message may be written over."""

    def arrived(self, message: int, into: Memory, adds: bool) -> bool:
        """Whether a message is there. ``into`` is free for it from now on, unless what arrives ``adds`` to it."""

    def take(self, message: int, into: Memory, adds: bool) -> None:
        """Store a message that has arrived, or add it."""

    def pause(self) -> None:
        """Wait until something may have changed. May raise :class:`StuckError`."""


class StuckError(Exception):
    """Ranks wait for each other. ``blocked``: what keeps each stream of this one."""

    def __init__(self, blocked: Sequence[Blocked] = ()) -> None:
        super().__init__()
        self.blocked = list(blocked)


class Rank:
    """The rank's part of a program over its ``memory`` (words, of the data's type)."""

    def __init__(self, program: Program, number: int, memory: Memory, data: Data) -> None:
        self.number, self.memory, self.data, self.program = number, memory, data, program
        mine = np.flatnonzero(program.stream_rank == number)
        low = int(program.stream_start[mine[0]]) if len(mine) else 0
        high = int(program.stream_start[mine[-1] + 1]) if len(mine) else 0
        self.first = low
        rows = slice(low, high)
        self.operations = list(
            zip(
                *(
                    column[rows].tolist()
                    for column in (program.kind, program.at, program.source, program.count, program.message)
                ),
                (program.after[rows] - np.where(program.after[rows] >= 0, low, 0)).tolist(),
                strict=True,
            )
        )
        self.waits = {
            int(i): program.wait[program.wait_start[low + i] : program.wait_start[low + i + 1]].tolist()
            for i in np.flatnonzero(np.diff(program.wait_start[low : high + 1]))
        }
        self.streams = [(int(program.stream_start[s]) - low, int(program.stream_start[s + 1]) - low) for s in mine]
        messages = program.messages
        own = np.flatnonzero(messages.src == number)
        copied = np.where(messages.copied, messages.slot, -1)[own].tolist()
        self.copied = {m: slot for m, slot in zip(own.tolist(), copied, strict=True) if slot >= 0}
        self.begins = program.begins.of_rank(number).joined()
        self.ends = program.ends.of_rank(number)
        self.end_base = int(np.searchsorted(program.ends.rank, number))

    def prepare(self) -> None:
        """The memory as it is before a run: the rank's own data, and nothing else."""
        self.memory.view(np.uint64)[:] = UNWRITTEN
        _, at, count, part, first, _ = (column.tolist() for column in self.begins.columns())
        for a, n, p, f in zip(at, count, part, first, strict=True):
            self.data.fill(self.memory[a : a + n], p, self.data.owner(p, self.number), f)

    def run(self, port: Port) -> None:
        """Do all operations. Raises :class:`StuckError` from a pause."""
        done = bytearray(len(self.operations))
        active = [[begin, end] for begin, end in self.streams if begin < end]
        while active:
            went = False
            for stream in active:
                while stream[0] < stream[1] and self._done(stream[0], port, done):
                    done[stream[0]] = 1
                    stream[0] += 1
                    went = True
            if went:
                active = [stream for stream in active if stream[0] < stream[1]]
            else:
                try:
                    port.pause()
                except StuckError:
                    raise StuckError([self.blocked(stream[0], port, done) for stream in active]) from None

    def blocked(self, i: int, port: Port, done: bytearray) -> Blocked:
        """What an operation that is not done waits for."""
        kind, _, _, _, message, after = self.operations[i]
        if after >= 0 and not done[after]:
            return Blocked(self.number, self.first + i, "step", self.first + after)
        for other in self.waits.get(i, ()):
            if not port.left(other):
                return Blocked(self.number, self.first + i, "read", other)
        assert kind in (RECEIVE, RECEIVE_ADD)
        return Blocked(self.number, self.first + i, "message", message)

    def _done(self, i: int, port: Port, done: bytearray) -> bool:
        """Do an operation if nothing keeps it waiting."""
        kind, at, source, count, message, after = self.operations[i]
        if after >= 0 and not done[after]:
            return False
        if i in self.waits and not all(map(port.left, self.waits[i])):
            return False
        memory = self.memory
        here = memory[at : at + count]
        if kind == SEND:
            slot = self.copied.get(message)
            if slot is not None:
                here, there = memory[slot : slot + count], here
                here[:] = there
            port.send(message, here)
        elif kind in (RECEIVE, RECEIVE_ADD):
            if message < 0 or not port.arrived(message, here, kind == RECEIVE_ADD):
                return False
            port.take(message, here, kind == RECEIVE_ADD)
        elif kind == COPY:
            here[:] = memory[source : source + count].copy()
        elif kind == ADD:
            here += memory[source : source + count]
        else:
            assert kind == NOTHING
        return True

    def wrong(self) -> tuple[list[Wrong], int]:
        """What the memory holds in the end that it must not: the first few regions, and how many there are."""
        found: dict[int, list[int]] = {}
        origin = self.program.goals.origin
        _, at, count, part, first, _ = (column.tolist() for column in self.ends.joined().columns())
        for a, n, p, f in zip(at, count, part, first, strict=True):
            bad = self.data.differs(self.memory[a : a + n], p, int(origin[p]), f) + a
            rows = np.searchsorted(self.ends.at, bad, "right") - 1
            for row, where, many in zip(*np.unique(rows, return_index=True, return_counts=True), strict=True):
                found[int(row)] = [int(many), int(bad[where])]
        bits = self.memory.view(np.uint64)
        told = [
            Wrong(self.number, self.end_base + row, many, place - int(self.ends.at[row]), int(bits[place]))
            for row, (many, place) in sorted(found.items())[:MOST_WRONG]
        ]
        return told, len(found)
