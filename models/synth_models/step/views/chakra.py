"""A timetable as Chakra traces for ASTRA-sim: ``PREFIX.<rank>.et`` and ``PREFIX.groups.json``.

What a stream or port serves next depends on what it served before, so that a simulator keeps the timetable's order.
Durations are whole microseconds there, and a duration of 0 is 1 ns in ASTRA-sim. So a node tells its operations too,
for ranks of :data:`OPERATIONS` a second: with ``roofline-enabled`` and that ``peak-perf`` it counts nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
OPERATIONS = 10**12  # a second
LEAST = 1000  # operations, a nanosecond: what takes less has its nanosecond on the CPU


def traces(instance: StepInstance, timetable: Timetable, prefix: Path) -> list[Path]:
    """Write the files, of every rank of a class one; returns their paths. Raises :class:`InputError` for ranks that
    stand for others of which it is not said which meet."""
    classes = {row[0]: row for row in instance.classes} or {rank: (rank,) for rank in ranks_of(instance)}
    ranks = sorted(rank for row in classes.values() for rank in row)
    if ranks != list(range(len(ranks))) or _stands_for_others(instance):
        raise InputError("a trace needs every rank, from 0 on: here ranks stand for others that are alike")
    groups, before, written = _groups(instance), _ordered(instance, timetable), list[Path]()
    in_time = sorted(range(len(instance.nodes)), key=lambda i: (int(timetable.start[i]), i))
    meets = [dict(_meeting(table)) for table in instance.groups]
    for first, row in classes.items():
        own = [i for i in in_time if first in before[i]]
        for rank in row:
            stream = BytesIO()
            write_message(stream, GlobalMetadata(version=VERSION))
            for i in own:
                met = _met(instance, i, rank, meets)
                write_message(stream, _message(instance, i, rank, before[i][first], met, groups))
            written.append(prefix.with_name(f"{prefix.name}.{rank}.et"))
            write_atomically(written[-1], stream.getvalue())
    written.append(prefix.with_name(f"{prefix.name}.groups.json"))
    write_atomically(written[-1], dumps({name: list(of) for of, name in groups.items()}).encode())
    return written


def _meeting(table: tuple[tuple[int, ...], ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Every rank with its group."""
    yield from ((rank, group) for group in table for rank in group)


def _met(
    instance: StepInstance, number: int, rank: int, meets: Sequence[Mapping[int, tuple[int, ...]]]
) -> tuple[int, ...]:
    """The ranks that take part in a node with this one."""
    one = instance.nodes[number]
    if isinstance(one, Computation):
        return (rank,)
    return one.ranks if one.among is None else meets[one.among][rank]


def _groups(instance: StepInstance) -> dict[tuple[int, ...], str]:
    """The names of the groups that run collectives, by their ranks."""
    found = set()
    for node in instance.nodes:
        if isinstance(node, Operation) and node.collective != "send":
            found.add((node.ranks,) if node.among is None else instance.groups[node.among])
    each = sorted({tuple(sorted(group)) for table in found for group in table})
    return {of: str(i) for i, of in enumerate(each, 1)}


def _stands_for_others(instance: StepInstance) -> bool:
    operations = (node for node in instance.nodes if isinstance(node, Operation) and node.among is None)
    return instance.alike > 1 or any(node.size != len(node.ranks) for node in operations)


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
    instance: StepInstance,
    number: int,
    rank: int,
    before: set[int],
    met: tuple[int, ...],
    groups: Mapping[tuple[int, ...], str],
) -> Any:
    """The node of a rank; ``met``: those that take part in its collective or message."""
    one = instance.nodes[number]
    message = Node(id=number, name=one.name, data_deps=sorted(before))
    if isinstance(one, Computation):
        message.type, message.duration_micros = COMP, round(one.seconds * 1e6)
        work = round(one.seconds * OPERATIONS)
        message.attr.add(name="is_cpu_op", bool_val=one.stream == "cpu" or work < LEAST)
        if work >= LEAST:
            message.attr.add(name="num_ops", int64_val=work)
            message.attr.add(name="tensor_size", uint64_val=1)
        return message
    message.attr.add(name="is_cpu_op", bool_val=False)
    size = one.bytes
    if one.collective == "send":
        sends = rank == met[0]
        message.type = SEND if sends else RECV
        message.attr.add(name="comm_dst" if sends else "comm_src", int32_val=met[1 if sends else 0])
        message.attr.add(name="comm_tag", int32_val=number)
    else:
        message.type = COLL
        message.attr.add(name="comm_type", int64_val=COLLECTIVE_NUMBERS[one.collective])
        message.attr.add(name="pg_name", string_val=groups[tuple(sorted(met))])
        size = -(-size // one.size) if one.collective == "allgather" else size
    message.attr.add(name="comm_size", int64_val=size)
    return message
