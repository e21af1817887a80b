"""The check of MSCCL++ plans: a replay of all thread blocks of all GPUs, with clocks that tell what is ordered.

* A thread block runs its operations in order, but its threads meet only at ``nop`` and ``barrier``: of two operations
  that touch the same chunk, one writing, one of these must stand between them, as between data and a ``signal``.
* The k-th ``wait`` of a channel goes on after the k-th ``signal`` of its other end (the k-th channel of a type from A
  to B and the k-th from B to A belong together). Relaxed signals order what comes after them, but publish no writes.
* What a port channel puts has arrived for whoever waits for a later signal of the same channel.
* Over a switch channel a thread block reads or writes the same chunks of all GPUs of a group, itself among them, as it
  would one by one: all sources of a sum must have been written, and none may be overwritten before a signal back.
* Packets carry their flag: who reads them waits for them, chunk by chunk; what they were made of is read then.
* A kernel may begin before, and end after, its peers': another GPU's buffers are touched only after a signal from it,
  and what touches them is waited for by their owner (packets into scratch need no permission: it is used in turns).

An access is right where a clock says that what it must follow is over: then it is over in every run, as what a thread
block waits for never depends on timing. One replay therefore finds every race, deadlock and uninitialised read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from synth.arrays import Int32Array
from synth.errors import Fault, FaultsByKind, UnsupportedError
from synth.exchange.mscclpp.goals import Goal, Value
from synth.exchange.mscclpp.operations import PAIRWISE
from synth.exchange.mscclpp.plan import ExecutionPlan, Op, Span
from synth.exchange.mscclpp.syncs import Block, Syncs

FEW = 5  # faults of a kind that are listed
MOST_UNITS = 2**24


At = tuple[int, int, int]  # an operation: gpu, thread block, number there


class Stamp(NamedTuple):
    """An access: it is over for whoever's clock has come to ``reached`` in this ``entry``; ``at`` names it, ``step``
    is its operation's."""

    entry: int
    reached: int
    at: At
    step: int

    def over(self, clock: Int32Array) -> bool:
        """Whether a clock says that it is over."""
        return bool(clock[self.entry] >= self.reached)


class Made(NamedTuple):
    """What comes before a unit that an operation makes: the reads (by whom, of which cell), and clocks of more."""

    reads: frozenset[tuple[At, int]]
    clocks: tuple[Int32Array, ...]

    def follows(self, reader: Stamp, cell: Cell) -> bool:
        """Whether a read of the cell is over before the unit is made."""
        return (reader.at, id(cell)) in self.reads or any(reader.over(clock) for clock in self.clocks)


@dataclass(slots=True)
class Cell:
    """One unit of a buffer: its value, who wrote it (clock entry, stamp, place), who has read it since; the transfer
    that brought it. Of packets: the reads that its value was made of, and what their writer knew to be over."""

    value: Value | None = None
    writer: Stamp | None = None
    readers: list[Stamp] = field(default_factory=list)
    came_by: int = -1
    made_of: frozenset[tuple[At, int]] = frozenset()
    known: tuple[Int32Array, ...] = ()


class Reach(NamedTuple):
    """The cells of a span: in which memory, and from which one on."""

    span: Span
    memory: tuple[int, str]
    first: int
    cells: list[Cell]

    def meets(self, other: Reach) -> bool:
        """Whether they share a cell."""
        if self.memory != other.memory:
            return False
        return self.first < other.first + len(other.cells) and other.first < self.first + len(self.cells)


