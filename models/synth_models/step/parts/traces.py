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
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from synth.errors import Fault, InputError
from synth.exchange.chakra.messages import COLL, COLLECTIVE_NUMBERS, COMP, RECV, SEND, read_messages
from synth.instance import parse_json
from synth.text.input_file import InputFile
from synth_models.step.instance import MOST_BYTES, MOST_NODES, MOST_SECONDS, SHOWN
from synth_models.step.parts.folding import Folded, folded
from synth_models.step.parts.order import cycles, ordered

KINDS = {0: "invalid", 1: "metadata", 2: "memory load", 3: "memory store", 8: "storage", 9: "batch", 10: "checkpoint"}
COLLECTIVES: dict[int | None, str] = {COLLECTIVE_NUMBERS[name]: name for name in
               ("allreduce", "allgather", "broadcast", "alltoall", "reduce_scatter")}  # fmt: skip
NEGATIVE = 1 << 63
MOST_READ = 1 << 20  # nodes of all ranks


@dataclass(frozen=True)
class Assumed:
    """What a trace may not say: ``groups``: ranks by name; ``size``: of a group that is not named there; ``flops``:
    operations a second of a rank; ``link``: the one class of links."""

    groups: Mapping[str, list[int]]
    size: int | None
    flops: float | None
    link: str


@dataclass
class _Reading:
    """Nodes by number, where each stands, and all that is wrong. ``waits``: what each comes after, as places."""

    files: dict[int, str]
    assumed: Assumed
    nodes: list[dict[str, Any]] = field(default_factory=list)
    place: list[str] = field(default_factory=list)
    turn: list[int] = field(default_factory=list)  # in the order of its file
    number: dict[tuple[int, int], int] = field(default_factory=dict)  # (rank, id): node
    waits: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    of_group: Counter[tuple[int, str]] = field(default_factory=Counter)
    met: dict[tuple[Any, ...], int] = field(default_factory=dict)  # collective or message: node
    alone: int = 0  # collectives of one rank
    other: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fault(self, place: str, words: str) -> None:
        self.faults.append(Fault(place, words))


def trace_nodes(prefix: Path, assumed: Assumed) -> tuple[dict[str, Any], list[str]]:
    """The nodes of all files, with the classes of ranks that are alike, and what was assumed, in words. ``prefix``: the
    beginning of the files' names, or one file. Raises :class:`InputError` naming nodes and files."""
    files = _files(prefix)
    reading = _Reading({rank: path.name for rank, path in files.items()}, assumed)
    for rank, path in files.items():
        _read_file(reading, rank, InputFile(path).data)
    _missing(reading)
    alike = _folded(reading)
    before = _join(reading, alike)
    if reading.faults:
        raise InputError(reading.faults, str(prefix))
    raw = _quotient(reading, alike, before)
    if len(raw["nodes"]) > MOST_NODES:
        raise InputError(f"has {len(raw['nodes'])} nodes of classes of ranks, more than {MOST_NODES}", str(prefix))
    return raw, _notes(reading, alike)


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


def _read_file(reading: _Reading, rank: int, data: bytes) -> None:
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


def _read_node(reading: _Reading, rank: int, turn: int, node: Any, here: str) -> None:
    values = {one.name: getattr(one, kind) for one in node.attr if (kind := one.WhichOneof("value"))}
    name = f"{rank}.{node.id}"
    if node.type == COLL and len(reading.assumed.groups.get(_group(values), "  ")) == 1:
        reading.alone += 1
        number = _add(reading, here, {"kind": "computation", "name": name, "rank": rank, "seconds": 0.0,
                                      "stream": "other"})  # fmt: skip
    elif node.type == COLL and (kind := COLLECTIVES.get(_whole(values.get("comm_type", 0)))):
        number = _collective(reading, rank, kind, values, name, here)
    elif node.type in (SEND, RECV):
        number = _message(reading, rank, node.type == SEND, values, name, here)
    else:
        number = _add(reading, here, _computation(reading, rank, node, values, name, here))
    reading.number[rank, node.id] = number
    if number == len(reading.turn):
        reading.turn.append(turn)


def _add(reading: _Reading, here: str, node: dict[str, Any]) -> int:
    reading.nodes.append(node)
    reading.place.append(here)
    return len(reading.nodes) - 1


