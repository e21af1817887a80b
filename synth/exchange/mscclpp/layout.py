"""Where the pieces of a schedule lie in the buffers of a plan, in chunks."""

from __future__ import annotations

from copy import copy

from synth.exchange.mscclpp.goals import WIDE_IN, WIDE_OUT
from synth.exchange.transfers import Transfers

Place = tuple[str, int]  # buffer and first chunk


class Layout:
    """Places by rank and piece; scratch is given out as it is asked for, ``scratch`` chunks a rank so far."""

    def __init__(self, transfers: Transfers, in_place: bool) -> None:
        self.t, self.each = transfers, transfers.part_bytes
        self.swaps = in_place and transfers.collective == "alltoall"  # what arrives lands where what is sent lies
        self.part, self.offset = transfers.piece_part.tolist(), transfers.piece_offset.tolist()
        self.scratch = [0] * transfers.ranks
        self.slots: dict[tuple[int, int], int] = {}

    def copy(self) -> Layout:
        """One that gives out scratch of its own from here on."""
        found = copy(self)
        found.scratch, found.slots = list(self.scratch), dict(self.slots)
        return found

    def sizes(self) -> tuple[int, int]:
        """Input and output chunks; the executor divides by both, so that they stand for every rank."""
        wide = self.each * self.t.ranks
        return wide if self.t.collective in WIDE_IN else self.each, wide if self.t.collective in WIDE_OUT else self.each

    def own(self, piece: int) -> Place:
        """Where a rank's own data of a piece lie."""
        part, offset = self.part[piece], self.offset[piece]
        if self.t.collective == "alltoall":
            return "i", part % self.t.ranks * self.each + offset
        if self.t.collective in ("reduce_scatter", "scatter"):
            return "i", part * self.each + offset
        return "i", offset

    def final(self, rank: int, piece: int) -> Place | None:
        """Where a piece ends, if it ends at this rank."""
        part, offset = self.part[piece], self.offset[piece]
        match self.t.collective:
            case "allgather":
                return "o", part * self.each + offset
            case "gather":
                return ("o", part * self.each + offset) if rank == self.t.root else None
            case "alltoall":
                return ("o", part // self.t.ranks * self.each + offset) if part % self.t.ranks == rank else None
            case "reduce_scatter" | "scatter":
                return ("o", offset) if part == rank else None
            case "reduce":
                return ("o", offset) if rank == self.t.root else None
            case _:
                return "o", offset

    def slot(self, rank: int, size: int) -> int:
        """So many more chunks of scratch; the first of them."""
        self.scratch[rank] += size
        return self.scratch[rank] - size

    def store(self, rank: int, piece: int) -> Place:
        """Where a rank keeps a piece that it has received or added up: its end, or a place of its own in scratch."""
        end = self.final(rank, piece)
        if end is not None and not self.swaps:
            return end
        if (rank, piece) not in self.slots:
            self.slots[rank, piece] = self.slot(rank, int(self.t.piece_bytes[piece]))
        return "s", self.slots[rank, piece]

    def own_ends(self, rank: int) -> tuple[int, int] | None:
        """Where the part that a rank begins and ends with lies in input and output, None without one."""
        at = rank * self.t.part_bytes
        match self.t.collective:
            case "allgather":
                return 0, at
            case "gather":
                return (0, at) if rank == self.t.root else None
            case "alltoall":
                return at, at
            case "scatter":
                return (at, 0) if rank == self.t.root else None
            case "broadcast":
                return (0, 0) if rank == self.t.root else None
            case _:
                return 0, 0
