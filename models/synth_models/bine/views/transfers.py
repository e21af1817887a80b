"""Messages as an executor needs them: moves of blocks from rank to rank."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from synth.errors import InputError
from synth.exchange.transfers import Transfers, in_order
from synth.schedule.collective import ROOTED
from synth_models.bine.instance import BineInstance
from synth_models.bine.solution import Messages

MOST = 2**25  # moves of blocks


def transfers(instance: BineInstance, messages: Messages) -> Transfers:
    """Every block of a row is a piece that moves; round k lasts from k to k + 1. A block has its bytes, rounded up.

    Raises :class:`InputError` for several jobs and for more than 2^25 moves.
    """
    if len(instance.allocations) > 1:
        raise InputError(f"the record is of {len(instance.allocations)} jobs; an executor runs one collective")
    count = messages.count.astype(np.int64)
    if int(count.sum()) > MOST:
        raise InputError(f"{int(count.sum()):,} moves of blocks; at most {MOST:,} are exported")
    ranks, collective = len(instance.allocations[0]), instance.collective
    blocks = instance.blocks(ranks) * messages.shares
    size = max(1, math.ceil(Fraction(instance.block_bytes(ranks)) / messages.shares))
    block = np.arange(blocks, dtype=np.int64)
    part, place, of_part = np.zeros_like(block), block, blocks
    if collective == "alltoall":
        part, place, of_part = block % ranks**2, block // ranks**2, messages.shares
    elif collective not in ("broadcast", "reduce", "allreduce"):
        part, place, of_part = block % ranks, block // ranks, blocks // ranks
    row = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    columns: dict[str, Any] = {name: getattr(messages, name)[row] for name in ("src", "dst", "adds")}
    return in_order(
        Transfers(
            name=instance.name,
            collective=collective,
            ranks=ranks,
            root=instance.root if collective in ROOTED else None,
            part_bytes=of_part * size,
            piece_part=part,
            piece_offset=place * size,
            piece_bytes=np.full(blocks, size, dtype=np.int64),
            piece=messages.layout[messages.first[row] + within],
            **columns,
            start_s=messages.round[row].astype(np.float64),
            end_s=messages.round[row].astype(np.float64) + 1,
            channel_hint=np.full(len(row), -1, dtype=np.int64),
        )
    )