def _computation(
    reading: _Reading, rank: int, node: Any, values: Mapping[str, Any], name: str, here: str
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


def _collective(reading: _Reading, rank: int, kind: str, values: Mapping[str, Any], name: str, here: str) -> int:
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
        reading.met[key] = _add(
            reading, here, {"kind": "operation", "name": name, "collective": kind, "bytes": moved, "ranks": [rank],
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


def _message(reading: _Reading, rank: int, sends: bool, values: Mapping[str, Any], name: str, here: str) -> int:
    """The node of a message, which its send and its receive share."""
    peer, size = _whole(values.get("comm_dst" if sends else "comm_src")), _size(reading, values, here)
    if peer is None or peer == rank or peer >= 1 << 20:
        reading.fault(here, "has no other rank to meet (comm_dst of a send, comm_src of a receive)")
        peer = rank + 1
    ends = (rank, peer) if sends else (peer, rank)
    tagged = (*ends, _whole(values.get("comm_tag")) or 0)
    turn = reading.of_group[rank, f"{sends} {tagged}"]
    reading.of_group[rank, f"{sends} {tagged}"] += 1
    key = ("message", *tagged, turn)
    if key not in reading.met:
        reading.met[key] = _add(
            reading, here, {"kind": "operation", "name": name, "collective": "send", "bytes": size, "ranks": [rank],
                            "peer": peer, "group": 2, "link": reading.assumed.link})  # fmt: skip
        return reading.met[key]
    number = reading.met[key]
    if reading.nodes[number]["bytes"] != size:
        reading.fault(here, f"{size} bytes, but {reading.place[number]} has {reading.nodes[number]['bytes']}")
    reading.nodes[number]["ranks"] = list(ends)
    return number


def _size(reading: _Reading, values: Mapping[str, Any], here: str) -> int:
    size = _whole(values.get("comm_size"))
    if size is None or size > MOST_BYTES:
        reading.fault(here, "comm_size is missing, or no whole number of bytes that can be")
        return 0
    return size


def _whole(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _missing(reading: _Reading) -> None:
    """Note the ranks of groups that have no file, and name messages and collectives that a traced rank lacks."""
    alone: dict[str, list[int]] = defaultdict(list)
    for key, number in reading.met.items():
        node = reading.nodes[number]
        group = key[1] if key[0] == "collective" else ""
        peer = node.pop("peer", None)
        named = [node["ranks"][0], peer] if peer is not None else reading.assumed.groups.get(group) or (
            list(reading.files) if not group else node["ranks"])  # fmt: skip
        lacking = [rank for rank in named if rank in reading.files and rank not in node["ranks"]]
        if lacking:
            files = ", ".join(reading.files[rank] for rank in lacking[:SHOWN])
            reading.fault(reading.place[number], f"nothing in {files} meets it")
        if len(node["ranks"]) < node["group"]:
            alone["messages" if peer is not None else f"group {group}" if group else "all ranks"].append(number)
    for words, numbers in alone.items():
        first = reading.nodes[numbers[0]]
        reading.notes.append(
            f"Of {words} ({first['group']} ranks) {len(first['ranks'])} traced: "
            "the others are taken to come when these do"
        )


def _folded(reading: _Reading) -> Folded:
    """The classes of the ranks by what their files say."""
    own: dict[int, list[int]] = {rank: [] for rank in reading.files}
    looks: dict[int, list[Hashable]] = {rank: [] for rank in reading.files}
    place: dict[tuple[int, int], int] = {}
    for rank, one in reading.waits:
        place[rank, one] = len(own[rank])
        own[rank].append(reading.number[rank, one])
    for (rank, one), deps in reading.waits.items():
        node = reading.nodes[reading.number[rank, one]]
        what = (node["seconds"], node["stream"]) if node["kind"] == "computation" else (
            node["collective"], node["bytes"], node["group"], node["ranks"].index(rank) if
            node["collective"] == "send" else 0)  # fmt: skip
        looks[rank].append((*what, *(place.get((rank, dep), -1) for dep in deps)))
    ranks_of = [node["ranks"] if node["kind"] == "operation" else [node["rank"]] for node in reading.nodes]
    return folded(own, ranks_of, looks)


def _join(reading: _Reading, alike: Folded) -> dict[int, set[int]]:
    """What every node that stands for others comes after, by numbers; names what waits for itself."""
    before: dict[int, set[int]] = {number: set() for number in alike.groups}
    for (rank, own), deps in reading.waits.items():
        number = reading.number[rank, own]
        if alike.stands[number] != number:
            continue
        for one in deps:
            if (rank, one) in reading.number:
                before[number].add(alike.stands[reading.number[rank, one]])
            else:
                here = f"{reading.files[rank]}, node {own}"
                reading.fault(here, f"depends on node {one}, which is not in this file")
    place = {number: i for i, number in enumerate(before)}
    for cycle in cycles([sorted(place[k] for k in row) for row in before.values()]):
        more = f" and {len(cycle) - SHOWN} more" if len(cycle) > SHOWN else ""
        names = [reading.place[number] for number, i in place.items() if i in set(cycle[:SHOWN])]
        reading.fault(names[0], f"waits for itself: {'; '.join(names)}{more}")
    return before


def _quotient(reading: _Reading, alike: Folded, before: dict[int, set[int]]) -> dict[str, Any]:
    """Nodes of the classes in the order of issue: each behind what it comes after, else by its turn in its file."""
    numbers = list(before)
    place = {number: i for i, number in enumerate(numbers)}
    rows = [sorted(place[k] for k in before[number]) for number in numbers]
    order = ordered(rows, [float(reading.turn[number]) for number in numbers])
    first = {rank: one[0] for one in alike.classes for rank in one}
    among: dict[tuple[tuple[int, ...], ...], int] = {}
    found = []
    for i in order:
        node = reading.nodes[numbers[i]]
        node["after"] = [reading.nodes[numbers[k]]["name"] for k in rows[i]]
        if node["kind"] == "operation" and len(alike.classes) < len(first):
            table = tuple(alike.groups[numbers[i]])
            node["ranks"] = list(dict.fromkeys(first[rank] for rank in node["ranks"]))
            if all(len(group) == node["group"] for group in table):  # else some of its ranks have no file
                node["among"] = among.setdefault(table, len(among))
        found.append(node)
    if len(alike.classes) == len(first):
        return {"nodes": found}
    return {"classes": alike.classes, "groups": list(among), "nodes": found}


def _notes(reading: _Reading, alike: Folded) -> list[str]:
    notes = list(reading.notes)
    if len(alike.classes) < len(reading.files):
        notes.append(f"{len(reading.files)} ranks are {len(alike.classes)} classes of ranks that are alike")
    if reading.alone:
        notes.append(f"{reading.alone} collectives of groups of one rank move nothing")
    if reading.other:
        told = ", ".join(f"{many} {kind}" for kind, many in reading.other.most_common())
        notes.append(f"Nodes of kinds that are not understood keep their place and duration: {told}")
    return notes
