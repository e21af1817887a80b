"""What a collective begins and ends with, in the chunks of a plan's buffers.

An *item* is a chunk of data at the beginning: for sums the chunk that all ranks contribute to, otherwise a chunk of one
rank's input, counted through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth.errors import Fault, UnsupportedError
from synth.exchange.mscclpp.plan import ExecutionPlan, Span
from synth.schedule.collective import REDUCING

# a value: the item it is of, and the ranks whose contributions are in it (1 where nothing is added)
Value = tuple[int, int]

COLLECTIVES = {  # their names for them: ours. The last four have no name of theirs
    "allgather": "allgather",
    "allreduce": "allreduce",
    "reducescatter": "reduce_scatter",
    "alltoall": "alltoall",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
}
WIDE_IN = ("reduce_scatter", "alltoall", "scatter")  # a part a rank in the input
WIDE_OUT = ("allgather", "alltoall", "gather")


def collective(plan: ExecutionPlan) -> str:
    """Our name of what a plan says it is. Raises :class:`UnsupportedError` for one that is not known."""
    return Goal.of(plan, None, None).collective


@dataclass(frozen=True)
class Goal:
    """A plan's collective; ``each``: units of a part (of the whole buffer for allreduce, broadcast and reduce)."""

    plan: ExecutionPlan
    collective: str
    root: int

    @classmethod
    def of(cls, plan: ExecutionPlan, collective: str | None, root: int | None) -> Goal:
        """The goal of a plan: ``collective`` (our name) and ``root``, or what the plan says.

        Raises :class:`UnsupportedError` for a collective that is not known.
        """
        found = collective or COLLECTIVES.get(plan.collective)
        if found is None or found not in COLLECTIVES.values():
            known = ", ".join(COLLECTIVES.values())
            raise UnsupportedError(
                f"collective {plan.collective[:40]!r} is none of {known}: say which it is meant to be"
            )
        return cls(plan, found, next((r for r in (root, plan.root) if r is not None), 0))

    @property
    def sums(self) -> bool:
        """Whether contributions are added up."""
        return self.collective in REDUCING

    @property
    def each(self) -> int:
        """Units of a part."""
        chunks = self.plan.gpus[0].chunks["i"]
        return chunks * self.plan.units // (len(self.plan.gpus) if self.collective in WIDE_IN else 1)

    def size_faults(self) -> list[Fault]:
        """GPUs whose buffers are not of the collective's sizes; a root that is none."""
        gpus, ranks, u = self.plan.gpus, len(self.plan.gpus), self.plan.units
        found = [] if self.root < ranks else [Fault("root", f"{self.root} is none of {ranks} ranks")]
        if self.plan.wants is not None and self.collective != "alltoall":
            found.append(Fault("wanted_chunks", f"is said of {self.collective}, not of an alltoall"))
        right = {
            "i": self.each * (ranks if self.collective in WIDE_IN else 1),
            "o": self.each * (ranks if self.collective in WIDE_OUT else 1),
        }
        for rank, gpu in enumerate(gpus):
            if any(gpu.chunks[buffer] * u != units for buffer, units in right.items()) or not self.each:
                sizes = f"{gpu.chunks['i']} input and {gpu.chunks['o']} output chunks"
                text = f"{sizes} are not those of {self.collective} (gpu 0 has {gpus[0].chunks['i']} input chunks)"
                found.append(Fault(f"gpu {rank}", text))
        return found

    def one_place(self, s: Span) -> Span:
        """The span; in place, input and output are one buffer, and it is named by the larger of them."""
        if not self.plan.in_place or s.buffer == "s":
            return s
        buffer, start = "o", s.start
        if self.collective in ("allgather", "gather"):
            start += s.rank * self.each if s.buffer == "i" else 0
        elif self.collective in ("reduce_scatter", "scatter"):
            start += s.rank * self.each if s.buffer == "o" else 0
            buffer = "i"
        return Span(s.rank, buffer, start, s.size, s.packets)

    def beginning(self) -> Iterator[tuple[Span, list[Value]]]:
        """The ranks' own data, unit by unit."""
        for rank, gpu in enumerate(self.plan.gpus):
            if self.collective in ("broadcast", "scatter") and rank != self.root:
                continue
            units = gpu.chunks["i"] * self.plan.units
            first, ranks = (0, 1 << rank) if self.sums else (rank * units, 1)
            yield Span(rank, "i", 0, units), [(first + k, ranks) for k in range(units)]

    def end(self) -> Iterator[tuple[Span, list[Value]]]:
        """What must be where at the end, unit by unit."""
        full = (1 << len(self.plan.gpus)) - 1 if self.sums else 1
        for rank, gpu in enumerate(self.plan.gpus):
            if self.collective in ("reduce", "gather") and rank != self.root:
                continue
            units = gpu.chunks["o"] * self.plan.units
            wants = None if self.plan.wants is None else self.plan.wants[rank]
            parts = [(0, units)] if wants is None else [
                (origin * self.each, chunks * self.plan.units) for origin, chunks in enumerate(wants)
            ]  # fmt: skip
            for first, size in parts:
                yield Span(rank, "o", first, size), [(self._item(rank, first + k), full) for k in range(size)]

    @property
    def wants(self) -> IntArray | None:
        """Units of every part that are to arrive, as :class:`synth.exchange.transfers.Transfers` has them."""
        if self.plan.wants is None:
            return None
        found: IntArray = np.array(self.plan.wants, dtype=np.int64).T.reshape(-1) * self.plan.units
        return found

    def _item(self, rank: int, k: int) -> int:
        """The item that unit k of a rank's output ends with."""
        each, wide = self.each, self.each * len(self.plan.gpus)
        match self.collective:
            case "reduce_scatter":
                return rank * each + k
            case "alltoall":
                return k // each * wide + rank * each + k % each
            case "broadcast":
                return self.root * each + k
            case "scatter":
                return self.root * wide + rank * each + k
            case _:
                return k

    def described(self, value: Value | None) -> str:
        """A value in words."""
        if value is None:
            return "nothing"
        item, ranks = value
        if item < 0:
            return "a sum of chunks that do not belong together"
        if self.sums:
            return f"the sum of i[{item // self.plan.units}] of {ranks.bit_count()} gpus"
        wide = self.plan.gpus[0].chunks["i"] * self.plan.units
        return f"i[{item % wide // self.plan.units}] of gpu {item // wide}"
