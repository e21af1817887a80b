"""MSCCL++ execution plans (JSON): the reader, with every rule that their loader and kernel leave to the writer.

Read from microsoft/mscclpp 1f5f065d (src/core/executor/execution_plan.cc, execution_kernel.hpp, execution_common.hpp).
A plan has one entry a GPU: sizes of its buffers in chunks, its channels and remote buffers, and thread blocks whose
operations run in order. The loader looks names up without asking whether they are there and writes past its arrays
where a limit is passed; here all of that is a fault, all at once, each with its place (gpu, tb, op).

What the kernel does that the format does not say, and the reader therefore refuses: ``get`` with different offsets at
its two ends (the kernel swaps them), ``pws`` and ``pwsf`` over memory channels (they give no signal), a ``put`` over
memory channels from buffers of several types (the first one's type counts for all), reading over a port channel.
Operations over a switch (``glres``, ``gstore``, ``gstorepkt``) and ``pipeline`` are read, but not replayed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synth.errors import Fault, InputError
from synth.textfile import read_text

MAX_CHANNEL = 16  # channels, and remote buffers, of one type in a thread block
MAX_CHANNEL_PER_OPERATION = 8
MAX_BUFFERS = 2 + MAX_CHANNEL_PER_OPERATION  # sources, and destinations, of an operation
MAX_OPERATION = 64  # of a thread block
MAX_DEVICE_SYNCERS = 16
MAX_DEVICE_SEMAPHORES = 16
MOST_RANKS, MOST_CHUNKS, MOST_BYTES = 4096, 2**24, 2**30  # ours: of what can be replayed

TYPES = ("memory", "port", "switch")
UNSUPPORTED = ("glres", "gstore", "gstorepkt", "pipeline")
PACKETS = ("ppkt", "rppkt", "respkt", "cpkt", "upkt", "repkt", "recpkt", "recspkt")
# what the sources and destinations of an operation are: l local, p local in packets, r remote, q remote in packets;
# the last may be repeated (+) or left out (*)
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
}
SYNCS = ("signal", "wait", "flush", "rlxsignal", "rlxwait")
NAMES = (*SHAPES, *SYNCS, *UNSUPPORTED, "nop", "barrier", "sem_acquire", "sem_release")


@dataclass(frozen=True, slots=True)
class Span:
    """Chunks of a buffer: whose it is, ``i``, ``o`` or ``s``, the first unit and how many; ``packets``: with flags."""

    rank: int
    buffer: str
    start: int
    size: int
    packets: bool = False


@dataclass(frozen=True, slots=True)
class Op:
    """An operation. ``channels``: numbers among the GPU's channels of ``channel_type``."""

    name: str
    channel_type: str = "none"
    channels: tuple[int, ...] = ()
    src: tuple[Span, ...] = ()
    dst: tuple[Span, ...] = ()
    barrier: int = -1
    parties: int = 0
    semaphores: tuple[int, ...] = ()


@dataclass(frozen=True)
class Gpu:
    """A GPU: chunks of its buffers i, o, s; the peers of its channels by type; first values of its semaphores; the
    operations of its thread blocks."""

    chunks: Mapping[str, int]
    peers: Mapping[str, Sequence[int]]
    semaphores: Sequence[int]
    blocks: Sequence[Sequence[Op]]


@dataclass(frozen=True)
class Plan:
    """An execution plan. Spans count in units, ``units`` of them a chunk (thread block groups split chunks)."""

    name: str
    collective: str
    packets: bool
    in_place: bool
    units: int
    gpus: Sequence[Gpu]
    unsupported: Sequence[str] = ()

    def place(self, rank: int, block: int, op: int) -> str:
        """Where an operation stands, for a message."""
        return f"gpu {rank}, tb {block}, op {op} ({self.gpus[rank].blocks[block][op].name})"


def read(path: Path) -> Plan:
    """The plan in a JSON file. Raises :class:`InputError` with all that the format's rules refuse, and ``OSError``."""
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"is larger than {MOST_BYTES >> 30} GiB", str(path))
    try:
        return parse(read_text(path))
    except UnicodeDecodeError:
        raise InputError("is no text in UTF-8", str(path)) from None
    except InputError as error:
        raise InputError(error.faults, str(path)) from None


