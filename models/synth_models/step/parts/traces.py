"""Chakra execution traces in: ``PREFIX.<rank>.et``, a file a rank, as the nodes of a step.

Kinds and attributes are those of Chakra's schema and what ASTRA-sim asks for (``Workload.cc`` at 0383c20, ``Ring.cc``
at 019586d): a compute node takes ``num_ops`` over a rank's rate, where both are told, or ``duration_micros``; a
collective has ``comm_type``, ``comm_size`` (of an allgather a rank's own share) and ``pg_name``, the group of ranks,
all of them where it is empty or 0. The n-th collective of a group in every file is the same one; sends and receives
meet by tag in their order. Nodes of other kinds keep their place and what they are said to take, on a stream of their
own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from synth.errors import Fault, InputError
from synth.exchange.chakra.messages import COLL, COLLECTIVE_NUMBERS, COMP, RECV, SEND, read_messages
from synth.instance import parse_json
from synth.text.input_file import InputFile
from synth_models.step.instance import MOST_BYTES, MOST_SECONDS
from synth_models.step.parts.reading import MOST_READ, Assumed, Reading, finished, message

KINDS = {0: "invalid", 1: "metadata", 2: "memory load", 3: "memory store", 8: "storage", 9: "batch", 10: "checkpoint"}
COLLECTIVES: dict[int | None, str] = {COLLECTIVE_NUMBERS[name]: name for name in
               ("allreduce", "allgather", "broadcast", "alltoall", "reduce_scatter")}  # fmt: skip
NEGATIVE = 1 << 63


def trace_nodes(prefix: Path, assumed: Assumed) -> tuple[dict[str, Any], list[str]]:
    """The nodes of all files, with the classes of ranks that are alike, and what was assumed, in words. ``prefix``: the
    beginning of the files' names, or one file. Raises :class:`InputError` naming nodes and files."""
    files = _files(prefix)
    reading = Reading({rank: path.name for rank, path in files.items()}, assumed)
    for rank, path in files.items():
        _read_file(reading, rank, InputFile(path).data)
    return finished(reading, str(prefix))


def read_groups(file: InputFile | None) -> dict[str, list[int]]:
    """Groups of ranks by name, as ASTRA-sim reads them: one JSON object. Raises :class:`InputError`."""
    raw = {} if file is None else parse_json(file.data, str(file))
    good = isinstance(raw, dict)
    wrong = [name for name, ranks in raw.items() if not _are_ranks(ranks)] if good else []
    if not good or wrong:
        told = [Fault(name, "must be ranks, each once") for name in wrong]
        raise InputError(told or "groups are one JSON object of names and ranks", str(file))
    return dict(raw)


def _are_ranks(ranks: Any) -> bool:
    whole = isinstance(ranks, list) and all(type(rank) is int and 0 <= rank < 1 << 20 for rank in ranks)
    return whole and len(set(ranks)) == len(ranks) >= 1


def _files(prefix: Path) -> dict[int, Path]:
    """The files by rank."""
    pattern = re.compile(r"(.+)[.]([0-9]{1,6})[.]et")
    own = pattern.fullmatch(prefix.name)
    stem = prefix.name.removesuffix(".*.et")
    among = [prefix] if own else prefix.parent.glob("*.et")
    found = [(int(match[2]), path) for path in among if (match := pattern.fullmatch(path.name))
             and (own or match[1] == stem)]  # fmt: skip
    if not found:
        raise InputError("there is no file PREFIX.<rank>.et", str(prefix))
    return dict(sorted(found))


def _read_file(reading: Reading, rank: int, data: bytes) -> None:
    file = reading.files[rank]
    messages = read_messages(BytesIO(data), len(data))
    try:
        next(messages, None)
        for turn, node in enumerate(messages):
            here = f"{file}, node {node.id}"
            if (rank, node.id) in reading.waits:
                reading.fault(here, "this id is taken")
                continue
            reading.waits[rank, node.id] = sorted({*node.data_deps, *node.ctrl_deps})
            _read_node(reading, rank, turn, node, here)
    except ValueError as error:
        reading.fault(file, str(error))
    if len(reading.nodes) > MOST_READ:
        raise InputError(f"has more than {MOST_READ} nodes with the ranks before it", file)


