"""From a plan of MSCCL++ to the ranks' programs: a stream a thread block, in the plan's own buffers.

In place, input and output of a rank are one range of its memory. A put is a message, and so is a signal, of no words;
the receiver takes what was put where it waits for the signal behind it, not earlier: whether it could land too early is
for the check (:mod:`synth.exchange.mscclpp.replay`). Loops go round :data:`PASSES` times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from synth.errors import InputError, UnsupportedError
from synth.exchange.mscclpp.goals import Goal
from synth.exchange.mscclpp.loops import unrolled
from synth.exchange.mscclpp.plan import GIVES, TAKES, ExecutionPlan, Op, Span
from synth.exchange.mscclpp.syncs import End, Syncs
from synth.ranks.from_algorithm import MOST_WORDS, Parts, regions
from synth.ranks.goals import goals_of
from synth.ranks.program import (
    ADD,
    COPY,
    NOTHING,
    RECEIVE,
    SEND,
    Messages,
    Program,
    places_among_equals,
)
from synth.schedule.collective import ROOTED

PASSES = 2  # of loops
DONE = ("put", "pwsf", "copy", "re", "signal", "wait", "rlxsignal", "rlxwait", "nop", "barrier", "flush")


@dataclass(frozen=True)
class PlanNames:
    """What operations of a plan are called; ``at``: GPU, thread block and number there, of every operation and of every
    message."""

    plan: ExecutionPlan
    operations: list[tuple[int, int, int]]
    messages: list[tuple[int, int, int]]

    def message(self, number: int) -> str:
        """A message by the operation that sends it."""
        return f"the message of {self.plan.place(*self.messages[number])}"

    def operation(self, number: int) -> str:
        """The operation of the plan that one of a stream belongs to."""
        return self.plan.place(*self.operations[number]) if number >= 0 else ""

    def region(self, piece: int, part: int) -> str:
        """A chunk of an output."""
        return f"chunk {piece} of part {part} in its output o"


def program_of(
    plan: ExecutionPlan, collective: str | None = None, root: int | None = None, words: int = 1
) -> tuple[Program, PlanNames]:
    """The ranks' programs with ``words`` words a unit of a plan that has passed its check. Raises
    :class:`UnsupportedError` for operations over switches, packets, semaphores and reads of other ranks' memory, and
    :class:`InputError` where there are too many words."""
    plan = unrolled(plan, PASSES)
    for gpu in plan.gpus:
        for op in (op for block in gpu.blocks for op in block):
            if op.name not in DONE or op.semaphores or any(span.packets for span in (*op.src, *op.dst)):
                raise UnsupportedError(f"{op.name} is not run in the plan's buffers")
    return _Making(plan, Goal.of(plan, collective, root), words).made()


@dataclass
class _Making:
    plan: ExecutionPlan
    goal: Goal
    words: int
    rows: list[list[int]] = field(default_factory=list)  # kind, at, source, count (in units), message, after
    at: list[tuple[int, int, int]] = field(default_factory=list)  # of every row
    sent: list[tuple[int, int, int, int]] = field(default_factory=list)  # of every message: src, dst, units, slot
    sent_at: list[tuple[int, int, int]] = field(default_factory=list)

    def made(self) -> tuple[Program, PlanNames]:
        plan, goal, ranks = self.plan, self.goal, len(self.plan.gpus)
        self.syncs = Syncs(plan, lambda place, message: None)
        sizes = [[gpu.chunks[b] * plan.units for b in "ios"] for gpu in plan.gpus]
        self.base = np.array([[0, i, i + o] for i, o, _ in sizes], dtype=np.int64)
        self.size = np.array([sum(row) for row in sizes], dtype=np.int64)
        self.signals: dict[End, list[list[tuple[int, Span | None]]]] = defaultdict(list)
        self.taken: dict[End, int] = defaultdict(int)
        self.mine: dict[tuple[int, int], list[int]] = defaultdict(list)  # messages by thread block
        self.arrived: dict[tuple[int, int, int], list[int]] = defaultdict(list)  # rows, by rank, barrier and occasion
        for rank, gpu in enumerate(plan.gpus):
            for number, ops in enumerate(gpu.blocks):
                self._sends(rank, number, ops)
        streams, starts = [], [0]
        for rank, gpu in enumerate(plan.gpus):
            for number, ops in enumerate(gpu.blocks):
                self._stream(rank, number, ops)
                streams.append(rank)
                starts.append(len(self.rows))
        self._barriers()
        kind, place, source, count, message, after = np.array(self.rows, dtype=np.int64).reshape(-1, 6).T.copy()
        src, dst, units, slot = np.array(self.sent, dtype=np.int64).reshape(-1, 4).T.copy()
        total = self.size * self.words
        if int(total.sum()) > MOST_WORDS:
            raise InputError(f"{int(total.sum()):,} words are too many to be run")
        root = goal.root if goal.collective in ROOTED else None
        goals, part = goals_of(goal.collective, ranks, root), Parts(goal.collective, ranks, goal.each, goal.wants)
        begin = np.array([[self._place(Span(r, b, 0, 1)) for b in "io"] for r in range(ranks)], dtype=np.int64)
        program = Program(
            name=plan.name, collective=goal.collective, ranks=ranks, goals=goals, words=total,
            stream_rank=np.array(streams, dtype=np.int64), stream_start=np.array(starts, dtype=np.int64), kind=kind,
            at=place * self.words, source=source * self.words, count=count * self.words, message=message, after=after,
            wait_start=np.zeros(len(kind) + 1, dtype=np.int64), wait=np.zeros(0, dtype=np.int64),
            messages=Messages(src, dst, units * self.words, slot * self.words, np.ones(len(src), dtype=bool),
                              np.arange(len(src)), places_among_equals(src, dst)),
            begins=regions(part, begin, self.words, goals, ends=False),
            ends=regions(part, begin, self.words, goals, ends=True),
        )  # fmt: skip
        return program, PlanNames(plan, self.at, self.sent_at)

    def _place(self, span: Span) -> int:
        """The first unit of a span in its rank's memory."""
        one = self.goal.one_place(span)
        return int(self.base[one.rank, "ios".index(one.buffer)]) + one.start

    def _own(self, rank: int, units: int) -> int:
        """A place of so many units that nothing else uses."""
        self.size[rank] += units
        return int(self.size[rank]) - units

    def _sends(self, rank: int, number: int, ops: Sequence[Op]) -> None:
        """The messages of a thread block, and which of them each of its signals says to be there."""
        since: dict[int, list[tuple[int, Span | None]]] = defaultdict(list)  # by peer
        for k, op in enumerate(ops):
            at = rank, number, k
            for turn, (s, d) in enumerate(zip(op.src, op.dst, strict=False)) if op.name in ("put", "pwsf") else ():
                since[d.rank].append((self._message(at, d.rank, s.size), d))
                if op.name == "pwsf":
                    self._signal(at, op.channel_type, op.channels[turn], since)
            for channel in op.channels if op.name in ("signal", "rlxsignal") else ():
                self._signal(at, op.channel_type, channel, since)
        if any(since.values()):
            raise UnsupportedError("what another thread block says to be there is not run in the plan's buffers")

    def _message(self, at: tuple[int, int, int], to: int, units: int) -> int:
        self.sent.append((at[0], to, units, self._own(at[0], units)))
        self.sent_at.append(at)
        self.mine[at[:2]].append(len(self.sent) - 1)
        return len(self.sent) - 1

    def _signal(
        self, at: tuple[int, int, int], kind: str, channel: int, since: dict[int, list[tuple[int, Span | None]]]
    ) -> None:
        peer = self.plan.gpus[at[0]].peers[kind][channel]
        said = self._message(at, peer, 0)
        self.signals[at[0], kind, channel].append([*since.pop(peer, []), (said, None)])

    def _row(self, at: tuple[int, int, int], kind: int, place: int = 0, source: int = 0, units: int = 0,
             message: int = -1) -> None:  # fmt: skip
        self.rows.append([kind, place, source, units, message, -1])
        self.at.append(at)

    def _stream(self, rank: int, number: int, ops: Sequence[Op]) -> None:
        """The operations of a thread block; its messages come in the order in which :meth:`_sends` has made them."""
        mine = iter(self.mine[rank, number])
        met: dict[int, int] = defaultdict(int)
        for k, op in enumerate(ops):
            at = rank, number, k
            if op.name in ("put", "pwsf"):
                for s in op.src:
                    self._row(at, SEND, self._place(s), 0, s.size, next(mine))
                    if op.name == "pwsf":
                        self._row(at, SEND, message=next(mine))
            elif op.name in GIVES:
                for _ in op.channels:
                    self._row(at, SEND, message=next(mine))
            elif op.name in TAKES:
                for channel in op.channels:
                    self._take(at, self.syncs.other[rank, op.channel_type, channel])
            elif op.name == "copy":
                self._row(at, COPY, self._place(op.dst[0]), self._place(op.src[0]), op.src[0].size)
            elif op.name == "re":
                self._add(at, op)
            elif op.name == "barrier":
                self.arrived[rank, op.barrier, met[op.barrier]].append(len(self.rows))
                met[op.barrier] += 1
                for _ in range(op.parties):
                    self._row(at, NOTHING)
            else:
                self._row(at, NOTHING)

    def _take(self, at: tuple[int, int, int], end: End) -> None:
        """A wait: the next signal of the channel's other end, and what was put before it."""
        for message, span in self.signals[end][self.taken[end]]:
            if span is None:
                self._row(at, RECEIVE, message=message)
            else:
                self._row(at, RECEIVE, self._place(span), 0, span.size, message)
        self.taken[end] += 1

    def _add(self, at: tuple[int, int, int], op: Op) -> None:
        """The sum of all sources, in a place of its own until it is whole."""
        size, whole = op.src[0].size, self._own(at[0], op.src[0].size)
        self._row(at, COPY, whole, self._place(op.src[0]), size)
        for s in op.src[1:]:
            self._row(at, ADD, whole, self._place(s), size)
        self._row(at, COPY, self._place(op.dst[0]), whole, size)

    def _barriers(self) -> None:
        """The rows of a barrier: the first says that its thread block is there, each of the others waits for another's
        first."""
        for there in self.arrived.values():
            for first in there:
                for turn, other in enumerate([one for one in there if one != first]):
                    self.rows[first + 1 + turn][5] = other
