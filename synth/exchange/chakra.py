"""Chakra execution traces: the schedule as one file a rank that ASTRA-sim replays as a custom collective.

The files are ``PREFIX.<rank>.et``. A transfer is a COMM_SEND_NODE in the sender's file and a COMM_RECV_NODE in the
receiver's; where the receiver adds, a COMP_NODE stands behind the receive (without a duration, which ASTRA-sim takes
for 1 ns). A send depends on the node that made what it sends; a COMP_NODE depends on its receive and on the node that
made the sum before it. Nothing else is ordered: the simulated network decides. ``comm_tag`` is the number of the piece;
where one pair exchanges a piece more than once, the later nodes also depend on the earlier ones.

What ASTRA-sim (518bd51) asks for, by reading ``CustomAlgorithm.cc`` and ``Sys.cc``: ``comm_size`` in bytes and above 0,
tags below 500,000,000, dependences in ``data_deps`` and within one file, and at least one node in every file (an idle
rank has a COMP_NODE that does nothing).

What the pieces are stands in the metadata (the table of pieces in rank 0's only), from which :func:`read` gives the
transfers back; a trace of others has no such table, its nodes can be checked but no collective replayed.
"""

from __future__ import annotations

import json
import os
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from synth.errors import Fault, InputError
from synth.exchange.algorithm import COLLECTIVES
from synth.exchange.chakra_messages import (
    COLL,
    COLLECTIVE_NUMBERS,
    COMP,
    RECV,
    SEND,
    GlobalMetadata,
    Node,
    read_messages,
    write_message,
)
from synth.exchange.dataflow import carried
from synth.exchange.transfers import Transfers

IntArray = npt.NDArray[np.int64]

VERSION = "0.0.4"  # of the schema, as ASTRA-sim's own workloads write it
TAGS = 500_000_000  # Sys.hh: tags of sends in a custom collective are taken modulo this
MOST_FAULTS = 10_000
CUSTOM_KEYS = {  # system JSON; the others have no key, their trace is run in allgather's place
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "alltoall": "all-to-all",
}


@dataclass(frozen=True)
class Pieces:
    """What the tags of a trace stand for: the fields of :class:`Transfers` of the same names."""

    name: str
    collective: str
    root: int | None
    part_bytes: int
    piece_part: IntArray
    piece_offset: IntArray
    piece_bytes: IntArray


@dataclass(frozen=True)
class Trace:
    """The files of a trace. Nodes are numbered through, rank by rank in the order of the files.

    ``rank``, ``node`` (the node's id in its file), ``kind`` (COMP, SEND, RECV), ``size`` (bytes), ``peer``, ``tag`` (0,
    -1, -1 for COMP): shape (nodes,). The nodes that node k depends on: ``dep[dep_start[k]:dep_start[k + 1]]``.
    ``pieces``: what the tags stand for, or None where the files do not say.
    """

    prefix: str
    ranks: int
    rank: IntArray
    node: IntArray
    kind: IntArray
    size: IntArray
    peer: IntArray
    tag: IntArray
    dep_start: IntArray
    dep: IntArray
    pieces: Pieces | None = None

    def place(self, k: int) -> str:
        """Where node k stands, for a message."""
        what = {SEND: f"send to {self.peer[k]}", RECV: f"receive from {self.peer[k]}"}.get(int(self.kind[k]), "compute")
        return f"{self.prefix}.{self.rank[k]}.et, node {self.node[k]} ({what})"


def file_of(prefix: Path, rank: int) -> Path:
    """The file of a rank."""
    return prefix.with_name(f"{prefix.name}.{rank}.et")


