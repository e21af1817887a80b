"""The one intermediate form of all executors' formats: ranks, thread blocks, steps.

A thread block runs its steps in order; a step may wait for one step of another thread block of its rank, sends to one
peer and receives from one peer over one channel. Sends and receives of one (sender, receiver, channel) match in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from synth.arrays import BoolArray, IntArray

BUFFERS = ("i", "o", "s")  # input, output, scratch
KINDS = ("s", "r", "cpy", "re", "rrc", "rcs", "rrs", "rrcs", "nop")  # as MSCCL names them
SENDS = ("s", "rcs", "rrs", "rrcs")
RECEIVES = ("r", "rrc", "rcs", "rrs", "rrcs")


@dataclass(frozen=True)
class Algorithm:
    """An algorithm for one collective, as an executor runs it.

    ``chunks``: chunks per part (C). Buffers in chunks, N ranks, by collective (input, output): allgather (C, N C),
    reduce_scatter (N C, C), alltoall (N C, N C), allreduce, broadcast, reduce (C, C), gather (C, N C at the root),
    scatter (N C at the root, C). ``in_place``: input and output are one buffer; allgather and gather: i[c] is
    o[rank C + c]; reduce_scatter and scatter: o[c] is i[rank C + c]; otherwise i[c] is o[c].
    ``buffer_chunks``: size of the buffers i, o, s of every rank in chunks, shape (ranks, 3).

    Thread blocks, ordered by rank and then by their number there (0, 1, … without gaps): ``tb_rank``, ``tb_send`` and
    ``tb_recv`` (the peer, -1 for none), ``tb_channel``, shape (thread blocks,). The steps of thread block b are
    ``step_start[b]:step_start[b + 1]``. Per step, shape (steps,): ``kind`` (place in :data:`KINDS`), ``src_buffer``,
    ``dst_buffer`` (places in :data:`BUFFERS`), ``src_offset``, ``dst_offset``, ``count`` (chunks), ``dep_tb``,
    ``dep_step`` (thread block of the same rank, by its number there, and step in it, which must have ended; -1 for
    none), ``has_dependents``. ``line``: the line of a file it came from, or empty. ``both``: ``in_place`` is False, and
    the same steps are right with one buffer too. ``wants``: of an alltoall of given parts, how many chunks of each are
    to arrive, the first ones; shape (ranks * ranks,), part r * ranks + t from r to t, None where all are.
    """

    name: str
    collective: str
    ranks: int
    root: int | None
    in_place: bool
    protocol: str
    chunks: int
    buffer_chunks: IntArray
    tb_rank: IntArray
    tb_send: IntArray
    tb_recv: IntArray
    tb_channel: IntArray
    step_start: IntArray
    kind: IntArray
    src_buffer: IntArray
    src_offset: IntArray
    dst_buffer: IntArray
    dst_offset: IntArray
    count: IntArray
    dep_tb: IntArray
    dep_step: IntArray
    has_dependents: BoolArray
    least_bytes: int = 0
    most_bytes: int = 0
    line: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    both: bool = False
    wants: IntArray | None = None

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.kind)
