"""The check of MSCCL++ plans: a replay of all thread blocks of all GPUs, with clocks that tell what is ordered.

* A thread block runs its operations in order, but its threads meet only at ``nop`` and ``barrier``: of two operations
  that touch the same chunk, one writing, one of these must stand between them, as between data and a ``signal``.
* The k-th ``wait`` of a channel goes on after the k-th ``signal`` of its other end (the k-th channel of a type from A
  to B and the k-th from B to A belong together). Relaxed signals order what comes after them, but publish no writes.
* What a port channel puts has arrived for whoever waits for a later signal of the same channel.
* Packets carry their flag: who reads them waits for them, chunk by chunk; what they were made of is read then.
* A kernel may begin before, and end after, its peers': another GPU's buffers are touched only after a signal from it,
  and what touches them is waited for by their owner (packets into scratch need no permission: it is used in turns).

An access is right where a clock says that what it must follow is over: then it is over in every run, as what a thread
block waits for never depends on timing. One replay therefore finds every race, deadlock and uninitialised read.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.errors import Fault, UnsupportedError
from synth.exchange.mscclpp import Op, Plan, Span

Clock = npt.NDArray[np.int32]
# a value: the chunk it is of (rank and unit; for sums the unit alone) and the ranks whose contributions are in it
Value = tuple[int, int]
Made = tuple[frozenset[tuple[str, int]], tuple[Clock, ...]]

COLLECTIVES = {  # their names for them: ours
    "allgather": "allgather",
    "allreduce": "allreduce",
    "reducescatter": "reduce_scatter",
    "alltoall": "alltoall",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
}
SUMS = ("allreduce", "reduce_scatter", "reduce")
FEW = 20
MOST_UNITS = 2**24
EVER = 2**30


@dataclass
class Cell:
    """One unit of a buffer: its value, who wrote it (clock entry, stamp, place), who has read it since; the transfer
    that brought it. Of packets: the reads that its value was made of, and what their writer knew to be over."""

    value: Value | None = None
    writer: tuple[int, int, str] | None = None
    readers: list[tuple[int, int, str]] = field(default_factory=list)
    came_by: int = -1
    made_of: frozenset[tuple[str, int]] = frozenset()
    known: tuple[Clock, ...] = ()


@dataclass
class Block:
    """A thread block on its way: next operation, segments between meetings of its threads, and its clocks: as of the
    last meeting, and with what has been waited for since; each for data and for mere order."""

    rank: int
    number: int
    entry: int
    data: Clock
    order: Clock
    data_waited: Clock
    order_waited: Clock
    next: int = 0
    segment: int = 1
    puts: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))  # channel -> segments of its puts


def faults(plan: Plan, collective: str | None = None, root: int | None = None) -> list[Fault]:
    """All that is wrong with a plan, at most :data:`FEW` places of a kind.

    ``collective``: one of ours, where the plan's own name is not to be trusted; ``root``: of a rooted one. Raises
    :class:`UnsupportedError` for a plan that cannot be replayed: operations over a switch, pipelines, a collective
    that is not known.
    """
    return Replay(plan, collective, root).run()


class Replay:
    """One replay. ``moves``: what went from GPU to GPU (from, to, values), in the order of the replay; ``began`` and
    ``used``: the operation, counted through, that moved it and the one that first added it up or copied it, or the
    next one; ``adding``: the moves that were added up."""

    def __init__(self, plan: Plan, collective: str | None = None, root: int | None = None) -> None:
        if plan.unsupported:
            raise UnsupportedError("; ".join(plan.unsupported))
        found = collective or COLLECTIVES.get(plan.collective)
        if found not in COLLECTIVES.values():
            known = ", ".join(COLLECTIVES)
            raise UnsupportedError(
                f"collective {plan.collective[:40]!r} is none of {known}: say which it is meant to be"
            )
        self.plan, self.collective, self.root = plan, found, root or 0
        self.found: list[Fault] = []
        self.kinds: dict[str, int] = defaultdict(int)
        self.moves: list[tuple[int, int, tuple[Value | None, ...]]] = []
        self.began: list[int] = []
        self.used: dict[int, int] = {}
        self.adding: set[int] = set()
        self.done = 0
        self._clocks()
        self._channels()
        self.memory: dict[tuple[int, str], list[Cell]] = {}

    def fault(self, place: str, kind: str, message: str) -> None:
        self.kinds[kind] += 1
        if self.kinds[kind] <= FEW:
            self.found.append(Fault(place, message))

    # ------------------------------------------------------------------------------------------------------ beginning

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
        if entry * (len(entries) + 1) > 2**27:
            raise UnsupportedError(f"{len(entries):,} thread blocks are more than can be replayed")
        self.width = entry
        self.blocks = []
        for rank, number, at in entries:
            clock = np.zeros(entry, dtype=np.int32)
            clock[rank] = 1
            self.blocks.append(Block(rank, number, at, clock, clock.copy(), clock.copy(), clock.copy()))

    def _channels(self) -> None:
        """The other end of every channel, by its number among those of the pair and type; who uses which end."""
        gpus = self.plan.gpus
        ends: dict[tuple[int, int, str], list[int]] = defaultdict(list)
        for rank, gpu in enumerate(gpus):
            for kind in ("memory", "port"):
                for channel, peer in enumerate(gpu.peers[kind]):
                    ends[rank, peer, kind].append(channel)
        self.other: dict[tuple[int, str, int], tuple[int, str, int]] = {}
        for (rank, peer, kind), mine in ends.items():
            for a, b in zip(mine, ends.get((peer, rank, kind), []), strict=False):
                self.other[rank, kind, a] = (peer, kind, b)
        users: dict[tuple[str, int, str, int], set[int]] = defaultdict(set)
        for block in self.blocks:
            for op in self.plan.gpus[block.rank].blocks[block.number]:
                gives = op.name in ("signal", "rlxsignal", "pws", "pwsf")
                if gives or op.name in ("wait", "rlxwait"):
                    for channel in op.channels:
                        users["gives" if gives else "takes", block.rank, op.channel_type, channel].add(block.number)
                for semaphore in op.semaphores:
                    users[op.name, block.rank, "semaphore", semaphore].add(block.number)
        for (what, rank, kind, channel), blocks in users.items():
            if len(blocks) > 1:
                which = f"thread blocks {', '.join(map(str, sorted(blocks)))}"
                verb = {"gives": "signal over", "takes": "wait for"}.get(what, what + " of")
                thing = kind if kind == "semaphore" else f"{kind} channel"
                self.fault(f"gpu {rank}", "shared", f"{which} all {verb} {thing} {channel}: which is served is open")
        self.given: dict[tuple[int, str, int], list[tuple[Clock | None, Clock]]] = defaultdict(list)
        self.taken: dict[tuple[int, str, int], int] = defaultdict(int)
        self.arrived: dict[tuple[int, int], list[int]] = defaultdict(list)  # gpu, barrier -> blocks that are there
        self.released: dict[tuple[int, int], list[tuple[Clock, Clock]]] = defaultdict(list)
        self.acquired: dict[tuple[int, int], int] = defaultdict(int)

    def _sizes(self) -> bool:
        """Whether the buffers are of the collective's sizes, and allocates them."""
        gpus, u, ranks = self.plan.gpus, self.plan.units, len(self.plan.gpus)
        if sum(c for gpu in gpus for c in gpu.chunks.values()) * u > MOST_UNITS:
            raise UnsupportedError(f"more than {MOST_UNITS:,} chunks are more than can be replayed")
        wide_in = self.collective in ("reduce_scatter", "alltoall", "scatter")
        wide_out = self.collective in ("allgather", "alltoall", "gather")
        each = gpus[0].chunks["i"] // (ranks if wide_in else 1) if self.collective != "allreduce" else 0
        right = {"i": each * (ranks if wide_in else 1), "o": each * (ranks if wide_out else 1)}
        if self.collective == "allreduce":
            right = {"i": gpus[0].chunks["i"], "o": gpus[0].chunks["i"]}
        self.each = (each if self.collective != "allreduce" else right["i"]) * u
        for rank, gpu in enumerate(gpus):
            if {"i": gpu.chunks["i"], "o": gpu.chunks["o"]} != right or not self.each:
                self.fault(
                    f"gpu {rank}",
                    "sizes",
                    f"{gpu.chunks['i']} input and {gpu.chunks['o']} output chunks are not those of {self.collective} "
                    f"(gpu 0 has {gpus[0].chunks['i']} input chunks)",
                )
            for buffer, chunks in gpu.chunks.items():
                self.memory[rank, buffer] = [Cell() for _ in range(chunks * u)]
        if self.root >= ranks:
            self.fault("root", "sizes", f"{self.root} is none of {ranks} ranks")
        return not self.found

    def _fill(self) -> None:
        """The ranks' own data."""
        u = self.plan.units
        for rank, gpu in enumerate(self.plan.gpus):
            if self.collective in ("broadcast", "scatter") and rank != self.root:
                continue
            for k in range(gpu.chunks["i"] * u):
                item = k if self.collective in SUMS else rank * gpu.chunks["i"] * u + k
                for cell in self._cells(Span(rank, "i", k, 1)):
                    cell.value = (item, 1 << rank if self.collective in SUMS else 1)

    def _cells(self, s: Span) -> list[Cell]:
        """The cells of a span; in place, input and output are one buffer."""
        buffer, start = s.buffer, s.start
        if self.plan.in_place and buffer != "s":
            if self.collective in ("allgather", "gather"):
                start += s.rank * self.each if buffer == "i" else 0
                buffer = "o"
            elif self.collective in ("reduce_scatter", "scatter"):
                start += s.rank * self.each if buffer == "o" else 0
                buffer = "i"
            else:
                buffer = "o"
        return self.memory[s.rank, buffer][start : start + s.size]

    # -------------------------------------------------------------------------------------------------------- running

    def run(self) -> list[Fault]:
        if not self._sizes():
            return self.found
        self._fill()
        moving = True
        while moving:
            moving = False
            for block in self.blocks:
                ops = self.plan.gpus[block.rank].blocks[block.number]
                while block.next < len(ops) and self._ready(block, ops[block.next]):
                    op = ops[block.next]
                    if op.name == "barrier":
                        self._meet(block.rank, op)
                    else:
                        self._do(block, op)
                        block.next += 1
                    moving = True
        if any(block.next < len(self.plan.gpus[block.rank].blocks[block.number]) for block in self.blocks):
            self._stuck()
        else:
            self._surplus()
            self._ended()
            self._finished()
        return self.found

    def _place(self, block: Block) -> str:
        return self.plan.place(block.rank, block.number, block.next)

    def _ready(self, block: Block, op: Op) -> bool:
        if op.name in ("wait", "rlxwait"):
            for channel in op.channels:
                end = (block.rank, op.channel_type, channel)
                if end not in self.other or len(self.given[self.other[end]]) <= self.taken[end]:
                    return False
        elif op.name == "sem_acquire":
            for semaphore in op.semaphores:
                key = (block.rank, semaphore)
                first = self.plan.gpus[block.rank].semaphores[semaphore]
                if first + len(self.released[key]) <= self.acquired[key]:
                    return False
        elif op.name == "barrier":
            there = self.arrived[block.rank, op.barrier]
            if block.entry not in there:
                there.append(block.entry)
            return len(there) >= op.parties
        return all(cell.value is not None for s in op.src if s.packets for cell in self._packets(s))

    def _packets(self, s: Span) -> list[Cell]:
        key = (s.rank, "packets")
        if key not in self.memory:
            self.memory[key] = [Cell() for _ in self.memory[s.rank, "s"]]
        return self.memory[key][s.start : s.start + s.size]

    def _meet(self, rank: int, op: Op) -> None:
        """All thread blocks of a barrier are there: they know of each other, and go on."""
        there = [block for block in self.blocks if block.entry in self.arrived[rank, op.barrier]]
        for block in there:
            parties = self.plan.gpus[rank].blocks[block.number][block.next].parties
            if parties != len(there):
                counted = f"counts {parties} thread blocks where {len(there)} meet"
                self.fault(self._place(block), "barrier", f"barrier {op.barrier} {counted}")
            self._join(block)
        data = np.maximum.reduce([block.data for block in there])
        order = np.maximum.reduce([block.order for block in there])
        for block in there:
            for clock, joint in ((block.data, data), (block.order, order)):
                np.maximum(clock, joint, out=clock)
            block.data_waited, block.order_waited = block.data.copy(), block.order.copy()
            block.next += 1
        self.arrived[rank, op.barrier] = []

    def _join(self, block: Block) -> None:
        """The threads of a block meet."""
        for clock in (block.data_waited, block.order_waited):
            clock[block.entry] = block.segment
        block.segment += 1
        block.data, block.order = block.data_waited.copy(), block.order_waited.copy()

    def _do(self, block: Block, op: Op) -> None:
        if op.name == "nop":
            self._join(block)
        elif op.name in ("signal", "rlxsignal"):
            for channel in op.channels:
                self._give(block, op, channel)
        elif op.name in ("wait", "rlxwait"):
            for channel in op.channels:
                self._take(block, op, channel)
        elif op.name == "flush":
            for channel in op.channels:
                self._landed(block, channel, block.data_waited, block.order_waited)
        elif op.name == "sem_release":
            for semaphore in op.semaphores:
                self.released[block.rank, semaphore].append((block.data_waited.copy(), block.order_waited.copy()))
        elif op.name == "sem_acquire":
            for semaphore in op.semaphores:
                self._acquire(block, semaphore)
        else:
            self._access(block, op)

    def _landed(self, block: Block, channel: int, data: Clock, order: Clock, now: bool = False) -> None:
        """What the block has put over a port channel before the last meeting of its threads (or even since)."""
        entry = self.port_entry.get((block.rank, block.number, channel))
        if entry is not None:
            known = [n for n, segment in enumerate(block.puts[channel], 1) if now or segment < block.segment]
            for clock in (data, order):
                clock[entry] = max(int(clock[entry]), len(known))

    def _give(self, block: Block, op: Op, channel: int) -> None:
        data, order = block.data_waited.copy(), block.order_waited.copy()
        if op.channel_type == "port":
            self._landed(block, channel, data, order, now=op.name != "signal")
        end = (block.rank, op.channel_type, channel)
        if end not in self.other:
            peer = self.plan.gpus[block.rank].peers[op.channel_type][channel]
            self.fault(
                self._place(block),
                "unpaired",
                f"gpu {peer} has no channel that belongs to {op.channel_type} channel {channel}",
            )
        self.given[end].append((None if op.name == "rlxsignal" else data, order))

    def _take(self, block: Block, op: Op, channel: int) -> None:
        end = (block.rank, op.channel_type, channel)
        data, order = self.given[self.other[end]][self.taken[end]]
        self.taken[end] += 1
        if data is not None and op.name == "wait":
            np.maximum(block.data_waited, data, out=block.data_waited)
        np.maximum(block.order_waited, order, out=block.order_waited)

    def _acquire(self, block: Block, semaphore: int) -> None:
        key = (block.rank, semaphore)
        turn = self.acquired[key] - self.plan.gpus[block.rank].semaphores[semaphore]
        self.acquired[key] += 1
        if turn >= 0:
            data, order = self.released[key][turn]
            np.maximum(block.data_waited, data, out=block.data_waited)
            np.maximum(block.order_waited, order, out=block.order_waited)

    # ------------------------------------------------------------------------------------------------------- accesses

    def _access(self, block: Block, op: Op) -> None:
        place = self._place(block)
        self.done += 1
        self._overlaps(op, place)
        if op.channel_type == "port":
            sources = op.src * len(op.dst) if op.name == "rppkt" else op.src
            for k, (s, d) in enumerate(zip(sources, op.dst, strict=True)):
                channel = op.channels[k]
                block.puts[channel].append(block.segment)
                entry = self.port_entry[block.rank, block.number, channel]
                self._copy(block, s, d, (entry, len(block.puts[channel]), place))
                if op.name in ("pws", "pwsf"):
                    self._give(block, op, channel)
                if op.name == "pwsf":
                    self._landed(block, channel, block.data_waited, block.order_waited, now=True)
            return
        stamp = (block.entry, block.segment, place)
        if op.name in ("put", "get", "ppkt"):
            for s, d in zip(op.src, op.dst, strict=True):
                self._copy(block, s, d, stamp)
            return
        values = [self._read(block, s, stamp) for s in op.src]
        total = values[0] if len(values) == 1 else [self._sum(units, place) for units in zip(*values, strict=True)]
        if len(values) > 1:
            self.adding.update(cell.came_by for s in op.src[1:] for cell in self._at(s) if cell.came_by >= 0)
        for s, found in zip(op.src, values, strict=True):
            if s.rank != block.rank:
                self._moved(s.rank, block.rank, found, adds=len(values) > 1)
        made = self._made(op.src, place) if self.plan.packets else None
        for s in op.src:
            if s.packets:
                for cell in self._packets(s):
                    for clock in cell.known:
                        np.maximum(block.order_waited, clock, out=block.order_waited)
        for d in op.dst:
            self._write(block, d, total, stamp, made)

    def _copy(self, block: Block, s: Span, d: Span, stamp: tuple[int, int, str]) -> None:
        values = self._read(block, s, stamp)
        if s.rank != block.rank:
            self._moved(s.rank, block.rank, values)
        self._write(block, d, values, stamp, self._made((s,), stamp[2]) if self.plan.packets else None)

    def _made(self, sources: tuple[Span, ...], place: str) -> list[Made]:
        """Of every unit that an operation makes: the reads that come before it, and clocks of what does."""
        made: list[Made] = []
        for cells in zip(*(self._at(s) for s in sources), strict=True):
            reads = {(place, id(cell)) for cell in cells}
            known: tuple[Clock, ...] = ()
            for cell, s in zip(cells, sources, strict=True):
                if s.packets:
                    reads |= cell.made_of
                    known += cell.known
            made.append((frozenset(reads), known))
        return made

    def _moved(self, src: int, dst: int, values: list[Value | None], adds: bool = False) -> int:
        self.moves.append((src, dst, tuple(values)))
        self.began.append(self.done)
        if adds:
            self.adding.add(len(self.moves) - 1)
        return len(self.moves) - 1

    def _at(self, s: Span) -> list[Cell]:
        return self._packets(s) if s.packets else self._cells(s)

    def _read(self, block: Block, s: Span, stamp: tuple[int, int, str]) -> list[Value | None]:
        self._begun(block, s, stamp[2])
        found = []
        for k, cell in enumerate(self._at(s)):
            writer = cell.writer
            if writer and not s.packets and block.data[writer[0]] < writer[1]:
                self._race(
                    stamp[2], f"reads {self._named(s, k)}, unordered with its writing by {writer[2]}", writer, block
                )
            if cell.value is None:
                self.fault(stamp[2], "uninitialised", f"reads {self._named(s, k)}, where nothing has been written")
            cell.readers.append(stamp)
            if cell.came_by >= 0:
                self.used.setdefault(cell.came_by, self.done)
            found.append(cell.value)
        return found

    def _write(
        self,
        block: Block,
        d: Span,
        values: list[Value | None],
        stamp: tuple[int, int, str],
        made: list[Made] | None = None,
    ) -> None:
        self._begun(block, d, stamp[2])
        number = self._moved(block.rank, d.rank, values) if d.rank != block.rank else -1
        for k, (cell, value) in enumerate(zip(self._at(d), values, strict=True)):
            writer = cell.writer
            if writer and block.data[writer[0]] < writer[1]:
                self._race(
                    stamp[2], f"writes {self._named(d, k)}, unordered with its writing by {writer[2]}", writer, block
                )
            elif d.packets and writer:
                self.fault(
                    stamp[2], "packets", f"writes packets to {self._named(d, k)}, whose flag {writer[2]} has set"
                )
            for reader in cell.readers:
                if made and ((reader[2], id(cell)) in made[k][0] or any(c[reader[0]] >= reader[1] for c in made[k][1])):
                    continue
                if block.order[reader[0]] < reader[1] and reader is not stamp:
                    text = f"writes {self._named(d, k)}, unordered with its reading by {reader[2]}"
                    self._race(stamp[2], text, reader, block)
                    break
            cell.value, cell.writer, cell.readers, cell.came_by = value, stamp, [], number
            if d.packets and made:
                cell.made_of, cell.known = made[k][0], (block.order.copy(), *made[k][1])

    def _race(self, place: str, text: str, other: tuple[int, int, str], block: Block) -> None:
        same = other[0] == block.entry
        self.fault(place, "race", text + (": a nop must stand between them" if same else ""))

    def _begun(self, block: Block, s: Span, place: str) -> None:
        if s.rank != block.rank and not s.packets and not block.order[s.rank]:
            here = f"{s.buffer}[{s.start // self.plan.units}] of gpu {s.rank}"
            self.fault(place, "begun", f"touches {here} without a signal that its kernel runs")

    def _named(self, s: Span, k: int) -> str:
        return f"{s.buffer}[{(s.start + k) // self.plan.units}] of gpu {s.rank}"

    def _sum(self, units: tuple[Value | None, ...], place: str) -> Value | None:
        whole = [value for value in units if value is not None]
        if len(whole) < len(units):
            return None
        item, mask = whole[0]
        for other, more in whole[1:]:
            if other != item or self.collective not in SUMS:
                self.fault(place, "mixed", "adds chunks that do not belong together")
                return (-1, 0)
            if mask & more:
                both = (mask & more).bit_length() - 1
                self.fault(place, "doubled", f"adds gpu {both}'s contribution to a sum that holds it already")
            mask |= more
        return (item, mask)

    def _overlaps(self, op: Op, place: str) -> None:
        """Within one operation the threads are not ordered: no chunk is written twice, and one that is read is
        written only by the same threads (the same span)."""
        cells: dict[int, Span] = {}
        for d in op.dst:
            for cell in self._at(d):
                if cells.setdefault(id(cell), d) is not d:
                    self.fault(
                        place, "overlap", f"writes {d.buffer} of gpu {d.rank} twice where its destinations overlap"
                    )
                    return
        pairwise = op.name in ("put", "get", "pws", "pwsf", "ppkt")
        for s in op.src:
            hit = {id(cell) for cell in self._at(s)} & cells.keys()
            if hit and (pairwise or any(self._at(cells[h])[0] is not self._at(s)[0] for h in hit)):
                self.fault(place, "overlap", "a source and a destination overlap: its threads are not ordered")
                return

    # ----------------------------------------------------------------------------------------------------------- end

    def _stuck(self) -> None:
        for block in self.blocks:
            ops = self.plan.gpus[block.rank].blocks[block.number]
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
            self.fault(self._place(block), "stuck", text)

    def _served(self, end: tuple[int, str, int]) -> bool:
        return end in self.other and len(self.given[self.other[end]]) > self.taken[end]

    def _surplus(self) -> None:
        """Signals that nobody waits for would be taken by the next run."""
        for end, signals in self.given.items():
            rank, kind, channel = end
            left = len(signals) - (self.taken[self.other[end]] if end in self.other else 0)
            if end in self.other and left:
                peer = self.other[end][0]
                text = f"{left} signals over {kind} channel {channel} that gpu {peer} does not wait for"
                self.fault(f"gpu {rank}", "surplus", text + ": the next run would take them")

    def _ended(self) -> None:
        """What others did to a GPU's memory is over when its kernel ends, and its own puts are."""
        for rank, gpu in enumerate(self.plan.gpus):
            mine = [block for block in self.blocks if block.rank == rank]
            zero = np.zeros(self.width, dtype=np.int32)
            data = np.maximum.reduce([zero, *(block.data_waited for block in mine)])
            order = np.maximum.reduce([zero, *(block.order_waited for block in mine)])
            for block in mine:
                data[block.entry] = order[block.entry] = EVER
            for buffer in gpu.chunks:
                for k, cell in enumerate(self.memory[rank, buffer]):
                    here = f"{buffer}[{k // self.plan.units}] of gpu {rank}"
                    if cell.writer and data[cell.writer[0]] < cell.writer[1]:
                        self.fault(
                            cell.writer[2],
                            "ended",
                            f"writes {here}, whose kernel may have ended: it does not wait for it",
                        )
                    for reader in cell.readers:
                        if order[reader[0]] < reader[1]:
                            self.fault(
                                reader[2],
                                "ended",
                                f"reads {here}, whose kernel may have ended: it does not wait for it",
                            )
                            break

    def _finished(self) -> None:
        """The postcondition, the rank's own part included."""
        u, ranks = self.plan.units, len(self.plan.gpus)
        full = (1 << ranks) - 1 if self.collective in SUMS else 1
        for rank in range(ranks):
            if self.collective in ("reduce", "gather") and rank != self.root:
                continue
            out = self._cells(Span(rank, "o", 0, self.plan.gpus[rank].chunks["o"] * u))
            for k, cell in enumerate(out):
                want = (self._wanted(rank, k), full)
                if cell.value != want:
                    held = self._described(cell.value)
                    self.fault(f"gpu {rank}, o[{k // u}]", "end", f"ends with {held}, not {self._described(want)}")

    def _wanted(self, rank: int, k: int) -> int:
        """The item that unit k of the output holds at the end."""
        each = self.each
        match self.collective:
            case "reduce_scatter":
                return rank * each + k
            case "alltoall":
                return (k // each) * len(self.plan.gpus) * each + rank * each + k % each
            case "broadcast":
                return self.root * each + k
            case "scatter":
                return self.root * len(self.plan.gpus) * each + rank * each + k
            case _:
                return k

    def _described(self, value: Value | None) -> str:
        if value is None:
            return "nothing"
        item, mask = value
        u = self.plan.units
        if item < 0:
            return "a sum of chunks that do not belong together"
        if self.collective in SUMS:
            return f"chunk {item // u} of {mask.bit_count()} gpus"
        wide = self.plan.gpus[0].chunks["i"] * u
        return f"i[{item % wide // u}] of gpu {item // wide}"


def described(plan: Plan) -> dict[str, Any]:
    """Figures of a plan, for a person."""
    ops = [op for gpu in plan.gpus for block in gpu.blocks for op in block]
    return {
        "gpus": len(plan.gpus),
        "thread blocks": sum(len(gpu.blocks) for gpu in plan.gpus),
        "operations": len(ops),
        "most operations of a thread block": max((len(block) for gpu in plan.gpus for block in gpu.blocks), default=0),
    }
