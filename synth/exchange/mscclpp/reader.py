"""Execution plans in: JSON of whatever origin, with all that the format's rules refuse at once."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synth.errors import InputError
from synth.exchange.mscclpp.operations import PACKETS, Head, OpReading
from synth.exchange.mscclpp.plan import (
    ALIGNED,
    EXECUTOR,
    MAX_DEVICE_SEMAPHORES,
    MOST_BYTES,
    MOST_CHUNKS,
    MOST_RANKS,
    ExecutionPlan,
    Gpu,
    Limits,
    Op,
)
from synth.exchange.mscclpp.switches import Group, making_faults, read_groups
from synth.exchange.mscclpp.values import Values
from synth.text.files import read_text

TYPES = ("memory", "port", "switch")  # of channels


def read(path: Path) -> ExecutionPlan:
    """The plan in a JSON file. Raises :class:`InputError` with all that the format's rules refuse, and ``OSError``."""
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"is larger than {MOST_BYTES >> 30} GiB", str(path))
    try:
        return parse(read_text(path))
    except UnicodeDecodeError:
        raise InputError("is no text in UTF-8", str(path)) from None
    except InputError as error:
        raise InputError(error.faults, str(path)) from None


def parse(text: str, limits: Limits = EXECUTOR) -> ExecutionPlan:
    """The plan in a text of JSON. Raises :class:`InputError`."""
    try:
        stored = json.loads(text, parse_constant=lambda word: _no_number(word))
    except RecursionError:
        raise InputError("is nested too deeply") from None
    except ValueError as error:
        raise InputError(f"is no JSON: {error}") from None
    return understood(stored, limits)


def understood(stored: Any, limits: Limits = EXECUTOR) -> ExecutionPlan:
    """The plan in what JSON holds. Raises :class:`InputError`."""
    return _Reading(limits).plan(stored)


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