def write(transfers: Transfers, prefix: Path) -> list[Path]:
    """Write ``PREFIX.<rank>.et`` for every rank, node by node, each file whole or not at all; returns the paths.

    Raises :class:`InputError` where ASTRA-sim's limits are not met, or files of more ranks lie there already, and
    ``OSError``.
    """
    if len(transfers.piece_part) > TAGS:
        raise InputError(f"{len(transfers.piece_part):,} pieces; ASTRA-sim takes tags modulo {TAGS:,}")
    if len(transfers.piece_bytes) and transfers.piece_bytes.min() < 1:
        raise InputError("there is a piece without a byte; ASTRA-sim sends none")
    others = sorted(rank for rank in _ranks_there(prefix) if rank >= transfers.ranks)
    if others:
        raise InputError(
            f"{file_of(prefix, others[0])} is there already, but this trace has ranks 0 to {transfers.ranks - 1}"
        )
    sent, prior = carried(transfers)
    count = len(transfers.piece)
    again = _again(transfers)
    # the events of every rank: arrivals and starts in time, so that a node stands behind all it depends on
    rank = np.concatenate([transfers.dst, transfers.src])
    starts = np.repeat([False, True], count)
    order = np.lexsort((starts, np.concatenate([transfers.end_s, transfers.start_s]), rank))
    bounds = np.searchsorted(rank[order], np.arange(transfers.ranks + 1))
    made = np.full(count, -1, dtype=np.int64)  # the node that made an arrival's state
    writer = _Writer(transfers, sent, prior, again, made)
    paths = []
    for r in range(transfers.ranks):
        paths.append(file_of(prefix, r))
        with _whole_file(paths[-1]) as stream:
            write_message(stream, _metadata(transfers, r))
            writer.rank(stream, order[bounds[r] : bounds[r + 1]].tolist())
    return paths


class _Writer:
    def __init__(self, t: Transfers, sent: IntArray, prior: IntArray, again: IntArray, made: IntArray) -> None:
        self.t, self.sent, self.prior, self.again, self.made = t, sent, prior, again, made
        self.bytes = t.piece_bytes
        self.count = len(t.piece)
        self.templates = {}
        for kind, peer in ((SEND, "comm_dst"), (RECV, "comm_src")):
            node = self.templates[kind] = Node(type=kind)
            node.attr.add(name="comm_type", int64_val=kind)
            node.attr.add(name="comm_size", int64_val=1)
            node.attr.add(name=peer, int32_val=0)
            node.attr.add(name="comm_tag", int32_val=0)

    def rank(self, stream: BinaryIO, events: list[int]) -> None:
        """The nodes of one rank: ``events`` are transfers (arrivals) and transfers + count (starts)."""
        t, number = self.t, 0
        first: dict[tuple[int, int], int] = {}  # (kind, transfer) -> node, of those that are repeated later
        repeated = set(self.again[self.again >= 0].tolist())
        for event in events:
            k, kind = (event, RECV) if event < self.count else (event - self.count, SEND)
            earlier = int(self.again[k])
            deps = [first[kind, earlier]] if earlier >= 0 else []
            if kind == SEND and self.sent[k] >= 0:
                deps.append(int(self.made[self.sent[k]]))
            if k in repeated:
                first[kind, k] = number
            self._transfer(stream, kind, number, k, deps)
            number += 1
            if kind == RECV:
                self.made[k] = number - 1
                if t.adds[k]:
                    before = [int(self.made[self.prior[k]])] if self.prior[k] >= 0 else []
                    write_message(
                        stream,
                        Node(id=number, name=f"add {t.piece[k]}", type=COMP, data_deps=[number - 1, *before]),
                    )
                    self.made[k] = number
                    number += 1
        if number == 0:
            write_message(stream, Node(id=0, name="idle", type=COMP))

    def _transfer(self, stream: BinaryIO, kind: int, number: int, k: int, deps: list[int]) -> None:
        t, piece = self.t, int(self.t.piece[k])
        node, sends = self.templates[kind], kind == SEND
        peer = int(t.dst[k] if sends else t.src[k])
        node.id, node.name = number, f"send {piece} to {peer}" if sends else f"receive {piece} from {peer}"
        del node.data_deps[:]
        node.data_deps.extend(sorted(set(deps)))
        _, size, other, tag = node.attr
        size.int64_val, other.int32_val, tag.int32_val = int(self.bytes[piece]), peer, piece
        write_message(stream, node)


