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

from dataclasses import dataclass, field
from typing import NamedTuple

from synth.arrays import Int32Array
from synth.errors import Fault, FaultsByKind, UnsupportedError
from synth.exchange.mscclpp.goals import Goal, Value
from synth.exchange.mscclpp.plan import Op, Plan, Span
from synth.exchange.mscclpp.syncs import Block, Syncs

FEW = 5  # faults of a kind that are listed
MOST_UNITS = 2**24


class Stamp(NamedTuple):
    """An access: it is over for whoever's clock has come to ``reached`` in this ``entry``; ``place`` names it, ``step``
    is its operation's."""

    entry: int
    reached: int
    place: str
    step: int

    def over(self, clock: Int32Array) -> bool:
        """Whether a clock says that it is over."""
        return bool(clock[self.entry] >= self.reached)


class Made(NamedTuple):
    """What comes before a unit that an operation makes: the reads (by whom, of which cell), and clocks of more."""

    reads: frozenset[tuple[str, int]]
    clocks: tuple[Int32Array, ...]

    def follows(self, reader: Stamp, cell: Cell) -> bool:
        """Whether a read of the cell is over before the unit is made."""
        return (reader.place, id(cell)) in self.reads or any(reader.over(clock) for clock in self.clocks)


@dataclass
class Cell:
    """One unit of a buffer: its value, who wrote it (clock entry, stamp, place), who has read it since; the transfer
    that brought it. Of packets: the reads that its value was made of, and what their writer knew to be over."""

    value: Value | None = None
    writer: Stamp | None = None
    readers: list[Stamp] = field(default_factory=list)
    came_by: int = -1
    made_of: frozenset[tuple[str, int]] = frozenset()
    known: tuple[Int32Array, ...] = ()