def parse(text: str) -> Plan:
    """The plan in a text of JSON. Raises :class:`InputError`."""
    try:
        stored = json.loads(text, parse_constant=lambda word: _no_number(word))
    except RecursionError:
        raise InputError("is nested too deeply") from None
    except ValueError as error:
        raise InputError(f"is no JSON: {error}") from None
    return _Reading().plan(stored)


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


@dataclass
class _Reading:
    faults: list[Fault] = field(default_factory=list)
    unsupported: dict[str, str] = field(default_factory=dict)
    units: int = 1

    def fault(self, place: str, message: str) -> None:
        self.faults.append(Fault(place, message))

    # ------------------------------------------------------------------------------------------------ values by kind

    def value(self, stored: Any, key: str, kind: type, place: str, default: Any = None) -> Any:
        """``stored[key]`` of a kind, or ``default`` (a fault where there is none)."""
        found = stored.get(key, default) if isinstance(stored, dict) else None
        if isinstance(stored, dict) and key not in stored and default is None:
            self.fault(place, f"{key} is missing")
        elif type(found) is not kind:
            words = {int: "a whole number", str: "a text", bool: "true or false", list: "a list", dict: "an object"}
            self.fault(place, f"{key} is not {words[kind]}")
        else:
            return found
        return kind()

    def whole(self, stored: Any, key: str, least: int, most: int, place: str, default: int | None = None) -> int:
        before = len(self.faults)
        found = int(self.value(stored, key, int, place, default))
        if len(self.faults) == before and not least <= found <= most:
            self.fault(place, f"{key} = {found} is outside {least}..{most}")
        return min(max(found, least), most)

    def word(self, stored: Any, key: str, words: Sequence[str], place: str) -> str:
        before = len(self.faults)
        found = str(self.value(stored, key, str, place))
        if len(self.faults) == before and found not in words:
            self.fault(place, f"{key} = {found[:40]!r} is none of {', '.join(words)}")
        return found if found in words else words[0]

    def numbers(self, stored: Any, key: str, most: int, place: str, default: list[int] | None = None) -> list[int]:
        """Whole numbers 0..most."""
        good = []
        for entry in self.value(stored, key, list, place, default):
            if type(entry) is not int or not 0 <= entry <= most:
                self.fault(place, f"{key} holds {str(entry)[:40]}, not one of 0..{most}")
            else:
                good.append(entry)
        return good

    # ------------------------------------------------------------------------------------------------------ the plan

    def plan(self, stored: Any) -> Plan:
        if not isinstance(stored, dict):
            raise InputError("is no plan: the outermost value is no object")
        name, collective = (self.value(stored, key, str, key) for key in ("name", "collective"))
        packets = self.word(stored, "protocol", ("Simple", "LL"), "protocol") == "LL"
        in_place = self.value(stored, "inplace", bool, "inplace")
        for key in ("reuse_resources", "use_double_scratch_buffer"):
            self.value(stored, key, bool, key, False)
        alignment = self.whole(stored, "buffer_alignment", 1, 2**31 - 1, "buffer_alignment", 16)
        if alignment % 16:
            self.fault("buffer_alignment", f"{alignment}: the kernel adds and sends in units of 16 bytes")
        self.whole(stored, "num_threads_per_block", 1, 1024, "num_threads_per_block", 1024)
        least = self.whole(stored, "min_message_size", 0, 2**64 - 1, "min_message_size", 0)
        if least > self.whole(stored, "max_message_size", 0, 2**64 - 1, "max_message_size", 2**64 - 1):
            self.fault("max_message_size", "is less than min_message_size")
        gpus = self.value(stored, "gpus", list, "gpus")
        if not 1 <= len(gpus) <= MOST_RANKS:
            self.fault("gpus", f"there are {len(gpus)}, not 1..{MOST_RANKS}")
        self.units = math.lcm(*_group_sizes(gpus))
        if self.units > 4096:
            self.fault("tbg_info", "thread block groups of too many sizes to be replayed")
            self.units = 1
        if self.faults and not gpus:
            raise InputError(self.faults)
        heads = [self.head(gpu, rank, len(gpus)) for rank, gpu in enumerate(gpus[:MOST_RANKS])]
        made = [self.gpu(gpu, rank, heads) for rank, gpu in enumerate(gpus[:MOST_RANKS])]
        if self.faults:
            raise InputError(self.faults)
        return Plan(name, collective, packets, in_place, self.units, made, tuple(self.unsupported.values()))

    def head(self, gpu: Any, rank: int, ranks: int) -> _Head:
        """What other GPUs refer to."""
        place = f"gpu {rank}"
        if self.whole(gpu, "id", 0, 2**31, place) != rank:
            self.fault(
                place, f"id = {gpu.get('id') if isinstance(gpu, dict) else None}, but it is entry {rank} of gpus"
            )
        chunks = {
            "i": self.whole(gpu, "input_chunks", 1, MOST_CHUNKS, place),
            "o": self.whole(gpu, "output_chunks", 1, MOST_CHUNKS, place),
            "s": self.whole(gpu, "scratch_chunks", 0, MOST_CHUNKS, place),
        }
        peers: dict[str, list[int]] = {kind: [] for kind in TYPES}
        for k, channel in enumerate(self.value(gpu, "channels", list, place)):
            here = f"{place}, channels[{k}]"
            kind = self.word(channel, "channel_type", TYPES, here)
            if kind == "switch":
                self.word(channel, "buffer_type", ("i", "o", "s"), here)
                groups = self.value(channel, "rank_groups", list, here)
                peers[kind] += [rank] * len(groups)
                for group in groups:
                    self.whole(group, "size", 1, MOST_CHUNKS, here)
                    self.numbers(group, "ranks", ranks - 1, here)
                continue
            to = self.numbers(channel, "connected_to", ranks - 1, here)
            if rank in to:
                self.fault(here, f"is connected to gpu {rank} itself")
            peers[kind] += to
        remote = []
        for k, buffer in enumerate(self.value(gpu, "remote_buffers", list, place)):
            here = f"{place}, remote_buffers[{k}]"
            owner = self.whole(buffer, "rank", 0, ranks - 1, here)
            if owner == rank:
                self.fault(here, f"is a buffer of gpu {rank} itself")
            access = self.value(buffer, "access_channel_types", list, here)
            if not access or not all(kind in ("memory", "port") for kind in access):
                self.fault(here, "access_channel_types holds other than memory and port, or nothing")
            remote.append((owner, self.word(buffer, "type", ("i", "o", "s"), here), access))
        first = [
            self.whole(s, "init_value", 0, 2**31 - 1, f"{place}, semaphores[{k}]")
            for k, s in enumerate(self.value(gpu, "semaphores", list, place, []))
        ]
        if len(first) > MAX_DEVICE_SEMAPHORES:
            self.fault(place, f"{len(first)} semaphores, more than MAX_DEVICE_SEMAPHORES = {MAX_DEVICE_SEMAPHORES}")
        return _Head(chunks, peers, remote, first)

    def gpu(self, gpu: Any, rank: int, heads: list[_Head]) -> Gpu:
        head, blocks = heads[rank], []
        for b, block in enumerate(self.value(gpu, "threadblocks", list, f"gpu {rank}")):
            place = f"gpu {rank}, tb {b}"
            if self.whole(block, "id", 0, 2**31, place) != b:
                self.fault(place, "its id is not its place in threadblocks")
            blocks.append(self.block(block, place, rank, heads))
        return Gpu(head.chunks, head.peers, head.semaphores, blocks)

    def block(self, block: Any, place: str, rank: int, heads: list[_Head]) -> list[Op]:
        channels: dict[str, list[int]] = {kind: [] for kind in TYPES}
        for entry in self.value(block, "channels", list, place):
            kind = self.word(entry, "channel_type", TYPES, f"{place}, channels")
            there = len(heads[rank].peers[kind])
            channels[kind] += self.numbers(entry, "channel_ids", there - 1, f"{place}, channels ({kind})")
        buffers: dict[str, list[tuple[int, str]]] = {"memory": [], "port": []}
        for entry in self.value(block, "remote_buffer_refs", list, place, []):
            here = f"{place}, remote_buffer_refs"
            kind = self.word(entry, "access_channel_type", ("memory", "port"), here)
            for number in self.numbers(entry, "remote_buffer_ids", len(heads[rank].remote) - 1, here):
                owner, buffer, access = heads[rank].remote[number]
                if kind not in access:
                    self.fault(here, f"remote buffer {number} is not accessed over a {kind} channel")
                buffers[kind].append((owner, buffer))
        for what, table in (("channels", channels), ("remote buffers", buffers)):
            for kind, entries in table.items():
                if len(entries) > MAX_CHANNEL:
                    self.fault(place, f"{len(entries)} {kind} {what}, more than MAX_CHANNEL = {MAX_CHANNEL}")
        ops = self.value(block, "ops", list, place)
        inner = sum(len(op["ops"]) for op in ops if isinstance(op, dict) and isinstance(op.get("ops"), list))
        if len(ops) + inner > MAX_OPERATION:
            self.fault(place, f"{len(ops) + inner} operations, more than MAX_OPERATION = {MAX_OPERATION}")
        reader = _OpReading(self, rank, heads, channels, buffers)
        return [reader.op(op, f"{place}, op {k}") for k, op in enumerate(ops)]