def _again(t: Transfers) -> IntArray:
    """The earlier transfer of the same piece over the same pair next before each; -1 for none; shape (transfers,)."""
    key = (t.src * t.ranks + t.dst) * max(len(t.piece_part), 1) + t.piece
    order = np.argsort(key, kind="stable")
    found = np.full(len(key), -1, dtype=np.int64)
    same = key[order[1:]] == key[order[:-1]]
    found[order[1:][same]] = order[:-1][same]
    return found


def _metadata(t: Transfers, rank: int) -> Any:
    metadata = GlobalMetadata(version=VERSION)
    metadata.attr.add(name="schema", string_val="synth-transfers/1")
    metadata.attr.add(name="name", string_val=t.name)
    metadata.attr.add(name="collective", string_val=t.collective)
    numbers = [("ranks", t.ranks), ("rank", rank), ("root", -1 if t.root is None else t.root)]
    for name, value in [*numbers, ("part_bytes", t.part_bytes)]:
        metadata.attr.add(name=name, int64_val=value)
    if rank == 0:
        for name in ("piece_part", "piece_offset", "piece_bytes"):
            metadata.attr.add(name=name).int64_list.values.extend(getattr(t, name).tolist())
    return metadata


@contextmanager
def _whole_file(path: Path) -> Iterator[BinaryIO]:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_example(transfers: Transfers, prefix: Path) -> list[Path]:
    """Write what ASTRA-sim needs beside the traces: ``PREFIX.system.json`` and a workload of this one collective,
    ``PREFIX.workload.<rank>.et``; returns the paths.

    The traces are named there relative to the folder in which ASTRA-sim is started, here the one they lie in. ASTRA-sim
    has keys for four custom collectives; a trace of another runs in allgather's place, as the sizes that count are the
    trace's own.
    """
    system = prefix.with_name(f"{prefix.name}.system.json")
    system.write_text(system_lines(transfers.collective, prefix.name), encoding="utf-8")
    as_run = transfers.collective if transfers.collective in CUSTOM_KEYS else "allgather"
    paths = [system]
    for rank in range(transfers.ranks):
        paths.append(file_of(prefix.with_name(f"{prefix.name}.workload"), rank))
        with _whole_file(paths[-1]) as stream:
            write_message(stream, GlobalMetadata(version=VERSION))
            node = Node(id=0, name=transfers.collective, type=COLL)
            node.attr.add(name="is_cpu_op", bool_val=False)
            node.attr.add(name="comm_type", int64_val=COLLECTIVE_NUMBERS[as_run])
            node.attr.add(name="comm_size", int64_val=_collective_bytes(transfers))
            write_message(stream, node)
    return paths


def system_lines(collective: str, prefix: str) -> str:
    """ASTRA-sim's system JSON that replays the trace ``PREFIX.<rank>.et`` as ``collective``."""
    key = CUSTOM_KEYS.get(collective, CUSTOM_KEYS["allgather"])
    system = {
        "scheduling-policy": "FIFO",
        "preferred-dataset-splits": 1,
        f"{key}-implementation-custom": [prefix],
        "local-mem-bw": 50,
    }
    return json.dumps(system, indent=2) + "\n"


def _collective_bytes(t: Transfers) -> int:
    """The size as nccl-tests and ASTRA-sim count it; ASTRA-sim reports it, but replays the sizes of the trace."""
    return t.part_bytes if t.collective in ("allreduce", "broadcast", "reduce") else t.part_bytes * t.ranks


def _ranks_there(prefix: Path) -> list[int]:
    found = (path.name[len(prefix.name) + 1 : -3] for path in prefix.parent.glob("*.et") if _named(path, prefix))
    return [int(text) for text in found]