def _read_node(reading: Reading, rank: int, turn: int, node: Any, here: str) -> None:
    values = {one.name: getattr(one, kind) for one in node.attr if (kind := one.WhichOneof("value"))}
    name = f"{rank}.{node.id}"
    if node.type == COLL and len(reading.assumed.groups.get(_group(values), "  ")) == 1:
        reading.alone += 1
        number = reading.add(here, {"kind": "computation", "name": name, "rank": rank, "seconds": 0.0,
                                      "stream": "other"})  # fmt: skip
    elif node.type == COLL and (kind := COLLECTIVES.get(_whole(values.get("comm_type", 0)))):
        number = _collective(reading, rank, kind, values, name, here)
    elif node.type in (SEND, RECV):
        number = _message(reading, rank, node.type == SEND, values, name, here)
    else:
        number = reading.add(here, _computation(reading, rank, node, values, name, here))
    reading.keep(rank, node.id, turn, number)


def _computation(
    reading: Reading, rank: int, node: Any, values: Mapping[str, Any], name: str, here: str
) -> dict[str, Any]:
    seconds, stream = node.duration_micros / 1e6, "cpu" if values.get("is_cpu_op") is True else "compute"
    if node.duration_micros >= NEGATIVE:
        reading.fault(here, f"takes {node.duration_micros - 2 * NEGATIVE} us: negative")
        seconds = 0.0
    elif node.type != COMP:
        stream = "other"
        reading.other["collective of another kind" if node.type == COLL else KINDS.get(node.type, "unknown")] += 1
    elif work := _whole(values.get("num_ops")):
        if reading.assumed.flops is None and not node.duration_micros:
            reading.fault(here, f"has {work} operations and no duration: give flops=")
        seconds = work / reading.assumed.flops if reading.assumed.flops else seconds
    if seconds > MOST_SECONDS:
        reading.fault(here, f"takes {seconds:.3g} s, more than {MOST_SECONDS:g}")
    return {"kind": "computation", "name": name, "rank": rank, "seconds": seconds, "stream": stream}


def _collective(reading: Reading, rank: int, kind: str, values: Mapping[str, Any], name: str, here: str) -> int:
    """The node of a collective; the first rank that has it makes it, the others must agree."""
    group = _group(values)
    size = _size(reading, values, here)
    key = ("collective", group, reading.of_group[rank, group])
    reading.of_group[rank, group] += 1
    ranks = reading.assumed.groups.get(group)
    if ranks is not None and rank not in ranks:
        reading.fault(here, f"rank {rank} is not of its group {group}")
    members = len(ranks) if ranks else reading.assumed.size or (len(reading.files) if not group else 0)
    if members < 2:
        reading.fault(here, f"the size of its group{' ' * bool(group)}{group} is not known: give groups= or group=")
        members = 2
    moved = size * members if kind == "allgather" else size
    if moved > MOST_BYTES:
        reading.fault(here, f"leaves {moved} bytes at every rank, more than {MOST_BYTES}")
    if key not in reading.met:
        reading.met[key] = reading.add(
            here, {"kind": "operation", "name": name, "collective": kind, "bytes": moved, "ranks": [rank],
                            "group": members, "link": reading.assumed.link})  # fmt: skip
        return reading.met[key]
    number = reading.met[key]
    first = reading.nodes[number]
    if (first["collective"], first["bytes"]) != (kind, moved):
        there = f"{reading.place[number]} has {first['collective']} of {first['bytes']}"
        reading.fault(here, f"{kind} of {moved} bytes, but {there}")
    first["ranks"].append(rank)
    return number


def _group(values: Mapping[str, Any]) -> str:
    """The name of its group of ranks, empty for all of them."""
    group = str(values.get("pg_name", "") or "")
    return "" if group == "0" else group


def _size(reading: Reading, values: Mapping[str, Any], here: str) -> int:
    size = _whole(values.get("comm_size"))
    if size is None or size > MOST_BYTES:
        reading.fault(here, "comm_size is missing, or no whole number of bytes that can be")
        return 0
    return size


def _message(reading: Reading, rank: int, sends: bool, values: Mapping[str, Any], name: str, here: str) -> int:
    """The node of a message."""
    peer, size = _whole(values.get("comm_dst" if sends else "comm_src")), _size(reading, values, here)
    if peer is None or peer == rank or peer >= 1 << 20:
        reading.fault(here, "has no other rank to meet (comm_dst of a send, comm_src of a receive)")
        peer = rank + 1
    ends = (rank, peer) if sends else (peer, rank)
    return message(reading, ends, sends, _whole(values.get("comm_tag")) or 0, size, name, here)


def _whole(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
