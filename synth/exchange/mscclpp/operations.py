"""Operations of a thread block: their fields, limits, and what the kernel asks of them beyond."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import ne
from typing import Any

from synth.exchange.mscclpp.plan import (
    ALIGNED,
    MAX_BUFFERS,
    MAX_CHANNEL_PER_OPERATION,
    MAX_DEVICE_SEMAPHORES,
    MAX_DEVICE_SYNCERS,
    MOST_CHUNKS,
    MOST_UNIT,
    Op,
    Span,
)
from synth.exchange.mscclpp.switches import MOST_REACHED, Group
from synth.exchange.mscclpp.values import Place, Values

LOOP = "pipeline"
# what the sources and destinations of an operation are: l local, p local in packets, r remote, q remote in packets, m
# the same chunks of all GPUs of a switch channel, n those in packets; the last may be repeated (+) or left out (*)
SHAPES = {
    "put": ("l+", "r+"),
    "pws": ("l+", "r+"),
    "pwsf": ("l+", "r+"),
    "get": ("r+", "l+"),
    "copy": ("l", "l"),
    "re": ("ll*", "l"),
    "res": ("ll*", "lr+"),
    "rre": ("lr+", "l"),
    "rres": ("lr+", "lr+"),
    "ppkt": ("l+", "q+"),
    "rppkt": ("p", "q+"),
    "respkt": ("lp*", "lq+"),
    "repkt": ("lp*", "l"),
    "recpkt": ("lp*", "lp"),
    "recspkt": ("lp*", "lpq+"),
    "cpkt": ("l", "p"),
    "upkt": ("p", "l"),
    "glres": ("m", "m"),
    "gstore": ("l", "m"),
    "gstorepkt": ("p", "n"),
}
PACKETS = tuple(name for name in SHAPES if name.endswith("pkt"))
OVER_SWITCH = ("glres", "gstore", "gstorepkt")
SYNCS = ("signal", "wait", "flush", "rlxsignal", "rlxwait")
NAMES = dict.fromkeys((*SHAPES, *SYNCS, LOOP, "nop", "barrier", "sem_acquire", "sem_release"))
PAIRWISE = ("put", "pws", "pwsf", "get", "ppkt")  # the k-th source goes to the k-th destination
NOP = Op("nop")


@dataclass(frozen=True)
class Head:
    """What other parts of the file refer to in a GPU: chunks by buffer, peers by type of channel, remote buffers
    (owner, buffer, types of channel), first values of semaphores, channels over switches."""

    chunks: dict[str, int]
    peers: dict[str, list[int]]
    remote: list[tuple[int, str, list[str]]]
    semaphores: list[int]
    groups: list[Group]


@dataclass(frozen=True)
class OpReading:
    """The operations of one thread block, over its channels and remote buffers by their numbers there."""

    all: Values
    units: int
    unsupported: dict[str, str]
    rank: int
    heads: list[Head]
    channels: dict[str, list[int]]
    buffers: dict[str, list[tuple[int, str]]]
    reached: Counter[str]

    def op(self, op: Any, place: Place) -> Op:
        name = self.all.word(op, "name", NAMES, place)
        if name == "nop" or not isinstance(op, dict):
            return NOP
        place = (place, " (", name, ")")
        if name in SYNCS:
            kind = self.all.word(op, "channel_type", ("memory", "port"), place)
            return Op(name, kind, self.channel_ids(op, kind, place, needed=True))
        if name in SHAPES:
            return self.access(op, name, place)
        if name == LOOP:
            return self.loop(op, place)
        if name == "barrier":
            barrier = self.all.whole(op, "barrier_id", 0, MAX_DEVICE_SYNCERS - 1, place)
            return Op(name, barrier=barrier, parties=self.all.whole(op, "num_threadblocks", 1, 2**16, place))
        there = len(self.heads[self.rank].semaphores)
        semaphores = self.all.numbers(op, "semaphore_ids", there - 1, place)
        if not 1 <= len(semaphores) <= MAX_DEVICE_SEMAPHORES or len(set(semaphores)) != len(semaphores):
            self.all.fault(place, f"semaphore_ids: 1 to {MAX_DEVICE_SEMAPHORES} different ones are right")
        return Op(name, semaphores=tuple(semaphores))

    def access(self, op: Any, name: str, place: Place) -> Op:
        """An operation that reads and writes chunks."""
        remote = name not in ("copy", "re", "cpkt", "upkt", "repkt", "recpkt")
        kinds = ("switch",) if name in OVER_SWITCH else ("memory", "port")
        kind = self.all.word(op, "channel_type", kinds, place) if remote else "none"
        given, made = SHAPES[name]
        src, dst = self.spans(op, "src_buff", given, kind, place), self.spans(op, "dst_buff", made, kind, place)
        self.fits(name, kind, src, dst, place)
        ids: tuple[int, ...] = ()
        if remote and kind != "switch":
            ids = self.channel_ids(op, kind, place, needed=kind == "port")
            if kind == "port":
                self.over_ports(ids, dst, place)
        return Op(name, kind, ids, self.part(op, src, place), self.part(op, dst, place))

    def loop(self, op: Any, place: Place) -> Op:
        """A loop, whose operations must all be as large as what it counts its passes by."""
        context = self.all.value(op, "iter_context", dict, place)
        unit = self.all.whole(context, "unit_size", 1, MOST_UNIT, place)
        if unit % ALIGNED and context.get("unit_size") == unit:  # as the file has it
            self.all.fault(place, f"unit_size = {unit}: the kernel adds and sends in units of {ALIGNED} bytes")
        size = self.all.whole(context, "num_chunks", 1, MOST_CHUNKS, place) * self.units
        body = []
        for k, inner in enumerate(self.all.value(op, "ops", list, place)):
            here = (place, ", op ", k)
            if isinstance(inner, dict) and inner.get("name") == LOOP:
                self.all.fault(here, "a loop in a loop: the kernel has no place for its number of operations")
                continue
            body.append(self.op(inner, here))
            self.fits_loop(body[-1], size, here)
        return Op(LOOP, body=tuple(body), unit_bytes=unit, size=size)

    def fits_loop(self, op: Op, size: int, place: Place) -> None:
        """What the kernel asks of an operation in a loop of so many units."""
        if op.name in PACKETS:
            self.all.fault(place, f"{op.name} in a loop: the kernel does all of it in every pass")
        elif any(span.size != size for span in (*op.src, *op.dst)):
            words = f"the loop counts its passes by {size // self.units:,} chunks"
            self.all.fault(place, f"is of another size: {words}, and the kernel goes as far in every operation")

    def channel_ids(self, op: Any, kind: str, place: Place, needed: bool) -> tuple[int, ...]:
        mine = self.channels[kind]
        ids = self.all.numbers(op, "channel_ids", len(mine) - 1, place, None if needed else [])
        if len(ids) > MAX_CHANNEL_PER_OPERATION:
            most = f"MAX_CHANNEL_PER_OPERATION = {MAX_CHANNEL_PER_OPERATION}"
            self.all.fault(place, f"{len(ids)} channels, more than {most}")
        if needed and not ids and isinstance(op.get("channel_ids"), list) and not op["channel_ids"]:
            self.all.fault(place, "channel_ids is empty")
        found = tuple([mine[i] for i in ids])
        if len(found) > 1 and op.get("name") in SYNCS and len(set(found)) != len(found):
            self.all.fault(place, "one channel twice: its threads would count it once")
        return found

    def spans(self, op: Any, key: str, shape: str, kind: str, place: Place) -> list[Span]:
        entries = self.all.value(op, key, list, place)
        roles = shape.rstrip("+*")
        least = len(roles) - shape.endswith("*")
        if len(entries) < least or (len(entries) > len(roles) and shape[-1] not in "+*"):
            self.all.fault(
                place, f"{key} has {len(entries)} entries, not {least}{' or more' if shape[-1] in '+*' else ''}"
            )
        if len(entries) > MAX_BUFFERS:
            self.all.fault(
                place, f"{key} has {len(entries)} entries, more than {MAX_BUFFERS} (2 + MAX_CHANNEL_PER_OPERATION)"
            )
        filled = roles + roles[-1] * (len(entries) - len(roles))
        if roles in ("m", "n"):
            return [
                span for k, entry in enumerate(entries) for span in self.group(entry, roles, (place, f", {key}[{k}]"))
            ]
        return [self.span(entry, filled[k], kind, (place, ", ", key, "[", k, "]")) for k, entry in enumerate(entries)]

    def group(self, entry: Any, role: str, place: Place) -> list[Span]:
        """The chunks of all GPUs of a switch channel."""
        there, before = self.channels["switch"], len(self.all.faults)
        number = self.all.whole(entry, "switch_channel_id", 0, max(len(there) - 1, 0), place)
        if not there and len(self.all.faults) == before:
            self.all.fault(place, "switch_channel_id: the thread block has no channel over a switch")
        if number >= len(there):
            return []
        buffer, ranks = self.heads[self.rank].groups[there[number]]
        if role == "n" and buffer != "s":
            self.all.fault(place, "packets lie in scratch")
        start = self.all.whole(entry, "index", 0, MOST_CHUNKS, place)
        size = self.all.whole(entry, "size", 1, MOST_CHUNKS, place)
        self.reached["buffers"] += len(ranks)
        if self.reached["buffers"] > MOST_REACHED:
            words = f"operations that reach more than {MOST_REACHED:,} buffers over switches are not replayed"
            self.unsupported.setdefault("reached", words)
            return []
        for owner in ranks:
            if start + size > (there_are := self.heads[owner].chunks[buffer]):
                text = f"{buffer}[{start}:{start + size}] of gpu {owner}, which has {there_are} chunks of {buffer}"
                self.all.fault(place, text)
                break
        return [Span(owner, buffer, start, size, role == "n") for owner in ranks]

    def span(self, entry: Any, role: str, kind: str, place: Place) -> Span:
        if role in "lp":
            owner, buffer = self.rank, self.all.word(entry, "type", ("i", "o", "s"), place)
        else:
            there = self.buffers.get(kind, [])
            before = len(self.all.faults)
            number = self.all.whole(entry, "buffer_id", 0, max(len(there) - 1, 0), place)
            if not there and len(self.all.faults) == before:
                self.all.fault(place, f"buffer_id: the thread block refers to no remote buffer over {kind} channels")
            owner, buffer = there[number] if number < len(there) else (self.rank, "s")
        if role in "pq" and buffer != "s":
            self.all.fault(place, "packets lie in scratch")
        start = self.all.whole(entry, "index", 0, MOST_CHUNKS, place)
        size = self.all.whole(entry, "size", 1, MOST_CHUNKS, place)
        there_are = self.heads[owner].chunks[buffer]
        if start + size > there_are:
            self.all.fault(
                place, f"{buffer}[{start}:{start + size}] of gpu {owner}, which has {there_are} chunks of {buffer}"
            )
        return Span(owner, buffer, start, size, role in "pq")

    def fits(self, name: str, kind: str, src: list[Span], dst: list[Span], place: Place) -> None:
        """What the kernel asks of an operation beyond its fields."""
        self.sizes_fit(name, src, dst, place)
        if kind == "memory" and name in ("put", "ppkt") and len({s.buffer for s in src}) > 1:
            self.all.fault(place, "sources in different buffers: the executor takes the first one's buffer for all")
        if kind == "memory" and name in ("pws", "pwsf"):
            self.all.fault(place, "over memory channels the executor puts, but gives no signal")
        if kind == "port" and name not in ("put", "pws", "pwsf", "ppkt", "rppkt"):
            self.all.fault(place, "the executor does this over memory channels only")

    def sizes_fit(self, name: str, src: list[Span], dst: list[Span], place: Place) -> None:
        """Sources and destinations of an operation are of one size, and as many where they go together."""
        if name not in PAIRWISE:
            different = len({s.size for s in [*src, *dst]}) > 1 if src else False
        else:
            if len(src) != len(dst):
                self.all.fault(place, f"{len(src)} sources for {len(dst)} destinations")
            different = any(map(ne, [s.size for s in src], [d.size for d in dst]))  # as far as both go
        if different:
            self.all.fault(place, "sources and destinations are of different sizes")
        if name == "get" and any(a.start != b.start for a, b in zip(src, dst, strict=False)):
            self.all.fault(place, "the executor swaps the offsets of its two ends, which differ")

    def over_ports(self, ids: tuple[int, ...], dst: list[Span], place: Place) -> None:
        """Over ports the k-th channel carries the k-th put, and must lead to the buffer's owner."""
        if len(ids) != len(dst):
            self.all.fault(place, f"{len(ids)} channels for {len(dst)} destinations")
        for channel, span in zip(ids, dst, strict=False):
            peer = self.heads[self.rank].peers["port"][channel]
            if peer != span.rank:
                self.all.fault(place, f"its channel leads to gpu {peer}, its remote buffer is gpu {span.rank}'s")

    def part(self, op: Any, spans: list[Span], place: Place) -> tuple[Span, ...]:
        """The spans in units; of a thread block group's operation the part of this thread block."""
        units, turn, size = self.units, 0, 1
        if units == 1 and "tbg_info" not in op:
            return tuple(spans)
        if "tbg_info" in op:
            size = self.all.whole(op["tbg_info"], "tbg_size", 1, 4096, place)
            turn = self.all.whole(op["tbg_info"], "tb_id", 0, max(size - 1, 0), place)
        found = []
        for s in spans:
            share = s.size * units // size
            found.append(Span(s.rank, s.buffer, s.start * units + turn * share, share, s.packets))
        return tuple(found)