class Replay:
    """One replay. ``moves``: what went from GPU to GPU (from, to, values), in the order of the replay; ``by``: the
    thread block (its entry) that moved it, and the place of the operation there; ``began`` and ``used``: the step at
    which it was moved, and the first at which it was added up or copied; ``adding``: the moves that were
    added up; ``together``: by move that a switch adds or copies, a number that all of its stream have."""

    def __init__(self, plan: ExecutionPlan, collective: str | None = None, root: int | None = None) -> None:
        if plan.unsupported:
            raise UnsupportedError("; ".join(plan.unsupported))
        if sum(c for gpu in plan.gpus for c in gpu.chunks.values()) * plan.units > MOST_UNITS:
            raise UnsupportedError(f"more than {MOST_UNITS:,} chunks are more than can be replayed")
        self.plan, self.goal = plan, Goal.of(plan, collective, root)
        self.found = FaultsByKind(FEW)
        self.moves: list[tuple[int, int, tuple[Value | None, ...]]] = []
        self.began: list[int] = []
        self.by: list[tuple[int, int]] = []
        self._at_op = (-1, -1)
        self.used: dict[int, int] = {}
        self.adding: set[int] = set()
        self.together: dict[int, int] = {}
        self.memory: dict[tuple[int, str], list[Cell]] = {}

    def fault(self, place: str, message: str) -> None:
        self.found.add(Fault(place, message))

    def run(self) -> list[Fault]:
        """All faults."""
        if faults := self.goal.size_faults():
            return faults
        self.syncs = Syncs(self.plan, self.fault)
        for rank, gpu in enumerate(self.plan.gpus):
            for buffer, chunks in gpu.chunks.items():
                self.memory[rank, buffer] = [Cell() for _ in range(chunks * self.plan.units)]
            self.memory[rank, "packets"] = [
                Cell() for _ in range(gpu.chunks["s"] * self.plan.units * self.plan.packets)
            ]
        for span, values in self.goal.beginning():
            for cell, value in zip(self._reach(span).cells, values, strict=True):
                cell.value = value
        moving = True
        while moving:
            moving = False
            for block in self.syncs.blocks:
                moving |= self._run(block)
        if any(block.next < len(self.syncs.ops(block)) for block in self.syncs.blocks):
            self.syncs.stuck()
        else:
            self.syncs.surplus()
            self._ended()
            for span, values in self.goal.end():
                for k, (cell, value) in enumerate(zip(self._reach(span).cells, values, strict=True)):
                    if cell.value != value:
                        text = f"ends with {self.goal.described(cell.value)}, not {self.goal.described(value)}"
                        self.fault(f"gpu {span.rank}, o[{k // self.plan.units}]", text)
        return self.found.kept()

    def _run(self, block: Block) -> bool:
        """As far as a thread block comes; whether it came any further."""
        ops, before = self.syncs.ops(block), block.next
        while block.next < len(ops):
            op = ops[block.next]
            if op.src:
                if self.plan.packets and any(cell.value is None for cell in self._packets(op)):
                    break
                self._at_op = block.entry, block.next
                block.step += 1
                self._access(block, op)
            else:
                if not self.syncs.ready(block, op):
                    break
                if op.name == "barrier":
                    self.syncs.meet(block.rank, op)
                    continue
                block.step += 1
                self.syncs.do(block, op)
            block.next += 1
        return block.next > before

    def _reach(self, s: Span) -> Reach:
        """The cells of a span."""
        place = s if s.packets else self.goal.one_place(s)
        memory = s.rank, "packets" if s.packets else place.buffer
        return Reach(s, memory, place.start, self.memory[memory][place.start : place.start + s.size])

    def _packets(self, op: Op) -> Iterator[Cell]:
        """The packets that an operation reads."""
        return (cell for s in op.src if s.packets for cell in self._reach(s).cells)

    def _access(self, block: Block, op: Op) -> None:
        at = block.rank, block.number, block.next
        src, dst = [self._reach(s) for s in op.src], [self._reach(d) for d in op.dst]
        self._overlaps(op, src, dst, at)
        if op.channel_type == "port":
            self._over_ports(block, op, src * len(dst) if op.name == "rppkt" else src, dst)
            return
        came = [cell.writer for s in src if s.span.packets for cell in s.cells]
        block.step = max([block.step, *(writer.step + 1 for writer in came if writer)])
        stamp = Stamp(block.entry, block.segment, at, block.step)
        if op.name in ("put", "get", "ppkt"):
            for s, d in zip(src, dst, strict=True):
                self._copy(block, s, d, stamp)
        elif self._changes_nothing(src, dst):
            for k, cell in enumerate(src[0].cells):
                self._after_its_writer(block, src[0], k, cell, at)
                cell.readers.append(stamp)
        else:
            self._computed(block, op, src, dst, stamp)

    def _over_ports(self, block: Block, op: Op, src: list[Reach], dst: list[Reach]) -> None:
        """The k-th channel carries the k-th put, and a signal behind it where the operation gives one. Each is a thread
        of its own: of several over one channel only the last signal says that any has arrived."""
        at = block.rank, block.number, block.next
        for k, (s, d) in enumerate(zip(src, dst, strict=True)):
            channel = op.channels[k]
            block.puts[channel].append(block.segment)
            entry = self.syncs.port_entry[block.rank, block.number, channel]
            self._copy(block, s, d, Stamp(entry, len(block.puts[channel]), at, block.step))
            if op.name in ("pws", "pwsf"):
                self.syncs.give(block, op, channel, landed=channel not in op.channels[k + 1 :])
            if op.name == "pwsf":
                self.syncs.landed(block, channel, now=True)

    def _computed(self, block: Block, op: Op, src: list[Reach], dst: list[Reach], stamp: Stamp) -> None:
        """The sources added up (or the one source), written to all destinations."""
        before = len(self.moves)
        values = [self._read(block, s, stamp) for s in src]
        total = values[0] if len(values) == 1 else [self._sum(units, stamp.at) for units in zip(*values, strict=True)]
        self._fetched(block, op, src, values)
        written = len(self.moves)
        block.step += len(self.moves) > before  # what it reads of others is there before it writes to them
        made = self._made(src, stamp.at) if self.plan.packets else None
        for clock in [clock for s in src if s.span.packets for cell in s.cells for clock in cell.known]:
            block.waited_for(clock)
        for d in dst:
            if d.span != src[0].span or not d.span.packets:  # packets stored onto themselves stay what they are
                self._write(block, d, total, stamp, made)
        if op.channel_type == "switch":
            self.together |= dict.fromkeys(range(before, written), before)
            self.together |= dict.fromkeys(range(written, len(self.moves)), written)

    def _fetched(self, block: Block, op: Op, src: list[Reach], values: list[list[Value | None]]) -> None:
        """What an operation has read of other GPUs, and what had come before and is added up now."""
        adds = len(values) > 1
        if adds and op.channel_type != "switch":
            self.adding.update([cell.came_by for s in src[1:] for cell in s.cells if cell.came_by >= 0])
        for s, found in zip(src, values, strict=True):
            if s.span.rank != block.rank:
                self._moved(s.span.rank, block.rank, found, block.step, adds=adds)

    def _changes_nothing(self, src: list[Reach], dst: list[Reach]) -> bool:
        """Whether an operation copies chunks onto themselves (in place, input and output are two names of one): it
        stores what it has loaded, so that beside reads it is one of them, even where nothing has been written."""
        if len(src) != 1 or len(dst) != 1:
            return False
        return src[0].memory == dst[0].memory and src[0].first == dst[0].first

    def _copy(self, block: Block, s: Reach, d: Reach, stamp: Stamp) -> None:
        values = self._read(block, s, stamp)
        if s.span.rank != block.rank:
            self._moved(s.span.rank, block.rank, values, block.step)
        self._write(block, d, values, stamp, self._made([s], stamp.at) if self.plan.packets else None)

    def _made(self, sources: list[Reach], at: At) -> list[Made]:
        """Of every unit that an operation makes: the reads that come before it, and clocks of what does."""
        made: list[Made] = []
        for cells in zip(*(s.cells for s in sources), strict=True):
            reads = {(at, id(cell)) for cell in cells}
            known: tuple[Int32Array, ...] = ()
            for cell, s in zip(cells, sources, strict=True):
                if s.span.packets:
                    reads |= cell.made_of
                    known += cell.known
            made.append(Made(frozenset(reads), known))
        return made

    def _moved(self, src: int, dst: int, values: list[Value | None], step: int, adds: bool = False) -> int:
        self.moves.append((src, dst, tuple(values)))
        self.began.append(step)
        self.by.append(self._at_op)
        if adds:
            self.adding.add(len(self.moves) - 1)
        return len(self.moves) - 1

    def _read(self, block: Block, s: Reach, stamp: Stamp) -> list[Value | None]:
        self._begun(block, s.span, stamp.at)
        found, packets, step = [], s.span.packets, block.step
        for k, cell in enumerate(s.cells):
            if not packets:
                self._after_its_writer(block, s, k, cell, stamp.at)
            if cell.value is None:
                self._fault_at(stamp.at, f"reads {self._named(s, k)}, where nothing has been written")
            cell.readers.append(stamp)
            if cell.came_by >= 0:
                self.used[cell.came_by] = min(self.used.get(cell.came_by, step), step)
            found.append(cell.value)
        return found

    def _after_its_writer(self, block: Block, s: Reach, k: int, cell: Cell, at: At) -> None:
        writer = cell.writer
        if writer and not writer.over(block.data):
            self._race(at, f"reads {self._named(s, k)}, unordered with its writing", writer, block)

    def _write(
        self,
        block: Block,
        d: Reach,
        values: list[Value | None],
        stamp: Stamp,
        made: list[Made] | None = None,
    ) -> None:
        rank, packets = d.span.rank, d.span.packets
        self._begun(block, d.span, stamp.at)
        number = self._moved(block.rank, rank, values, block.step) if rank != block.rank else -1
        for k, (cell, value) in enumerate(zip(d.cells, values, strict=True)):
            writer = cell.writer
            if writer and not writer.over(block.data):
                self._race(stamp.at, f"writes {self._named(d, k)}, unordered with its writing", writer, block)
            elif packets and writer:
                text = f"writes packets to {self._named(d, k)}, whose flag {self.plan.place(*writer.at)} has set"
                self._fault_at(stamp.at, text)
            for reader in cell.readers:
                if made and made[k].follows(reader, cell):
                    continue
                if not reader.over(block.order) and reader is not stamp:
                    self._race(stamp.at, f"writes {self._named(d, k)}, unordered with its reading", reader, block)
                    break
            cell.value, cell.writer, cell.readers, cell.came_by = value, stamp, [], number
            if packets and made:
                cell.made_of, cell.known = made[k].reads, (block.order, *made[k].clocks)

    def _race(self, at: At, text: str, other: Stamp, block: Block) -> None:
        why = ": a nop must stand between them" if other.entry == block.entry else ""
        if not why and other.over(block.order) and (relaxed := self.syncs.relaxed(other.at, block.rank)):
            why = f", where {relaxed}"
        self._fault_at(at, f"{text} by {self.plan.place(*other.at)}{why}")

    def _begun(self, block: Block, s: Span, at: At) -> None:
        if s.rank != block.rank and not s.packets and not block.order[s.rank]:
            here = f"{s.buffer}[{s.start // self.plan.units}] of gpu {s.rank}"
            self._fault_at(at, f"touches {here} without a signal that its kernel runs")

    def _named(self, s: Reach, k: int) -> str:
        return f"{s.span.buffer}[{(s.span.start + k) // self.plan.units}] of gpu {s.span.rank}"

    def _fault_at(self, at: At, message: str) -> None:
        self.fault(self.plan.place(*at), message)

    def _sum(self, units: tuple[Value | None, ...], at: At) -> Value | None:
        whole = [value for value in units if value is not None]
        if len(whole) < len(units):
            return None
        item, mask = whole[0]
        for other, more in whole[1:]:
            if other != item or not self.goal.sums:
                self._fault_at(at, "adds chunks that do not belong together")
                return (-1, 0)
            if mask & more:
                both = (mask & more).bit_length() - 1
                self._fault_at(at, f"adds gpu {both}'s contribution to a sum that holds it already")
            mask |= more
        return (item, mask)

    def _overlaps(self, op: Op, src: list[Reach], dst: list[Reach], at: At) -> None:
        """Within one operation the threads are not ordered: no chunk is written twice, and one that is read is
        written only by the same threads (the same span)."""
        written: dict[tuple[int, str], list[Reach]] = defaultdict(list)  # by memory
        for d in dst:
            here = written[d.memory]
            if here and any(d.meets(one) for one in here):
                words = f"writes {d.span.buffer} of gpu {d.span.rank} twice where its destinations overlap"
                self._fault_at(at, words)
                return
            here.append(d)
        for s in src:
            hit = [d for d in written.get(s.memory, ()) if d.meets(s)]
            if hit and (op.name in PAIRWISE or any(d.first != s.first for d in hit)):
                self._fault_at(at, "a source and a destination overlap: its threads are not ordered")
                return

    def _ended(self) -> None:
        """What others did to a GPU's memory is over when its kernel ends, and so are its own puts."""
        for rank, gpu in enumerate(self.plan.gpus):
            data, order = self.syncs.at_end(rank)
            for buffer in gpu.chunks:
                for k, cell in enumerate(self.memory[rank, buffer]):
                    if cell.writer and not cell.writer.over(data):
                        why = self.syncs.relaxed(cell.writer.at, rank) if cell.writer.over(order) else ""
                        self._late(cell.writer, "writes", rank, buffer, k, why)
                    for reader in cell.readers:
                        if not reader.over(order):
                            self._late(reader, "reads", rank, buffer, k)
                            break

    def _late(self, access: Stamp, verb: str, rank: int, buffer: str, k: int, why: str = "") -> None:
        here = f"{buffer}[{k // self.plan.units}] of gpu {rank}"
        self._fault_at(access.at, f"{verb} {here}, whose kernel may have ended: {why or 'it does not wait for it'}")