@dataclass
class _Reading:
    limits: Limits
    values: Values = field(default_factory=Values)
    unsupported: dict[str, str] = field(default_factory=dict)
    reached: Counter[str] = field(default_factory=Counter)
    units: int = 1

    def plan(self, stored: Any) -> ExecutionPlan:
        if not isinstance(stored, dict):
            raise InputError("is no plan: the outermost value is no object")
        name, collective = (self.values.value(stored, key, str, key) for key in ("name", "collective"))
        packets = self.values.word(stored, "protocol", ("Simple", "LL"), "protocol") == "LL"
        in_place = self.values.value(stored, "inplace", bool, "inplace")
        for key in ("reuse_resources", "use_double_scratch_buffer"):
            self.values.value(stored, key, bool, key, False)
        alignment = self.values.whole(stored, "buffer_alignment", 1, 2**31 - 1, "buffer_alignment", 16)
        if alignment % ALIGNED:
            self.values.fault("buffer_alignment", f"{alignment}: the kernel adds and sends in units of {ALIGNED} bytes")
        self.values.whole(stored, "num_threads_per_block", 1, 1024, "num_threads_per_block", 1024)
        least = self.values.whole(stored, "min_message_size", 0, 2**64 - 1, "min_message_size", 0)
        most = self.values.whole(stored, "max_message_size", 0, 2**64 - 1, "max_message_size", 2**64 - 1)
        if least > most:
            self.values.fault("max_message_size", "is less than min_message_size")
        gpus = self.values.value(stored, "gpus", list, "gpus")
        if not 1 <= len(gpus) <= MOST_RANKS:
            self.values.fault("gpus", f"there are {len(gpus)}, not 1..{MOST_RANKS}")
        self.units = math.lcm(*_group_sizes(gpus))
        if self.units > 4096:
            self.values.fault("tbg_info", "thread block groups of too many sizes to be replayed")
            self.units = 1
        root = self.values.whole(stored, "root", 0, max(len(gpus) - 1, 0), "root") if "root" in stored else None
        if self.values.faults and not gpus:
            raise InputError(self.values.faults)
        heads = self.heads(gpus[:MOST_RANKS])
        made = [self.gpu(gpu, rank, heads) for rank, gpu in enumerate(gpus[:MOST_RANKS])]
        wants = self.wanted(gpus[:MOST_RANKS], heads)
        if self.values.faults:
            raise InputError(self.values.faults)
        if not packets and _with_packets(made):
            self.unsupported["packets"] = "packets under protocol Simple, which has no flags, are not replayed"
        unsupported = tuple(self.unsupported.values())
        return ExecutionPlan(name, collective, packets, in_place, self.units, made, unsupported, root, most, wants)

    def wanted(self, gpus: list[Any], heads: list[Head]) -> list[list[int]] | None:
        """How many chunks every GPU is to get from each, where the parts of an alltoall are given."""
        if not any(isinstance(gpu, dict) and "wanted_chunks" in gpu for gpu in gpus):
            return None
        each = heads[0].chunks["i"] // len(gpus)
        found = [self.values.numbers(gpu, "wanted_chunks", each, f"gpu {rank}") for rank, gpu in enumerate(gpus)]
        for rank, row in enumerate(found):
            if len(row) != len(gpus):
                self.values.fault(f"gpu {rank}", f"wanted_chunks has {len(row)} numbers, not one for each gpu")
        return found

    def heads(self, gpus: list[Any]) -> list[Head]:
        """What other GPUs refer to, of all."""
        found = [self.head(gpu, rank, len(gpus)) for rank, gpu in enumerate(gpus)]
        if not self.values.faults:
            self.values.faults += making_faults([head.groups for head in found], [head.chunks for head in found])
        return found

    def head(self, gpu: Any, rank: int, ranks: int) -> Head:
        """What other GPUs refer to."""
        place = f"gpu {rank}"
        if self.values.whole(gpu, "id", 0, 2**31, place) != rank:
            self.values.fault(
                place, f"id = {gpu.get('id') if isinstance(gpu, dict) else None}, but it is entry {rank} of gpus"
            )
        chunks = {
            "i": self.values.whole(gpu, "input_chunks", 1, MOST_CHUNKS, place),
            "o": self.values.whole(gpu, "output_chunks", 1, MOST_CHUNKS, place),
            "s": self.values.whole(gpu, "scratch_chunks", 0, MOST_CHUNKS, place),
        }
        peers: dict[str, list[int]] = {"memory": [], "port": []}
        groups: list[Group] = []
        for k, channel in enumerate(self.values.value(gpu, "channels", list, place)):
            here = f"{place}, channels[{k}]"
            kind = self.values.word(channel, "channel_type", TYPES, here)
            if kind == "switch":
                groups += read_groups(self.values, channel, rank, ranks, here)
                continue
            to = self.values.numbers(channel, "connected_to", ranks - 1, here)
            if rank in to:
                self.values.fault(here, f"is connected to gpu {rank} itself")
            peers[kind] += to
        remote = []
        for k, buffer in enumerate(self.values.value(gpu, "remote_buffers", list, place)):
            here = f"{place}, remote_buffers[{k}]"
            owner = self.values.whole(buffer, "rank", 0, ranks - 1, here)
            if owner == rank:
                self.values.fault(here, f"is a buffer of gpu {rank} itself")
            access = self.values.value(buffer, "access_channel_types", list, here)
            if not access or not all(kind in ("memory", "port") for kind in access):
                self.values.fault(here, "access_channel_types holds other than memory and port, or nothing")
            remote.append((owner, self.values.word(buffer, "type", ("i", "o", "s"), here), access))
        first = [
            self.values.whole(s, "init_value", 0, 2**31 - 1, f"{place}, semaphores[{k}]")
            for k, s in enumerate(self.values.value(gpu, "semaphores", list, place, []))
        ]
        if len(first) > MAX_DEVICE_SEMAPHORES:
            self.values.fault(
                place, f"{len(first)} semaphores, more than MAX_DEVICE_SEMAPHORES = {MAX_DEVICE_SEMAPHORES}"
            )
        return Head(chunks, peers, remote, first, groups)

    def gpu(self, gpu: Any, rank: int, heads: list[Head]) -> Gpu:
        head, blocks = heads[rank], []
        for b, block in enumerate(self.values.value(gpu, "threadblocks", list, f"gpu {rank}")):
            place = f"gpu {rank}, tb {b}"
            if self.values.whole(block, "id", 0, 2**31, place) != b:
                self.values.fault(place, "its id is not its place in threadblocks")
            blocks.append(self.block(block, place, rank, heads))
        return Gpu(head.chunks, head.peers, head.semaphores, blocks)

    def block(self, block: Any, place: str, rank: int, heads: list[Head]) -> list[Op]:
        channels: dict[str, list[int]] = {kind: [] for kind in TYPES}
        for entry in self.values.value(block, "channels", list, place):
            kind = self.values.word(entry, "channel_type", TYPES, f"{place}, channels")
            there = len(heads[rank].groups if kind == "switch" else heads[rank].peers[kind])
            channels[kind] += self.values.numbers(entry, "channel_ids", there - 1, f"{place}, channels ({kind})")
        buffers: dict[str, list[tuple[int, str]]] = {"memory": [], "port": []}
        for entry in self.values.value(block, "remote_buffer_refs", list, place, []):
            here = f"{place}, remote_buffer_refs"
            kind = self.values.word(entry, "access_channel_type", ("memory", "port"), here)
            for number in self.values.numbers(entry, "remote_buffer_ids", len(heads[rank].remote) - 1, here):
                owner, buffer, access = heads[rank].remote[number]
                if kind not in access:
                    self.values.fault(here, f"remote buffer {number} is not accessed over a {kind} channel")
                buffers[kind].append((owner, buffer))
        for what, table in (("channels", channels), ("remote buffers", buffers)):
            for kind, entries in table.items():
                if len(entries) > (most := self.limits.channels):
                    self.values.fault(place, f"{len(entries)} {kind} {what}, more than MAX_CHANNEL = {most}")
        ops = self.values.value(block, "ops", list, place)
        inner = sum(len(op["ops"]) for op in ops if isinstance(op, dict) and isinstance(op.get("ops"), list))
        if len(ops) + inner > (most := self.limits.operations):
            self.values.fault(place, f"{len(ops) + inner} operations, more than MAX_OPERATION = {most}")
        reader = OpReading(self.values, self.units, self.unsupported, rank, heads, channels, buffers, self.reached)
        return [reader.op(op, (place, ", op ", k)) for k, op in enumerate(ops)]


def _with_packets(gpus: list[Gpu]) -> bool:
    """Whether any operation sends or reads packets."""
    ops = [op for gpu in gpus for block in gpu.blocks for op in block]
    return any(op.name in PACKETS for one in ops for op in (one, *one.body))


def _group_sizes(gpus: list[Any]) -> set[int]:
    """Sizes of thread block groups anywhere in the file, as far as they can be read."""
    sizes, left = {1}, list(gpus)
    while left:
        value = left.pop()
        if isinstance(value, dict):
            if isinstance(group := value.get("tbg_info"), dict):
                size = group.get("tbg_size")
                if type(size) is int and 1 <= size <= 4096:
                    sizes.add(size)
            for key in ("threadblocks", "ops"):
                if isinstance(inner := value.get(key), list):
                    left += inner
        elif isinstance(value, list):
            left += value
    return sizes
