"""Chakra traces in: files of whatever origin to flat arrays, with all that is wrong in them at once."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from synth.errors import Fault, InputError
from synth.exchange.chakra.messages import COMP, ORDER, ORDER_NAME, RECV, SCHEMA, SEND, read_messages
from synth.exchange.chakra.trace import TAGS, Pieces, Trace, file_of, ranks_there
from synth.exchange.transfers import Demand
from synth.schedule.collective import NAMES

MOST_FAULTS = 10_000
TABLES = ("piece_part", "piece_offset", "piece_bytes")
DEMAND_TABLES = ("demand_origin", "demand_goal", "demand_bytes")


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
    files themselves (what is wrong among them is :func:`synth.exchange.chakra.check.faults`' business)."""
    there = ranks_there(prefix)
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
    kind = ORDER if node.type == COMP and node.name == ORDER_NAME else node.type
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
    for column, value in zip(columns, (rank, node.id, kind, size, peer, tag), strict=False):
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
    if values.get("schema") != SCHEMA:
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
    wrong = list(_metadata_faults(about, reading.ranks))
    for message in wrong:
        reading.fault(file, f"metadata: {message}")
    if wrong:
        return None
    part, offset, size = (np.asarray(about[key]) for key in TABLES)
    root = None if about["root"] == -1 else about["root"]
    demand = Demand(*(about[key] for key in DEMAND_TABLES)) if about["collective"] == "demand" else None
    return Pieces(about["name"], about["collective"], root, about["part_bytes"], part, offset, size, demand)


def _metadata_faults(about: Mapping[str, Any], ranks: int) -> Iterator[str]:
    """What is wrong with what the first file says of the collective."""
    collective = about.get("collective")
    if collective == "demand":
        yield from _demand_faults(about, ranks)
    elif collective not in NAMES:
        yield f"collective is none of {', '.join(NAMES)}"
    if not isinstance(about.get("name"), str):
        yield "name is missing"
    root, part_bytes = about.get("root"), about.get("part_bytes")
    rooted = collective in ("broadcast", "reduce", "gather", "scatter")
    if type(root) is not int or not (0 if rooted else -1) <= root < (ranks if rooted else 0):
        yield f"root is {root}"
    if type(part_bytes) is not int or not 0 < part_bytes < 2**62:
        yield f"part_bytes is {part_bytes}"
    tables = [table for key in TABLES if isinstance(table := about.get(key), np.ndarray)]
    if len(tables) != len(TABLES) or len({len(table) for table in tables}) != 1:
        yield "piece_part, piece_offset and piece_bytes are not three lists of one length"


def _demand_faults(about: Mapping[str, Any], ranks: int) -> Iterator[str]:
    """What is wrong with the parts of a demand."""
    tables = [table for key in DEMAND_TABLES if isinstance(table := about.get(key), np.ndarray)]
    if len(tables) != len(DEMAND_TABLES) or len({len(table) for table in tables}) != 1:
        yield f"{', '.join(DEMAND_TABLES)} are not three lists of one length"
        return
    origin, goal, size = tables
    if np.any((origin < 0) | (origin >= ranks) | (goal < 0) | (goal >= ranks)):
        yield f"a part of the demand leaves ranks 0..{ranks - 1}"
    most = about.get("part_bytes")
    if type(most) is int and np.any((size < 0) | (size > most)):
        yield "a part of the demand is larger than part_bytes, or negative"