def _named(path: Path, prefix: Path) -> bool:
    middle = path.name[len(prefix.name) + 1 : -3]
    return path.name.startswith(prefix.name + ".") and middle.isascii() and middle.isdecimal() and len(middle) < 10


# ----------------------------------------------------------------------------------------------------------- reading


@dataclass
class _Reading:
    """What has been read so far, flat, and all that is wrong with it."""

    prefix: Path
    ranks: int
    faults: list[Fault] = field(default_factory=list)
    columns: dict[str, array[int]] = field(
        default_factory=lambda: {name: array("q") for name in ("rank", "node", "kind", "size", "peer", "tag", "deps")}
    )
    dep: array[int] = field(default_factory=lambda: array("q"))
    about: dict[str, Any] = field(default_factory=dict)

    def fault(self, place: str, message: str) -> None:
        self.faults.append(Fault(place, message))
        if len(self.faults) >= MOST_FAULTS:
            raise InputError(self.faults)


def read(prefix: Path) -> Trace:
    """Read ``PREFIX.<rank>.et``, ranks 0, 1, … without gaps. Raises :class:`InputError` with all that is wrong in the
    files themselves (what is wrong among them is :func:`synth.exchange.chakra_check.faults`' business)."""
    there = _ranks_there(prefix)
    if not there:
        raise InputError(f"there is no file {file_of(prefix, 0)}")
    if len(set(there)) != max(there) + 1:
        missing = min(set(range(len(there) + 1)) - set(there))
        raise InputError(f"{prefix.name}.{max(there)}.et is there, but {prefix.name}.{missing}.et is missing")
    reading = _Reading(prefix, len(there))
    for rank in range(reading.ranks):
        path = file_of(prefix, rank)
        try:
            with path.open("rb") as stream:
                _read_rank(reading, rank, stream, path.stat().st_size)
        except OSError as error:
            reading.fault(path.name, f"cannot be read: {error.strerror}")
    pieces = _pieces(reading)
    if reading.faults:
        raise InputError(reading.faults)
    columns = {name: np.array(values, dtype=np.int64) for name, values in reading.columns.items()}
    dep_start = np.concatenate([[0], np.cumsum(columns.pop("deps"))]).astype(np.int64)
    return Trace(
        prefix.name, reading.ranks, dep_start=dep_start, dep=np.array(reading.dep, np.int64), pieces=pieces, **columns
    )


def _read_rank(reading: _Reading, rank: int, stream: BinaryIO, size: int) -> None:
    file, base = file_of(reading.prefix, rank).name, len(reading.columns["rank"])
    number_of: dict[int, int] = {}  # id in the file -> node
    waiting: list[tuple[int, list[int]]] = []
    messages = read_messages(stream, size)
    try:
        metadata = next(messages, None)
        if metadata is not None:
            _read_metadata(reading, rank, file, metadata)
        for node in messages:
            here = f"{file}, node {node.id}"
            if node.id in number_of:
                reading.fault(here, "this id is taken")
            if node.id >= 2**63:
                reading.fault(here, "ids are below 2^63 here")
                continue
            number_of[node.id] = base + len(number_of)
            _read_node(reading, rank, here, node)
            waiting.append((node.id, [*node.data_deps, *node.ctrl_deps]))
    except ValueError as error:
        reading.fault(file, str(error))
    if not number_of and not any(f.path == file for f in reading.faults):
        reading.fault(file, "has no nodes: ASTRA-sim stops at a file without one")
    for number, deps in waiting:
        unknown = [d for d in deps if d not in number_of]
        if unknown:
            reading.fault(f"{file}, node {number}", f"depends on node {unknown[0]}, which is not in this file")
        known = sorted({number_of[d] for d in deps if d in number_of})
        reading.columns["deps"].append(len(known))
        reading.dep.extend(known)