@dataclass(frozen=True)
class _Head:
    chunks: dict[str, int]
    peers: dict[str, list[int]]
    remote: list[tuple[int, str, list[str]]]
    semaphores: list[int]


@dataclass(frozen=True)
class _OpReading:
    """The operations of one thread block, over its channels and remote buffers by their numbers there."""

    all: _Reading
    rank: int
    heads: list[_Head]
    channels: dict[str, list[int]]
    buffers: dict[str, list[tuple[int, str]]]

    def op(self, op: Any, place: str) -> Op:
        name = self.all.word(op, "name", NAMES, place)
        if not isinstance(op, dict):
            return Op("nop")
        place = f"{place} ({name})"
        if name in UNSUPPORTED:
            self.all.unsupported.setdefault(name, f"{place}: {name} is not replayed")
            return Op(name)
        if name == "nop":
            return Op(name)
        if name == "barrier":
            barrier = self.all.whole(op, "barrier_id", 0, MAX_DEVICE_SYNCERS - 1, place)
            return Op(name, barrier=barrier, parties=self.all.whole(op, "num_threadblocks", 1, 2**16, place))
        if name in ("sem_acquire", "sem_release"):
            there = len(self.heads[self.rank].semaphores)
            semaphores = self.all.numbers(op, "semaphore_ids", there - 1, place)
            if not 1 <= len(semaphores) <= MAX_DEVICE_SEMAPHORES or len(set(semaphores)) != len(semaphores):
                self.all.fault(place, f"semaphore_ids: 1 to {MAX_DEVICE_SEMAPHORES} different ones are right")
            return Op(name, semaphores=tuple(semaphores))
        remote = name not in ("copy", "re", "cpkt", "upkt", "repkt", "recpkt")
        kind = self.all.word(op, "channel_type", ("memory", "port"), place) if remote else "none"
        if name in SYNCS:
            return Op(name, kind, self.channel_ids(op, kind, place, needed=True))
        src, dst = (self.spans(op, key, shape, kind, place) for key, shape in zip(_KEYS, SHAPES[name], strict=True))
        self.fits(name, kind, src, dst, place)
        ids: tuple[int, ...] = ()
        if remote:
            ids = self.channel_ids(op, kind, place, needed=kind == "port")
            if kind == "port":
                self.over_ports(ids, dst, place)
        return Op(name, kind, ids, self.part(op, src, place), self.part(op, dst, place))

    def channel_ids(self, op: Any, kind: str, place: str, needed: bool) -> tuple[int, ...]:
        mine = self.channels[kind]
        ids = self.all.numbers(op, "channel_ids", len(mine) - 1, place, None if needed else [])
        if len(ids) > MAX_CHANNEL_PER_OPERATION:
            most = f"MAX_CHANNEL_PER_OPERATION = {MAX_CHANNEL_PER_OPERATION}"
            self.all.fault(place, f"{len(ids)} channels, more than {most}")
        if needed and not ids and isinstance(op.get("channel_ids"), list) and not op["channel_ids"]:
            self.all.fault(place, "channel_ids is empty")
        found = tuple(mine[i] for i in ids)
        if op.get("name") in SYNCS and len(set(found)) != len(found):
            self.all.fault(place, "one channel twice: its threads would count it once")
        return found

    def spans(self, op: Any, key: str, shape: str, kind: str, place: str) -> list[Span]:
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
        return [self.span(entry, filled[k], kind, f"{place}, {key}[{k}]") for k, entry in enumerate(entries)]

    def span(self, entry: Any, role: str, kind: str, place: str) -> Span:
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

    def fits(self, name: str, kind: str, src: list[Span], dst: list[Span], place: str) -> None:
        """What the kernel asks of an operation beyond its fields."""
        pairwise = name in ("put", "pws", "pwsf", "get", "ppkt")
        if pairwise and len(src) != len(dst):
            self.all.fault(place, f"{len(src)} sources for {len(dst)} destinations")
        pairs = list(zip(src, dst, strict=False)) if pairwise else [(src[0], s) for s in [*src, *dst] if src]
        if any(a.size != b.size for a, b in pairs):
            self.all.fault(place, "sources and destinations are of different sizes")
        if name == "get" and any(a.start != b.start for a, b in pairs):
            self.all.fault(place, "the executor swaps the offsets of its two ends, which differ")
        if kind == "memory" and name in ("put", "ppkt") and len({s.buffer for s in src}) > 1:
            self.all.fault(place, "sources in different buffers: the executor takes the first one's buffer for all")
        if kind == "memory" and name in ("pws", "pwsf"):
            self.all.fault(place, "over memory channels the executor puts, but gives no signal")
        if kind == "port" and name not in ("put", "pws", "pwsf", "ppkt", "rppkt"):
            self.all.fault(place, "the executor does this over memory channels only")

    def over_ports(self, ids: tuple[int, ...], dst: list[Span], place: str) -> None:
        """Over ports the k-th channel carries the k-th put, and must lead to the buffer's owner."""
        if len(ids) != len(dst):
            self.all.fault(place, f"{len(ids)} channels for {len(dst)} destinations")
        for channel, span in zip(ids, dst, strict=False):
            peer = self.heads[self.rank].peers["port"][channel]
            if peer != span.rank:
                self.all.fault(place, f"its channel leads to gpu {peer}, its remote buffer is gpu {span.rank}'s")

    def part(self, op: Any, spans: list[Span], place: str) -> tuple[Span, ...]:
        """The spans in units; of a thread block group's operation the part of this thread block."""
        units, turn, size = self.all.units, 0, 1
        if "tbg_info" in op:
            size = self.all.whole(op["tbg_info"], "tbg_size", 1, 4096, place)
            turn = self.all.whole(op["tbg_info"], "tb_id", 0, max(size - 1, 0), place)
        found = []
        for s in spans:
            share = s.size * units // size
            found.append(Span(s.rank, s.buffer, s.start * units + turn * share, share, s.packets))
        return tuple(found)


_KEYS = ("src_buff", "dst_buff")


def _group_sizes(gpus: list[Any]) -> set[int]:
    """Sizes of thread block groups anywhere in the file, as far as they can be read."""
    sizes, left = {1}, list(gpus)
    while left:
        value = left.pop()
        if isinstance(value, dict):
            group = value.get("tbg_info")
            size = group.get("tbg_size") if isinstance(group, dict) else None
            if type(size) is int and 1 <= size <= 4096:
                sizes.add(size)
            left += [value[key] for key in ("threadblocks", "ops") if isinstance(value.get(key), list)]
        elif isinstance(value, list):
            left += value
    return sizes
