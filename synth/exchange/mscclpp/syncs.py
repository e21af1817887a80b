"""What orders a plan's thread blocks: channels, semaphores, barriers, and clocks that say who knows what to be over.

A clock has an entry for the start of every GPU (1 once it is known to run), for every thread block (the segments,
between meetings of its threads, that are over) and for every port channel that one puts over (the puts that have
arrived). Every thread block has four: for data and for mere order, each as of the last meeting of its threads, which
its accesses go by, and with what has been waited for since.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from synth.arrays import Int32Array
from synth.errors import UnsupportedError
from synth.exchange.mscclpp.plan import Op, Plan

Report = Callable[[str, str], None]  # place, message
MOST_CLOCKS = 2**27  # numbers in all clocks
End = tuple[int, str, int]  # of a channel: gpu, type, number


class Given(NamedTuple):
    """A signal, or the release of a semaphore: what is known to whoever takes it (``data`` None where it is relaxed),
    and its step."""

    data: Int32Array | None
    order: Int32Array
    step: int


@dataclass
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
        np.maximum(self.order_waited, order, out=self.order_waited)
        if data is not None:
            np.maximum(self.data_waited, data, out=self.data_waited)


class Syncs:
    """The thread blocks of a plan and what has been signalled, released and met so far."""

    def __init__(self, plan: Plan, fault: Report) -> None:
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
                for op in ops:
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
            self.blocks.append(Block(rank, number, at, clock, clock.copy(), clock.copy(), clock.copy()))
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
                gives = op.name in ("signal", "rlxsignal", "pws", "pwsf")
                if gives or op.name in ("wait", "rlxwait"):
                    for channel in op.channels:
                        users["gives" if gives else "takes", block.rank, op.channel_type, channel].add(block.number)
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
        for block in self.blocks:
            for k, op in enumerate(self.ops(block)):
                met = len(meeting[block.rank, op.barrier]) if op.name == "barrier" else 0
                if op.name == "barrier" and op.parties != met:
                    text = f"barrier {op.barrier} counts {op.parties} thread blocks, {met} have it"
                    self.fault(self.plan.place(block.rank, block.number, k), text)

    def ready(self, block: Block, op: Op) -> bool:
        """Whether a wait, an acquire or a barrier goes on now; a block is noted at the barrier that it is at."""
        if op.name in ("wait", "rlxwait"):
            for channel in op.channels:
                end = (block.rank, op.channel_type, channel)
                if not self._served(end):
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
            self.join(block)
        data = np.maximum.reduce([block.data for block in there])
        order = np.maximum.reduce([block.order for block in there])
        step = 1 + max(block.step for block in there)
        for block in there:
            block.step = step
            for clock, joint in ((block.data, data), (block.order, order)):
                np.maximum(clock, joint, out=clock)
            block.data_waited, block.order_waited = block.data.copy(), block.order.copy()
            block.next += 1
        self.arrived[rank, op.barrier] = []

    def join(self, block: Block) -> None:
        """The threads of a block meet."""
        for clock in (block.data_waited, block.order_waited):
            clock[block.entry] = block.segment
        block.segment += 1
        block.data, block.order = block.data_waited.copy(), block.order_waited.copy()

    def do(self, block: Block, op: Op) -> bool:
        """An operation that is all about order; whether it was one."""
        if op.name == "nop":
            self.join(block)
        elif op.name in ("signal", "rlxsignal"):
            for channel in op.channels:
                self.give(block, op, channel)
        elif op.name in ("wait", "rlxwait"):
            for channel in op.channels:
                self.take(block, op, channel)
        elif op.name == "flush":
            for channel in op.channels:
                self.landed(block, channel, block.data_waited, block.order_waited)
        elif op.name == "sem_release":
            for semaphore in op.semaphores:
                known = block.data_waited.copy(), block.order_waited.copy()
                self.released[block.rank, semaphore].append(Given(*known, block.step))
        elif op.name == "sem_acquire":
            for semaphore in op.semaphores:
                self._acquire(block, semaphore)
        else:
            return False
        return True

    def landed(self, block: Block, channel: int, data: Int32Array, order: Int32Array, now: bool = False) -> None:
        """What the block has put over a port channel before the last meeting of its threads (or even since)."""
        entry = self.port_entry.get((block.rank, block.number, channel))
        if entry is not None:
            known = [n for n, segment in enumerate(block.puts[channel], 1) if now or segment < block.segment]
            for clock in (data, order):
                clock[entry] = max(int(clock[entry]), len(known))

    def give(self, block: Block, op: Op, channel: int, landed: bool = False) -> None:
        """One signal; what it publishes is what the block knows, and whether its put has ``landed``."""
        data, order = block.data_waited.copy(), block.order_waited.copy()
        if op.channel_type == "port":
            self.landed(block, channel, data, order, now=landed)
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
            if op.name in ("wait", "rlxwait"):
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

    def at_end(self, rank: int) -> tuple[Int32Array, Int32Array]:
        """What a GPU knows, of data and of mere order, when its kernel ends."""
        mine = [block for block in self.blocks if block.rank == rank]
        nothing = np.zeros(self.width, dtype=np.int32)
        data = np.maximum.reduce([nothing, *(block.data_waited for block in mine)])
        order = np.maximum.reduce([nothing, *(block.order_waited for block in mine)])
        for block in mine:
            data[block.entry] = order[block.entry] = np.iinfo(np.int32).max
        return data, order
