"""What every family's schedule is once it leaves: pieces of data that go from rank to rank, one after the other.

A family names the function that makes it (``Family.transfers``); nothing here knows a family.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.schedule.collective import REDUCING

EVERYONE = -1


class Ticks(NamedTuple):
    """When every transfer begins and has arrived, exactly: ``start`` and ``end`` in ``per_s``-ths of a second."""

    start: IntArray
    end: IntArray
    per_s: int


class Demand(NamedTuple):
    """Data from one rank to another: the part's ``origin``, ``goal`` and ``bytes``, shape (parts,) each."""

    origin: IntArray
    goal: IntArray
    bytes: IntArray


@dataclass(frozen=True)
class Transfers:
    """A collective among ``ranks`` ranks (0, 1, …: their places in the process group) as moves of pieces.

    A piece is a contiguous range of bytes of one *part* of the data. Parts by collective (N ranks): ``allgather``,
    ``gather``: part r is rank r's; ``reduce_scatter``, ``scatter``: part r is what rank r ends with; ``alltoall``: part
    r N + t goes from r to t (a rank's own parts need no pieces); ``broadcast``, ``reduce``, ``allreduce``: one part, 0.
    ``part_bytes`` is the size of every part (all parts of a collective are of one size).
    No collective of executors is ``demand``: its parts are those of ``demand``, of any size up to ``part_bytes``.
    Where several may begin or end with one of them, ``begins`` and ``ends`` say which ranks, shape (parts, ranks), and
    ``origin`` is the first that begins with all of it, or :data:`EVERYONE`: each contributes, and the sum is wanted.

    ``piece_part``, ``piece_offset``, ``piece_bytes``: shape (pieces,); pieces of a part do not overlap and cover it,
    but for a part that no piece moves. ``piece``, ``src``, ``dst``, ``adds``: shape (transfers,), in an order in which
    every transfer comes after all it needs; with ``adds`` the receiver adds what it gets to its own partial sum,
    otherwise it stores a copy. ``start_s``, ``end_s``: when each begins and has arrived, in seconds, shape (transfers,)
    (timesteps counted as seconds where a family has no clock); only their order matters to an executor: what is sent
    is what has arrived by ``start_s``, so two ranks that add their sums to each other's at once each get the other's.
    ``ticks`` are the same times exactly, where a family has a clock.
    ``channel_hint``: which of several parallel links or trees a transfer belongs to, shape (transfers,), -1 for none.
    ``together``: transfers of one piece with one number of 0 or more are one stream of a switch that reaches all their
    ranks: those that add have one receiver, and the switch adds them up; copies have one sender, and the switch copies
    what it sends. -1 for a transfer on its own; shape (transfers,), None where all are.
    ``outlet``: transfers with one number leave their rank over one link, or over links that take turns; shape
    (transfers,), None where nobody knows.
    ``wants``: of an alltoall of given parts, how much of every part is to arrive, from its beginning on, as
    ``part_bytes`` counts; shape (parts,), None where all of all parts is.
    ``summed``: what switches add in the schedule where ranks do in these moves, in words, or empty.
    """

    name: str
    collective: str
    ranks: int
    root: int | None
    part_bytes: int
    piece_part: IntArray
    piece_offset: IntArray
    piece_bytes: IntArray
    piece: IntArray
    src: IntArray
    dst: IntArray
    adds: BoolArray
    start_s: FloatArray
    end_s: FloatArray
    channel_hint: IntArray
    ticks: Ticks | None = None
    demand: Demand | None = None
    together: IntArray | None = None
    summed: str = ""
    outlet: IntArray | None = None
    wants: IntArray | None = None
    begins: BoolArray | None = None
    ends: BoolArray | None = None

    def taken(self, rows: Any) -> Transfers:
        """The transfers of these rows (numbers, or a mask), in their order; the pieces stay."""
        names = ("piece", "src", "dst", "adds", "start_s", "end_s", "channel_hint")
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in names}
        if self.ticks is not None:
            columns["ticks"] = self.ticks._replace(start=self.ticks.start[rows], end=self.ticks.end[rows])
        for name in ("together", "outlet"):
            if (column := getattr(self, name)) is not None:
                columns[name] = column[rows]
        return replace(self, **columns)

    def scaled(self, factor: int) -> Transfers:
        """The same with so many bytes for each."""
        sizes = {name: getattr(self, name) * factor for name in ("part_bytes", "piece_offset", "piece_bytes")}
        demand = self.demand and self.demand._replace(bytes=self.demand.bytes * factor)
        wants = None if self.wants is None else self.wants * factor
        return replace(self, **sizes, demand=demand, wants=wants)

    @property
    def exact(self) -> Ticks | None:
        """The times in ticks: where no clock says them, whole timesteps as seconds; None where they are neither."""
        if self.ticks is not None:
            return self.ticks
        times = np.concatenate([self.start_s, self.end_s])
        if np.any(times != np.floor(times)) or np.any(np.abs(times) >= 2**53):
            return None
        return Ticks(self.start_s.astype(np.int64), self.end_s.astype(np.int64), 1)

    def alone(self) -> Transfers:
        """The same without switches that add or copy: every transfer on its own."""
        return replace(self, together=None)

    @property
    def reduces(self) -> bool:
        """Whether sums are formed, so that every rank begins with a contribution to every part."""
        return self.collective in REDUCING

    @property
    def parts(self) -> int:
        """Number of parts of the data."""
        return parts_of(self.collective, self.ranks) if self.demand is None else len(self.demand.bytes)

    @property
    def sizes(self) -> IntArray:
        """Bytes of every part, shape (parts,)."""
        return np.full(self.parts, self.part_bytes, dtype=np.int64) if self.demand is None else self.demand.bytes


class Raised(NamedTuple):
    """What an executor's file runs: ``transfers``, and ``wait[wait_start[i]:wait_start[i + 1]]``, those that must have
    arrived before the thread block that makes transfer i comes to it, because its order, dependences or signals say so.
    ``block``: the thread block of every transfer, where it is known, each in the order of the transfers; ``packets``:
    whether they carry flags."""

    transfers: Transfers
    wait_start: IntArray
    wait: IntArray
    block: IntArray | None = None
    packets: bool = False


def parts_of(collective: str, ranks: int) -> int:
    """Number of parts: one, a part a rank, or a part an ordered pair."""
    if collective in ("broadcast", "reduce", "allreduce"):
        return 1
    return ranks * ranks if collective == "alltoall" else ranks


def in_order(transfers: Transfers) -> Transfers:
    """The same, by start, then end, then place; every transfer then comes after all it needs, if none takes no time."""
    return transfers.taken(np.lexsort((transfers.end_s, transfers.start_s)))


def seconds(ticks_per_s: int, *ticks: IntArray) -> list[FloatArray]:
    """Ticks as seconds, rounded, but different ones kept different and in order (2^53 of them have no float each)."""
    values, inverse = np.unique(np.concatenate(ticks), return_inverse=True)
    found: Any = values / ticks_per_s
    for k in (np.flatnonzero(found[1:] <= found[:-1]) + 1).tolist():
        while k < len(found) and found[k] <= found[k - 1]:
            found[k] = np.nextafter(found[k - 1], np.inf)
            k += 1
    ends = np.cumsum([len(one) for one in ticks])[:-1]
    return list(np.split(found[inverse.reshape(-1)], ends))