def _read_node(reading: _Reading, rank: int, here: str, node: Any) -> None:
    size, peer, tag = 0, -1, -1
    if node.type in (SEND, RECV):
        values = {a.name: _whole(a) for a in node.attr}
        name = "comm_dst" if node.type == SEND else "comm_src"
        size = _attribute(reading, here, values, "comm_size", 1, 2**62)
        peer = _attribute(reading, here, values, name, 0, reading.ranks - 1)
        tag = _attribute(reading, here, values, "comm_tag", 0, TAGS - 1)
        if peer == rank:
            reading.fault(here, f"{name} = {peer} is the rank itself")
        if values.get("comm_type", node.type) != node.type:
            reading.fault(here, f"comm_type = {values['comm_type']} is not its type, {node.type}")
    elif node.type != COMP:
        reading.fault(
            here, f"type {node.type}: a custom collective has compute (4), send (5) and receive (6) nodes only"
        )
    columns = reading.columns
    for column, value in zip(columns, (rank, node.id, node.type, size, peer, tag), strict=False):
        columns[column].append(value)


def _attribute(reading: _Reading, here: str, values: dict[str, int | None], name: str, least: int, most: int) -> int:
    value = values.get(name)
    if value is None:
        reading.fault(here, f"{name} is {'no whole number' if name in values else 'missing'}")
    elif not least <= value <= most:
        reading.fault(here, f"{name} = {value} is outside {least}..{most}")
    else:
        return value
    return least


def _whole(attribute: Any) -> int | None:
    kind = attribute.WhichOneof("value")
    whole = kind in ("int32_val", "int64_val", "uint32_val", "uint64_val")
    return int(getattr(attribute, kind)) if whole else None


def _read_metadata(reading: _Reading, rank: int, file: str, metadata: Any) -> None:
    values: dict[str, Any] = {}
    for attribute in metadata.attr:
        kind = attribute.WhichOneof("value")
        if kind == "int64_list":
            values[attribute.name] = np.array(attribute.int64_list.values, dtype=np.int64)
        elif kind is not None:
            values[attribute.name] = getattr(attribute, kind)
    if values.get("schema") != "synth-transfers/1":
        return
    if values.get("ranks") != reading.ranks or values.get("rank") != rank:
        said = f"rank {values.get('rank')} of {values.get('ranks')}"
        reading.fault(file, f"says that it is {said}, but is rank {rank} of {reading.ranks}")
    if rank == 0:
        reading.about = values
    elif any(values.get(key) != reading.about.get(key) for key in ("name", "collective", "root", "part_bytes")):
        reading.fault(file, "is of another collective than rank 0's file")


def _pieces(reading: _Reading) -> Pieces | None:
    about, file = reading.about, file_of(reading.prefix, 0).name
    if not about:
        return None
    wrong: list[str] = []
    collective, name = about.get("collective"), about.get("name")
    if collective not in COLLECTIVES:
        wrong.append(f"collective is none of {', '.join(COLLECTIVES)}")
    if not isinstance(name, str):
        wrong.append("name is missing")
    root, part_bytes = about.get("root"), about.get("part_bytes")
    rooted = collective in ("broadcast", "reduce", "gather", "scatter")
    if type(root) is not int or not (0 if rooted else -1) <= root < (reading.ranks if rooted else 0):
        wrong.append(f"root is {root}")
    if type(part_bytes) is not int or not 0 < part_bytes < 2**62:
        wrong.append(f"part_bytes is {part_bytes}")
    tables = [about.get(key) for key in ("piece_part", "piece_offset", "piece_bytes")]
    if (
        not all(isinstance(table, np.ndarray) for table in tables)
        or len({len(t) for t in tables if t is not None}) != 1
    ):
        wrong.append("piece_part, piece_offset and piece_bytes are not three lists of one length")
    for message in wrong:
        reading.fault(file, f"metadata: {message}")
    if wrong:
        return None
    part, offset, size = (np.asarray(table) for table in tables)
    return Pieces(str(name), str(collective), None if root == -1 else root, int(part_bytes or 0), part, offset, size)
