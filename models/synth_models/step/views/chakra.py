"""A timetable as Chakra traces for ASTRA-sim: ``PREFIX.<rank>.et`` and ``PREFIX.groups.json``.

What a stream or port serves next depends on what it served before, so that a simulator keeps the timetable's order.
Durations are whole microseconds there, and a duration of 0 is 1 ns in ASTRA-sim.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from synth.errors import InputError
from synth.exchange.chakra.messages import (
    COLL,
    COLLECTIVE_NUMBERS,
    COMP,
    RECV,
    SEND,
    GlobalMetadata,
    Node,
    write_message,
)
from synth.text.files import dumps, write_atomically
from synth_models.step.instance import Computation, Operation, StepInstance, ranks_of
from synth_models.step.solution import Timetable

VERSION = "0.0.4"


def traces(instance: StepInstance, timetable: Timetable, prefix: Path) -> list[Path]:
    """Write the files; returns their paths. Raises :class:`InputError` for ranks that stand for others."""
    ranks = ranks_of(instance)
    if (
        ranks != list(range(len(ranks)))
        or instance.alike > 1
        or any(_stands_for_others(node) for node in instance.nodes)
    ):
        raise InputError("a trace needs every rank, from 0 on: here ranks stand for others that are alike")
    groups = {of: str(i) for i, of in enumerate(sorted(set(_groups(instance))), 1)}
    before = _ordered(instance, timetable)
    messages: dict[int, list[Any]] = defaultdict(list)
    for i in sorted(range(len(instance.nodes)), key=lambda i: (int(timetable.start[i]), i)):
        for rank in sorted({rank for _, rank, _ in instance.places[i]}):
            messages[rank].append(_message(instance, i, rank, before[i][rank], groups))
    written = []
    for rank in ranks:
        stream = BytesIO()
        write_message(stream, GlobalMetadata(version=VERSION))
        for message in messages[rank]:
            write_message(stream, message)
        written.append(prefix.with_name(f"{prefix.name}.{rank}.et"))
        write_atomically(written[-1], stream.getvalue())
    written.append(prefix.with_name(f"{prefix.name}.groups.json"))
    write_atomically(written[-1], dumps({name: list(of) for of, name in groups.items()}).encode())
    return written


def _groups(instance: StepInstance) -> Iterator[tuple[int, ...]]:
    """The ranks of every collective."""
    for node in instance.nodes:
        if isinstance(node, Operation) and node.collective != "send":
            yield tuple(sorted(node.ranks))


def _stands_for_others(node: Any) -> bool:
    return isinstance(node, Operation) and node.size != len(node.ranks)


def _ordered(instance: StepInstance, timetable: Timetable) -> list[dict[int, set[int]]]:
    """Of every node, by rank, what of that rank it comes after: what it says, and what its places served before."""
    at = [{rank for _, rank, _ in places} for places in instance.places]
    found = [{rank: {k for k in instance.before[i] if rank in at[k]} for rank in at[i]} for i in range(len(at))]
    last: dict[tuple[str, int, str], int] = {}
    for i in sorted(range(len(at)), key=lambda i: (int(timetable.start[i]), i)):
        for place in instance.places[i]:
            if place in last:
                found[i][place[1]].add(last[place])
            last[place] = i
    return found


def _message(
    instance: StepInstance, number: int, rank: int, before: set[int], groups: Mapping[tuple[int, ...], str]
) -> Any:
    one = instance.nodes[number]
    message = Node(id=number, name=one.name, data_deps=sorted(before))
    if isinstance(one, Computation):
        message.type, message.duration_micros = COMP, round(one.seconds * 1e6)
        message.attr.add(name="is_cpu_op", bool_val=one.stream == "cpu")
        return message
    message.attr.add(name="is_cpu_op", bool_val=False)
    size = one.bytes
    if one.collective == "send":
        sends = rank == one.ranks[0]
        message.type = SEND if sends else RECV
        message.attr.add(name="comm_dst" if sends else "comm_src", int32_val=one.ranks[1 if sends else 0])
        message.attr.add(name="comm_tag", int32_val=number)
    else:
        message.type = COLL
        message.attr.add(name="comm_type", int64_val=COLLECTIVE_NUMBERS[one.collective])
        message.attr.add(name="pg_name", string_val=groups[tuple(sorted(one.ranks))])
        size = -(-size // one.size) if one.collective == "allgather" else size
    message.attr.add(name="comm_size", int64_val=size)
    return message
