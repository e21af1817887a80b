"""Chakra traces out: the schedule, and what ASTRA-sim needs beside it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from synth.arrays import IntArray
from synth.errors import InputError
from synth.exchange.chakra.held_back import held_back
from synth.exchange.chakra.link_order import LinkOrder
from synth.exchange.chakra.messages import (
    COLL,
    COLLECTIVE_NUMBERS,
    COMP,
    ORDER_NAME,
    RECV,
    SCHEMA,
    SEND,
    GlobalMetadata,
    Node,
    write_message,
)
from synth.exchange.chakra.trace import TAGS, file_of, ranks_there
from synth.exchange.dataflow import carried
from synth.exchange.tags import tags
from synth.exchange.transfers import Transfers

VERSION = "0.0.4"  # of the schema, as ASTRA-sim's own workloads write it
CUSTOM_KEYS = {  # system JSON; the others have no key, their trace is run in allgather's place
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "alltoall": "all-to-all",
}


def write(transfers: Transfers, prefix: Path) -> list[Path]:
    """Write ``PREFIX.<rank>.et`` for every rank, node by node, each file whole or not at all; returns the paths.

    Raises :class:`InputError` where ASTRA-sim's limits are not met, or files of more ranks lie there already, and
    ``OSError``.
    """
    if len(transfers.piece_bytes) and transfers.piece_bytes.min() < 1:
        raise InputError("there is a piece without a byte; ASTRA-sim sends none")
    others = sorted(rank for rank in ranks_there(prefix) if rank >= transfers.ranks)
    if others:
        raise InputError(
            f"{file_of(prefix, others[0])} is there already, but this trace has ranks 0 to {transfers.ranks - 1}"
        )
    sent, prior = carried(transfers)
    count = len(transfers.piece)
    tag = tags(transfers)
    if tag.size and tag.max() >= TAGS:
        raise InputError(f"{tag.max() + 1:,} tags; ASTRA-sim takes them modulo {TAGS:,}")
    # the events of every rank: arrivals and starts in time, so that a node stands behind all it depends on
    rank = np.concatenate([transfers.dst, transfers.src])
    starts = np.repeat([False, True], count)
    order = np.lexsort((starts, np.concatenate([transfers.end_s, transfers.start_s]), rank))
    bounds = np.searchsorted(rank[order], np.arange(transfers.ranks + 1))
    made = np.full(count, -1, dtype=np.int64)  # the node that made an arrival's state
    writer = _Writer(transfers, sent, prior, tag, made)
    paths = []
    for r in range(transfers.ranks):
        paths.append(file_of(prefix, r))
        with _whole_file(paths[-1]) as stream:
            write_message(stream, _metadata(transfers, r))
            writer.rank(stream, order[bounds[r] : bounds[r + 1]].tolist())
    return paths


class _Writer:
    def __init__(self, t: Transfers, sent: IntArray, prior: IntArray, tag: IntArray, made: IntArray) -> None:
        self.t, self.sent, self.prior, self.tag, self.made = t, sent, prior, tag, made
        self.held = held_back(t, sent)
        self.order = LinkOrder(t, sent, prior, self.held)
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
        ordering: dict[int, int] = {}  # the last node that orders the sends to a rank
        for event in events:
            k, kind = (event, RECV) if event < self.count else (event - self.count, SEND)
            deps = self.awaited(k) if kind == SEND else []
            before = self.order.before(k) if kind == SEND else None
            if before is not None:
                peer = int(t.dst[k])
                after = self.awaited(before) + ([ordering[peer]] if peer in ordering else [])
                write_message(stream, Node(id=number, name=ORDER_NAME, type=COMP, data_deps=after))
                ordering[peer] = number
                deps.append(number)
                number += 1
            self._transfer(stream, kind, number, k, deps)
            number += 1
            if kind == RECV:
                self.made[k] = number - 1
                if t.adds[k]:
                    other = [int(self.made[self.prior[k]])] if self.prior[k] >= 0 else []
                    write_message(
                        stream,
                        Node(id=number, name=f"add {t.piece[k]}", type=COMP, data_deps=[number - 1, *other]),
                    )
                    self.made[k] = number
                    number += 1
        if number == 0:
            write_message(stream, Node(id=0, name="idle", type=COMP))

    def awaited(self, k: int) -> list[int]:
        """The nodes that made what a send carries, and that it is held back behind."""
        return [int(self.made[arrival]) for arrival in (self.sent[k], self.held[k]) if arrival >= 0]

    def _transfer(self, stream: BinaryIO, kind: int, number: int, k: int, deps: list[int]) -> None:
        t, piece = self.t, int(self.t.piece[k])
        node, sends = self.templates[kind], kind == SEND
        peer = int(t.dst[k] if sends else t.src[k])
        node.id, node.name = number, f"send {piece} to {peer}" if sends else f"receive {piece} from {peer}"
        del node.data_deps[:]
        node.data_deps.extend(deps)
        _, size, other, tag = node.attr
        size.int64_val, other.int32_val, tag.int32_val = int(self.bytes[piece]), peer, int(self.tag[k])
        write_message(stream, node)


def _metadata(t: Transfers, rank: int) -> Any:
    metadata = GlobalMetadata(version=VERSION)
    metadata.attr.add(name="schema", string_val=SCHEMA)
    metadata.attr.add(name="name", string_val=t.name)
    metadata.attr.add(name="collective", string_val=t.collective)
    numbers = [("ranks", t.ranks), ("rank", rank), ("root", -1 if t.root is None else t.root)]
    for name, value in [*numbers, ("part_bytes", t.part_bytes)]:
        metadata.attr.add(name=name, int64_val=value)
    if rank == 0:
        for name in ("piece_part", "piece_offset", "piece_bytes"):
            metadata.attr.add(name=name).int64_list.values.extend(getattr(t, name).tolist())
        for name, values in (t.demand._asdict() if t.demand is not None else {}).items():
            metadata.attr.add(name=f"demand_{name}").int64_list.values.extend(values.tolist())
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
    """The size as ASTRA-sim's own algorithms count it (Ring.cc, All_Gather: ``final_data_size = data_size *
    nodes_in_ring``): what a rank has at the beginning, and so every rank's part of an allgather or gather; of an
    alltoall, reduce-scatter or scatter all that it sends. A custom collective replays the sizes of its trace."""
    if t.demand is not None:
        return max(1, int(np.bincount(t.demand.origin, t.demand.bytes, t.ranks).max(initial=0)))
    whole = ("alltoall", "reduce_scatter", "scatter")
    return t.part_bytes * t.ranks if t.collective in whole else t.part_bytes
