"""A Chakra trace as flat arrays, and how its files are called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synth.arrays import IntArray
from synth.exchange.chakra.messages import RECV, SEND
from synth.exchange.transfers import Demand

TAGS = 500_000_000  # Sys.hh: tags of sends in a custom collective are taken modulo this


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
    demand: Demand | None = None

    def sizes(self, parts: int) -> IntArray:
        """Bytes of every part, shape (parts,)."""
        return np.full(parts, self.part_bytes, dtype=np.int64) if self.demand is None else self.demand.bytes


@dataclass(frozen=True)
class Trace:
    """The files of a trace. Nodes are numbered through, rank by rank in the order of the files.

    ``rank``, ``node`` (the node's id in its file), ``kind`` (COMP, SEND, RECV, ORDER), ``size`` (bytes), ``peer``,
    ``tag`` (0, -1, -1 for COMP and ORDER): shape (nodes,). The nodes that node k depends on:
    ``dep[dep_start[k]:dep_start[k + 1]]``.
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

    @property
    def piece(self) -> IntArray:
        """The piece of every node by its tag (the tag itself where the files do not say how many there are)."""
        pieces = 0 if self.pieces is None else len(self.pieces.piece_part)
        return np.where(self.tag >= 0, self.tag % pieces, -1) if pieces else self.tag

    def place(self, k: int) -> str:
        """Where node k stands, for a message."""
        what = {SEND: f"send to {self.peer[k]}", RECV: f"receive from {self.peer[k]}"}.get(int(self.kind[k]), "compute")
        return f"{self.prefix}.{self.rank[k]}.et, node {self.node[k]} ({what})"


def file_of(prefix: Path, rank: int) -> Path:
    """The file of a rank."""
    return prefix.with_name(f"{prefix.name}.{rank}.et")


def ranks_there(prefix: Path) -> list[int]:
    found = (path.name[len(prefix.name) + 1 : -3] for path in prefix.parent.glob("*.et") if _named(path, prefix))
    return [int(text) for text in found]


def _named(path: Path, prefix: Path) -> bool:
    middle = path.name[len(prefix.name) + 1 : -3]
    return path.name.startswith(prefix.name + ".") and middle.isascii() and middle.isdecimal() and len(middle) < 10
