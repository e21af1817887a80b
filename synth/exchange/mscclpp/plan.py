"""An execution plan of MSCCL++ as it is understood, and the limits of its executor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from synth.errors import LimitError

MAX_CHANNEL = 16  # channels, and remote buffers, of one type in a thread block
MAX_CHANNEL_PER_OPERATION = 8
MAX_BUFFERS = 2 + MAX_CHANNEL_PER_OPERATION  # sources, and destinations, of an operation
MAX_OPERATION = 64  # of a thread block
GIVES, TAKES = ("signal", "rlxsignal", "pws", "pwsf"), ("wait", "rlxwait")  # operations that give, and take, signals
MOST_BLOCKS = 108  # thread blocks that an A100 runs at once, one a multiprocessor
MAX_DEVICE_SYNCERS = 16
MAX_DEVICE_SEMAPHORES = 16
ALIGNED = 16  # bytes, that the kernel adds and sends at once
MOST_UNIT = 2**32 - 1  # bytes of a slice of a loop
MOST_RANKS, MOST_CHUNKS, MOST_BYTES = 4096, 2**24, 2**30  # ours: of what can be replayed


class CrowdedError(LimitError):
    """Thread blocks would pass a limit of the executor, however large the chunks are."""


@dataclass(frozen=True)
class Limits:
    """The most ``operations`` and ``channels`` (of one type; also remote buffers) of a thread block, and the most
    thread ``blocks`` of a GPU. Others than :data:`EXECUTOR` say what a limit costs: no plan within them alone runs."""

    operations: int = MAX_OPERATION
    channels: int = MAX_CHANNEL
    blocks: int = MOST_BLOCKS


EXECUTOR = Limits()


class Span(NamedTuple):
    """Chunks of a buffer: whose it is, ``i``, ``o`` or ``s``, the first unit and how many; ``packets``: with flags."""

    rank: int
    buffer: str
    start: int
    size: int
    packets: bool = False


class Op(NamedTuple):
    """An operation. ``channels``: numbers among the GPU's channels of ``channel_type``. A loop (``pipeline``) does its
    ``body`` again and again, each time with the next ``unit_bytes`` of all that it touches, until ``size`` units are
    done. ``at`` names an operation that stands in no plan as it is: one of a pass."""

    name: str
    channel_type: str = "none"
    channels: tuple[int, ...] = ()
    src: tuple[Span, ...] = ()
    dst: tuple[Span, ...] = ()
    barrier: int = -1
    parties: int = 0
    semaphores: tuple[int, ...] = ()
    body: tuple[Op, ...] = ()
    unit_bytes: int = 0
    size: int = 0
    at: str = ""


@dataclass(frozen=True)
class Gpu:
    """A GPU: chunks of its buffers i, o, s; the peers of its channels by type; first values of its semaphores; the
    operations of its thread blocks."""

    chunks: Mapping[str, int]
    peers: Mapping[str, Sequence[int]]
    semaphores: Sequence[int]
    blocks: Sequence[Sequence[Op]]


@dataclass(frozen=True)
class ExecutionPlan:
    """An execution plan. Spans count in units, ``units`` of them a chunk (thread block groups split chunks).
    ``unsupported``: what cannot be replayed; ``root``: of a rooted collective, as our own plans say it;
    ``most_bytes``: the largest message (the input, of an allgather the output) that it says it is for. ``wants``: of an
    alltoall of given parts, how many chunks every GPU (row) is to get from each, the first of the part; None where all
    are."""

    name: str
    collective: str
    packets: bool
    in_place: bool
    units: int
    gpus: Sequence[Gpu]
    unsupported: Sequence[str] = ()
    root: int | None = None
    most_bytes: int = 2**64 - 1
    wants: Sequence[Sequence[int]] | None = None

    def place(self, rank: int, block: int, op: int) -> str:
        """Where an operation stands, for a message."""
        found = self.gpus[rank].blocks[block][op]
        return f"gpu {rank}, tb {block}, {found.at or f'op {op}'} ({found.name})"


def each(ops: Sequence[Op]) -> Iterator[Op]:
    """All operations, those of a loop behind it."""
    for op in ops:
        yield op
        yield from op.body
