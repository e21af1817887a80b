"""What orders a plan's thread blocks: channels, semaphores, barriers, and clocks that say who knows what to be over.

A clock has an entry for the start of every GPU (1 once it is known to run), for every thread block (the segments,
between meetings of its threads, that are over) and for every port channel that one puts over (the puts that have
arrived). Every thread block has four: for data and for mere order, each as of the last meeting of its threads, which
its accesses go by, and with what has been waited for since. A clock is never changed once it is made: who comes to know
more has a new one, so that a signal hands on the one that its giver has.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from synth.arrays import Int32Array
from synth.errors import UnsupportedError
from synth.exchange.mscclpp.plan import GIVES, TAKES, ExecutionPlan, Op

Report = Callable[[str, str], None]  # place, message
MOST_CLOCKS = 2**27  # numbers in all clocks
End = tuple[int, str, int]  # of a channel: gpu, type, number


class Given(NamedTuple):
    """A signal, or the release of a semaphore: what is known to whoever takes it (``data`` None where it is relaxed),
    and its step."""

    data: Int32Array | None
    order: Int32Array
    step: int


@dataclass(slots=True)
class Block:
    """A thread block on its way: next operation, segments between meetings of its threads, and its clocks: as of the
    last meeting, and with what has been waited for since; each for data and for mere order. ``step`` numbers its
    operations so that each comes after all that it waits for, as early as it can."""

    rank: int
    number: int
    entry: int
    data: Int32Array
    order: Int32Array
    data_waited: Int32Array
    order_waited: Int32Array
    next: int = 0
    segment: int = 1
    step: int = 0
    puts: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))  # channel -> segments of its puts

    def waited_for(self, order: Int32Array, data: Int32Array | None = None) -> None:
        """What is known from now on (to accesses from the next meeting on)."""
        self.order_waited = np.maximum(self.order_waited, order)
        if data is not None:
            self.data_waited = np.maximum(self.data_waited, data)

    def ends_segment(self) -> None:
        """Its threads meet."""
        self.data = self.data_waited = _with(self.data_waited, self.entry, self.segment)
        self.order = self.order_waited = _with(self.order_waited, self.entry, self.segment)
        self.segment += 1


def _with(clock: Int32Array, entry: int, value: int) -> Int32Array:
    """The clock with another value of an entry."""
    found = clock.copy()
    found[entry] = value
    return found


class Syncs:
    """The thread blocks of a plan and what has been signalled, released and met so far."""

    def __init__(self, plan: ExecutionPlan, fault: Report) -> None:
        self.plan, self.fault = plan, fault
        self._clocks()
        self._channels()

    def place(self, block: Block) -> str:
        """Where a thread block is."""
        return self.plan.place(block.rank, block.number, block.next)

    def ops(self, block: Block) -> Sequence[Op]:
        """The operations of a thread block."""
        return self.plan.gpus[block.rank].blocks[block.number]

    def _clocks(self) -> None:
        """Entries of a clock: a start for every GPU, a thread block each, a port channel used by one each."""
        gpus = self.plan.gpus
        entry = len(gpus)
        entries: list[tuple[int, int, int]] = []
        self.port_entry: dict[tuple[int, int, int], int] = {}
        for rank, gpu in enumerate(gpus):
            for number, ops in enumerate(gpu.blocks):
                entries.append((rank, number, entry))
                entry += 1
                for op in ops if gpu.peers["port"] else ():
                    for channel in op.channels if op.channel_type == "port" else ():
                        if (rank, number, channel) not in self.port_entry:
                            self.port_entry[rank, number, channel] = entry
                            entry += 1
        if entry * (len(entries) + 1) > MOST_CLOCKS:
            raise UnsupportedError(f"{len(entries):,} thread blocks are more than can be replayed")
        self.width = entry
        self.blocks = []
        for rank, number, at in entries:
            clock = np.zeros(entry, dtype=np.int32)
            clock[rank] = 1
            self.blocks.append(Block(rank, number, at, clock, clock, clock, clock))
        self.by_entry = {block.entry: block for block in self.blocks}

    def _channels(self) -> None:
        """The other end of every channel, by its number among those of the pair and type; who uses which end."""
        gpus = self.plan.gpus
        ends: dict[tuple[int, int, str], list[int]] = defaultdict(list)
        for rank, gpu in enumerate(gpus):
            for kind in ("memory", "port"):
                for channel, peer in enumerate(gpu.peers[kind]):
                    ends[rank, peer, kind].append(channel)
        self.other: dict[End, End] = {}
        for (rank, peer, kind), mine in ends.items():
            for a, b in zip(mine, ends.get((peer, rank, kind), []), strict=False):
                self.other[rank, kind, a] = (peer, kind, b)
        self.given: dict[End, deque[Given]] = defaultdict(deque)  # that nobody has taken yet
        self.arrived: dict[tuple[int, int], list[int]] = defaultdict(list)  # gpu, barrier -> blocks that are there
        self.released: dict[tuple[int, int], deque[Given]] = defaultdict(deque)
        self.free = {(rank, k): n for rank, gpu in enumerate(gpus) for k, n in enumerate(gpu.semaphores)}
        self._shared()

    def _shared(self) -> None:
        """Ends of channels and semaphores that several thread blocks use; barriers that others count."""
        users: dict[tuple[str, int, str, int], set[int]] = defaultdict(set)
        meeting: dict[tuple[int, int], set[int]] = defaultdict(set)
        for block in self.blocks:
            for op in self.ops(block):
                way = "gives" if op.name in GIVES else "takes" if op.name in TAKES else ""
                for channel in op.channels if way else ():
                    users[way, block.rank, op.channel_type, channel].add(block.number)
                for semaphore in op.semaphores:
                    users[op.name, block.rank, "semaphore", semaphore].add(block.number)
                if op.name == "barrier":
                    meeting[block.rank, op.barrier].add(block.number)
        self._miscounted(meeting)
        for (what, rank, kind, channel), blocks in users.items():
            if len(blocks) > 1:
                which = f"thread blocks {', '.join(map(str, sorted(blocks)))}"
                verb = {"gives": "signal over", "takes": "wait for"}.get(what, what + " of")
                thing = kind if kind == "semaphore" else f"{kind} channel"
                self.fault(f"gpu {rank}", f"{which} all {verb} {thing} {channel}: which is served is open")

    def _miscounted(self, meeting: Mapping[tuple[int, int], set[int]]) -> None:
        """Barriers that count other than the thread blocks that have them (by rank and barrier)."""
        for block in self.blocks if meeting else ():
            for k, op in enumerate(self.ops(block)):
                if op.name == "barrier" and op.parties != (met := len(meeting[block.rank, op.barrier])):
                    text = f"barrier {op.barrier} counts {op.parties} thread blocks, {met} have it"
                    self.fault(self.plan.place(block.rank, block.number, k), text)

    def ready(self, block: Block, op: Op) -> bool:
        """Whether a wait, an acquire or a barrier goes on now; a block is noted at the barrier that it is at."""
        if op.name in TAKES:
            for channel in op.channels:
                if not self._served((block.rank, op.channel_type, channel)):
                    return False
        elif op.name == "sem_acquire":
            for semaphore in op.semaphores:
                key = (block.rank, semaphore)
                if not self.free[key] and not self.released[key]:
                    return False
        elif op.name == "barrier":
            there = self.arrived[block.rank, op.barrier]
            if block.entry not in there:
                there.append(block.entry)
            return len(there) >= op.parties
        return True

    def meet(self, rank: int, op: Op) -> None:
        """All thread blocks of a barrier are there: they know of each other, and go on."""
        there = [self.by_entry[entry] for entry in self.arrived[rank, op.barrier]]
        for block in there:
            block.ends_segment()
        data = np.maximum.reduce([block.data for block in there])
        order = np.maximum.reduce([block.order for block in there])
        step = 1 + max(block.step for block in there)
        for block in there:
            block.step = step
            block.data = block.data_waited = data
            block.order = block.order_waited = order
            block.next += 1
        self.arrived[rank, op.barrier] = []

    def do(self, block: Block, op: Op) -> None:
        """An operation that is all about order."""
        if op.name == "nop":
            block.ends_segment()
        elif op.name in ("signal", "rlxsignal"):
            for channel in op.channels:
                self.give(block, op, channel)
        elif op.name in TAKES:
            for channel in op.channels:
                self.take(block, op, channel)
        elif op.name == "flush":
            for channel in op.channels:
                self.landed(block, channel)
        elif op.name == "sem_release":
            for semaphore in op.semaphores:
                self.released[block.rank, semaphore].append(Given(block.data_waited, block.order_waited, block.step))
        elif op.name == "sem_acquire":
            for semaphore in op.semaphores:
                self._acquire(block, semaphore)

    def landed(self, block: Block, channel: int, now: bool = False) -> None:
        """The block knows that what it has put over a port channel before the last meeting of its threads (or even
        since) has arrived."""
        block.data_waited, block.order_waited = self._with_landed(block, channel, now)

    def _with_landed(self, block: Block, channel: int, now: bool) -> tuple[Int32Array, Int32Array]:
        """What a block has waited for, of data and of order, and that its puts over a port channel have arrived."""
        data, order = block.data_waited, block.order_waited
        entry = self.port_entry.get((block.rank, block.number, channel))
        if entry is None:
            return data, order
        puts = block.puts[channel]
        count = len(puts) if now else bisect_left(puts, block.segment)
        return _with(data, entry, max(int(data[entry]), count)), _with(order, entry, max(int(order[entry]), count))

    def give(self, block: Block, op: Op, channel: int, landed: bool = False) -> None:
        """One signal; what it publishes is what the block knows, and whether its put has ``landed``."""
        data, order = block.data_waited, block.order_waited
        if op.channel_type == "port":
            data, order = self._with_landed(block, channel, landed)
        end = (block.rank, op.channel_type, channel)
        if end not in self.other:
            peer = self.plan.gpus[block.rank].peers[op.channel_type][channel]
            self.fault(
                self.place(block),
                f"gpu {peer} has no channel that belongs to {op.channel_type} channel {channel}",
            )
        self.given[end].append(Given(None if op.name == "rlxsignal" else data, order, block.step))

    def take(self, block: Block, op: Op, channel: int) -> None:
        """One wait that is served."""
        end = (block.rank, op.channel_type, channel)
        given = self.given[self.other[end]].popleft()
        block.step = max(block.step, given.step + 1)
        block.waited_for(given.order, given.data if op.name == "wait" else None)

    def _acquire(self, block: Block, semaphore: int) -> None:
        key = (block.rank, semaphore)
        if self.free[key]:
            self.free[key] -= 1
            return
        given = self.released[key].popleft()
        block.step = max(block.step, given.step + 1)
        block.waited_for(given.order, given.data)

    def stuck(self) -> None:
        """What every thread block that does not end waits for."""
        for block in self.blocks:
            ops = self.ops(block)
            if block.next >= len(ops):
                continue
            op = ops[block.next]
            if op.name in TAKES:
                peers = self.plan.gpus[block.rank].peers[op.channel_type]
                idle = [c for c in op.channels if not self._served((block.rank, op.channel_type, c))]
                what = ", ".join(f"gpu {peers[c]} over {op.channel_type} channel {c}" for c in idle)
                text = f"waits for ever for a signal from {what}"
            elif op.name == "barrier":
                there = len(self.arrived[block.rank, op.barrier])
                text = f"waits for ever at barrier {op.barrier}: {there} of {op.parties} thread blocks come"
            elif op.name == "sem_acquire":
                text = "waits for ever for a semaphore"
            else:
                text = "waits for ever for packets that nobody writes"
            self.fault(self.place(block), text)

    def _served(self, end: End) -> bool:
        return end in self.other and bool(self.given[self.other[end]])

    def surplus(self) -> None:
        """Signals that nobody waits for would be taken by the next run."""
        for end, signals in self.given.items():
            rank, kind, channel = end
            if end in self.other and signals:
                peer = self.other[end][0]
                text = f"{len(signals)} signals over {kind} channel {channel} that gpu {peer} does not wait for"
                self.fault(f"gpu {rank}", text + ": the next run would take them")

    def relaxed(self, writer: tuple[int, int, int], rank: int) -> str:
        """Which relaxed signal or wait leaves the write of an operation (gpu, thread block, number) unpublished to a
        GPU that knows of its order; in words, empty where none of the writer's own signals to it is relaxed."""
        source, number, at = writer
        given: dict[End, int] = defaultdict(int)
        for k, op in enumerate(self.plan.gpus[source].blocks[number]):
            for channel in op.channels if op.name in GIVES else ():
                end = (source, op.channel_type, channel)
                given[end] += 1
                if k <= at or end not in self.other or self.other[end][0] != rank:
                    continue
                wait = self._taking(self.other[end], given[end])
                if op.name == "rlxsignal":
                    also = f", and wait at {wait}" if wait else ""
                    return f"rlxsignal at {op.at or f'op {k}'} does not order the store; use signal{also}"
                if wait:
                    return f"rlxwait at {wait} does not order the store; use wait"
        return ""

    def _taking(self, end: End, count: int) -> str:
        """The place of the so-manieth wait of a channel's end where that is a relaxed one, else empty."""
        rank, kind, channel = end
        found = [
            (op, self.plan.place(rank, block.number, k))
            for block in self.blocks
            if block.rank == rank
            for k, op in enumerate(self.ops(block))
            if op.name in TAKES and op.channel_type == kind and channel in op.channels
        ]
        return found[count - 1][1] if count <= len(found) and found[count - 1][0].name == "rlxwait" else ""

    def at_end(self, rank: int) -> tuple[Int32Array, Int32Array]:
        """What a GPU knows, of data and of mere order, when its kernel ends."""
        mine = [block for block in self.blocks if block.rank == rank]
        nothing = np.zeros(self.width, dtype=np.int32)
        data = np.maximum.reduce([nothing, *(block.data_waited for block in mine)])
        order = np.maximum.reduce([nothing, *(block.order_waited for block in mine)])
        for block in mine:
            data[block.entry] = order[block.entry] = np.iinfo(np.int32).max
        return data, order