class Replay:
    """One replay. ``moves``: what went from GPU to GPU (from, to, values), in the order of the replay; ``by``: the
    thread block (its entry) that moved it, and the place of the operation there; ``began`` and ``used``: the step at
    which it was moved, and the first at which it was added up or copied; ``adding``: the moves that were
    added up; ``together``: by move that a switch adds or copies, a number that all of its stream have."""

    def __init__(self, plan: Plan, collective: str | None = None, root: int | None = None) -> None:
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
        for span, value in self.goal.beginning():
            self._at(span)[0].value = value
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
            for span, value in self.goal.end():
                held = self._at(span)[0].value
                if held != value:
                    text = f"ends with {self.goal.described(held)}, not {self.goal.described(value)}"
                    self.fault(f"gpu {span.rank}, o[{span.start // self.plan.units}]", text)
        return self.found.kept()

    def _run(self, block: Block) -> bool:
        """As far as a thread block comes; whether it came any further."""
        ops, before = self.syncs.ops(block), block.next
        while block.next < len(ops):
            op = ops[block.next]
            if not self.syncs.ready(block, op):
                break
            if any(cell.value is None for s in op.src if s.packets for cell in self._at(s)):
                break
            if op.name == "barrier":
                self.syncs.meet(block.rank, op)
                continue
            self._at_op = block.entry, block.next
            block.step += 1
            if not self.syncs.do(block, op):
                self._access(block, op)
            block.next += 1
        return block.next > before

    def _at(self, s: Span) -> list[Cell]:
        """The cells of a span."""
        if s.packets:
            return self.memory[s.rank, "packets"][s.start : s.start + s.size]
        s = self.goal.one_place(s)
        return self.memory[s.rank, s.buffer][s.start : s.start + s.size]

    def _access(self, block: Block, op: Op) -> None:
        place = self.syncs.place(block)
        self._overlaps(op, place)
        if op.channel_type == "port":
            self._over_ports(block, op, place)
            return
        came = [cell.writer for s in op.src if s.packets for cell in self._at(s)]
        block.step = max([block.step, *(writer.step + 1 for writer in came if writer)])
        stamp = Stamp(block.entry, block.segment, place, block.step)
        if op.name in ("put", "get", "ppkt"):
            for s, d in zip(op.src, op.dst, strict=True):
                self._copy(block, s, d, stamp)
            return
        if self._changes_nothing(op):
            for k, cell in enumerate(self._at(op.src[0])):
                self._after_its_writer(block, op.src[0], k, cell, place)
                cell.readers.append(stamp)
            return
        self._computed(block, op, stamp)

    def _over_ports(self, block: Block, op: Op, place: str) -> None:
        """The k-th channel carries the k-th put, and a signal behind it where the operation gives one. Each is a thread
        of its own: of several over one channel only the last signal says that any has arrived."""
        sources = op.src * len(op.dst) if op.name == "rppkt" else op.src
        for k, (s, d) in enumerate(zip(sources, op.dst, strict=True)):
            channel = op.channels[k]
            block.puts[channel].append(block.segment)
            entry = self.syncs.port_entry[block.rank, block.number, channel]
            self._copy(block, s, d, Stamp(entry, len(block.puts[channel]), place, block.step))
            if op.name in ("pws", "pwsf"):
                self.syncs.give(block, op, channel, landed=channel not in op.channels[k + 1 :])
            if op.name == "pwsf":
                self.syncs.landed(block, channel, block.data_waited, block.order_waited, now=True)

    def _computed(self, block: Block, op: Op, stamp: Stamp) -> None:
        """The sources added up (or the one source), written to all destinations."""
        place, before = stamp.place, len(self.moves)
        values = [self._read(block, s, stamp) for s in op.src]
        total = values[0] if len(values) == 1 else [self._sum(units, place) for units in zip(*values, strict=True)]
        self._fetched(block, op, values)
        written = len(self.moves)
        block.step += len(self.moves) > before  # what it reads of others is there before it writes to them
        made = self._made(op.src, place) if self.plan.packets else None
        for clock in [clock for s in op.src if s.packets for cell in self._at(s) for clock in cell.known]:
            block.waited_for(clock)
        for d in op.dst:
            if d != op.src[0] or not d.packets:  # packets stored onto themselves stay what they are
                self._write(block, d, total, stamp, made)
        if op.channel_type == "switch":
            self.together |= dict.fromkeys(range(before, written), before)
            self.together |= dict.fromkeys(range(written, len(self.moves)), written)

    def _fetched(self, block: Block, op: Op, values: list[list[Value | None]]) -> None:
        """What an operation has read of other GPUs, and what had come before and is added up now."""
        adds = len(values) > 1
        if adds and op.channel_type != "switch":
            self.adding.update(cell.came_by for s in op.src[1:] for cell in self._at(s) if cell.came_by >= 0)
        for s, found in zip(op.src, values, strict=True):
            if s.rank != block.rank:
                self._moved(s.rank, block.rank, found, block.step, adds=adds)

    def _changes_nothing(self, op: Op) -> bool:
        """Whether an operation copies chunks onto themselves (in place, input and output are two names of one): it
        stores what it has loaded, so that beside reads it is one of them, even where nothing has been written."""
        if len(op.src) != 1 or len(op.dst) != 1:
            return False
        cells = zip(self._at(op.src[0]), self._at(op.dst[0]), strict=True)
        return all(source is target for source, target in cells)

    def _copy(self, block: Block, s: Span, d: Span, stamp: Stamp) -> None:
        values = self._read(block, s, stamp)
        if s.rank != block.rank:
            self._moved(s.rank, block.rank, values, block.step)
        self._write(block, d, values, stamp, self._made((s,), stamp.place) if self.plan.packets else None)

    def _made(self, sources: tuple[Span, ...], place: str) -> list[Made]:
        """Of every unit that an operation makes: the reads that come before it, and clocks of what does."""
        made: list[Made] = []
        for cells in zip(*(self._at(s) for s in sources), strict=True):
            reads = {(place, id(cell)) for cell in cells}
            known: tuple[Int32Array, ...] = ()
            for cell, s in zip(cells, sources, strict=True):
                if s.packets:
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

    def _read(self, block: Block, s: Span, stamp: Stamp) -> list[Value | None]:
        self._begun(block, s, stamp.place)
        found = []
        for k, cell in enumerate(self._at(s)):
            if not s.packets:
                self._after_its_writer(block, s, k, cell, stamp.place)
            if cell.value is None:
                self.fault(stamp.place, f"reads {self._named(s, k)}, where nothing has been written")
            cell.readers.append(stamp)
            if cell.came_by >= 0:
                self.used[cell.came_by] = min(self.used.get(cell.came_by, block.step), block.step)
            found.append(cell.value)
        return found

    def _after_its_writer(self, block: Block, s: Span, k: int, cell: Cell, place: str) -> None:
        writer = cell.writer
        if writer and not writer.over(block.data):
            self._race(place, f"reads {self._named(s, k)}, unordered with its writing by {writer.place}", writer, block)

    def _write(
        self,
        block: Block,
        d: Span,
        values: list[Value | None],
        stamp: Stamp,
        made: list[Made] | None = None,
    ) -> None:
        self._begun(block, d, stamp.place)
        number = self._moved(block.rank, d.rank, values, block.step) if d.rank != block.rank else -1
        for k, (cell, value) in enumerate(zip(self._at(d), values, strict=True)):
            writer = cell.writer
            if writer and not writer.over(block.data):
                text = f"writes {self._named(d, k)}, unordered with its writing by {writer.place}"
                self._race(stamp.place, text, writer, block)
            elif d.packets and writer:
                self.fault(stamp.place, f"writes packets to {self._named(d, k)}, whose flag {writer.place} has set")
            for reader in cell.readers:
                if made and made[k].follows(reader, cell):
                    continue
                if not reader.over(block.order) and reader is not stamp:
                    text = f"writes {self._named(d, k)}, unordered with its reading by {reader.place}"
                    self._race(stamp.place, text, reader, block)
                    break
            cell.value, cell.writer, cell.readers, cell.came_by = value, stamp, [], number
            if d.packets and made:
                cell.made_of, cell.known = made[k].reads, (block.order.copy(), *made[k].clocks)

    def _race(self, place: str, text: str, other: Stamp, block: Block) -> None:
        same = other.entry == block.entry
        self.fault(place, text + (": a nop must stand between them" if same else ""))

    def _begun(self, block: Block, s: Span, place: str) -> None:
        if s.rank != block.rank and not s.packets and not block.order[s.rank]:
            here = f"{s.buffer}[{s.start // self.plan.units}] of gpu {s.rank}"
            self.fault(place, f"touches {here} without a signal that its kernel runs")

    def _named(self, s: Span, k: int) -> str:
        return f"{s.buffer}[{(s.start + k) // self.plan.units}] of gpu {s.rank}"

    def _sum(self, units: tuple[Value | None, ...], place: str) -> Value | None:
        whole = [value for value in units if value is not None]
        if len(whole) < len(units):
            return None
        item, mask = whole[0]
        for other, more in whole[1:]:
            if other != item or not self.goal.sums:
                self.fault(place, "adds chunks that do not belong together")
                return (-1, 0)
            if mask & more:
                both = (mask & more).bit_length() - 1
                self.fault(place, f"adds gpu {both}'s contribution to a sum that holds it already")
            mask |= more
        return (item, mask)

    def _overlaps(self, op: Op, place: str) -> None:
        """Within one operation the threads are not ordered: no chunk is written twice, and one that is read is
        written only by the same threads (the same span)."""
        cells: dict[int, Span] = {}
        for d in op.dst:
            for cell in self._at(d):
                if cells.setdefault(id(cell), d) is not d:
                    self.fault(place, f"writes {d.buffer} of gpu {d.rank} twice where its destinations overlap")
                    return
        pairwise = op.name in ("put", "get", "pws", "pwsf", "ppkt")
        for s in op.src:
            hit = {id(cell) for cell in self._at(s)} & cells.keys()
            if hit and (pairwise or any(self._at(cells[h])[0] is not self._at(s)[0] for h in hit)):
                self.fault(place, "a source and a destination overlap: its threads are not ordered")
                return

    def _ended(self) -> None:
        """What others did to a GPU's memory is over when its kernel ends, and so are its own puts."""
        for rank, gpu in enumerate(self.plan.gpus):
            data, order = self.syncs.at_end(rank)
            for buffer in gpu.chunks:
                for k, cell in enumerate(self.memory[rank, buffer]):
                    here = f"{buffer}[{k // self.plan.units}] of gpu {rank}"
                    late = f"{here}, whose kernel may have ended: it does not wait for it"
                    if cell.writer and not cell.writer.over(data):
                        self.fault(cell.writer.place, f"writes {late}")
                    for reader in cell.readers:
                        if not reader.over(order):
                            self.fault(reader.place, f"reads {late}")
                            break
